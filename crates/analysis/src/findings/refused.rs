//! The finding about a system call of a watched thread that the kernel refused: the limit and its remedy.

use super::Finding;
use crate::wording::count;
use punctual_model::{CallLimit, RefusedCall, StartPlace, shell_word};

finding!(
    /// A thread asked for a policy, CPUs or locked memory and was refused.
    pub struct CallRefused {
        /// The call.
        pub refused: RefusedCall,
    },
    importance = 2,
    sentence(refused),
    [
        of(Some("fifo"), "sched_setscheduler", "EPERM", Some(resource("RLIMIT_RTPRIO", session(None)))),
        of(
            Some("locked memory"),
            "mlockall",
            "ENOMEM",
            Some(resource("RLIMIT_MEMLOCK", StartPlace::Unit { unit: "robot.service".to_owned() }))
        ),
        of(
            None,
            "sched_setattr",
            "EPERM",
            Some(CallLimit::Capability {
                name: "CAP_SYS_NICE".to_owned(),
                program: Some("/opt/robot".to_owned()),
                place: session(None),
            })
        ),
        of(
            Some("fifo"),
            "sched_setscheduler",
            "EPERM",
            Some(CallLimit::RtBudget {
                file: "/g/cpu.rt_runtime_us".to_owned(),
                above: vec!["/cpu.rt_runtime_us".to_owned()],
            })
        ),
        of(
            None,
            "sched_setaffinity",
            "EINVAL",
            Some(CallLimit::Cpuset {
                cpus: punctual_model::CpuSet::from_iter([0]),
                online: punctual_model::CpuSet::from_iter(0..4),
                file: Some("/cgroup/robot/cpuset.cpus".to_owned()),
            })
        ),
        of(None, "sched_setscheduler", "EPERM", None),
    ]
);

/// One finding for each call.
pub(super) fn of_calls(all: &[RefusedCall]) -> impl Iterator<Item = Finding> {
    all.iter().map(|refused| CallRefused { refused: refused.clone() }.into())
}

/// The finding in one sentence: thread, call and error, the limit, what the thread has at the end, and the remedy.
fn sentence(refused: &RefusedCall) -> String {
    let RefusedCall { thread, call, asked, target, error, n, limit, granted_later, at_end } = refused;
    let asked = asked.as_deref().unwrap_or(match call.as_str() {
        "sched_setaffinity" => "CPUs",
        "sched_setparam" => "a priority",
        _ => "a policy",
    });
    let target = target.as_ref().map(|target| format!(" for {target}")).unwrap_or_default();
    let times = if *n > 1 { format!(", {} times", count(*n)) } else { String::new() };
    let error = error.as_deref().unwrap_or("EPERM");
    let because = limit.as_ref().map_or_else(|| "the cause is not known".to_owned(), cause);
    let later = if *granted_later { "; a later call succeeded" } else { "" };
    let has = at_end.as_ref().map(|has| format!("; at the end it has {has}")).unwrap_or_default();
    let remedy = limit.as_ref().and_then(remedy).map(|remedy| format!("; {remedy}")).unwrap_or_default();
    format!("refused {call}: {thread} asked for {asked}{target} ({error}{times}): {because}{later}{has}{remedy}")
}

/// The limit as a clause.
fn cause(limit: &CallLimit) -> String {
    match limit {
        CallLimit::Resource { name, value, place } => {
            let unit = if name == "RLIMIT_MEMLOCK" { " bytes" } else { "" };
            let why = match place {
                StartPlace::Session { granted_by: Some(file) } if *value == 0 && name == "RLIMIT_RTPRIO" => {
                    format!(", although {file} grants more: its login did not apply pam_limits")
                }
                StartPlace::Session { .. } => String::new(),
                StartPlace::Unit { unit } => format!(" in {unit}"),
                StartPlace::Container { engine } => format!(" in its container ({engine}), without {}", lifts(name)),
            };
            format!("{name} is {}{unit}{why}", count(*value))
        }
        CallLimit::Capability { name, place, .. } => match place {
            StartPlace::Container { engine } => format!("it has no {name} in its container ({engine})"),
            _ => format!("it has no {name}"),
        },
        CallLimit::RtBudget { .. } => "its control group has no real-time budget".to_owned(),
        CallLimit::Cpuset { cpus, file: Some(_), .. } => format!("its cpuset allows only CPUs {cpus}"),
        CallLimit::Cpuset { cpus, file: None, .. } => format!("only CPUs {cpus} are online"),
        CallLimit::Seccomp { .. } => "a seccomp filter of its process refuses it".to_owned(),
        CallLimit::Bandwidth => "the deadline threads of its CPUs would get more CPU time than there is".to_owned(),
        CallLimit::Argument => "an argument is invalid, such as a priority outside of 1 to 99".to_owned(),
    }
}

/// The capability that lifts a resource limit.
fn lifts(resource: &str) -> &'static str {
    if resource == "RLIMIT_MEMLOCK" { "CAP_IPC_LOCK" } else { "CAP_SYS_NICE" }
}

/// A command that lifts the limit, with where it belongs.
fn remedy(limit: &CallLimit) -> Option<String> {
    Some(match limit {
        CallLimit::Resource { name, place, .. } => {
            let (option, setting, most) = match name.as_str() {
                "RLIMIT_RTPRIO" => ("rtprio=99", "LimitRTPRIO=99", "rtprio=99"),
                "RLIMIT_NICE" => ("nice=40", "LimitNICE=40", "nice=40"),
                _ => ("memlock=unlimited", "LimitMEMLOCK=infinity", "memlock=-1"),
            };
            match place {
                StartPlace::Session { .. } => {
                    format!("in the shell that starts it: sudo prlimit --pid $$ --{option}")
                }
                StartPlace::Unit { unit } => of_unit(unit, setting),
                StartPlace::Container { .. } => {
                    let capability = lifts(name).trim_start_matches("CAP_");
                    format!("start it with --cap-add {capability} --ulimit {most}")
                }
            }
        }
        CallLimit::Capability { name, program, place } => {
            let capability = name.trim_start_matches("CAP_");
            match (place, program) {
                (StartPlace::Container { .. }, _) => format!("start it with --cap-add {capability}"),
                (StartPlace::Unit { unit }, _) => of_unit(unit, &format!("AmbientCapabilities={name}")),
                (StartPlace::Session { .. }, program) => {
                    let program = shell_word(program.as_ref()?);
                    let capability = name.to_lowercase();
                    format!("sudo setcap {capability}+ep {program} (undo: sudo setcap -r {program})")
                }
            }
        }
        CallLimit::RtBudget { file, above } => {
            // A group gets no more than those around it have.
            let files: Vec<_> = above.iter().rev().chain([file]).map(|file| shell_word(file)).collect();
            format!("echo {} | sudo tee {} (undo: echo 0)", punctual_model::Scheduling::RT_BUDGET_US, files.join(" "))
        }
        CallLimit::Cpuset { cpus, online, file } => match file {
            Some(file) => {
                format!("echo {online} | sudo tee {} (undo: echo {cpus})", shell_word(file))
            }
            None => format!("start it with taskset -c {cpus}"),
        },
        CallLimit::Seccomp { place } => match place {
            StartPlace::Container { .. } => "start it with --security-opt seccomp=unconfined".to_owned(),
            StartPlace::Unit { unit } => of_unit(unit, "RestrictRealtime=no"),
            StartPlace::Session { .. } => return None,
        },
        CallLimit::Bandwidth | CallLimit::Argument => return None,
    })
}

/// A setting of a system service, which it has after a restart.
fn of_unit(unit: &str, setting: &str) -> String {
    format!("sudo systemctl edit {}: {setting}", shell_word(unit))
}

#[cfg(test)]
fn session(granted_by: Option<&str>) -> StartPlace {
    StartPlace::Session { granted_by: granted_by.map(str::to_owned) }
}

#[cfg(test)]
fn resource(name: &str, place: StartPlace) -> CallLimit {
    CallLimit::Resource { name: name.to_owned(), value: 0, place }
}

#[cfg(test)]
fn of(asked: Option<&str>, call: &str, error: &str, limit: Option<CallLimit>) -> CallRefused {
    let refused = RefusedCall {
        thread: "control".to_owned(),
        call: call.to_owned(),
        asked: asked.map(str::to_owned),
        error: Some(error.to_owned()),
        n: 1,
        at_end: limit.as_ref().and_then(|limit| cause(limit).contains("RTPRIO").then(|| "policy other".to_owned())),
        limit,
        ..RefusedCall::default()
    };
    CallRefused { refused }
}
