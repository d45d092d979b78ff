//! The kernel files are opened in `host` only, so that changes are restored and recorded machines can replace them.

use super::tree::Tree;
use super::{Violation, source};

/// The last one opens no files: it prints paths as advice to the user.
const ALLOWED: [&str; 3] = ["crates/host/src/", "crates/sys/src/", "crates/analysis/src/machine/doctor/"];

/// String literals with paths below /sys or /proc outside the allowed directories. Test modules are exempt.
pub(super) fn literals(tree: &Tree) -> Vec<Violation> {
    let mut found = Vec::new();
    let elsewhere = |path: &str| path.starts_with("crates/") && !ALLOWED.iter().any(|home| path.starts_with(home));
    for file in tree.files(".rs").filter(|file| elsewhere(&file.path) && !file.is_test()) {
        let test_line =
            file.lines().find(|(_, text)| text.trim() == "#[cfg(test)]").map_or(usize::MAX, |(line, _)| line);
        for (line, literal) in source::divide(&file.text).strings {
            if line < test_line && is_host_path(&literal) {
                let remedy = format!("let a function below {} read or write it", ALLOWED[0]);
                found.push(Violation::new(&file.path, line, format!("`{literal}` outside of host"), remedy));
            }
        }
    }
    found
}

fn is_host_path(literal: &str) -> bool {
    ["/sys", "/proc"]
        .iter()
        .any(|root| literal.strip_prefix(root).is_some_and(|rest| rest.is_empty() || rest.starts_with('/')))
}

#[cfg(test)]
mod tests {
    use super::super::lines;
    use super::*;

    #[test]
    fn paths_of_the_kernel_are_found() {
        let here = "crates/workload/src/load/cpu.rs";
        for (path, text, want) in [
            (here, "fn f() { read(\"/sys/kernel/x\"); }\n", 1),
            (here, "fn f() { read(\"/proc\"); read(r\"/proc/self\"); }\n", 2),
            (here, "fn f() { read(\"/system\"); say(\"see /proc/self\"); } // \"/proc\"\n", 0),
            (here, "#[cfg(test)]\nmod tests { const S: &str = \"/proc\"; }\n", 0),
            ("crates/host/src/cpu.rs", "const S: &str = \"/proc\";\n", 0),
            ("crates/host/src/lib.rs", "const S: &str = \"/proc\";\n", 0),
            ("crates/sys/src/mem.rs", "const S: &str = \"/proc\";\n", 0),
            ("crates/analysis/src/machine/doctor/memory.rs", "const S: &str = \"/sys\";\n", 0),
            ("crates/analysis/src/doctor.rs", "const S: &str = \"/sys\";\n", 1),
            ("crates/punctual/tests/cli/run.rs", "const S: &str = \"/proc\";\n", 0),
        ] {
            assert_eq!(lines(literals, &[(path, text)]).len(), want, "{path} {text}");
        }
    }
}
