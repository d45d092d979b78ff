//! Rules for SPECIFICATION.md: each promise names its test, each test exists, each result has its promise.

use super::Violation;
use super::tree::Tree;
use crate::specification::{RESULTS, results};

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
            Some(_) => {
                let names = cells.last().into_iter().flat_map(|last| last.split('`').skip(1).step_by(2));
                let missing = names.filter(|name| !is_test(tree, name));
                let remedy = "name the test as it is now";
                let violation = |name| Violation::new(PATH, line, format!("no test `{name}`"), remedy);
                found.extend(missing.map(violation));
            }
        }
    }
    let measured = tree.file(RESULTS).map(|file| results(&file.text)).unwrap_or_default();
    let rows = measured.iter().filter(|(promise, _)| !file.text.contains(&format!("\n| {promise} | ")));
    let remedy = "copy the promise from its row";
    found.extend(rows.map(|(promise, (line, _))| Violation::new(RESULTS, *line, format!("no row `{promise}`"), remedy)));
    found
}

/// Whether a test of this name exists: `room::name`, `room::start_*` or `room::*`. Anything else is a command.
fn is_test(tree: &Tree, name: &str) -> bool {
    let is_letter = |c: char| c.is_ascii_alphanumeric() || "_:*".contains(c);
    let Some((path, name)) = name.rsplit_once("::").filter(|_| name.chars().all(is_letter)) else {
        return true;
    };
    let room = path.split("::").filter(|part| *part != "tests").last().unwrap_or_default();
    let wanted = match name.strip_suffix('*') {
        Some("") => String::new(),
        Some(start) => format!("fn {start}"),
        None => format!("fn {name}("),
    };
    let mut files = tree.files(".rs").filter(|file| file.path.trim_end_matches(".rs").split('/').any(|p| p == room));
    files.any(|file| file.text.contains(&wanted))
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

    #[test]
    fn each_test_exists_and_each_result_has_its_promise() {
        let gone = |name: &str| vec![format!("SPECIFICATION.md:3: no test `{name}`; name the test as it is now")];
        for (name, want) in [
            ("cli::a::tests::works", vec![]),
            ("a::wor*", vec![]),
            ("a::*", vec![]),
            ("make bench", vec![]),
            ("a::work", gone("a::work")),
            ("b::*", gone("b::*")),
        ] {
            let text = format!("| promise | |\n| --- | --- |\n| fast | `{name}` |\n");
            let files = [(PATH, text.as_str()), ("crates/x/src/a.rs", "fn works() {}\n")];
            assert_eq!(lines(specification, &files), want, "{name}");
        }
        let files = [(PATH, "\n| fast | x |\n"), (RESULTS, "promise = \"fast\"\npromise = \"slow\"\n")];
        let want = ["docs/measured.toml:2: no row `slow`; copy the promise from its row"];
        assert_eq!(lines(specification, &files), want);
    }
}
