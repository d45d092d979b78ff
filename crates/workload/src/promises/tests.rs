//! Broken promises: each experiment is run with something that does not keep what it tests.

use super::*;
use punctual_model::Policy;
use punctual_sys::pthread::MutexKind;

/// Runs an experiment on CPU 0 in a thread of its own, whose policy and CPU end with it; `None` without the privilege.
fn on_stage<T: Send>(experiment: impl FnOnce() -> io::Result<T> + Send) -> Option<T> {
    let cpu = punctual_sys::sched::affinity(0).unwrap().iter().next().unwrap();
    let seen = std::thread::scope(|scope| {
        scope.spawn(|| stage::enter(cpu).ok().map(|()| experiment().unwrap())).join().unwrap()
    });
    if seen.is_none() {
        println!("skipped: needs root");
    }
    seen
}

/// Cases of each claim, and those that did not hold.
fn counts(cases: &[ClaimCases]) -> Vec<(u64, u64)> {
    cases.iter().map(|cases| (cases.cases, cases.broken)).collect()
}

#[test]
fn root_a_plain_mutex_does_not_inherit() {
    let Some(cases) = on_stage(|| inheritance::of_mutexes(MutexKind::Plain)) else { return };
    assert_eq!(counts(&cases), [(50, 50), (50, 50)]);
    let cases = on_stage(|| inheritance::of_condition(MutexKind::Plain)).unwrap();
    assert_eq!(counts(&cases), [(50, 50)]);
    assert!(cases[0].control.is_some_and(|control| control.shown == control.cases));
}

#[test]
fn root_waiters_without_priorities_are_not_woken_by_priority() {
    let Some(cases) = on_stage(|| order::of_waiters(|_| Policy::OTHER)) else { return };
    for (cases, broken) in counts(&cases) {
        assert!(cases == 50 && broken > 8, "{broken}");
    }
}

#[test]
fn root_a_thread_of_lower_priority_does_not_preempt() {
    let Some(cases) = on_stage(|| same_cpu::preemption(5)) else { return };
    assert_eq!(counts(&[cases]), [(200, 200)]);
}

#[test]
fn root_fifo_threads_take_no_turns() {
    let Some(cases) = on_stage(|| budgets::round_robin(Policy::Fifo)) else { return };
    assert!(cases[0].unknown.is_none() && cases[0].broken == cases[0].cases, "{cases:?}");
}

#[test]
fn a_sleep_that_ends_early_is_seen() {
    assert_eq!(counts(&[plain::never_early(|_, _| Ok(()))]), [(600, 600)]);
}

#[test]
fn an_experiment_without_the_privilege_names_the_remedy() {
    let denied = reason(&io::Error::from_raw_os_error(libc::EPERM));
    assert!(denied.starts_with("needs real-time priority: fifo:80 needs CAP_SYS_NICE"), "{denied}");
    let all = unknown(Promise::Deadline, "no");
    assert_eq!(all.iter().map(|one| one.claim).collect::<Vec<_>>(), Promise::Deadline.claims());
}
