//! The budget of the tree: lines of Rust, words of Markdown, modules that use their parents, against `budget.toml`.

use super::Violation;
use super::circles::crates;
use super::modules::users_of_parents;
use super::tree::{File, Tree};

const PATH: &str = "budget.toml";
/// Name of the lines of all crates.
const ALL: &str = "rust";
/// Name of the words of all documents.
const WORDS: &str = "markdown_words";
/// Name of the modules that use what the file of a module around them defines: a parent defines or re-exports.
const USERS: &str = "users_of_parents";
/// What a number of lines or words may be above the tree: a hundredth, and this much besides.
const SLACK: usize = 100;

/// Parts of the tree that exceed their number, and numbers that are wrong.
pub(super) fn limits(tree: &Tree) -> Vec<Violation> {
    let Some(file) = tree.file(PATH) else {
        return vec![Violation::new(PATH, 1, "is missing", "write down the most lines of each crate")];
    };
    let mut spent = spent(tree);
    let mut found = Vec::new();
    for (line, text) in file.lines().filter(|(_, text)| !text.is_empty() && !text.starts_with('#')) {
        let number = text.split_once(" = ").and_then(|(name, most)| Some((name, most.replace('_', "").parse().ok()?)));
        let Some((name, most)) = number else {
            found.push(Violation::new(PATH, line, format!("invalid line `{text}`"), "write `NAME = NUMBER`"));
            continue;
        };
        let Some(at) = spent.iter().position(|(known, _)| known == name) else {
            found.push(Violation::new(PATH, line, format!("unknown or repeated name `{name}`"), "remove it"));
            continue;
        };
        let (_, n): (_, usize) = spent.remove(at);
        if n > most {
            let remedy = "take some away, or raise the number in this commit and give the reason in its message";
            found.push(Violation::new(PATH, line, format!("{name} has {n}, the most is {most}"), remedy));
        } else if most > n + if name == USERS { 0 } else { n / 100 + SLACK } {
            let remedy = "lower the number, so that it stays a limit";
            found.push(Violation::new(PATH, line, format!("{name} has {n}, far below {most}"), remedy));
        }
    }
    let missing =
        spent.iter().map(|(name, n)| Violation::new(PATH, 1, format!("has no `{name}`"), format!("it has {n}")));
    found.extend(missing);
    found
}

/// The numbers of the tree by name.
fn spent(tree: &Tree) -> Vec<(String, usize)> {
    let lines = |file: &File| file.text.lines().count();
    let mut spent = Vec::<(String, usize)>::new();
    for file in tree.files(".rs") {
        let path = file.path.strip_prefix("crates/").unwrap_or(&file.path);
        let name = path.split('/').next().unwrap_or(path);
        match spent.last_mut().filter(|(last, _)| last == name) {
            Some((_, n)) => *n += lines(file),
            None => spent.push((name.to_owned(), lines(file))),
        }
    }
    let all = spent.iter().map(|(_, n)| n).sum();
    let words = tree.files(".md").map(|file| file.text.split_whitespace().count()).sum();
    let users = crates(tree).values().map(|root| users_of_parents(tree, root)).sum();
    spent.extend([(ALL.to_owned(), all), (WORDS.to_owned(), words), (USERS.to_owned(), users)]);
    spent
}

#[cfg(test)]
mod tests {
    use super::super::lines;
    use super::*;

    #[test]
    fn a_part_has_at_most_its_number_and_not_far_below() {
        let raise = "take some away, or raise the number in this commit and give the reason in its message";
        let lower = "lower the number, so that it stays a limit";
        let rest = "rust = 5\nmarkdown_words = 2\nusers_of_parents = 1\n";
        for (numbers, want) in [
            ("rt = 4\nxtask = 1\n", vec![]),
            ("# why\n\nrt = 1_04\nxtask = 101\n", vec![]),
            ("rt = 1\nxtask = 1\n", vec![format!("budget.toml:1: rt has 4, the most is 1; {raise}")]),
            ("rt = 105\nxtask = 1\n", vec![format!("budget.toml:1: rt has 4, far below 105; {lower}")]),
            ("rt = 4\n", vec!["budget.toml:1: has no `xtask`; it has 1".to_owned()]),
            ("rt = 4\nxtask = 1\nrt = 4\n", vec!["budget.toml:3: unknown or repeated name `rt`; remove it".to_owned()]),
            (
                "rt = 4\nxtask = x\n",
                vec![
                    "budget.toml:2: invalid line `xtask = x`; write `NAME = NUMBER`".to_owned(),
                    "budget.toml:1: has no `xtask`; it has 1".to_owned(),
                ],
            ),
        ] {
            let budget = format!("{numbers}{rest}");
            let files = [
                ("README.md", "two words\n"),
                (PATH, &budget),
                ("crates/rt/src/lib.rs", "mod a;\nfn f() {}\n"),
                ("crates/rt/src/a.rs", "use super::f;\n"),
                ("crates/rt/tests/a.rs", "use super::g;\n"),
                ("xtask/src/main.rs", "//!\n"),
            ];
            assert_eq!(lines(limits, &files), want, "{numbers}");
        }
        assert_eq!(lines(limits, &[]).len(), 1);
    }
}
