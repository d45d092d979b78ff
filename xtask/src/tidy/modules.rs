//! Dependencies between the modules of a crate, from the paths in its code.
//!
//! A path is followed through re-exports to the module that defines its item. Tests are exempt: they may use
//! everything.

use std::collections::{BTreeMap, BTreeSet};

use super::source;
use super::tree::{File, Tree};

/// The names from the root of a crate to a module; empty for the root.
pub(super) type Module = Vec<String>;

/// The most re-exports that are followed for one path.
const MOST_STEPS: usize = 8;

/// A use of one module by another.
pub(super) struct Use<'a> {
    pub(super) from: Module,
    pub(super) to: Module,
    pub(super) file: &'a File,
    pub(super) line: usize,
    /// Whether the file of `to` may define the item, and does not just re-export it by `*`.
    is_defined: bool,
}

/// A path in the code.
#[derive(Debug, PartialEq)]
struct Path {
    segments: Vec<String>,
    /// The name that a `use` gives it; `None` elsewhere.
    name: Option<String>,
    line: usize,
}

/// The modules of a crate with the meaning of their `use` declarations.
struct Names {
    modules: BTreeSet<Module>,
    imports: BTreeMap<Module, BTreeMap<String, Vec<String>>>,
    /// The code of modules that re-export by `*`.
    with_stars: BTreeMap<Module, String>,
}

/// Every use of a module by another one in the crate with sources below `root`, neither of which contains the other.
pub(super) fn uses<'a>(tree: &'a Tree, root: &str) -> Vec<Use<'a>> {
    let apart = |one: &Use<'_>| !one.to.starts_with(&one.from) && !one.from.starts_with(&one.to);
    every_use(tree, root).into_iter().filter(apart).collect()
}

/// The number of modules that use what the file of a module around them defines.
pub(super) fn users_of_parents(tree: &Tree, root: &str) -> usize {
    let is_of_parent = |one: &Use<'_>| one.is_defined && one.to.len() < one.from.len() && one.from.starts_with(&one.to);
    let users = every_use(tree, root).into_iter().filter(is_of_parent).map(|one| one.from);
    users.collect::<BTreeSet<Module>>().len()
}

fn every_use<'a>(tree: &'a Tree, root: &str) -> Vec<Use<'a>> {
    let sources = tree.files(".rs").filter(|file| !file.is_test());
    let parsed: Vec<(Module, &File, Vec<Path>)> =
        sources.filter_map(|file| Some((module(&file.path, root)?, file, paths(&code(&file.text))))).collect();
    let modules = parsed.iter().flat_map(|(module, ..)| (0..=module.len()).map(|n| module[..n].to_vec())).collect();
    let mut names = Names { modules, imports: BTreeMap::new(), with_stars: BTreeMap::new() };
    for (module, file, paths) in &parsed {
        if paths.iter().any(|path| path.name.as_deref() == Some("*") && path.segments[0] != "super") {
            names.with_stars.insert(module.clone(), code(&file.text));
        }
        let imports =
            paths.iter().filter_map(|path| Some((path.name.clone()?, names.absolute(module, &path.segments)?)));
        let imports = imports.collect();
        names.imports.insert(module.clone(), imports);
    }
    let mut found = Vec::new();
    for (from, file, paths) in parsed {
        for path in paths {
            let to = names.absolute(&from, &path.segments).map(|absolute| names.home(&absolute, MOST_STEPS));
            let item = path.segments.last().map_or("", String::as_str);
            let of = |to: Module| Use {
                is_defined: names.may_define(&to, item),
                from: from.clone(),
                to,
                file,
                line: path.line,
            };
            found.extend(to.map(of));
        }
    }
    found
}

impl Names {
    /// The path from the root of the crate; `None` when it leaves the crate, or is a local name.
    fn absolute(&self, module: &[String], segments: &[String]) -> Option<Vec<String>> {
        let (base, rest) = match segments.first()?.as_str() {
            "crate" => (0, &segments[1..]),
            "self" => (module.len(), &segments[1..]),
            "super" => {
                let up = segments.iter().take_while(|segment| *segment == "super").count();
                (module.len().checked_sub(up)?, &segments[up..])
            }
            child => {
                let child = [module, &[child.to_owned()]].concat();
                (module.len(), self.modules.contains(&child).then_some(segments)?)
            }
        };
        Some([&module[..base], rest].concat())
    }

    /// Whether the file of a module defines this item, as far as its text shows.
    fn may_define(&self, module: &[String], item: &str) -> bool {
        let Some(code) = self.with_stars.get(module) else { return true };
        ["struct", "enum", "trait", "type", "fn", "const", "static", "macro_rules!"].iter().any(|kind| {
            let start = format!("{kind} {item}");
            code.match_indices(&start).any(|(at, _)| !code[at + start.len()..].starts_with(source::is_word))
        })
    }

    /// The module that defines the item of this path from the root.
    fn home(&self, path: &[String], steps: usize) -> Module {
        let mut module = Module::new();
        for (idx, segment) in path.iter().enumerate() {
            let child = [&module[..], std::slice::from_ref(segment)].concat();
            if self.modules.contains(&child) {
                module = child;
                continue;
            }
            let import = self.imports.get(&module).and_then(|imports| imports.get(segment)).filter(|_| steps > 0);
            return match import {
                Some(import) => self.home(&[import, &path[idx + 1..]].concat(), steps - 1),
                None => module,
            };
        }
        module
    }
}

/// `["host", "cpu"]` for `host/cpu.rs` below `root`.
fn module(path: &str, root: &str) -> Option<Module> {
    let name = path.strip_prefix(root)?.strip_suffix(".rs")?;
    let name = name.strip_suffix("/mod").unwrap_or(name);
    let is_root = name == "lib" || name == "main";
    Some(if is_root { Module::new() } else { name.split('/').map(str::to_owned).collect() })
}

/// The code of a file, with its test module blanked.
fn code(text: &str) -> String {
    let mut code = source::divide(text).code;
    while let Some((from, to)) = tests(&code) {
        let blank: String = code[from..to].chars().map(|c| if c == '\n' { c } else { ' ' }).collect();
        code.replace_range(from..to, &blank);
    }
    code
}

/// Start and end of `#[cfg(test)] mod name { ... }`.
fn tests(code: &str) -> Option<(usize, usize)> {
    const CFG: &str = "#[cfg(test)]";
    code.match_indices(CFG).find_map(|(from, _)| {
        let open = from + code[from..].find('{')?;
        let head = code[from + CFG.len()..open].trim();
        let is_module = !head.contains(';') && head.split_whitespace().rev().nth(1) == Some("mod");
        let mut depth = 0_usize;
        let close = code[open..].char_indices().find_map(|(idx, c)| {
            match c {
                '{' => depth += 1,
                '}' => depth -= 1,
                _ => {}
            }
            (depth == 0).then_some(open + idx + 1)
        });
        is_module.then(|| (from, close.unwrap_or(code.len())))
    })
}

/// The paths of `use` declarations, and other paths that begin with `crate`, `self` or `super`.
fn paths(code: &str) -> Vec<Path> {
    let mut found = Vec::new();
    let line = |at: usize| 1 + code[..at].matches('\n').count();
    // `pub(in crate::a)` uses nothing.
    let begins = |at: usize| {
        !code[..at].ends_with(source::is_word) && ![":", "(in "].iter().any(|end| code[..at].ends_with(end))
    };
    let mut declared: Vec<(usize, usize)> = Vec::new();
    for (at, word) in code.match_indices("use") {
        let text = &code[at + word.len()..];
        if begins(at) && text.starts_with(char::is_whitespace) {
            let end = text.find(';').unwrap_or(text.len());
            leaves(&text[..end], &[], line(at), &mut found);
            declared.push((at, at + word.len() + end));
        }
    }
    for start in ["crate::", "self::", "super::"] {
        for (at, _) in code.match_indices(start) {
            if begins(at) && !declared.iter().any(|(from, to)| (*from..*to).contains(&at)) {
                let is_path = |c: char| source::is_word(c) || c == ':';
                let path: String = code[at..].chars().take_while(|c| is_path(*c)).collect();
                found.push(Path { segments: segments(&path), name: None, line: line(at) });
            }
        }
    }
    found
}

/// Each path in the tree of a `use` declaration.
fn leaves(text: &str, prefix: &[String], line: usize, found: &mut Vec<Path>) {
    if let Some((head, group)) = text.split_once('{') {
        let prefix = [prefix, &segments(head)].concat();
        let group = group.trim_end().strip_suffix('}').unwrap_or(group);
        let mut depth = 0_usize;
        let parts = group.split(|c| {
            match c {
                '{' => depth += 1,
                '}' => depth = depth.saturating_sub(1),
                _ => {}
            }
            c == ',' && depth == 0
        });
        parts.filter(|part| !part.trim().is_empty()).for_each(|part| leaves(part, &prefix, line, found));
        return;
    }
    let (path, alias) = text.split_once(" as ").map_or((text, None), |(path, alias)| (path, Some(alias.trim())));
    let mut segments = [prefix, &segments(path)].concat();
    if segments.last().is_some_and(|last| last == "self") {
        segments.pop();
    }
    let name = alias.map(str::to_owned).or_else(|| segments.last().cloned());
    found.push(Path { segments, name, line });
}

fn segments(path: &str) -> Vec<String> {
    path.split("::").map(str::trim).filter(|segment| !segment.is_empty()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let tree = Tree::of(files);
        let uses = uses(&tree, "src/");
        uses.iter().map(|one| format!("{}:{} {}", one.file.path, one.line, one.to.join("::"))).collect()
    }

    #[test]
    fn paths_lead_to_the_module_that_has_the_item() {
        let files = |text| {
            [
                ("src/lib.rs", "mod a;\nmod b;\npub use b::part::{Part, other as second};\n"),
                ("src/a.rs", text),
                ("src/a/own.rs", ""),
                ("src/b.rs", "pub(crate) mod part;\npub(crate) use self::part::Part;\nfn f() {}\n"),
                ("src/b/part.rs", ""),
            ]
        };
        for (text, want) in [
            ("use crate::b;\n", vec!["src/a.rs:1 b"]),
            ("use crate::b::f;\n", vec!["src/a.rs:1 b"]),
            ("use crate::b::Part;\n", vec!["src/a.rs:1 b::part"]),
            ("use crate::Part;\n", vec!["src/a.rs:1 b::part"]),
            ("use super::second;\n", vec!["src/a.rs:1 b::part"]),
            ("fn g() {\n    crate::b::part::x();\n}\n", vec!["src/a.rs:2 b::part"]),
            ("use crate::{\n    b::{self, part},\n};\n", vec!["src/a.rs:1 b", "src/a.rs:1 b::part"]),
            ("use super::b::{Part as Other, part::{x, y}};\n", vec!["src/a.rs:1 b::part"; 3]),
            ("mod own;\nuse own::f;\nuse self::own::g;\nuse std::b::c;\n", vec![]),
            ("// crate::b\nconst S: &str = \"crate::b\";\nfn f() -> impl Sized + use<'_> {}\n", vec![]),
            ("#[cfg(test)]\npub(crate) mod tests {\n    fn f() { use crate::b; }\n}\n", vec![]),
            ("#[cfg(test)]\nmod tests;\nfn f() { crate::b::f() }\n", vec!["src/a.rs:3 b"]),
        ] {
            assert_eq!(found(&files(text)), want, "{text}");
        }
    }

    #[test]
    fn users_of_a_parent_use_what_its_file_defines() {
        for (parent, child, want) in [
            ("mod x;\nfn f() {}\n", "use super::f;\n", 1),
            ("mod x;\nmod y;\nuse y::f;\n", "use super::f;\n", 0),
            ("mod x;\nmod y;\npub use y::*;\n", "use super::f;\n", 0),
            ("mod x;\nmod y;\npub use y::*;\nfn f() {}\n", "use super::f;\n", 1),
            ("mod x;\nfn f() {}\n", "pub(in crate::a) fn g() {}\n", 0),
        ] {
            let files = [("src/lib.rs", "mod a;\n"), ("src/a.rs", parent), ("src/a/x.rs", child), ("src/a/y.rs", "")];
            assert_eq!(users_of_parents(&Tree::of(&files), "src/"), want, "{parent} {child}");
        }
    }

    #[test]
    fn modules_and_what_they_contain_are_one() {
        let files = [
            ("src/main.rs", "use a::f;\n"),
            ("src/a/mod.rs", "mod x;\nuse x::g;\n"),
            ("src/a/x.rs", "use super::f;\nuse crate::a::y::h;\n"),
            ("src/a/y.rs", "use crate::TOOL;\nuse super::super::b;\n"),
            ("src/a/tests.rs", "use crate::b;\n"),
            ("src/b.rs", "use super::super::c;\n"),
        ];
        assert_eq!(found(&files), ["src/a/x.rs:2 a::y", "src/a/y.rs:2 b"]);
    }
}
