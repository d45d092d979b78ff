//! A search for the smallest period sustained: all trials, then the answer and its limits.

use super::table::{Column, Table, UNKNOWN};
use super::{Style, json, lines::Lines};
use crate::sections::machine;
use punctual_analysis::frontier::{Outcome, Search, SearchParameters, Trial};
use punctual_analysis::wording::{count, duration};
use punctual_model::{Cell, Header, Span};
use std::io;

/// A search that has ended or was interrupted.
#[derive(Debug, Clone, Copy)]
pub struct SearchReport<'a> {
    /// Header of the session of the trials.
    pub header: &'a Header,
    /// The cell of every trial, except for its period.
    pub cell: &'a Cell,
    /// Parameters of the search.
    pub asked: &'a SearchParameters,
    /// The trials and the answer.
    pub search: &'a Search,
}

impl SearchReport<'_> {
    /// Writes the answer, the machine, the table of trials, and the answer with the limits of its evidence.
    pub fn text(&self, out: &mut dyn io::Write, style: Style) -> io::Result<()> {
        let lines = Lines::new(style);
        lines.answer(out, &self.search.answer())?;
        machine::write(out, self.header, &lines)?;
        lines.paragraph(out, "", &self.subject())?;
        if !self.search.trials().is_empty() {
            writeln!(out)?;
            table(self.search.trials()).write(out, &lines)?;
        }
        writeln!(out)?;
        self.search.sentences().iter().try_for_each(|sentence| lines.paragraph(out, "", sentence))
    }

    /// Subject of the search: `Smallest period without a missed cycle: clock_nanosleep, none/fifo:80, CPUs 0-1; ...`.
    fn subject(&self) -> String {
        let Cell { task, cpus, duration: of_trial, conditions, .. } = self.cell;
        let prepare = &conditions.prepare;
        let with = if prepare.is_empty() { String::new() } else { format!(", with {prepare}") };
        let text = |span: Span| duration(span.ns() as f64);
        format!(
            "Smallest period without a missed cycle: {task}, {}, {}; from {} to {}, trials of {}{with}",
            self.cell.label(),
            cpus.named(),
            text(self.asked.from.span()),
            text(self.asked.to.span()),
            text(*of_trial),
        )
    }

    /// The search as a JSON document with every trial.
    pub fn json(&self) -> serde_json::Value {
        json::of_search(self.header, self.cell, self.asked, self.search)
    }
}

/// Name of a column, and its count for a trial.
type Count = (&'static str, fn(&Outcome) -> u64);

/// A row for each trial. Columns of rare problems appear only if one occurred.
fn table(trials: &[Trial]) -> Table {
    let mut counts: Vec<Count> = vec![("cycles", |outcome| outcome.cycles_due), ("missed", |outcome| outcome.missed)];
    let rare: [Count; 2] = [("lost", |outcome| outcome.lost), ("not ended", |outcome| outcome.censored)];
    counts.extend(rare.iter().filter(|(_, of)| trials.iter().any(|trial| of(&trial.outcome) > 0)));
    let row = |(i, Trial { period, purpose, outcome }): (usize, &Trial)| {
        let counts = counts.iter().map(|(_, of)| count(of(outcome)));
        let max = outcome.max_ns.map_or_else(|| UNKNOWN.to_owned(), |ns| duration(ns as f64));
        let what = [(i + 1).to_string(), duration(period.ns() as f64), purpose.to_string()];
        what.into_iter().chain(counts).chain([max]).collect()
    };
    let mut columns = vec![Column::figure("trial"), Column::figure("period"), Column::text("for")];
    columns.extend(counts.iter().map(|(name, _)| Column::figure(*name)));
    columns.push(Column::figure("max"));
    Table::new(columns, trials.iter().enumerate().map(row).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};
    use punctual_analysis::frontier::Step;
    use punctual_analysis::testing::RunBuilder;
    use punctual_model::Period;

    /// A search between 100 us and 400 us with the losses of `trouble` in each trial.
    fn searched(trouble: fn(Period, u64) -> Outcome, check: impl FnOnce(&SearchReport<'_>)) {
        let run = RunBuilder::new();
        let cell = punctual_analysis::testing::cell("none", "fifo:80");
        let period = |text: &str| text.parse().unwrap();
        let asked =
            SearchParameters { from: period("100us"), to: period("400us"), unit: Span(1), confirm: 2, resolution: 0.5 };
        let mut search = Search::new(asked);
        while let Step::Measure(period, _) = search.step() {
            let cycles = 2_000_000_000 / period.ns();
            let Outcome { missed, lost, censored, .. } = trouble(period, cycles);
            search.take(Outcome {
                cycles_due: cycles,
                recorded: cycles - missed - lost - censored,
                missed,
                lost,
                censored,
                measured: Span(2_000_000_000),
                max_ns: (missed < cycles).then_some(41_000),
            });
        }
        check(&SearchReport { header: &run.header, cell: &cell, asked: &asked, search: &search });
    }

    fn text(trouble: fn(Period, u64) -> Outcome, expected: &Expect) {
        searched(trouble, |searched| {
            let mut out = Vec::new();
            let style = Style::plain(80);
            searched.text(&mut out, style).unwrap();
            expected.assert_eq(&String::from_utf8(out).unwrap());
        });
    }

    #[test]
    fn every_trial_is_shown_before_the_answer() {
        let below_150_us =
            |period: Period, _| Outcome { missed: u64::from(period.ns() < 150_000) * 7, ..Outcome::default() };
        text(
            below_150_us,
            &expect![[r#"
                Shortest period kept: 200 us (141 us, the next shorter one tried, was not: 7 of
                  14 184 cycles missed, then 7 of 14 184 cycles missed)
                punctual 0.1.0  |  board7  |  2 x Cortex-A53
                  Linux 6.1.0-21-rt-arm64 (PREEMPT_RT)  |  no hypervisor seen
                Smallest period without a missed cycle: clock_nanosleep, none/fifo:80, CPUs 0-1;
                  from 100 us to 400 us, trials of 2 s

                  trial  period  for      cycles  missed    max
                      1  400 us  search    5 000       0  41 us
                      2  200 us  search   10 000       0  41 us
                      3  141 us  search   14 184       7  41 us
                      4  141 us  again    14 184       7  41 us
                      5  200 us  confirm  10 000       0  41 us
                      6  200 us  confirm  10 000       0  41 us

                Shortest period kept: 200 us (141 us, the next shorter one tried, was not: 7 of
                  14 184 cycles missed, then 7 of 14 184 cycles missed).
                0 missed in 20 000 cycles of 2 fresh trials: at 95 % fewer than 150 in a
                  million, if each is missed by itself. A stall rarer than once in 1.34 s would
                  not have been seen; longer trials (--duration) or more (--confirm) see more.
            "#]],
        );
    }

    #[test]
    fn rare_troubles_have_columns_when_they_come() {
        text(
            |_, cycles| Outcome { missed: cycles - 1, censored: 1, ..Outcome::default() },
            &expect![[r#"
                No period is kept: even 400 us, the longest tried, was missed: 4 999 of
                  5 000 cycles missed, 1 wait not ended, then 4 999 of 5 000 cycles missed,
                  1 wait not ended. Try longer ones with --to
                punctual 0.1.0  |  board7  |  2 x Cortex-A53
                  Linux 6.1.0-21-rt-arm64 (PREEMPT_RT)  |  no hypervisor seen
                Smallest period without a missed cycle: clock_nanosleep, none/fifo:80, CPUs 0-1;
                  from 100 us to 400 us, trials of 2 s

                  trial  period  for     cycles  missed  not ended    max
                      1  400 us  search   5 000   4 999          1  41 us
                      2  400 us  again    5 000   4 999          1  41 us

                No period is kept: even 400 us, the longest tried, was missed: 4 999 of
                  5 000 cycles missed, 1 wait not ended, then 4 999 of 5 000 cycles missed,
                  1 wait not ended. Try longer ones with --to.
            "#]],
        );
    }

    #[test]
    fn a_program_gets_every_trial_too() {
        searched(
            |period, _| Outcome { lost: u64::from(period.ns() < 150_000), ..Outcome::default() },
            |searched| {
                let mut json = searched.json();
                json.as_object_mut().unwrap().remove("host");
                let text = serde_json::to_string_pretty(&json["asked"]).unwrap();
                expect![[r#"
                    {
                      "confirm": 2,
                      "cpu_dma_latency_us": 0,
                      "cpus": "0-1",
                      "duration_ns": 2000000000,
                      "from_ns": 100000,
                      "load": "none",
                      "method": "clock_nanosleep",
                      "policy": "fifo:80",
                      "prepare": {},
                      "resolution": 0.5,
                      "timer_slack_ns": null,
                      "to_ns": 400000,
                      "warm_up_ns": 0
                    }"#]]
                .assert_eq(&text);
                expect![[r#"{"censored":0,"cycles_due":10000,"kept":true,"lost":0,"max_ns":41000,"measured_ns":2000000000,"missed":0,"period_ns":200000,"purpose":"search","recorded":10000}"#]].assert_eq(&json["trials"][1].to_string());
                expect![[r#"{"cycles":20000,"kind":"confirmed","measured_ns":4000000000,"missed_below_ns":141000,"missed_per_million_upper":149.7866136776995,"not_confirmed":0,"period_ns":200000,"trials":2,"visibility_floor_ns":1335232802}"#]].assert_eq(&json["frontier"].to_string());
            },
        );
    }
}
