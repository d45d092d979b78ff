//! The last phase: everything was measured; what is left is to write it down.

use super::CellError;
use super::armed::Armed;
use super::collector::Collector;
use crate::host::{self, HostFs};
use model::{
    Achieved, Censored, Ended, LoadRecord, MachineSecond, MonoTime, RECORD_FORMAT, Record, Schedule, Span, ThreadRecord,
};
use rt::Member;

/// All that was seen. The load still runs and the host is still held: they go when this does.
#[derive(Debug)]
pub(crate) struct Measured {
    pub(super) armed: Armed,
    pub(super) schedule: Schedule,
    pub(super) first: u64,
    pub(super) end: u64,
    /// When waiting for late threads was given up.
    pub(super) cut: MonoTime,
    pub(super) collectors: Vec<Collector>,
    pub(super) load: Option<LoadRecord>,
    pub(super) machine: Vec<MachineSecond>,
    pub(super) ended: Ended,
    pub(super) started_unix_ms: u64,
}

impl Measured {
    /// The record.
    ///
    /// # Errors
    /// When a thread's wait failed: its numbers are not what was asked.
    pub(crate) fn record(mut self) -> Result<Record, CellError> {
        let collectors = std::mem::take(&mut self.collectors);
        let mut members = std::mem::take(&mut self.armed.team.members);
        let threads = members.iter_mut().zip(collectors).map(|(member, collector)| self.thread(member, collector));
        let threads = threads.collect::<Result<Vec<_>, _>>()?;
        let Measured { armed, load, machine, .. } = self;
        // Stopped before the host is looked at again.
        drop(armed.crew);
        let prepared = armed.prepared;
        Ok(Record {
            format: RECORD_FORMAT,
            tool: crate::TOOL.to_owned(),
            cell_id: prepared.cell.id(),
            started_unix_ms: self.started_unix_ms,
            started: self.schedule.cycle(self.first).due,
            measured: Span((self.end - self.first).saturating_mul(self.schedule.period.ns())),
            ended: self.ended,
            threads,
            load,
            machine,
            host_before: prepared.host,
            host_after: host::snapshot(&HostFs::here()),
            cell: prepared.cell,
        })
    }

    fn thread(&self, member: &mut Member, mut collector: Collector) -> Result<ThreadRecord, CellError> {
        if let Some(errno) = member.outcome.and_then(|outcome| outcome.errno) {
            let source = std::io::Error::from_raw_os_error(errno);
            return Err(CellError::Wait { cpu: member.cpu, source });
        }
        // Read before and after: the thread may have woken, and its sample be in the log, since waiting was given up.
        let waits_for = member.log.waits_for();
        member.log.drain(|sample| collector.take(sample));
        let has_woken = member.log.waits_for() != waits_for || collector.last_cycle >= Some(waits_for);
        let censored = self.open_wait(waits_for).filter(|_| !has_woken);
        let worst = collector.finish(censored);

        let cycles_due = self.end - self.first;
        let (recorded, lost) = (collector.histogram.n, member.log.lost());
        let open_cycles = u64::from(censored.is_some_and(|wait| wait.cycle >= 0));
        // Every due time that left no sample, found no room for one, and is not the one still waited for.
        let missed = cycles_due.checked_sub(recorded + lost + open_cycles).ok_or(CellError::Unaccounted {
            cpu: member.cpu,
            cycles_due,
            accounted: recorded + lost + open_cycles,
        })?;
        Ok(ThreadRecord {
            cpu: member.cpu,
            achieved: Achieved {
                policy: member.policy,
                cpus: member.cpus.clone(),
                timer_slack_ns: member.timer_slack.ns(),
                memory_locked_bytes: self.armed.memory_locked_bytes,
                cpu_dma_latency_us: self.armed.prepared.dma_latency.as_ref().map(|(_, us)| *us),
            },
            cycles_due,
            recorded,
            missed,
            lost,
            early: collector.early,
            censored,
            histogram: collector.histogram,
            seconds: collector.seconds,
            slices: collector.slices,
            worst,
            episodes: collector.episodes,
            usage: member.outcome.and_then(|outcome| outcome.usage),
        })
    }

    /// The wait for cycle `waits_for`, if it was due before the end and was still open when waiting was given up.
    fn open_wait(&self, waits_for: u64) -> Option<Censored> {
        let due = self.schedule.cycle(waits_for).due;
        let is_open = waits_for < self.end && due < self.cut;
        is_open.then(|| Censored {
            cycle: waits_for.cast_signed().wrapping_sub_unsigned(self.first),
            at_least_ns: self.cut.0 - due.0,
        })
    }
}
