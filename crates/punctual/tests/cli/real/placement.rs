//! Placement of a load: every process on the requested CPUs and with the requested policy.

use crate::program::{
    Start, a_cpu, a_cpu_and_the_others, cell, command, inconclusive, is_root, kill_and_wait, machine, progress,
    running, skip_unless, start_cell, wait_for_progress,
};
use punctual_model::{Cell, Conditions, CpuSet};
use punctual_sys::testing::comes_true;
use punctual_sys::{process, sched};
use std::process::Child;

/// A process as shown by /proc.
#[derive(Debug)]
pub(crate) struct Seen {
    pub(crate) pid: u32,
    parent: u32,
    /// CPUs in its affinity mask.
    cpus: CpuSet,
    /// Policy in the syntax of a plan.
    policy: String,
    /// Limit of CPU time in seconds, or `unlimited`.
    cpu_time: String,
}

/// Reads the process; `None` once it has exited.
fn see(pid: u32) -> Option<Seen> {
    let read = |file: &str| std::fs::read_to_string(format!("/proc/{pid}/{file}")).ok();
    let (stat, status, limits) = (read("stat")?, read("status")?, read("limits")?);
    // proc_pid_stat(5) from field 3 on: after the name, which may contain anything.
    let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split(' ').collect();
    let field = |number: usize| fields.get(number - 3).copied();
    let (nice, priority) = (field(19)?, field(40)?);
    let policy = match field(41)? {
        "0" if nice == "0" => "other".to_owned(),
        "0" => format!("other:nice={nice}"),
        "1" => format!("fifo:{priority}"),
        "2" => format!("rr:{priority}"),
        "3" => "batch".to_owned(),
        "5" => "idle".to_owned(),
        unknown => unknown.to_owned(),
    };
    let cpus = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?.trim().parse().ok()?;
    let cpu_time = limits.lines().find_map(|line| line.strip_prefix("Max cpu time"))?.split_whitespace().next()?;
    Some(Seen { pid, parent: field(4)?.parse().ok()?, cpus, policy, cpu_time: cpu_time.to_owned() })
}

/// The supervisors of the cell with process ID `cell`, and every process below them.
pub(crate) fn load_of(cell: u32) -> (Vec<u32>, Vec<Seen>) {
    let seen: Vec<(u32, Seen)> = running().into_iter().filter_map(|pid| Some((pid, see(pid)?))).collect();
    let supervisors: Vec<u32> = seen.iter().filter(|(_, seen)| seen.parent == cell).map(|(pid, _)| *pid).collect();
    let is_below = |pid: u32| pid != cell && !supervisors.contains(&pid);
    let workers = seen.into_iter().filter(|(pid, _)| is_below(*pid)).map(|(_, seen)| seen).collect();
    (supervisors, workers)
}

/// Kills a cell that is no longer needed.
fn end(mut child: Child) {
    kill_and_wait(&mut child);
    assert!(comes_true(|| running().is_empty()), "processes stay");
}

/// One load of each kind: messages, computation, kernel work, files, child processes, a program.
const KINDS: &str = "messaging:groups=1+cpu:50+pipe+timers+exec+files+cmd:sleep 1h & while :; do :; done";

/// The thread that drains the logs and samples the machine each second, and all other threads of a cell that do not
/// measure.
#[test]
fn what_does_not_measure_keeps_off_the_measured_cpus() {
    let Some((measured, others)) = a_cpu_and_the_others() else { return };
    let all = sched::affinity(0).unwrap();
    let _machine = machine();
    for cpus in [&measured, &all] {
        let mut child = start_cell(command("cell --progress"), &cell("other", "none", &cpus.to_string(), "1h"));
        wait_for_progress(&mut child);
        let tasks = std::fs::read_dir(format!("/proc/{}/task", child.id())).unwrap().flatten();
        let threads: Vec<u32> = tasks.map(|task| task.file_name().to_str().unwrap().parse().unwrap()).collect();
        let aside = if cpus == &measured { &others } else { &all };
        let places: Vec<CpuSet> = threads.iter().map(|thread| sched::affinity(*thread).unwrap()).collect();
        let on_one = |cpu: u32| places.iter().filter(|place| **place == [cpu].into_iter().collect()).count();
        assert!(cpus.iter().all(|cpu| on_one(cpu) >= 1), "one measures on each of {cpus}: {places:?}");
        // The first thread samples the machine.
        assert_eq!(sched::affinity(child.id()).unwrap(), *aside, "measured: {cpus}");
        assert_eq!(places.iter().filter(|place| *place != aside).count(), cpus.len(), "{places:?}");
        end(child);
    }
}

#[test]
fn root_every_process_of_a_load_has_its_cpus_and_policy() {
    skip_unless!(is_root());
    let _machine = machine();
    let all = sched::affinity(0).unwrap();
    let last: CpuSet = [a_cpu()].into_iter().collect();
    let first: CpuSet = all.iter().take(1).collect();
    for (cpus, policy) in [
        (None, None),
        (Some(&last), None),
        (Some(&first), Some("other:nice=7")),
        (Some(&all), Some("batch")),
        (Some(&last), Some("idle")),
    ] {
        let (load_cpus, load_policy) = (cpus.cloned(), policy.map(|policy| policy.parse().unwrap()));
        let cell = Cell {
            load_cpus,
            conditions: Conditions { load_policy, ..Conditions::default() },
            ..cell("other", KINDS, &first.to_string(), "1h")
        };
        let mut child = start_cell(command("cell --progress"), &cell);
        if let Err(said) = progress(&mut child) {
            // On a busy CPU an idle load may not even begin.
            assert!(said.contains("timeout: "), "{said}");
            kill_and_wait(&mut child);
            inconclusive(&format!("{policy:?} on {cpus:?}: {}", said.trim_end()));
            continue;
        }
        let least = 40 + cpus.unwrap_or(&all).len() * 6 + 2;
        let (mut supervisors, mut workers) = (Vec::new(), Vec::new());
        comes_true(|| {
            (supervisors, workers) = load_of(child.id());
            workers.len() >= least || child.try_wait().unwrap().is_some()
        });
        if workers.len() < least {
            kill_and_wait(&mut child);
            panic!("{least} of {cpus:?} {policy:?}: {supervisors:?} {workers:?}, {:?}", child.wait_with_output());
        }
        assert_eq!(supervisors.len(), 7);
        for worker in workers {
            assert_eq!(worker.policy, policy.unwrap_or("other"), "{worker:?}");
            let is_one_of_them = worker.cpus.len() == 1 && worker.cpus.minus(cpus.unwrap_or(&all)).is_empty();
            assert!(worker.cpus == *cpus.unwrap_or(&all) || is_one_of_them, "{worker:?}");
        }
        end(child);
    }
}

#[test]
fn a_load_can_be_kept_off_the_measured_cpus_or_put_on_them() {
    let _machine = machine();
    let all = sched::affinity(0).unwrap();
    let measured: CpuSet = [a_cpu()].into_iter().collect();
    let others = all.minus(&measured);
    for (word, cpus) in [("measured", &measured), ("others", &others), ("all", &all)] {
        if cpus.is_empty() {
            continue;
        }
        let options = format!("measure --wait --duration 1h --load pipe --cpus {measured} --load-cpus {word}");
        let mut measure = command(&options);
        let child = measure.start_silent();
        let cell_of = || running().into_iter().find(|pid| see(*pid).is_some_and(|seen| seen.parent == child.id()));
        let workers_of = |cell| load_of(cell).1.into_iter().filter(|seen| seen.parent != child.id());
        // `measure` itself is not part of the load, though it is not below the cell.
        let workers = || cell_of().map(|cell| workers_of(cell).filter(|seen| seen.parent != std::process::id()));
        assert!(comes_true(|| workers().is_some_and(|workers| workers.count() == 2 * cpus.len())), "{word}");
        for worker in workers().into_iter().flatten() {
            assert_eq!(worker.cpus, *cpus, "{word}: {worker:?}");
        }
        end(child);
    }
}

#[test]
fn root_a_real_time_load_has_a_cpu_limit_and_ends_with_its_supervisor() {
    let all = sched::affinity(0).unwrap();
    skip_unless!(is_root() && all.len() > 1);
    let _machine = machine();
    let load_cpus: Option<CpuSet> = Some([a_cpu()].into_iter().collect());
    let first: CpuSet = all.iter().take(1).collect();
    let load = "messaging:groups=1+pipe+cmd:sleep 1h & while :; do :; done";
    let load_policy = Some("rr:1".parse().unwrap());
    let cell = Cell {
        load_cpus,
        conditions: Conditions { load_policy, ..Conditions::default() },
        ..cell("other", load, &first.to_string(), "10min")
    };
    let mut child = start_cell(command("cell --progress"), &cell);
    wait_for_progress(&mut child);
    assert!(comes_true(|| load_of(child.id()).1.len() == 44), "{:?}", load_of(child.id()));
    let (supervisors, workers) = load_of(child.id());
    assert_eq!(supervisors.len(), 3);
    for worker in &workers {
        // 10 minutes, and one for the cell to end.
        assert_eq!((worker.policy.as_str(), worker.cpu_time.as_str()), ("rr:1", "660"), "{worker:?}");
    }
    // No process is left to clean up: the kernel ends the workers.
    process::signal(child.id(), libc::SIGSTOP).unwrap();
    supervisors.iter().for_each(|supervisor| process::signal(*supervisor, libc::SIGKILL).unwrap());
    // A descendant of the load's program outlives it.
    let descendants: Vec<&Seen> = workers.iter().filter(|worker| !supervisors.contains(&worker.parent)).collect();
    assert_eq!(descendants.len(), 1, "{workers:?}");
    process::signal(descendants[0].pid, libc::SIGKILL).unwrap();
    end(child);
}
