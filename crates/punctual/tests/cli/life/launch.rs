//! `punctual launch`: a foreign program and its descendants run with a cell's settings.

use crate::program::{Scratch, a_cpu, is_root, kill_and_wait, machine, run, running, skip_unless};
use crate::session::play;
use punctual_sys::testing::comes_true;
use std::process::{Command, Stdio};

/// `punctual launch` of `program` on `cpu`.
fn launch(cpu: u32, policy: &str, slack: &str, program: &[&str]) -> Command {
    let (parent, cpu) = (std::process::id().to_string(), cpu.to_string());
    let mut command = crate::program::command("launch");
    command.args(["--parent", &parent, "--cpus", &cpu, "--policy", policy, "--timer-slack", slack, "--"]);
    command.args(program);
    command
}

/// Field `n` of a line of proc_pid_stat(5), counted as in that page.
fn field(stat: &str, n: usize) -> &str {
    stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().nth(n - 3)).expect("a stat line")
}

#[test]
fn settings_reach_what_the_program_starts() {
    let cpu = a_cpu();
    // SCHED_OTHER 0, SCHED_BATCH 3, SCHED_IDLE 5 (sched(7)). The nice value of an idle thread is stored but unused.
    for (policy, slack, number, nice) in [
        ("other", "50us", "0", Some("0")),
        ("other:nice=5", "1us", "0", Some("5")),
        ("batch", "50us", "3", Some("0")),
        ("idle", "1ns", "5", None),
    ] {
        // `cat` is a child of the shell and shows inherited settings.
        let script = "cat /proc/self/stat; cat /proc/self/timerslack_ns; cat /proc/self/status; :";
        let said = run(&mut launch(cpu, policy, slack, &["sh", "-c", script]));
        let mut lines = said.stdout.lines();
        let stat = lines.next().unwrap_or_else(|| panic!("{said:?}"));
        assert_eq!(field(stat, 41), number, "{policy}: {stat}");
        assert!(nice.is_none_or(|nice| field(stat, 19) == nice), "{policy}: {stat}");
        let slack: punctual_model::Span = slack.parse().unwrap();
        assert_eq!(lines.next(), Some(slack.ns().to_string().as_str()), "{policy}");
        assert!(said.stdout.contains(&format!("Cpus_allowed_list:\t{cpu}\n")), "{said:?}");
    }
}

#[test]
fn root_a_real_time_policy_reaches_what_the_program_starts() {
    skip_unless!(is_root());
    // SCHED_FIFO 1, SCHED_RR 2.
    for (policy, number, priority) in [("fifo:1", "1", "1"), ("rr:7", "2", "7")] {
        let said = run(&mut launch(a_cpu(), policy, "50us", &["sh", "-c", "cat /proc/self/stat; :"]));
        assert_eq!((field(&said.stdout, 41), field(&said.stdout, 40)), (number, priority), "{policy}: {said:?}");
    }
}

#[test]
fn every_process_has_a_name_and_keeps_it() {
    // Each waits for its input.
    for (words, name) in [("cell", "punctual-cell"), ("serve-cells", "punctual-serve")] {
        // As this program starts its own processes, which are called `exe` until they name themselves.
        let scratch = Scratch::new("exe");
        let link = scratch.path("exe");
        std::os::unix::fs::symlink(crate::program::PROGRAM, &link).unwrap();
        let mut child =
            Command::new(&link).args(words.split(' ')).stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let comm = format!("/proc/{}/comm", child.id());
        let is_named = comes_true(|| std::fs::read_to_string(&comm).is_ok_and(|comm| comm.trim_end() == name));
        kill_and_wait(&mut child);
        assert!(is_named, "{words}");
    }
}

#[test]
fn the_program_ends_with_its_parent() {
    let _machine = machine();
    let cpu = a_cpu();
    let program = crate::program::PROGRAM;
    let script =
        format!("{program} launch --parent $$ --cpus {cpu} --policy other --timer-slack 50us -- sleep 600 & wait");
    let mut shell = Command::new("sh");
    shell.args(["-c", &script]).env(crate::program::MARK, crate::program::mark()).stdin(Stdio::null());
    let mut shell = shell.spawn().unwrap();
    let is_asleep =
        |pid: &u32| std::fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name == "sleep\n");
    assert!(comes_true(|| running().iter().any(is_asleep)), "{:?}", running());
    kill_and_wait(&mut shell);
    assert!(comes_true(|| running().is_empty()), "{:?} left", running());
}

#[test]
fn what_cannot_be_had_is_one_line_and_nothing_runs() {
    let _machine = machine();
    play(|scratch, _| drop(scratch.file("absent", punctual_model::CpuSet::MAX_CPU.to_string())));
}
