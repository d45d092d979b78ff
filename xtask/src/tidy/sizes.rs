//! Limits on the length of files: a file is read as a whole, and a long one has more than one subject.

use super::Violation;
use super::tree::{File, Tree};

/// Length from which `tidy` mentions the file.
const LONG: usize = 400;
/// The longest accepted file, lines.
const MOST: usize = 600;
/// The longest accepted `main.rs`, which only dispatches.
const MOST_MAIN: usize = 60;

fn n_lines(file: &File) -> usize {
    file.text.lines().count()
}

fn measured(tree: &Tree) -> impl Iterator<Item = &File> {
    tree.files(".rs").filter(|file| !file.is_test())
}

/// Files that exceed their limit.
pub(super) fn limits(tree: &Tree) -> Vec<Violation> {
    let mut found = Vec::new();
    for file in measured(tree) {
        let n = n_lines(file);
        let most = if file.path.ends_with("/main.rs") { MOST_MAIN } else { MOST };
        if n > most {
            let what = format!("{n} lines, the most is {most}");
            found.push(Violation::new(&file.path, n, what, "divide it by what its parts are about"));
        }
    }
    found
}

/// Notes that are not violations: the median length, and files near the limit.
pub(super) fn notes(tree: &Tree) -> Vec<String> {
    let mut lengths: Vec<usize> = measured(tree).map(n_lines).collect();
    lengths.sort_unstable();
    let median = lengths.get(lengths.len() / 2).copied().unwrap_or_default();
    let longest = lengths.last().copied().unwrap_or_default();
    let summary = format!("{} source files, median {median} lines, longest {longest}", lengths.len());
    let long = measured(tree).filter(|file| (LONG + 1..=MOST).contains(&n_lines(file)));
    let warnings =
        long.map(|file| format!("warning: {}: {} lines, think of dividing it at {LONG}", file.path, n_lines(file)));
    warnings.chain([summary]).collect()
}

#[cfg(test)]
mod tests {
    use super::super::lines;
    use super::*;

    #[test]
    fn limits_are_inclusive() {
        for (path, n, n_violations, n_warnings) in [
            ("crates/rt/src/log.rs", 400, 0, 0),
            ("crates/rt/src/log.rs", 401, 0, 1),
            ("crates/rt/src/log.rs", 600, 0, 1),
            ("crates/rt/src/log.rs", 601, 1, 0),
            ("crates/rt/src/log/tests.rs", 601, 0, 0),
            ("tests/cli/run.rs", 601, 0, 0),
            ("xtask/src/main.rs", 60, 0, 0),
            ("xtask/src/main.rs", 61, 1, 0),
        ] {
            let text = "//\n".repeat(n);
            let files = [(path, text.as_str())];
            assert_eq!(lines(limits, &files).len(), n_violations, "{path} {n}");
            assert_eq!(notes(&Tree::of(&files)).len(), n_warnings + 1, "{path} {n}");
        }
    }

    #[test]
    fn the_summary_names_the_median() {
        let files = [("a.rs", "1\n"), ("b.rs", "1\n2\n3\n"), ("c.rs", "1\n2\n")];
        assert_eq!(notes(&Tree::of(&files)), ["3 source files, median 2 lines, longest 3"]);
        assert_eq!(notes(&Tree::of(&[])), ["0 source files, median 0 lines, longest 0"]);
    }
}
