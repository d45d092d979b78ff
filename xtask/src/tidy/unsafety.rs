//! Places of `unsafe`: one directory; the other crates forbid it.

use super::tree::Tree;
use super::{Violation, source};

const HOME: &str = "crates/sys/src/";

/// The keyword `unsafe` in code outside its directory.
pub(super) fn keyword(tree: &Tree) -> Vec<Violation> {
    let mut found = Vec::new();
    for file in tree.files(".rs").filter(|file| !file.path.starts_with(HOME)) {
        for (idx, line) in source::divide(&file.text).code.lines().enumerate() {
            if line.split(|c| !source::is_word(c)).any(|word| word == "unsafe") {
                let remedy = format!("wrap the operation once below {HOME} and call the wrapper");
                found.push(Violation::new(&file.path, idx + 1, "`unsafe` outside its directory", remedy));
            }
        }
    }
    found
}

/// Checks that `#![forbid(unsafe_code)]` follows the documentation of each safe crate.
pub(super) fn forbidden(tree: &Tree) -> Vec<Violation> {
    let remedy = "put it below the `//!` lines, before everything else";
    let roots = tree.files("/src/lib.rs").chain(tree.files("/src/main.rs"));
    let broken = roots.filter(|file| !file.path.starts_with(HOME)).filter(|file| {
        let first = file.text.lines().find(|line| !line.trim().is_empty() && !line.starts_with("//"));
        first != Some("#![forbid(unsafe_code)]")
    });
    broken.map(|file| Violation::new(&file.path, 1, "`#![forbid(unsafe_code)]` is missing", remedy)).collect()
}

#[cfg(test)]
mod tests {
    use super::super::lines;
    use super::*;

    #[test]
    fn the_keyword_stays_at_home() {
        for (path, text, want) in [
            ("crates/sys/src/clock.rs", "unsafe { now() }\n", 0),
            ("crates/rt/src/log.rs", "unsafe { now() }\n", 1),
            ("crates/sysinfo/src/lib.rs", "pub unsafe fn f() {}\n", 1),
            ("crates/rt/src/lib.rs", "#![deny(unsafe_op_in_unsafe_fn)]\n// unsafe\nconst S: &str = \"unsafe\";\n", 0),
            ("crates/model/src/lib.rs", "#![forbid(unsafe_code)]\n", 0),
        ] {
            assert_eq!(lines(keyword, &[(path, text)]).len(), want, "{text}");
        }
    }

    #[test]
    fn safe_crates_say_so() {
        for (path, text, want) in [
            ("crates/model/src/lib.rs", "//! Words.\n\n#![forbid(unsafe_code)]\nmod a;\n", 0),
            ("crates/model/src/lib.rs", "//! Words.\nmod a;\n#![forbid(unsafe_code)]\n", 1),
            ("crates/model/src/lib.rs", "", 1),
            ("crates/model/src/units.rs", "", 0),
            ("crates/sys/src/lib.rs", "//! Calls.\nmod clock;\n", 0),
        ] {
            assert_eq!(lines(forbidden, &[(path, text)]).len(), want, "{path} {text}");
        }
    }
}
