//! First lines of files, and the layout of their lines.

use super::Violation;
use super::tree::Tree;

/// Checks that the first line of each Rust file describes it.
pub(super) fn opening(tree: &Tree) -> Vec<Violation> {
    let remedy = "write one that says what the file is, from a capital or a code word to a full stop";
    let broken = tree.files(".rs").filter(|file| !file.text.lines().next().is_some_and(is_opening));
    broken.map(|file| Violation::new(&file.path, 1, "the first line is not a `//!` sentence", remedy)).collect()
}

fn is_opening(line: &str) -> bool {
    let Some(sentence) = line.strip_prefix("//! ") else { return false };
    sentence.starts_with(|c: char| c.is_uppercase() || "`\"'".contains(c)) && sentence.ends_with('.')
}

/// Checks for trailing white space, tabs, and the newline at the end.
pub(super) fn layout(tree: &Tree) -> Vec<Violation> {
    let mut found = Vec::new();
    for file in [".rs", ".md", ".toml"].iter().flat_map(|end| tree.files(end)) {
        let mut add = |line, what, remedy| found.push(Violation::new(&file.path, line, what, remedy));
        for (idx, line) in file.text.split('\n').enumerate() {
            if line.ends_with(char::is_whitespace) {
                add(idx + 1, "white space at the end of the line", "delete it");
            }
            if line.contains('\t') {
                add(idx + 1, "a tab", "write spaces, or `\\t` in a literal");
            }
        }
        let n_lines = file.text.lines().count();
        if !file.text.is_empty() && !file.text.ends_with('\n') {
            add(n_lines, "no newline at the end of the file", "add it");
        } else if file.text.ends_with("\n\n") {
            add(n_lines, "an empty line at the end of the file", "delete it");
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::lines;
    use super::*;

    #[test]
    fn a_file_opens_with_a_sentence() {
        for (line, want) in [
            ("", false),
            ("//! Words.", true),
            ("//! `Cell` in, `Record` out.", true),
            ("//! words.", false),
            ("//! Words", false),
            ("//!Words.", false),
            ("// Words.", false),
            ("use std::fmt;", false),
        ] {
            assert_eq!(is_opening(line), want, "{line}");
        }
        assert_eq!(lines(opening, &[("a.rs", "")]).len(), 1);
        assert_eq!(lines(opening, &[("a.md", "words"), ("tests/golden/a.rs", "words")]).len(), 0);
    }

    #[test]
    fn lines_are_clean() {
        for (text, want) in [
            ("", vec![]),
            ("a\n", vec![]),
            ("a\n\nb\n", vec![]),
            ("a", vec!["a.md:1: no newline at the end of the file; add it"]),
            ("a\n\n", vec!["a.md:2: an empty line at the end of the file; delete it"]),
            ("a \nb\n", vec!["a.md:1: white space at the end of the line; delete it"]),
            ("a\r\n", vec!["a.md:1: white space at the end of the line; delete it"]),
            ("a\n\tb\n", vec!["a.md:2: a tab; write spaces, or `\\t` in a literal"]),
        ] {
            assert_eq!(lines(layout, &[("a.md", text)]), want, "{text:?}");
        }
    }
}
