//! `cargo xtask fuzz`: runs parsers on mutations of their inputs for the given time.
//!
//! The parsers are those of `punctual import`, of the kernel's trace, of captures, of recorded traces, of programs,
//! and of runs, plans and cells. The loops are tests (`fuzz.rs` of their crates), where a short one always runs; this
//! command runs them optimized and long, by CPU time.

use punctual_model::Span;
use std::path::Path;
use std::process::Command;

/// Parsers of files, by the beginnings of their names, of the kernel's trace, of captures, of recorded traces, and of
/// programs.
const TARGETS: [&str; 19] = [
    "cyclictest", "jitterdebugger", "rtla", "rteval", "oslat", "xenomai", "latmus", "osadl", "hdr", "ros2", "samples",
    TRACE, CAPTURE, RECORDING, ELF, "runs", "imports", "plans", "cells",
];
const TRACE: &str = "trace";
const CAPTURE: &str = "capture";
const RECORDING: &str = "recording";
const ELF: &str = "elf";
/// Inputs of other commands than `import`.
const SHOWN: [&str; 4] = ["runs", "imports", "plans", "cells"];

/// Runs all targets, or the given one.
pub(crate) fn run(root: &Path, arguments: &[&str]) -> Result<(), String> {
    let mut arguments = arguments.iter();
    let (mut targets, mut time) = (TARGETS.to_vec(), Span(600 * Span::SECOND.ns()));
    while let Some(argument) = arguments.next() {
        if *argument == "--for" {
            let word = arguments.next().ok_or("--for needs a time, like 10min")?;
            time = word.parse().map_err(|err| format!("--for: {err}"))?;
        } else {
            let target = TARGETS.into_iter().find(|target| target == argument);
            let target =
                target.ok_or_else(|| format!("unknown target `{argument}` (targets: {})", TARGETS.join(" ")))?;
            targets = vec![target];
        }
    }
    let seconds = time.ns() / Span::SECOND.ns();
    // A new seed each time, so that two runs try different inputs.
    let seed = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(1, |since| since.as_secs());
    let mut failed = Vec::new();
    for target in targets {
        let (package, module) = match target {
            TRACE | CAPTURE | RECORDING => ("punctual-ftrace", "fuzz"),
            ELF => ("punctual-code", "fuzz"),
            target if SHOWN.contains(&target) => ("punctual", "cli::terminal::output::fuzz"),
            _ => ("punctual-import", "fuzz"),
        };
        let mut cargo = one_test(root, package, &format!("{module}::fuzz_{target}"));
        // An overflow is a finding, too. Built separately, because other builds omit these checks.
        let checks = ["OVERFLOW_CHECKS", "DEBUG_ASSERTIONS"].map(|check| format!("CARGO_PROFILE_RELEASE_{check}"));
        cargo.envs(checks.iter().map(|check| (check, "true"))).env("CARGO_TARGET_DIR", root.join("target/fuzz"));
        cargo.env("PUNCTUAL_FUZZ_SECONDS", seconds.to_string());
        let status = cargo.env("PUNCTUAL_FUZZ_SEED", seed.to_string()).status();
        if !status.map_err(|err| format!("cargo: {err}"))?.success() {
            failed.push(target);
        }
    }
    if failed.is_empty() { Ok(()) } else { Err(format!("{} failed with seed {seed}", failed.join(", "))) }
}

/// A unit test of a package, optimized, with its output.
pub(crate) fn one_test(root: &Path, package: &str, name: &str) -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["test", "--release", "--quiet", "-p", package, if package == "punctual" { "--bins" } else { "--lib" }]);
    cargo.args(["--", "--exact", name, "--nocapture"]).current_dir(root);
    cargo
}
