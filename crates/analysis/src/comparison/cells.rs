//! Comparison of two cells of one run.

use super::{Arm, Comparison, Question, compare};
use crate::summary::names;
use punctual_model::{Entry, Header, Selector, Until};

/// Returns a cell of a run as one side of a comparison.
pub fn arm<'a>(header: &Header, entries: &'a [Entry], cell_index: usize) -> Arm<'a> {
    let name = names::of_cell(&header.cells, cell_index).unwrap_or_default();
    let is_of_cell = |entry: &&Entry| entry.planned.cell_index == cell_index;
    Arm { name, entries: entries.iter().filter(is_of_cell).collect() }
}

/// The pair of cells to compare by default: the only two cells of the run, or its only cell and the second measurement
/// of it.
pub fn only_pair(header: &Header) -> Option<(usize, usize)> {
    match header.first_cells().as_slice() {
        [a, b] => Some((*a, *b)),
        [only] => Some((*only, header.again_of(*only)?)),
        _ => None,
    }
}

/// Compares two cells of a run, and the first with itself if it was measured twice in each block. A run with
/// [`Until::Decided`] was tested after every block, whatever `question` says. The axes of the plan are the conditions
/// under comparison.
pub fn compare_cells(header: &Header, entries: &[Entry], a: usize, b: usize, question: &Question<'_>) -> Comparison {
    let again = header.again_of(a).map(|again| arm(header, entries, again));
    let looked_at_every_block = question.looked_at_every_block || header.plan.until == Some(Until::Decided);
    let question = Question { looked_at_every_block, asked: Selector::AXES, ..*question };
    let comparison = compare(&arm(header, entries, a), &arm(header, entries, b), again.as_ref(), &question);
    Comparison { is_again: header.again_of(a) == Some(b), ..comparison }
}

#[cfg(test)]
mod tests {
    use super::{Question, compare_cells, only_pair};
    use crate::comparison::Decision;
    use crate::testing::RunBuilder;

    #[test]
    fn a_second_measurement_of_a_cell_is_known_as_that() {
        let mut run = RunBuilder::new();
        for policy in ["other", "fifo:80", "other", "other"] {
            run.cell("none", policy);
        }
        assert_eq!(run.header.first_cells(), [0, 1]);
        let again: Vec<_> = (0..5).map(|cell| run.header.again_of(cell)).collect();
        assert_eq!(again, [Some(2), None, None, None, None]);
        assert_eq!(super::arm(&run.header, &[], 2).name, "none/other/again");
    }

    #[test]
    fn the_only_two_cells_or_the_only_one_twice_need_no_names() {
        for (policies, pair) in [
            (&["other"][..], None),
            (&["other", "other"], Some((0, 1))),
            (&["other", "fifo:80"], Some((0, 1))),
            (&["other", "fifo:80", "other"], Some((0, 1))),
            (&["other", "fifo:80", "rr:80"], None),
        ] {
            let mut run = RunBuilder::new();
            for policy in policies {
                run.cell("none", policy);
            }
            assert_eq!(only_pair(&run.header), pair, "{policies:?}");
        }
    }

    #[test]
    fn a_cell_compared_with_itself_says_what_its_noise_is() {
        let compared = |times: i64| {
            let mut run = RunBuilder::new();
            run.cell("none", "other").cell("none", "other");
            for block in 0..12u32 {
                for cell in 0..2 {
                    let late = 20_000 + 100 * i64::from((block * 7 + 3) % 5) * if cell == 0 { 1 } else { 2 };
                    let late = if cell == 0 { late } else { late * times };
                    run.measure(block, cell, move |_, cycle| late + i64::try_from(cycle % 1_009).unwrap());
                }
            }
            compare_cells(&run.header, &run.entries, 0, 1, &Question::default())
        };
        let same = compared(1);
        assert_eq!(same.decision, Decision::Equivalent);
        let floor = same.noise_floor.unwrap();
        assert!(same.is_again && floor.0 < 1.05 && floor.1 > 0.95, "{floor:?}");
        assert!(same.remarks()[0].starts_with("Noise floor: two measurements of none/other differ by"));
        assert!(!same.remarks().iter().any(|remark| remark.contains("same configuration")), "{:?}", same.remarks());
        let noisy = compared(2);
        assert_eq!(noisy.decision, Decision::Different);
        assert!(noisy.remarks()[1].starts_with("Both are the same configuration: "), "{:?}", noisy.remarks());
    }
}
