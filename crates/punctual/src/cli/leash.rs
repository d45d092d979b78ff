//! `punctual leash`: another command of this program, for as long as stdin is open. What a role of a plan is held by.
//!
//! A process of its own, so that whoever measures has no thread that waits for its end: it only sleeps.

use super::Outcome;
use super::arguments::LeashArguments;
use crate::host;
use rt::sys::process;
use std::io::{self, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};
use std::thread::{sleep, spawn};
use std::time::Duration;

/// How long the command may take to end when it is told to; its load is given 10 s.
const COURTESY: Duration = Duration::from_secs(15);

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
    spawn(move || {
        // Nothing comes; an error is an end, too.
        let _ = io::copy(&mut io::stdin(), &mut io::sink());
        end(pid);
    });
    if let Some(at_most) = at_most {
        spawn(move || {
            sleep(Duration::from_nanos(at_most.ns()));
            end(pid);
        });
    }
    let status = child.wait()?;
    if let Some(signal) = status.signal() {
        // It could not put back itself what it had changed.
        host::recover(&host::HostFs::here());
        return Err(format!("{name} was killed by signal {signal}").into());
    }
    // It has said itself what was wrong.
    Ok(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(super::ERROR))
}

/// Tells a process to end, and kills it if it does not. This process ends with it.
fn end(pid: u32) {
    let _ = process::signal(pid, libc::SIGTERM);
    sleep(COURTESY);
    let _ = process::signal(pid, libc::SIGKILL);
}
