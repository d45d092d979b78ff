//! This program as the first process of a guest.
//!
//! It makes a small system, carries out one cell, writes what comes of it to the second serial port, and restarts the
//! machine, which ends QEMU.

use super::{modules, shipped};
use crate::host;
use rt::sys::boot;
use std::fs::File;
use std::io::{self, Write};
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

/// How the line with the record begins, and how one that says why there is none.
pub(super) const RECORD: &str = "record ";
pub(super) const FAILED: &str = "failed ";

const RESULT: &str = "/dev/ttyS1";
const CELL: &str = "/cell.json";
const SETTLE: &str = "/settle_ns";

/// Whether this process was started by a kernel.
pub(crate) fn is_first_process() -> bool {
    std::process::id() == 1 && std::env::args_os().next().is_some_and(|name| name == "/init")
}

/// Is a guest. It comes back only where a machine cannot be restarted; the kernel then panics, which restarts it, too.
pub(crate) fn run() -> ExitCode {
    let line = match carry_out() {
        Ok(line) => line,
        Err(err) => format!("{FAILED}{err}"),
    };
    let _ = tell(&line);
    let _ = boot::restart();
    ExitCode::FAILURE
}

fn carry_out() -> io::Result<String> {
    host::make_system()?;
    modules::load_all()?;
    std::thread::sleep(settle()?);
    let mut cell = Command::new(host::THIS_PROGRAM);
    let cell = cell.arg("cell").env("PATH", shipped::PATH);
    let cell = cell.stdin(Stdio::from(File::open(CELL)?)).output()?;
    if cell.status.success() {
        return Ok(format!("{RECORD}{}", String::from_utf8_lossy(&cell.stdout).trim_end()));
    }
    let said = String::from_utf8_lossy(&cell.stderr);
    let said = said.trim_end().replace('\n', "; ");
    let said = said.strip_prefix("punctual: ").unwrap_or(&said);
    Ok(format!("{FAILED}says: {}", if said.is_empty() { cell.status.to_string() } else { said.to_owned() }))
}

/// For how long to leave the kernel alone before the cell.
fn settle() -> io::Result<Duration> {
    let ns = std::fs::read_to_string(SETTLE)?.parse().map_err(io::Error::other)?;
    Ok(Duration::from_nanos(ns))
}

fn tell(line: &str) -> io::Result<()> {
    let mut port = File::options().write(true).open(RESULT)?;
    port.write_all(format!("{line}\n").as_bytes())?;
    boot::wait_until_sent(&port)
}
