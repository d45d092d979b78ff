//! Tests of what is known of a thread besides its activations.

use super::script::{ME, OTHER, Script};
use super::*;
use crate::events::{Context, flags};
use punctual_model::NamedTime;
use syscalls::Sysno;

const SECOND_NS: u64 = 1_000_000_000;

/// The only thread of a script.
fn watched(script: &Script) -> WatchedThread {
    let settings = Settings { until_ns: 10 * SECOND_NS, ..Settings::default() };
    let mut threads = WatchedThreads::new(settings, &[]);
    threads.take(&script.events());
    only(threads, 10 * SECOND_NS)
}

/// The only one of these threads, at this time.
fn only(mut threads: WatchedThreads, until_ns: u64) -> WatchedThread {
    threads.undecided().into_iter().for_each(|pid| drop(threads.settle(pid)));
    let [only] = <[_; 1]>::try_from(threads.finish(until_ns, |_| true, |_| false).0).expect("one thread");
    only.thread
}

#[test]
fn a_change_of_the_priority_has_its_instant_and_a_raise_at_the_beginning_is_none() {
    let turn =
        |script: Script, due_ns: u64| script.runs_at(due_ns).waits_until(due_ns + 50_000, due_ns + SECOND_NS / 4);
    let turns = |script: Script, turns: std::ops::Range<u64>| turns.map(|i| i * SECOND_NS / 4).fold(script, turn);
    let begin = Script::new().priority(ME, 120).waits_until(100_000, SECOND_NS / 4);
    let raised = turns(turns(begin, 1..2).priority(ME, 49), 2..12);
    assert_eq!(watched(&turns(raised.clone(), 12..14)).changes, []);
    let demoted = turns(raised.priority(ME, 125), 12..14);
    let change = SettingChange { at: Span(3 * SECOND_NS), from: "priority 50".to_owned(), to: "nice 5".to_owned() };
    assert_eq!(watched(&demoted).changes, [change]);
}

#[test]
fn the_account_divides_all_activations_and_knows_the_locks_from_the_first_one_on() {
    const N: u64 = 100;
    // 100 us for a lock that another thread releases, 30 us on the CPU, and 10 us of an interrupt.
    let turn = |script: Script, cycle: u64| {
        let due_ns = cycle * Script::PERIOD_NS;
        let asleep = script.runs_at(due_ns).enter(due_ns + 10_000, Sysno::futex, [7, 128, 2]).sleep(due_ns + 11_000, 0);
        let woken = asleep.woken_by(1, due_ns + 111_000).switch(due_ns + 113_000, ME, 0);
        let locked = woken.exit(due_ns + 114_000, Sysno::futex, 0);
        let unlocked =
            locked.enter(due_ns + 115_000, Sysno::futex, [7, 129, 1]).exit(due_ns + 116_000, Sysno::futex, 0);
        let tick = Context::Vector(0);
        let interrupted = unlocked.on(0, due_ns + 120_000, flags::HARDIRQ, What::Enter(tick));
        let back = interrupted.on(0, due_ns + 130_000, flags::HARDIRQ, What::Leave(tick));
        back.waits_until(due_ns + 140_000, due_ns + Script::PERIOD_NS)
    };
    let begin = Script::new().switch_on(1, 50_000, OTHER, 0).waits_until(100_000, Script::PERIOD_NS);
    let mut script = (1..=N).fold(begin, turn);
    let until_ns = (N + 1) * Script::PERIOD_NS;
    let mut threads = WatchedThreads::new(Settings { until_ns, ..Settings::default() }, &[]);
    threads.names.clone_from(&script.trace.names);
    threads.interrupts_are_traced(&mut script.trace);
    threads.take(&script.events());
    let account = only(threads, until_ns).account.unwrap();
    let one = |name: &str, each: u64| {
        vec![NamedTime { name: name.to_owned(), n: N, total: Span(N * each), longest: Span(each) }]
    };
    assert_eq!(account.total(), Span(until_ns - 100_000));
    let interrupts = InterruptTime { total: Span(N * 10_000), by: one("interrupt local_timer", 10_000) };
    assert_eq!((account.interrupts, account.unknown), (Some(interrupts), Some(Span(0))));
    let ran_each = 7_000 + 29_000;
    assert_eq!((account.running, account.waiting_for_cpu), (Span(2_000 + N * ran_each), Span(N * (2_000 + 2_000))));
    let asleep = account.asleep_for.unwrap();
    assert_eq!((asleep.locks, asleep.locks_of), (Span(N * 100_000), one("logger", 100_000)));
    assert_eq!(asleep.on_purpose, Span(account.asleep.ns() - N * 100_000));
}

#[test]
fn a_program_that_replaces_a_script_is_another_one() {
    let child = |script: Script, turn: u64| {
        let at_ns = turn * 10_000_000;
        let asleep = script.enter(at_ns, Sysno::wait4, [0; 3]).sleep(at_ns + 1_000, 0);
        let woken = asleep.woken_by(1, at_ns + 9_000_000).switch(at_ns + 9_001_000, ME, 0);
        woken.exit(at_ns + 9_002_000, Sysno::wait4, 0)
    };
    let begin = Script::new().switch_on(1, 50_000, OTHER, 0);
    let script = (1..100).fold(begin, child).enter(1_000_000_000, Sysno::execve, [0; 3]);
    let program = script.exit(1_001_000_000, Sysno::execve, 0).waits_until(1_010_000_000, 1_020_000_000);
    let turn = |script: Script, due_ns: u64| script.runs_at(due_ns).waits_until(due_ns + 50_000, due_ns + 20_000_000);
    let thread = watched(&(51..151).map(|n| n * 20_000_000).fold(program, turn));
    assert_eq!((&*thread.wait, thread.activations), ("clock_nanosleep until an instant", 100));
}

#[test]
fn a_thread_that_misses_most_due_times_does_not_sleep_for_a_length() {
    // Due times are whole milliseconds, or 1 ms after as much work; the work ends anywhere between two of them.
    let thread = |is_relative: bool| {
        let turn = |(script, due_ns): (Script, u64), turn: u64| {
            let end_ns = due_ns + 50_000 + turn * 7_919_000 % 5_000_000;
            let whole_ns = (end_ns + 10_000).next_multiple_of(1_000_000);
            let next_ns = if is_relative { end_ns + 1_000_000 } else { whole_ns };
            (script.runs_at(due_ns).waits_until(end_ns, next_ns), next_ns)
        };
        let begin = (Script::new().waits_until(100_000, 1_000_000), 1_000_000);
        let thread = watched(&(1..600).fold(begin, turn).0);
        (thread.wait, thread.is_relative)
    };
    assert_eq!(thread(false), ("clock_nanosleep until an instant".to_owned(), None));
    assert_eq!(thread(true), ("clock_nanosleep for a length of time".to_owned(), Some(true)));
}

#[test]
fn a_thread_with_many_calls_has_no_hole_before_its_wait_is_known() {
    // Each turn makes 15 000 calls.
    let turn = |mut script: Script, cycle: u64| {
        let due_ns = cycle * 20 * Script::PERIOD_NS;
        script = script.runs_at(due_ns);
        for i in 0..15_000 {
            let at_ns = due_ns + 10_000 + i * 1_000;
            script = script.enter(at_ns, Sysno::getpid, [0; 3]).exit(at_ns + 500, Sysno::getpid, 0);
        }
        script.waits_until(due_ns + 20_000_000, due_ns + 20 * Script::PERIOD_NS)
    };
    let begin = Script::new().waits_until(100_000, 20 * Script::PERIOD_NS);
    let thread = watched(&(1..30).fold(begin, turn));
    assert!(thread.activations > 0 && thread.response.max_ns < Some(21_000_000), "{thread:?}");
}

#[test]
fn events_before_the_waits_are_known_are_bounded_in_sum() {
    let mut threads = WatchedThreads::new(Settings::default(), &[]);
    let pids: Vec<i32> = (1..).take(MOST_THREADS).collect();
    pids.iter().for_each(|pid| threads.add(*pid, 0));
    for pid in pids {
        let event = Event { at_ns: 5, pid, flags: 0, what: What::PageFault };
        threads.take(&vec![(0, event); LEAST_EARLY + 10]);
    }
    assert_eq!(threads.threads.values().map(|thread| thread.early.len()).sum::<usize>(), MOST_EARLY);
}

#[test]
fn threads_beyond_the_most_are_counted() {
    let mut threads = WatchedThreads::new(Settings::default(), &[]);
    let add = |threads: &mut WatchedThreads, pids: std::ops::Range<i32>| pids.for_each(|pid| threads.add(pid, 0));
    let most = i32::try_from(MOST_THREADS).unwrap();
    add(&mut threads, 1..most + 1);
    add(&mut threads, most..most + 1);
    assert_eq!(threads.left_out(), None);
    add(&mut threads, most..most + 3);
    assert_eq!(threads.left_out(), Some(2));
    add(&mut threads, 1..3 * most);
    assert_eq!(threads.left_out(), Some(MOST_THREADS as u64));
}

#[test]
fn marks_are_those_of_activations_that_are_whole() {
    // The program runs 20 us after its due time, and passes a mark 10 us later; events of the fourth are lost.
    let turn = |script: Script, cycle: u64| {
        let due_ns = cycle * Script::PERIOD_NS;
        let passed = script.runs_at(due_ns).at(due_ns + 30_000, What::Pass(1));
        passed.waits_until(due_ns + 70_000, due_ns + Script::PERIOD_NS)
    };
    let marks = ["function:never", "function:solve"].map(|mark| mark.parse().unwrap());
    let settings = Settings { until_ns: u64::MAX, marks: marks.into(), ..Settings::default() };
    let mut threads = WatchedThreads::new(settings, &[]);
    let script = (1..=60).fold(Script::new().waits_until(100_000, Script::PERIOD_NS), turn);
    let events = script.events();
    let at = events.partition_point(|(_, event)| event.at_ns < 50 * Script::PERIOD_NS + 40_000);
    let (before, after) = events.split_at(at);
    threads.take(before);
    threads.lost();
    threads.take(after);
    let thread = only(threads, u64::MAX);
    let phases = thread.phases.unwrap();
    let sum: i128 = phases.iter().map(|one| one.length.sum_ns).sum();
    assert_eq!(sum, thread.response.sum_ns);
    let found: Vec<_> = phases.iter().map(|one| (&*one.mark, one.length.n, one.since_release.max_ns)).collect();
    let n = thread.activations;
    assert!(n < 60, "one is not whole: {n}");
    assert_eq!(found[2..], [("solve", n, Some(30_000)), ("never", 0, None)]);
}
