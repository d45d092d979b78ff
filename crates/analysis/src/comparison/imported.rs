//! Two imported measurements side by side; without blocks, a difference cannot be separated from drift.

use super::{Comparison, Decision, Measured, Metric, Question, Refusal, default_margin};
use crate::comparison::comparability::{Difference, Role};
use crate::machine::facts;
use crate::summary::imported::ImportedCell;
use punctual_model::{Imported, Level};

/// Compares two imported measurements; the answer is always [`Refusal::NoBlocks`]. Values are by wake-up, because
/// missed due times are unknown.
pub fn compare_imported(a: &ImportedCell, b: &ImportedCell, question: &Question<'_>) -> Comparison {
    let value = |cell: &ImportedCell, metric: Metric| match metric {
        Metric::Quantile(level) => cell.quantiles.at(level).value_ns(),
        Metric::Max => cell.max_ns,
        // No file holds episodes of misses.
        Metric::Misses | Metric::Lost => None,
    };
    let measured = |metric: Metric| {
        let of = |cell| value(cell, metric).map(|ns| ns as f64);
        Measured { metric, a: of(a), b: of(b), ratio: None }
    };
    let both_know = |level: &Level| [a, b].iter().all(|cell| cell.quantiles.at(*level).value_ns().is_some());
    let level = question.metric.unwrap_or_else(|| if both_know(&Level::P999) { Level::P999 } else { Level::P99 });
    let primary = Metric::Quantile(level);
    let others = Metric::ALL.into_iter().filter(|other| *other != primary && *other != Metric::Misses);
    Comparison {
        a: a.name.clone(),
        b: b.name.clone(),
        blocks: 0,
        a_first: 0,
        is_again: false,
        margin: question.margin.unwrap_or_else(|| default_margin(primary)),
        primary: measured(primary),
        ratios: Vec::new(),
        secondary: others.map(measured).collect(),
        noise_floor: None,
        differences: differences(a, b),
        causes: Vec::new(),
        accounts: Vec::new(),
        stages: Vec::new(),
        loads: Vec::new(),
        kernels: None,
        decision: Decision::Refused { why: Refusal::NoBlocks { forced: question.force } },
    }
}

/// Conditions and facts that differ, of those known from both files.
fn differences(a: &ImportedCell, b: &ImportedCell) -> Vec<Difference> {
    let told = |cell: &ImportedCell| {
        let Imported { conditions, source, resolution, host, .. } = &cell.imported;
        let conditions = [
            ("tool", Some(source.tool.clone())),
            ("latency of", Some(conditions.what.clone())),
            ("policy", conditions.policy.map(|policy| policy.to_string())),
            ("period", conditions.period.map(|period| period.to_string())),
            ("load", conditions.load.as_ref().map(punctual_model::ImportedLoad::label)),
            ("unit of values", Some(resolution.to_string())),
        ];
        conditions.into_iter().chain(facts::names().zip(facts::told(host)))
    };
    let unequal = told(a).zip(told(b)).filter(|((_, a), (_, b))| a.is_some() && b.is_some() && a != b);
    unequal.map(|((fact, a), (_, b))| Difference { fact, a, b, role: Role::Beside }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summarise_imported;
    use crate::summary::imported::tests::imported;
    use crate::testing::imported_thread as thread;
    use punctual_model::{Host, Requirement};

    fn compared(b: impl Fn(&mut Imported), question: &Question<'_>) -> Comparison {
        let latencies = |times: i64| (0..20_000).map(|i| times * 1_000 * (i % 100 + 1)).collect::<Vec<i64>>();
        let first = imported(vec![thread(&latencies(1))]);
        let mut second = imported(vec![thread(&latencies(50))]);
        second.source.file = "b/h.txt".to_owned();
        b(&mut second);
        let cells = summarise_imported(&[first, second], &Requirement::default()).cells;
        compare_imported(&cells[0], &cells[1], question)
    }

    #[test]
    fn however_large_the_difference_there_is_no_answer() {
        let both = compared(|_| {}, &Question::default());
        assert_eq!((both.primary.metric, both.primary.ratio), (Metric::Quantile(Level::P999), None));
        assert!(both.primary.b.unwrap() > 40.0 * both.primary.a.unwrap());
        assert!(both.sentence().starts_with("UNDECIDED: confounded with drift: "), "{}", both.sentence());
        assert!(!both.sentence().contains("--force"));
        assert_eq!((both.decision.exit_status(), both.remarks()), (3, Vec::new()));
        assert_eq!(
            both.secondary.iter().map(|other| other.metric.to_string()).collect::<Vec<_>>(),
            ["p50", "p99", "max"]
        );
    }

    #[test]
    fn force_has_nothing_to_compare_by() {
        let forced = compared(|_| {}, &Question { force: true, ..Question::default() });
        assert_eq!(forced.primary.ratio, None);
        assert!(forced.sentence().contains("--force does not help"), "{}", forced.sentence());
    }

    #[test]
    fn what_one_file_does_not_say_is_no_difference() {
        let other_tool = |second: &mut Imported| {
            second.source.tool = "jitterdebugger".to_owned();
            second.conditions.policy = "fifo:80".parse().ok();
            second.host = Host { kernel_release: Some("4.4.0".to_owned()), ..Host::default() };
        };
        let remarks = compared(other_tool, &Question::default()).remarks();
        assert_eq!(remarks.len(), 1, "{remarks:?}");
        assert!(
            remarks[0].starts_with("Also different: tool (cyclictest and jitterdebugger), kernel ("),
            "{remarks:?}"
        );
    }

    #[test]
    fn a_lower_metric_stands_in_where_one_is_refused() {
        let short = |second: &mut Imported| second.threads = vec![thread(&[5_000; 2_000])];
        let both = compared(short, &Question::default());
        assert_eq!((both.primary.metric, both.primary.b), (Metric::Quantile(Level::P99), Some(5_000.0)));
        let asked = compared(short, &Question { metric: Some(Level::P999), ..Question::default() });
        assert_eq!(asked.primary.b, None);
    }
}
