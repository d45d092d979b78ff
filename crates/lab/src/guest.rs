//! PID 1 of a guest.
//!
//! It sets up a minimal system, waits until the kernel has settled, and has QEMU save this state as a snapshot, once
//! for any number of measurements. Every guest resumes from the snapshot: it reads its job, carries it out, reports the
//! result, and ends QEMU.

use super::protocol::{
    CLOCK, FAILED, Job, MACHINE_SETTLE_TIME, MACHINE_TIME_VARIABLE, READY, RECORD, REFUSED, SETTLE_TIME, SYMBOL, TARGET,
};
use super::{channel, clock_marks, disk, guest_files, machine, modules, network};
use punctual_model::ClockId;
use punctual_sys::guest_ports::MOVABLE_VARIABLE;
use punctual_sys::{boot, clock};
use std::io::{self, BufRead, BufReader, Write};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

/// Busy time after a resume, in which QEMU settles: a millisecond of the guest is about one of QEMU's CPU time,
/// whatever the load.
const BUSY_TIME: Duration = Duration::from_millis(50);

/// Whether this process is the init process of a guest. The name is not enough: a container may run this program as
/// `/init`, which must not restart its machine.
pub fn is_first_process() -> bool {
    let is_named = || std::env::args_os().next().is_some_and(|name| name == "/init");
    std::process::id() == 1 && is_named() && std::env::var_os(punctual_host::GUEST_VARIABLE).is_some()
}

/// Runs as PID 1 of a guest. It returns only where a machine cannot be restarted; the kernel then panics, which
/// restarts it as well.
pub fn run() -> ExitCode {
    let outcome = punctual_host::make_system().and_then(|()| {
        let without_effect = punctual_host::without_effect(&machine::own_arguments());
        if !without_effect.is_empty() {
            return Ok(Err(without_effect.join("; ")));
        }
        modules::load_all()?;
        seed_random()?;
        let is_machine_time = std::env::var_os(MACHINE_TIME_VARIABLE).is_some();
        std::thread::sleep(if is_machine_time { MACHINE_SETTLE_TIME } else { SETTLE_TIME });
        channel::pause()?;
        spin();
        channel::read_job().map(Ok)
    });
    match outcome {
        Ok(Ok(job)) => finish(&measured(&job)),
        Ok(Err(reason)) => finish(&format!("{REFUSED}differs from the plan: {reason}")),
        Err(err) => finish(&format!("{FAILED}{err}")),
    }
}

/// Makes the kernel's random generator ready, with a constant: until it is, each system call that randomizes its stack
/// offset runs ChaCha, and latencies are three times as long. The seed in the device tree counts only where the kernel
/// is built to trust it. x86-64 takes the offset from a counter.
#[cfg(not(target_arch = "x86_64"))]
fn seed_random() -> io::Result<()> {
    let random = std::fs::File::options().write(true).open("/dev/random")?;
    boot::seed_random(&random, *b"punctual, the same in each guest")
}

#[cfg(target_arch = "x86_64")]
#[expect(clippy::unnecessary_wraps, reason = "elsewhere it may fail")]
fn seed_random() -> io::Result<()> {
    Ok(())
}

/// Keeps the CPU from idling for a while after a snapshot was loaded.
///
/// QEMU (7.2 at least) may account for idle time twice if its main loop runs just when a CPU halts, before the
/// instructions of that CPU are counted: virtual time then jumps. A main loop that runs because of the halt itself is
/// harmless; external events are the other cause, and there are none after the start.
fn spin() {
    let began = Instant::now();
    while began.elapsed() < BUSY_TIME {
        // Plain instructions: QEMU leaves its translated code for each read of the clock and each spin-loop hint.
        for n in 0..100_000 {
            std::hint::black_box(n);
        }
    }
}

/// The result line of a job.
fn measured(job: &Job) -> String {
    let limit = Duration::from_nanos(job.limit_ns);
    let limited = std::thread::Builder::new().spawn(move || {
        std::thread::sleep(limit);
        finish(&format!("{FAILED}timeout: no record after {} s of guest time", limit.as_secs()))
    });
    if let Err(err) = limited {
        return format!("{FAILED}cannot create a thread: {err}");
    }
    if job.lists_symbols {
        return list_symbols().err().map_or_else(|| READY.to_owned(), |err| format!("{FAILED}{err}"));
    }
    std::thread::sleep(Duration::from_nanos(job.wait_ns));
    carry_out(job).unwrap_or_else(|err| format!("{FAILED}{err}"))
}

/// Reports the clock and pauses; then reports the functions of the kernel and of its modules.
fn list_symbols() -> io::Result<()> {
    channel::write(&format!("{CLOCK}{}", clock::now(ClockId::Monotonic).0))?;
    channel::pause()?;
    punctual_host::kernel_functions().iter().try_for_each(|line| channel::write(&format!("{SYMBOL}{line}")))
}

/// The record.
fn carry_out(job: &Job) -> io::Result<String> {
    if job.cell.conditions.explain.is_some() {
        punctual_host::mount_tracing().map_err(|err| io::Error::other(format!("cannot explain: tracefs: {err}")))?;
    }
    if job.has_disk
        && let Err(err) = disk::mount()
    {
        return Ok(format!("{REFUSED}{err}"));
    }
    if let Some(address) = job.address
        && let Err(err) = network::set_up(address)
    {
        return Ok(format!("{REFUSED}{err}"));
    }
    if job.is_target {
        return target(job);
    }
    if job.has_marks {
        clock_marks::exchange(1)?;
    }
    let record = cell(job)?;
    if job.has_marks {
        clock_marks::exchange(2)?;
    }
    Ok(match record {
        Ok(record) => format!("{RECORD}{record}"),
        Err(said) => format!("{FAILED}{said}"),
    })
}

/// Reports readiness, then returns the output of `punctual respond`, which ends when no more triggers arrive.
fn target(job: &Job) -> io::Result<String> {
    let link = job.cell.task.link().ok_or(io::ErrorKind::InvalidInput)?;
    let mut command = Command::new(punctual_host::THIS_PROGRAM);
    let command = command.args(["respond", "--on", &link.to_string(), "--policy", &job.cell.policy.to_string()]);
    let command = command.args(["--load", &job.cell.load.to_string(), "--until-silent", "5s", "--format", "json"]);
    let command = command.env("PATH", guest_files::PATH).stdin(Stdio::null());
    let mut respond = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let mut first = String::new();
    if let Some(stderr) = respond.stderr.as_mut() {
        BufReader::with_capacity(1, stderr).read_line(&mut first)?;
    }
    if first.starts_with("answering") {
        channel::write(READY)?;
    }
    let respond = respond.wait_with_output()?;
    Ok(if respond.status.success() {
        let document: serde_json::Value = serde_json::from_slice(&respond.stdout)?;
        format!("{TARGET}{document}")
    } else {
        format!("{FAILED}reports: {first}{}", String::from_utf8_lossy(&respond.stderr)).trim_end().replace('\n', "; ")
    })
}

/// The output of `punctual cell`, or its error.
fn cell(job: &Job) -> io::Result<Result<String, String>> {
    let mut command = Command::new(punctual_host::THIS_PROGRAM);
    let command = command.arg("cell").env("PATH", guest_files::PATH);
    let command = command.envs(job.movable.iter().map(|cycle| (MOVABLE_VARIABLE, cycle)));
    let mut cell = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    if let Some(mut stdin) = cell.stdin.take() {
        stdin.write_all(&serde_json::to_vec(&job.cell)?)?;
    }
    let cell = cell.wait_with_output()?;
    if cell.status.success() {
        return Ok(Ok(String::from_utf8_lossy(&cell.stdout).trim_end().to_owned()));
    }
    let message = String::from_utf8_lossy(&cell.stderr);
    let message = message.trim_end().replace('\n', "; ");
    let message = message.strip_prefix("punctual: ").unwrap_or(&message);
    Ok(Err(format!("reports: {}", if message.is_empty() { cell.status.to_string() } else { message.to_owned() })))
}

/// Reports the result and ends the guest. Without a channel the console shows it.
fn finish(line: &str) -> ExitCode {
    if let Err(err) = channel::write(line) {
        let _ = writeln!(io::stderr(), "punctual: no channel to the lab: {err}; {line}");
    }
    channel::end();
    let _ = boot::restart();
    ExitCode::FAILURE
}
