//! Rule for SPECIFICATION.md: each promise names its test.

use super::Violation;
use super::tree::Tree;

const PATH: &str = "SPECIFICATION.md";

/// Checks that the last column of every table row is filled, even if only with `test pending`.
pub(super) fn specification(tree: &Tree) -> Vec<Violation> {
    let Some(file) = tree.file(PATH) else {
        return vec![Violation::new(PATH, 1, "is missing", "write the promises down, each with its test")];
    };
    let mut found = Vec::new();
    let mut n_columns = None;
    for (line, text) in file.lines() {
        if !text.starts_with('|') {
            n_columns = None;
            continue;
        }
        let cells = cells(text);
        match n_columns {
            None => n_columns = Some(cells.len()), // the header
            Some(_) if cells.iter().all(|cell| cell.trim_matches([':', '-']).is_empty() && cell.contains('-')) => {}
            Some(n) if cells.len() != n => {
                let what = format!("the row has {} columns, its table {n}", cells.len());
                found.push(Violation::new(PATH, line, what, "fill in what is missing; write a bar in a cell as `\\|`"));
            }
            Some(_) if cells.last().is_some_and(String::is_empty) => {
                let remedy = "name the test or bench in the last column, or write `test pending`";
                found.push(Violation::new(PATH, line, "a promise without a test", remedy));
            }
            Some(_) => {}
        }
    }
    found
}

/// The trimmed cells of `| a | b |`.
fn cells(row: &str) -> Vec<String> {
    let row = row.trim().replace("\\|", "\u{0}");
    let row = row.strip_prefix('|').unwrap_or(&row);
    let row = row.strip_suffix('|').unwrap_or(row);
    row.split('|').map(|cell| cell.trim().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::super::lines;
    use super::*;

    #[test]
    fn each_row_names_a_test() {
        for (row, want) in [
            ("| fast | `bench cycle` |", vec![]),
            ("| fast \\| slow | test pending |", vec![]),
            (
                "| fast | |",
                vec![
                    "SPECIFICATION.md:5: a promise without a test; name the test or bench in the last column, or write `test pending`",
                ],
            ),
            (
                "| fast |",
                vec![
                    "SPECIFICATION.md:5: the row has 1 columns, its table 2; fill in what is missing; write a bar in a cell as `\\|`",
                ],
            ),
        ] {
            let text = format!("# S\n\n| promise | |\n| :--- | ---: |\n{row}\n\nText.\n");
            assert_eq!(lines(specification, &[("SPECIFICATION.md", text.as_str())]), want, "{row}");
        }
        assert_eq!(lines(specification, &[]).len(), 1);
    }
}
