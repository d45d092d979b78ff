//! Explanations of real late wake-ups: known culprits, and cleanup.

use crate::program::{
    Scratch, a_cpu, cell, comes_true, command, is_root, kill_and_wait, machine, machine_and_scratch, punctual,
    read_json, record, run, skip_unless, start_cell, wait_for_progress, wrapped,
};
use model::{Cause, Cell, Conditions, Evidence, Explain, ExplainRecord, Explanation, Phase, Policy, Record, Span};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::{JoinHandle, sleep};
use std::time::{Duration, Instant};
use sys::{process, sched, thread};

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
pub(crate) fn ours(instances: &Path) -> Vec<String> {
    let names =
        std::fs::read_dir(instances).unwrap().flatten().filter_map(|entry| entry.file_name().into_string().ok());
    names.filter(|name| name.starts_with("punctual-")).collect()
}

/// A cell on one CPU whose wake-ups later than `above` are explained.
fn asked(policy: &str, above: &str, duration: &str) -> Cell {
    let explain = Explain { above: Some(above.parse().unwrap()), keep: 50, ..Explain::default() };
    Cell {
        lock_memory: true,
        conditions: Conditions { explain: Some(explain), ..Conditions::default() },
        ..cell(policy, "none", &a_cpu().to_string(), duration)
    }
}

/// A thread named `culprit` that runs for `burst` every `pause`, until it is dropped or its time is over.
pub(crate) struct Spinner {
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Spinner {
    /// On the measured CPU, for 4 s.
    fn start(policy: &str, burst: Duration, pause: Duration) -> Spinner {
        Spinner::on(a_cpu(), Duration::from_secs(4), policy, burst, pause)
    }

    pub(crate) fn on(cpu: u32, time: Duration, policy: &str, burst: Duration, pause: Duration) -> Spinner {
        let policy: Policy = policy.parse().unwrap();
        let is_over = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&is_over);
        let spin = move || {
            sched::set_affinity(0, &[cpu].into_iter().collect()).unwrap();
            sched::set_policy(thread::id(), policy).unwrap();
            let begin = Instant::now();
            while !told.load(Relaxed) && begin.elapsed() < time {
                let burst_begins = Instant::now();
                while burst_begins.elapsed() < burst && !told.load(Relaxed) {
                    std::hint::spin_loop();
                }
                if !pause.is_zero() {
                    sleep(pause);
                }
            }
        };
        let thread = std::thread::Builder::new().name("culprit".to_owned()).spawn(spin).unwrap();
        Spinner { is_over, thread: Some(thread) }
    }
}

impl Drop for Spinner {
    fn drop(&mut self) {
        self.is_over.store(true, Relaxed);
        self.thread.take().unwrap().join().unwrap();
    }
}

/// The explanations of the record, checked: each adds up to the nanosecond, and to the latency that the record has for
/// its cycle.
#[track_caller]
fn explained(record: &Record) -> &ExplainRecord {
    let explained = record.explained.as_ref().expect("it was asked for");
    assert_eq!(explained.explained + explained.not_covered, explained.spikes);
    assert_eq!(explained.evidence_ns.iter().sum::<u64>(), explained.late.ns());
    for one in &explained.worst {
        assert!(one.is_complete(), "{one:#?}");
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

/// Runs the round; if it fails, four more, of which three must succeed. The machine has other causes of latency, which
/// at times make most of the spikes of a round.
#[track_caller]
pub(crate) fn in_most_rounds(mut round: impl FnMut() -> Result<(), String>) {
    if let Err(first) = round() {
        eprintln!("four rounds more, because in the first: {first}");
        let again: Vec<_> = (0..4).map(|_| round()).collect();
        assert!(again.iter().filter(|round| round.is_ok()).count() >= 3, "{again:#?}");
    }
}

/// Checks that most of the spikes are blamed on `cause` and `owner`.
fn expect_blame(explained: &ExplainRecord, cause: Cause, owner: Option<&str>) -> Result<(), String> {
    let is_meant = |one: &&Explanation| {
        one.blame().is_some_and(|blame| blame.cause == cause && owner.is_none_or(|name| blame.owner.name == name))
    };
    let meant = explained.worst.iter().filter(is_meant).count();
    let all = explained.worst.len();
    let said = || format!("{meant} of {all} are {cause:?} by {owner:?}: {:#?}", explained.causes);
    (meant > 0 && meant * 2 > all).then_some(()).ok_or_else(said)
}

#[test]
fn root_a_thread_of_higher_or_equal_priority_is_named() {
    skip_unless!(instances().is_some());
    let _machine = machine();
    in_most_rounds(higher_priority);
    in_most_rounds(equal_priority);
}

fn higher_priority() -> Result<(), String> {
    a_spinner("fifo:95", Cause::HigherPriority)
}

fn equal_priority() -> Result<(), String> {
    a_spinner("fifo:80", Cause::EqualPriority)
}

fn a_spinner(policy: &str, cause: Cause) -> Result<(), String> {
    let spinner = Spinner::start(policy, Duration::from_micros(2500), Duration::from_millis(20));
    let record = record(start_cell(command("cell"), &asked("fifo:80", "800us", "1500ms")));
    drop(spinner);
    let explained = explained(&record);
    expect_blame(explained, cause, Some("culprit"))?;
    let direct = explained.evidence_ns[Evidence::Direct.index()];
    (direct * 2 > explained.late.ns()).then_some(()).ok_or_else(|| format!("{explained:#?}"))
}

#[test]
fn root_fair_competition_is_named() {
    skip_unless!(instances().is_some());
    let _machine = machine();
    in_most_rounds(fair_competition);
}

fn fair_competition() -> Result<(), String> {
    let spinner = Spinner::start("other", Duration::from_secs(4), Duration::ZERO);
    // A normal thread that sleeps most of the time may run at once; a batch thread waits for the other's slice to end
    // (sched(7)).
    let record = record(start_cell(command("cell"), &asked("batch", "900us", "1500ms")));
    drop(spinner);
    let explained = explained(&record);
    expect_blame(explained, Cause::FairScheduling, None)
}

#[test]
fn root_timer_slack_is_named_and_is_as_long_as_was_allowed() {
    skip_unless!(instances().is_some());
    let _machine = machine();
    in_most_rounds(timer_slack);
}

fn timer_slack() -> Result<(), String> {
    let cell = Cell {
        period: "10ms".parse().unwrap(),
        conditions: Conditions { timer_slack: Some(Span(3_000_000)), ..asked("other", "1ms", "1s").conditions },
        ..asked("other", "1ms", "1s")
    };
    let slack =
        |one: &Explanation| one.phases.iter().find(|phase| phase.phase == Phase::Slack).map(|phase| phase.length.ns());
    let record = record(start_cell(command("cell"), &cell));
    let explained = explained(&record);
    assert!(explained.worst.iter().filter_map(slack).all(|ns| ns <= 3_000_000));
    // A latency beyond the slack has another cause besides.
    let mut explained = explained.clone();
    explained.worst.retain(|one| one.latency < Span(3_500_000));
    expect_blame(&explained, Cause::TimerSlack, None)
}

#[test]
fn root_a_stopped_process_is_said_to_be_stopped() {
    skip_unless!(instances().is_some());
    let _machine = machine();
    in_most_rounds(a_stopped_process);
}

fn a_stopped_process() -> Result<(), String> {
    let mut command = command("cell");
    command.arg("--progress");
    let mut child = start_cell(command, &asked("fifo:80", "30ms", "3s"));
    wait_for_progress(&mut child);
    // Longer than any other cause here.
    for _ in 0..5 {
        process::signal(child.id(), libc::SIGSTOP).unwrap();
        sleep(Duration::from_millis(40));
        process::signal(child.id(), libc::SIGCONT).unwrap();
        sleep(Duration::from_millis(100));
    }
    let record = record(child);
    expect_blame(explained(&record), Cause::Stopped, None)
}

#[test]
fn root_throttling_of_real_time_threads_is_named() {
    skip_unless!(instances().is_some());
    let _machine = machine();
    in_most_rounds(throttled_real_time_threads);
}

fn throttled_real_time_threads() -> Result<(), String> {
    // Below the measured thread, and so busy that the kernel throttles it in favor of a normal thread, which is ready.
    let normal = Spinner::start("other", Duration::from_secs(4), Duration::ZERO);
    let busy = Spinner::start("fifo:50", Duration::from_millis(3500), Duration::ZERO);
    let record = record(start_cell(command("cell"), &asked("fifo:80", "20ms", "2500ms")));
    drop((busy, normal));
    let explained = explained(&record);
    if explained.spikes == 0 {
        eprintln!("skipped: nothing was throttled here");
        return Ok(());
    }
    expect_blame(explained, Cause::Throttling, None)
}

#[test]
fn root_a_limit_of_the_control_group_is_named() {
    skip_unless!(instances().is_some());
    let _machine = machine();
    in_most_rounds(a_limited_group);
}

#[test]
fn root_a_witness_ticks_also_while_a_thread_of_higher_priority_runs() {
    skip_unless!(instances().is_some());
    let _machine = machine();
    in_most_rounds(|| {
        let spinner = Spinner::start("fifo:95", Duration::from_micros(2500), Duration::from_millis(20));
        let explain = Explain {
            witness: Some(Span(100_000)),
            ..asked("fifo:80", "1500us", "1500ms").conditions.explain.unwrap()
        };
        let cell = Cell {
            conditions: Conditions { explain: Some(explain), ..asked("fifo:80", "1500us", "1500ms").conditions },
            ..asked("fifo:80", "1500us", "1500ms")
        };
        let record = record(start_cell(command("cell"), &cell));
        drop(spinner);
        let explained = explained(&record);
        expect_blame(explained, Cause::HigherPriority, Some("culprit"))?;
        // The local timer tick alone comes every millisecond at most.
        let ticks = |one: &Explanation| {
            let of = one.shares.iter().filter(|share| share.owner.name.starts_with("interrupt local_timer"));
            of.map(|share| share.pieces).sum::<u32>()
        };
        let ticking = explained.worst.iter().filter(|one| ticks(one) >= 8).count();
        (ticking * 2 > explained.worst.len())
            .then_some(())
            .ok_or_else(|| format!("{ticking} of {}", explained.worst.len()))
    });
}

/// The causes of spikes blamed on `owner` while a kind of `culprit_threads.c` runs, and a summary of all causes.
fn blamed_beside(culprit: &Path, kind: &str, owner: &str) -> (Vec<(Cause, Option<Cause>)>, String) {
    let mut child = std::process::Command::new(culprit).arg(kind).arg(a_cpu().to_string()).spawn().unwrap();
    sleep(Duration::from_millis(500));
    let record = record(start_cell(command("cell"), &asked("fifo:80", "400us", "2s")));
    let ended = child.try_wait().unwrap();
    // It may have ended by itself.
    let _ = child.kill();
    child.wait().unwrap();
    let explained = explained(&record);
    let blames = explained.worst.iter().filter_map(Explanation::blame);
    let of_it = blames.filter(|blame| blame.owner.name.starts_with(owner) && blame.total > Span(400_000));
    let causes = of_it.map(|blame| (blame.cause, blame.or)).collect();
    (causes, format!("{} spikes, {kind} ended: {ended:?}, {:#?}", explained.spikes, explained.causes))
}

#[test]
fn root_raised_priorities_and_timer_functions_are_not_a_halted_cpu() {
    skip_unless!(instances().is_some() && crate::program::is_installed("cc", "gcc"));
    let (_machine, scratch) = machine_and_scratch("explain-threads");
    let source = scratch.file("culprit.c", include_str!("../culprits/culprit_threads.c"));
    let culprit = scratch.path("culprit");
    let compiled = std::process::Command::new("cc").args(["-O1", "-pthread", "-o"]).args([&culprit, &source]).status();
    assert!(compiled.unwrap().success());
    // kernel.kptr_restrict may hide the addresses of kernel functions.
    let symbols = std::fs::read_to_string("/proc/kallsyms").unwrap_or_default();
    let are_named =
        symbols.lines().any(|line| line.ends_with(" timerfd_tmrproc") && !line.starts_with("0000000000000000"));
    let timers = if are_named { "interrupt local_timer (timerfd_tmrproc)" } else { "interrupt local_timer" };
    for (kind, owner, causes) in [
        ("inherit", "culprit", &[(Cause::HigherPriority, None)][..]),
        ("raise", "culprit", &[(Cause::HigherPriority, None), (Cause::HigherPriority, Some(Cause::Throttling))]),
        ("herd", timers, &[(Cause::Interrupt, None), (Cause::Interrupt, Some(Cause::Steal))]),
    ] {
        in_most_rounds(|| {
            let (blamed, all) = blamed_beside(&culprit, kind, owner);
            let right = blamed.iter().filter(|blame| causes.contains(blame)).count();
            // A hypervisor may preempt the vCPU meanwhile.
            (right >= 3 && right * 2 > blamed.len()).then_some(()).ok_or_else(|| format!("{kind}: {blamed:?} of {all}"))
        });
    }
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
    fn command(&self, program: &Path) -> std::process::Command {
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

fn a_limited_group() -> Result<(), String> {
    let version_1 = [("cpu.cfs_period_us", "100000"), ("cpu.cfs_quota_us", "20000")];
    let Some(group) = Group::make("cpu", &version_1, &[("cpu.max", "20000 100000")]) else { return Ok(()) };
    // The load is in the group as well and uses up the quota.
    let cell = Cell {
        load: "cpu".parse().unwrap(),
        load_cpus: Some([a_cpu()].into_iter().collect()),
        ..asked("other", "20ms", "2s")
    };
    let record = record(start_cell(group.command(crate::program::PROGRAM.as_ref()), &cell));
    let explained = explained(&record);
    // If other threads are ready, no event separates the quota from their slices.
    let is_meant = |one: &&Explanation| {
        one.blame().is_some_and(|blame| [Some(blame.cause), blame.or].contains(&Some(Cause::Throttling)))
    };
    let meant = explained.worst.iter().filter(is_meant).count();
    (meant > 0 && meant * 2 > explained.worst.len()).then_some(()).ok_or_else(|| format!("{:#?}", explained.causes))
}

#[test]
fn root_page_faults_of_memory_that_is_not_locked_are_named() {
    skip_unless!(instances().is_some());
    let _machine = machine();
    in_most_rounds(page_faults);
}

fn page_faults() -> Result<(), String> {
    let Some(group) = Group::make("memory", &[], &[("memory.high", "max")]) else { return Ok(()) };
    let scratch = Scratch::new("explain-faults");
    // A copy of the program, whose page cache is charged to the group.
    let program = scratch.path("punctual");
    crate::program::install(crate::program::PROGRAM, &program);
    let file = std::fs::File::open(&program).unwrap();
    file.sync_all().unwrap();
    // Cached pages would stay charged to the group that wrote them.
    let _ = std::process::Command::new("dd")
        .arg(format!("if={}", program.display()))
        .args(["iflag=nocache", "count=0"])
        .stderr(std::process::Stdio::null())
        .status();
    let cell = Cell { lock_memory: false, period: "10ms".parse().unwrap(), ..asked("fifo:80", "100us", "4s") };
    let mut child = start_cell(group.command(&program), &cell);
    wait_for_progress(&mut child);
    // The kernel reclaims pages of the program, which it can read again.
    let reclaim =
        [("memory.force_empty", "0"), ("memory.reclaim", "1G")].map(|(file, text)| (group.0.join(file), text));
    let (file, text) = reclaim.into_iter().find(|(file, _)| file.exists()).ok_or("the kernel takes nothing back")?;
    for _ in 0..20 {
        // The write fails if not everything could be reclaimed.
        let _ = std::fs::write(&file, text);
        sleep(Duration::from_millis(50));
    }
    let record = record(child);
    let explained = explained(&record);
    let faults = explained.causes.iter().find(|cause| cause.cause == Cause::PageFault);
    let usage = record.threads[0].usage.unwrap();
    if usage.minor_faults + usage.major_faults == 0 {
        eprintln!("skipped: nothing was taken from the thread");
        return Ok(());
    }
    let named = faults.is_some_and(|faults| faults.blamed > 0 && faults.owners == [format!("measured/{}", a_cpu())]);
    named.then_some(()).ok_or_else(|| format!("{usage:?}: {:#?}", explained.causes))
}

/// A cell beside a known culprit; the error describes wrong explanations.
type Round = fn() -> Result<(), String>;

/// `cargo test --release -p punctual --test cli -- --ignored --nocapture root_series` takes five minutes.
#[test]
#[ignore = "a series of 20 rounds of each culprit, for a quiet machine"]
fn root_series_each_known_culprit_is_named_in_19_of_20_rounds() {
    skip_unless!(instances().is_some());
    let _machine = machine();
    let culprits: [(&str, Round); 8] = [
        ("higher priority", higher_priority),
        ("equal priority", equal_priority),
        ("fair competition", fair_competition),
        ("timer slack", timer_slack),
        ("SIGSTOP", a_stopped_process),
        ("real-time throttling", throttled_real_time_threads),
        ("control group's limit", a_limited_group),
        ("page faults", page_faults),
    ];
    let mut least = 20;
    for (name, culprit) in culprits {
        let failures: Vec<String> = (0..20).filter_map(|_| culprit().err()).collect();
        let named = 20 - failures.len();
        eprintln!("{name}: {named} of 20");
        failures.iter().for_each(|failure| eprintln!("  {}", failure.replace('\n', " ")));
        least = least.min(named);
    }
    assert!(least >= 19);
}

#[test]
fn root_the_threshold_is_found_and_the_worst_are_kept() {
    skip_unless!(instances().is_some());
    let _machine = machine();
    in_most_rounds(a_threshold_that_is_found);
}

fn a_threshold_that_is_found() -> Result<(), String> {
    let spinner = Spinner::start("fifo:95", Duration::from_micros(2500), Duration::from_millis(50));
    let explain = Explain { keep: 3, ..Explain::default() };
    let cell = Cell {
        conditions: Conditions { explain: Some(explain), ..asked("fifo:80", "1ms", "3500ms").conditions },
        ..asked("fifo:80", "1ms", "3500ms")
    };
    let record = record(start_cell(command("cell"), &cell));
    drop(spinner);
    let explained = explained(&record);
    let above = explained.above.expect("3500 wake-ups say what is usual");
    assert!(explained.worst.len() <= 3 && explained.above_at_end >= Some(above), "{explained:#?}");
    assert!(explained.worst.iter().all(|one| one.latency > above));
    let ([irq], [thread]) = (&explained.irq[..], &record.threads[..]) else { panic!("{:?}", explained.irq) };
    let (irq, thread) = (&irq.histogram, &thread.histogram);
    assert!(irq.n <= thread.n && irq.min_ns > Some(0) && irq.min_ns < thread.min_ns, "{:?}", (irq.n, irq.min_ns));
    // Each wake-up, late or not, begins with an interrupt; a snapshot of the trace hides some.
    let said = || format!("{} of {}, {:?} and {:?}", irq.n, thread.n, irq.max_ns, thread.max_ns);
    let is_seen = irq.n * 2 > thread.n && irq.mean_ns() < thread.mean_ns() && irq.max_ns <= thread.max_ns;
    is_seen.then_some(()).ok_or_else(said)
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
    let spinner = Spinner::start("fifo:95", Duration::from_micros(2500), Duration::from_millis(50));
    let mut command = command("cell");
    command.arg("--progress");
    let mut child = start_cell(command, &asked("fifo:80", "1ms", "2s"));
    wait_for_progress(&mut child);
    let threads = std::fs::read_dir(format!("/proc/{}/task", child.id())).unwrap().flatten();
    let is_taker = |dir: &PathBuf| std::fs::read_to_string(dir.join("comm")).is_ok_and(|name| name == "trace-taker\n");
    let taker = threads.map(|entry| entry.path()).find(is_taker).expect("a thread that takes traces");
    let taker: u32 = taker.file_name().unwrap().to_str().unwrap().parse().unwrap();
    let policy = sched::policy(taker).unwrap().to_string();
    let record = record(child);
    drop(spinner);
    // Version-1 control groups may have no real-time runtime.
    assert!(policy == "fifo:1" || policy == "other:-20", "{policy}");
    let explained = explained(&record);
    let ([irq], [thread]) = (&explained.irq[..], &record.threads[..]) else { panic!("{:?}", explained.irq) };
    let still_ms = explained.stood_still.unwrap().ns() / 1_000_000;
    // Two at the edges of each standstill: one was started before, one expires after.
    let most = still_ms + 3 * explained.spikes + 5;
    let unseen = thread.histogram.n - irq.histogram.n;
    assert!(unseen <= most || explained.overwritten > Some(0), "{unseen} not seen, {most} expected: {explained:#?}");
    assert!(explained.spikes == 0 || still_ms > 0 || explained.stood_still > Some(Span(0)));
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
    let mut child = start_cell(command, &asked("fifo:80", "1s", "20s"));
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

#[test]
fn root_explain_tells_each_spike_and_what_makes_the_cell_late() {
    skip_unless!(instances().is_some());
    let _machine = machine();
    let spinner = Spinner::start("fifo:95", Duration::from_micros(2500), Duration::from_millis(20));
    let arguments = format!("explain --wait --policy fifo:80 --cpus {} --duration 1s --above 800us --keep 2", a_cpu());
    let said = punctual(&arguments);
    drop(spinner);
    assert_eq!(said.status, 0, "{said:?}");
    for part in [
        "spike 1 of 2 ",
        "culprit, of higher priority, ran",
        "What makes it late: ",
        "doctor:\n    other-realtime-tasks",
    ] {
        assert!(said.stdout.contains(part), "{part}: {}", said.stdout);
    }
    let json = punctual(&format!("{arguments} --format json")).json();
    assert!(json["cells"][0]["summary"]["explained"]["above_ns"] == 800_000, "{json}");
}

#[test]
fn root_tracefs_need_not_be_mounted() {
    skip_unless!(instances().is_some() && crate::program::is_installed("unshare", "util-linux"));
    let (_machine, scratch) = machine_and_scratch("explain-unmounted");
    let script = "umount -l /sys/kernel/tracing /sys/kernel/debug 2>/dev/null; [ ! -e /sys/kernel/tracing/instances ] && \
                  exec \"$0\" explain --wait --duration 500ms --above 1us --keep 1";
    let mut command = std::process::Command::new("unshare");
    command.args(["-m", "sh", "-c", script, crate::program::PROGRAM]).current_dir(scratch.dir());
    let said = run(&mut command);
    assert_eq!(said.status, 0, "{said:?}");
    assert!(said.stdout.contains("What makes it late: "), "{said:?}");
    let left = instances().map(|dir| ours(&dir)).unwrap_or_default();
    assert_eq!(left, Vec::<String>::new());
}

#[test]
fn what_cannot_be_explained_is_said_before_anything_is_measured() {
    punctual("explain --above 5")
        .expect_error("--above: invalid duration `5`: expected a unit, as in 5us, 5ms, 5s, 5min or 5h, or auto");
    punctual("explain --witness 1us").expect_error("invalid witness period `1us`: expected 20us to 100ms");
    punctual("explain itimer")
        .expect_error("explain does not apply to method itimer, which measures in other processes; leave it out");
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
    let explained = record.explained.as_ref().unwrap();
    assert!(explained.spikes > 0, "{explained:#?}");
    let calls_of = |tid: &str| -> Vec<String> {
        let lines = text.lines().filter_map(|line| line.split_once(' ')).filter(|(id, _)| *id == tid);
        let calls = lines.map(|(_, call)| call.trim_start().to_owned());
        // Without the second halves of calls that another thread's call interrupted.
        calls.filter(|call| !call.starts_with("<... ")).collect()
    };
    let mark = text.lines().find(|line| line.contains("\"punctual: late\"")).expect("a spike stops the trace");
    let calls = calls_of(mark.split_once(' ').unwrap().0);
    let is_wait = |call: &String| call.contains("clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, {");
    let first = calls.iter().position(is_wait).unwrap();
    let last = calls.iter().rposition(is_wait).unwrap();
    let others: Vec<_> = calls[first..=last].iter().filter(|call| !is_wait(call)).collect();
    assert!(others.iter().all(|call| call.starts_with("write(")), "{others:?}");
    let at = others.iter().position(|call| call.contains("punctual: late")).unwrap();
    // Before Linux 5.18 the marker alone does not stop the trace.
    let stop = usize::from(others[at + 1].contains("\"0\", 1"));
    assert!(others[at + 1 + stop].contains("\"\\1\", 1"), "{others:?}");
    assert_eq!(others.len() % (2 + stop), 0, "{others:?}");
}

#[test]
fn root_exported_spikes_are_the_kept_ones_and_trace_cmd_reads_them() {
    skip_unless!(instances().is_some());
    let _machine = machine();
    in_most_rounds(exported);
}

fn exported() -> Result<(), String> {
    let scratch = Scratch::new("explain-export");
    let spinner = Spinner::start("fifo:95", Duration::from_micros(2500), Duration::from_millis(20));
    let dir = scratch.path("spikes");
    let cpu = a_cpu();
    let dir_name = dir.display();
    let said = punctual(&format!(
        "explain --wait --policy fifo:80 --cpus {cpu} --duration 1s --above 800us --keep 9 --export {dir_name} --format json"
    ));
    drop(spinner);
    let worst: Vec<Explanation> =
        serde_json::from_value(said.json()["cells"][0]["summary"]["explained"]["worst"].clone()).unwrap();
    let names = |kind: &str| -> Vec<PathBuf> {
        let entries = std::fs::read_dir(&dir).unwrap().flatten().map(|entry| entry.path());
        entries.filter(|path| path.extension().is_some_and(|end| end == kind)).collect()
    };
    assert_eq!((names("json").len(), names("dat").len()), (worst.len(), worst.len()), "files of both kinds");
    if worst.len() != 9 {
        return Err(format!("{} spikes were kept", worst.len()));
    }
    // The files and the JSON output agree, whatever other causes this machine has.
    let told = |path: PathBuf| {
        let story: serde_json::Value = read_json(path);
        let other = &story["otherData"];
        (other["latency_ns"].as_u64().unwrap(), other["blame"].as_str().unwrap().to_owned())
    };
    let mut in_files: Vec<_> = names("json").into_iter().map(told).collect();
    in_files.sort_by_key(|(latency_ns, _)| std::cmp::Reverse(*latency_ns));
    let here = worst.iter().map(|one| (one.latency.ns(), analysis::explain::blame(one)));
    assert_eq!(in_files, here.collect::<Vec<_>>());
    if in_files.iter().filter(|(_, blame)| blame.contains("culprit")).count() < 5 {
        return Err(format!("{in_files:?}"));
    }
    if !crate::program::is_installed("trace-cmd", "trace-cmd") {
        return Ok(());
    }
    for raw in names("dat") {
        let said = std::process::Command::new("trace-cmd").args(["report", "-i"]).arg(&raw).output().unwrap();
        let text = String::from_utf8_lossy(&said.stdout);
        assert!(said.status.success() && text.contains("punctual: late"), "{said:?}");
    }
    Ok(())
}
