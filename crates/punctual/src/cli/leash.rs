//! `punctual leash`: another command of this program, for as long as stdin is open. What a role of a plan is held by.
//!
//! A process of its own, so that whoever measures has no thread that waits for its end: it only sleeps.

use super::Outcome;
use super::arguments::LeashArguments;
use std::io::{self, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread::{Builder, sleep};
use std::time::Duration;
use sys::process;

/// How long the command may take to end after SIGTERM. It stops its load first, which is given 10 s.
const STOP_TIMEOUT: Duration = Duration::from_secs(15);

pub(super) fn leash(arguments: LeashArguments) -> Outcome {
    let LeashArguments { at_most, input, command } = arguments;
    let name = command.first().cloned().unwrap_or_default();
    let mut child = Command::new(host::THIS_PROGRAM)
        .args(command)
        // Should this process be killed, the kernel kills it.
        .args(["--parent", &std::process::id().to_string()])
        .stdin(if input.is_some() { Stdio::piped() } else { Stdio::null() })
        .spawn()
        .map_err(|err| format!("cannot start {name}: {err}"))?;
    if let Some((mut stdin, input)) = child.stdin.take().zip(input) {
        stdin.write_all(input.as_bytes()).map_err(|err| format!("{name} does not take its input: {err}"))?;
    }
    let pid = child.id();
    let has_timed_out = Arc::new(AtomicBool::new(false));
    let timed_out = Arc::clone(&has_timed_out);
    let listening = Builder::new().spawn(move || {
        // Nothing comes; an error is an end, too.
        let _ = io::copy(&mut io::stdin(), &mut io::sink());
        end(pid, &timed_out);
    });
    let waiting = at_most.map(|at_most| {
        let timed_out = Arc::clone(&has_timed_out);
        Builder::new().spawn(move || {
            sleep(Duration::from_nanos(at_most.ns()));
            end(pid, &timed_out);
        })
    });
    if let Some(err) = listening.err().or_else(|| waiting?.err()) {
        let _ = process::signal(pid, libc::SIGTERM);
        child.wait()?;
        return Err(host::no_thread(&err).into());
    }
    let status = child.wait()?;
    if let Some(signal) = status.signal() {
        // It could not put back itself what it had changed.
        host::recover(&host::HostFs::here());
        return Err(if has_timed_out.load(SeqCst) {
            format!("{name} did not end within {} s of SIGTERM; killed", STOP_TIMEOUT.as_secs())
        } else {
            format!("{name} was killed by signal {signal}")
        }
        .into());
    }
    // It has said itself what was wrong.
    Ok(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(super::ERROR))
}

/// Sends SIGTERM to a process, and SIGKILL after a timeout, which it notes before. This process ends with it.
fn end(pid: u32, has_timed_out: &AtomicBool) {
    let _ = process::signal(pid, libc::SIGTERM);
    sleep(STOP_TIMEOUT);
    has_timed_out.store(true, SeqCst);
    let _ = process::signal(pid, libc::SIGKILL);
}
