//! Rules for the specification: each promise names its test, and each test exists.

use super::Violation;
use super::tree::Tree;
use crate::specification::{PATH, unquoted};

/// Checks that a line `test = "TESTS"` follows each `promise = "..."`.
pub(super) fn specification(tree: &Tree) -> Vec<Violation> {
    let Some(file) = tree.file(PATH) else {
        return vec![Violation::new(PATH, 1, "is missing", "write the promises down, each with its test")];
    };
    let mut found = Vec::new();
    for (line, _) in file.lines().filter(|(_, text)| text.starts_with("promise = ")) {
        let next = file.lines().nth(line).and_then(|(_, text)| text.strip_prefix("test = ")).map(unquoted);
        let is_named = |tests: &&str| tests.contains('`') || ["by hand", "test pending"].contains(tests);
        let Some(tests) = next.filter(is_named) else {
            let remedy = "name the test or bench in the next line, or `test pending`";
            found.push(Violation::new(PATH, line, "a promise without a test", remedy));
            continue;
        };
        let missing = tests.split('`').skip(1).step_by(2).filter(|name| !is_test(tree, name));
        let violation =
            |name| Violation::new(PATH, line + 1, format!("no test `{name}`"), "name the test as it is now");
        found.extend(missing.map(violation));
    }
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
        let without = "docs/specification.toml:2: a promise without a test; name the test or bench in the next line, or \
                       `test pending`";
        for (row, want) in [
            ("test = \"`bench cycle`\"", vec![]),
            ("test = 'test pending'", vec![]),
            ("test = \"slow\"", vec![without]),
            ("measured = []", vec![without]),
        ] {
            let text = format!("[[promise]]\npromise = \"`a`: fast\"\n{row}\n");
            assert_eq!(lines(specification, &[(PATH, text.as_str())]), want, "{row}");
        }
        assert_eq!(lines(specification, &[]).len(), 1);
    }

    #[test]
    fn each_test_exists() {
        let gone =
            |name: &str| vec![format!("docs/specification.toml:2: no test `{name}`; name the test as it is now")];
        for (name, want) in [
            ("cli::a::tests::works", vec![]),
            ("a::wor*", vec![]),
            ("a::*", vec![]),
            ("make bench", vec![]),
            ("a::work", gone("a::work")),
            ("b::*", gone("b::*")),
        ] {
            let text = format!("promise = \"fast\"\ntest = \"`{name}`\"\n");
            let files = [(PATH, text.as_str()), ("crates/x/src/a.rs", "fn works() {}\n")];
            assert_eq!(lines(specification, &files), want, "{name}");
        }
    }
}
