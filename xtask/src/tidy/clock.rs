//! Tests that read no clock: what waits for a time is wrong on a machine that stands still for as long.

use std::collections::BTreeSet;
use std::ops::Range;

use super::tree::{File, Tree};
use super::{Violation, source};

/// Code that reads a clock or waits for a time. A duration that is an input of a test is made by `Duration::new`.
const CLOCKS: [&str; 7] =
    ["Instant::now", "SystemTime::now", ".elapsed(", "sleep(", "Duration::from_", "recv_timeout", "wait_timeout"];

const HOST: &str = "crates/punctual/tests/cli/host/";
const FIELD: &str = "crates/punctual/tests/cli/field/";
/// What may read clocks: series on the machine and tests with other machines, and the helper that waits.
const EXEMPT: [&str; 3] = [HOST, FIELD, "crates/sys/src/testing.rs"];

/// Clocks in tests and in their helpers.
pub(super) fn unread(tree: &Tree) -> Vec<Violation> {
    let mut found = Vec::new();
    let of_tests = test_modules(tree);
    for file in tree.files(".rs").filter(|file| !EXEMPT.iter().any(|exempt| file.path.starts_with(exempt))) {
        let code = source::divide(&file.text).code;
        let is_test = file.is_test() || of_tests.iter().any(|module| is_of(module, &file.path));
        let parts = if is_test { std::iter::once(0..code.len()).collect() } else { test_items(&code) };
        for (at, word) in CLOCKS.iter().flat_map(|word| uses(&code, word).map(move |at| (at, word))) {
            if parts.iter().any(|part| part.contains(&at)) {
                let line = 1 + code[..at].matches('\n').count();
                let remedy = "wait with comes_true of punctual_sys::testing, or move it to tests/cli/host";
                let what = format!("`{word}`: a gate's test reads no clock");
                found.push(Violation::new(&file.path, line, what, remedy));
            }
        }
    }
    found
}

/// `#[ignore]` of all tests in `host/` and `field/`, with the reason, and of no other test.
pub(super) fn ignored(tree: &Tree) -> Vec<Violation> {
    let mut found = Vec::new();
    for file in tree.files(".rs") {
        let layer = [(HOST, "host"), (FIELD, "field")].into_iter().find(|(path, _)| file.path.starts_with(path));
        let code = source::divide(&file.text).code;
        match layer {
            Some((_, layer)) => found.extend(without_reason(file, &code, layer)),
            None => found.extend(uses(&code, "#[ignore").map(|at| {
                let line = 1 + code[..at].matches('\n').count();
                let remedy = "move the test to tests/cli/host or tests/cli/field, or make it quick and sound";
                Violation::new(&file.path, line, "`#[ignore]`: the gate runs every test", remedy)
            })),
        }
    }
    found
}

/// The tests of a layer outside of the gate that `cargo test` would run.
fn without_reason(file: &File, code: &str, layer: &str) -> Vec<Violation> {
    let attribute = format!("#[ignore = \"{layer}: ");
    let lines: Vec<(&str, &str)> = code.lines().zip(file.text.lines()).collect();
    let tests = lines.iter().enumerate().filter(|(_, (code, _))| code.trim() == "#[test]");
    let wrong = tests.filter(|(idx, _)| {
        let attributes = lines[*idx..].iter().take_while(|(code, _)| !code.contains("fn "));
        !attributes.map(|(_, text)| text.trim_start()).any(|text| text.starts_with(&attribute))
    });
    let told = wrong.map(|(idx, _)| {
        let remedy = format!("write {attribute}REASON\"] below it");
        Violation::new(&file.path, idx + 1, format!("a test of {layer}/ that the gate would run"), remedy)
    });
    told.collect()
}

/// Where `word` stands in the code. A function's name and parenthesis are not those of a method or a declaration.
fn uses<'a>(code: &'a str, word: &'a str) -> impl Iterator<Item = usize> + use<'a> {
    let is_call = word.ends_with('(');
    code.match_indices(word).map(|(at, _)| at).filter(move |at| {
        let before = &code[..*at];
        let is_other = before.ends_with(source::is_word) || is_call && before.ends_with('.');
        let is_declared = is_call && before.trim_end().ends_with("fn");
        !word.starts_with(source::is_word) || !is_other && !is_declared
    })
}

/// The modules that only tests have, as the paths of their files without `.rs`.
fn test_modules(tree: &Tree) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for file in tree.files(".rs") {
        let code = source::divide(&file.text).code;
        for item in
            test_items(&code).into_iter().filter_map(|part| code[part].trim_end().strip_suffix(';').map(str::to_owned))
        {
            let mut words = item.split_whitespace().rev();
            if let (Some(name), Some("mod")) = (words.next(), words.next()) {
                let (folder, own) = file.path.rsplit_once('/').unwrap_or(("", &file.path));
                let own = own.trim_end_matches(".rs");
                let is_root = ["lib", "main", "mod"].contains(&own);
                found.insert(if is_root { format!("{folder}/{name}") } else { format!("{folder}/{own}/{name}") });
            }
        }
    }
    found
}

/// Whether a file belongs to a module or to one in it.
fn is_of(module: &str, path: &str) -> bool {
    path.strip_prefix(module).is_some_and(|rest| rest == ".rs" || rest.starts_with('/'))
}

/// The items below `#[cfg(test)]` and the like, from the attribute to the end of the item.
fn test_items(code: &str) -> Vec<Range<usize>> {
    let mut found: Vec<Range<usize>> = Vec::new();
    for (from, _) in code.match_indices("#[cfg(") {
        let Some(condition) = code[from..].find(']').map(|end| &code[from..from + end]) else { continue };
        let is_test = condition.split(|c| !source::is_word(c)).any(|word| word == "test");
        let is_known = found.iter().any(|part| part.contains(&from));
        if is_test && !condition.contains("not(test") && !is_known {
            found.push(from..end_of_item(code, from + condition.len() + 1));
        }
    }
    found
}

/// The end of the item that follows `from`: of its block, or after its semicolon.
fn end_of_item(code: &str, from: usize) -> usize {
    let mut depth = 0_usize;
    for (at, c) in code[from..].char_indices() {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 && (c == '}' || c == ';') {
            return from + at + 1;
        }
    }
    code.len()
}

#[cfg(test)]
mod tests {
    use super::super::lines;
    use super::*;

    const SLEEP: &str = "fn f() { std::thread::sleep(Duration::from_secs(1)); }\n";

    #[test]
    fn tests_read_no_clock() {
        let src = "crates/cell/src/a.rs";
        let in_tests = |code: &str| format!("fn g() {{}}\n#[cfg(test)]\nmod tests {{\n    fn f() {{ {code} }}\n}}\n");
        for (path, text, want) in [
            (src, SLEEP.to_owned(), 0),
            (src, in_tests("thread::sleep(d)"), 1),
            (src, in_tests("sleep(d); let now = std::time::Instant::now(); now.elapsed()"), 3),
            (src, in_tests("script.sleep(5).is_asleep(); clock::sleep_for(5); fn sleep(n: u64) {}"), 0),
            (src, in_tests("rx.recv_timeout(d); condition.wait_timeout_while(d); SystemTime::now()"), 3),
            (src, in_tests("Duration::from_millis(5); Duration::new(5, 0); Duration::ZERO"), 1),
            (src, in_tests("// sleep(1)\n\"Instant::now() sleep(1)\""), 0),
            (src, format!("#[cfg(test)]\nmod tests;\n{SLEEP}"), 0),
            (src, format!("#[cfg(test)]\nfn f(n: [u8; 2]) {{}}\n{SLEEP}"), 0),
            (src, format!("#[cfg(not(test))]\n{SLEEP}"), 0),
            (src, format!("#[cfg(all(test, feature = \"x\"))]\n#[expect(dead_code)]\n{SLEEP}"), 2),
            ("crates/cell/src/a/tests.rs", SLEEP.to_owned(), 2),
            ("crates/cell/src/a/tests/b.rs", SLEEP.to_owned(), 2),
            ("xtask/src/tests.rs", SLEEP.to_owned(), 2),
            ("crates/model/tests/a.rs", SLEEP.to_owned(), 2),
            ("crates/punctual/tests/cli/real/a.rs", SLEEP.to_owned(), 2),
            ("crates/punctual/tests/cli/host/a.rs", SLEEP.to_owned(), 0),
            ("crates/punctual/tests/cli/field/a.rs", SLEEP.to_owned(), 0),
            ("crates/sys/src/testing.rs", SLEEP.to_owned(), 0),
        ] {
            assert_eq!(lines(unread, &[(path, &text)]).len(), want, "{path} {text}");
        }
        let one = lines(unread, &[("crates/model/tests/a.rs", "\nfn f() { sleep(d) }\n")]);
        let want = "crates/model/tests/a.rs:2: `sleep(`: a gate's test reads no clock; wait with comes_true of \
                    punctual_sys::testing, or move it to tests/cli/host";
        assert_eq!(one, [want]);
    }

    #[test]
    fn modules_of_tests_are_tests() {
        for (declared, in_file, path, want) in [
            ("crates/cell/src/lib.rs", "#[cfg(test)]\nmod fuzz;\n", "crates/cell/src/fuzz.rs", 2),
            ("crates/cell/src/trace.rs", "#[cfg(test)]\npub(super) mod fuzz;\n", "crates/cell/src/trace/fuzz.rs", 2),
            ("crates/cell/src/trace/mod.rs", "#[cfg(test)]\nmod fuzz;\n", "crates/cell/src/trace/fuzz/b.rs", 2),
            (
                "crates/host/src/lib.rs",
                "#[cfg(any(test, feature = \"testing\"))]\npub mod help;\n",
                "crates/host/src/help.rs",
                2,
            ),
            (
                "crates/sys/src/lib.rs",
                "#[cfg(any(test, feature = \"testing\"))]\npub mod testing;\n",
                "crates/sys/src/testing.rs",
                0,
            ),
            ("crates/cell/src/lib.rs", "mod fuzz;\n", "crates/cell/src/fuzz.rs", 0),
            ("crates/cell/src/lib.rs", "#[cfg(test)]\nuse fuzz;\nmod fuzz;\n", "crates/cell/src/fuzz.rs", 0),
        ] {
            assert_eq!(lines(unread, &[(declared, in_file), (path, SLEEP)]).len(), want, "{declared} {path}");
        }
    }

    #[test]
    fn only_tests_outside_the_gate_are_ignored() {
        let test = |attribute: &str| format!("#[test]\n{attribute}fn f() {{}}\n");
        let host = "crates/punctual/tests/cli/host/a.rs";
        let field = "crates/punctual/tests/cli/field/a.rs";
        for (path, text, want) in [
            (host, test("#[ignore = \"host: causes\"]\n"), 0),
            (field, test("#[ignore = \"field: boards\"]\n"), 0),
            (host, test("#[ignore = \"field: boards\"]\n"), 1),
            (field, test("#[ignore]\n"), 1),
            (host, test("#[expect(dead_code)]\n"), 1),
            (host, "// #[test]\nfn f() {}\n".to_owned(), 0),
            (host, format!("{}{}", test(""), test("#[ignore = \"host: causes\"]\n")), 1),
            ("crates/punctual/tests/cli/real/a.rs", test("#[ignore = \"host: causes\"]\n"), 1),
            ("crates/code/src/fuzz.rs", test("#[ignore = \"long\"]\n"), 1),
            ("crates/code/src/fuzz.rs", "// #[ignore]\nconst S: &str = \"#[ignore]\";\n".to_owned(), 0),
        ] {
            assert_eq!(lines(ignored, &[(path, &text)]).len(), want, "{path} {text}");
        }
        let one = lines(ignored, &[(host, &test(""))]);
        let want =
            format!("{host}:1: a test of host/ that the gate would run; write #[ignore = \"host: REASON\"] below it");
        assert_eq!(one, [want]);
    }
}
