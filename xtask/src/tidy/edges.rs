//! Allowed dependencies: the edges that ARCHITECTURE.md prints are exactly those of the code.

use std::collections::BTreeMap;

use super::Violation;
use super::modules::uses;
use super::tree::{File, Tree};

const DOCUMENT: &str = "ARCHITECTURE.md";
const STATISTICS: &str = "crates/analysis/src/";
/// Begin of the names of our packages, as Cargo knows them.
const PACKAGES: &str = "punctual-";

/// Edges `(from, to)` with the path and line of the first occurrence.
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

/// Dependencies between the modules of `analysis`, against the block "```text floors".
pub(super) fn floors(tree: &Tree) -> Vec<Violation> {
    compare(tree, "floors", &top_modules(tree, STATISTICS))
}

/// Dependencies among the top modules of a crate. The root may use all of them.
fn top_modules(tree: &Tree, root: &str) -> Edges {
    let mut edges = Edges::new();
    for one in uses(tree, root) {
        if let ([from, ..], [to, ..]) = (one.from.as_slice(), one.to.as_slice())
            && from != to
        {
            note(&mut edges, from, to, one.file, one.line);
        }
    }
    edges
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

/// The edges of one fenced block. `None` when there is no such block.
fn printed(file: &File, name: &str) -> Option<Edges> {
    let mut edges = Edges::new();
    for (line, text) in block(file, name)? {
        let Some((from, to)) = text.split_once("->") else {
            continue;
        };
        for to in to.split(',').map(str::trim).filter(|to| !to.is_empty()) {
            note(&mut edges, from.trim(), to, file, line);
        }
    }
    Some(edges)
}

/// The lines of one fenced block; `#` starts a comment. `None` when there is no such block.
fn block<'a>(file: &'a File, name: &str) -> Option<impl Iterator<Item = (usize, &'a str)> + use<'a>> {
    let fence = format!("```text {name}");
    let mut lines = file.lines().skip_while(move |(_, line)| line.trim_end() != fence);
    lines.next()?;
    let inside = lines.take_while(|(_, line)| !line.starts_with("```"));
    Some(inside.map(|(line, text)| (line, text.split('#').next().unwrap_or_default())))
}

/// `model` for `crates/model/Cargo.toml`, `xtask` for `xtask/Cargo.toml`.
fn crate_name(path: &str) -> Option<&str> {
    let name = path.strip_suffix("/Cargo.toml")?;
    let name = name.strip_prefix("crates/").unwrap_or(name);
    (!name.contains('/')).then_some(name)
}

/// Keys below `[dependencies]` and `[target.*.dependencies]`. Dependencies of tests and build scripts are ignored.
fn dependencies(file: &File) -> impl Iterator<Item = (usize, &str)> {
    let mut inside = false;
    file.lines().filter_map(move |(line, text)| {
        if let Some(section) = text.trim().strip_prefix('[') {
            let section = section.trim_end_matches(']');
            inside = section == "dependencies" || section.ends_with(".dependencies");
            let key = section.strip_prefix("dependencies.")?;
            return Some((line, key.strip_prefix(PACKAGES).unwrap_or(key)));
        }
        let key = text.split(['.', '=', ' ']).next().filter(|key| inside && !key.is_empty())?;
        Some((line, key.strip_prefix(PACKAGES).unwrap_or(key)))
    })
}

#[cfg(test)]
mod tests {
    use super::super::lines;
    use super::*;

    const MODEL: (&str, &str) = ("crates/model/Cargo.toml", "[dependencies]\nserde = \"1\"\n");

    #[test]
    fn crate_edges_agree_in_both_directions() {
        let rt = "[package]\nname = \"punctual-rt\"\n[dependencies]\nlibc = \"0.2\"\nmodel.workspace = true\n";
        let printed = "# A\n```text crates\nrt -> model   # words\nmodel\n```\n";
        for (document, manifest, want) in [
            (printed, rt, vec![]),
            (
                printed,
                "[dev-dependencies]\nmodel = \"1\"\n",
                vec!["ARCHITECTURE.md:3: edge rt -> model does not exist; take it out of the block"],
            ),
            (printed, "[dependencies.model]\npath = \"x\"\n", vec![]),
            (printed, "[target.'cfg(unix)'.dependencies]\nmodel = { path = \"x\" }\n", vec![]),
            (
                "```text crates\n```\n",
                rt,
                vec![
                    "crates/rt/Cargo.toml:5: edge rt -> model is not printed in ARCHITECTURE.md; remove the use, or argue for it there",
                ],
            ),
            (
                "```text modules\n```\n",
                rt,
                vec![
                    "ARCHITECTURE.md:1: has no block that starts with ```text crates; print the edges there, one `from -> to, to` a line",
                ],
            ),
        ] {
            let files = [("ARCHITECTURE.md", document), MODEL, ("crates/rt/Cargo.toml", manifest)];
            assert_eq!(lines(crates, &files), want, "{manifest}");
        }
    }

    #[test]
    fn floors_agree_in_both_directions() {
        let printed = "```text floors\ncli -> host, load\n```\n";
        for (cli, want) in [
            ("use crate::host::Facts;\nuse crate::load;\n", vec![]),
            ("use crate::{host::{Facts, store}, load};\n", vec![]),
            ("use crate::host;\nfn f() { crate::load::g(); }\n", vec![]),
            (
                "use crate::host; // crate::store\nconst S: &str = \"crate::store\";\nuse crate::load;\nuse crate::cli::x;\n",
                vec![],
            ),
            (
                "use crate::host;\n",
                vec!["ARCHITECTURE.md:2: edge cli -> load does not exist; take it out of the block"],
            ),
            (
                "use crate::{\n    host,\n    load, store::Run,\n};\n",
                vec![
                    "crates/analysis/src/cli/mod.rs:1: edge cli -> store is not printed in ARCHITECTURE.md; remove the use, or argue for it there",
                ],
            ),
        ] {
            let files = [
                ("ARCHITECTURE.md", printed),
                ("crates/analysis/src/lib.rs", "mod store;\nuse crate::store::Run;\n"),
                ("crates/analysis/src/cli/mod.rs", cli),
                ("crates/analysis/src/cli/tests.rs", "use crate::store::Run;\n"),
                ("crates/analysis/src/host.rs", ""),
                ("crates/analysis/src/load/cpu.rs", "use crate::load::Load;\n"),
                ("crates/analysis/src/store.rs", ""),
            ];
            assert_eq!(lines(floors, &files), want, "{cli}");
        }
    }
}
