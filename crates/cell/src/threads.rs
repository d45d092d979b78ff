//! Measuring with threads of this process, one for each CPU.

use super::collector::Collector;
use super::explainer::{self, Explainer};
use super::gaps::GapExplainer;
use super::measurers::{Measurement, Measurers, Window};
use super::observed::Observed;
use super::on_spike::OnSpike;
use super::steps::Steps;
use super::{CellError, link, prepared::Prepared};
use punctual_host::HostFs;
use punctual_model::{
    Achieved, Cell, Censored, ClockId, ClockTime, CobaltRecord, CpuSet, Ended, ExplainRecord, Explanation, Handoff,
    Link, Method, MonoTime, Nanos, NoiseRecord, OnSpikeRecord, Schedule, SettingChange, Span, SwitchReason, Task,
    ThreadProgress, ThreadRecord, WakerCpu,
};
use punctual_rt::{CobaltOutcome, LinkEnd, Logger, Member, NoiseOutcome, Settings, Team, ThreadSpec};
use punctual_store::SampleWriter;
use punctual_sys::cobalt::ThreadCounters;
use punctual_sys::counter::Counter;
use punctual_sys::guest_ports::MOVABLE_VARIABLE;
use punctual_workload::link::{Fate, LinkMonitor};
use std::ops::Range;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// The threads, and their samples.
#[derive(Debug)]
pub(super) struct Threads {
    cell: Cell,
    team: Team,
    /// The link, where answers over a link are measured.
    link: Option<LinkMonitor>,
    /// The explainer of late wake-ups, if requested.
    explainer: Option<Explainer>,
    /// The explainer of the gaps of threads that never wait, if requested.
    gaps: Option<GapExplainer>,
    /// The command that runs when a late wake-up has stopped the cell, where nothing is explained.
    on_spike: Option<OnSpike>,
    collectors: Vec<Collector>,
    /// Settings of the threads, once a second.
    observed: Vec<Observed>,
    memory_locked_bytes: u64,
    cpu_dma_latency_us: Option<u32>,
    /// The counter that a loop without waits reads.
    counter: Counter,
    steps: Steps,
    /// The due times of the first thread.
    schedule: Schedule,
    window: Window,
}

/// Most samples in a log: 4 MiB. At a period of 10 us that is 2.6 s, and the log is emptied once a second.
const MAX_LOG_CAPACITY: u64 = 1 << 18;
/// Time from opening the barrier to the first due time: long enough for every thread to get there and to arm a timer.
const LEAD: Span = Span(2_000_000);

/// Extra lead where a logger measures itself first: some hundred exchanges.
const EXCHANGE_LEAD: Span = Span(50_000_000);

impl Threads {
    /// Sets the threads up, and leaves them at the barrier. `timers` are the devices that one of them answers. Errors:
    /// when memory cannot be locked, or a thread's settings are refused or not kept.
    pub(super) fn arm(prepared: &Prepared, timers: Option<LinkEnd>) -> Result<Threads, CellError> {
        let cell = prepared.cell.clone();
        punctual_sys::memory::use_one_arena();
        if cell.lock_memory {
            let advice = "lock memory (raise `ulimit -l`, or run as root)";
            punctual_sys::memory::lock_all().map_err(|err| CellError::setting(advice, err))?;
        }
        // A thread that answers over a link has no due times of its own: the method is not used.
        let method = cell.task.method().unwrap_or(Method::CLOCK_NANOSLEEP);
        let stop_above = cell.conditions.stop_above.and_then(|above| i64::try_from(above.ns()).ok());
        let stop_above = Nanos(stop_above.unwrap_or(i64::MAX));
        // The first thread has the shortest period.
        let cycles = cell.end_cycle() - cell.first_cycle();
        let room = usize::try_from(cycles.min(MAX_LOG_CAPACITY)).unwrap_or(usize::MAX);
        let asked = |is_noise: bool| cell.conditions.explain.clone().filter(|_| cell.task.is_noise() == is_noise);
        let of = (&cell.kernel, &prepared.host);
        let mut explainer = asked(false).map(|asked| Explainer::create(asked, of.0, of.1)).transpose()?;
        let mut gaps = asked(true).map(|asked| GapExplainer::create(asked, of.0, of.1)).transpose()?;
        let others = prepared.allowed.minus(&cell.cpus);
        let mut on_spike = cell.conditions.on_spike.clone().and_then(|command| OnSpike::new(command, &others));
        if let Some(explainer) = &mut explainer {
            explainer.set_command(on_spike.take());
        }
        let watch = explainer.as_ref().map(Explainer::watch).or(gaps.as_ref().map(GapExplainer::watch));
        let (end, link) = link::end_of(&cell)?;
        let end = timers.or(end);
        let counter = Counter::best(prepared.host.clock_source.as_deref());
        let team = Team::spawn(threads(&cell, (method, counter), &prepared.allowed, end)?, stop_above, room, watch)?;
        let tids: Vec<u32> = team.members.iter().map(|member| member.tid).collect();
        explainer.as_mut().map_or(Ok(()), |explainer| explainer.enable(&tids))?;
        gaps.as_mut().map_or(Ok(()), |gaps| gaps.enable(&tids))?;

        let memory_locked_bytes = punctual_host::memory_locked_bytes_of(std::process::id()).unwrap_or(0);
        if cell.lock_memory && memory_locked_bytes == 0 {
            let found = "cannot lock memory: the kernel reports none locked (VmLck)";
            return Err(CellError::Setting(found.to_owned()));
        }
        Ok(Threads {
            team,
            link,
            explainer,
            gaps,
            on_spike,
            collectors: Vec::new(),
            observed: Vec::new(),
            memory_locked_bytes,
            cpu_dma_latency_us: prepared.dma_latency.as_ref().map(|(_, us)| *us),
            counter,
            steps: Steps::watch(cell.task.clock()),
            schedule: Schedule { first_due: ClockTime(0), period: cell.period },
            window: Window { started: MonoTime(0), ends: MonoTime(0) },
            cell,
        })
    }

    /// Whether a wake-up later than allowed has stopped the cell.
    fn is_stopped(&self) -> bool {
        self.cell.conditions.stop_above.is_some() && self.team.is_stopped()
    }

    /// Runs the command with the wake-up that has stopped the cell, if there is one.
    fn told<'a>(&self, mut on_spike: OnSpike, measurement: &'a Measurement) -> OnSpikeRecord {
        let worst = |thread: &'a ThreadRecord| Some((thread, *thread.worst.first()?));
        let latest = measurement.threads.iter().filter_map(worst).max_by_key(|(.., worst)| worst.latency_ns);
        if let Some((thread, worst)) = latest.filter(|_| self.is_stopped()) {
            let since_first = thread.period_in(&self.cell).ns().saturating_mul(worst.cycle);
            let due_ns = since_first.saturating_add(thread.offset.ns());
            on_spike.start_for(&Explanation {
                cpu: thread.cpu,
                cycle: i64::try_from(worst.cycle).unwrap_or(i64::MAX),
                due_ns: i64::try_from(due_ns).unwrap_or(i64::MAX),
                latency: Span(u64::try_from(worst.latency_ns).unwrap_or(0)),
                ..Explanation::default()
            });
        }
        on_spike.finish()
    }

    /// Explains late wake-ups from now on, if requested.
    fn follow(&mut self) {
        let first_due = self.schedule.first_due;
        let measured = |member: &mut Member| {
            let late = member.late.take()?;
            let measured = explainer::MeasuredThread {
                cpu: member.spec.cpu,
                tid: member.tid,
                policy: member.policy,
                slack: member.timer_slack,
                schedule: schedule_of(member, first_due),
                cycles: member.spec.cycles.clone(),
            };
            Some((measured, late))
        };
        let measured: Vec<_> = self.team.members.iter_mut().filter_map(measured).collect();
        match (&mut self.explainer, &mut self.gaps) {
            (Some(explainer), _) => explainer.follow(&self.cell.task, self.window.started, measured),
            (None, Some(gaps)) => gaps.follow(self.window.started, measured),
            (None, None) => {}
        }
    }

    /// Chooses the due times from now on, and begins the tables for them.
    fn choose_due_times(&mut self) {
        let cell = &self.cell;
        let (mono, now) = (punctual_sys::clock::monotonic(), self.now());
        // Two readings of one clock would differ by the time between them.
        let mono = if cell.task.clock() == ClockId::Monotonic { MonoTime(now.0) } else { mono };
        self.schedule.first_due = first_due(now, lead_of(cell), cell.conditions.align);
        let due = |index| MonoTime(mono.0.wrapping_add_signed(self.schedule.cycle(index).due.since(now).0));
        let end = |member: &Member| {
            let after = schedule_of(member, self.schedule.first_due).cycle(member.spec.cycles.end);
            MonoTime(mono.0.wrapping_add_signed(after.due.since(now).0))
        };
        let started = due(cell.first_cycle());
        self.window = Window { started, ends: self.team.members.iter().map(end).max().unwrap_or(started) };
        let collector = |member: &Member| Collector::of_thread(cell, schedule_of(member, self.schedule.first_due));
        self.collectors = self.team.members.iter().map(collector).collect();
    }

    /// Sets the spike threshold where the cell has none: twice the p99 of the worst CPU.
    fn find_threshold(&self) {
        let Some(explainer) = self.explainer.as_ref().filter(|explainer| explainer.needs_threshold()) else { return };
        let known: Option<Vec<i64>> = self.collectors.iter().map(Collector::spike_above_ns).collect();
        let above = known.and_then(|above| above.into_iter().max()).and_then(|ns| u64::try_from(ns).ok());
        if let Some(above) = above {
            explainer.set_threshold(Span(above));
        }
    }

    fn now(&self) -> ClockTime {
        punctual_sys::clock::now(self.cell.task.clock())
    }

    /// The number of due times of `member` before `now`.
    fn cycles_before(&self, member: &Member, now: ClockTime) -> u64 {
        schedule_of(member, self.schedule.first_due).cycles_before(now)
    }

    fn thread(
        &self,
        member: &mut Member,
        mut collector: Collector,
        changes: Vec<SettingChange>,
        cut: ClockTime,
        link: &mut Option<LinkMonitor>,
        samples: &mut Option<SampleWriter>,
    ) -> Result<ThreadRecord, CellError> {
        let failed = |errno| match link {
            Some(link) if errno == libc::ETIMEDOUT => CellError::Silent(link.fell_silent(self.cell.period)),
            _ => CellError::Wait {
                cpu: member.spec.cpu,
                task: self.cell.task.to_string(),
                source: std::io::Error::from_raw_os_error(errno),
            },
        };
        let ended = member.outcome.map(|outcome| outcome.result).transpose().map_err(failed)?;
        // Read before and after draining: the thread may have woken and logged its sample since waiting was given up.
        let waits_for = member.log.waits_for();
        drain(member, &mut collector, link, true, samples);
        // After a clock was set back, later due times lie in the future: they are outside this window.
        let seen = collector.last_cycle.map_or(0, |last| last + 1);
        // A stopped cell ends with its last wake-up; due times after it were not to be measured.
        let is_over = if self.is_stopped() { seen } else { self.cycles_before(member, cut).max(seen) };
        collector.end_before(is_over);
        let is_waiting = ended.is_none() && member.log.waits_for() == waits_for;
        let open = if is_waiting { self.open_wait(member, waits_for, cut, collector.end()) } else { None };
        let censored = open
            .filter(|(index, _)| collector.last_cycle < Some(*index))
            .map(|(_, wait)| collector.open_in_window(wait));
        let worst = collector.finish(censored);

        let first = member.spec.cycles.start;
        let (recorded, lost) = (collector.histogram.n, member.log.lost());
        let open_cycles = u64::from(censored.is_some_and(|wait| wait.cycle >= 0));
        // A thread that never waits has gaps, and nothing else is due.
        let cycles_due = match self.cell.task.is_noise() {
            true => recorded + lost + open_cycles,
            false => cycles_due(first..collector.end(), recorded, lost),
        };
        if let Some(link) = link.as_ref().filter(|_| ended.is_none()) {
            // The length of the wait is unknown for those still on their way when the thread cannot be waited for.
            let sent = link.counts().triggers.load(Relaxed).min(cycles_due);
            collector.take_unknown(sent.saturating_sub(recorded + lost + open_cycles + collector.never_answered()));
        }
        let accounted = recorded + lost + open_cycles + collector.never_answered();
        // Due times without a sample, without a loss, without an unanswered trigger, and not the open wait.
        let without = cycles_due.checked_sub(accounted).ok_or(CellError::Unaccounted {
            cpu: member.spec.cpu,
            cycles_due,
            accounted,
        })?;
        let passed_over = ended.map_or(0, |ended| ended.passed_over).min(without);
        let missed = without - passed_over;
        let period = member.spec.settings.period;
        let outcome = member.outcome.filter(|outcome| outcome.counts_overruns);
        Ok(ThreadRecord {
            cpu: member.spec.cpu,
            period: Some(period).filter(|period| *period != self.cell.period),
            stretch: collector.stretch,
            offset: Span(member.spec.phase.ns().saturating_add(self.cell.lead_of(period).ns())),
            origin_uncertainty: ended.map(|ended| ended.origin_uncertainty).filter(|span| *span > Span(0)),
            timer_overruns: outcome.and(ended).map(|ended| ended.overruns),
            achieved: Achieved {
                policy: member.policy,
                cpus: member.cpus.clone(),
                changes,
                timer_slack_ns: member.timer_slack.ns(),
                memory_locked_bytes: self.memory_locked_bytes,
                cpu_dma_latency_us: self.cpu_dma_latency_us,
            },
            cycles_due,
            recorded,
            missed,
            lost,
            passed_over,
            early: collector.early,
            censored,
            histogram: collector.histogram,
            seconds: collector.seconds,
            slices: collector.slices,
            unanswered: self.cell.task.link().map(|_| collector.unanswered),
            worst,
            episodes: collector.episodes,
            usage: member.outcome.and_then(|outcome| outcome.usage),
            cobalt: member.outcome.and_then(|outcome| outcome.cobalt).map(cobalt_record),
            noise: member.outcome.and_then(|outcome| outcome.noise).map(|noise| self.noise_record(noise)),
        })
    }

    fn noise_record(&self, counts: NoiseOutcome) -> NoiseRecord {
        let NoiseOutcome { threshold, reading_ps, readings, gaps, lost, observed } = counts;
        let counter = self.counter.name().to_owned();
        NoiseRecord { counter, threshold, reading_ps, readings, gaps, lost, observed }
    }

    /// The wait that was still open when waiting was given up at `cut`, if it was due before `end`; with its cycle.
    fn open_wait(&self, member: &Member, due: Option<ClockTime>, cut: ClockTime, end: u64) -> Option<(u64, Censored)> {
        let schedule = schedule_of(member, self.schedule.first_due);
        // A thread that never passed the barrier waits for its first cycle.
        let cycle = schedule.containing(due.unwrap_or(schedule.first_due));
        let is_open = cycle.index < end && cycle.due < cut;
        let index = cycle.index.cast_signed().wrapping_sub_unsigned(member.spec.cycles.start);
        is_open.then(|| (cycle.index, Censored { cycle: index, at_least_ns: cut.0 - cycle.due.0 }))
    }
}

fn cobalt_record(outcome: CobaltOutcome) -> CobaltRecord {
    let ThreadCounters { mode_switches, context_switches, system_calls, page_faults, .. } = outcome.counters;
    let reason = outcome.reason.map(SwitchReason::of_number);
    CobaltRecord { mode_switches, context_switches, system_calls, page_faults: page_faults.into(), reason }
}

/// Due times of a thread with `cycles`, which end with the last sample in the log where the cell was stopped: lost
/// samples may be of later ones.
fn cycles_due(cycles: Range<u64>, recorded: u64, lost: u64) -> u64 {
    let due = cycles.end.saturating_sub(cycles.start);
    if lost > 0 { due.max(recorded + lost) } else { due }
}

/// The due times of a thread, where those of the team begin at `first_due`.
fn schedule_of(member: &Member, first_due: ClockTime) -> Schedule {
    Schedule { first_due: first_due.plus(member.spec.phase), period: member.spec.settings.period }
}

/// One thread for each CPU of the cell; the first one has the link.
fn threads(
    cell: &Cell,
    (method, counter): (Method, Counter),
    allowed: &CpuSet,
    mut link: Option<LinkEnd>,
) -> Result<Vec<ThreadSpec>, CellError> {
    let distance = cell.conditions.distance.unwrap_or_default().ns();
    let phases = (0..).map(|n: u64| Span(n.saturating_mul(distance) % cell.period.ns()));
    let cpus = |cpu| if cell.policy.can_be_pinned() { [cpu].into_iter().collect() } else { allowed.clone() };
    let movable = std::env::var(MOVABLE_VARIABLE).ok().and_then(|cycle| cycle.parse().ok());
    let spec = |((n, cpu), phase)| {
        let period = cell.period_of(n);
        let timer_slack = cell.conditions.timer_slack;
        let method = on_a_cpu(method, cpu, allowed)?;
        let settings = Settings { policy: cell.policy, timer_slack, method, period, counter, movable };
        Ok(ThreadSpec { cpu, cpus: cpus(cpu), settings, phase, cycles: cell.cycles_of(period), link: link.take() })
    };
    cell.cpus.iter().enumerate().zip(phases).map(spec).collect()
}

/// The method with the CPU of its waker, where that is a place. Errors: there is none that this process may use.
fn on_a_cpu(method: Method, cpu: u32, allowed: &CpuSet) -> Result<Method, CellError> {
    let Method::Handoff(Handoff { cpu: Some(WakerCpu::At(place)), kind, policy }) = method else { return Ok(method) };
    let there = punctual_host::cpus_at(&HostFs::here(), cpu, place);
    let waker = there.iter().find(|cpu| allowed.contains(*cpu)).map(WakerCpu::Cpu).ok_or_else(|| {
        CellError::Impossible(format!(
            "method {method} needs a CPU at `{place}` seen from CPU {cpu}, and this process may use none; leave it out"
        ))
    })?;
    Ok(Method::Handoff(Handoff { kind, cpu: Some(waker), policy }))
}

/// Drains the log of `member` into its tables, and its measured samples into `samples`. Answers over a link are taken
/// as far as their order is settled, or all when it `is_over`.
fn drain(
    member: &mut Member,
    collector: &mut Collector,
    link: &mut Option<LinkMonitor>,
    is_over: bool,
    samples: &mut Option<SampleWriter>,
) {
    let mut rows = samples.as_mut().map(|samples| samples.rows(member.spec.cpu));
    let mut take = |fate| match fate {
        Fate::Answered(sample) => {
            if let (Some((cycle, latency_ns)), Some(rows)) = (collector.take(sample), &mut rows) {
                rows.push(cycle, latency_ns);
            }
        }
        Fate::Never(sample) => collector.take_unanswered(sample),
    };
    match link {
        // A cell with a link has one thread.
        Some(link) => link.fates(&mut member.log, is_over, take),
        None => member.log.drain(|sample| take(Fate::Answered(sample))),
    }
}

/// The first due time: at least `lead` after `now`, and aligned as `align` requires.
fn first_due(now: ClockTime, lead: Span, align: Option<Span>) -> ClockTime {
    let soonest = now.plus(lead).0;
    let Some(offset) = align else { return ClockTime(soonest) };
    let second = soonest.saturating_sub(offset.ns()).next_multiple_of(Span::SECOND.ns());
    ClockTime(second + offset.ns())
}

/// Time from the release until the first due time.
fn lead_of(cell: &Cell) -> Span {
    let ready = match cell.task {
        // A deadline thread sleeps until one period before its first due time, and must be past its last deadline
        // then.
        Task::Cyclic(Method::Deadline) => Span(2 * cell.period.ns()),
        // The first device expires this long after its start.
        Task::Response(link) if link.is_timers() => Link::DEVICE_DELAY,
        // The logger measures itself first.
        Task::Response(_) => EXCHANGE_LEAD,
        _ => Span(0),
    };
    Span(LEAD.ns() + ready.ns())
}

impl Measurers for Threads {
    fn release(&mut self) -> Result<Window, CellError> {
        // On a busy machine this takes long; due times that passed meanwhile would be missed.
        self.explainer.as_mut().map_or(Ok(()), |explainer| explainer.begin(&self.cell.cpus))?;
        self.gaps.as_mut().map_or(Ok(()), |gaps| gaps.begin(&self.cell.cpus))?;
        let observed = |member: &Member| Observed {
            policy: Some(member.policy),
            cpus: Some(member.cpus.clone()),
            changes: Vec::new(),
        };
        self.observed = self.team.members.iter().map(observed).collect();
        self.choose_due_times();
        while self.now() >= self.schedule.cycle(self.cell.first_cycle()).due {
            self.choose_due_times();
        }
        // Where this thread loses its CPU until the first due time has passed, that wake-up is late and shows so.
        if self.explainer.is_some() {
            self.follow();
        }
        self.team.release(self.schedule.first_due);
        // Their gaps so far are in the log and in the trace.
        if self.gaps.is_some() {
            self.follow();
        }
        Ok(self.window)
    }

    fn wait(&mut self, timeout: Duration) -> bool {
        self.team.wait(timeout)
    }

    fn lingers(&self) -> Span {
        // Twice: at the last due time it may still wait for an answer that cannot be distinguished from the next one.
        self.link.as_ref().map_or(Span(0), |_| Span(2 * Logger::LATE_ANSWER_TIMEOUT.ns()))
    }

    fn stop(&mut self) {
        // Before the logs are emptied, so that the tables contain nothing later. A loop that never waits counts its
        // gaps until it ends, so its tables do, too.
        let now = self.now();
        let ends: Vec<u64> = self.team.members.iter().map(|member| self.cycles_before(member, now)).collect();
        punctual_sys::fail::point("end-known");
        self.team.end_before(ends.iter().copied());
        for (collector, end) in self.collectors.iter_mut().zip(ends).filter(|_| !self.cell.task.is_noise()) {
            collector.end_before(end.max(collector.last_cycle.map_or(0, |last| last + 1)));
        }
    }

    fn collect(&mut self, samples: &mut Option<SampleWriter>) -> Result<(), CellError> {
        for (member, collector) in self.team.members.iter_mut().zip(&mut self.collectors) {
            collector.watch_for_spikes();
            drain(member, collector, &mut self.link, false, samples);
        }
        let at = Span(punctual_sys::clock::monotonic().0.saturating_sub(self.window.started.0));
        // One that has ended has no settings.
        for (member, observed) in self.team.members.iter().zip(&mut self.observed) {
            let (policy, cpus) =
                (punctual_sys::sched::known_policy(member.tid), punctual_sys::sched::affinity(member.tid).ok());
            observed.look(policy, cpus, at);
        }
        self.link.iter_mut().for_each(LinkMonitor::collect);
        self.steps.look(self.window.started);
        self.find_threshold();
        Ok(samples.as_mut().map_or(Ok(()), SampleWriter::write_full)?)
    }

    fn thread_ids(&self) -> Vec<u32> {
        self.team.members.iter().map(|member| member.tid).collect()
    }

    fn progress(&self) -> Vec<ThreadProgress> {
        let progress = |(member, collector): (&Member, &Collector)| collector.progress(member.spec.cpu);
        self.team.members.iter().zip(&self.collectors).map(progress).collect()
    }

    fn finish(&mut self, samples: &mut Option<SampleWriter>) -> Result<Measurement, CellError> {
        let cut = self.now();
        self.steps.look(self.window.started);
        let collectors = std::mem::take(&mut self.collectors);
        let mut members = std::mem::take(&mut self.team.members);
        let mut link = self.link.take();
        let changes: Vec<_> = std::mem::take(&mut self.observed).into_iter().map(|observed| observed.changes).collect();
        let until_now = Span(punctual_sys::clock::monotonic().0.saturating_sub(self.window.started.0));
        let measured = |collector: &Collector| Span(collector.end().saturating_mul(self.cell.period.ns()));
        let longest = collectors.iter().map(|one| measured(one).min(until_now)).max().filter(|one| *one > Span(0));
        let thread = |((member, collector), changes)| self.thread(member, collector, changes, cut, &mut link, samples);
        let threads = members.iter_mut().zip(collectors).zip(changes).map(thread).collect::<Result<Vec<_>, _>>()?;
        self.link = link;
        let observed = threads.iter().filter_map(|thread| Some(thread.noise.as_ref()?.observed)).max();
        let measurement = match longest.filter(|_| self.cell.task.is_noise()) {
            Some(window) => {
                let measured = observed.map_or(window, |observed| observed.min(window));
                Measurement::of_threads(self.window.started, measured, Ended::Completed, threads)
            }
            None => Measurement::of(self.window.started, &self.cell, threads)?,
        };
        let ended = if self.is_stopped() { Ended::Stopped } else { measurement.ended };
        let (explained, told) = self.explainer.as_mut().and_then(Explainer::finish).unzip();
        let above = || measurement.threads.iter().filter_map(|thread| Some(thread.noise.as_ref()?.threshold)).max();
        let gaps = self.gaps.as_mut().and_then(GapExplainer::finish);
        let explained = gaps.map(|gaps| ExplainRecord { above: above(), above_at_end: above(), ..gaps }).or(explained);
        let on_spike = self.on_spike.take().map(|on_spike| self.told(on_spike, &measurement)).or(told.flatten());
        self.link.iter_mut().for_each(LinkMonitor::collect);
        let response = self.link.as_ref().map(LinkMonitor::record);
        Ok(Measurement { clock_steps: self.steps.take_all(), response, explained, on_spike, ended, ..measurement })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_thread_has_two_periods_more_until_its_first_due_time() {
        let of = |task: &str| {
            let (task, period) = (task.parse().unwrap(), "10ms".parse().unwrap());
            lead_of(&Cell { task, period, ..punctual_analysis::testing::cell("none", "other") })
        };
        assert_eq!((of("timerfd"), of("deadline")), (LEAD, Span(LEAD.ns() + 20_000_000)));
    }

    #[test]
    fn lost_samples_were_due_also_after_the_last_in_the_log() {
        for (cycles, recorded, lost, due) in
            [(5..9, 4, 0, 4), (5..9, 2, 0, 4), (5..9, 2, 2, 4), (5..9, 4, 1, 5), (5..9, 4, 7, 11), (5..9, 5, 0, 4)]
        {
            assert_eq!(cycles_due(cycles, recorded, lost), due, "{recorded} {lost}");
        }
    }

    #[test]
    fn an_aligned_cell_begins_after_a_full_second_and_not_too_soon() {
        let due = |now, align: Option<u64>| first_due(ClockTime(now), Span(2), align.map(Span)).0;
        assert_eq!(due(5, None), 7);
        assert_eq!(due(999_999_998, Some(0)), 1_000_000_000);
        assert_eq!(due(999_999_999, Some(0)), 2_000_000_000);
        assert_eq!(due(1_000_000_000, Some(250_000_000)), 1_250_000_000);
        assert_eq!(due(1_249_999_999, Some(250_000_000)), 2_250_000_000);
        assert_eq!(due(0, Some(999_999_999)), 999_999_999);
    }
}
