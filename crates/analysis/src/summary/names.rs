//! Names of cells within a run: short, and unique.

use punctual_model::Cell;
use std::collections::HashSet;

/// Names for the cells of one run: load and policy, and every other axis that has more than one value.
///
/// The same words as in the plan: `messaging/fifo:80`, with two periods `messaging/fifo:80/500us`. A cell that is
/// measured a second time (A/A) ends in `/again`.
pub fn of_cells(cells: &[Cell]) -> Vec<String> {
    let (named, mut seen) = (Named::of(cells), HashSet::new());
    cells.iter().map(|cell| named.name(cell, !seen.insert(cell))).collect()
}

/// The name of one of them; `None` if there is no such cell.
pub(crate) fn of_cell(cells: &[Cell], index: usize) -> Option<String> {
    let cell = cells.get(index)?;
    let is_again = cells.iter().take(index).any(|before| before == cell);
    Some(Named::of(cells).name(cell, is_again))
}

/// The axes that are in the names of a run.
struct Named {
    kernel: bool,
    period: bool,
    method: bool,
    prepare: bool,
    /// Whether two outside programs have the same label, so that the command lines tell them apart.
    is_label_unclear: bool,
}

impl Named {
    fn of(cells: &[Cell]) -> Named {
        let varies = |differ: fn(&Cell, &Cell) -> bool| cells.windows(2).any(|pair| differ(&pair[0], &pair[1]));
        Named {
            kernel: varies(|a, b| a.kernel != b.kernel),
            period: varies(|a, b| a.period != b.period),
            method: varies(|a, b| a.task != b.task),
            prepare: varies(|a, b| a.conditions.prepare != b.conditions.prepare),
            is_label_unclear: cells.iter().any(|a| {
                let is_other = |b: &Cell| b.task != a.task && b.task.label() == a.task.label();
                a.task.instrument().is_some() && cells.iter().any(is_other)
            }),
        }
    }

    fn name(&self, cell: &Cell, is_again: bool) -> String {
        let parts = [
            self.kernel.then(|| cell.kernel.to_string()),
            Some(cell.label()),
            self.period.then(|| cell.period.to_string()),
            self.method.then(|| if self.is_label_unclear { cell.task.to_string() } else { cell.task.label() }),
            self.prepare.then(|| cell.conditions.prepare.to_string()),
            is_again.then(|| "again".to_owned()),
        ];
        parts.into_iter().flatten().collect::<Vec<_>>().join("/")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::cell;
    use punctual_model::{Period, Span};

    #[test]
    fn only_axes_that_vary_are_named() {
        assert_eq!(of_cells(&[]), Vec::<String>::new());
        let pair = [cell("none", "other"), cell("messaging", "fifo:80")];
        assert_eq!(of_cells(&pair), ["none/other", "messaging/fifo:80"]);
        let twice = [pair[0].clone(), pair[1].clone(), pair[0].clone()];
        assert_eq!(of_cells(&twice), ["none/other", "messaging/fifo:80", "none/other/again"]);
        let one_by_one: Vec<_> = (0..4).map(|index| of_cell(&twice, index)).collect();
        assert_eq!(one_by_one[..3], of_cells(&twice).into_iter().map(Some).collect::<Vec<_>>());
        assert_eq!(one_by_one[3], None);
        let fast = Cell { period: Period::try_from(Span(500_000)).unwrap(), ..cell("none", "other") };
        assert_eq!(of_cells(&[cell("none", "other"), fast]), ["none/other/1ms", "none/other/500us"]);
        let mut treated = cell("none", "other");
        treated.conditions.prepare = "irq_cpus=0,2,timer_migration=off".parse().unwrap();
        let arms = ["none/other/leave", "none/other/timer_migration=off,irq_cpus=0,2"];
        assert_eq!(of_cells(&[cell("none", "other"), treated]), arms);
    }
}
