//! A search for the smallest period kept: every trial as it was made, then the answer and its limits.

use super::{Style, host, lines::Lines};
use analysis::frontier::{Asked, Frontier, Outcome, Purpose, Search, Step, Trial};
use analysis::wording::{count, duration};
use comfy_table::{CellAlignment, ContentArrangement, Table};
use model::{Cell, CpuSet, Header, Host, Load, Method, Period, Policy, Span};
use serde::Serialize;
use std::io;

/// A search that has ended, or was broken off.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Searched<'a> {
    /// The run that the trials were made in.
    pub(crate) header: &'a Header,
    /// What every trial was, but for its period.
    pub(crate) cell: &'a Cell,
    /// What was searched for.
    pub(crate) asked: &'a Asked,
    /// The trials and the answer.
    pub(crate) search: &'a Search,
}

impl Searched<'_> {
    /// Writes the machine, the table of trials and the answer.
    ///
    /// # Errors
    /// When `out` does not take it.
    pub(crate) fn text(&self, out: &mut dyn io::Write, style: Style) -> io::Result<()> {
        let lines = Lines::new(style);
        host::machine(out, self.header, &lines)?;
        lines.paragraph(out, "", &self.subject())?;
        if !self.search.trials().is_empty() {
            let drawn = table(self.search.trials()).join("\n");
            let (head, rows) = drawn.split_once('\n').unwrap_or((&drawn, ""));
            writeln!(out)?;
            lines.heading(out, head)?;
            writeln!(out, "{rows}")?;
        }
        writeln!(out)?;
        self.search.answer().iter().try_for_each(|sentence| lines.paragraph(out, "", sentence))
    }

    /// What is searched: `Smallest period kept by clock_nanosleep, none/fifo:80, on CPU 0-1, ...`.
    fn subject(&self) -> String {
        let Cell { method, cpus, duration: of_trial, .. } = self.cell;
        let text = |span: Span| duration(span.ns() as f64);
        format!(
            "Smallest period without a missed cycle: {method}, {}, CPU {cpus}; from {} to {}, trials of {}",
            self.cell.label(),
            text(self.asked.from.span()),
            text(self.asked.to.span()),
            text(*of_trial),
        )
    }

    /// The same as one document, with every trial.
    pub(crate) fn json(&self) -> serde_json::Value {
        let Cell { method, policy, load, cpus, duration, warm_up, timer_slack, cpu_dma_latency_us, .. } = self.cell;
        let document = Document {
            tool: &self.header.tool,
            started_unix_ms: self.header.started_unix_ms,
            host: &self.header.host,
            asked: AskedDocument {
                method: *method,
                policy: *policy,
                load,
                cpus,
                from_ns: self.asked.from,
                to_ns: self.asked.to,
                resolution: self.asked.resolution,
                confirm: self.asked.confirm,
                duration_ns: *duration,
                warm_up_ns: *warm_up,
                timer_slack_ns: *timer_slack,
                cpu_dma_latency_us: *cpu_dma_latency_us,
            },
            trials: self.search.trials().iter().map(TrialDocument::of).collect(),
            frontier: match self.search.step() {
                Step::Done(frontier) => FrontierDocument::Ended(frontier),
                Step::Measure(..) => FrontierDocument::Interrupted { kind: "interrupted" },
            },
            text: self.search.answer(),
        };
        serde_json::to_value(document).expect("plain fields with text keys always become JSON")
    }
}

#[derive(Serialize)]
struct Document<'a> {
    tool: &'a str,
    started_unix_ms: u64,
    host: &'a Host,
    asked: AskedDocument<'a>,
    trials: Vec<TrialDocument>,
    frontier: FrontierDocument,
    /// The answer in sentences.
    text: Vec<String>,
}

#[derive(Serialize)]
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
}

#[derive(Serialize)]
struct TrialDocument {
    period_ns: Period,
    purpose: Purpose,
    kept: bool,
    #[serde(flatten)]
    outcome: Outcome,
}

#[derive(Serialize)]
#[serde(untagged)]
enum FrontierDocument {
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

/// The head of a column and the count in it.
type Count = (&'static str, fn(&Outcome) -> u64);

/// The lines of the table, head first. Columns of rare troubles are there when one of them came.
fn table(trials: &[Trial]) -> Vec<String> {
    let mut columns: Vec<Count> = vec![("cycles", |outcome| outcome.cycles_due), ("missed", |outcome| outcome.missed)];
    let rare: [Count; 2] = [("lost", |outcome| outcome.lost), ("not ended", |outcome| outcome.censored)];
    columns.extend(rare.iter().filter(|(_, of)| trials.iter().any(|trial| of(&trial.outcome) > 0)));
    let mut table = Table::new();
    table.set_content_arrangement(ContentArrangement::Disabled);
    table.load_style(comfy_table::presets::NOTHING);
    let names = columns.iter().map(|(name, _)| *name);
    table.set_header(["trial", "period", "for"].into_iter().chain(names).chain(["max"]));
    for (i, Trial { period, purpose, outcome }) in trials.iter().enumerate() {
        let counts = columns.iter().map(|(_, of)| count(of(outcome)));
        let max = outcome.max_ns.map_or_else(|| "-".to_owned(), |ns| duration(ns as f64));
        let what = [(i + 1).to_string(), duration(period.ns() as f64), purpose.to_string()];
        table.add_row(what.into_iter().chain(counts).chain([max]));
    }
    for (i, column) in table.column_iter_mut().enumerate() {
        column.set_cell_alignment(if i == 2 { CellAlignment::Left } else { CellAlignment::Right });
        column.set_padding((2, 0));
    }
    table.lines().map(|line| line.trim_end().to_owned()).collect()
}

#[cfg(test)]
mod tests;
