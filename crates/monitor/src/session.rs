//! The measured threads between two pauses, and the trace of their late wake-ups.

use crate::window::{WakeUp, Window};
use punctual_cell::trace::TraceError;
use punctual_cell::{EndlessExplainer, SpikeReport};
use punctual_model::{ClockTime, Host, Method, MonitorTotals, MonoTime, Nanos, Period, Schedule, Span};
use punctual_rt::{Member, Settings as ThreadSettings, Team, TeamError, ThreadSpec};
use punctual_sys::counter::Counter;
use std::time::Duration;

/// Time to start the trace and to open the gate, before the first due time.
const LEAD: Span = Span(50_000_000);
/// Time that the logs have room for: a monitor that gets no CPU time meanwhile loses nothing.
const LOG_TIME: Span = Span(60_000_000_000);
/// Most samples in a log.
const MOST_SAMPLES: u64 = 1 << 18;
/// Timeout of the end of the threads, besides a period.
const END_GRACE: Duration = Duration::from_millis(250);

/// The threads that measure.
#[derive(Debug)]
pub(crate) struct Session {
    /// Dropped before the team: it removes the trace.
    explainer: Option<EndlessExplainer>,
    team: Team,
    first_due: ClockTime,
    /// Lost samples of each thread that are counted already.
    lost: Vec<u64>,
    /// Time up to which measured time is counted.
    counted_until: MonoTime,
}

/// An error while measuring.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SessionError {
    /// The threads could not be set up.
    #[error(transparent)]
    Team(#[from] TeamError),
    /// A wait failed.
    #[error("CPU {cpu}: clock_nanosleep failed: {source}")]
    Wait { cpu: u32, source: std::io::Error },
    /// A CPU was switched off, and its thread moved.
    #[error("CPU {0} is not available any more: its thread was moved; start the monitor again")]
    Moved(u32),
}

impl Session {
    /// Starts one thread for each CPU, spread over the period so that they do not wake together. Without `explainer`
    /// late wake-ups are not explained; a trace that cannot be started is returned as the reason.
    pub(crate) fn start(
        settings: &crate::Settings,
        explains: bool,
        host: &Host,
    ) -> Result<(Session, Option<TraceError>), SessionError> {
        let (mut explainer, mut reason) = match explains.then(|| EndlessExplainer::create(host)) {
            Some(Err(err)) => (None, Some(err)),
            created => (created.and_then(Result::ok), None),
        };
        let n = u64::try_from(settings.cpus.len()).unwrap_or(1).max(1);
        let period = settings.period;
        let spec = |(index, cpu): (u64, u32)| ThreadSpec {
            cpu,
            cpus: [cpu].into_iter().collect(),
            settings: ThreadSettings {
                policy: settings.policy,
                timer_slack: None,
                method: Method::CLOCK_NANOSLEEP,
                period,
                counter: Counter::Clock,
                movable: None,
            },
            phase: Span(period.ns() / n * index),
            cycles: 0..u64::MAX,
            link: None,
        };
        let specs = (0..).zip(settings.cpus.iter()).map(spec).collect();
        let room = usize::try_from(period.cycles_in(LOG_TIME).clamp(64, MOST_SAMPLES)).unwrap_or(64);
        let watch = explainer.as_ref().map(EndlessExplainer::watch);
        let mut team = Team::spawn(specs, Nanos(i64::MAX), room, watch)?;
        if let Some(Err(err)) = explainer.as_mut().map(|explainer| explainer.enable(&team.members)) {
            (explainer, reason) = (None, Some(err));
        }
        if let Some(Err(err)) = explainer.as_mut().map(|explainer| explainer.begin(&team.members)) {
            (explainer, reason) = (None, Some(err));
        }
        let first_due = ClockTime(punctual_sys::clock::monotonic().0).plus(LEAD);
        if let Some(explainer) = &mut explainer {
            explainer.follow(&mut team.members, |member| schedule(member, first_due, period), MonoTime(0));
        }
        team.release(first_due);
        let lost = vec![0; team.members.len()];
        let session = Session { explainer, team, first_due, lost, counted_until: MonoTime(first_due.0) };
        Ok((session, reason))
    }

    /// Moves the wake-ups since the last call into `window` and `totals`; returns the measured time. Errors: when a
    /// thread has ended by an error.
    pub(crate) fn collect(
        &mut self,
        window: &mut Window,
        totals: &mut [MonitorTotals],
        period: Period,
    ) -> Result<Span, SessionError> {
        while self.team.listen(Duration::ZERO) {}
        let now = punctual_sys::clock::monotonic();
        let mut failed = Ok(());
        for (index, member) in self.team.members.iter_mut().enumerate() {
            if let Some(Err(errno)) = member.outcome.map(|outcome| outcome.result) {
                let source = std::io::Error::from_raw_os_error(errno);
                failed = failed.and(Err(SessionError::Wait { cpu: member.spec.cpu, source }));
            }
            let Some(total) = totals.get_mut(index) else { continue };
            let schedule = schedule(member, self.first_due, period);
            let waits_for = member.log.waits_for();
            member.log.drain(|sample| {
                let due = MonoTime(schedule.cycle(sample.cycle).due.0);
                let missed = schedule.missed(sample.latency);
                window.take(WakeUp { index, due, latency_ns: sample.latency.0, missed });
                total.latencies.record(sample.latency.0);
                total.missed += missed;
            });
            let is_waiting = member.outcome.is_none() && member.log.waits_for() == waits_for;
            let due = waits_for.filter(|_| is_waiting);
            let late = due.map_or(0, |due| now.0.saturating_sub(due.0));
            total.open = Span(late);
            // A wake-up that is in progress is not late.
            window.open(index, due.filter(|_| late > period.ns()).map(|due| MonoTime(due.0)));
            let lost = member.log.lost();
            if let Some(before) = self.lost.get_mut(index) {
                let more = lost.saturating_sub(std::mem::replace(before, lost));
                window.lost(index, more);
                total.lost += more;
            }
        }
        let (from, until) = (self.counted_until, self.counted_until.max(now));
        self.counted_until = until;
        window.measured(from, until);
        failed.map(|()| Span(until.0.saturating_sub(from.0)))
    }

    /// Sets the latency above which a wake-up is explained.
    pub(crate) fn set_threshold(&self, above: Option<Span>) {
        if let Some(explainer) = &self.explainer {
            explainer.set_threshold(above);
        }
    }

    /// The spikes since the last call.
    pub(crate) fn reports(&self) -> Vec<SpikeReport> {
        self.explainer.iter().flat_map(EndlessExplainer::reports).collect()
    }

    /// Checks that every thread is still on its CPU. Errors: when one was moved, because its CPU was switched off.
    pub(crate) fn check(&self) -> Result<(), SessionError> {
        let is_moved = |member: &&Member| {
            punctual_sys::sched::affinity(member.tid).is_ok_and(|cpus| cpus != member.cpus) && member.outcome.is_none()
        };
        self.team.members.iter().find(is_moved).map_or(Ok(()), |member| Err(SessionError::Moved(member.spec.cpu)))
    }

    /// Ends the threads and waits for them, as long as the last wait may take.
    pub(crate) fn end(&mut self, period: Period) {
        self.team.end_now();
        self.team.wait(Duration::from_nanos(period.ns()) + END_GRACE);
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.team.end_now();
    }
}

/// The due times of a thread, where those of the session begin at `first_due`.
fn schedule(member: &Member, first_due: ClockTime, period: Period) -> Schedule {
    Schedule { first_due: first_due.plus(member.spec.phase), period }
}
