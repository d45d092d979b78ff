//! A search as one JSON document: units in the keys, every trial, and the answer in sentences.

use super::{Asked, Frontier, Outcome, Purpose, Search, Step, Trial};
use model::{Cell, CpuSet, Header, Host, Load, Method, Period, Policy, Prepare, Span};
use serde::Serialize;

/// A search as one document: what `punctual frontier --format json` prints.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FrontierDocument<'a> {
    tool: &'a str,
    started_unix_ms: u64,
    host: &'a Host,
    asked: AskedDocument<'a>,
    trials: Vec<TrialDocument>,
    frontier: AnswerDocument,
    /// The answer in sentences.
    text: Vec<String>,
}

#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct AskedDocument<'a> {
    method: Method,
    policy: Policy,
    load: &'a Load,
    cpus: &'a CpuSet,
    from_ns: Period,
    to_ns: Period,
    resolution: f64,
    confirm: u32,
    duration_ns: Span,
    warm_up_ns: Span,
    timer_slack_ns: Option<Span>,
    cpu_dma_latency_us: Option<u32>,
    prepare: &'a Prepare,
}

#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct TrialDocument {
    period_ns: Period,
    purpose: Purpose,
    kept: bool,
    #[serde(flatten)]
    outcome: Outcome,
}

#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
enum AnswerDocument {
    Ended(Frontier),
    /// Broken off before there was an answer.
    Interrupted {
        kind: &'static str,
    },
}

impl TrialDocument {
    fn of(trial: &Trial) -> TrialDocument {
        let Trial { period, purpose, outcome } = *trial;
        TrialDocument { period_ns: period, purpose, kept: outcome.is_kept(), outcome }
    }
}

/// The machine, what was asked, every trial and the answer; `cell` is what every trial was but for its period.
#[must_use]
pub fn document<'a>(header: &'a Header, cell: &'a Cell, asked: &Asked, search: &Search) -> FrontierDocument<'a> {
    let Cell { method, policy, load, cpus, duration, warm_up, timer_slack, cpu_dma_latency_us, prepare, .. } = cell;
    FrontierDocument {
        tool: &header.tool,
        started_unix_ms: header.started_unix_ms,
        host: &header.host,
        asked: AskedDocument {
            method: *method,
            policy: *policy,
            load,
            cpus,
            from_ns: asked.from,
            to_ns: asked.to,
            resolution: asked.resolution,
            confirm: asked.confirm,
            duration_ns: *duration,
            warm_up_ns: *warm_up,
            timer_slack_ns: *timer_slack,
            cpu_dma_latency_us: *cpu_dma_latency_us,
            prepare,
        },
        trials: search.trials().iter().map(TrialDocument::of).collect(),
        frontier: match search.step() {
            Step::Done(frontier) => AnswerDocument::Ended(frontier),
            Step::Measure(..) => AnswerDocument::Interrupted { kind: "interrupted" },
        },
        text: search.answer(),
    }
}
