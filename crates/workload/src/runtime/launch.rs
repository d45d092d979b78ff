//! Launcher of another program: it applies the settings of a cell to itself, reads them back, and calls exec.
use punctual_model::{CpuSet, Policy, Span};
use std::ffi::{OsStr, OsString};
use std::fmt::Display;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Settings of the launched program.
#[derive(Debug, Clone)]
pub struct Launch {
    /// The CPUs that it may use.
    pub cpus: CpuSet,
    /// The policy of all its threads.
    pub policy: Policy,
    /// The timer slack of all its threads; real-time ones have none.
    pub timer_slack: Span,
}

/// Replaces this process by `program` with its arguments, which ends with process `parent`. All settings are inherited
/// across `execve(2)` and by every thread and process that the program starts, as with taskset(1), chrt(1) and nice(1).
///
/// Returns only on failure, with one line of text that states the reason.
///
/// If `is_held`, it stops itself before that, until SIGCONT.
pub fn launch(parent: u32, settings: Option<&Launch>, is_held: bool, program: &[OsString]) -> String {
    let Some((program, arguments)) = program.split_first() else { return "no program given".to_owned() };
    let tied = punctual_sys::process::die_with(parent).map_err(|err| cannot("set the parent death signal", err));
    if let Err(reason) = tied.and_then(|()| settings.map_or(Ok(()), apply)) {
        return reason;
    }
    if is_held && let Err(err) = punctual_sys::process::signal(std::process::id(), libc::SIGSTOP) {
        return cannot("stop before the program", err);
    }
    let err = Command::new(program).args(arguments).exec();
    cannot(format_args!("start {}", program.display()), err)
}

/// Applies the settings to the calling thread and reads them back.
fn apply(settings: &Launch) -> Result<(), String> {
    let Launch { ref cpus, policy, timer_slack } = *settings;
    punctual_sys::sched::set_affinity(0, cpus).map_err(|err| cannot(format_args!("run on CPU {cpus}"), err))?;
    if !policy.is_realtime() {
        let slack = format!("set a timer slack of {timer_slack}");
        punctual_sys::thread::set_timer_slack(timer_slack).map_err(|err| cannot(&slack, err))?;
        let found = punctual_sys::thread::timer_slack().map_err(|err| cannot(&slack, err))?;
        same("timer slack", timer_slack, found)?;
    }
    // Last: from here on the thread may get little CPU time, or all of it.
    punctual_host::drop_rights_of_file().map_err(|err| cannot("drop capabilities", err))?;
    let refused = |err| {
        let advice = punctual_host::how_to_allow_others(&err);
        format!("{}{advice}", cannot(format_args!("run as {policy}"), err))
    };
    punctual_sys::sched::set_inherited_policy(0, policy).map_err(refused)?;
    same("policy", policy, punctual_sys::sched::policy(0).map_err(refused)?)?;
    same("CPUs", cpus, punctual_sys::sched::affinity(0).map_err(refused)?)
}

/// The command that starts `program` so that it ends with this process, which has to wait for it; `settings` are those
/// of its threads.
pub fn command(settings: Option<&Launch>, program: impl AsRef<OsStr>) -> Command {
    held_command(settings, false, program.as_ref())
}

/// As [`command`]; if `is_held`, the process stops before the program, until SIGCONT.
pub(crate) fn held_command(settings: Option<&Launch>, is_held: bool, program: &OsStr) -> Command {
    let mut command = Command::new(punctual_host::THIS_PROGRAM);
    command.args(["launch", "--parent", &std::process::id().to_string()]);
    if let Some(Launch { cpus, policy, timer_slack }) = settings {
        command.args(["--cpus", &cpus.to_string(), "--policy", &policy.to_string()]);
        command.args(["--timer-slack", &timer_slack.to_string()]);
    }
    command.args(is_held.then_some("--held")).arg("--").arg(program);
    command
}

fn cannot(what: impl Display, err: std::io::Error) -> String {
    format!("cannot {what}: {err}")
}

fn same(what: &str, asked: impl Display, found: impl Display) -> Result<(), String> {
    let (asked, found) = (asked.to_string(), found.to_string());
    if asked == found { Ok(()) } else { Err(format!("cannot set {what} {asked}: the kernel reports {found}")) }
}
