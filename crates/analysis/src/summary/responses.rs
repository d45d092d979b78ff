//! Events on the link of a cell besides answers, and triggers without one, over all its blocks.

use crate::stats::quantile::quantile;
use crate::summary::pool::Pool;
use punctual_model::{
    AnswerParts, CpuSet, Histogram, Host, OwnExchange, Policy, Record, ResponseRecord, TargetRecord, ThreadRecord,
};
use serde::Serialize;
use std::sync::Arc;

/// Counters of a cell's logger.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, schemars::JsonSchema)]
pub struct Response {
    /// Triggers that were sent.
    pub triggers: u64,
    /// Answers later than the next trigger's due time. They count with the time since their own trigger.
    pub late: u64,
    /// Triggers without an answer. Each counts as at least the time waited for it.
    pub lost: u64,
    /// The shortest of these times, ns; `null` without one, and where records of older versions do not have it.
    pub lost_at_least_ns: Option<i64>,
    /// Due times without a trigger: the logger itself was late, or still waited for an answer that could not be told
    /// from the next.
    pub unsent: u64,
    /// Late answers and triggers without an answer that are in no latency, because records of older versions left them
    /// out.
    pub left_out: u64,
    /// Repeated answers.
    pub duplicate: u64,
    /// Messages from another peer, or that are no answer.
    pub foreign: u64,
    /// Bytes received with errors on a serial port; `null` if unknown.
    pub line_errors: Option<u64>,
    /// The parts of each answer by the kernel's time stamps, in this order: sending, away, waking; `null` if there are
    /// no time stamps.
    pub parts: Option<[Part; 3]>,
    /// Overhead of the logger itself, in the block with its largest median; `null` if unknown.
    pub own: Option<OwnExchange>,
    /// The responder; `null` if this program did not start it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<Target>,
}

/// The responder, as reported by itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Target {
    /// Scheduling policy of its thread, read back in the first block.
    pub policy: Policy,
    /// The CPU that it ran on, in the first block.
    pub cpus: CpuSet,
    /// Triggers received, including those before the measured time.
    pub triggers: u64,
    /// Triggers that were answered.
    pub answered: u64,
    /// Triggers never received.
    pub missed: u64,
    /// Time from the wake-up by a trigger until its answer was sent: median, ns.
    pub own_p50_ns: Option<i64>,
    /// Largest of these times, ns.
    pub own_max_ns: Option<i64>,
    /// The machine, in the first block; `null` if unknown.
    pub host: Option<Arc<Host>>,
}

/// The responder, all blocks together.
fn target<'a>(seen: impl Iterator<Item = &'a ResponseRecord>) -> Option<Target> {
    let all: Vec<&TargetRecord> = seen.filter_map(|response| response.target.as_deref()).collect();
    let first = all.first()?;
    let sum = |count: fn(&TargetRecord) -> u64| all.iter().map(|target| count(target)).sum();
    let mut own = Histogram::default();
    all.iter().for_each(|target| own.merge(&target.own));
    Some(Target {
        policy: first.achieved.policy,
        cpus: first.achieved.cpus.clone(),
        triggers: sum(|target| target.triggers),
        answered: sum(|target| target.answered),
        missed: sum(|target| target.missed),
        own_p50_ns: quantile(&own, 0.5),
        own_max_ns: own.max_ns,
        host: first.host.clone(),
    })
}

/// One part of the round trip of a cell.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Part {
    /// Name: `sending` until the trigger is handed to the network, `away` until the answer comes from it, `waking`
    /// until the thread has it. For a GPIO line the first is unknown and included in the second.
    pub name: &'static str,
    /// Answers with this part.
    pub n: u64,
    /// Smallest, ns.
    pub min_ns: Option<i64>,
    /// Median, ns.
    pub p50_ns: Option<i64>,
    /// Largest, ns.
    pub max_ns: Option<i64>,
}

/// The parts of all blocks.
fn parts<'a>(seen: impl Iterator<Item = &'a ResponseRecord>) -> Option<[Part; 3]> {
    let mut all = [("sending", Histogram::default()), ("away", Histogram::default()), ("waking", Histogram::default())];
    for parts in seen.filter_map(|response| response.parts.as_ref()) {
        let AnswerParts { sending, away, waking } = parts;
        all.iter_mut().zip([sending, away, waking]).for_each(|((_, all), part)| all.merge(part));
    }
    let is_known = all.iter().any(|(_, all)| all.n > 0);
    let part = |(name, all): &(&'static str, Histogram)| Part {
        name,
        n: all.n,
        min_ns: all.min_ns,
        p50_ns: quantile(all, 0.5),
        max_ns: all.max_ns,
    };
    is_known.then(|| all.each_ref().map(part))
}

/// Answers of one record without a latency.
struct Missing {
    lost: u64,
    unsent: u64,
    left_out: u64,
}

fn missing(record: &Record, response: &ResponseRecord) -> Missing {
    let threads = |count: fn(&ThreadRecord) -> u64| -> u64 { record.threads.iter().map(count).sum() };
    let missed = threads(|thread| thread.missed);
    if record.threads.iter().all(|thread| thread.unanswered.is_some()) {
        return Missing { lost: threads(ThreadRecord::never_answered), unsent: missed, left_out: 0 };
    }
    // Versions that counted late answers, and missing ones, as missed.
    let unsent = threads(|thread| thread.cycles_due).saturating_sub(response.triggers);
    let left_out = missed.saturating_sub(unsent);
    Missing { lost: left_out.saturating_sub(response.late), unsent, left_out }
}

/// Sums of the counters; `None` without a link.
pub(crate) fn of(pool: &Pool<'_>) -> Option<Response> {
    let seen = || pool.entries.iter().filter_map(|entry| Some((&entry.record, entry.record.response.as_ref()?)));
    seen().next()?;
    let sum = |count: fn(&ResponseRecord) -> u64| seen().map(|(_, response)| count(response)).sum::<u64>();
    let of_each = |count: fn(&Missing) -> u64| seen().map(|(record, response)| count(&missing(record, response))).sum();
    let never = pool.threads().flat_map(|(_, thread)| thread.unanswered.iter().flatten());
    Some(Response {
        triggers: sum(|response| response.triggers),
        late: sum(|response| response.late),
        lost: of_each(|missing| missing.lost),
        lost_at_least_ns: never.filter_map(|slice| slice.histogram.min_ns).min(),
        unsent: of_each(|missing| missing.unsent),
        left_out: of_each(|missing| missing.left_out),
        duplicate: sum(|response| response.duplicate),
        foreign: sum(|response| response.foreign),
        parts: parts(seen().map(|(_, response)| response)),
        line_errors: seen().map(|(_, response)| response.line_errors).sum(),
        own: seen().filter_map(|(_, response)| response.own).max_by_key(|own| own.p50_ns),
        target: target(seen().map(|(_, response)| response)),
    })
}

#[cfg(test)]
mod tests {
    use crate::summarise;
    use crate::testing::{RunBuilder, host, response};
    use punctual_model::{OwnExchange, ResponseRecord};

    #[test]
    fn blocks_are_added_and_missing_answers_are_not_late() {
        let mut run = RunBuilder::new();
        run.cell("none", "fifo:80");
        run.measure(0, 0, |_, _| 5).measure(1, 0, |_, _| 5);
        let own = |p50_ns| Some(OwnExchange { exchanges: 9, min_ns: 1, p50_ns, max_ns: 100 });
        for (entry, (late, p50_ns)) in run.entries.iter_mut().zip([(2, 5), (1, 7)]) {
            entry.record.threads.truncate(1);
            (entry.record.threads[0].missed, entry.record.threads[0].cycles_due) = (4, 101);
            entry.record.response = Some(ResponseRecord {
                triggers: 100,
                late,
                duplicate: 1,
                foreign: 0,
                line_errors: None,
                own: own(p50_ns),
                parts: None,
                target: response(host()).target.map(|mut target| {
                    (target.answered, target.missed) = (100 + late, 1);
                    target.own.record(i64::try_from(p50_ns).unwrap());
                    target
                }),
            });
        }
        let summary = summarise(&run.header, &run.entries);
        let response = summary.cells[0].response.as_ref().unwrap();
        assert_eq!((response.triggers, response.late, response.lost, response.unsent), (200, 3, 3, 2));
        assert_eq!((response.duplicate, response.line_errors, response.own), (2, None, own(7)));
        let target = response.target.as_ref().unwrap();
        assert_eq!((target.answered, target.missed, target.own_max_ns), (203, 2, Some(7)));
        assert_eq!(target.host.as_deref(), Some(&host()));
    }
}
