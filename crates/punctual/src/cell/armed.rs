//! The second phase: the load works, the measured threads stand at the barrier.

use super::CellError;
use super::collector::Collector;
use super::measured::Measured;
use super::prepared::Prepared;
use super::readings::Readings;
use crate::load::Crew;
use model::{Ended, MonoTime, Progress, Schedule, Span, ThreadProgress};
use rt::{Team, sys};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, SystemTime};

/// Everything is ready; the next step is to let the threads go.
#[derive(Debug)]
pub(crate) struct Armed {
    pub(super) prepared: Prepared,
    pub(super) crew: Option<Crew>,
    pub(super) team: Team,
    pub(super) memory_locked_bytes: u64,
}

/// From opening the barrier to the first due time: long enough for every thread to get there.
const LEAD: Span = Span(2_000_000);
/// How long after the last due time a late thread is waited for, before its open wait is recorded as such.
const GRACE: Span = Span(250_000_000);
/// How often the logs are emptied and the machine is looked at.
const TICK: Span = Span::SECOND;

impl Armed {
    /// Measures until the end of the cell, or until `stop` is set. Ends by the wall clock, whether or not the measured
    /// threads ever run. `observe` is called about once a second.
    ///
    /// # Errors
    /// When the load does not last, or a wait fails.
    pub(crate) fn measure(
        mut self,
        stop: &AtomicBool,
        mut observe: impl FnMut(Progress),
    ) -> Result<Measured, CellError> {
        let cell = &self.prepared.cell;
        let schedule = Schedule { first_due: sys::clock::monotonic().plus(LEAD), period: cell.period };
        let (first, mut end) = (cell.first_cycle(), cell.end_cycle());
        let collector = || Collector::new(schedule, first, end, cell.deadline());
        let mut collectors: Vec<Collector> = self.team.members.iter().map(|_| collector()).collect();
        let started = schedule.cycle(first).due;

        self.team.release(schedule.first_due);
        let mut readings = None;
        let mut ended = Ended::Completed;
        let mut tick = schedule.first_due.plus(TICK).min(started);
        let mut last_moment = schedule.cycle(end).due.plus(GRACE);
        let cut = loop {
            let finished = self.team.wait(until(tick.min(last_moment)));
            let now = sys::clock::monotonic();
            if stop.load(Relaxed) && ended == Ended::Completed {
                // What was due by now is the window. Before the logs are emptied, so that nothing later is in the tables.
                end = end.min(schedule.cycles_before(now));
                self.team.end_before(end);
                collectors.iter_mut().for_each(|collector| collector.end_before(end));
                (ended, last_moment) = (Ended::Interrupted, now.plus(GRACE));
            }
            for (member, collector) in self.team.members.iter_mut().zip(&mut collectors) {
                member.log.drain(|sample| collector.take(sample));
            }
            self.crew.as_ref().map_or(Ok(()), Crew::check_alive)?;
            match &mut readings {
                None if now >= started => readings = Some(Readings::begin(started, self.crew.as_ref())),
                None => {}
                Some(readings) => readings.read(self.crew.as_ref())?,
            }
            observe(progress(now, started, &self.team, &collectors));
            if finished || now >= last_moment {
                break now;
            }
            let next = tick.max(now).plus(TICK);
            tick = if readings.is_some() { next } else { next.min(started) };
        };
        if end <= first {
            return Err(CellError::NothingMeasured);
        }
        let (load, machine) = readings.map_or((None, Vec::new()), |readings| readings.finish(self.crew.as_ref()));
        let started_unix_ms = unix_ms_of(started);
        Ok(Measured { armed: self, schedule, first, end, cut, collectors, load, machine, ended, started_unix_ms })
    }
}

/// The time from now until `instant`.
fn until(instant: MonoTime) -> Duration {
    Duration::from_nanos(instant.0.saturating_sub(sys::clock::monotonic().0))
}

/// The wall-clock time of a past instant, ms since 1970, as the wall clock stands now.
fn unix_ms_of(instant: MonoTime) -> u64 {
    let ago = Duration::from_nanos(sys::clock::monotonic().0.saturating_sub(instant.0));
    let unix = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(unix.saturating_sub(ago).as_millis()).unwrap_or(0)
}

fn progress(now: MonoTime, started: MonoTime, team: &Team, collectors: &[Collector]) -> Progress {
    let threads = team.members.iter().zip(collectors).map(|(member, collector)| ThreadProgress {
        cpu: member.cpu,
        n: collector.histogram.n,
        min_ns: collector.histogram.min_ns,
        last_ns: collector.last_ns,
        mean_ns: collector.histogram.mean_ns(),
        max_ns: collector.histogram.max_ns,
        missed: collector.missed,
    });
    Progress { elapsed: Span(now.0.saturating_sub(started.0)), threads: threads.collect() }
}
