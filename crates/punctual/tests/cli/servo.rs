//! Programs with planted faults, compiled and watched, and whether their explanations name them.

use crate::program::{DIRECTORY, ProgramOutput, Scratch, command, is_installed, run};
use crate::real::explain::{Group, instances, sums_agree};
use crate::series::Round;
use punctual_model::{Cause, ExplainRecord, Share};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A program with planted faults.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Program {
    /// The example, `examples/servo.c`.
    Servo,
    /// `tests/watched/blamed.c`.
    Blamed,
    /// `examples/servo.py`.
    Python,
}

impl Program {
    /// The name of the program, and of the thread that its faults hit.
    pub(crate) fn names(self) -> (&'static str, &'static str) {
        match self {
            Program::Servo => ("servo", "controller"),
            Program::Blamed => ("blamed", "loop"),
            Program::Python => ("python", "python*"),
        }
    }

    /// The compiled program, or its text.
    pub(crate) fn compiled(self, scratch: &Scratch, options: &[&str]) -> PathBuf {
        let source = match self {
            Program::Servo => include_str!("../../../../examples/servo.c"),
            Program::Blamed => include_str!("../watched/blamed.c"),
            Program::Python => return scratch.file("servo.py", include_str!("../../../../examples/servo.py")),
        };
        compiled_from(scratch, self.names().0, source, options)
    }

    pub(crate) fn words(self, program: &Path, fault: &str) -> Vec<String> {
        match self {
            Program::Servo => words(program, fault),
            Program::Blamed => vec![program.display().to_string(), fault.to_owned()],
            Program::Python => ["python3", &program.display().to_string(), "--fault", fault].map(str::to_owned).into(),
        }
    }
}

/// A fault of a program, and its explanation.
pub(crate) struct Fault {
    pub(crate) program: Program,
    /// Its name in the program.
    pub(crate) name: &'static str,
    /// The causes that are right: a lock is one with and without a thread that delays its holder.
    causes: &'static [Cause],
    /// What the owner or the place must contain.
    text: &'static str,
}

pub(crate) const fn fault(name: &'static str, causes: &'static [Cause], text: &'static str) -> Fault {
    Fault { program: Program::Servo, name, causes, text }
}

const fn blamed(name: &'static str, causes: &'static [Cause], text: &'static str) -> Fault {
    Fault { program: Program::Blamed, name, causes, text }
}

/// Those of the other program, which has one thread that is late.
pub(crate) static KINDS: [Fault; 7] = [
    // While the holder runs on another CPU, the thread waits on its own.
    blamed("inode", &[Cause::KernelLock, Cause::SystemCall], "pwrite64(3)"),
    blamed("memory_map", &[Cause::KernelLock], "that of the memory map, in "),
    blamed("userfault", &[Cause::PageFault], "userfaultfd, answered by pager"),
    blamed("deadline", &[Cause::Throttling], "its runtime of SCHED_DEADLINE was used up"),
    blamed("backlog", LOCKS, "held by other (nice 0)"),
    blamed("handed_on", LOCKS, "held by other (nice 0) for most of it, and by 1 other thread"),
    blamed("barrier", &[Cause::SystemCall], "futex, until other woke it"),
];

/// Those of the example in Python.
pub(crate) static PYTHON: [Fault; 2] = [
    Fault { program: Program::Python, name: "gc", causes: &[Cause::RanLonger], text: "python3 usually " },
    Fault {
        program: Program::Python,
        name: "log",
        causes: &[Cause::SystemCall],
        text: "pipe, until log-reader woke it",
    },
];

/// One that hits the controller in a control group with a quota.
pub(crate) static QUOTA: Fault = fault("cpu_limit", &[Cause::Throttling], "");

/// All of them.
pub(crate) fn all_faults() -> impl Iterator<Item = &'static Fault> {
    FAULTS.iter().chain([&QUOTA]).chain(&KINDS).chain(&PYTHON)
}

/// A control group with a quota that [`QUOTA`] uses up; `None` where none can be made.
pub(crate) fn group_with_quota() -> Option<Group> {
    let version_1 = [("cpu.cfs_period_us", "100000"), ("cpu.cfs_quota_us", "20000")];
    Group::make("cpu", &version_1, &[("cpu.max", "20000 100000")])
}

/// The words of the example with that fault in a group.
pub(crate) fn words_in(group: &Group, servo: &Path) -> Vec<String> {
    let enter = ["sh", "-c", "echo $$ > \"$0\"/cgroup.procs && exec \"$@\"", &group.0.display().to_string()];
    let enter = enter.map(str::to_owned).into_iter();
    enter.chain(words(servo, QUOTA.name)).chain(["--priority", "0"].map(str::to_owned)).collect()
}

const LOCKS: &[Cause] = &[Cause::Lock, Cause::PriorityInversion];

/// Those that hit the controller and need no more than the example itself.
pub(crate) static FAULTS: [Fault; 13] = [
    fault("page_fault", &[Cause::PageFault], "page faults"),
    fault("major_fault", &[Cause::PageFault], "page"),
    fault("nice_lock", LOCKS, "held by logger (nice 10)"),
    fault("pi_lock", LOCKS, "held by logger (nice 10); priority inheritance is on"),
    fault("inversion", &[Cause::PriorityInversion], "held by logger (nice 10), while "),
    fault("fsync", &[Cause::Disk], "fsync"),
    fault("service", &[Cause::SystemCall], "socket, until service woke it"),
    fault("malloc", &[Cause::MemoryAllocation], ""),
    fault("full_pipe", &[Cause::SystemCall], "pipe, until reader woke it"),
    fault("equal_priority", &[Cause::EqualPriority], "rival"),
    fault("migration", &[Cause::Migration], ""),
    fault("long_run", &[Cause::RanLonger], "usually "),
    fault("sleep", &[Cause::SystemCall], "it sleeps itself: clock_nanosleep for a length of time"),
];

/// What is as true of a fault, but does not name it: the holder of an inversion's lock is not always delayed, and after
/// a fork each page that is written is copied.
const TRUE_TOO: [Fault; 2] = [
    fault("inversion", &[Cause::Lock], "held by logger (nice 10)"),
    blamed("memory_map", &[Cause::RanLonger, Cause::PageFault, Cause::MemoryAllocation], ""),
];

/// Causes that are in a program; others are in the machine, and may always be there as well.
pub(crate) const OF_PROGRAMS: [Cause; 11] = [
    Cause::RanLonger,
    Cause::Lock,
    Cause::KernelLock,
    Cause::PriorityInversion,
    Cause::Disk,
    Cause::MemoryAllocation,
    Cause::SystemCall,
    Cause::Migration,
    Cause::PageFault,
    Cause::EqualPriority,
    Cause::Stopped,
];

/// The compiled example.
pub(crate) fn compiled(scratch: &Scratch, options: &[&str]) -> PathBuf {
    Program::Servo.compiled(scratch, options)
}

/// The program `name` of a source in C.
pub(crate) fn compiled_from(scratch: &Scratch, name: &str, source: &str, options: &[&str]) -> PathBuf {
    let source = scratch.file(&format!("{name}.c"), source);
    let program = scratch.path(name);
    let mut cc = Command::new("cc");
    cc.args(["-O2", "-pthread", "-Wall", "-Wextra", "-Werror"]).args(options).arg("-o").arg(&program).arg(source);
    let said = run(&mut cc);
    assert_eq!((said.status, said.stderr.as_str()), (0, ""), "{said:?}");
    program
}

/// Watches a thread of a program for this many milliseconds, with the worst 60 activations explained.
pub(crate) fn watched(ms: u32, thread: &str, options: &[&str], program: &[String]) -> ProgramOutput {
    let mut command =
        command(&format!("watch --for {ms}ms --keep 60 --no-keep --wait --format json --thread {thread}"));
    run(command.args(options).arg("--").args(program))
}

/// The words of the example with these faults, and with its files beside those of the build.
pub(crate) fn words(program: &Path, fault: &str) -> Vec<String> {
    let program = program.display().to_string();
    [&program, "--every", "25", "--dir", DIRECTORY, "--fault", fault].map(str::to_owned).into()
}

/// Whether no watched thread has activations.
pub(crate) fn did_nothing(said: &ProgramOutput) -> bool {
    let has_no_row = match said.stdout.starts_with('{') {
        true => said.json()["cells"][0]["summary"]["watch"]["threads"].as_array().is_some_and(Vec::is_empty),
        false => said.stdout.contains("No watched thread has activations."),
    };
    has_no_row || said.last_line().contains("nothing to report: ")
}

/// The explanations of a watched program, checked to add up; `None` if the machine let it do nothing meanwhile.
#[track_caller]
pub(crate) fn explained(said: &ProgramOutput) -> Option<ExplainRecord> {
    if did_nothing(said) {
        return None;
    }
    assert_eq!(said.status, 0, "{said:?}");
    let explained = &said.json()["cells"][0]["summary"]["explained"];
    let explained: ExplainRecord = serde_json::from_value(explained.clone()).unwrap();
    sums_agree(&explained);
    Some(explained)
}

pub(crate) fn described(share: &Share) -> String {
    let or = share.or.map_or(String::new(), |or| format!(" or {or}"));
    format!("{}{or}: {} {}", share.cause, share.owner.name, share.place.as_deref().unwrap_or_default())
}

/// Whether a share is caused by a fault, without an alternative cause.
pub(crate) fn is_of(share: &Share, fault: &Fault) -> bool {
    share.or.is_none() && fault.causes.contains(&share.cause) && described(share).contains(fault.text)
}

/// Numbers of late activations that are blamed on each planted fault; else a cause that is not there.
fn counted(explained: &ExplainRecord, planted: &[&Fault]) -> Result<Vec<usize>, String> {
    let mut right = vec![0; planted.len()];
    for one in &explained.worst {
        let is_of_program = |share: &&Share| OF_PROGRAMS.contains(&share.cause) && share.or.is_none();
        let is_planted_here = |share: &&Share| planted.iter().any(|fault| is_of(share, fault));
        let Some(share) = one.blame().filter(|share| is_of_program(share) || is_planted_here(share)) else { continue };
        let is_planted = |too: &Fault| planted.iter().any(|fault| fault.name == too.name);
        match planted.iter().position(|fault| is_of(share, fault)) {
            Some(index) => right[index] += 1,
            None if TRUE_TOO.iter().any(|too| is_planted(too) && is_of(share, too)) => {}
            None => return Err(format!("{} in {one:#?}", described(share))),
        }
    }
    Ok(right)
}

/// Whether each planted fault is blamed at least this often, and no cause that is not there.
pub(crate) fn named(explained: Option<&ExplainRecord>, planted: &[&Fault], least: usize) -> Round {
    let Some(explained) = explained else { return Round::Nothing("the program did nothing".to_owned()) };
    match counted(explained, planted) {
        Ok(right) if right.iter().all(|n| *n >= least) => Round::Right,
        Ok(right) => Round::Nothing(format!("{right:?}, causes {:#?}", explained.causes)),
        Err(wrong) => Round::Wrong(wrong),
    }
}

/// Whether this machine can compile and watch a program; otherwise prints that the test is skipped.
pub(crate) fn may_watch() -> bool {
    instances().is_some() && is_installed("cc", "gcc")
}

/// Whether the machine has the CPUs and the disk that the fault needs; otherwise prints that it is skipped.
pub(crate) fn is_possible(fault: &Fault) -> bool {
    let (is_possible, needed) = match fault.name {
        "migration" => (punctual_sys::sched::affinity(0).unwrap().len() > 1, "two CPUs"),
        "fsync" | "major_fault" => {
            let kind = run(Command::new("stat").args(["-f", "-c", "%T", DIRECTORY]));
            (kind.stdout.trim() != "tmpfs", "a target directory on a disk")
        }
        _ => (true, ""),
    };
    if !is_possible {
        eprintln!("skipped: {} needs {needed}", fault.name);
    }
    is_possible
}

/// The faults with these names that are possible here.
pub(crate) fn by_name(names: &[&str]) -> Vec<&'static Fault> {
    FAULTS.iter().filter(|fault| names.contains(&fault.name) && is_possible(fault)).collect()
}
