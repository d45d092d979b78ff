//! Causes of late wake-ups that only one of two configurations has.

use super::Arm;
use crate::explain::{cause_name, merged};
use punctual_model::{Cause, ExplainRecord};
use serde::Serialize;

/// A cause that made wake-ups of one configuration late, and none of the other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct CauseOfOne {
    /// The cause.
    pub cause: Cause,
    /// The alternative cause, if the evidence allows two.
    pub or: Option<Cause>,
    /// Its time in the first, ns; `null`: none.
    pub a_ns: Option<u64>,
    /// Its time in the second, ns; `null`: none.
    pub b_ns: Option<u64>,
}

impl CauseOfOne {
    /// Its name.
    pub fn name(&self) -> String {
        cause_name(self.cause, self.or)
    }
}

/// Smallest share of the late time, percent, from which the absence of a cause counts.
const NOTABLE_PERCENT: u64 = 5;

/// Causes that only one of them has. Empty unless both were explained from the same threshold on, because the threshold
/// decides which wake-ups are explained.
pub(super) fn of_one(a: &Arm<'_>, b: &Arm<'_>) -> Vec<CauseOfOne> {
    let of = |arm: &Arm<'_>| merged(arm.entries.iter().filter_map(|entry| entry.record.explained.as_ref()));
    let above =
        |arm: &Arm<'_>| arm.entries.first().and_then(|entry| entry.record.cell.conditions.explain.as_ref()?.above);
    let (Some(in_a), Some(in_b)) = (of(a), of(b)) else { return Vec::new() };
    if above(a).is_none() || above(a) != above(b) {
        return Vec::new();
    }
    let only = |of: &ExplainRecord, other: &ExplainRecord| -> Vec<(Cause, Option<Cause>, u64)> {
        let is_notable = |ns: u64| ns.saturating_mul(100) >= of.late.ns().saturating_mul(NOTABLE_PERCENT);
        let is_in = |cause: &punctual_model::CauseTotal| {
            other.causes.iter().any(|there| (there.cause, there.or) == (cause.cause, cause.or))
        };
        let causes = of.causes.iter().filter(|cause| {
            cause.cause != Cause::UsualWakeUp && cause.cause != Cause::UsualRun && cause.cause != Cause::Unknown
        });
        let causes = causes.filter(|cause| is_notable(cause.total.ns()) && !is_in(cause));
        causes.map(|cause| (cause.cause, cause.or, cause.total.ns())).collect()
    };
    let gone = only(&in_a, &in_b).into_iter();
    let gone = gone.map(|(cause, or, ns)| CauseOfOne { cause, or, a_ns: Some(ns), b_ns: None });
    let new = only(&in_b, &in_a).into_iter();
    let new = new.map(|(cause, or, ns)| CauseOfOne { cause, or, a_ns: None, b_ns: Some(ns) });
    gone.chain(new).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::RunBuilder;
    use punctual_model::{CauseTotal, Explain, Span};

    fn explained(causes: &[(Cause, u64)]) -> ExplainRecord {
        let total = |(cause, ns): &(Cause, u64)| CauseTotal {
            cause: *cause,
            or: None,
            total: Span(*ns),
            worst: Span(*ns),
            wakeups: 1,
            blamed: 1,
            owners: Vec::new(),
        };
        let late = Span(causes.iter().map(|(_, ns)| ns).sum());
        ExplainRecord { causes: causes.iter().map(total).collect(), late, ..ExplainRecord::default() }
    }

    #[test]
    fn what_is_gone_and_what_is_new_is_named_from_the_same_threshold_on() {
        let mut run = RunBuilder::new();
        run.cell("messaging", "other").cell("messaging", "fifo:80");
        run.measure(0, 0, |_, _| 5).measure(0, 1, |_, _| 5);
        let records = [
            explained(&[(Cause::FairScheduling, 900), (Cause::Softirq, 60), (Cause::Interrupt, 40)]),
            explained(&[(Cause::NotPreemptible, 50), (Cause::Softirq, 50)]),
        ];
        for (entry, record) in run.entries.iter_mut().zip(records) {
            entry.record.explained = Some(record);
            entry.record.cell.conditions.explain = Some(Explain { above: Some(Span(100)), ..Explain::default() });
        }
        let arms = |run: &RunBuilder| -> Vec<CauseOfOne> {
            let arm = |index: usize| Arm { name: String::new(), entries: vec![&run.entries[index]] };
            of_one(&arm(0), &arm(1))
        };
        let found: Vec<_> = arms(&run).iter().map(|one| (one.cause, one.a_ns, one.b_ns)).collect();
        // Interrupts are 4 % of the first: below the share that counts.
        assert_eq!(found, [(Cause::FairScheduling, Some(900), None), (Cause::NotPreemptible, None, Some(50))]);
        run.entries[1].record.cell.conditions.explain = Some(Explain { above: Some(Span(200)), ..Explain::default() });
        assert!(arms(&run).is_empty());
        run.entries[1].record.explained = None;
        assert!(arms(&run).is_empty());
    }
}
