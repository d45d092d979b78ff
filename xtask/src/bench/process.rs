//! Runs of a program with the kernel's accounting of it.

use model::{Cell, CpuSet, MonoTime, Span};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use sys::usage::ExitedChild;

/// A finished process.
pub(super) struct Finished {
    /// Time just before the start, `CLOCK_MONOTONIC`.
    pub(super) started: MonoTime,
    pub(super) stdout: String,
    /// Resources used by it and the children it waited for.
    pub(super) reaped: ExitedChild,
}

/// The program in cargo's release directory.
pub(super) fn program(root: &Path) -> Result<PathBuf, String> {
    let targets = std::fs::read_dir(root.join("target")).map_err(|err| err.to_string())?.flatten();
    let path = targets.map(|target| target.path().join("release/punctual")).find(|path| path.is_file());
    path.ok_or_else(|| "cannot find a release build; run `make build` first".to_owned())
}

/// Runs `command` to its end with `input` on its stdin.
pub(super) fn finish(command: &mut Command, input: &[u8]) -> Result<Finished, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let failed = |err: std::io::Error| format!("{name}: {err}");
    let started = sys::clock::monotonic();
    let spawned = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
    let mut child = spawned.map_err(failed)?;
    let (mut stdin, stdout) = (child.stdin.take(), child.stdout.take());
    if let Some(stdin) = &mut stdin {
        stdin.write_all(input).map_err(failed)?;
    }
    drop(stdin);
    let mut text = String::new();
    stdout.map_or(Ok(0), |mut stdout| stdout.read_to_string(&mut text)).map_err(failed)?;
    let reaped = sys::usage::wait(child.id()).map_err(failed)?;
    if reaped.status != 0 {
        return Err(format!(
            "{name} ended with wait status {:#x}; run as root, with nothing else measuring",
            reaped.status
        ));
    }
    Ok(Finished { started, stdout: text, reaped })
}

/// CPU time of a finished process for each of `wakeups`, us.
pub(super) fn cpu_us_per_wakeup(reaped: &ExitedChild, wakeups: u64) -> f64 {
    (reaped.usage.user_us + reaped.usage.system_us) as f64 / wakeups as f64
}

/// A cell without a load: FIFO 80 every millisecond by `clock_nanosleep`, memory locked, idle states shallow.
pub(super) fn quiet_cell(cpus: CpuSet, duration: Span) -> Cell {
    Cell { cpus, duration, ..analysis::testing::cell("none", "fifo:80") }
}
