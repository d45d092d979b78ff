//! Explanations of real late wake-ups, whatever their causes: they add up, and nothing is left behind.

use crate::program::{
    a_cpu, cell, command, entries, inconclusive, is_root, kill_and_wait, machine, machine_and_scratch, punctual,
    read_json, record, run, skip_unless, start_cell, wait_for_progress, wrapped,
};
use punctual_model::{Cell, Conditions, Explain, ExplainRecord, Explanation, OwnName, Phase, Record, Span};
use punctual_sys::testing::comes_true;
use punctual_sys::{process, sched};
use std::path::{Path, PathBuf};

/// The `instances` directory of tracefs; prints that the test is skipped and returns `None` without tracefs or root.
pub(crate) fn instances() -> Option<PathBuf> {
    let mounts = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];
    let found = mounts.iter().map(|mount| Path::new(mount).join("instances")).find(|dir| dir.is_dir());
    if !is_root() {
        return None;
    }
    if found.is_none() {
        eprintln!("skipped: needs tracefs (mount -t tracefs nodev /sys/kernel/tracing)");
    }
    found
}

/// Names of the trace instances that punctual has made.
fn ours(instances: &Path) -> Vec<String> {
    let names =
        std::fs::read_dir(instances).unwrap().flatten().filter_map(|entry| entry.file_name().into_string().ok());
    names.filter(|name| name.starts_with("punctual-")).collect()
}

/// Those of them whose process has ended: others of this machine may measure meanwhile.
pub(crate) fn left_behind(instances: &Path) -> Vec<String> {
    ours(instances).into_iter().filter(|name| !Path::new("/proc").join(owner(name)).exists()).collect()
}

/// The process that made an instance of this name.
fn owner(name: &str) -> &str {
    name.split('-').nth(2).unwrap_or_default()
}

/// Those that a child of this process has made.
pub(crate) fn of_child(instances: &Path, pid: u32) -> Vec<String> {
    let is_parent = |name: &String| {
        let status = std::fs::read_to_string(Path::new("/proc").join(owner(name)).join("status")).unwrap_or_default();
        status.lines().any(|line| line.strip_prefix("PPid:").is_some_and(|parent| parent.trim() == pid.to_string()))
    };
    ours(instances).into_iter().filter(is_parent).collect()
}

/// A cell on one CPU whose wake-ups later than `above` are explained.
pub(crate) fn asked(policy: &str, above: &str, duration: &str) -> Cell {
    let explain = Explain { above: Some(above.parse().unwrap()), keep: 50, ..Explain::default() };
    Cell {
        lock_memory: true,
        conditions: Conditions { explain: Some(explain), ..Conditions::default() },
        ..cell(policy, "none", &a_cpu().to_string(), duration)
    }
}

/// The same cell with other wishes for explanations.
pub(crate) fn with_explain(cell: Cell, explain: Explain) -> Cell {
    Cell { conditions: Conditions { explain: Some(explain), ..cell.conditions }, ..cell }
}

/// Asserts that explanations add up: each to its latency, all to the late time.
#[track_caller]
pub(crate) fn sums_agree(explained: &ExplainRecord) {
    assert_eq!(explained.explained + explained.not_covered, explained.spikes);
    assert_eq!(explained.evidence_ns.iter().sum::<u64>(), explained.late.ns());
    assert_eq!(explained.causes.iter().map(|cause| cause.total.ns()).sum::<u64>(), explained.late.ns());
    assert_eq!(explained.causes.iter().map(|cause| cause.blamed).sum::<u64>(), explained.explained);
    assert!(explained.worst.iter().all(Explanation::is_complete), "{:#?}", explained.worst);
    assert!(explained.worst.is_sorted_by(|one, next| one.latency >= next.latency), "worst first");
}

/// The explanations of the record, checked: each adds up to the nanosecond, and to the latency that the record has for
/// its cycle.
#[track_caller]
pub(crate) fn explained(record: &Record) -> &ExplainRecord {
    let explained = record.explained.as_ref().expect("it was asked for");
    sums_agree(explained);
    for one in &explained.worst {
        let thread = record.threads.iter().find(|thread| thread.cpu == one.cpu).unwrap();
        let latency = i64::try_from(one.latency.ns()).unwrap();
        let same = thread.worst.iter().find(|worst| i64::try_from(worst.cycle) == Ok(one.cycle));
        assert!(same.is_none_or(|worst| worst.latency_ns == latency), "{one:#?}");
    }
    for thread in &record.threads {
        assert!(thread.is_consistent(), "{thread:?}");
        assert!(thread.usage.is_none_or(|usage| usage.allocations == 0), "{:?}", thread.usage);
    }
    explained
}

/// A control group of a version-1 hierarchy or of version 2; removed when dropped.
pub(crate) struct Group(pub(crate) PathBuf);

impl Group {
    /// Makes a group with these settings of version 1 or of version 2; prints that the test is skipped and returns
    /// `None` where neither is available.
    pub(crate) fn make(controller: &str, version_1: &[(&str, &str)], version_2: &[(&str, &str)]) -> Option<Group> {
        let name = format!("punctual-test-{}", std::process::id());
        let places = [(format!("/sys/fs/cgroup/{controller}"), version_1), ("/sys/fs/cgroup".to_owned(), version_2)];
        for (parent, settings) in places {
            let group = Group(Path::new(&parent).join(&name));
            let is_made = std::fs::create_dir(&group.0).is_ok();
            let is_set = || settings.iter().all(|(file, text)| std::fs::write(group.0.join(file), text).is_ok());
            if is_made && group.0.join("cgroup.procs").exists() && is_set() {
                return Some(group);
            }
        }
        eprintln!("skipped: needs control groups with the controller {controller}");
        None
    }

    /// `punctual cell` of `program` in this group.
    pub(crate) fn command(&self, program: &Path) -> std::process::Command {
        let mut command = std::process::Command::new("sh");
        let enter = "echo $$ > \"$0\"/cgroup.procs && exec \"$1\" cell --progress";
        command.args(["-c", enter]).arg(&self.0).arg(program);
        command
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        comes_true(|| {
            std::fs::remove_dir(&self.0).map_or_else(|err| err.raw_os_error() != Some(libc::EBUSY), |()| true)
        });
    }
}

#[test]
fn root_every_late_wake_up_of_a_stopped_process_adds_up() {
    skip_unless!(instances().is_some());
    let _machine = machine();
    let mut command = command("cell");
    command.arg("--progress");
    let mut child = start_cell(command, &asked("fifo:80", "1us", "3s"));
    wait_for_progress(&mut child);
    for _ in 0..5 {
        process::signal(child.id(), libc::SIGSTOP).unwrap();
        comes_true(|| crate::program::is_stopped(child.id()));
        process::signal(child.id(), libc::SIGCONT).unwrap();
    }
    let record = record(child);
    let explained = explained(&record);
    assert!(explained.worst.len() <= 50 && explained.above == Some(Span(1_000)), "{explained:#?}");
    if explained.explained == 0 {
        inconclusive("nothing was late and covered by the trace");
    }
}

#[test]
fn root_timer_slack_is_at_most_as_long_as_was_allowed() {
    skip_unless!(instances().is_some());
    let _machine = machine();
    let asked = asked("other", "1ms", "1s");
    let cell = Cell {
        period: "10ms".parse().unwrap(),
        conditions: Conditions { timer_slack: Some(Span(3_000_000)), ..asked.conditions },
        ..asked
    };
    let slack = |one: &Explanation| {
        one.phases.iter().find(|phase| phase.phase == Phase::TimerSlack).map(|phase| phase.length.ns())
    };
    let record = record(start_cell(command("cell"), &cell));
    let slacks: Vec<u64> = explained(&record).worst.iter().filter_map(slack).collect();
    assert!(slacks.iter().all(|ns| *ns <= 3_000_000), "{slacks:?}");
    assert!(record.threads.iter().all(|thread| thread.achieved.timer_slack_ns == 3_000_000), "{:?}", record.threads);
    if slacks.is_empty() {
        inconclusive("no timer expired late by its slack");
    }
}

#[test]
fn root_the_worst_are_kept_and_the_threshold_rises_to_them() {
    skip_unless!(instances().is_some());
    let _machine = machine();
    let explain = Explain { keep: 3, ..Explain::default() };
    let cell = with_explain(asked("other", "1us", "3500ms"), explain);
    let record = record(start_cell(command("cell"), &cell));
    let explained = explained(&record);
    let Some(above) = explained.above else {
        assert_eq!(explained.spikes, 0, "without a threshold nothing is late: {explained:#?}");
        return inconclusive("too few wake-ups say what is usual");
    };
    assert!(explained.worst.len() <= 3 && explained.above_at_end >= Some(above), "{explained:#?}");
    assert!(explained.worst.iter().all(|one| one.latency > above));
    // The least of them is the threshold, once there are three.
    let least = explained.worst.get(2).map(|one| one.latency);
    assert!(least.is_none_or(|least| explained.above_at_end <= Some(least)), "{explained:#?}");
}

#[test]
fn root_a_wake_up_begins_with_its_interrupt() {
    skip_unless!(instances().is_some());
    let _machine = machine();
    // Nothing is that late, so nothing stops the trace.
    let record = record(start_cell(command("cell"), &asked("fifo:80", "1h", "2s")));
    let explained = explained(&record);
    assert_eq!((explained.spikes, explained.stood_still), (0, Some(Span(0))), "{explained:#?}");
    let [thread] = &record.threads[..] else { panic!("{:?}", record.threads) };
    let [irq] = &explained.irq[..] else { return inconclusive("no interrupt was seen") };
    let (irq, all) = (&irq.histogram, &thread.histogram);
    // The last one may be waited for at the end.
    assert!(irq.n <= all.n + thread.lost + u64::from(thread.censored.is_some()), "{irq:?} {thread:?}");
    assert!(irq.min_ns > Some(0), "{:?}", irq.min_ns);
    if irq.n == all.n && thread.censored.is_none() {
        let numbers = |one: &punctual_model::Histogram| (one.min_ns, one.max_ns, one.sum_ns);
        let ((min, max, sum), (all_min, all_max, all_sum)) = (numbers(irq), numbers(all));
        assert!(min < all_min && max < all_max && sum < all_sum, "{irq:?} {all:?}");
    } else {
        inconclusive(&format!("{} interrupts of {} wake-ups were seen", irq.n, all.n));
    }
}

#[test]
fn root_a_stopped_trace_restarts_at_once_and_counts_its_gap() {
    skip_unless!(instances().is_some());
    let allowed = sched::affinity(0).unwrap();
    if allowed.len() < 2 {
        eprintln!("skipped: needs a CPU that is not measured");
        return;
    }
    let _machine = machine();
    let mut command = command("cell");
    command.arg("--progress");
    // Normal threads have a slack of 50 us: most wake-ups stop the trace.
    let mut child = start_cell(command, &asked("other", "1us", "2s"));
    wait_for_progress(&mut child);
    let task = PathBuf::from(format!("/proc/{}/task", child.id()));
    let is_taker = |dir: &PathBuf| {
        std::fs::read_to_string(dir.join("comm")).is_ok_and(|name| name.trim_end() == OwnName::Trace.name())
    };
    let policy = || {
        let taker = std::fs::read_dir(&task).ok()?.flatten().map(|entry| entry.path()).find(is_taker)?;
        Some(sched::policy(taker.file_name()?.to_str()?.parse().ok()?).ok()?.to_string())
    };
    // It has its policy once it has something to read. Version-1 control groups may have no real-time runtime.
    let mut seen = None;
    let is_first = comes_true(|| {
        seen = policy();
        seen.as_deref().is_none_or(|policy| policy == "fifo:1" || policy == "other:-20")
    });
    assert!(is_first, "{seen:?}");
    if seen.is_none() {
        inconclusive("the cell was over before its threads were looked at");
    }
    let record = record(child);
    let explained = explained(&record);
    let [thread] = &record.threads[..] else { panic!("{:?}", record.threads) };
    let seen = explained.irq.first().map_or(0, |irq| irq.histogram.n);
    let still_ms = explained.stood_still.unwrap().ns() / 1_000_000;
    // Two at the edges of each standstill: one was started before, one expires after.
    let most = still_ms + 3 * explained.spikes + 5;
    let unseen = thread.histogram.n.saturating_sub(seen);
    assert!(unseen <= most || explained.overwritten > Some(0), "{unseen} not seen, {most} expected: {explained:#?}");
    assert!(explained.spikes == 0 || explained.stood_still > Some(Span(0)), "{explained:#?}");
}

#[test]
fn root_nothing_is_left_behind_and_what_a_killed_one_left_is_removed() {
    let Some(instances) = instances() else { return };
    let _machine = machine();
    let others = instances.join(format!("somebody-elses-{}", std::process::id()));
    std::fs::create_dir(&others).unwrap();
    std::fs::write(others.join("tracing_on"), "1").unwrap();
    let mut command = command("cell");
    command.arg("--progress");
    let mut child = start_cell(command, &asked("fifo:80", "1s", "10min"));
    wait_for_progress(&mut child);
    let instance = ours(&instances).into_iter().find(|name| name.contains(&format!("-{}-", child.id()))).unwrap();
    let on = |dir: &Path| std::fs::read_to_string(dir.join("tracing_on")).unwrap();
    assert_eq!(on(&instances.join(&instance)), "1\n");
    kill_and_wait(&mut child);
    // The kernel stops the trace of a process that has exited.
    assert!(comes_true(|| on(&instances.join(&instance)) == "0\n"));
    let record = record(start_cell(crate::program::command("cell"), &asked("fifo:80", "1s", "100ms")));
    assert!(record.explained.is_some());
    assert!(!ours(&instances).contains(&instance), "{:?}", ours(&instances));
    assert_eq!(on(&others), "1\n", "other people's traces are left alone");
    std::fs::remove_dir(&others).unwrap();
}

/// Explains what is later than a microsecond: a normal thread, whose slack is 50 us.
fn explain(more: &str) -> String {
    format!("explain --wait --cpus {} --duration 1s --above 1us {more}", a_cpu())
}

#[test]
fn root_explain_tells_each_spike_and_what_makes_the_cell_late() {
    skip_unless!(instances().is_some());
    let _machine = machine();
    let said = punctual(&explain("--keep 2 --no-keep")).expect_success();
    assert!(said.stdout.contains("What makes it late: "), "{}", said.stdout);
    for n in 1..=2 {
        if !said.stdout.contains(&format!("spike {n} of 2 ")) {
            inconclusive("fewer than two wake-ups were late and covered by the trace");
        }
    }
    let json = punctual(&explain("--keep 2 --no-keep --format json")).json();
    let explained = &json["cells"][0]["summary"]["explained"];
    assert_eq!(explained["above_ns"], 1_000, "{json}");
    sums_agree(&serde_json::from_value(explained.clone()).unwrap());
}

#[test]
fn root_tracefs_need_not_be_mounted() {
    skip_unless!(instances().is_some() && crate::program::may_mount());
    let (_machine, scratch) = machine_and_scratch("explain-unmounted");
    let script = "umount -l /sys/kernel/tracing /sys/kernel/debug 2>/dev/null; [ ! -e /sys/kernel/tracing/instances ] && \
                  exec \"$0\" explain --wait --duration 500ms --above 1us --keep 1";
    let mut command = std::process::Command::new("unshare");
    command.args(["-m", "sh", "-c", script, crate::program::PROGRAM]).current_dir(scratch.dir());
    let said = run(&mut command);
    assert_eq!(said.status, 0, "{said:?}");
    assert!(said.stdout.contains("What makes it late: "), "{said:?}");
    let left = instances().map(|dir| left_behind(&dir)).unwrap_or_default();
    assert_eq!(left, Vec::<String>::new());
}

#[test]
fn what_cannot_be_explained_is_said_before_anything_is_measured() {
    let (_machine, scratch) = machine_and_scratch("explain");
    let said =
        run(&mut wrapped(&scratch, crate::program::UNPRIVILEGED, "explain --wait --policy idle --duration 100ms"));
    if is_root() {
        assert_eq!(said.status, 1, "{said:?}");
        // The only line: an impossible measurement is not announced.
        let refused = "punctual: cannot explain: tracing needs root, and this process runs as user ";
        assert!(said.stderr.starts_with(refused) && said.stderr.ends_with("; run as root\n"), "{said:?}");
        assert_eq!(said.stderr.lines().count(), 1, "{said:?}");
    }
}

#[test]
fn root_a_late_thread_stops_the_trace_by_writes_alone() {
    skip_unless!(instances().is_some() && crate::program::is_installed("strace", "strace"));
    let (_machine, scratch) = machine_and_scratch("explain-strace");
    let trace = scratch.path("trace");
    let mut strace = std::process::Command::new("strace");
    strace.args(["-f", "-o"]).arg(&trace).args([crate::program::PROGRAM, "cell"]);
    // A thread under strace is late every time.
    let record = record(start_cell(strace, &asked("fifo:80", "1us", "200ms")));
    let text = std::fs::read_to_string(&trace).unwrap();
    let explained = explained(&record);
    let Some(mark) = text.lines().find(|line| line.contains("\"punctual: late\"")) else {
        assert_eq!(explained.explained, 0, "{explained:#?}");
        return inconclusive("no wake-up within the cell");
    };
    let calls_of = |tid: &str| -> Vec<String> {
        let lines = text.lines().filter_map(|line| line.split_once(' ')).filter(|(id, _)| *id == tid);
        let calls = lines.map(|(_, call)| call.trim_start().to_owned());
        // Without the second halves of calls that another thread's call interrupted.
        calls.filter(|call| !call.starts_with("<... ")).collect()
    };
    let calls = calls_of(mark.split_once(' ').unwrap().0);
    let is_wait = |call: &String| call.contains("clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, {");
    let first = calls.iter().position(is_wait).unwrap();
    let last = calls.iter().rposition(is_wait).unwrap();
    let others: Vec<_> = calls[first..=last].iter().filter(|call| !is_wait(call)).collect();
    assert!(others.iter().all(|call| call.starts_with("write(")), "{others:?}");
    let Some(at) = others.iter().position(|call| call.contains("punctual: late")) else {
        return inconclusive("only the last wake-up was late");
    };
    // Before Linux 5.18 the marker alone does not stop the trace.
    let stop = usize::from(others[at + 1].contains("\"0\", 1"));
    assert!(others[at + 1 + stop].contains("\"\\1\", 1"), "{others:?}");
    assert_eq!(others.len() % (2 + stop), 0, "{others:?}");
}

#[test]
fn root_exported_spikes_are_the_kept_ones_and_trace_cmd_reads_them() {
    skip_unless!(instances().is_some());
    let (_machine, scratch) = machine_and_scratch("explain-export");
    let dir = scratch.path("spikes");
    let said = punctual(&explain(&format!("--keep 9 --no-keep --export {} --format json", dir.display())));
    let explained = said.json()["cells"][0]["summary"]["explained"].clone();
    let worst: Vec<Explanation> = serde_json::from_value(explained["worst"].clone()).unwrap();
    let names = |kind: &str| -> Vec<PathBuf> {
        let entries = std::fs::read_dir(&dir).unwrap().flatten().map(|entry| entry.path());
        entries.filter(|path| path.extension().is_some_and(|end| end == kind)).collect()
    };
    assert_eq!((names("json").len(), names("dat").len()), (worst.len(), worst.len()), "files of both kinds");
    if worst.is_empty() {
        inconclusive("no wake-up was late and covered by the trace");
    }
    // The files and the JSON output agree.
    let told = |path: PathBuf| {
        let story: serde_json::Value = read_json(path);
        let other = &story["otherData"]["spikes"][0];
        (other["latency_ns"].as_u64().unwrap(), other["blame"].as_str().unwrap().to_owned())
    };
    let mut in_files: Vec<_> = names("json").into_iter().map(told).collect();
    in_files.sort();
    let mut here: Vec<_> = worst.iter().map(|one| (one.latency.ns(), punctual_analysis::explain::blame(one))).collect();
    here.sort();
    assert_eq!(in_files, here);
    skip_unless!(crate::program::is_installed("trace-cmd", "trace-cmd"));
    for raw in names("dat") {
        let said = std::process::Command::new("trace-cmd").args(["report", "-i"]).arg(&raw).output().unwrap();
        let text = String::from_utf8_lossy(&said.stdout);
        assert!(said.status.success() && text.contains("punctual: late"), "{said:?}");
    }
}

/// Asserts that the kept spikes of a run are explained again as they were, to the nanosecond.
#[track_caller]
pub(crate) fn is_explained_again(run: &Path) {
    let explained = entries(run).into_iter().next().unwrap().record.explained.unwrap();
    assert_eq!(explained.captures, [], "no line of a run holds them");
    if explained.worst.is_empty() {
        inconclusive("nothing was late and covered by the trace");
        return;
    }
    let said = punctual(&format!("explain {} --again --format json", run.display()));
    assert_eq!((said.status, said.stderr.as_str()), (0, ""));
    let document = said.json();
    assert_eq!(document["changed"], 0, "{document:#}");
    let spikes = document["spikes"].as_array().unwrap();
    for one in &explained.worst {
        let is_it = |spike: &&serde_json::Value| {
            let then: Explanation = serde_json::from_value(spike["then"].clone()).unwrap();
            spike["capture"].as_str() == one.capture.as_deref() && then == Explanation { capture: None, ..one.clone() }
        };
        assert!(spikes.iter().any(|spike| is_it(&spike)), "{one:#?} is in {document:#}");
    }
    let exported = punctual(&format!("export perfetto {}", run.display())).expect_success();
    let story: serde_json::Value = read_json(exported.stdout.trim_end());
    assert_eq!(story["otherData"]["spikes"].as_array().unwrap().len(), spikes.len());
    let text = punctual(&format!("watch {} --again", run.display()));
    assert!(text.stdout.starts_with(&format!("0 of {} verdict", spikes.len())), "{text:?}");
}

#[test]
fn root_what_was_explained_is_explained_again_to_the_nanosecond() {
    skip_unless!(instances().is_some());
    let (_machine, scratch) = machine_and_scratch("explain-again");
    let run = scratch.path("run");
    let said = punctual(&explain(&format!("--keep 9 --stacks --out {}", run.display())));
    assert_eq!(said.status, 0, "{said:?}");
    is_explained_again(&run);
    let captures = |run: &Path| std::fs::read_dir(run.join("captures")).map_or(0, Iterator::count);
    let without = scratch.path("without");
    let said = punctual(&explain(&format!("--keep 9 --captures none --out {}", without.display())));
    assert_eq!((said.status, captures(&without)), (0, 0), "{said:?}");
}
