//! Hidden commands: `launch`, `operation`, `supervise`.

use crate::cli::arguments::{LaunchArguments, OperationArguments, SuperviseArguments};
use crate::cli::terminal::{Outcome, output};
use punctual_sys::process;
use punctual_workload::cost;
use punctual_workload::runtime::{Launch, launch};
use serde_json::json;
use std::io::{self, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread::{Builder, sleep};
use std::time::Duration;

pub(super) fn launch_program(arguments: LaunchArguments) -> Outcome {
    let LaunchArguments { parent, cpus, policy, timer_slack, held, program } = arguments;
    let settings = cpus.zip(policy).zip(timer_slack);
    let settings = settings.map(|((cpus, policy), timer_slack)| Launch { cpus, policy, timer_slack });
    Err(launch(parent, settings.as_ref(), held, &program).into())
}

pub(super) fn operation(arguments: &OperationArguments) -> Outcome {
    let used = cost::carry_out(arguments.operation, arguments.count)?;
    let mut text = Vec::new();
    output::json(
        &mut text,
        &json!({
            "minor_faults": used.minor_faults,
            "voluntary_switches": used.voluntary_switches,
            "involuntary_switches": used.involuntary_switches,
            "signals_and_faults_handled": punctual_sys::signal_handler::n_handled(),
        }),
    )?;
    output::write(&text).map(|()| 0)
}

/// Time for the command to exit after SIGTERM. It first stops its load, which takes up to 10 s.
const STOP_TIMEOUT: Duration = Duration::from_secs(15);

pub(super) fn supervise(arguments: SuperviseArguments) -> Outcome {
    let SuperviseArguments { at_most, input, command } = arguments;
    let name = command.first().cloned().unwrap_or_default();
    let mut child = Command::new(punctual_host::THIS_PROGRAM)
        .args(command)
        // The kernel kills the command if this process is killed.
        .args(["--parent", &std::process::id().to_string()])
        .stdin(if input.is_some() { Stdio::piped() } else { Stdio::null() })
        .spawn()
        .map_err(|err| format!("cannot start {name}: {err}"))?;
    if let Some((mut stdin, input)) = child.stdin.take().zip(input) {
        match stdin.write_all(input.as_bytes()) {
            // It has ended, and its status says why.
            Err(err) if err.kind() == io::ErrorKind::BrokenPipe => {}
            written => written.map_err(|err| format!("cannot write the input of {name}: {err}"))?,
        }
    }
    let pid = child.id();
    let has_timed_out = Arc::new(AtomicBool::new(false));
    let timed_out = Arc::clone(&has_timed_out);
    let listening = Builder::new().spawn(move || {
        // No input is expected; an error also counts as its end.
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
        return Err(punctual_host::no_thread(&err).into());
    }
    let status = child.wait()?;
    if let Some(signal) = status.signal() {
        // A killed command has not restored its settings.
        punctual_host::recover(&punctual_host::HostFs::here());
        return Err(if has_timed_out.load(SeqCst) {
            format!("timeout: {name} still running {} s after SIGTERM; killed", STOP_TIMEOUT.as_secs())
        } else {
            format!("{name} was killed by signal {signal}")
        }
        .into());
    }
    // The command has printed its own error.
    Ok(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(crate::cli::terminal::ERROR))
}

/// Sends SIGTERM to a process, sets the flag after [`STOP_TIMEOUT`] and sends SIGKILL. This process exits with the
/// command.
fn end(pid: u32, has_timed_out: &AtomicBool) {
    let _ = process::signal(pid, libc::SIGTERM);
    sleep(STOP_TIMEOUT);
    has_timed_out.store(true, SeqCst);
    let _ = process::signal(pid, libc::SIGKILL);
}

/// Makes this process end with its parent, if it was started by another process of this program.
pub(super) fn end_with(parent: Option<u32>) -> Result<(), String> {
    let tied = parent.map_or(Ok(()), process::die_with);
    tied.map_err(|err| format!("cannot end with the parent process (prctl): {err}"))
}
