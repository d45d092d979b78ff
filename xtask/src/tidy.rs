//! Rules about the files of this repository beyond the compiler's, as pure functions of their texts.

mod budget;
mod changelog;
mod circles;
mod clock;
mod documents;
mod edges;
mod hostpaths;
mod links;
mod modules;
mod sizes;
mod source;
mod text;
mod tree;
mod unsafety;
mod violation;
mod words;

use std::path::Path;

use tree::Tree;
use violation::Violation;

/// A rule: returns all violations in the tree.
type Rule = fn(&Tree) -> Vec<Violation>;

const RULES: [Rule; 19] = [
    edges::crates,
    edges::floors,
    circles::circles,
    text::opening,
    text::layout,
    sizes::limits,
    budget::limits,
    unsafety::keyword,
    unsafety::forbidden,
    hostpaths::literals,
    changelog::form,
    links::targets,
    documents::specification,
    clock::unread,
    clock::ignored,
    words::avoided,
    words::pointers,
    words::width,
    words::debug,
];

/// Applies all rules to the repository at `root` and prints the violations.
pub(crate) fn run(root: &Path) -> Result<(), String> {
    let tree = Tree::read(root).map_err(|err| format!("reading {}: {err}", root.display()))?;
    let mut violations: Vec<Violation> = RULES.iter().flat_map(|rule| rule(&tree)).collect();
    violations.sort();
    for note in sizes::notes(&tree) {
        println!("tidy: {note}");
    }
    for violation in &violations {
        println!("{violation}");
    }
    match violations.len() {
        0 => Ok(()),
        1 => Err("1 violation of a tidy rule".to_owned()),
        n => Err(format!("{n} violations of tidy rules")),
    }
}

/// For tests: the violations as lines, for comparison with a table.
#[cfg(test)]
fn lines(rule: Rule, files: &[(&str, &str)]) -> Vec<String> {
    rule(&Tree::of(files)).iter().map(ToString::to_string).collect()
}
