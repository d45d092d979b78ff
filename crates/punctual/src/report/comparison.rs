//! Two configurations side by side, and the answer.

use super::Style;
use super::lines::Lines;
use analysis::comparison::{Answer, Comparison, Measured, Refusal};
use analysis::wording::{number, things};
use std::io;

/// Writes the comparison: the metric that decides, the others, the answer, and what else has to be known.
///
/// # Errors
/// When `out` does not take it.
pub(crate) fn text(out: &mut dyn io::Write, comparison: &Comparison, style: Style) -> io::Result<()> {
    let lines = Lines::new(style);
    let Comparison { a, b, blocks, margin, primary, secondary, answer, .. } = comparison;
    let head = match answer {
        Answer::Refused { why: Refusal::NoBlocks { .. } } => {
            format!("{} side by side (by wake-up, imported: no blocks)", primary.metric)
        }
        _ => {
            let blocks = things(*blocks, "block");
            format!("{} decides (by due time, margin {}, {blocks})", primary.metric, number(*margin))
        }
    };
    lines.heading(out, &head)?;
    let width = a.chars().count().max(b.chars().count());
    let ratio = primary.ratio.map_or_else(String::new, |ratio| format!("   ratio {ratio}"));
    writeln!(out, "  {a:width$}  {:>8}", primary.value(primary.a))?;
    writeln!(out, "  {b:width$}  {:>8}{ratio}", primary.value(primary.b))?;
    let has_ratios = secondary.iter().any(|other| other.ratio.is_some());
    let tests = secondary.iter().filter(|other| other.ratio.is_some()).count();
    let adjusted = if has_ratios { format!(" (adjusted for {tests} tests)") } else { String::new() };
    writeln!(out, "To explore, not to decide by{adjusted}:")?;
    writeln!(out, "  {:<7}{:>9}{:>9}   ratio [95 %]", "", "first", "second")?;
    for other in secondary {
        writeln!(out, "{}", row(other).trim_end())?;
    }
    lines.paragraph(out, "", &comparison.sentence())?;
    comparison.remarks().iter().try_for_each(|remark| lines.paragraph(out, "", remark))
}

fn row(other: &Measured) -> String {
    let (a, b) = (other.value(other.a), other.value(other.b));
    let ratio = other.ratio.map_or_else(String::new, |ratio| ratio.to_string());
    let differs = if other.differs() { "different" } else { "" };
    format!("  {:<7}{a:>9}{b:>9}   {ratio:<22} {differs}", other.metric.to_string())
}

/// The comparison as one document.
pub(crate) fn json(comparison: &Comparison) -> serde_json::Value {
    let document = analysis::comparison::document(comparison);
    serde_json::to_value(document).expect("plain fields with text keys always become JSON")
}

#[cfg(test)]
mod tests {
    use super::*;
    use analysis::comparison::{Arm, Question, compare};
    use analysis::testing::RunBuilder;
    use expect_test::expect;

    fn compared(ratio: f64, blocks: u32) -> Comparison {
        let mut random = model::SplitMix64::new(9);
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
        text(
            &mut out,
            comparison,
            Style { width: 80, colour: false, unicode: false, all_findings: false, each_spike: false },
        )
        .unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_difference() {
        expect![[r#"
            p99 decides (by due time, margin 1.25, 12 blocks)
              messaging/other      112 us
              messaging/fifo:80   2.21 us   ratio 0.0198 [0.0187-0.0209]
            To explore, not to decide by (adjusted for 2 tests):
                         first   second   ratio [95 %]
              p50      66.6 us  1.31 us   0.0197 [0.0186-0.0208] different
              p99.9          -        -
              max       112 us  2.21 us   0.0197 [0.0186-0.0209] different
            DIFFERENT: p99 of messaging/fifo:80 is 50.6 times lower than that of
              messaging/other (47.8 to 53.5 times, 95 %, 12 blocks).
            messaging/other was always measured first: what one leaves behind for the other
              is part of the ratio.
        "#]]
        .assert_eq(&shown(&compared(0.02, 12)));
    }

    #[test]
    fn side_by_side_without_an_answer() {
        expect![[r#"
            p99 decides (by due time, margin 1.25, 4 blocks)
              messaging/other      108 us
              messaging/fifo:80   2.32 us
            To explore, not to decide by:
                         first   second   ratio [95 %]
              p50      64.6 us  1.38 us
              p99.9          -        -
              max       109 us  2.33 us
            UNDECIDED: 4 blocks with both; fewer than 6 cannot show a difference, however
              large: measure more (--repetitions 12).
        "#]]
        .assert_eq(&shown(&compared(0.02, 4)));
    }

    #[test]
    fn programs_get_the_numbers_and_the_sentence() {
        let json = json(&compared(0.02, 12));
        assert_eq!((&json["answer"]["kind"], &json["blocks"]), (&"different".into(), &12.into()));
        assert_eq!((&json["primary"]["metric"], &json["a_first"]), (&"p99".into(), &12.into()));
        assert!(json["primary"]["ratio"]["interval"][0].as_f64() < json["primary"]["ratio"]["value"].as_f64());
        assert!(json["sentence"].as_str().unwrap().starts_with("DIFFERENT: "));
    }
}
