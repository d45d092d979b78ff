//! Two configurations side by side with the answer; selection of the comparisons on a page.

use super::intensity;
use crate::Style;
use crate::lines::Lines;
use punctual_analysis::comparison::{
    Arm, Comparison, Decision, Measured, Metric, Question, Refusal, arm, compare, compare_cells, only_pair,
};
use punctual_analysis::wording::{number, things};
use punctual_model::{Cell, Conditions, Entry, Header};
use std::collections::HashMap;
use std::io;

/// Limit of comparisons on a page, which has to stay readable.
const MOST: usize = 40;

/// Writes the comparison: the answer, the deciding metric, the others, and remarks.
pub fn text(out: &mut dyn io::Write, comparison: &Comparison, style: Style) -> io::Result<()> {
    let lines = Lines::new(style);
    let Comparison { a, b, blocks, margin, primary, secondary, loads, decision, .. } = comparison;
    let head = match decision {
        Decision::Refused { why: Refusal::NoBlocks { .. } } => {
            format!("{} side by side (by wake-up, imported: no blocks)", primary.metric)
        }
        _ => {
            let (blocks, margin) = (things(*blocks, "block"), number(*margin));
            let by = if primary.metric == Metric::Lost { "share of the time" } else { "by due time" };
            format!("{} decides ({by}, margin {margin}, {blocks})", primary.metric)
        }
    };
    lines.answer(out, &comparison.answer())?;
    lines.paragraph(out, "", &head)?;
    let width = a.chars().count().max(b.chars().count());
    let ratio = primary.ratio.map_or_else(String::new, |ratio| format!("   ratio {ratio}"));
    let [of_a, of_b] = intensity::of_both(loads).map(|rate| if rate.is_empty() { rate } else { format!("   {rate}") });
    let rates = of_a.chars().count().max(of_b.chars().count());
    for (name, value, rate, ratio) in [(a, primary.a, of_a, ""), (b, primary.b, of_b, &ratio)] {
        let line = format!("  {name:width$}  {:>8}{rate:rates$}{ratio}", primary.value(value));
        writeln!(out, "{}", line.trim_end())?;
    }
    let has_ratios = secondary.iter().any(|other| other.ratio.is_some());
    let tests = secondary.iter().filter(|other| other.ratio.is_some()).count();
    let adjusted = if has_ratios { format!(" (adjusted for {tests} tests)") } else { String::new() };
    writeln!(out, "To explore, not to decide by{adjusted}:")?;
    writeln!(out, "  {:<7}{:>9}{:>9}   ratio [95 %]", "", "first", "second")?;
    for other in secondary {
        writeln!(out, "{}", row(other).trim_end())?;
    }
    comparison.remarks().iter().try_for_each(|remark| lines.paragraph(out, "", remark))
}

fn row(other: &Measured) -> String {
    let (a, b) = (other.value(other.a), other.value(other.b));
    let ratio = other.ratio.map_or_else(String::new, |ratio| ratio.to_string());
    let differs = if other.differs() { "different" } else { "" };
    format!("  {:<7}{a:>9}{b:>9}   {ratio:<22} {differs}", other.metric.to_string())
}

/// A run for comparisons: the letter before the names of its cells if there are several runs, its header and its
/// entries.
pub(crate) type Run<'a> = (Option<char>, &'a Header, &'a [Entry]);

/// Comparisons of cells of one run that differ only in policy or only in load; without any, of its only two cells, or
/// of its only cell with its repetition; or of equal cells of several runs.
pub(crate) fn comparisons(runs: &[Run<'_>]) -> Vec<Comparison> {
    let question = Question::default();
    let Some((first, others)) = runs.split_first() else { return Vec::new() };
    let (_, header, entries) = first;
    if others.is_empty() {
        let mut pairs = pairs_of(header);
        if pairs.is_empty() {
            pairs.extend(only_pair(header));
        }
        let pairs = pairs.into_iter().take(MOST);
        return pairs.map(|(a, b)| compare_cells(header, entries, a, b, &question)).collect();
    }
    let found: Vec<_> = others.iter().map(|other| (other, positions(other.1))).collect();
    let same = header.first_cells().into_iter().flat_map(|a| {
        let cell = header.cells.get(a);
        found.iter().filter_map(move |(other, positions)| Some((a, *other, *positions.get(cell?)?)))
    });
    same.take(MOST).map(|(a, other, b)| compare(&lettered(first, a), &lettered(other, b), None, &question)).collect()
}

/// A cell of one of several runs, with the letter of the run in its name.
fn lettered<'a>((letter, header, entries): &Run<'a>, cell: usize) -> Arm<'a> {
    let Arm { name, entries } = arm(header, entries, cell);
    Arm { name: letter.map(|letter| format!("{letter} ")).unwrap_or_default() + &name, entries }
}

/// Index of the first occurrence of each cell.
fn positions(header: &Header) -> HashMap<&Cell, usize> {
    header.first_cells().into_iter().filter_map(|index| Some((header.cells.get(index)?, index))).collect()
}

/// Each cell with the first that differs only in policy, then only in load, then only in kernel.
pub(crate) fn pairs_of(header: &Header) -> Vec<(usize, usize)> {
    let cells: Vec<(usize, &Cell)> =
        header.first_cells().into_iter().filter_map(|index| Some((index, header.cells.get(index)?))).collect();
    let cells: Vec<_> = cells.into_iter().filter(|(_, cell)| cell.task.has_latencies()).collect();
    let Some((_, model)) = cells.first() else { return Vec::new() };
    let mut pairs = Vec::new();
    for with in [with_policy, with_load, with_kernel] {
        // Cells that become equal with the policy, load or kernel of the model share a key; the first of each key is
        // the base. All pairs would be too many for a run of thousands of cells.
        let mut firsts: HashMap<_, usize> = HashMap::new();
        for (b, cell) in &cells {
            // Kernels with different clocks are not compared.
            let key = (cell.kernel.clock(), with(cell, model));
            let a = *firsts.entry(key).or_insert(*b);
            if a != *b {
                pairs.push((a, *b));
            }
        }
    }
    pairs
}

fn with_policy(cell: &Cell, of: &Cell) -> Cell {
    Cell { policy: of.policy, ..cell.clone() }
}

fn with_kernel(cell: &Cell, of: &Cell) -> Cell {
    Cell { kernel: of.kernel.clone(), ..cell.clone() }
}

fn with_load(cell: &Cell, of: &Cell) -> Cell {
    Cell {
        load: of.load.clone(),
        load_cpus: of.load_cpus.clone(),
        conditions: Conditions {
            load_policy: of.conditions.load_policy,
            load_must_hold: of.conditions.load_must_hold,
            ..cell.clone().conditions
        },
        ..cell.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;
    use punctual_analysis::ComparedLoad;
    use punctual_analysis::testing::RunBuilder;

    fn compared(ratio: f64, blocks: u32) -> Comparison {
        let mut random = punctual_model::SplitMix64::new(9);
        let mut run = RunBuilder::new();
        run.cell("messaging", "other").cell("messaging", "fifo:80");
        for block in 0..blocks {
            for (cell, ratio) in [(0, 1.0), (1, ratio)] {
                let percent = i64::try_from(random.below(20)).unwrap() + 90;
                run.measure(block, cell, |cpu, cycle| {
                    let late = 20_000 + i64::from(cpu) * 7 + i64::try_from(cycle * 7_919 % 1_009).unwrap() * 90;
                    if ratio < 1.0 { late * percent / 5_000 } else { late * percent / 100 }
                });
            }
        }
        let of = |cell| run.entries.iter().filter(|entry| entry.planned.cell_index == cell).collect();
        let [a, b] = [("messaging/other", 0), ("messaging/fifo:80", 1)];
        let [a, b] = [a, b].map(|(name, cell)| Arm { name: name.to_owned(), entries: of(cell) });
        compare(&a, &b, None, &Question::default())
    }

    fn shown(comparison: &Comparison) -> String {
        let mut out = Vec::new();
        text(&mut out, comparison, Style::plain(80)).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_difference() {
        expect![[r#"
            DIFFERENT: messaging/fifo:80 is earlier than messaging/other: p99 is 50.6 times
              lower (47.8 to 53.5 times, 95 %, 12 blocks)
            p99 decides (by due time, margin 1.25, 12 blocks)
              messaging/other      112 us
              messaging/fifo:80   2.21 us   ratio 0.0198 [0.0187-0.0209]
            To explore, not to decide by (adjusted for 2 tests):
                         first   second   ratio [95 %]
              p50      66.6 us  1.31 us   0.0197 [0.0186-0.0208] different
              p99.9          -        -
              max       112 us  2.21 us   0.0197 [0.0186-0.0209] different
            messaging/other was always measured first: carry-over from one to the other is
              part of the ratio.
        "#]]
        .assert_eq(&shown(&compared(0.02, 12)));
    }

    #[test]
    fn the_work_of_the_load_stands_beside_both() {
        let mut comparison = compared(0.02, 4);
        comparison.loads = vec![ComparedLoad {
            load: "messaging".to_owned(),
            operation: "message".to_owned(),
            a_per_second: Some(1_000.0),
            b_per_second: Some(90_000.0),
            differs: true,
        }];
        let text = shown(&comparison);
        assert!(text.contains("  messaging/other      108 us   1 000 messages/s\n"), "{text}");
        assert!(text.contains("  messaging/fifo:80   2.32 us   90 000 messages/s\n"), "{text}");
        assert!(text.contains("Different work: load messaging did 90 times as much in messaging/fifo:80"), "{text}");
    }

    #[test]
    fn side_by_side_without_an_answer() {
        expect![[r#"
            UNDECIDED: 4 blocks with both, 6 are needed to show any difference: measure more
              (--repetitions 12)
            p99 decides (by due time, margin 1.25, 4 blocks)
              messaging/other      108 us
              messaging/fifo:80   2.32 us
            To explore, not to decide by:
                         first   second   ratio [95 %]
              p50      64.6 us  1.38 us
              p99.9          -        -
              max       109 us  2.33 us
        "#]]
        .assert_eq(&shown(&compared(0.02, 4)));
    }

    #[test]
    fn programs_get_the_numbers_and_the_sentence() {
        let json = crate::json::of_comparison(&compared(0.02, 12));
        assert_eq!((&json["decision"]["kind"], &json["blocks"]), (&"different".into(), &12.into()));
        assert_eq!((&json["primary"]["metric"], &json["a_first"]), (&"p99".into(), &12.into()));
        assert!(json["primary"]["ratio"]["interval"][0].as_f64() < json["primary"]["ratio"]["value"].as_f64());
        assert!(json["answer"].as_str().unwrap().starts_with("DIFFERENT: "));
    }

    #[test]
    fn cells_are_compared_with_the_first_that_differs_in_one_thing() {
        let mut run = RunBuilder::new();
        for load in ["none", "messaging", "disk"] {
            run.cell(load, "other").cell(load, "fifo:80");
        }
        let by_policy = [(0, 1), (2, 3), (4, 5)];
        let by_load = [(0, 2), (1, 3), (0, 4), (1, 5)];
        assert_eq!(pairs_of(&run.header), [&by_policy[..], &by_load].concat());
        run.header.cells[5].period = "250us".parse().unwrap();
        assert_eq!(
            pairs_of(&run.header),
            [(0, 1), (2, 3), (0, 2), (1, 3), (0, 4)],
            "of another period nothing is alike"
        );
        assert_eq!(pairs_of(&RunBuilder::new().header), []);
    }
}
