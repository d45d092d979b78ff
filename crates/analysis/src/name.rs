//! What a run calls its cells: short, and different for each.

use model::Cell;

/// Names for the cells of one run: load and policy, and every other axis that has more than one value.
///
/// The same words as in the plan: `messaging/fifo:80`, with two periods `messaging/fifo:80/500us`. A cell that is measured
/// a second time (A/A) ends in `/again`.
#[must_use]
pub fn of_cells(cells: &[Cell]) -> Vec<String> {
    let varies = |differ: fn(&Cell, &Cell) -> bool| cells.windows(2).any(|pair| differ(&pair[0], &pair[1]));
    let kernel = varies(|a, b| a.kernel != b.kernel);
    let period = varies(|a, b| a.period != b.period);
    let method = varies(|a, b| a.method != b.method);
    let name = |cell: &Cell| {
        let parts = [
            kernel.then(|| cell.kernel.to_string()),
            Some(cell.label()),
            period.then(|| cell.period.to_string()),
            method.then(|| cell.method.to_string()),
        ];
        parts.into_iter().flatten().collect::<Vec<_>>().join("/")
    };
    let again = |i: usize, cell: &Cell| if cells.iter().take(i).any(|before| before == cell) { "/again" } else { "" };
    cells.iter().enumerate().map(|(i, cell)| name(cell) + again(i, cell)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::cell;
    use model::{Period, Span};

    #[test]
    fn only_axes_that_vary_are_named() {
        assert_eq!(of_cells(&[]), Vec::<String>::new());
        let pair = [cell("none", "other"), cell("messaging", "fifo:80")];
        assert_eq!(of_cells(&pair), ["none/other", "messaging/fifo:80"]);
        let twice = [pair[0].clone(), pair[1].clone(), pair[0].clone()];
        assert_eq!(of_cells(&twice), ["none/other", "messaging/fifo:80", "none/other/again"]);
        let fast = Cell { period: Period::try_from(Span(500_000)).unwrap(), ..cell("none", "other") };
        assert_eq!(of_cells(&[cell("none", "other"), fast]), ["none/other/1ms", "none/other/500us"]);
    }
}
