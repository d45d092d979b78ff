//! Findings about late and missing answers, and triggers that were not sent.

use super::{Finding, when};
use crate::summary::cell::CellSummary;
use crate::summary::responses::Response;
use crate::wording::{count, duration, things};

finding!(
    /// Answers arrived after the due time of the next trigger.
    pub struct LateAnswers {
        /// Number of late answers.
        pub late: u64,
        /// Triggers sent.
        pub triggers: u64,
    },
    importance = 2,
    {
        let (late, triggers) = (count(*late), things(*triggers, "trigger"));
        format!("late answers: {late} of {triggers} answered after the next due time; each counts with its full delay")
    },
    [LateAnswers { late: 51, triggers: 511 }]
);

finding!(
    /// Triggers without an answer.
    pub struct NeverAnswered {
        /// Number of them.
        pub never: u64,
        /// Triggers sent.
        pub triggers: u64,
        /// The shortest time waited for one of them, ns; `null` if unknown.
        pub at_least_ns: Option<i64>,
        /// p99 including them, ns, a lower bound; `null` when refused.
        pub p99_by_due_time_ns: Option<i64>,
    },
    importance = 2,
    {
        let (never, triggers) = (count(*never), things(*triggers, "trigger"));
        let waited = at_least_ns.filter(|ns| *ns > 0).map(|ns| duration(ns as f64));
        let waited = waited.map(|waited| format!(", each waited for at least {waited}")).unwrap_or_default();
        let p99 = p99_by_due_time_ns.map(|ns| duration(ns as f64));
        let p99 = p99.map(|p99| format!(", p99 is at least {p99} with them")).unwrap_or_default();
        format!("missing answers: {never} of {triggers}{waited}; max is a lower bound{p99}")
    },
    [NeverAnswered { never: 12, triggers: 2_000, at_least_ns: Some(1_000_000_000), p99_by_due_time_ns: Some(560_000) }]
);

finding!(
    /// Due times without a trigger.
    pub struct NotSent {
        /// Number of them.
        pub unsent: u64,
        /// All due times.
        pub due: u64,
    },
    importance = 2,
    {
        let (unsent, due) = (count(*unsent), things(*due, "due time"));
        format!(
            "missing triggers: {unsent} of {due} had none (logger late or still waiting), so their delays are unknown; \
             use a longer --period"
        )
    },
    [NotSent { unsent: 37, due: 2_000 }]
);

finding!(
    /// Late and missing answers are left out by records of an older version.
    pub struct AnswersLeftOut {
        /// Number of them.
        pub left_out: u64,
    },
    importance = 2,
    {
        let what = things(*left_out, "late or missing answer");
        format!("old record: {what} not in its latencies; measure again with this version")
    },
    [AnswersLeftOut { left_out: 63 }]
);

/// Findings about a cell with `due` due times.
pub(super) fn findings(due: u64, summary: &CellSummary, response: &Response) -> Vec<Finding> {
    let Response { triggers, late, lost: never, lost_at_least_ns: at_least_ns, unsent, left_out, .. } = *response;
    if left_out > 0 {
        return vec![AnswersLeftOut { left_out }.into()];
    }
    let p99_by_due_time_ns = summary.due_times.quantiles.at(punctual_model::Level::P99).value_ns();
    let found = [
        when(never > 0, NeverAnswered { never, triggers, at_least_ns, p99_by_due_time_ns }),
        when(late > 0, LateAnswers { late, triggers }),
        when(unsent > 0, NotSent { unsent, due }),
    ];
    found.into_iter().flatten().collect()
}
