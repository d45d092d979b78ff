//! Refused calls of watched threads: the limits that refused them, and what their threads have at the end.

use crate::CellError;
use punctual_analysis::findings::CallRefused;
use punctual_analysis::watch::{Refused, WatchedThreads, Wish};
use punctual_host::RefusedBy;
use punctual_model::{CpuSet, Policy, RefusedCall};
use punctual_workload::watched::WatchedProgram;

/// The thread for which a call asked; `None` when it is not known.
fn target(one: &Refused) -> Option<u32> {
    let caller = one.pid.unsigned_abs();
    if one.target == one.pid {
        return Some(caller);
    }
    punctual_host::thread_as_known_to(caller, one.target.unsigned_abs())
}

/// Looks for the limits of new refused calls, while their processes live, and names their threads.
pub(super) fn examine(threads: &mut WatchedThreads) {
    let name = |tid: u32| punctual_host::name_of_thread(tid, tid).map(|name| name.trim().to_owned());
    for one in threads.refused().iter_mut().filter(|one| !one.is_examined) {
        one.is_examined = true;
        let caller = one.pid.unsigned_abs();
        one.call.thread = name(caller).unwrap_or_default();
        let Some(target) = target(one) else { continue };
        if target != caller {
            one.call.target = name(target).or(one.call.target.take());
        }
        let by = RefusedBy { caller, target, is_filtered: one.is_filtered, bytes: one.bytes };
        one.call.limit = punctual_host::limit_of(&one.call, by);
    }
}

/// The policy and the CPUs that a thread had at the last look.
type LastKnown = (Option<Policy>, Option<CpuSet>);

/// All refused calls at the end of the cell.
pub(super) fn at_end(threads: &mut WatchedThreads, last_known: impl Fn(u32) -> LastKnown) -> Vec<RefusedCall> {
    let all = std::mem::take(threads.refused());
    let finished = |one: Refused| {
        let target = target(&one);
        let mut call = one.call;
        // A name that the thread was given later is that of all other results.
        let caller = threads.names.get(&one.pid).cloned();
        let known = Some(call.thread).filter(|name| !name.is_empty());
        call.thread = caller.or(known).unwrap_or_else(|| format!("thread {}", one.pid));
        if let Some(name) =
            target.filter(|_| call.target.is_some()).and_then(|tid| threads.names.get(&tid.cast_signed()))
        {
            call.target = Some(name.clone());
        }
        call.at_end = target.and_then(|tid| at_end_of(tid, one.wish, last_known(tid)));
        call
    };
    all.into_iter().map(finished).collect()
}

/// The error of a program that ended before anything was watched: at times a refused call is the reason.
pub(super) fn ended_early(program: &WatchedProgram, refused: Vec<RefusedCall>) -> CellError {
    let err = program.ended_early();
    match refused.into_iter().next() {
        Some(refused) => CellError::Impossible(format!("{err}; {}", CallRefused { refused })),
        None => err.into(),
    }
}

/// What a thread has at the end of a kind of thing that it asked for, as text.
fn at_end_of(tid: u32, wish: Wish, (policy, cpus): LastKnown) -> Option<String> {
    match wish {
        Wish::Policy | Wish::Nice => {
            let policy = punctual_sys::sched::known_policy(tid).or(policy);
            policy.map(|policy| format!("policy {policy}"))
        }
        Wish::Cpus => {
            let cpus = punctual_sys::sched::affinity(tid).ok().or(cpus);
            cpus.map(|cpus| format!("CPUs {cpus}"))
        }
        Wish::Memory => punctual_host::memory_locked_bytes_of(tid).map(|bytes| format!("{bytes} bytes locked")),
        Wish::Resource => None,
    }
}
