//! The main loop of a run: it drains the sample logs, prints, and checks the stop conditions.

use super::machine;
use super::options::Options;
use super::output::Console;
use super::signals::{PendingRequests, Requests};
use super::text::{self, ThreadReport};
use super::thread_progress::ThreadProgress;
use punctual_host::{HostFs, SmiCounter, TraceMark};
use punctual_model::{ClockTime, CpuSet, MonoTime, Nanos, Schedule, Span};
use punctual_rt::Team;
use std::error::Error;
use std::io;
use std::time::Duration;

/// Intervals of draining the logs: without and with a display.
const QUIET_TICK: Duration = Duration::from_secs(1);
const VIEW_TICK: Duration = Duration::from_millis(100);
/// Time that a late thread gets at the end of a run before its wait is reported as still open.
const END_GRACE: Span = Span(50_000_000);

/// A run in progress.
#[derive(Debug)]
pub(super) struct Engine<'a> {
    options: &'a Options,
    team: Team,
    follows: Vec<ThreadProgress>,
    shown: Vec<ThreadReport>,
    asked: PendingRequests,
    trace: Option<TraceMark>,
    /// SMI counter of each thread with its count at the start; empty unless requested.
    smis: Vec<(SmiCounter, u64)>,
    reducers: Vec<Reducer>,
    /// The first value above `-b`: time, thread id, value.
    broke: Option<(ClockTime, u32, i64)>,
    /// End of the last thread's duration, `CLOCK_MONOTONIC`.
    ends: Option<MonoTime>,
    has_view: bool,
    max_in_view: Option<i64>,
}

#[derive(Debug)]
pub(super) struct RunResult {
    pub(super) shown: Vec<ThreadReport>,
    /// Thread id and value of the break.
    pub(super) broke: Option<(u32, i64)>,
    /// Step of the clock if it was set during the run.
    pub(super) clock_was_set: Option<Nanos>,
}

/// Reducer for `-o`: the largest of every N values.
#[derive(Debug, Default)]
struct Reducer {
    n: u64,
    largest: Option<(u64, i64)>,
}

impl Reducer {
    fn take(&mut self, of: u64, cycle: u64, value: i64) -> Option<(u64, i64)> {
        if self.largest.is_none_or(|(_, largest)| value > largest) {
            self.largest = Some((cycle, value));
        }
        self.n += 1;
        if self.n < of {
            return None;
        }
        std::mem::take(self).largest
    }
}

/// Measures as requested, until one of the stop conditions. Errors: one line: a setting that was rejected or not
/// applied, a failed wait, or an output that cannot be written.
pub(super) fn run(options: &Options, usable: &CpuSet, console: &mut Console<'_>) -> Result<RunResult, Box<dyn Error>> {
    let trace = (options.trace_mark && options.break_above.is_some())
        .then(|| TraceMark::open(&HostFs::here()))
        .transpose()
        .map_err(|err| format!("--tracemark: {err}"))?;
    if let Some(trace) = &trace {
        console.say(&format!("INFO: debugfs mountpoint: {}/\n", trace.dir.display()));
    }
    let requests = Requests::accept()?;
    let team = machine::spawn_threads(options, usable)?;
    let asked = requests.forward(team.waker())?;
    machine::place_main(options, usable)?;

    let start = machine::start_time(options);
    let clock_at_start = clock_offset(options);
    let (mut follows, mut shown) = (Vec::new(), Vec::new());
    let mut longest = Span(0);
    for ((thread, phase), member) in options.threads.iter().zip(machine::phases(options)).zip(&team.members) {
        let period = machine::period(thread)?;
        let first_due = start.plus(machine::phase_of_first_cycle(phase, period));
        // Setting the clock moves due times: with such clocks only the end of the run limits the cycles.
        let end = options.duration.filter(|_| !options.method.clock().can_be_set());
        let end = end.map(|duration| (duration.ns() / period.ns()).max(1));
        follows.push(ThreadProgress::new(Schedule { first_due, period }, end, options.loops));
        longest = longest.max(phase);
        let rows = options.histogram.as_ref().map_or(0, |histogram| histogram.rows);
        shown.push(ThreadReport {
            tid: member.tid,
            priority: thread.priority,
            interval_us: thread.interval_us,
            policy: member.policy,
            cpu: thread.cpu,
            node: thread.cpu.and_then(|cpu| punctual_host::node_of_cpu(&HostFs::here(), cpu)),
            tally: super::tally::Tally::new(options.nanoseconds, rows),
            missed: (!options.method.is_relative()).then_some(0),
            lost: 0,
            smis: options.smi.then_some(0),
            overdue: None,
        });
    }
    let until_start = Span(u64::try_from(start.since(punctual_sys::clock::now(options.method.clock())).0).unwrap_or(0));
    let after_start = |duration: Span| Span(until_start.ns() + longest.ns() + duration.ns());
    let ends = options.duration.map(|duration| punctual_sys::clock::monotonic().plus(after_start(duration)));
    let reducers = shown.iter().map(|_| Reducer::default()).collect();
    let mut engine = Engine {
        options,
        team,
        follows,
        shown,
        asked,
        trace,
        smis: machine::smi_counters(options)?,
        reducers,
        broke: None,
        ends,
        has_view: false,
        max_in_view: None,
    };
    engine.team.release(start);
    engine.measure(console)?;
    engine.finish(console)?;
    let clock_was_set = clock_at_start.zip(clock_offset(options)).map(|(before, after)| Nanos(after - before));
    Ok(RunResult {
        shown: engine.shown,
        broke: engine.broke.map(|(_, tid, value)| (tid, value)),
        // Smaller steps are below the accuracy of two successive readings.
        clock_was_set: clock_was_set.filter(|step| step.0.abs() > 1_000_000),
    })
}

/// Offset of the clock of the method from the monotonic one, ns; `None` if the clock cannot be set.
fn clock_offset(options: &Options) -> Option<i64> {
    let clock = options.method.clock();
    clock.can_be_set().then(|| punctual_host::offset_from_monotonic_ns(clock))
}

impl Engine<'_> {
    /// Runs until a stop condition is met.
    fn measure(&mut self, console: &mut Console<'_>) -> Result<(), Box<dyn Error>> {
        if self.shows_view() {
            self.view(console)?;
        }
        loop {
            self.team.listen(self.next_wake());
            self.drain(console)?;
            if self.asked.for_status() {
                self.count_smis()?;
                console.say(&text::snapshot(&self.shown, self.options.nanoseconds));
            }
            if self.asked.for_shared_memory() {
                console.say("SIGUSR2 is not supported; SIGUSR1 prints the status\n");
            }
            self.check_waits()?;
            if self.is_over() {
                return Ok(());
            }
            if self.shows_view() {
                self.view(console)?;
            }
        }
    }

    /// Ends the threads. A late thread gets a grace time, so that only a wait that hangs is reported as open.
    fn finish(&mut self, console: &mut Console<'_>) -> Result<(), Box<dyn Error>> {
        self.team.end_now();
        let last_moment = punctual_sys::clock::monotonic().plus(END_GRACE);
        loop {
            let before: Vec<_> = self.team.members.iter().map(|member| member.log.waits_for()).collect();
            self.drain(console)?;
            let now = punctual_sys::clock::now(self.options.method.clock());
            let late: Vec<_> = (self.follows.iter().zip(&self.team.members).zip(&before))
                .map(|((follow, member), before)| follow.overdue(member, *before, now))
                .collect();
            let is_broken = self.broke.is_some();
            if is_broken || late.iter().all(Option::is_none) || punctual_sys::clock::monotonic() >= last_moment {
                for (index, late) in late.into_iter().enumerate() {
                    let (Some(late), Some(follow), Some(shown)) =
                        (late, self.follows.get(index), self.shown.get_mut(index))
                    else {
                        continue;
                    };
                    let due = before.get(index).copied().flatten().unwrap_or(follow.first_due());
                    follow.leave_open(shown, due, late);
                }
                break;
            }
            self.team.listen(Duration::from_millis(1));
        }
        self.count_smis()?;
        if self.shows_view() {
            self.view(console)?;
        }
        Ok(())
    }

    /// Reads the SMI counters. Only on demand: a read interrupts the measured CPUs.
    fn count_smis(&mut self) -> Result<(), Box<dyn Error>> {
        for ((counter, at_start), shown) in self.smis.iter().zip(&mut self.shown) {
            let count = counter.count().map_err(|err| format!("--smi: {err}"))?;
            shown.smis = Some(count.saturating_sub(*at_start));
        }
        Ok(())
    }

    /// Drains the logs, prints values if requested, and checks them against the break threshold, which stops the trace.
    fn drain(&mut self, console: &mut Console<'_>) -> io::Result<()> {
        let mut values = String::new();
        let (options, broke) = (self.options, &mut self.broke);
        let was_broken = broke.is_some();
        let threads = self.follows.iter_mut().zip(&mut self.team.members).zip(&mut self.shown).zip(&mut self.reducers);
        for (index, (((follow, member), shown), reducer)) in threads.enumerate() {
            let tid = shown.tid;
            follow.drain(member, shown, |number, value, woke| {
                let is_above = options.break_above.is_some_and(|limit| value > limit.cast_signed());
                if is_above && broke.is_none_or(|(first, ..)| woke < first) {
                    *broke = Some((woke, tid, value));
                }
                if options.verbose
                    && let Some((cycle, value)) = reducer.take(options.reduce, number, value)
                {
                    values += &text::value(index, cycle, value);
                }
            });
        }
        if let Some((_, _, value)) = self.broke.filter(|_| !was_broken)
            && let Some(trace) = &mut self.trace
        {
            let limit = self.options.break_above.unwrap_or(0);
            if let Err(err) = trace.stop(&format!("hit latency threshold ({value} > {limit})")) {
                console.say(&format!("WARN: the trace was not stopped: {err}\n"));
            }
        }
        console.print(&values)
    }

    /// Returns an error if a thread's wait failed.
    fn check_waits(&self) -> Result<(), Box<dyn Error>> {
        for (index, member) in self.team.members.iter().enumerate() {
            if let Some(Err(errno)) = member.outcome.map(|outcome| outcome.result) {
                let source = io::Error::from_raw_os_error(errno);
                return Err(format!("thread {index}: {} failed: {source}", self.options.method).into());
            }
        }
        Ok(())
    }

    fn is_over(&self) -> bool {
        let mut threads = self.follows.iter().zip(&self.shown);
        self.asked.to_stop()
            || self.broke.is_some()
            || self.options.loops.is_some_and(|loops| self.shown.iter().any(|shown| shown.tally.cycles >= loops))
            || self.ends.is_some_and(|ends| punctual_sys::clock::monotonic() >= ends)
                && (threads.all(|(follow, shown)| follow.is_over(shown))
                    || self.ends.is_some_and(|ends| punctual_sys::clock::monotonic() >= ends.plus(END_GRACE))
                    || self.options.method.clock().can_be_set())
    }

    /// Time to sleep, unless the waker signals first.
    fn next_wake(&self) -> Duration {
        let tick = if self.shows_view() || self.options.verbose { VIEW_TICK } else { QUIET_TICK };
        let span = |ns: i64| Duration::from_nanos(u64::try_from(ns).unwrap_or(0));
        // A margin after the expected event, so that its sample is in the log.
        let margin = Duration::from_micros(500);
        let end = self.ends.map(|ends| span(ends.since(punctual_sys::clock::monotonic()).0) + margin);
        let now = punctual_sys::clock::now(self.options.method.clock());
        let counted = self.follows.iter().zip(&self.shown).filter_map(|(follow, shown)| follow.earliest_end(shown));
        let counted = counted.map(|due| span(due.since(now).0) + margin).min();
        [Some(tick), end, counted].into_iter().flatten().min().unwrap_or(tick)
    }

    /// Whether status lines are displayed during the run.
    fn shows_view(&self) -> bool {
        !self.options.quiet && !self.options.verbose
    }

    /// Draws the status lines over the previous ones.
    fn view(&mut self, console: &mut Console<'_>) -> io::Result<()> {
        let max = self.shown.iter().filter_map(|shown| shown.tally.max).max();
        if self.options.refresh_on_max && self.has_view && max <= self.max_in_view {
            return Ok(());
        }
        self.max_in_view = max;
        let mut view = if self.has_view { text::back_up(self.shown.len()) } else { String::new() };
        self.has_view = true;
        let load = punctual_host::load_average(&HostFs::here()).unwrap_or_else(|| "unknown".to_owned());
        view += &text::view(&self.shown, &load, self.options.nanoseconds);
        console.print(&view)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_each_so_many_values_the_largest_is_printed_with_its_cycle() {
        let mut reducer = Reducer::default();
        let printed: Vec<_> = [5, 9, 7, -3, -2, -9]
            .into_iter()
            .zip(0..)
            .filter_map(|(value, cycle)| reducer.take(3, cycle, value))
            .collect();
        assert_eq!(printed, [(1, 9), (4, -2)]);
        assert_eq!(reducer.take(1, 7, 3), Some((7, 3)));
    }
}
