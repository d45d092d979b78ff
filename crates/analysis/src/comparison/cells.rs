//! Comparing two cells of one run.

use super::{Arm, Comparison, Question, compare};
use crate::name;
use model::{Entry, Header, Selector, Until};

/// A cell of a run as one of the two that are compared.
#[must_use]
pub fn arm<'a>(header: &Header, entries: &'a [Entry], cell_index: usize) -> Arm<'a> {
    let name = name::of_cell(&header.cells, cell_index).unwrap_or_default();
    let is_of_cell = |entry: &&Entry| entry.planned.cell_index == cell_index;
    Arm { name, entries: entries.iter().filter(is_of_cell).collect() }
}

/// Compares two cells of a run; the first with itself, too, if it was measured twice in each block. A run that ended when
/// it was decided was looked at after every block, whatever the question says. In what its cells differ is what a plan asks.
#[must_use]
pub fn compare_cells(header: &Header, entries: &[Entry], a: usize, b: usize, question: &Question<'_>) -> Comparison {
    let again = header.again_of(a).map(|again| arm(header, entries, again));
    let looked_at_every_block = question.looked_at_every_block || header.plan.until == Some(Until::Decided);
    let question = Question { looked_at_every_block, asked: Selector::AXES, ..*question };
    compare(&arm(header, entries, a), &arm(header, entries, b), again.as_ref(), &question)
}

#[cfg(test)]
mod tests {
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
}
