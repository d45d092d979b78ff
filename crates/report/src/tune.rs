//! Effects of settings: a table with each knob's effect and price, then the answers in words.

use super::table::{Column, Table, UNKNOWN, dash};
use super::{Style, json, lines::Lines};
use crate::sections::machine;
use punctual_analysis::Answer;
use punctual_analysis::comparison::Ratio;
use punctual_analysis::tune::{ByValue, ConfirmedKnob, KnobAnswer, RatioOfRuns, ScreenedPair, Tuned};
use punctual_analysis::wording::{duration, number, things};
use punctual_model::{Cell, Header, Host};
use serde::Serialize;
use std::io;

/// Answers about settings, with what was measured.
#[derive(Debug, Clone, Copy)]
pub struct TuneReport<'a> {
    /// Header of the screening.
    pub header: &'a Header,
    /// The cell with every knob as it is.
    pub cell: &'a Cell,
    /// The answers.
    pub tuned: &'a Tuned,
    /// Directory of the runs.
    pub dir: &'a str,
}

/// The same as one document, printed by `punctual tune --format json`.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct TuneDocument<'a> {
    /// The answer in one sentence.
    answer: Answer,
    tool: &'a str,
    started_unix_ms: u64,
    host: &'a Host,
    /// The cell with every knob as it is.
    cell: &'a Cell,
    /// Directory of both runs, `screening` and `confirmation`.
    dir: &'a str,
    #[serde(flatten)]
    tuned: &'a Tuned,
}

impl TuneReport<'_> {
    /// Writes the answer, the machine, the table, and the answer for each knob.
    pub fn text(&self, out: &mut dyn io::Write, style: Style) -> io::Result<()> {
        let lines = Lines::new(style);
        lines.framed(out, &self.tuned.answer(), |out| {
            machine::write(out, self.header, &lines)?;
            lines.paragraph(out, "", &self.subject())?;
            writeln!(out)?;
            self.table().write(out, &lines)?;
            writeln!(out)?;
            for knob in &self.tuned.knobs {
                lines.paragraph(out, "", &format!("{}.", knob.sentence))?;
            }
            self.remarks().iter().try_for_each(|remark| lines.paragraph(out, "", remark))
        })
    }

    /// The answers as a JSON document.
    pub fn json(&self) -> serde_json::Value {
        let Header { tool, started_unix_ms, host, .. } = self.header;
        let (cell, dir, tuned) = (self.cell, self.dir, self.tuned);
        json::value(&TuneDocument {
            answer: tuned.answer(),
            tool,
            started_unix_ms: *started_unix_ms,
            host,
            cell,
            dir,
            tuned,
        })
    }

    /// `Effects on p99: clock_nanosleep, messaging/other, CPUs 0-1; 2 blocks of 8 measurements of 2 s, then ...`.
    pub(crate) fn subject(&self) -> String {
        let Cell { task, cpus, duration: of_one, .. } = self.cell;
        let screening = &self.tuned.screening;
        let confirmed = match self.tuned.confirmation_blocks {
            0 => String::new(),
            blocks => format!(", then {} to confirm", things(blocks, "block")),
        };
        format!(
            "Effects on {}: {}, {}, {}; {} of {} measurements of {}{confirmed}",
            screening.metric,
            task.label(),
            self.cell.label(),
            cpus.named(),
            things(screening.blocks, "block"),
            screening.runs,
            duration(of_one.ns() as f64),
        )
    }

    pub(crate) fn table(&self) -> Table {
        let mut columns = vec![
            Column::text("knob"),
            Column::text("as is"),
            Column::text("changed"),
            Column::figure("screening"),
            Column::figure("confirmed"),
            Column::figure("work of the load"),
        ];
        let confirmed = || self.tuned.knobs.iter().filter_map(|knob| knob.confirmed.as_ref());
        let has_wake_ups = confirmed().any(|confirmed| confirmed.wake_ups.ratio().is_some());
        let has_power = confirmed().any(|confirmed| confirmed.power_mw.ratio().is_some());
        columns.extend(has_wake_ups.then(|| Column::figure("wake-ups")));
        columns.extend(has_power.then(|| Column::figure("power")));
        columns.push(Column::text("answer"));
        let row = |knob: &punctual_analysis::tune::TunedKnob| {
            let screened = times(knob.screened.ratio, knob.screened.interval);
            let confirmed = knob.confirmed.as_ref();
            let ratio = confirmed.and_then(|confirmed| confirmed.ratio).map_or_else(dash, of_ratio);
            let screened_work = knob.screened.work.map(|work| times(work.ratio, work.interval));
            let work = confirmed.and_then(ConfirmedKnob::work).map(number).or(screened_work).unwrap_or_else(dash);
            let punctual_model::Knob { key, as_is, changed, between: _ } = &knob.knob;
            let price = |of: fn(&ConfirmedKnob) -> Option<f64>| confirmed.and_then(of).map_or_else(dash, number);
            let mut fields = vec![key.clone(), as_is.clone(), changed.clone(), screened, ratio, work];
            fields.extend(has_wake_ups.then(|| price(|confirmed| confirmed.wake_ups.ratio())));
            fields.extend(has_power.then(|| price(|confirmed| confirmed.power_mw.ratio())));
            fields.push(word(knob.answer).to_owned());
            fields
        };
        Table::new(columns, self.tuned.knobs.iter().map(row).collect())
    }

    /// What holds for several knobs together.
    pub(crate) fn remarks(&self) -> Vec<String> {
        let changed =
            |one: &punctual_analysis::tune::Disturbance| format!("Changed by another program: {}.", one.sentence);
        let mut remarks: Vec<String> = self.tuned.disturbances.iter().map(changed).collect();
        if let Some(together) = &self.tuned.together {
            let ratio = together.ratio.map_or_else(|| UNKNOWN.to_owned(), of_ratio);
            let work = together.work();
            let work = work.map_or(String::new(), |work| format!("; the load does {} times the work", number(work)));
            remarks
                .push(format!("All confirmed again, changed together: {} {ratio}{work}.", self.tuned.screening.metric));
        }
        let added = self.tuned.added.as_ref();
        remarks.extend(added.map(|added| format!("{}.", added.sentence)));
        match &self.tuned.screening.pairs {
            Some(_) => remarks.extend(self.tuned.screening.shown_pairs().map(|pair| self.interaction(pair))),
            None if self.tuned.knobs.len() > 1 => remarks.push(
                "In the screening, main effects are confounded with interactions; the confirmation changes one knob at a \
                 time."
                    .to_owned(),
            ),
            None => {}
        }
        remarks
    }

    /// The effects of two knobs that act together, at each value of the other.
    fn interaction(&self, pair: &ScreenedPair) -> String {
        let metric = self.tuned.screening.metric;
        let knobs = &self.header.plan.knobs;
        let effects = |one: usize, other: usize, effects: &ByValue| -> Option<String> {
            let (one, other) = (knobs.get(one)?, knobs.get(other)?);
            let at = |effect: &RatioOfRuns, value: &str| {
                format!("{} with {} = {value}", times(effect.ratio, effect.interval), other.key)
            };
            let (as_is, changed) = (at(&effects.as_is, &other.as_is), at(&effects.changed, &other.changed));
            Some(format!("{} = {}: {metric} {as_is}, {changed}", one.key, one.changed))
        };
        let (a, b) = pair.knobs;
        let both = [effects(a, b, &pair.effects.0), effects(b, a, &pair.effects.1)];
        let both: Vec<String> = both.into_iter().flatten().collect();
        format!("Interaction in the screening (p = {}): {}.", number(pair.p), both.join("; "))
    }
}

fn of_ratio(ratio: Ratio) -> String {
    times(ratio.value, ratio.interval)
}

fn times(value: f64, (low, high): (f64, f64)) -> String {
    format!("{} [{}-{}]", number(value), number(low), number(high))
}

pub(crate) fn word(answer: KnobAnswer) -> &'static str {
    match answer {
        KnobAnswer::Better => "better",
        KnobAnswer::Worse => "worse",
        KnobAnswer::MoreMisses => "more misses",
        KnobAnswer::NoEffect { .. } => "no effect",
        KnobAnswer::Undecided { .. } => "undecided",
        KnobAnswer::Disturbed => "disturbed",
    }
}
