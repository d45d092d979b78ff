//! Comparison of a run with an older run (baseline): no cell may be later than before.

use crate::comparison::comparability::{Difference, Role};
use crate::comparison::{Arm, Comparison, Decision, Question, compare};
use crate::findings::{BaselineDiffers, Finding};
use crate::run::RunSummary;
use crate::stats::paired::holm;
use crate::summary::cell::CellSummary;
use crate::verdict::{Gap, Kept, Verdict, Violation};
use crate::wording::number;
use punctual_model::{Cell, Entry, Header, Order};

/// Significance level at which a cell counts as later, after adjustment for the number of cells.
const LEVEL: f64 = 0.05;

/// A run: its header and its entries.
pub type RunRef<'a> = (&'a Header, &'a [Entry]);

/// Adds to the summary of `new` a verdict for each of its cells: later than the same cell of `old` or not. The runs are
/// separate in time, so nothing is shown unless `question` forces it. If it does, a change of the machine in between
/// counts as a change of the cell, and each difference of the machines is a finding. Errors: one line, if the runs
/// cannot be compared and the comparison is not forced.
pub fn check_against(
    summary: &mut RunSummary,
    new: RunRef<'_>,
    old: RunRef<'_>,
    question: &Question<'_>,
) -> Result<(), String> {
    let compared: Vec<Option<Comparison>> =
        (0..new.0.cells.len()).map(|cell| comparison(summary, new, old, cell, question)).collect();
    if let Some(why) = compared.iter().flatten().find_map(Comparison::why_not) {
        return Err(format!("this run and the baseline are {why}"));
    }
    for difference in compared.iter().flatten().flat_map(|one| one.differences.clone()) {
        let Difference { fact, a: baseline, b: now, role } = difference;
        let finding = BaselineDiffers { fact, baseline, now, prevents: role == Role::Prevents }.into();
        if !summary.findings.contains(&finding) {
            summary.findings.push(finding);
        }
    }
    summary.findings.order_by_key(Finding::importance);
    let chances: Vec<f64> =
        compared.iter().flatten().map(|one| one.primary.ratio.map_or(1.0, |ratio| ratio.p)).collect();
    let mut adjusted = holm(&chances).into_iter();
    let verdict = |(cell, comparison): (&CellSummary, Option<Comparison>)| match &comparison {
        None => untold(&cell.name, "the baseline has no cell like it"),
        Some(comparison) => judged(&cell.name, comparison, adjusted.next().unwrap_or(1.0)),
    };
    let verdicts = summary.cells.iter().zip(compared).map(verdict).collect();
    summary.compared(new.0, new.1, "baseline", verdicts);
    Ok(())
}

fn untold(cell: &str, why: &str) -> Verdict {
    Verdict::Inconclusive { gaps: vec![Gap::Untold { cell: cell.to_owned(), why: why.to_owned() }] }
}

/// Comparison of a cell with the same cell of the older run; `None` if the older run does not have it.
fn comparison(
    summary: &RunSummary,
    (header, entries): RunRef<'_>,
    (old_header, old_entries): RunRef<'_>,
    cell: usize,
    question: &Question<'_>,
) -> Option<Comparison> {
    let asked = header.cells.get(cell)?;
    let alike = |cells| (0..).zip(cells).filter(|(_, other): &(usize, &Cell)| is_same(asked, other));
    let is_only = [header, old_header].iter().all(|header| alike(&header.cells).count() == 1);
    let is_prepared = |other: &Cell| other.conditions.prepare == asked.conditions.prepare;
    let (other, _) = alike(&old_header.cells).find(|(_, other)| is_only || is_prepared(other))?;
    let name = summary.cells.get(cell)?.name.clone();
    let (old, new) = (arm("the baseline".to_owned(), old_entries, other), arm(name, entries, cell));
    Some(compare(&old, &new, None, question))
}

fn arm(name: String, entries: &[Entry], cell: usize) -> Arm<'_> {
    Arm { name, entries: entries.iter().filter(|entry| entry.planned.cell_index == cell).collect() }
}

/// Whether two cells have the same conditions, apart from their duration and what is prepared for them.
fn is_same(a: &Cell, b: &Cell) -> bool {
    (&a.kernel, &a.load, a.policy, a.period, &a.task, &a.cpus)
        == (&b.kernel, &b.load, b.policy, b.period, &b.task, &b.cpus)
}

/// Result of a gate that compares a cell with its baseline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gate {
    /// Not later by more than the margin (95 %).
    NotLater,
    /// Later, statistically significant, with an estimate of at least the margin.
    Later,
    /// Neither is shown.
    Open,
}

impl Gate {
    /// Returns the result of `comparison`. `p` is its p-value, adjusted for the number of cells.
    pub fn of(comparison: &Comparison, p: f64) -> Gate {
        match (&comparison.decision, comparison.primary.ratio) {
            (Decision::Different, Some(ratio)) if ratio.value >= comparison.margin && p < LEVEL => Gate::Later,
            (Decision::Different | Decision::Equivalent | Decision::Undecided { .. }, Some(ratio))
                if ratio.interval.1 <= comparison.margin =>
            {
                Gate::NotLater
            }
            _ => Gate::Open,
        }
    }
}

fn judged(name: &str, comparison: &Comparison, p: f64) -> Verdict {
    let said = comparison.sentence().trim_end_matches('.').to_owned();
    let cell = name.to_owned();
    match (Gate::of(comparison, p), comparison.primary.ratio) {
        (Gate::Later, Some(ratio)) => {
            Verdict::Fail { violations: vec![Violation::Later { cell, ratio: ratio.value, said }] }
        }
        (Gate::NotLater, Some(ratio)) if matches!(comparison.decision, Decision::Undecided { .. }) => {
            let (metric, times, blocks) = (comparison.primary.metric, number(ratio.interval.1), comparison.blocks);
            let said = format!("{metric} is at most {times} times that of the baseline (95 %, {blocks} blocks)");
            Verdict::Pass { kept: vec![Kept::NotLater { cell, said }] }
        }
        (Gate::NotLater, _) => Verdict::Pass { kept: vec![Kept::NotLater { cell, said }] },
        (Gate::Open, Some(ratio)) if comparison.decision == Decision::Different && ratio.value >= comparison.margin => {
            let cells = "with so many cells compared, one of them would look like this by chance";
            untold(name, &format!("{said}; {cells}"))
        }
        (Gate::Open, Some(_)) if comparison.decision == Decision::Different => {
            let margin = number(comparison.margin);
            untold(name, &format!("{said}; whether by more than the margin of {margin} times, more blocks would show"))
        }
        _ => untold(name, &said),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summarise;
    use crate::testing::RunBuilder;
    use punctual_model::{LoadFailure, LoadRecord, Skipped, Span};
    use std::sync::Arc;

    /// A run of eight blocks with latencies multiplied by `factor`; each `day` shifts its start by one day.
    fn run(factor: i64, day: u64) -> RunBuilder {
        let mut run = RunBuilder::new();
        run.cell("none", "fifo:80");
        run.header.plan.repetitions = 8;
        run.header.started_unix_ms += day * 86_400_000;
        for block in 0..8 {
            run.measure(block, 0, move |cpu, cycle| {
                let noise = (cycle * 7_919 + u64::from(cpu) * 104_729 + u64::from(block) * 31) % 1_009;
                factor * (5_000 + i64::try_from(noise).unwrap() + i64::from(block) * 13)
            });
        }
        run
    }

    fn verdict(new: &RunBuilder, old: &RunBuilder, force: bool) -> String {
        let mut summary = summarise(&new.header, &new.entries);
        let question = Question { force, ..Question::default() };
        let (newer, older) = ((&new.header, &new.entries[..]), (&old.header, &old.entries[..]));
        if let Err(why) = check_against(&mut summary, newer, older, &question) {
            return why;
        }
        if new.header.plan.require.is_empty() {
            let of_cases = Verdict::together(summary.cases.iter().map(|case| &case.verdict));
            assert_eq!(of_cases, summary.verdict);
        }
        summary.verdict.to_string()
    }

    #[test]
    fn later_fails_and_earlier_or_equal_passes() {
        let (slow, fast, same) = (run(3, 1), run(1, 0), run(1, 1));
        let later = verdict(&slow, &fast, true);
        assert!(later.starts_with("Verdict: FAIL none/fifo:80: DIFFERENT: "), "{later}");
        let earlier = verdict(&fast, &slow, true);
        assert!(earlier.starts_with("Verdict: PASS none/fifo:80: DIFFERENT: "), "{earlier}");
        let equal = verdict(&same, &fast, true);
        assert!(equal.starts_with("Verdict: PASS none/fifo:80: EQUIVALENT: "), "{equal}");
    }

    #[test]
    fn runs_that_are_separate_in_time_show_nothing_by_themselves() {
        let said = verdict(&run(3, 1), &run(1, 0), false);
        assert!(said.starts_with("Verdict: INCONCLUSIVE: none/fifo:80: UNDECIDED: "), "{said}");
    }

    /// Gate results of docs/ci.md over `experiments` experiments of 12 blocks, with block effects of 20 %:
    /// `[later, not later]`.
    fn gates(factor: f64, experiments: u64) -> [usize; 2] {
        let gate = |experiment: u64| {
            let mut random = punctual_model::SplitMix64::new(experiment);
            let mut side = |day: u64, factor: f64| {
                let mut run = RunBuilder::new();
                run.cell("none", "fifo:80");
                run.header.cells[0].period = "10ms".parse().unwrap();
                (run.header.plan.repetitions, run.header.started_unix_ms) = (12, 1_790_000_000_000 + day * 86_400_000);
                for block in 0..12 {
                    let of_block = factor * (0.8 + 0.4 * random.below(1_000) as f64 / 1_000.0);
                    let seed = random.next_bits();
                    run.measure(block, 0, move |cpu, cycle| {
                        let noise = punctual_model::SplitMix64::new(seed + cycle * 2 + u64::from(cpu)).below(5_000);
                        #[expect(clippy::cast_possible_truncation, reason = "some microseconds")]
                        let ns = (of_block * (20_000.0 + noise as f64)) as i64;
                        ns
                    });
                }
                run
            };
            let (old, new) = (side(0, 1.0), side(0, factor));
            let question = Question {
                metric: Some(punctual_model::Level::P50),
                margin: Some(1.25),
                force: true,
                ..Question::default()
            };
            let compared =
                compare(&arm(String::new(), &old.entries, 0), &arm(String::new(), &new.entries, 0), None, &question);
            Gate::of(&compared, compared.primary.ratio.map_or(1.0, |ratio| ratio.p))
        };
        let all: Vec<Gate> = (0..experiments).map(gate).collect();
        [Gate::Later, Gate::NotLater].map(|which| all.iter().filter(|gate| **gate == which).count())
    }

    #[test]
    fn a_version_is_not_later_than_itself_and_half_as_late_again_is_found() {
        let [later, not_later] = gates(1.0, 60);
        assert!(later == 0 && not_later > 50, "{later} and {not_later} of 60");
        let [later, not_later] = gates(1.5, 60);
        assert!(later >= 57 && not_later == 0, "{later} and {not_later} of 60");
    }

    #[test]
    fn a_difference_within_the_margin_does_not_fail() {
        let (slow, fast) = (run(1, 1), run(1, 0));
        let mut comparison = comparison(
            &summarise(&slow.header, &slow.entries),
            (&slow.header, &slow.entries),
            (&fast.header, &fast.entries),
            0,
            &Question { force: true, ..Question::default() },
        )
        .unwrap();
        let mut of = |decision, value, interval, p| {
            comparison.decision = decision;
            comparison.primary.ratio = Some(crate::comparison::Ratio { value, interval, p });
            Gate::of(&comparison, p)
        };
        let undecided = || Decision::Undecided { blocks_needed: None };
        for (decision, value, interval, p, gate) in [
            (Decision::Different, 1.3, (1.1, 1.5), 0.01, Gate::Later),
            (Decision::Different, 1.3, (1.1, 1.5), 0.06, Gate::Open),
            (Decision::Different, 1.2, (1.1, 1.5), 0.01, Gate::Open),
            (Decision::Different, 0.5, (0.4, 0.6), 0.01, Gate::NotLater),
            (Decision::Equivalent, 1.1, (1.05, 1.2), 0.01, Gate::NotLater),
            (undecided(), 0.9, (0.6, 1.25), 0.5, Gate::NotLater),
            (undecided(), 1.1, (0.9, 1.26), 0.5, Gate::Open),
        ] {
            assert_eq!(of(decision.clone(), value, interval, p), gate, "{decision:?} {value} {interval:?} {p}");
        }
    }

    #[test]
    fn a_cell_that_the_baseline_lacks_is_not_shown() {
        let mut old = run(1, 0);
        old.header.cells[0].policy = "fifo:81".parse().unwrap();
        let said = verdict(&run(1, 1), &old, true);
        assert_eq!(said, "Verdict: INCONCLUSIVE: none/fifo:80: the baseline has no cell like it");
    }

    #[test]
    fn a_run_with_gaps_is_not_shown_to_be_no_later() {
        let gaps: [fn(&mut RunBuilder); 4] = [
            |run| run.entries.truncate(7),
            |run| run.header.skipped.push(Skipped { cell: run.header.cells[0].clone(), reason: String::new() }),
            |run| run.entries[0].record.threads[0].lost = 1,
            |run| {
                let failure = LoadFailure { at: Span(0), reason: "process 7 ended".to_owned() };
                run.entries[3].record.loads = vec![LoadRecord { failure: Some(failure), ..LoadRecord::default() }];
            },
        ];
        for gap in gaps {
            let mut new = run(1, 1);
            gap(&mut new);
            let said = verdict(&new, &run(1, 0), true);
            assert!(said.starts_with("Verdict: INCONCLUSIVE: "), "{said}");
            let mut new = run(3, 1);
            gap(&mut new);
            assert!(!verdict(&new, &run(1, 0), true).contains("PASS"));
        }
    }

    #[test]
    fn a_cell_is_compared_with_the_one_that_was_prepared_in_the_same_way() {
        let of = |factors: [i64; 2], day: u64| {
            let mut both = run(factors[0], day);
            let mut second = both.header.cells[0].clone();
            second.conditions.prepare = "idle_latency=0us".parse().unwrap();
            both.header.cells.push(second);
            for block in 0..8 {
                both.measure(block, 1, |cpu, cycle| {
                    factors[1] * (5_000 + i64::try_from((cycle * 7_919 + u64::from(cpu)) % 1_009).unwrap())
                });
            }
            both
        };
        assert!(verdict(&of([3, 1], 1), &of([3, 1], 0), true).starts_with("Verdict: PASS "));
        assert!(verdict(&of([3, 2], 1), &of([3, 1], 0), true).starts_with("Verdict: FAIL "));
    }

    #[test]
    fn another_machine_needs_force_and_its_differences_are_findings() {
        let (new, mut old) = (run(1, 1), run(1, 0));
        for entry in &mut old.entries {
            Arc::make_mut(&mut entry.record.host_before).cpu_model = Some("Cortex-A76".to_owned());
            Arc::make_mut(&mut entry.record.host_before).governors = vec!["powersave".to_owned()];
        }
        assert_eq!(
            verdict(&new, &old, false),
            "this run and the baseline are not comparable: they differ in CPU model (Cortex-A76 and Cortex-A53), so a \
             ratio would be meaningless; --force compares anyway"
        );
        let mut summary = summarise(&new.header, &new.entries);
        let question = Question { force: true, ..Question::default() };
        let (newer, older) = ((&new.header, &new.entries[..]), (&old.header, &old.entries[..]));
        check_against(&mut summary, newer, older, &question).unwrap();
        let said: Vec<_> = summary.findings.iter().map(ToString::to_string).collect();
        let expected = [
            "CPU model differs from the baseline: Cortex-A76 there, Cortex-A53 here; not comparable (forced)",
            "frequency governor differs from the baseline: powersave there, performance here",
        ];
        assert!(expected.iter().all(|expected| said.contains(&(*expected).to_owned())), "{said:?}");
    }

    #[test]
    fn a_requirement_and_a_baseline_are_one_verdict() {
        let (mut new, old) = (run(1, 1), run(1, 0));
        new.header.plan.require.set_all("max=1us").unwrap();
        assert!(verdict(&new, &old, true).starts_with("Verdict: FAIL none/fifo:80: max "));
        new.header.plan.require = punctual_model::Requirement::default();
        new.header.plan.require.set_all("misses_per_hour=1").unwrap();
        assert!(verdict(&new, &old, true).starts_with("Verdict: INCONCLUSIVE: none/fifo:80: 0 misses"));
    }
}
