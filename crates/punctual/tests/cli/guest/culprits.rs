//! Known culprits beside a measured thread in virtual time: each late wake-up is blamed on them, and on nothing else.

use crate::guest::vm::{kernel, run_seeded};
use crate::program::{Scratch, entries, is_installed, skip_unless};
use crate::real::explain::sums_agree;
use crate::servo::compiled_from;
use punctual_model::{Cause, Entry, Evidence};

/// Explains what is late beside these loads, in the order of the plan. Guests have a shell and the culprit.
fn explained(scratch: &Scratch, rest: &str, policy: &str, period: &str, loads: &[&str]) -> Vec<Entry> {
    let source = include_str!("../../culprits/culprit_threads.c");
    let culprit = compiled_from(scratch, "culprit", source, &["-static"]);
    let files = format!("[\"/bin/busybox:/bin/sh\", \"/bin/busybox:/bin/sleep\", \"{}:/culprit\"]", culprit.display());
    let plan = format!(
        "repetitions = 1\nwarm_up = \"100ms\"\n{rest}\n[axes]\n\
         kernel = [{{ image = \"{}\", append = \"preempt=full\", files = {files} }}]\n\
         load = {loads:?}\npolicy = [\"{policy}\"]\nperiod = [\"{period}\"]\n",
        kernel().unwrap().display()
    );
    let (plan, out) = (scratch.file("plan.toml", plan), scratch.path("run"));
    run_seeded(&format!("{} --yes", plan.display()), &out);
    entries(&out)
}

/// Asserts that at least `least` wake-ups were late, all explained, each blamed on this cause by this owner, and that
/// no part of them cannot be told.
#[track_caller]
fn expect_all(entry: &Entry, least: usize, cause: (Cause, Option<Cause>), owner: &str) {
    expect_blamed(entry, least, cause, owner);
    let explained = entry.record.explained.as_ref().unwrap();
    assert_eq!(explained.evidence_ns[Evidence::Undetermined.index()], 0, "{:#?}", explained.causes);
}

/// Asserts that at least `least` wake-ups were late, all explained, and each blamed on this cause by this owner.
#[track_caller]
fn expect_blamed(entry: &Entry, least: usize, cause: (Cause, Option<Cause>), owner: &str) {
    let explained = entry.record.explained.as_ref().unwrap();
    sums_agree(explained);
    assert!(explained.not_covered <= 1 && explained.worst.len() >= least, "{:#?}", explained.causes);
    for one in &explained.worst {
        let blame = one.blame().unwrap();
        assert_eq!(((blame.cause, blame.or), blame.owner.name.as_str()), (cause, owner), "{one:#?}");
    }
}

#[test]
fn vm_threads_and_timers_that_have_the_cpu_are_named() {
    let Some(_) = kernel() else { return };
    skip_unless!(is_installed("cc", "gcc"));
    let scratch = Scratch::new("culprits-threads");
    let loads = ["cmd:/culprit higher 0", "cmd:/culprit equal 0", "cmd:/culprit raise 0"];
    let rest = "duration = \"1s\"\nexplain = { above = \"800us\", keep = 60 }";
    let [higher, equal, raise] = &explained(&scratch, rest, "fifo:80", "1ms", &loads)[..] else { panic!() };
    expect_all(higher, 40, (Cause::HigherPriority, None), "culprit");
    expect_all(equal, 40, (Cause::EqualPriority, None), "culprit");
    expect_all(raise, 35, (Cause::HigherPriority, Some(Cause::Throttling)), "culprit");
    // Its interrupts take 1.2 ms: wherever they begin, a wake-up is due more than 0.15 ms before the end.
    let scratch = Scratch::new("culprits-herd");
    let rest = "duration = \"1s\"\nexplain = { above = \"150us\", keep = 60 }";
    let [herd] = &explained(&scratch, rest, "fifo:80", "1ms", &["cmd:/culprit herd 0"])[..] else { panic!() };
    expect_all(herd, 35, (Cause::Interrupt, None), "interrupt local_timer (timerfd_tmrproc)");
    // Each burst is one late wake-up of 2.5 ms at most, and two due times that passed or are as late.
    for entry in [higher, equal] {
        let worst = &entry.record.explained.as_ref().unwrap().worst;
        assert!(worst.iter().all(|one| one.latency.ns() < 2_700_000), "{worst:#?}");
    }
}

#[test]
fn vm_fair_competition_and_timer_slack_are_named() {
    let Some(_) = kernel() else { return };
    skip_unless!(is_installed("cc", "gcc"));
    let scratch = Scratch::new("culprits-fair");
    let rest = "duration = \"1s\"\nexplain = { above = \"900us\", keep = 60 }";
    let [fair] = &explained(&scratch, rest, "batch", "1ms", &["cpu"])[..] else { panic!() };
    expect_all(fair, 60, (Cause::FairScheduling, None), "load/cpu");
    let scratch = Scratch::new("culprits-slack");
    let rest = "duration = \"1s\"\ntimer_slack = \"3ms\"\nexplain = { above = \"1ms\", keep = 60 }";
    let [slack] = &explained(&scratch, rest, "other", "10ms", &["none"])[..] else { panic!() };
    expect_all(slack, 60, (Cause::TimerSlack, None), "measured/0");
}

#[test]
fn vm_throttling_and_stops_are_named() {
    let Some(_) = kernel() else { return };
    skip_unless!(is_installed("cc", "gcc"));
    let scratch = Scratch::new("culprits-throttled");
    // The culprit is below the measured thread, and the kernel throttles both in favor of the load.
    let rest = "duration = \"2s\"\nexplain = { above = \"20ms\", keep = 60 }";
    // The hog lets the cell begin before it takes what it gets of each second.
    let loads = ["cpu+cmd:sleep 0.3; exec /culprit hog 0 2"];
    let [throttled] = &explained(&scratch, rest, "fifo:80", "1ms", &loads)[..] else { panic!() };
    expect_all(throttled, 1, (Cause::Throttling, None), "load/cpu");
    let scratch = Scratch::new("culprits-stopped");
    // The cell is the parent of the load's supervisor.
    let stops = "cmd:read pid name state cell rest </proc/$PPID/stat; sleep 0.3; \
                 for n in 1 2 3; do kill -STOP $cell; sleep 0.04; kill -CONT $cell; sleep 0.1; done; \
                 while :; do sleep 1; done";
    let rest = "duration = \"1s\"\nexplain = { above = \"30ms\", keep = 60 }";
    let [stopped] = &explained(&scratch, rest, "fifo:80", "1ms", &[stops])[..] else { panic!() };
    // How the kernel stops and continues a thread, some microseconds each, cannot be told.
    expect_blamed(stopped, 2, (Cause::Stopped, None), "measured/0");
    let explained = stopped.record.explained.as_ref().unwrap();
    assert!(
        explained.evidence_ns[Evidence::Undetermined.index()] * 1000 < explained.late.ns(),
        "{:#?}",
        explained.causes
    );
}
