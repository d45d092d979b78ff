//! Who may use whom: the edges that ARCHITECTURE.md prints are the ones that exist, in both directions.

use std::collections::{BTreeMap, BTreeSet};

use super::tree::{File, Tree};
use super::{Violation, source};

const DOCUMENT: &str = "ARCHITECTURE.md";
const BINARY: &str = "crates/punctual/src/";

/// Edges `(from, to)` with the path and line where each was first seen.
type Edges = BTreeMap<(String, String), (String, usize)>;

/// Dependencies between the crates of the workspace, against the block "```text crates".
pub(super) fn crates(tree: &Tree) -> Vec<Violation> {
    let manifests: Vec<(&str, &File)> =
        tree.files("/Cargo.toml").filter_map(|f| Some((crate_name(&f.path)?, f))).collect();
    let mut real = Edges::new();
    for (from, file) in &manifests {
        for (line, to) in dependencies(file).filter(|(_, to)| manifests.iter().any(|(name, _)| name == to)) {
            note(&mut real, from, to, file, line);
        }
    }
    compare(tree, "crates", &real)
}

/// `use crate::...` between the modules of the binary, against the block "```text modules".
pub(super) fn modules(tree: &Tree) -> Vec<Violation> {
    let files: Vec<(&str, &File)> =
        tree.files(".rs").filter(|f| !f.is_test()).filter_map(|f| Some((module_name(&f.path)?, f))).collect();
    let names: BTreeSet<&str> = files.iter().map(|(name, _)| *name).collect();
    let mut real = Edges::new();
    for (from, file) in &files {
        for (line, to) in uses(&source::divide(&file.text).code) {
            if to != *from && names.contains(to.as_str()) {
                note(&mut real, from, &to, file, line);
            }
        }
    }
    compare(tree, "modules", &real)
}

fn note(edges: &mut Edges, from: &str, to: &str, file: &File, line: usize) {
    edges.entry((from.to_owned(), to.to_owned())).or_insert_with(|| (file.path.clone(), line));
}

fn compare(tree: &Tree, block: &str, real: &Edges) -> Vec<Violation> {
    let Some(printed) = tree.file(DOCUMENT).and_then(|file| printed(file, block)) else {
        let what = format!("has no block that starts with ```text {block}");
        return vec![Violation::new(DOCUMENT, 1, what, "print the edges there, one `from -> to, to` a line")];
    };
    let unprinted = real.iter().filter(|(edge, _)| !printed.contains_key(edge)).map(|((from, to), (path, line))| {
        let what = format!("edge {from} -> {to} is not printed in {DOCUMENT}");
        Violation::new(path, *line, what, "remove the use, or argue for it there")
    });
    let unused = printed.iter().filter(|(edge, _)| !real.contains_key(edge)).map(|((from, to), (path, line))| {
        Violation::new(path, *line, format!("edge {from} -> {to} does not exist"), "take it out of the block")
    });
    unprinted.chain(unused).collect()
}

/// The edges of one fenced block; `#` starts a remark. `None` when there is no such block.
fn printed(file: &File, block: &str) -> Option<Edges> {
    let mut lines = file.lines().skip_while(|(_, line)| line.trim_end() != format!("```text {block}"));
    lines.next()?;
    let mut edges = Edges::new();
    for (line, text) in lines.take_while(|(_, line)| !line.starts_with("```")) {
        let Some((from, to)) = text.split('#').next().and_then(|text| text.split_once("->")) else {
            continue;
        };
        for to in to.split(',').map(str::trim).filter(|to| !to.is_empty()) {
            note(&mut edges, from.trim(), to, file, line);
        }
    }
    Some(edges)
}

/// `model` for `crates/model/Cargo.toml`, `xtask` for `xtask/Cargo.toml`.
fn crate_name(path: &str) -> Option<&str> {
    let name = path.strip_suffix("/Cargo.toml")?;
    let name = name.strip_prefix("crates/").unwrap_or(name);
    (!name.contains('/')).then_some(name)
}

/// Keys below `[dependencies]` and `[target.*.dependencies]`. Those of tests and build scripts bind nobody.
fn dependencies(file: &File) -> impl Iterator<Item = (usize, &str)> {
    let mut inside = false;
    file.lines().filter_map(move |(line, text)| {
        if let Some(section) = text.trim().strip_prefix('[') {
            let section = section.trim_end_matches(']');
            inside = section == "dependencies" || section.ends_with(".dependencies");
            return section.strip_prefix("dependencies.").map(|key| (line, key));
        }
        let key = text.split(['.', '=', ' ']).next().filter(|key| inside && !key.is_empty())?;
        Some((line, key))
    })
}

/// `host` for `crates/punctual/src/host.rs` and all below `crates/punctual/src/host/`. The root may use everything.
fn module_name(path: &str) -> Option<&str> {
    let name = path.strip_prefix(BINARY)?.split('/').next()?;
    let name = name.strip_suffix(".rs").unwrap_or(name);
    (name != "main" && name != "lib").then_some(name)
}

/// Every NAME of `crate::NAME` and of `crate::{NAME::..., NAME}`, with its line.
fn uses(code: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (at, path) in code.match_indices("crate::") {
        if code[..at].ends_with(source::is_word) {
            continue;
        }
        let line = 1 + code[..at].matches('\n').count();
        let rest = code[at + path.len()..].trim_start();
        let Some(group) = rest.strip_prefix('{') else {
            found.push((line, word(rest)));
            continue;
        };
        let mut depth = 0_usize;
        // Whether a name of the group may begin here.
        let mut starts = true;
        for (idx, c) in group.char_indices() {
            match c {
                '{' => depth += 1,
                '}' if depth == 0 => break,
                '}' => depth -= 1,
                ',' if depth == 0 => starts = true,
                c if starts && source::is_word(c) => {
                    found.push((line, word(&group[idx..])));
                    starts = false;
                }
                _ => {}
            }
        }
    }
    found
}

fn word(text: &str) -> String {
    text.chars().take_while(|c| source::is_word(*c)).collect()
}

#[cfg(test)]
mod tests;
