//! Threads of one experiment on one CPU, where their priorities alone decide which of them runs.

use punctual_model::{CpuSet, Policy, RtPriority, Span};
use punctual_sys::futex::Futex;
use punctual_sys::usage::thread_cpu_time;
use punctual_sys::{clock, sched};
use std::io;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering::*};
use std::thread::{Builder, scope};

/// Stack of a thread, bytes.
const STACK: usize = 128 << 10;
/// Priority of the calling thread, below all others: when it runs, every other one waits.
const DIRECTOR: u32 = 1;

/// SCHED_FIFO with this priority.
pub(super) fn fifo(priority: u32) -> Policy {
    Policy::Fifo(RtPriority::new(priority).unwrap_or(RtPriority::DEFAULT))
}

/// Pins the calling thread and those that it will create to `cpu`, and gives them the lowest real-time priority.
pub(super) fn enter(cpu: u32) -> io::Result<()> {
    move_to(cpu)?;
    sched::set_inherited_policy(0, fifo(DIRECTOR))
}

/// Pins the calling thread to `cpu`.
pub(super) fn move_to(cpu: u32) -> io::Result<()> {
    sched::set_affinity(0, &CpuSet::from_iter([cpu]))
}

/// The work of a thread.
type Act<'a> = Box<dyn FnOnce() -> Result<(), i32> + Send + 'a>;

/// A thread that sets its policy and waits for its cue.
pub(super) struct Actor<'a> {
    pub(super) policy: Policy,
    pub(super) act: Act<'a>,
}

impl<'a> Actor<'a> {
    pub(super) fn new(policy: Policy, act: impl FnOnce() -> Result<(), i32> + Send + 'a) -> Actor<'a> {
        Actor { policy, act: Box::new(act) }
    }
}

/// Starts the actors, each of which waits for the cue with its index, then calls `direct`; returns when all have ended.
pub(super) fn perform<'a>(
    cues: &'a [Futex],
    actors: Vec<Actor<'a>>,
    direct: impl FnOnce() -> Result<(), i32>,
) -> io::Result<()> {
    let (ready, errno, is_canceled) = (Futex::default(), AtomicI32::new(0), AtomicBool::new(false));
    let note = |result: Result<(), i32>| result.unwrap_or_else(|err| errno.store(err, Release));
    let run = |actor: Actor<'a>, cue: &Futex| {
        let set = sched::set_policy(0, actor.policy).map_err(punctual_sys::errno);
        let is_set = set.is_ok();
        note(set.and(ready.post()));
        note(cue.take());
        if is_set && !is_canceled.load(Acquire) {
            note((actor.act)());
        }
    };
    let mut started = Ok(());
    scope(|scope| {
        for (actor, cue) in actors.into_iter().zip(cues) {
            let run = &run;
            let spawned = Builder::new().stack_size(STACK).spawn_scoped(scope, move || run(actor, cue));
            started = spawned.map(drop).and(ready.take().map_err(io::Error::from_raw_os_error));
            if started.is_err() {
                break;
            }
        }
        if started.is_ok() && errno.load(Acquire) == 0 {
            note(direct());
        } else {
            is_canceled.store(true, Release);
            cues.iter().for_each(|cue| note(cue.post()));
        }
    });
    started?;
    match errno.load(Acquire) {
        0 => Ok(()),
        errno => Err(io::Error::from_raw_os_error(errno)),
    }
}

/// So many cues.
pub(super) fn cues(n: usize) -> Vec<Futex> {
    (0..n).map(|_| Futex::default()).collect()
}

/// Uses the CPU for `span` of the calling thread's CPU time; stores what it has used, at least 1, in `used`. Ends early
/// when `is_over`.
pub(super) fn spin(span: Span, used: &AtomicU64, is_over: &AtomicBool) {
    let begun = thread_cpu_time();
    while !is_over.load(Acquire) {
        let ns = thread_cpu_time().ns().saturating_sub(begun.ns());
        used.store(ns.max(1), Release);
        if ns >= span.ns() {
            break;
        }
    }
}

/// Time since the monotonic clock read `begun`, ns.
pub(super) fn since(begun: punctual_model::MonoTime) -> u64 {
    clock::monotonic().0.saturating_sub(begun.0)
}
