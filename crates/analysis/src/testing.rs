//! Runs for tests, built from latencies the way an instrument would record them.

use model::{
    Achieved, Cell, Censored, ClockTime, CpuSet, Ended, Entry, Episode, Episodes, Header, Histogram, Host,
    ImportedThread, Kernel, Link, Load, Method, MonoTime, Nanos, Period, Plan, Planned, Policy, RECORD_FORMAT,
    RUN_FORMAT, Record, Requirement, ResponseRecord, Schedule, Second, Slice, Span, TargetRecord, ThreadRecord, Usage,
    Worst,
};

/// Slices of each measurement.
const SLICES: u64 = 20;

/// A header and its entries, to be filled step by step and changed at will.
#[derive(Debug, Clone)]
pub struct RunBuilder {
    /// The header; cells are added by [`RunBuilder::cell`].
    pub header: Header,
    /// The entries, in the order they were measured.
    pub entries: Vec<Entry>,
}

mod host;

pub use host::host;

/// A cell of 2 s at 1 ms on CPUs 0 and 1, with the load and policy as typed.
///
/// # Panics
/// When they are not known: it is for tests.
#[must_use]
pub fn cell(load: &str, policy: &str) -> Cell {
    let load: Result<Load, _> = load.parse();
    let policy: Result<Policy, _> = policy.parse();
    Cell {
        kernel: Kernel::Running,
        load: load.expect("a load"),
        policy: policy.expect("a policy"),
        period: Period::try_from(Span(1_000_000)).expect("a period"),
        method: Method::CLOCK_NANOSLEEP,
        cpus: [0, 1].into_iter().collect(),
        duration: Span(2_000_000_000),
        warm_up: Span(0),
        deadline: None,
        timer_slack: None,
        align: None,
        distance: None,
        lock_memory: true,
        cpu_dma_latency_us: Some(0),
        load_cpus: None,
        load_policy: None,
        load_must_hold: None,
        prepare: model::Prepare::default(),
        explain: None,
        stop_above: None,
        on_spike: None,
        tracers: false,
        roles: model::Roles::default(),
    }
}

/// What a logger counted of a target on `host`, which answered nothing.
#[must_use]
pub fn response(host: Host) -> ResponseRecord {
    let target = TargetRecord {
        link: Link::Uio,
        achieved: Achieved {
            policy: Policy::OTHER,
            cpus: CpuSet::default(),
            timer_slack_ns: 0,
            memory_locked_bytes: 0,
            cpu_dma_latency_us: None,
        },
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
    ResponseRecord {
        triggers: 0,
        late: 0,
        duplicate: 0,
        foreign: 0,
        line_errors: None,
        own: None,
        parts: None,
        target: Some(Box::new(target)),
    }
}

/// A thread of an imported file whose histogram is of these latencies, ns; all else is unknown.
#[must_use]
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
    /// A run on [`host`] without any cell, of one block, requiring nothing.
    #[must_use]
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
            },
            entries: Vec::new(),
        }
    }

    /// Adds a cell.
    pub fn cell(&mut self, load: &str, policy: &str) -> &mut Self {
        self.header.cells.push(cell(load, policy));
        self
    }

    /// Sets what is required, as typed.
    ///
    /// # Panics
    /// When it is no requirement.
    pub fn require(&mut self, text: &str) -> &mut Self {
        self.header.plan.require.set_all(text).expect("a requirement");
        let deadline = self.header.plan.require.max;
        self.header.cells.iter_mut().for_each(|cell| cell.deadline = deadline);
        self
    }

    /// Measures one cell in one block: `latency_ns(cpu, cycle)` says how late each wake-up is. A latency of
    /// `i64::MAX` never wakes.
    ///
    /// # Panics
    /// When there is no such cell.
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
        };
        let threads = cell.cpus.iter().map(|cpu| thread(&cell, achieved(cpu), cpu, |cycle| latency_ns(cpu, cycle)));
        let threads = threads.collect();
        let record = Record {
            format: RECORD_FORMAT,
            tool: self.header.tool.clone(),
            cell_id: cell.id(),
            started_unix_ms: self.header.started_unix_ms + 1_000 + 3_000 * position,
            started: MonoTime(1_000_000_000_000 + 3_000_000_000 * position),
            measured: cell.duration,
            ended: Ended::Completed,
            threads,
            clock_steps: Vec::new(),
            runtime: None,
            response: None,
            loads: Vec::new(),
            lab: None,
            explained: None,
            on_spike: None,
            tracers: None,
            cost: None,
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

/// What one thread records of these latencies.
fn thread(cell: &Cell, achieved: Achieved, cpu: u32, latency_ns: impl Fn(u64) -> i64) -> ThreadRecord {
    let schedule = Schedule { first_due: ClockTime(0), period: cell.period };
    let (cycles_due, deadline) = (cell.period.cycles_in(cell.duration), cell.deadline().ns());
    let per_slice = cycles_due.div_ceil(SLICES).max(1);
    let mut histogram = Histogram::default();
    let mut slices: Vec<Slice> = (0..cycles_due.div_ceil(per_slice))
        .map(|i| Slice { first_cycle: i * per_slice, cycles: per_slice, histogram: Histogram::default() })
        .collect();
    let (mut worst, mut episodes, mut missed, mut early) = (Vec::new(), Vec::<Episode>::new(), 0, 0);
    let mut seconds: Vec<Second> = Vec::new();
    let mut censored = None;
    let mut cycle = schedule.cycle(0);
    while cycle.index < cycles_due {
        let (index, late) = (cycle.index, latency_ns(cycle.index));
        if late == i64::MAX {
            censored = Some(Censored {
                cycle: i64::try_from(index).unwrap_or(0),
                at_least_ns: (cycles_due - index) * cell.period.ns(),
            });
            missed += cycles_due - index - 1;
            let open_ns = i64::try_from((cycles_due - index) * cell.period.ns()).unwrap_or(i64::MAX);
            if open_ns.unsigned_abs() > deadline {
                episode(&mut episodes, index, open_ns, cell.period);
            }
            break;
        }
        histogram.record(late);
        let slice = usize::try_from(index / per_slice).unwrap_or(0);
        slices[slice].histogram.record(late);
        worst.push(Worst { latency_ns: late, cycle: index });
        take_second(&mut seconds, index, late, cell.period);
        early += u64::from(late < 0);
        if u64::try_from(late).is_ok_and(|late| late > deadline) {
            episode(&mut episodes, index, late, cell.period);
        }
        missed += schedule.missed(Nanos(late)).min(cycles_due - index - 1);
        cycle = schedule.after(cycle, Nanos(late));
    }
    worst.sort_by_key(|worst| (std::cmp::Reverse(worst.latency_ns), worst.cycle));
    worst.truncate(1000);
    let count = u64::try_from(episodes.len()).unwrap_or(0);
    ThreadRecord {
        cpu,
        offset: Span(0),
        origin_uncertainty: None,
        timer_overruns: None,
        achieved,
        cycles_due,
        recorded: histogram.n,
        missed,
        lost: 0,
        passed_over: 0,
        early,
        censored,
        histogram,
        seconds,
        slices,
        worst,
        episodes: Episodes { count, first: episodes },
        usage: Some(Usage::default()),
    }
}

/// Counts a wake-up in the second in which it was due.
fn take_second(seconds: &mut Vec<Second>, cycle: u64, late_ns: i64, period: Period) {
    let second = cycle * period.ns() / Span::SECOND.0;
    if seconds.last().is_none_or(|row| row.second != second) {
        seconds.push(Second { second, ..Second::default() });
    }
    let Some(row) = seconds.last_mut() else { return };
    row.n += 1;
    row.sum_ns = row.sum_ns.saturating_add(late_ns);
    if row.max_ns.is_none_or(|max| late_ns > max) {
        (row.max_ns, row.max_cycle) = (Some(late_ns), Some(cycle));
    }
}

/// Adds a late wake-up to the last episode when it was due less than a second after that ended, else begins a new one.
fn episode(episodes: &mut Vec<Episode>, cycle: u64, late_ns: i64, period: Period) {
    let due_ns = cycle * period.ns();
    let ended_ns = due_ns.saturating_add_signed(late_ns);
    match episodes.last_mut().filter(|last| due_ns < last.ended_ns + Span::SECOND.0) {
        Some(last) => {
            last.last_cycle = cycle;
            last.count += 1;
            last.worst_ns = last.worst_ns.max(late_ns);
            last.ended_ns = ended_ns;
        }
        None => {
            episodes.push(Episode { first_cycle: cycle, last_cycle: cycle, count: 1, worst_ns: late_ns, ended_ns });
        }
    }
}
