//! Hand-offs on this machine: every due time is accounted for, and nothing is left.

use crate::program::{
    a_cpu, cell, command, finish, inconclusive, is_root, machine, record, record_of, skip_unless, start_cell,
    wait_for_progress,
};
use punctual_model::{Cell, Ended, HandoffKind, Span};
use punctual_sys::testing::comes_true;

/// What could be left: System V semaphores of this program, and names of queues.
fn left() -> Vec<String> {
    let sets = std::fs::read_to_string("/proc/sysvipc/sem").unwrap_or_default();
    let is_ours = |line: &&str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let key = words[0].parse::<i32>().map_or(0, i32::cast_unsigned);
        punctual_sys::ipc::maker_of_semaphores(key, words[3].parse().unwrap_or(0)).is_some()
    };
    let queues = std::fs::read_dir("/dev/mqueue").into_iter().flatten();
    let queues = queues.map(|queue| queue.unwrap().file_name().into_string().unwrap());
    sets.lines().filter(is_ours).map(str::to_owned).chain(queues.filter(|name| name.contains("handoff"))).collect()
}

#[test]
fn every_kind_is_accounted_for_and_leaves_nothing() {
    let _machine = machine();
    let (here, before) = (a_cpu().to_string(), left());
    let cpus = punctual_sys::sched::affinity(0).unwrap();
    let kinds = HandoffKind::KNOWN.iter().map(|kind| (*kind).to_owned());
    let of_other_cpus = cpus.iter().map(|cpu| format!("futex,cpu={cpu},policy=batch"));
    for kind in kinds.chain(of_other_cpus) {
        let asked = Cell { task: format!("handoff:{kind}").parse().unwrap(), ..cell("other", "none", &here, "100ms") };
        let said = finish(start_cell(command("cell"), &asked));
        if kind == "mq" && said.stderr.contains("the kernel does not have it; choose another kind of hand-off") {
            eprintln!("skipped: needs CONFIG_POSIX_MQUEUE");
            continue;
        }
        let record = record_of(said);
        let thread = &record.threads[0];
        let ledger = thread.ledger(&asked.task);
        assert!(thread.is_consistent() && ledger.is_balanced() && ledger.due == 100, "{kind}: {thread:?}");
        match thread.usage {
            Some(usage) => assert_eq!((ledger.unseen, ledger.open, usage.allocations), (0, 0, 0), "{kind}: {ledger:?}"),
            None => inconclusive(&format!("{kind}: {:?}", thread.censored)),
        }
        assert!(thread.early == 0 && thread.timer_overruns.is_none(), "{kind}: {thread:?}");
        if ledger.recorded == 0 {
            inconclusive(&format!("{kind}: {ledger:?}"));
        }
        assert_eq!(left(), before, "{kind}");
    }
}

#[test]
fn a_limit_ends_the_cell_and_its_waker() {
    let _machine = machine();
    let mut asked = Cell { task: "handoff:sem".parse().unwrap(), ..cell("other", "none", &a_cpu().to_string(), "2s") };
    asked.conditions.stop_above = Some(Span(1));
    let record = record(start_cell(command("cell"), &asked));
    let thread = &record.threads[0];
    assert!(thread.is_consistent(), "{thread:?}");
    if thread.recorded == 0 {
        return inconclusive(&format!("no hand-off: {thread:?}"));
    }
    assert_eq!((thread.recorded, record.ended), (1, Ended::Stopped));
}

#[test]
fn root_a_killed_cell_leaves_no_semaphores() {
    skip_unless!(is_root());
    let _machine = machine();
    let before = left();
    let asked =
        Cell { task: "handoff:sysv-sem".parse().unwrap(), ..cell("other", "none", &a_cpu().to_string(), "1min") };
    let mut child = start_cell(command("cell --progress"), &asked);
    wait_for_progress(&mut child);
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(comes_true(|| left() == before), "{:?}", left());
}
