//! Builder of runs for tests, from given latencies.

use punctual_model::{
    Achieved, Cell, Conditions, Ended, Entry, Header, Histogram, Host, ImportedThread, Kernel, LabClock, LabRecord,
    Link, Load, MonoTime, Period, Plan, Planned, Policy, RECORD_FORMAT, RUN_FORMAT, Record, Requirement,
    ResponseRecord, Span, TargetRecord, Task, ThreadRecord,
};

/// Number of slices of each measurement.
const SLICES: u64 = 20;

/// A header and its entries, filled step by step; tests may change both.
#[derive(Debug, Clone)]
pub struct RunBuilder {
    /// The header; [`RunBuilder::cell`] adds cells.
    pub header: Header,
    /// The entries, in the order of measurement.
    pub entries: Vec<Entry>,
}

mod host;
mod thread;

pub use host::host;
use thread::thread;

/// A cell of 2 s at 1 ms on CPUs 0 and 1, with this load and policy.
///
/// # Panics
/// If the load or policy is invalid.
pub fn cell(load: &str, policy: &str) -> Cell {
    let load: Result<Load, _> = load.parse();
    let policy: Result<Policy, _> = policy.parse();
    Cell {
        kernel: Kernel::Running,
        load: load.expect("a load"),
        policy: policy.expect("a policy"),
        period: Period::try_from(Span(1_000_000)).expect("a period"),
        task: Task::CLOCK_NANOSLEEP,
        cpus: [0, 1].into_iter().collect(),
        duration: Span(2_000_000_000),
        deadline: None,
        lock_memory: true,
        load_cpus: None,
        conditions: Conditions { cpu_dma_latency_us: Some(0), ..Conditions::default() },
    }
}

/// Response record of a target on `host` that answered no trigger.
pub fn response(host: Host) -> ResponseRecord {
    let target = TargetRecord {
        link: Link::Uio,
        achieved: Achieved::default(),
        triggers: 0,
        answered: 0,
        missed: 0,
        duplicate: 0,
        foreign: 0,
        too_soon: 0,
        line_errors: None,
        loads: Vec::new(),
        own: Histogram::default(),
        waking: None,
        host: Some(host.into()),
    };
    ResponseRecord { target: Some(Box::new(target)), ..ResponseRecord::default() }
}

/// Record of a guest in virtual time on a kernel of unknown configuration.
pub fn lab() -> LabRecord {
    LabRecord {
        clock: LabClock::Virtual,
        kernel: "linux-image-6.1.0-9-amd64".to_owned(),
        kernel_hash: "0".repeat(16),
        config: None,
        command_line: String::new(),
        initramfs_hash: "0".repeat(16),
        qemu: "QEMU emulator version 7.2.0".to_owned(),
        machine: "pc, qemu64, 1 CPU".to_owned(),
        memory_mib: 256,
        settled_ns: 5_000_000_000,
        threads: Vec::new(),
        host: None,
    }
}

/// A thread of an imported file with a histogram of these latencies, ns; all else is unknown.
pub fn imported_thread(latencies_ns: &[i64]) -> ImportedThread {
    let histogram = Histogram::of(latencies_ns);
    ImportedThread {
        samples: Some(histogram.n),
        min_ns: histogram.min_ns,
        max_ns: histogram.max_ns,
        histogram: Some(histogram),
        ..ImportedThread::default()
    }
}

impl Default for RunBuilder {
    fn default() -> RunBuilder {
        RunBuilder::new()
    }
}

impl RunBuilder {
    /// A run on [`host()`] without cells, with one block and no requirements.
    pub fn new() -> RunBuilder {
        let plan = Plan { repetitions: 1, require: Requirement::default(), ..Plan::default() };
        RunBuilder {
            header: Header {
                format: RUN_FORMAT,
                tool: "punctual 0.1.0".to_owned(),
                started_unix_ms: 1_790_000_000_000,
                plan,
                seed: 7,
                host: host(),
                cells: Vec::new(),
                skipped: Vec::new(),
                samples: false,
                shard: None,
                failed: Vec::new(),
                films: Vec::new(),
            },
            entries: Vec::new(),
        }
    }

    /// Adds a cell.
    pub fn cell(&mut self, load: &str, policy: &str) -> &mut Self {
        self.header.cells.push(cell(load, policy));
        self
    }

    /// Sets the requirements.
    ///
    /// # Panics
    /// If `text` is no valid requirement.
    pub fn require(&mut self, text: &str) -> &mut Self {
        self.header.plan.require.set_all(text).expect("a requirement");
        let deadline = self.header.plan.require.max;
        self.header.cells.iter_mut().for_each(|cell| cell.deadline = deadline);
        self
    }

    /// Measures one cell in one block. `latency_ns(cpu, cycle)` returns the latency of each wake-up. `i64::MAX` stands
    /// for a wait without a wake-up; of a link, for a trigger without an answer within 1 s.
    ///
    /// # Panics
    /// If the cell does not exist.
    pub fn measure(&mut self, block: u32, cell_index: usize, latency_ns: impl Fn(u32, u64) -> i64) -> &mut Self {
        let cell = self.header.cells[cell_index].clone();
        let position = u64::try_from(self.entries.len()).unwrap_or(0);
        let slack = if cell.policy.is_realtime() { 0 } else { 50_000 };
        let achieved = |cpu| Achieved {
            policy: cell.policy,
            cpus: [cpu].into_iter().collect(),
            timer_slack_ns: slack,
            memory_locked_bytes: 1 << 20,
            cpu_dma_latency_us: Some(0),
            ..Achieved::default()
        };
        let threads = cell.cpus.iter().map(|cpu| thread(&cell, achieved(cpu), cpu, |cycle| latency_ns(cpu, cycle)));
        let threads: Vec<ThreadRecord> = threads.collect();
        let late_answers = threads.iter().map(|thread| thread.histogram.count_above(cell.period.ns())).sum();
        let record = Record {
            format: RECORD_FORMAT,
            tool: self.header.tool.clone(),
            cell_id: cell.id(),
            started_unix_ms: self.header.started_unix_ms + 1_000 + 3_000 * position,
            started: MonoTime(1_000_000_000_000 + 3_000_000_000 * position),
            measured: cell.duration,
            ended: Ended::Completed,
            threads,
            clock_reading: None,
            clock_steps: Vec::new(),
            runtime: None,
            instrument: None,
            response: cell.task.link().map(|_| ResponseRecord {
                triggers: cell.period.cycles_in(cell.duration),
                late: late_answers,
                target: None,
                ..response(host())
            }),
            loads: Vec::new(),
            lab: None,
            explained: None,
            on_spike: None,
            tracers: None,
            cost: None,
            watch: None,
            prepared: Vec::new(),
            machine: Vec::new(),
            host_before: self.header.host.clone().into(),
            host_after: self.header.host.clone().into(),
            cell,
        };
        self.entries.push(Entry { planned: Planned { block, position: 0, cell_index }, record });
        self
    }
}
