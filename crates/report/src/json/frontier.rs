//! A search as one JSON document: units in the keys, every trial, and the answer in sentences.

use punctual_analysis::Answer;
use punctual_analysis::frontier::{Frontier, Search, SearchParameters, Step, Trial};
use punctual_model::{Cell, Conditions, CpuSet, Header, Host, Load, Policy, Prepare, Span, Task};
use serde::Serialize;

/// A search as one document, printed by `punctual frontier --format json`.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct FrontierDocument<'a> {
    /// The answer in one sentence.
    answer: Answer,
    tool: &'a str,
    started_unix_ms: u64,
    host: &'a Host,
    asked: AskedDocument<'a>,
    trials: Vec<TrialDocument>,
    frontier: AnswerDocument,
    /// The answer and the limits of its evidence, one sentence each.
    text: Vec<String>,
}

#[derive(Debug, Serialize, schemars::JsonSchema)]
struct AskedDocument<'a> {
    method: &'a Task,
    policy: Policy,
    load: &'a Load,
    cpus: &'a CpuSet,
    #[serde(flatten)]
    asked: SearchParameters,
    duration_ns: Span,
    warm_up_ns: Span,
    timer_slack_ns: Option<Span>,
    cpu_dma_latency_us: Option<u32>,
    prepare: &'a Prepare,
}

#[derive(Debug, Serialize, schemars::JsonSchema)]
struct TrialDocument {
    #[serde(flatten)]
    trial: Trial,
    kept: bool,
}

#[derive(Debug, Serialize, schemars::JsonSchema)]
#[serde(untagged)]
enum AnswerDocument {
    Ended(Frontier),
    /// Interrupted before there was an answer.
    Interrupted {
        kind: &'static str,
    },
}

/// The document of a search; `cell` is the cell of every trial, except for its period.
pub(crate) fn document<'a>(
    header: &'a Header,
    cell: &'a Cell,
    asked: &SearchParameters,
    search: &Search,
) -> FrontierDocument<'a> {
    let Cell { task, policy, load, cpus, duration, conditions, .. } = cell;
    let Conditions { warm_up, timer_slack, cpu_dma_latency_us, prepare, .. } = conditions;
    FrontierDocument {
        answer: search.answer(),
        tool: &header.tool,
        started_unix_ms: header.started_unix_ms,
        host: &header.host,
        asked: AskedDocument {
            method: task,
            policy: *policy,
            load,
            cpus,
            asked: *asked,
            duration_ns: *duration,
            warm_up_ns: *warm_up,
            timer_slack_ns: *timer_slack,
            cpu_dma_latency_us: *cpu_dma_latency_us,
            prepare,
        },
        trials: search
            .trials()
            .iter()
            .map(|trial| TrialDocument { trial: *trial, kept: trial.outcome.is_kept() })
            .collect(),
        frontier: match search.step() {
            Step::Done(frontier) => AnswerDocument::Ended(frontier),
            Step::Measure(..) => AnswerDocument::Interrupted { kind: "interrupted" },
        },
        text: search.sentences(),
    }
}
