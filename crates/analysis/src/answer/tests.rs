//! Sentences of answers, the boundaries first.

use super::of_threads;
use crate::explain::Totals;
use crate::testing::RunBuilder;
use crate::{WatchedSummary, summarise};
use punctual_model::{
    Cause, Evidence, ExplainRecord, Explanation, Histogram, Kernel, OpenActivation, OpenKind, Owner, Phase, Share,
    Span, ThreadRecord, WatchedThread,
};

/// A run of one cell with these latencies.
fn one(policy: &str, latency_ns: impl Fn(u32, u64) -> i64) -> RunBuilder {
    let mut run = RunBuilder::new();
    run.cell("none", policy).measure(0, 0, latency_ns);
    run
}

/// The same, with its threads changed afterwards.
fn changed(change: impl Fn(&mut ThreadRecord)) -> RunBuilder {
    let mut run = one("fifo:80", |_, _| 5_000);
    run.entries[0].record.threads.iter_mut().for_each(change);
    run
}

/// A run of which `n` wake-ups of CPU 1 are this late, in ns.
fn late(n: u64, by_ns: i64) -> RunBuilder {
    one("fifo:80", move |cpu, cycle| if cpu == 1 && cycle % 100 == 50 && cycle / 100 < n { by_ns } else { 5_000 })
}

/// A run of every load and policy, where those of SCHED_OTHER are late.
fn matrix(loads: &[&str], policies: &[&str], periods: &[&str]) -> RunBuilder {
    let mut run = RunBuilder::new();
    for period in periods {
        for load in loads {
            for policy in policies {
                run.cell(load, policy);
                run.header.cells.last_mut().unwrap().period = period.parse().unwrap();
            }
        }
    }
    for index in 0..run.header.cells.len() {
        let is_late = !run.header.cells[index].policy.is_realtime();
        let by_ns = 20_000 + 1_000 * i64::try_from(index).unwrap();
        run.measure(0, index, move |_, cycle| if is_late && cycle == 500 { 302_000_000 } else { by_ns });
    }
    run
}

#[test]
fn a_run_says_whether_its_period_is_kept() {
    let mut unmeasured = RunBuilder::new();
    unmeasured.cell("none", "fifo:80");
    let mut part = matrix(&["none", "messaging"], &["fifo:80"], &["1ms"]);
    part.entries.pop();
    let mut other_unmeasured = matrix(&["none"], &["fifo:80", "other"], &["1ms"]);
    other_unmeasured.entries.pop();
    let mut virtually = one("fifo:80", |_, _| 5_000);
    virtually.header.cells[0].kernel = "debian:6.1".parse::<Kernel>().unwrap();
    virtually.entries[0].record.cell.kernel = virtually.header.cells[0].kernel.clone();
    let mut limited = late(31, 1_500_000);
    limited.require("max=1ms");
    let mut sleeps = RunBuilder::new();
    sleeps.cell("none", "other");
    sleeps.header.cells[0].task = "sleep:c".parse().unwrap();
    sleeps.measure(0, 0, |_, _| 60_000);
    let mut relative = RunBuilder::new();
    relative.cell("none", "fifo:80");
    relative.header.cells[0].task = "nanosleep".parse().unwrap();
    relative.measure(0, 0, |_, _| 5_000);
    let mut handoff = RunBuilder::new();
    handoff.cell("none", "fifo:80");
    handoff.header.cells[0].task = "handoff:pipe".parse().unwrap();
    handoff.measure(0, 0, |_, _| 5_000);
    // The first hand-off was not measured.
    let mut handoffs = RunBuilder::new();
    for method in ["pipe", "futex"] {
        handoffs.cell("none", "fifo:80");
        handoffs.header.cells.last_mut().unwrap().task = format!("handoff:{method}").parse().unwrap();
    }
    handoffs.measure(0, 1, |_, _| 5_000);
    let policies = ["other", "other:nice=-10", "fifo:80", "rr:10"];
    let said = [
        RunBuilder::new(),
        unmeasured,
        late(0, 0),
        late(1, 1_000_000),
        late(1, 1_000_001),
        late(1, 2_000_001),
        late(20, 1_500_000),
        one("fifo:80", |_, _| i64::MAX),
        one("fifo:80", |_, cycle| if cycle == 1_999 { i64::MAX } else { 5_000 }),
        changed(|thread| thread.passed_over = 3),
        changed(|thread| thread.lost = 1),
        changed(|thread| thread.missed = 2),
        part,
        other_unmeasured,
        virtually,
        limited,
        sleeps,
        relative,
        handoff,
        handoffs,
        one("deadline:200us/1ms/1ms", |_, _| 5_000),
        matrix(&["none", "messaging"], &["other", "fifo:80"], &["1ms"]),
        matrix(&["none", "messaging", "messaging:groups=1"], &policies, &["1ms", "500us", "300us", "10ms", "2ms"]),
    ];
    let said = said.map(|run| summarise(&run.header, &run.entries).answer().to_string());
    let answers = [
        "cannot tell how late: nothing was measured",
        "cannot tell how late: nothing was measured; measure 2 s more",
        "1 kHz is kept for 2 s: worst 5 us with FIFO 80 without load (p99 5 us)",
        "1 kHz is kept for 2 s: worst 1 ms with FIFO 80 without load (p99 5.02 us)",
        "1 kHz is not kept: 1 of 4 000 periods missed with FIFO 80 (worst 1 ms without load)",
        "1 kHz is not kept: 2 of 4 000 periods missed with FIFO 80 (worst 2 ms without load)",
        "1 kHz is not kept: 20 of 4 000 periods missed with FIFO 80 (worst 1.5 ms without load)",
        "1 kHz is not kept: 3 998 of 4 000 periods missed with FIFO 80 (worst at least 2 s without load)",
        "cannot tell whether 1 kHz is kept with FIFO 80: a wait was still open, 1 ms late so far; measure 2 s more",
        "cannot tell whether 1 kHz is kept with FIFO 80: 6 of 4 000 due times were not seen, and may be later; measure 2 s more",
        "cannot tell whether 1 kHz is kept with FIFO 80: 2 lost samples, which may be later; measure 2 s more",
        "cannot tell whether 1 kHz is kept with FIFO 80: 4 of 4 000 due times were not seen, and may be later; measure 2 s more",
        "cannot tell whether 1 kHz is kept with FIFO 80: the cell under messaging was not measured; measure 2 s more",
        "1 kHz is kept for 2 s: worst 20 us with FIFO 80 without load (p99 20 us); SCHED_OTHER was not measured",
        "1 kHz is kept for 2 s of virtual time: worst 5 us with FIFO 80 without load (p99 5 us)",
        "FAIL none/fifo:80: max 1.5 ms > 1 ms",
        "worst sleep error in 2 s: 60 us with SCHED_OTHER without load (p99 60 us)",
        "worst wake-up in 2 s: 5 us with FIFO 80 without load (p99 5 us)",
        "worst hand-off in 2 s: 5 us with FIFO 80 without load (p99 5 us)",
        "worst hand-off in 2 s: 5 us with FIFO 80 (handoff:futex) without load (p99 5 us); FIFO 80 (handoff:pipe) was not measured",
        "1 kHz is kept for 2 s: worst 5 us with SCHED_DEADLINE 200us/1ms/1ms without load (p99 5 us)",
        "1 kHz is kept for 2 s: worst 23 us with FIFO 80 under messaging (p99 23 us); SCHED_OTHER is 302 ms late",
        "a period of 300 us is kept for 2 s: worst 54 us with FIFO 80 under messaging:groups=1 (p99.9 54 us); SCHED_OTHER (500 Hz) is 302 ms late; SCHED_OTHER nice -10 (500 Hz) is 302 ms late; 17 others are less late",
    ];
    assert_eq!(said, answers);
}

/// A watched thread of 2 507 activations, `late` of them later than a deadline of 2 ms.
fn watched(name: &str, late: u64, deadline_us: u64) -> WatchedSummary {
    let mut response = Histogram::default();
    response.record_n(50_000, 2_507 - late);
    response.record_n(5_000_000, late);
    let thread = WatchedThread {
        name: name.to_owned(),
        deadline: Some(Span(deadline_us * 1_000)),
        activations: 2_507,
        late,
        response,
        ..WatchedThread::default()
    };
    WatchedSummary::of(&thread, &[], true, 0.95).unwrap()
}

/// What explains activations of threads: 93 % of each for this cause, the rest for its usual work.
fn explained(all: &[(&str, Cause, &str, Option<&str>)]) -> ExplainRecord {
    let owner = |name: &str| Owner { name: name.to_owned(), pid: None };
    let share = |cause, of: &str, ns, place: Option<&str>| Share {
        phase: Phase::Activation,
        owner: owner(of),
        threads: 1,
        cause,
        or: None,
        evidence: Evidence::Direct,
        total: Span(ns),
        longest: Span(ns),
        pieces: 1,
        place: place.map(str::to_owned),
        code: None,
    };
    let one = |(thread, cause, of, place): &(&str, Cause, &str, Option<&str>)| Explanation {
        thread: Some(owner(thread)),
        latency: Span(1_000_000),
        shares: vec![share(*cause, of, 930_000, *place), share(Cause::UsualRun, thread, 70_000, None)],
        ..Explanation::default()
    };
    let worst: Vec<Explanation> = all.iter().map(one).collect();
    let mut totals = Totals::default();
    worst.iter().for_each(|one| totals.add(one));
    let (causes, late) = (totals.causes(), Span(totals.late_ns));
    ExplainRecord {
        above: Some(Span(150_000)),
        spikes: totals.explained,
        causes,
        late,
        worst,
        ..ExplainRecord::default()
    }
}

#[test]
fn watched_threads_say_which_was_late_how_often_and_why() {
    let held = Some("held by logger (nice 10), of lower priority, without inheritance");
    let lock = explained(&[("controller", Cause::Lock, "logger", held)]);
    let inversion = explained(&[("controller", Cause::PriorityInversion, "logger", held)]);
    let two = explained(&[
        ("sensor", Cause::Disk, "sensor", None),
        ("controller", Cause::Softirq, "softirq RCU", None),
        ("sensor", Cause::Disk, "sensor", None),
    ]);
    let none = ExplainRecord::default();
    let open = |kind| {
        let mut one = watched("controller", 0, 2_000);
        one.open = Some(OpenActivation { kind, at_least: Span(6_000_000_000), doing: "sleeps in futex".to_owned() });
        one
    };
    let missing = || Some("events were lost".to_owned());
    let said = [
        (vec![], None, None),
        (vec![], None, missing()),
        (vec![watched("controller", 0, 2_000)], None, None),
        (vec![watched("controller", 0, 2_000)], Some(&lock), missing()),
        (vec![watched("controller", 1, 2_000)], Some(&none), None),
        (vec![watched("controller", 101, 2_000)], Some(&lock), None),
        (vec![watched("controller", 101, 2_000)], Some(&inversion), missing()),
        (vec![watched("controller", 2_507, 2_000)], Some(&lock), None),
        (vec![watched("controller", 101, 0)], Some(&lock), None),
        (vec![watched("sensor", 1, 2_000), watched("controller", 101, 2_000)], Some(&two), None),
        (vec![open(OpenKind::Silence)], None, None),
        (vec![watched("controller", 0, 2_000), watched("logger", 7, 0)], Some(&lock), None),
        (vec![watched("sensor", 0, 2_000), open(OpenKind::Wait)], None, None),
        (vec![open(OpenKind::Activation)], None, None),
        (vec![open(OpenKind::Activation)], None, missing()),
    ];
    let said = said
        .map(|(threads, explained, missing)| of_threads(&threads, explained, missing, Span(8_000_000_000)).to_string());
    let answers = [
        "cannot tell whether a thread is late: no watched thread waited twice in one call; measure 8 s more",
        "cannot tell whether a thread is late: events were lost; measure 8 s more",
        "controller was never late: 50 us of 2 ms at worst in 2 507 cycles",
        "cannot tell whether controller was late: events were lost; measure 8 s more",
        "controller was late in 1 of 2 507 cycles",
        "controller was late in 101 of 2 507 cycles: 93 % waiting for a lock held by logger (nice 10)",
        "controller was late in at least 101 of 2 507 cycles: 93 % priority inversion: lock held by logger (nice 10)",
        "controller was late in 2 507 of 2 507 cycles: 93 % waiting for a lock held by logger (nice 10)",
        "controller took 5 ms at worst in 2 507 cycles: 93 % waiting for a lock held by logger (nice 10)",
        "controller was late in 101 of 2 507 cycles: 93 % softirq RCU; 1 other thread was late, too",
        "controller was never late: 50 us of 2 ms at worst in 2 507 cycles",
        "controller was never late: 50 us of 2 ms at worst in 2 507 cycles, 93 % waiting for a lock held by logger (nice 10)",
        "cannot tell whether a thread was late: controller was not released for 6 s beyond its period (sleeps in futex); measure 8 s more",
        "cannot tell whether controller was late: controller had not finished an activation after 6 s (sleeps in futex); measure 8 s more",
        "cannot tell whether controller was late: events were lost; measure 8 s more",
    ];
    assert_eq!(said, answers);
}

#[test]
fn an_explained_run_says_what_delayed_its_worst_wake_up() {
    let explained_run = |explained: ExplainRecord, worst_ns: i64| {
        let mut run = late(1, worst_ns);
        run.entries[0].record.explained = Some(explained);
        run
    };
    let spike = |latency_ns, cause, owner| {
        let mut one = explained(&[("", cause, owner, Some("rescheduled in vmstat_update"))]);
        one.worst[0].latency = Span(latency_ns);
        one.worst[0].shares[0].total = Span(latency_ns * 95 / 100);
        one.worst[0].thread = None;
        one
    };
    let quiet = ExplainRecord { above: Some(Span(100_000)), ..ExplainRecord::default() };
    let said = [
        explained_run(ExplainRecord::default(), 90_000),
        explained_run(quiet.clone(), 100_000),
        explained_run(quiet, 100_001),
        explained_run(spike(412_000, Cause::NotPreemptible, "kworker"), 412_000),
        explained_run(spike(412_000, Cause::UsualWakeUp, "usual wake-up"), 412_000),
        explained_run(spike(412_000, Cause::CpuStalled, "hackbench"), 5_000_000),
    ];
    let said = said.map(|run| summarise(&run.header, &run.entries).answer().to_string());
    let answers = [
        "cannot tell why: too few wake-ups to know which are late (worst wake-up 90 us with FIFO 80 without load); measure 2 s more",
        "no wake-up was later than 100 us with FIFO 80 without load (worst 100 us)",
        "worst wake-up 100 us with FIFO 80 without load, whose cause was not captured",
        "worst wake-up 412 us with FIFO 80 without load: 95 % not preemptible by kworker (rescheduled in vmstat_update)",
        "worst wake-up 412 us with FIFO 80 without load: 95 % usual wake-up (rescheduled in vmstat_update)",
        "worst wake-up 5 ms with FIFO 80 without load, whose cause was not captured; of 1 wake-up above 150 us: 93 % CPU stalled by hackbench (rescheduled in vmstat_update)",
    ];
    assert_eq!(said, answers);
}
