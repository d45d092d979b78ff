//! Bounds of response times, from hand-made events, and the verdicts on them.

use crate::watch::open::tests::{PERIOD_NS, UNTIL_NS, results, results_of, verdict};
use crate::watch::script::{ME, OTHER, Script};
use crate::watch::{Settings, ThreadResult};
use syscalls::Sysno;

/// A thread that another one releases once in a period; once it sleeps for ten periods, and finds ten messages waiting.
fn with_a_backlog() -> Script {
    let turn = |script: Script, cycle: u64| {
        let at = cycle * PERIOD_NS;
        let woken = script.woken_by(1, at).switch(at + 3_000, ME, 0).exit(at + 4_000, Sysno::read, 1);
        woken.enter(at + 40_000, Sysno::read, [5, 0, 0]).sleep(at + 41_000, 0)
    };
    let begin = Script::new().switch_on(1, 50_000, OTHER, 0).enter(100_000, Sysno::read, [5, 0, 0]).sleep(101_000, 0);
    let at = 61 * PERIOD_NS;
    let slow = (1..=60).fold(begin, turn).woken_by(1, at).switch(at + 3_000, ME, 0).exit(at + 4_000, Sysno::read, 1);
    let due_ns = at + 10 * PERIOD_NS;
    let slept = slow.waits_until(at + 10_000, due_ns).runs_at(due_ns);
    let at_once = |script: Script, n: u64| {
        let at = due_ns + n * 50_000;
        script.enter(at, Sysno::read, [5, 0, 0]).exit(at + 2_000, Sysno::read, 1)
    };
    let worked = (1..=10).fold(slept, at_once).enter(due_ns + 600_000, Sysno::read, [5, 0, 0]);
    (72..=498).fold(worked.sleep(due_ns + 601_000, 0), turn)
}

#[test]
fn data_that_had_waited_may_have_waited_for_as_long_as_the_backlog_is_old() {
    let [one] = <[ThreadResult; 1]>::try_from(results(&with_a_backlog(), None).0).expect("one thread");
    let (immediate, all) = (one.thread.releases.immediate, one.thread.activations);
    assert_eq!((immediate, all), (10, 60 + 1 + 10 + 427));
    // From the release of the activation that slept to the end of the last that found its data waiting.
    let at_most = one.thread.response_at_most.as_ref().unwrap();
    assert_eq!((at_most.n, at_most.max_ns), (all, Some((10 * PERIOD_NS + 600_000).cast_signed())));
    assert_eq!(at_most.count_above(15_000_000), 11, "the slow one, and those behind it");
    assert_eq!(one.thread.response.count_above(15_000_000), 1);
    // One of 498 responses is late: at most 1 %. With those that may be, it is 2.2 %.
    let said = verdict(&with_a_backlog(), "p99=15ms", |_| {});
    let why = "control: data had waited in 10 of 498 activations, for an unknown time, at most 20.6 ms";
    assert_eq!(said.to_string(), format!("Verdict: INCONCLUSIVE: none/other: {why}"));
    let far = verdict(&with_a_backlog(), "p99=25ms", |_| {}).to_string();
    assert!(!far.contains("had waited"), "none of them took that long: {far}");
    assert_eq!(verdict(&with_a_backlog(), "max=20500us", |_| {}).exit_status(), 3);
    assert_eq!(verdict(&with_a_backlog(), "max=20600us", |_| {}).exit_status(), 0);
    assert_eq!(verdict(&with_a_backlog(), "max=15ms", |_| {}).exit_status(), 2);
    let older = verdict(&with_a_backlog(), "max=1h", |watch| watch.threads[0].response_at_most = None);
    assert!(older.to_string().ends_with("data had waited in 10 of 498 activations, for an unknown time"), "{older}");
}

/// A thread that waits for a semaphore, which another one posts once in a period. Each hundredth item takes 8 ms of the
/// CPU instead of 300 us; the four that come meanwhile follow without a call.
fn with_a_semaphore() -> Script {
    let futex = [0x77, 128 | 9, 0];
    let turn = |script: Script, cycle: u64| {
        let at = cycle * PERIOD_NS;
        let run_ns = match cycle % 100 {
            99 => 8_000_000 + 4 * 300_000,
            0..=3 if cycle > 99 => return script,
            _ => 300_000,
        };
        let woken = script.woken_by(1, at).switch(at + 3_000, ME, 0).exit(at + 4_000, Sysno::futex, 0);
        woken.enter(at + 4_000 + run_ns, Sysno::futex, futex).sleep(at + 5_000 + run_ns, 0)
    };
    let begin = Script::new().switch_on(1, 50_000, OTHER, 0).enter(100_000, Sysno::futex, futex).sleep(101_000, 0);
    (1..UNTIL_NS / PERIOD_NS - 1).fold(begin, turn)
}

#[test]
fn releases_that_find_a_thread_running_in_user_space_make_one_activation_of_several() {
    let [one] = <[ThreadResult; 1]>::try_from(results(&with_a_semaphore(), None).0).expect("one thread");
    assert_eq!((one.thread.activations, one.thread.response.count_above(5_000_000)), (482, 4));
    // 9.2 ms: time for thirty of 300 us, but for five releases.
    let (at_least, at_most) = (one.thread.response_at_least.unwrap(), one.thread.response_at_most.unwrap());
    assert_eq!((at_least.n, at_least.count_above(1_800_000), at_least.count_above(1_850_000)), (482, 4, 0));
    assert_eq!((at_most.n, at_most.max_ns), (482 + 4 * 4, Some(9_204_000)));
    let said = |require: &str| verdict(&with_a_semaphore(), require, |_| {});
    let why = "several as one: 482 activations of control may be up to 498; it waits for futexes, where the kernel does \
               not see each release";
    for require in ["max=5ms", "p99=5ms", "misses_per_hour=1"] {
        assert_eq!(said(require).to_string(), format!("Verdict: INCONCLUSIVE: none/other: {why}"), "{require}");
    }
    assert_eq!(said("max=10ms").exit_status(), 0, "none of them took longer than all");
    assert_eq!(said("max=100us").exit_status(), 2, "the shares are longer");
    assert_eq!(said("p99=100us").exit_status(), 2);
}

#[test]
fn one_long_activation_of_a_thread_that_waits_in_user_space_is_one() {
    let futex = [0x77, 128 | 9, 0];
    // 20 ms in a lock, with the CPU time of one.
    let turn = |script: Script, cycle: u64| {
        let (at, is_slow) = (cycle * 3 * PERIOD_NS, cycle == 80);
        let woken = script.woken_by(1, at).switch(at + 3_000, ME, 0).exit(at + 4_000, Sysno::futex, 0);
        let slow = |script: Script| {
            let asleep = script.enter(at + 10_000, Sysno::read, [5, 0, 0]).sleep(at + 11_000, 0);
            asleep.woken_by(1, at + 5_000_000).switch(at + 5_001_000, ME, 0).exit(at + 5_002_000, Sysno::read, 0)
        };
        let worked = if is_slow { slow(woken) } else { woken };
        let end_ns = if is_slow { at + 5_300_000 } else { at + 304_000 };
        worked.enter(end_ns, Sysno::futex, futex).sleep(end_ns + 1_000, 0)
    };
    let begin = Script::new().switch_on(1, 50_000, OTHER, 0).enter(100_000, Sysno::futex, futex).sleep(101_000, 0);
    let [one] = <[ThreadResult; 1]>::try_from(results(&(1..166).fold(begin, turn), None).0).expect("one thread");
    let (at_least, at_most) = (one.thread.response_at_least, one.thread.response_at_most);
    assert_eq!((one.thread.activations, at_least, at_most), (165, None, None));
}

/// A thread that waits in a poll, where another one releases it once in a period. In each fiftieth activation it sleeps
/// for 19 ms in a futex, which it releases afterwards if that is a lock.
fn with_a_futex(is_lock: bool) -> Script {
    let poll = [3, 0, 0];
    let turn = |script: Script, cycle: u64| {
        let at = cycle * PERIOD_NS;
        if cycle > 49 && cycle % 50 < 9 {
            return script;
        }
        let woken = script.woken_by(1, at).switch(at + 3_000, ME, 0).exit(at + 4_000, Sysno::epoll_wait, 1);
        if cycle % 50 != 49 {
            return woken.enter(at + 50_000, Sysno::epoll_wait, poll).sleep(at + 51_000, 0);
        }
        let asleep = woken.enter(at + 9_000, Sysno::futex, [0x88, 128, 0]).sleep(at + 10_000, 0);
        let end = at + 19_000_000;
        let back = asleep.woken_by(1, end).switch(end + 1_000, ME, 0).exit(end + 2_000, Sysno::futex, 0);
        let wake =
            |script: Script| script.enter(end + 3_000, Sysno::futex, [0x88, 129, 0]).exit(end + 4_000, Sysno::futex, 1);
        let released = if is_lock { wake(back) } else { back };
        released.enter(end + 10_000, Sysno::epoll_wait, poll).sleep(end + 11_000, 0)
    };
    let begin = Script::new().switch_on(1, 50_000, OTHER, 0).enter(100_000, Sysno::epoll_wait, poll).sleep(101_000, 0);
    (1..UNTIL_NS / PERIOD_NS - 1).fold(begin, turn)
}

#[test]
fn a_long_sleep_in_a_futex_that_is_no_lock_may_be_the_wait_for_other_work() {
    let one = |script: &Script, settings: Settings| {
        let results = results_of(script, Settings { until_ns: UNTIL_NS, ..settings }).0;
        <[ThreadResult; 1]>::try_from(results).expect("one thread").into_iter().next().unwrap().thread
    };
    let parked = one(&with_a_futex(false), Settings::default());
    // The first of nine is before 50 activations: nothing is usual yet.
    assert_eq!(
        (parked.response.count_above(100_000), parked.response_at_most.unwrap().count_above(15_000_000)),
        (1, 17)
    );
    let locked = one(&with_a_futex(true), Settings::default());
    assert_eq!((locked.response.count_above(15_000_000), locked.response_at_most), (9, None));
    let named = Settings { wait: Some("epoll_wait".to_owned()), ..Settings::default() };
    assert_eq!(one(&with_a_futex(false), named).response.count_above(15_000_000), 9, "the user says where it waits");
    let said = |require: &str| verdict(&with_a_futex(false), require, |_| {});
    assert_eq!(said("max=1s").exit_status(), 0);
}

#[test]
fn a_poll_of_a_thread_that_waits_in_a_futex_may_be_its_wait_too() {
    let futex = [0x77, 128, 0];
    let turn = |script: Script, cycle: u64| {
        let at = cycle * 3 * PERIOD_NS;
        let woken = script.woken_by(1, at).switch(at + 3_000, ME, 0).exit(at + 4_000, Sysno::futex, 0);
        let polls = woken.enter(at + 10_000, Sysno::epoll_wait, [3, 0, 0]).sleep(at + 11_000, 0);
        let end = at + 2_000_000;
        let back = polls.woken_by(1, end).switch(end + 1_000, ME, 0).exit(end + 2_000, Sysno::epoll_wait, 1);
        back.enter(end + 20_000, Sysno::futex, futex).sleep(end + 21_000, 0)
    };
    let begin = Script::new().switch_on(1, 50_000, OTHER, 0).enter(100_000, Sysno::futex, futex).sleep(101_000, 0);
    let [one] = <[ThreadResult; 1]>::try_from(results(&(1..100).fold(begin, turn), None).0).expect("one thread");
    let (response, at_most) = (&one.thread.response, one.thread.response_at_most.as_ref().unwrap());
    assert_eq!((response.max_ns, at_most.max_ns, at_most.n), (Some(31_000), Some(2_020_000), 2 * 99));
}
