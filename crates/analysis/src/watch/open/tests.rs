//! What threads had not finished at the end, from hand-made events.

use crate::events::{What, state};
use crate::summarise;
use crate::testing::RunBuilder;
use crate::verdict::Verdict;
use crate::watch::script::{ME, OTHER, Script, TIMER, call};
use crate::watch::track::Track;
use crate::watch::{Settings, ThreadResult, WatchedThreads};
use punctual_model::{Achieved, Censored, MonoTime, OpenKind, Period, Span, TimeAccount, WatchRecord, WatchSample};
use syscalls::Sysno;

pub(in crate::watch) const PERIOD_NS: u64 = Script::PERIOD_NS;
/// Complete activations, and the release of the one after them, ns.
const N: u64 = 100;
const RELEASE_NS: u64 = (N + 1) * PERIOD_NS;
/// End of the measured time, and the time up to which events are read, ns.
pub(in crate::watch) const UNTIL_NS: u64 = 1_000_000_000;
const AT_NS: u64 = 1_500_000_000;
/// Longer than everything that is measured, ns.
const HOUR_NS: u64 = 3_600_000_000_000;

/// The results of the thread of `script`.
pub(in crate::watch) fn results(script: &Script, period: Option<Period>) -> (Vec<ThreadResult>, u64) {
    results_of(script, Settings { period, until_ns: UNTIL_NS, ..Settings::default() })
}

pub(in crate::watch) fn results_of(script: &Script, settings: Settings) -> (Vec<ThreadResult>, u64) {
    let mut threads = WatchedThreads::new(settings, &[]);
    threads.names.insert(ME, "control".to_owned());
    threads.names.insert(OTHER, "logger".to_owned());
    threads.take(&script.events());
    for pid in threads.undecided() {
        threads.settle(pid);
    }
    let (results, inactive, _) = threads.finish(AT_NS, |name| name == "control", |pid| pid == ME);
    (results, inactive)
}

fn result(script: &Script) -> ThreadResult {
    let [one] = <[ThreadResult; 1]>::try_from(results(script, None).0).expect("one thread");
    one
}

/// The loop, and then the thread does something else.
fn then(what: impl FnOnce(Script) -> Script) -> ThreadResult {
    result(&what(Script::in_a_loop(N)))
}

/// Settings of a thread.
fn achieved() -> Achieved {
    let mut run = RunBuilder::new();
    run.cell("none", "other").measure(0, 0, |_, _| 0);
    run.entries[0].record.threads[0].achieved.clone()
}

#[test]
fn an_activation_that_never_ends_counts_with_its_age() {
    let at = RELEASE_NS + 20_000;
    let stop = move |script: Script| {
        let killed = script.enter(at, Sysno::tgkill, [1, 2, 3]).exit(at + 1_000, Sysno::tgkill, 0);
        killed.switch(at + 2_000, 0, state::STOPPED & 0x04)
    };
    type Then = Box<dyn FnOnce(Script) -> Script>;
    let cases: Vec<(Then, &str)> = vec![
        (Box::new(|script| script), "runs"),
        (Box::new(move |script| script.enter(at, Sysno::futex, [7, 128, 0]).sleep(at + 1_000, 0)), "sleeps in futex"),
        (Box::new(move |script| script.enter(at, Sysno::read, [5, 0, 0]).sleep(at + 1_000, 0)), "sleeps in read(5)"),
        (Box::new(move |script| script.enter(at, Sysno::getpid, [0; 3])), "runs in getpid"),
        (Box::new(move |script| script.switch(at, OTHER, 0)), "waits for a CPU, taken by logger"),
        (Box::new(stop), "stopped by a signal or a debugger"),
        (Box::new(move |script| script.at(at, What::PageFault).sleep_for_disk(at + 1_000)), "sleeps in a page fault"),
    ];
    for (what, doing) in cases {
        let one = then(what);
        let open = one.thread.open.as_ref().unwrap();
        assert_eq!((open.kind, open.doing.as_str()), (OpenKind::Activation, doing));
        assert_eq!(open.at_least, Span(AT_NS - RELEASE_NS), "{doing}");
        let censored = Censored { cycle: i64::try_from(N).unwrap(), at_least_ns: AT_NS - RELEASE_NS };
        assert_eq!(one.censored, Some(censored), "{doing}");
        // Due times from the one after its release to the end of the measured time.
        let behind = (UNTIL_NS - 1 - RELEASE_NS) / PERIOD_NS;
        assert_eq!((one.thread.activations, one.thread.skipped, one.thread.late), (N, behind, 1), "{doing}");
        assert_eq!((one.episodes.count, one.episodes.first[0].worst_ns), (1, (AT_NS - RELEASE_NS).cast_signed()));
        assert_eq!((one.thread.response.n, one.thread.ended), (N, None), "{doing}");
    }
}

#[test]
fn a_release_that_never_ran_is_open_too() {
    let asleep = || Script::in_a_loop(N).waits_until(RELEASE_NS + 50_000, RELEASE_NS + PERIOD_NS);
    // Woken by its timer, and never on a CPU again.
    let one = result(&asleep().tick(RELEASE_NS + PERIOD_NS + 1_000));
    let open = one.thread.open.unwrap();
    assert_eq!((open.kind, open.doing.as_str()), (OpenKind::Activation, "waits for a CPU"));
    assert_eq!(open.at_least, Span(AT_NS - RELEASE_NS - PERIOD_NS));
    // Its timer expired, and nothing woke it.
    let one = result(&asleep());
    let open = one.thread.open.unwrap();
    assert_eq!((open.kind, open.at_least), (OpenKind::Activation, Span(AT_NS - RELEASE_NS - PERIOD_NS)));
    assert_eq!(open.doing, "sleeps in clock_nanosleep until an instant");
}

#[test]
fn a_timer_that_is_not_set_again_leaves_the_thread_overdue() {
    let one = then(|script| script.waits_until(RELEASE_NS + 50_000, HOUR_NS));
    let open = one.thread.open.as_ref().unwrap();
    let due_ns = RELEASE_NS + PERIOD_NS;
    assert_eq!((open.kind, open.at_least), (OpenKind::Wait, Span(UNTIL_NS - due_ns)));
    assert_eq!(one.censored.map(|open| open.at_least_ns), Some(UNTIL_NS - due_ns));
    // Every due time of the measured time: a complete activation, open, or skipped.
    let due = (UNTIL_NS - 1) / PERIOD_NS;
    assert_eq!((one.thread.activations, one.thread.skipped), (N + 1, due - (N + 1) - 1));
    assert_eq!(one.thread.late, 1);
}

#[test]
fn a_thread_that_others_release_owes_nothing_when_they_stop() {
    let period_ns = PERIOD_NS;
    let turn = |script: Script, cycle: u64| {
        let at = cycle * period_ns;
        script
            .woken_by(1, at)
            .switch(at + 3_000, ME, 0)
            .exit(at + 4_000, Sysno::read, 1)
            .enter(at + 40_000, Sysno::read, [5, 0, 0])
            .sleep(at + 41_000, 0)
    };
    let begin =
        || Script::new().switch_on(1, 50_000, OTHER, 0).enter(100_000, Sysno::read, [5, 0, 0]).sleep(101_000, 0);
    let script = (1..=N).fold(begin(), turn);
    let one = result(&script);
    let open = one.thread.open.as_ref().unwrap();
    assert_eq!((open.kind, one.censored, one.thread.late, one.thread.skipped), (OpenKind::Silence, None, 0, 0));
    assert_eq!(open.doing, "sleeps in read(5)");
    // With a period that the user gave, there is something to do.
    let given = results(&script, Period::try_from(Span(period_ns)).ok()).0;
    assert_eq!(given[0].thread.open.as_ref().unwrap().kind, OpenKind::Wait);
    assert!(given[0].censored.is_some() && given[0].thread.late == 1);
    // It waited longer before, so that this wait is nothing new.
    let paused = (400..=420).fold((1..=N).fold(begin(), turn), turn);
    assert_eq!(result(&paused).thread.open, None);
}

#[test]
fn a_sleep_for_a_length_of_time_promises_no_period() {
    // A loop of nanosleep that sleeps for an hour.
    let turn = |script: Script, cycle: u64| {
        let due_ns = cycle * PERIOD_NS;
        let woken = script.tick(due_ns + 1_000).switch(due_ns + 4_000, ME, 0).exit(due_ns + 5_000, Sysno::nanosleep, 0);
        let next_ns = if cycle < N { due_ns + PERIOD_NS } else { HOUR_NS };
        let sleeps = woken.enter(due_ns + 50_000, Sysno::nanosleep, [0; 3]).timer(due_ns + 51_000, TIMER, next_ns);
        sleeps.sleep(due_ns + 52_000, 0)
    };
    let begin =
        Script::new().enter(100_000, Sysno::nanosleep, [0; 3]).timer(101_000, TIMER, PERIOD_NS).sleep(102_000, 0);
    let one = result(&(1..=N).fold(begin, turn));
    let open = one.thread.open.as_ref().unwrap();
    assert_eq!((open.kind, one.censored, one.thread.late, one.thread.skipped), (OpenKind::Silence, None, 0, 0));
}

#[test]
fn a_thread_that_hangs_in_the_warm_up_is_open_all_the_time() {
    let since_ns = 500_000_000;
    let settings = Settings { since_ns, until_ns: UNTIL_NS, ..Settings::default() };
    let at = RELEASE_NS + 20_000;
    let hangs = Script::in_a_loop(N).enter(at, Sysno::futex, [7, 128, 0]).sleep(at + 1_000, 0);
    let waits = Script::in_a_loop(N).waits_until(RELEASE_NS + 50_000, HOUR_NS);
    for (script, kind, at_least_ns) in
        [(hangs, OpenKind::Activation, AT_NS - RELEASE_NS), (waits, OpenKind::Wait, UNTIL_NS - RELEASE_NS - PERIOD_NS)]
    {
        let [one] = <[ThreadResult; 1]>::try_from(results_of(&script, settings.clone()).0).expect("one thread");
        assert_eq!(one.thread.open.as_ref().map(|open| (open.kind, open.at_least.ns())), Some((kind, at_least_ns)));
        assert_eq!(one.censored, Some(Censored { cycle: -1, at_least_ns }), "released before the first measured cycle");
        assert_eq!((one.thread.activations, one.thread.skipped), (0, 0));
    }
}

#[test]
fn a_timer_of_another_clock_is_not_due_by_the_offset_of_a_third() {
    // CLOCK_REALTIME is 1 000 s ahead, CLOCK_TAI 1 037 s: a sleep until 30 s later looks due 7 s ago by TAI.
    let (real, tai) = (1_000_000_000_000_i64, 1_037_000_000_000_i64);
    let base = 20_000_000_000_u64;
    let script = Script::new().enter(base + 100_000, Sysno::clock_nanosleep, [0, 1, 0]);
    let due_ns = base + 30_000_000_000 + real.unsigned_abs();
    let script = script.timer(base + 101_000, TIMER, due_ns).sleep(base + 102_000, 0);
    let mut track = Track::new(ME, Some(call(Sysno::clock_nanosleep, [0, 1, 0])));
    script.events().iter().for_each(|(cpu, event)| drop(track.take(*cpu, event, &[real, tai])));
    assert_eq!(track.unfinished(base + 1_000_000_000, &[real, tai]), None);
    let unfinished = track.unfinished(base + 30_000_000_001, &[real, tai]);
    assert_eq!(unfinished.map(|one| one.release_ns), Some(base + 30_000_000_000));
}

#[test]
fn what_ends_in_time_is_not_open() {
    // Its next due time is after the end.
    let to_the_end = Script::in_a_loop(UNTIL_NS / PERIOD_NS - 1);
    let release_ns = UNTIL_NS;
    let one = result(&to_the_end.clone().waits_until(release_ns + 50_000, release_ns + HOUR_NS));
    assert_eq!((one.thread.open, one.censored, one.thread.skipped, one.thread.late), (None, None, 0, 0));
    // The one that is due at the end does not count, whether or not it is over.
    assert_eq!(one.thread.activations, UNTIL_NS / PERIOD_NS - 1);
    assert_eq!(result(&to_the_end).thread.open, None);
    // Released in time, over later.
    let last = Script::in_a_loop(UNTIL_NS / PERIOD_NS - 2);
    let one = result(&last.clone().waits_until(UNTIL_NS + 90_000_000, HOUR_NS));
    assert_eq!((one.thread.open, one.thread.activations, one.thread.late), (None, UNTIL_NS / PERIOD_NS - 1, 1));
    assert!(result(&last).thread.open.is_some());
}

#[test]
fn a_thread_that_ended_or_was_stopped_says_so() {
    let gone = then(|script| script.at(RELEASE_NS + 30_000, What::Exit));
    assert_eq!((gone.thread.open, gone.censored), (None, None));
    assert_eq!(gone.thread.ended.as_deref(), Some("ended after 0.202 s"));
    // Stopped from outside in a wait for messages that is not longer than others.
    let read = Script::new().enter(100_000, Sysno::read, [5, 0, 0]).sleep(101_000, 0);
    let turn = |script: Script, at: u64| {
        let woken = script.woken_by(0, at).switch(at + 3_000, ME, 0).exit(at + 4_000, Sysno::read, 1);
        woken.enter(at + 40_000, Sysno::read, [5, 0, 0]).sleep(at + 41_000, 0)
    };
    let script = [1_000_000, 400_000_000, 700_000_000].into_iter().fold(read, turn);
    let script = script.woken_by(0, 800_000_000).switch(800_001_000, ME, 0).exit(800_002_000, Sysno::read, -512);
    let one = result(&script.switch(800_003_000, 0, 0x04));
    assert_eq!(
        one.thread.ended.as_deref(),
        Some("stopped after 0.800 s by a signal or a debugger"),
        "{:#?}",
        one.thread.open
    );
}

/// The verdict on a run of one measurement that watched the thread of `script`; `change` changes its record.
pub(in crate::watch) fn verdict(script: &Script, require: &str, change: impl FnOnce(&mut WatchRecord)) -> Verdict {
    let mut run = RunBuilder::new();
    run.cell("none", "other").require(require).measure(0, 0, |_, _| 0);
    let (mut results, inactive) = results(script, None);
    let mut watch = WatchRecord {
        threads: results.iter().map(|one| one.thread.clone()).collect(),
        inactive,
        events: 1,
        ..WatchRecord::default()
    };
    change(&mut watch);
    run.header.cells[0].task = "watch:./control".parse().unwrap();
    let record = &mut run.entries[0].record;
    (record.cell, record.measured) = (run.header.cells[0].clone(), Span(UNTIL_NS));
    let of = |one: ThreadResult| one.record(MonoTime(0), WatchSample::Response, achieved());
    record.threads = results.drain(..).map(of).collect();
    assert!(record.threads.iter().all(punctual_model::ThreadRecord::is_consistent), "{:#?}", record.threads);
    record.watch = Some(Box::new(watch));
    summarise(&run.header, &run.entries).verdict
}

#[test]
fn only_threads_that_were_seen_to_the_end_pass() {
    let whole = || Script::in_a_loop(UNTIL_NS / PERIOD_NS - 2).waits_until(UNTIL_NS - PERIOD_NS + 50_000, UNTIL_NS);
    let far = "max=1h,p99=1ms,misses_per_hour=1000000";
    let passed = verdict(&whole(), far, |_| {});
    assert_eq!(passed.exit_status(), 0, "{passed}");
    let asleep = |script: Script| script.waits_until(RELEASE_NS + 50_000, HOUR_NS);
    let at = RELEASE_NS + 20_000;
    let hung = Script::in_a_loop(N).enter(at, Sysno::futex, [7, 128, 0]).sleep(at + 1_000, 0);
    let told = [
        (hung.clone(), "control had not finished an activation after 1.3 s (sleeps in futex)"),
        (Script::in_a_loop(N), "control had not finished an activation after 1.3 s (runs)"),
        (asleep(Script::in_a_loop(N)), "control was not released for 796 ms beyond its period (sleeps in"),
        (
            Script::in_a_loop(N).at(at, What::Exit),
            "control ended after 0.202 s, and nothing is known of the time after",
        ),
    ];
    for (script, said) in told {
        for require in ["max=1h", "p99=1h", "misses_per_hour=1000000000", far] {
            let verdict = verdict(&script, require, |_| {});
            assert_ne!(verdict.exit_status(), 0, "{require}: {verdict}");
            assert!(verdict.exit_status() == 2 || verdict.to_string().contains(said), "{require}: {verdict}");
        }
    }
    let late = verdict(&hung, "max=50ms", |_| {});
    assert_eq!(late.to_string(), "Verdict: FAIL none/other: max at least 1.3 s > 50 ms");
    let crashed = verdict(&whole(), far, |watch| watch.status = Some("signal: 11 (SIGSEGV)".to_owned()));
    let said = "Verdict: INCONCLUSIVE: none/other: the program ended after 1 s of 2 s (signal: 11 (SIGSEGV)), and nothing is \
                known of the time after";
    assert_eq!(crashed.to_string(), said);
    let unseen = verdict(&whole(), far, |watch| watch.unseen = vec!["main (running)".to_owned()]);
    let said = "Verdict: INCONCLUSIVE: none/other: nothing is known of thread main (running), which never waited twice in \
                one call";
    assert_eq!(unseen.to_string(), said);
}

#[test]
fn waiting_is_limited_by_the_account_of_each_thread() {
    // 2 us in each period of 2 ms.
    let whole = Script::in_a_loop(UNTIL_NS / PERIOD_NS - 2).waits_until(UNTIL_NS - PERIOD_NS + 50_000, UNTIL_NS);
    let said = |percent: &str, change: fn(&mut TimeAccount)| {
        let change = |watch: &mut WatchRecord| change(watch.threads[0].account.as_mut().unwrap());
        verdict(&whole, &format!("waiting={percent}"), change).to_string()
    };
    assert_eq!(said("1%", |_| {}), "Verdict: PASS waiting for a CPU 0.1 % <= 1 % (worst: control of none/other)");
    let violated = "Verdict: FAIL none/other: control waited for a CPU 0.1 % of its time > 0.05 %";
    assert_eq!(said("0.05%", |_| {}), violated);
    let lose = |account: &mut TimeAccount| {
        (account.asleep, account.unknown) = (Span(account.asleep.ns() - 20_000_000), Some(Span(20_000_000)));
    };
    let unseen = "Verdict: INCONCLUSIVE: none/other: control: nothing is known of 20 ms of 1 s";
    assert_eq!((said("1%", lose).as_str(), said("0.05%", lose).as_str()), (unseen, violated));
    assert!(said("2.2%", lose).starts_with("Verdict: PASS"), "even if it waited all of that time");
    assert!(
        said("1%", |account| account.unknown = None).ends_with("the record does not say where all of its time went")
    );
    let lost = verdict(&whole, "waiting=1%", |watch| watch.gaps = 1);
    assert_eq!(lost.exit_status(), 3, "{lost}");
    let old = verdict(&whole, "waiting=1%", |watch| watch.threads[0].account = None);
    assert_eq!(old.exit_status(), 3, "{old}");
    let mut plain = RunBuilder::new();
    plain.cell("none", "other").require("waiting=1%").measure(0, 0, |_, _| 0);
    let said = summarise(&plain.header, &plain.entries).verdict.to_string();
    assert_eq!(said, "Verdict: INCONCLUSIVE: none/other: only of watched threads is it known how long they wait");
}

#[test]
fn a_thread_that_has_a_period_and_never_waits_is_behind_since_its_first_event() {
    let call = |script: Script, cycle: u64| {
        let at = cycle * PERIOD_NS;
        script.enter(at, Sysno::getpid, [0; 3]).exit(at + 1_000, Sysno::getpid, 1)
    };
    let never = (1..100).fold(Script::new(), call);
    assert_eq!(results(&never, None).1, 1, "nothing says that it was to wait");
    let (given, _) = results(&never, Period::try_from(Span(PERIOD_NS)).ok());
    let [one] = <[ThreadResult; 1]>::try_from(given).expect("one thread");
    let open = one.thread.open.as_ref().unwrap();
    assert_eq!(
        (open.at_least, open.doing.as_str(), one.thread.wait.as_str()),
        (Span(UNTIL_NS - PERIOD_NS), "runs", "")
    );
    assert_eq!((one.thread.activations, one.thread.late, one.thread.skipped), (0, 1, UNTIL_NS / PERIOD_NS - 2));
    let record = one.record(MonoTime(0), WatchSample::Response, achieved());
    assert!(record.is_consistent(), "{record:#?}");
}

#[test]
fn due_times_that_pass_while_events_are_lost_are_not_missed() {
    let mut threads = WatchedThreads::new(Settings { until_ns: UNTIL_NS, ..Settings::default() }, &[]);
    threads.names.insert(ME, "control".to_owned());
    let events = Script::in_a_loop(UNTIL_NS / PERIOD_NS - 2).events();
    // In the program after release 200, and asleep before release 211.
    let cut = |release: u64| events.partition_point(|(_, event)| event.at_ns <= release * PERIOD_NS + 20_000);
    threads.take(&events[..cut(200)]);
    threads.lost();
    threads.take(&events[cut(210)..]);
    let (results, _, _) = threads.finish(UNTIL_NS, |_| true, |_| true);
    let [one] = <[ThreadResult; 1]>::try_from(results).expect("one thread");
    assert_eq!((one.lost, one.thread.skipped, one.thread.late), (11, 0, 0));
    let due = UNTIL_NS / PERIOD_NS - 1;
    assert_eq!(one.thread.activations + one.lost + u64::from(one.censored.is_some()), due);
    assert!(one.record(MonoTime(0), WatchSample::Response, achieved()).is_consistent());
}

#[test]
fn a_period_that_is_given_up_takes_its_misses_with_it() {
    let at_period =
        |script: Script, (due_ns, next_ns): (u64, u64)| script.runs_at(due_ns).waits_until(due_ns + 50_000, next_ns);
    // 100 activations at 2 ms, and then 160 at 5 ms.
    let due: Vec<u64> =
        (1..=100).map(|n| n * 2_000_000).chain((1..=160).map(|n| 200_000_000 + n * 5_000_000)).collect();
    let script =
        due.windows(2).map(|pair| (pair[0], pair[1])).fold(Script::new().waits_until(100_000, due[0]), at_period);
    let [one] = <[ThreadResult; 1]>::try_from(results(&script, None).0).expect("one thread");
    assert_eq!(one.thread.period, None, "2 ms is not common to most");
    assert_eq!((one.thread.skipped, one.thread.late, one.episodes.count), (0, 0, 0));
    let given = results(&script, Period::try_from(Span(2_000_000)).ok()).0;
    assert!(given[0].thread.skipped > 100, "they count against a period that was given");
}
