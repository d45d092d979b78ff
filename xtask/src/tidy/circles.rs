//! Cyclic dependencies between sibling modules, direct or indirect: none of them can be understood without the others.
//!
//! A module and its submodules count as one.

use std::collections::{BTreeMap, BTreeSet};

use super::Violation;
use super::modules::uses;
use super::tree::Tree;

/// Dependencies among the submodules of one module, with the file and line of the first use.
type Level = BTreeMap<String, BTreeMap<String, (String, usize)>>;

/// Cycles by their members, with the position of the first use.
type Circles = BTreeMap<String, (String, usize)>;

/// All cycles.
pub(super) fn circles(tree: &Tree) -> Vec<Violation> {
    let real = crates(tree).into_iter().flat_map(|(name, root)| of_crate(tree, name, &root));
    let told = real.map(|(circle, (path, line))| {
        let what = format!("modules use each other in a circle: {circle}");
        Violation::new(&path, line, what, "move what both need into a module of its own")
    });
    told.collect()
}

/// Every crate with its sources: `model` and `crates/model/src/`.
pub(super) fn crates(tree: &Tree) -> BTreeMap<&str, String> {
    let roots = tree.files(".rs").filter_map(|file| {
        let root = file.path.strip_suffix("lib.rs").or_else(|| file.path.strip_suffix("main.rs"))?;
        let name = root.strip_suffix("/src/")?;
        Some((name.strip_prefix("crates/").unwrap_or(name), root.to_owned()))
    });
    roots.filter(|(name, _)| !name.contains('/')).collect()
}

fn of_crate(tree: &Tree, name: &str, root: &str) -> Circles {
    let mut levels: BTreeMap<String, Level> = BTreeMap::new();
    for one in uses(tree, root) {
        let shared = one.from.iter().zip(&one.to).take_while(|(from, to)| from == to).count();
        let parent = [&[name.to_owned()], &one.from[..shared]].concat().join("::");
        let uses = levels.entry(parent).or_default().entry(one.from[shared].clone()).or_default();
        uses.entry(one.to[shared].clone()).or_insert_with(|| (one.file.path.clone(), one.line));
    }
    levels.iter().flat_map(|(parent, level)| of_level(parent, level)).collect()
}

fn of_level(parent: &str, level: &Level) -> Circles {
    let reached: BTreeMap<&str, BTreeSet<&str>> = level.keys().map(|from| (&**from, reached(level, from))).collect();
    let mut circles = Circles::new();
    for (from, to) in &reached {
        let is_both_ways = |other: &&&str| reached.get(**other).is_some_and(|back| back.contains(from));
        let members: Vec<&str> = to.iter().filter(is_both_ways).copied().collect();
        let within = level[*from].iter().find(|(to, _)| members.contains(&to.as_str()));
        if let Some((_, place)) = within {
            circles.entry(format!("{parent}: {}", members.join(", "))).or_insert_with(|| place.clone());
        }
    }
    circles
}

/// All modules that a module uses, directly or indirectly; includes itself only if there is a cycle.
fn reached<'a>(level: &'a Level, from: &'a str) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut open: Vec<&str> = vec![from];
    while let Some(next) = open.pop() {
        let uses = level.get(next).into_iter().flat_map(BTreeMap::keys);
        open.extend(uses.map(String::as_str).filter(|to| reached.insert(*to)));
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::super::lines;
    use super::*;

    /// The violations in a crate of these modules.
    fn found(modules: &[(&str, &str)]) -> Vec<String> {
        let paths: Vec<_> = modules.iter().map(|(name, _)| format!("crates/m/src/{name}.rs")).collect();
        let mut files = vec![("crates/m/src/lib.rs", "use a::f;\n")];
        files.extend(paths.iter().map(String::as_str).zip(modules.iter().map(|(_, text)| *text)));
        lines(circles, &files)
    }

    #[test]
    fn modules_that_need_each_other_are_found() {
        let circle = "crates/m/src/a.rs:1: modules use each other in a circle: m: a, b, c; move what both need into a \
                      module of its own";
        let none: Vec<String> = Vec::new();
        let chain = [("a", "use crate::b;\n"), ("b", "use crate::c;\n"), ("c", "")];
        assert_eq!(found(&chain), none);
        let closed =
            [("a", "use crate::b;\n"), ("b", "use crate::c::part::f;\n"), ("c", ""), ("c/part", "use crate::a;\n")];
        assert_eq!(found(&closed), [circle]);
        let with_user = [closed.as_slice(), &[("d", "use crate::a;\n")]].concat();
        assert_eq!(found(&with_user), [circle], "a module that uses a cycle is not part of it");
    }

    #[test]
    fn each_folder_is_looked_at_by_itself() {
        let inner = [("a", ""), ("a/x", "use super::y::f;\n"), ("a/y", "fn g() {\n    crate::a::x::h();\n}\n")];
        let what = "crates/m/src/a/x.rs:1: modules use each other in a circle: m::a: x, y; move what both need into a \
                    module of its own";
        assert_eq!(found(&inner), [what]);
        let parent = [("a", "mod x;\nuse x::f;\n"), ("a/x", "use super::g;\n")];
        assert_eq!(found(&parent), Vec::<String>::new(), "a module and what it contains are one");
    }
}
