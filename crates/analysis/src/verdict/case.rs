//! The verdict by case: one for each limit in each cell, as in test reports.

use super::judgment::Judgment;
use super::part::Gap;
use super::{Limit, Verdict, limits};
use crate::row::Row;
use punctual_model::{Entry, Header, Requirement};
use serde::Serialize;
use std::slice;

/// The verdict on one limit in one cell.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Case {
    /// The cell; `None` for a limit on the run as a whole.
    pub cell: Option<String>,
    /// The limit as it is typed, like `p99.9=200us`; `complete` for the run.
    pub limit: String,
    /// The verdict on this limit alone; never [`Verdict::NoneAsked`].
    pub verdict: Verdict,
}

impl Case {
    /// Every limit in every cell, in the order of the plan; empty without limits.
    pub(crate) fn all(header: &Header, entries: &[Entry], cells: &[Row<'_>]) -> Vec<Case> {
        let require = &header.plan.require;
        if require.is_empty() {
            return Vec::new();
        }
        let mut cases = vec![Case::complete(header, entries, cells)];
        cases.extend(Case::of_cells(require, cells));
        cases
    }

    /// Whether the run is complete, whatever is asked of it.
    pub(crate) fn complete(header: &Header, entries: &[Entry], cells: &[Row<'_>]) -> Case {
        let mut of_run = Judgment::default();
        of_run.gaps_of_run(header, entries, cells);
        Case { cell: None, limit: "complete".to_owned(), verdict: of_run.verdict() }
    }

    /// The verdict of a comparison on a cell, which does not pass without complete evidence of the cell.
    pub(crate) fn of_cell(row: &Row<'_>, limit: &str, verdict: &Verdict) -> Case {
        let mut judgment = Judgment::default();
        judgment.gaps_of_cell(row);
        let gaps = judgment.verdict();
        Case { cell: Some(row.name.to_owned()), limit: limit.to_owned(), verdict: Verdict::together([&gaps, verdict]) }
    }

    /// Every limit in every cell, without limits on the run as a whole.
    pub(crate) fn of_cells(require: &Requirement, cells: &[Row<'_>]) -> Vec<Case> {
        let limits = limits(require);
        let case = |row: &Row<'_>, (limit, value): &(String, Limit)| {
            let cell = || row.name.to_owned();
            let mut judgment = Judgment::default();
            judgment.gaps_of_cell(row);
            judgment.judge(slice::from_ref(row), *value);
            let verdict = match judgment.verdict() {
                // A cell without any record has no evidence.
                Verdict::Pass { kept } if kept.is_empty() => {
                    Verdict::Inconclusive { gaps: vec![Gap::NoSamples { cell: cell() }] }
                }
                verdict => verdict,
            };
            Case { cell: Some(cell()), limit: limit.clone(), verdict }
        };
        cells.iter().flat_map(|row| limits.iter().map(move |limit| case(row, limit))).collect()
    }
}

#[cfg(test)]
mod tests {
    use crate::summarise;
    use crate::testing::RunBuilder;

    /// `cell limit word` of each case.
    fn cases(run: &RunBuilder) -> Vec<String> {
        let summary = summarise(&run.header, &run.entries);
        let word = |status: u8| ["pass", "", "fail", "not shown"][usize::from(status)];
        let text = |case: &super::Case| {
            let cell = case.cell.as_deref().unwrap_or("run");
            format!("{cell} {} {}", case.limit, word(case.verdict.exit_status()))
        };
        summary.cases.iter().map(text).collect()
    }

    #[test]
    fn nothing_required_is_no_case() {
        let mut run = RunBuilder::new();
        run.cell("none", "other").measure(0, 0, |_, _| 5_000);
        assert_eq!(cases(&run), Vec::<String>::new());
    }

    #[test]
    fn each_limit_is_judged_in_each_cell() {
        let mut run = RunBuilder::new();
        run.cell("none", "other").cell("none", "fifo:80").require("max=1ms,p999=10us,misses_per_hour=1");
        run.measure(0, 0, |_, cycle| if cycle == 7 { 1_000_001 } else { 5_000 });
        run.measure(0, 1, |_, _| 1_000_000);
        assert_eq!(
            cases(&run),
            [
                "run complete pass",
                "none/other max=1ms fail",
                "none/other p99.9=10us not shown",
                "none/other misses_per_hour=1 fail",
                "none/fifo:80 max=1ms pass",
                "none/fifo:80 p99.9=10us fail",
                "none/fifo:80 misses_per_hour=1 not shown",
            ]
        );
    }

    #[test]
    fn a_cell_without_a_record_is_not_shown() {
        let mut run = RunBuilder::new();
        run.cell("none", "other").require("max=1ms");
        assert_eq!(cases(&run), ["run complete not shown", "none/other max=1ms not shown"]);
    }

    #[test]
    fn the_cases_and_the_verdict_agree() {
        for (late_ns, status) in [(1_000_000, 0), (1_000_001, 2), (i64::MAX, 2)] {
            let mut run = RunBuilder::new();
            run.cell("none", "other").require("max=1ms").measure(0, 0, |_, _| late_ns);
            let summary = summarise(&run.header, &run.entries);
            let worst = summary.cases.iter().map(|case| case.verdict.exit_status()).max();
            assert_eq!((summary.verdict.exit_status(), worst), (status, Some(status)), "{late_ns}");
        }
    }
}
