//! Rules for SPECIFICATION.md: each promise names its test, each test exists, each result has its promise.

use super::Violation;
use super::tree::Tree;
use crate::specification::{RESULTS, results};

const PATH: &str = "SPECIFICATION.md";

/// Checks the list items `* PROMISE: TESTS`, and the results of the promises.
pub(super) fn specification(tree: &Tree) -> Vec<Violation> {
    let Some(file) = tree.file(PATH) else {
        return vec![Violation::new(PATH, 1, "is missing", "write the promises down, each with its test")];
    };
    let mut found = Vec::new();
    for (line, text) in file.lines().filter(|(_, text)| text.starts_with("* ")) {
        let is_named = |tests: &str| tests.contains('`') || ["\"", "by hand", "test pending"].contains(&tests);
        let Some((_, tests)) = text.rsplit_once(": ").filter(|(_, tests)| is_named(tests)) else {
            let remedy = "end it in `: ` and the test or bench, or `test pending`";
            found.push(Violation::new(PATH, line, "a promise without a test", remedy));
            continue;
        };
        let missing = tests.split('`').skip(1).step_by(2).filter(|name| !is_test(tree, name));
        let violation = |name| Violation::new(PATH, line, format!("no test `{name}`"), "name the test as it is now");
        found.extend(missing.map(violation));
    }
    let measured = tree.file(RESULTS).map(|file| results(&file.text)).unwrap_or_default();
    let rows = measured.iter().filter(|(promise, _)| !file.text.contains(&format!("\n* {promise}: ")));
    let remedy = "copy the promise from its row";
    found
        .extend(rows.map(|(promise, (line, _))| Violation::new(RESULTS, *line, format!("no row `{promise}`"), remedy)));
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

#[cfg(test)]
mod tests {
    use super::super::lines;
    use super::*;

    #[test]
    fn each_promise_names_a_test() {
        let without =
            "SPECIFICATION.md:3: a promise without a test; end it in `: ` and the test or bench, or `test pending`";
        for (row, want) in [
            ("* fast: `bench cycle`", vec![]),
            ("* `a`: fast: test pending", vec![]),
            ("* fast: slow", vec![without]),
            ("* fast", vec![without]),
        ] {
            let text = format!("# S\n\n{row}\n\nText.\n");
            assert_eq!(lines(specification, &[(PATH, text.as_str())]), want, "{row}");
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
            let text = format!("# S\n\n* fast: `{name}`\n");
            let files = [(PATH, text.as_str()), ("crates/x/src/a.rs", "fn works() {}\n")];
            assert_eq!(lines(specification, &files), want, "{name}");
        }
        let files = [(PATH, "\n* fast: by hand\n"), (RESULTS, "promise = \"fast\"\npromise = \"slow\"\n")];
        let want = ["docs/measured.toml:2: no row `slow`; copy the promise from its row"];
        assert_eq!(lines(specification, &files), want);
    }
}
