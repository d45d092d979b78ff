//! All measured threads of one cell: set up, held at the gate, released together.
#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    reason = "runs before the barrier or after the last cycle"
)]

use crate::cyclic::{Ends, Limits};
use crate::gate::Gate;
use crate::log::{LogReader, LogWriter, sample_log};
use crate::methods::{CobaltOutcome, NoiseOutcome};
use crate::{LateReader, LinkEnd, LoopResult, RtSection, SettingError, Settings, SpikeWatch, Watcher};
use punctual_model::{ClockTime, CpuSet, Nanos, Policy, Schedule, Span, Usage};
use punctual_sys::signal;
use punctual_sys::waited::Waited;
use std::ops::Range;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{Builder, Thread};
use std::time::{Duration, Instant};

/// Stack of a measured thread, bytes. Small, because all of it is locked into memory.
const STACK_BYTES: usize = 128 * 1024;

/// Timeout of a thread's setup, after which the cell is canceled.
const SETUP_TIMEOUT: Duration = Duration::from_secs(10);
const LOOK_INTERVAL: Duration = Duration::from_millis(10);

/// An error in the setup of the measured threads of a cell.
#[derive(Debug, thiserror::Error)]
pub enum TeamError {
    /// A setting of a thread failed.
    #[error("CPU {cpu}: {source}")]
    Setting {
        /// The CPU of the thread.
        cpu: u32,
        /// The setting and the reason.
        source: SettingError,
    },
    /// A thread could not be created.
    #[error("cannot create a thread for CPU {cpu}: {source}; see `ulimit -u`")]
    Spawn {
        /// The CPU of the thread.
        cpu: u32,
        /// The kernel's reason.
        source: std::io::Error,
    },
    /// A thread did not get the CPU time to set itself up.
    #[error("timeout: the thread for CPU {0} got no CPU time in 10 s; stop what keeps the CPUs busy")]
    Starved(u32),
}

impl TeamError {
    /// The policy that was refused for lack of rights (EPERM).
    pub fn refused_policy(&self) -> Option<Policy> {
        match self {
            TeamError::Setting { source: SettingError::PolicyPrivilege(policy), .. } => Some(*policy),
            _ => None,
        }
    }
}

/// The specification of one thread.
#[derive(Debug)]
pub struct ThreadSpec {
    /// The CPU of the thread, which is part of its name.
    pub cpu: u32,
    /// The CPUs that it may use.
    pub cpus: CpuSet,
    /// Policy, timer slack, method and period.
    pub settings: Settings,
    /// Offset of its due times from those of the others.
    pub phase: Span,
    /// The cycles that are recorded; those before them are warm-up, which runs and leaves no sample.
    pub cycles: Range<u64>,
    /// Its link end, where a response is measured; the thread takes it.
    pub link: Option<LinkEnd>,
}

/// The result of a thread at its end.
#[derive(Debug, Clone, Copy)]
pub struct Outcome {
    /// Resource usage between the barrier and the end; `None` when it cannot be read.
    pub usage: Option<Usage>,
    /// Results besides the samples, or the errno that ended the thread early.
    pub result: Result<LoopResult, i32>,
    /// Whether the kernel counts overruns for its method.
    pub counts_overruns: bool,
    /// What Cobalt counted, where it schedules the thread.
    pub cobalt: Option<CobaltOutcome>,
    /// What a loop without waits counted.
    pub noise: Option<NoiseOutcome>,
}

/// One measured thread, waiting at the gate or measuring.
#[derive(Debug)]
pub struct Member {
    /// The specification that it was made from.
    pub spec: ThreadSpec,
    /// Thread id, gettid(2).
    pub tid: u32,
    /// Policy, read back.
    pub policy: Policy,
    /// CPUs, read back.
    pub cpus: CpuSet,
    /// Timer slack, read back.
    pub timer_slack: Span,
    /// Samples.
    pub log: LogReader,
    /// Late wake-ups, where they are watched.
    pub late: Option<LateReader>,
    /// Set when the thread has ended.
    pub outcome: Option<Outcome>,
}

/// All measured threads of one cell.
#[derive(Debug)]
pub struct Team {
    /// One thread for each spec, in their order.
    pub members: Vec<Member>,
    threads: Vec<Thread>,
    gate: Arc<Gate>,
    ends: Ends,
    events_rx: Receiver<Event>,
    events_tx: Sender<Event>,
}

/// An event of a team: a member has ended; `None`: [`Waker::wake`].
type Event = Option<(usize, Outcome)>;

/// Wakes the thread that waits for a team.
#[derive(Debug, Clone)]
pub struct Waker(Sender<Event>);

impl Waker {
    /// Ends one [`Team::listen`], the present or the next.
    pub fn wake(&self) {
        // An error means that the team is gone, and nothing waits.
        let _ = self.0.send(None);
    }
}

/// What a thread reports of its setup: its id, its timer slack, and the id of its waker, if it has one.
type Ready = (u32, Span, Option<u32>);

/// The start parameters of one thread.
struct Start {
    index: usize,
    settings: Settings,
    phase: Span,
    link: Option<LinkEnd>,
    log: LogWriter,
    watcher: Option<Watcher>,
    gate: Arc<Gate>,
    limits: Limits,
    ready: Sender<Result<Ready, SettingError>>,
    events_tx: Sender<Event>,
}

impl Start {
    /// The whole life of a measured thread. A send without a receiver means that the cell was canceled.
    fn live(mut self) {
        let (wait, ready) = match self.settings.apply(self.link.take()) {
            Ok((wait, slack)) => {
                let ready = (punctual_sys::thread::id(), slack, wait.waker());
                (Some(wait), Ok(ready))
            }
            Err(err) => (None, Err(err)),
        };
        let _ = self.ready.send(ready);
        let Some((first_due, wait)) = self.gate.pass().zip(wait) else { return };
        let schedule = Schedule { first_due: first_due.plus(self.phase), period: self.settings.period };
        let before = punctual_sys::usage::thread();
        let (result, allocations) =
            RtSection::enter(|rt| wait.run(rt, &schedule, &self.limits, &mut self.log, &mut self.watcher));
        let usage = before.ok().zip(punctual_sys::usage::thread().ok());
        let usage = usage.map(|(before, after)| Usage { allocations, ..punctual_sys::usage::since(&before, &after) });
        let (counts_overruns, cobalt, noise) = (wait.counts_overruns(), wait.cobalt(), wait.noise());
        // The method's kernel objects go first: the end of this thread may start the next one.
        drop(wait);
        let _ = self.events_tx.send(Some((self.index, Outcome { usage, result, counts_overruns, cobalt, noise })));
    }
}

impl Team {
    /// Makes one thread for each spec, sets it up, reads its settings back, and leaves it at the gate.
    ///
    /// A latency above `stop_above` ends the cell for all of them. `room` is the number of samples that each log holds;
    /// `watch` receives late wake-ups. The signals that methods
    /// wait for are blocked in the calling thread, so that they are delivered to the waiting one. Errors: when a thread
    /// cannot be created, or one of its settings is refused or not kept; the threads made so far end.
    pub fn spawn(
        specs: Vec<ThreadSpec>,
        stop_above: Nanos,
        room: usize,
        watch: Option<&Arc<SpikeWatch>>,
    ) -> Result<Team, TeamError> {
        for signal in [signal::ALARM, signal::of_timers()] {
            signal::SignalSet::new(signal).block().map_err(|source| TeamError::Setting {
                cpu: specs.first().map_or(0, |spec| spec.cpu),
                source: SettingError::refused("the signal mask")(source),
            })?;
        }
        let (events_tx, events_rx) = channel();
        let (gate, ends) = (Arc::new(Gate::default()), Ends::of(specs.iter().map(|spec| &spec.cycles)));
        let mut team = Team { members: Vec::new(), threads: Vec::new(), gate, ends, events_rx, events_tx };
        for (index, mut spec) in specs.into_iter().enumerate() {
            let (cpu, settings, phase, link) = (spec.cpu, spec.settings, spec.phase, spec.link.take());
            let (log, reader) = sample_log(room);
            let (watcher, late) = watch.map(SpikeWatch::watcher).unzip();
            let (ready, is_ready) = channel();
            let (gate, events_tx) = (Arc::clone(&team.gate), team.events_tx.clone());
            let limits = team.ends.limits(index, spec.cycles.start, stop_above);
            let start = Start { index, settings, phase, link, log, watcher, gate, limits, ready, events_tx };
            let thread = Builder::new().name(format!("measured/{cpu}")).stack_size(STACK_BYTES);
            let handle = thread.spawn(move || start.live()).map_err(|source| TeamError::Spawn { cpu, source })?;
            team.threads.push(handle.thread().clone());
            let setting = |source| TeamError::Setting { cpu, source };
            let (tid, timer_slack, waker) =
                report(|time| is_ready.recv_timeout(time)).ok_or(TeamError::Starved(cpu))?.map_err(setting)?;
            // From outside: a thread that pins itself to a busy CPU, or gives itself a policy that runs only on an idle
            // one, might never report.
            let (policy, cpus) = settings.place(tid, &spec.cpus).map_err(setting)?;
            waker.map_or(Ok(()), |waker| settings.place_waker(waker, &spec.cpus)).map_err(setting)?;
            team.members.push(Member { spec, tid, policy, cpus, timer_slack, log: reader, late, outcome: None });
        }
        Ok(team)
    }

    /// Opens the gate: cycle 0 of every thread is due at `first_due` plus its phase, on the clock of its method.
    pub fn release(&self, first_due: ClockTime) {
        self.gate.open(first_due, self.threads.iter());
    }

    /// Ends each thread before its cycle in `ends`, unless it ends earlier.
    pub fn end_before(&self, ends: impl Iterator<Item = u64>) {
        self.ends.lower(ends);
    }

    /// Ends all threads now.
    pub fn end_now(&self) {
        self.ends.end_all();
    }

    /// Whether a late wake-up, or [`Team::end_now`], has ended the cell for all threads.
    pub fn is_stopped(&self) -> bool {
        self.ends.all_have_ended()
    }

    /// Waits until every thread has ended. Returns `false` after `timeout`.
    pub fn wait(&mut self, timeout: Duration) -> bool {
        let until = Instant::now() + timeout;
        while self.members.iter().any(|member| member.outcome.is_none()) {
            if !self.listen(until.saturating_duration_since(Instant::now())) {
                return false;
            }
        }
        true
    }

    /// Waits until one thread has ended or [`Waker::wake`] is called. Returns `false` after `timeout`.
    pub fn listen(&mut self, timeout: Duration) -> bool {
        let Ok(event) = self.events_rx.recv_timeout(timeout) else { return false };
        if let Some((index, outcome)) = event
            && let Some(member) = self.members.get_mut(index)
        {
            member.outcome = Some(outcome);
        }
        true
    }

    /// A handle that wakes the thread waiting for this team.
    pub fn waker(&self) -> Waker {
        Waker(self.events_tx.clone())
    }
}

/// What a thread reports of its setup; `None` after the timeout.
fn report<T>(mut next: impl FnMut(Duration) -> Result<T, RecvTimeoutError>) -> Option<T> {
    let mut waited = Waited::every(LOOK_INTERVAL);
    loop {
        match next(LOOK_INTERVAL) {
            Ok(report) => return Some(report),
            Err(RecvTimeoutError::Timeout) if waited.look() < SETUP_TIMEOUT => {}
            Err(_) => return None,
        }
    }
}

impl Drop for Team {
    /// Threads that wait at the gate exit; those that measure end by themselves.
    fn drop(&mut self) {
        self.gate.cancel(self.threads.iter());
    }
}

#[cfg(not(loom))]
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_is_slow_to_set_up_is_waited_for_and_one_that_is_gone_is_not() {
        let mut answers = [Err(RecvTimeoutError::Timeout), Err(RecvTimeoutError::Timeout), Ok(7)].into_iter();
        assert_eq!(report(|_| answers.next().unwrap()), Some(7));
        assert_eq!(report::<u8>(|_| Err(RecvTimeoutError::Disconnected)), None);
    }
}
