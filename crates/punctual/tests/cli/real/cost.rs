//! The cost suite: every operation makes its calls, as often as requested, and its cells are ordinary cells.

use crate::program::{
    Scratch, command, inconclusive, is_installed, machine, machine_and_scratch, punctual, run, skip_unless,
};
use punctual_model::{COST_OPERATIONS, CostOperation};
use std::process::Command;

/// System calls of one operation, in all its processes together. Calls before and after the operations (`read` and
/// `write` of pipes, for example) are the same for any number of operations.
const CALLS: &[(&str, &[(&str, u64)])] = &[
    ("syscall/null", &[("getppid", 1)]),
    ("syscall/read", &[("read", 1)]),
    ("syscall/write", &[("write", 1)]),
    ("syscall/stat", &[("newfstatat", 1)]),
    ("syscall/fstat", &[("newfstatat", 1)]),
    ("syscall/open_close", &[("openat", 1), ("close", 1)]),
    ("syscall/select_10", &[("pselect6", 1)]),
    ("syscall/select_100", &[("pselect6", 1)]),
    ("syscall/poll_10", &[("poll", 1)]),
    ("syscall/poll_100", &[("poll", 1)]),
    ("signal/install", &[("rt_sigaction", 1)]),
    ("signal/deliver", &[("tgkill", 1), ("rt_sigreturn", 1)]),
    ("signal/fault", &[("rt_sigreturn", 1)]),
    ("process/fork", &[("clone", 1), ("wait4", 1)]),
    ("process/exec", &[("clone", 1), ("execve", 1), ("wait4", 1)]),
    ("process/shell", &[("clone", 1), ("execve", 1), ("wait4", 1)]),
    ("switch/2p_0k", &[("read", 1), ("write", 1)]),
    ("switch/2p_16k", &[("read", 1), ("write", 1)]),
    ("switch/2p_64k", &[("read", 1), ("write", 1)]),
    ("switch/8p_0k", &[("read", 1), ("write", 1)]),
    ("switch/8p_16k", &[("read", 1), ("write", 1)]),
    ("switch/8p_64k", &[("read", 1), ("write", 1)]),
    ("switch/16p_0k", &[("read", 1), ("write", 1)]),
    ("switch/16p_16k", &[("read", 1), ("write", 1)]),
    ("switch/16p_64k", &[("read", 1), ("write", 1)]),
    ("ipc/pipe", &[("read", 2), ("write", 2)]),
    ("ipc/unix", &[("read", 0), ("recvfrom", 2), ("sendto", 2)]),
    ("ipc/eventfd", &[("read", 2), ("write", 2)]),
    ("ipc/mqueue", &[("mq_timedsend", 2), ("mq_timedreceive", 2)]),
    ("ipc/semaphore", &[("semtimedop", 4)]),
    ("net/connect", &[("socket", 1), ("connect", 1), ("accept4", 1), ("setsockopt", 1)]),
    ("net/tcp", &[("recvfrom", 2), ("sendto", 2)]),
    ("net/udp", &[("recvfrom", 2), ("sendto", 2)]),
    ("memory/mmap", &[("mmap", 1), ("munmap", 1)]),
    ("memory/map_touch", &[("mmap", 1), ("munmap", 1)]),
    ("file/create", &[("openat", 1), ("close", 1), ("unlink", 1)]),
    ("file/delete", &[("unlink", 2), ("openat", 1)]),
    ("file/reread", &[("pread64", 1)]),
    ("file/mmap_reread", &[("mmap", 1), ("munmap", 1)]),
    ("sched/yield", &[("sched_yield", 1)]),
];

/// Number of calls of each kind that `n` operations make, counted by strace.
fn calls(scratch: &Scratch, operation: &str, n: u64) -> impl Fn(&str) -> u64 + use<> {
    let log = scratch.path("calls");
    let mut strace = Command::new("strace");
    strace.args(["-f", "-qq", "-o"]).arg(&log).arg(crate::program::PROGRAM);
    strace.args(["operation", operation, &n.to_string()]).env("TMPDIR", scratch.dir());
    let said = run(&mut strace);
    assert_eq!(said.status, 0, "{operation}: {said:?}");
    let text = std::fs::read_to_string(&log).unwrap();
    move |call: &str| {
        // `PID NAME(...`; the second half of an interrupted call does not count again.
        let names =
            text.lines().filter_map(|line| line.split_once(' ')?.1.trim_start().split_once('(')).map(|(name, _)| name);
        names.filter(|name| *name == call).count() as u64
    }
}

/// Resources that one process has used for `n` operations.
fn used(operation: &str, n: u64) -> serde_json::Value {
    let said = punctual(&format!("operation {operation} {n}")).expect_success();
    said.json()
}

#[test]
fn every_operation_makes_the_calls_that_it_says() {
    skip_unless!(is_installed("strace", "strace"));
    let (_machine, scratch) = machine_and_scratch("cost-calls");
    for (operation, kinds) in CALLS {
        // 64 is a multiple of every batch; the difference of two runs cancels the calls before and after.
        let [few, many] = [64, 128].map(|n| calls(&scratch, operation, n));
        for (call, each) in *kinds {
            // The end finds each process of a ring before or after its next call, and the only other one before or in
            // the call in which it waits.
            let slack = match (operation.split_once('/'), *call) {
                (Some(("switch", _)), _) => 8,
                (Some(("ipc" | "net", _)), "read" | "recvfrom" | "mq_timedreceive" | "semtimedop" | "accept4") => 1,
                _ => 0,
            };
            let found = many(call) - few(call);
            assert!(found.abs_diff(64 * each) <= slack, "{operation}: {call}: {found}, not {}", 64 * each);
        }
    }
}

#[test]
fn whoever_waits_on_a_futex_is_woken_by_another() {
    let _machine = machine();
    for (operation, n) in [("ipc/futex", 256), ("sched/wake_chain", 256)] {
        let used = used(operation, n);
        let [waits, preemptions] =
            ["voluntary_switches", "involuntary_switches"].map(|key| used[key].as_u64().unwrap());
        // The woken process may run at once, and end before this process waits.
        let switches = waits + preemptions;
        let trips = if operation == "ipc/futex" { n } else { n / 8 };
        assert!(
            switches * 10 >= trips * 9,
            "{operation}: {waits} waits and {preemptions} preemptions in {trips} trips"
        );
    }
}

#[test]
fn faults_and_signals_are_as_many_as_asked() {
    let _machine = machine();
    let of = |operation, n, what: &str| used(operation, n)[what].as_u64().unwrap();
    for n in [64, 640] {
        assert_eq!(of("signal/fault", n, "signals_and_faults_handled"), n);
        assert_eq!(of("signal/deliver", n, "signals_and_faults_handled"), n);
        let faults = of("memory/fault", n, "minor_faults");
        assert!((n..n + 32).contains(&faults), "{faults} faults of {n} pages");
        let touched = of("memory/map_touch", n, "minor_faults");
        assert!((16 * n..16 * n + 32).contains(&touched), "{touched} faults of {n} mappings");
        let untouched = of("memory/mmap", n, "minor_faults");
        assert!(untouched < 32, "{untouched} faults of mappings that nobody touches");
    }
}

#[test]
fn the_bytes_of_a_block_are_really_moved() {
    skip_unless!(is_installed("strace", "strace"));
    let (_machine, scratch) = machine_and_scratch("cost-bytes");
    for operation in COST_OPERATIONS.iter().filter(|operation| operation.name.ends_with("_bandwidth")) {
        let CostOperation { name, bytes, .. } = operation;
        let moved = |n: u64| {
            let log = scratch.path("bytes");
            let mut strace = Command::new("strace");
            strace.args(["-f", "-qq", "-e", "trace=read,recvfrom", "-o"]).arg(&log).arg(crate::program::PROGRAM);
            run(strace.args(["operation", name, &n.to_string()])).expect_success();
            let text = std::fs::read_to_string(&log).unwrap();
            let results = text.lines().filter_map(|line| line.rsplit_once("= ")?.1.parse::<u64>().ok());
            results.sum::<u64>()
        };
        // The files that are read before and after cancel.
        assert_eq!(moved(6) - moved(2), 4 * bytes.unwrap(), "{name}");
    }
}

#[test]
fn the_compiler_removes_no_work() {
    let _machine = machine();
    let said = punctual("measure cost --only memory --quick --wait --format json");
    let operations = said.json()["cells"][0]["summary"]["cost"]["operations"].as_array().unwrap().clone();
    for operation in operations {
        // At 10^12 bytes per second, more than any CPU moves, a block would take 1 us.
        let rate = operation["mb_per_s"].as_f64();
        assert!(rate.is_none_or(|rate| rate < 1e6), "{operation}");
        let shortest = operation["median_ns"].as_f64().unwrap();
        assert!(shortest > 1.0, "{operation}");
    }
}

#[test]
fn all_operations_are_measured_or_skipped_by_name() {
    let (_machine, scratch) = machine_and_scratch("cost");
    let out = scratch.path("run");
    let said = punctual(&format!("measure cost --quick --wait --format json --out {}", out.display())).expect_success();
    let cost = &said.json()["cells"][0]["summary"]["cost"];
    let names = |what: &str| -> Vec<String> {
        let all = cost[what].as_array().unwrap().iter();
        all.map(|one| one["name"].as_str().unwrap().to_owned()).collect()
    };
    let (measured, skipped) = (names("operations"), names("skipped"));
    for one in cost["skipped"].as_array().unwrap() {
        assert_eq!(one["reason"], punctual_workload::cost::NOT_REACHED, "{one}");
    }
    if !skipped.is_empty() {
        inconclusive(&format!("the machine was too slow to reach {skipped:?}"));
    }
    let all = COST_OPERATIONS.iter().map(|operation| operation.name.to_owned());
    assert_eq!(measured, all.filter(|name| !skipped.contains(name)).collect::<Vec<_>>());
    for one in cost["operations"].as_array().unwrap() {
        let [median, p99, worst] = ["median_ns", "p99_ns", "worst_ns"].map(|key| one[key].as_f64().unwrap());
        assert!(0.0 < median && median <= p99 && p99 <= worst, "{one}");
    }
    let show = punctual(&format!("show {}", out.display()));
    assert!(show.status == 0 && show.stdout.contains("syscall/read") && !show.stdout.contains("wake-ups"), "{show:?}");
}

#[test]
fn the_fixed_amount_of_work_is_one_number() {
    let _machine = machine();
    let said = punctual("measure cost --only total --wait --format json");
    let cost = &said.json()["cells"][0]["summary"]["cost"];
    if cost["skipped"].as_array().is_some_and(|skipped| !skipped.is_empty()) {
        return inconclusive("the machine was too slow for all of the work");
    }
    let of_each = cost["operations"].as_array().unwrap().iter();
    let sum: f64 = of_each
        .map(|one| {
            let fixed = CostOperation::named(one["name"].as_str().unwrap()).unwrap().fixed;
            assert_eq!((one["per_batch"].as_u64(), one["batches"].as_u64()), (Some(fixed), Some(1)), "{one}");
            one["median_ns"].as_f64().unwrap() * fixed as f64 + cost["clock_ns"].as_f64().unwrap()
        })
        .sum();
    let total = cost["total_ns"].as_f64().unwrap();
    assert!((sum / total - 1.0).abs() < 1e-6, "{sum} and {total}");
}

#[test]
fn no_limit_of_latencies_is_advised_where_none_was_measured() {
    let _machine = machine();
    let said = punctual("measure cost --only syscall/null --quick --wait").expect_success();
    assert!(said.stdout.contains("a cost has no verdict") && !said.stdout.contains("--require"), "{said:?}");
}

#[test]
fn what_is_wrong_is_said_in_one_line() {
    let _machine = machine();
    let missing = command("measure cost --only file --quick --wait").env("TMPDIR", "/does/not/exist").output().unwrap();
    let words = String::from_utf8(missing.stderr).unwrap();
    assert!(
        words.contains("cost: cannot create a directory in /does/not/exist: ") && words.contains("TMPDIR"),
        "{words}"
    );
    let few = "ulimit -n 64; exec \"$0\" measure cost --only syscall --quick --wait";
    let said = run(Command::new("sh").args(["-c", few, crate::program::PROGRAM]));
    assert!(said.status == 1 && said.stderr.contains("syscall/select_100: "), "{said:?}");
    assert!(said.stderr.contains("raise `ulimit -n` to 256"), "{said:?}");
}
