//! Tests with a real instance, and of the removal of abandoned ones.

use super::*;
use std::sync::{Mutex, MutexGuard, PoisonError};

#[test]
fn only_instances_of_the_dead_are_abandoned() {
    let (pid, namespace) = (std::process::id(), punctual_host::pid_namespace().unwrap());
    let ticks = punctual_host::started_ticks_of(pid).unwrap();
    // Above the highest possible PID (proc_sys_kernel(5), pid_max).
    let dead = (1 << 22) + 1;
    for (name, is_abandoned_now) in [
        (own_name(), false),
        (format!("punctual-{namespace}-{dead}-5"), true),
        // The PID belongs to another process now.
        (format!("punctual-{namespace}-{pid}-{}", ticks + 1), true),
        // Of a container, whose PIDs mean nothing here.
        (format!("punctual-{}-{dead}-5", namespace + 1), false),
        (format!("others-{namespace}-{dead}-5"), false),
        (format!("punctual-{dead}"), false),
        ("punctual".to_owned(), false),
    ] {
        assert_eq!(is_abandoned(&name), is_abandoned_now, "{name}");
    }
}

/// An instance, for as long as the guard is held: a process has one. `None`, with a message, without the permission.
#[expect(clippy::disallowed_macros, reason = "nobody but a developer reads it")]
pub(in crate::trace) fn only_instance() -> Option<(MutexGuard<'static, ()>, Instance)> {
    static ONE: Mutex<()> = Mutex::new(());
    let guard = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let made = Instance::create();
    let is_refused = matches!(&made, Err(TraceError::Denied(_)))
        || matches!(&made, Err(TraceError::File { source, .. }) if source.kind() == io::ErrorKind::PermissionDenied);
    if is_refused {
        eprintln!("skipped: needs root and tracefs");
        return None;
    }
    Some((guard, made.unwrap()))
}

/// Makes threads one after the other: each begins by a switch to it.
pub(in crate::trace) fn switch(n: usize) {
    (0..n).for_each(|_| std::thread::spawn(|| ()).join().unwrap());
}

#[test]
fn root_an_instance_traces_and_is_gone_afterwards() {
    if !punctual_sys::testing::runs_alone() {
        return;
    }
    let Some((_only, mut instance)) = only_instance() else { return };
    let dir = instance.dir.clone();
    let pid = i32::try_from(std::process::id()).unwrap();
    let decoder = instance
        .enable(TraceRequest {
            events: crate::trace::EventSet::Explanation,
            pids: Some(&[pid]),
            stacks: StackRequest::WakeUps,
            idle_states: true,
        })
        .unwrap();
    assert_eq!(instance.read("events/sched/sched_waking/filter").unwrap().trim(), format!("pid == {pid}"));
    let (mut marker, tracing_on) = instance.freezer().unwrap();
    instance.start().unwrap();
    switch(1);
    marker.write_all(b"here").unwrap();
    if let Some(mut tracing_on) = tracing_on {
        tracing_on.write_all(b"0").unwrap();
    }
    assert_eq!(instance.read("tracing_on").unwrap().trim(), "0");
    assert!(marker.write_all(b"nobody reads this").is_err(), "the trace stands still");
    let mut trace = decoder.begin(instance.n_cpus());
    let mut pages = Vec::new();
    let mut damaged = 0;
    for cpu in 0..instance.n_cpus() {
        pages.clear();
        instance.drain(cpu, decoder.page_bytes(), &mut pages).unwrap();
        damaged += decoder.read(&mut trace, cpu, &pages).damaged;
    }
    assert_eq!(damaged, 0);
    let events = || trace.cpus.iter().flat_map(|cpu| &cpu.events);
    assert_eq!(events().filter(|event| event.what == punctual_analysis::explain::What::Mark).count(), 1);
    assert!(events().any(|event| matches!(event.what, punctual_analysis::explain::What::Switch { .. })));
    [pid, 1].iter().for_each(|pid| instance.follow(&[*pid]).unwrap());
    let followed = instance.read("set_event_pid").unwrap();
    assert!([pid, 1].iter().all(|pid| followed.lines().any(|line| line == pid.to_string())), "{followed}");
    drop(marker);
    drop(instance);
    assert!(!dir.exists());
}
