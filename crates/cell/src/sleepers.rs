//! Measuring a language: one process for each CPU, which sleeps as programs in that language do.

use super::collector::Collector;
use super::measurers::{Measurement, Measurers, Window};
use super::{CellError, prepared::Prepared};
use punctual_model::{
    Achieved, Cell, Censored, ClockTime, CpuSet, MonoTime, Nanos, Policy, Runtime, RuntimeRecord, Schedule, Span,
    ThreadProgress, ThreadRecord,
};
use punctual_rt::{Sample, Settings};
use punctual_store::SampleWriter;
use punctual_workload::runtime::{self, Launch, RuntimeError, Sleep, Sleeper};
use std::time::{Duration, Instant};

/// The sleeping processes, and their samples.
#[derive(Debug)]
pub(super) struct Sleepers {
    cell: Cell,
    runtime: RuntimeRecord,
    processes: Vec<CpuSleeper>,
    cpu_dma_latency_us: Option<u32>,
    schedule: Schedule,
    window: Window,
    has_stopped: bool,
    /// The error of a failed wait; returned by the next `collect`.
    failed: Option<RuntimeError>,
}

/// The process of one CPU.
#[derive(Debug)]
struct CpuSleeper {
    cpu: u32,
    settings: Launch,
    sleeper: Sleeper,
    /// The process that sleeps: the one that was started, or a child of it.
    pid: u32,
    memory_locked_bytes: u64,
    samples: Samples,
    /// The time of its stop request.
    cut: Option<MonoTime>,
}

/// Conversion of sleeps into samples.
#[derive(Debug)]
struct Samples {
    schedule: Schedule,
    asked: Span,
    collector: Collector,
    /// The next sleep belongs to this cycle or a later one, and is due at this instant or later.
    next_cycle: u64,
    next_due: MonoTime,
    /// Sleeps not written yet: index of the cycle, counted from the first measured one, and error, ns.
    rows: Vec<(u64, i64)>,
}

/// Longest interval between two reads of the processes' output. A read every 100 ms costs little and keeps the pipes
/// from filling up; writing to the pipe wakes no reader meanwhile.
const READ_INTERVAL: Duration = Duration::from_millis(100);
/// Largest number of sleeps between two reads: half of what a pipe holds, with 30 bytes a line.
const MAX_BETWEEN: u32 = 1000;

impl Sleepers {
    /// Starts the processes and waits until each is warm. Call it before the load is started: a SCHED_IDLE runtime that
    /// starts up among 400 processes would never be ready. Errors: when the language is not installed, a process does
    /// not start up, or its settings differ from those of the cell.
    pub(super) fn arm(prepared: &Prepared, runtime: Runtime) -> Result<Sleepers, CellError> {
        let cell = prepared.cell.clone();
        // The files are removed when all processes have read them.
        let (implementation, made) = runtime::ready(runtime)?;
        punctual_sys::fail::point("sleep-made");
        let settings = |cpu| Launch {
            cpus: CpuSet::from_iter([cpu]),
            policy: cell.policy,
            timer_slack: cell.conditions.timer_slack.unwrap_or(Settings::KERNEL_SLACK),
        };
        // SCHED_IDLE may get no CPU time at all where anything else runs: the process warms up under SCHED_OTHER.
        let starts_as = if cell.policy == Policy::Idle { Policy::OTHER } else { cell.policy };
        let start = |cpu| -> Result<_, RuntimeError> {
            let settings = settings(cpu);
            let started = Launch { policy: starts_as, ..settings.clone() };
            Ok((cpu, Sleeper::start(&made, cpu, &started, cell.period.span())?, settings))
        };
        let started = cell.cpus.iter().map(start).collect::<Result<Vec<_>, _>>()?;
        punctual_sys::fail::point("sleep-started");
        let schedule = Schedule { first_due: ClockTime(0), period: cell.period };
        let (mut processes, mut version) = (Vec::new(), String::new());
        for (cpu, mut sleeper, settings) in started {
            let ready = sleeper.wait_until_ready()?;
            punctual_sys::fail::point("sleep-ready");
            let (pid, memory_locked_bytes) = (ready.pid, punctual_host::memory_locked_bytes_of(ready.pid).unwrap_or(0));
            if starts_as != cell.policy {
                sleeper.set_policy(pid, cell.policy)?;
            }
            sleeper.check_threads(pid, &settings)?;
            version = ready.version;
            let samples = Samples::new(schedule, &cell, MonoTime(0));
            processes.push(CpuSleeper { cpu, settings, sleeper, pid, memory_locked_bytes, samples, cut: None });
        }
        Ok(Sleepers {
            runtime: RuntimeRecord { version, program: implementation.display().to_string() },
            processes,
            cpu_dma_latency_us: prepared.dma_latency.as_ref().map(|(_, us)| *us),
            schedule,
            window: Window { started: MonoTime(0), ends: MonoTime(0) },
            has_stopped: false,
            failed: None,
            cell,
        })
    }

    /// Reads the output of the processes.
    fn read(&mut self) -> Result<(), RuntimeError> {
        let read = |process: &mut CpuSleeper| process.sleeper.read(|sleep| process.samples.take(sleep));
        self.processes.iter_mut().try_for_each(read)
    }

    /// The interval between two reads.
    fn rest(&self) -> Duration {
        let many = Duration::from_nanos(self.cell.period.ns()).saturating_mul(MAX_BETWEEN);
        READ_INTERVAL.min(many)
    }
}

impl Samples {
    /// Creates samples for a process that is released at `released`.
    fn new(schedule: Schedule, cell: &Cell, released: MonoTime) -> Samples {
        let (first, end, asked) = (cell.first_cycle(), cell.end_cycle(), cell.period.span());
        let collector = Collector::new(schedule, &cell.task, first..end, cell.deadline());
        Samples { schedule, asked, collector, next_cycle: 0, next_due: released.plus(asked), rows: Vec::new() }
    }

    /// The cycle of a sleep due at `due`: the period that contains it. A language that wakes early sooner or later has
    /// two sleeps due in one period; the second then belongs to the next cycle.
    fn cycle(&self, due: MonoTime) -> u64 {
        self.schedule.containing(ClockTime(due.0)).index.max(self.next_cycle)
    }

    fn take(&mut self, sleep: Sleep) {
        let cycle = self.cycle(sleep.due(self.asked));
        let latency: Nanos = sleep.error(self.asked);
        self.rows.extend(self.collector.take(Sample { cycle, latency }));
        self.next_cycle = cycle + 1;
        self.next_due = sleep.ended.plus(self.asked);
    }

    /// Passes the new sleeps on `cpu` to `samples`.
    fn hand_on(&mut self, cpu: u32, samples: &mut Option<SampleWriter>) {
        let new = self.rows.drain(..);
        if let Some(samples) = samples {
            let rows = samples.rows(cpu);
            new.for_each(|(cycle, latency_ns)| rows.push(cycle, latency_ns));
        }
    }

    /// Whether the next sleep is outside this window.
    fn are_complete(&self) -> bool {
        self.cycle(self.next_due) >= self.collector.end()
    }

    /// Ends the window now: with the last whole period, or with the last sleep if that is later.
    fn end_at(&mut self, now: MonoTime) {
        let is_over = self.schedule.containing(ClockTime(now.0)).index;
        self.collector.end_before(is_over.max(self.next_cycle));
    }

    /// The sleep that was overdue but still open at `cut`, in a window that begins with cycle `first`.
    fn open_sleep(&self, cut: MonoTime, first: u64) -> Option<Censored> {
        let cycle = self.cycle(self.next_due);
        let is_open = cycle < self.collector.end() && self.next_due < cut;
        let index = cycle.cast_signed().wrapping_sub_unsigned(first);
        is_open.then(|| Censored { cycle: index, at_least_ns: cut.0 - self.next_due.0 })
    }
}

impl CpuSleeper {
    /// Ends the process; returns its record.
    fn finish(
        self,
        cell: &Cell,
        cpu_dma_latency_us: Option<u32>,
        rows: &mut Option<SampleWriter>,
    ) -> Result<ThreadRecord, CellError> {
        // Checked again: a runtime may start threads later.
        self.sleeper.check_threads(self.pid, &self.settings)?;
        let CpuSleeper { cpu, settings, mut sleeper, mut samples, memory_locked_bytes, cut, .. } = self;
        let now = sleeper.end(|sleep| samples.take(sleep))?;
        let cut = cut.unwrap_or(now);
        samples.hand_on(cpu, rows);
        let first = cell.first_cycle();
        let censored = samples.open_sleep(cut, first);
        let mut collector = samples.collector;
        let worst = collector.finish(censored);
        let cycles_due = collector.end().saturating_sub(first);
        let open_cycles = u64::from(censored.is_some_and(|wait| wait.cycle >= 0));
        let accounted = collector.histogram.n + open_cycles;
        let unaccounted = CellError::Unaccounted { cpu, cycles_due, accounted };
        Ok(ThreadRecord {
            cpu,
            achieved: Achieved {
                policy: settings.policy,
                cpus: settings.cpus,
                timer_slack_ns: if settings.policy.is_realtime() { 0 } else { settings.timer_slack.ns() },
                memory_locked_bytes,
                cpu_dma_latency_us,
                ..Achieved::default()
            },
            cycles_due,
            recorded: collector.histogram.n,
            // Periods that the sleeps have drifted past.
            missed: cycles_due.checked_sub(accounted).ok_or(unaccounted)?,
            early: collector.early,
            censored,
            histogram: collector.histogram,
            seconds: collector.seconds,
            slices: collector.slices,
            worst,
            episodes: collector.episodes,
            // No usage: the kernel's counts for a process include start-up and warm-up.
            ..ThreadRecord::default()
        })
    }
}

impl Measurers for Sleepers {
    fn release(&mut self) -> Result<Window, CellError> {
        let now = punctual_sys::clock::monotonic();
        // The first sleep is due in the middle of cycle 0, so that a sleep that ends a little early still falls into
        // the next.
        let period = self.cell.period.span();
        self.schedule.first_due = ClockTime(now.plus(Span(period.ns() / 2)).0);
        let due = |index| MonoTime(self.schedule.cycle(index).due.0);
        self.window = Window { started: due(self.cell.first_cycle()), ends: due(self.cell.end_cycle()) };
        for process in &mut self.processes {
            process.samples = Samples::new(self.schedule, &self.cell, now);
            process.sleeper.release()?;
        }
        punctual_sys::fail::point("sleep-released");
        Ok(self.window)
    }

    fn wait(&mut self, timeout: Duration) -> bool {
        let until = Instant::now() + timeout;
        while !self.has_stopped {
            if let Err(err) = self.read() {
                self.failed = Some(err);
                return false;
            }
            let left = until.saturating_duration_since(Instant::now());
            let are_complete = self.processes.iter().all(|process| process.samples.are_complete());
            if are_complete || left.is_zero() {
                return are_complete;
            }
            let rest = u64::try_from(self.rest().min(left).as_nanos()).unwrap_or(u64::MAX);
            // The signal may be a stop request, which the caller checks.
            if punctual_sys::poll::wait(Span(rest)).is_err() {
                return false;
            }
        }
        true
    }

    fn stop(&mut self) {
        let now = punctual_sys::clock::monotonic();
        for process in &mut self.processes {
            let result = process.sleeper.end(|sleep| process.samples.take(sleep));
            self.failed = self.failed.take().or(result.err());
            process.samples.end_at(now);
            process.cut = Some(now);
        }
        self.has_stopped = true;
    }

    fn collect(&mut self, samples: &mut Option<SampleWriter>) -> Result<(), CellError> {
        if let Some(err) = self.failed.take() {
            return Err(err.into());
        }
        self.processes.iter_mut().for_each(|process| process.samples.hand_on(process.cpu, samples));
        Ok(samples.as_mut().map_or(Ok(()), SampleWriter::write_full)?)
    }

    fn thread_ids(&self) -> Vec<u32> {
        self.processes.iter().flat_map(|process| punctual_host::threads_of(process.pid)).collect()
    }

    fn progress(&self) -> Vec<ThreadProgress> {
        self.processes.iter().map(|process| process.samples.collector.progress(process.cpu)).collect()
    }

    fn finish(&mut self, samples: &mut Option<SampleWriter>) -> Result<Measurement, CellError> {
        let finished = |process: CpuSleeper| process.finish(&self.cell, self.cpu_dma_latency_us, samples);
        let threads = self.processes.drain(..).map(finished).collect::<Result<Vec<_>, _>>()?;
        let measurement = Measurement::of(self.window.started, &self.cell, threads)?;
        Ok(Measurement { runtime: Some(self.runtime.clone()), ..measurement })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_model::Task;

    const MS: u64 = 1_000_000;

    fn cell() -> Cell {
        Cell {
            task: Task::Sleep(Runtime::C),
            cpus: CpuSet::from_iter([0]),
            duration: Span(10 * MS),
            ..punctual_analysis::testing::cell("none", "other")
        }
    }

    /// The samples of sleeps that began and ended at these times, us after the release.
    fn samples(sleeps: &[(u64, u64)]) -> Samples {
        let schedule = Schedule { first_due: ClockTime(100 * MS + MS / 2), period: cell().period };
        let mut samples = Samples::new(schedule, &cell(), MonoTime(100 * MS));
        for (began, ended) in sleeps {
            let at = |us: &u64| MonoTime(100 * MS + us * 1000);
            samples.take(Sleep { began: at(began), ended: at(ended) });
        }
        samples
    }

    #[test]
    fn a_sleep_is_of_the_period_in_which_it_was_due() {
        for (sleeps, next_cycle, n, missed_by_latency) in [
            (&[][..], 0, 0, 0),
            (&[(0, 1000)], 1, 1, 0),
            (&[(0, 1499)], 1, 1, 0),
            // The second is due at 2.501 ms, in the period from 2.5 ms on: the sleeps have drifted past cycle 1.
            (&[(0, 1500), (1501, 2600)], 3, 2, 0),
            // Both are due before 1.5 ms: the second belongs to the next cycle all the same.
            (&[(0, 300), (301, 600)], 2, 2, 0),
            // The sleep due at 10.499 ms is the last; a sleep due at 10.5 ms is outside this window.
            (&[(9499, 10_499)], 10, 1, 0),
            (&[(9500, 10_500)], 11, 0, 0),
        ] {
            let samples = samples(sleeps);
            let found = (samples.next_cycle, samples.collector.histogram.n, samples.collector.missed);
            assert_eq!(found, (next_cycle, n, missed_by_latency), "{sleeps:?}");
        }
    }

    #[test]
    fn a_window_is_complete_when_no_later_sleep_can_be_of_it() {
        for (ended, complete) in [(9499, false), (9500, true)] {
            assert_eq!(samples(&[(0, ended)]).are_complete(), complete, "{ended}");
        }
    }

    #[test]
    fn a_sleep_that_did_not_end_is_open_from_when_it_was_due() {
        let open = |samples: &Samples, us: u64| {
            let found = samples.open_sleep(MonoTime(100 * MS + us * 1000), 0);
            found.map(|open| (open.cycle, open.at_least_ns))
        };
        let one = samples(&[(0, 1000)]);
        assert_eq!((open(&one, 2000), open(&one, 2001)), (None, Some((1, 1000))));
        assert_eq!(open(&samples(&[]), 20_000), Some((0, 19 * MS)), "it never woke at all");
        assert_eq!(open(&samples(&[(0, 9600)]), 20_000), None, "the next is of no window");
    }

    #[test]
    fn an_interrupted_window_ends_with_its_last_whole_period() {
        for (sleeps, now, end, open) in [
            (&[][..], 499, 0, None),
            (&[], 1499, 0, None),
            (&[], 1500, 1, Some((0, 500_000))),
            (&[(0, 1000)], 1000, 1, None),
            (&[(0, 1000)], 2400, 1, None),
            (&[(0, 1000)], 2600, 2, Some((1, 600_000))),
            (&[], 60_000, 10, Some((0, 59 * MS))),
        ] {
            let (mut samples, now) = (samples(sleeps), MonoTime(100 * MS + now * 1000));
            samples.end_at(now);
            let found = samples.open_sleep(now, 0).map(|open| (open.cycle, open.at_least_ns));
            assert_eq!((samples.collector.end(), found), (end, open), "{sleeps:?} {now:?}");
        }
    }
}
