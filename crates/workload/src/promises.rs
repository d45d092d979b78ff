//! Experiments on what man pages and kernel documents promise about scheduling, each in a process of its own.
//!
//! They record the order of events and counts of work, hardly any time: interrupts and a hypervisor delay threads, but
//! do not let one of lower priority run first. Judging is left to the analysis.

mod across;
mod budgets;
mod grounds;
mod inheritance;
mod order;
mod plain;
mod same_cpu;
mod stage;

use grounds::{CPU_SECONDS, SECONDS, reason};
pub use grounds::{Grounds, unknown};
use punctual_model::{Claim, ClaimCases, Promise};
use punctual_sys::waited::Waited;
use punctual_sys::{pipe, process, usage};
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::time::Duration;

/// Longest time of one promise; the longest takes 3 s.
const AT_MOST: Duration = Duration::from_secs(8);
/// What was seen of each claim of `promise`. Call it while this process has one thread.
pub fn observe(promise: Promise, grounds: &Grounds) -> Vec<ClaimCases> {
    watched(promise, grounds).unwrap_or_else(|reason| unknown(promise, &reason))
}

/// Runs the experiments in a child process, which is killed after [`AT_MOST`].
fn watched(promise: Promise, grounds: &Grounds) -> Result<Vec<ClaimCases>, String> {
    let failed = |err: io::Error| format!("cannot start its process: {err}");
    let (mut answer, mut answer_tx) = io::pipe().map_err(failed)?;
    let pid = process::fork_tied(None, libc::SIGKILL, || {
        process::end_after(SECONDS);
        process::kill_after_cpu_time(CPU_SECONDS);
        let cases = carry_out(promise, grounds).unwrap_or_else(|err| unknown(promise, &reason(&err)));
        let text = serde_json::to_vec(&cases).unwrap_or_default();
        i32::from(answer_tx.write_all(&text).is_err())
    })
    .map_err(failed)?;
    drop(answer_tx);
    let mut waited = Waited::begin();
    let mut is_ready = false;
    while !is_ready && waited.look() < AT_MOST {
        is_ready = pipe::wait_readable(answer.as_fd(), Waited::STEP).unwrap_or(false);
    }
    let mut text = Vec::new();
    let read = if is_ready { answer.read_to_end(&mut text).map(drop) } else { Ok(()) };
    let _ = process::signal_group(pid, libc::SIGKILL);
    let ended = usage::wait(pid);
    if !is_ready {
        return Err(format!("its process did not end within {} s and was killed", AT_MOST.as_secs()));
    }
    read.and(ended.map(drop)).map_err(|err| format!("its process is lost: {err}"))?;
    serde_json::from_slice(&text).map_err(|_| "its process was killed".to_owned())
}

fn carry_out(promise: Promise, grounds: &Grounds) -> io::Result<Vec<ClaimCases>> {
    match promise {
        Promise::Affinity => return plain::affinity(grounds),
        Promise::RobustMutex => return plain::robust_mutex(),
        Promise::LockedMemory => return plain::locked_memory(),
        Promise::Deadline => return budgets::deadline(grounds),
        _ => {}
    }
    let entered = stage::enter(grounds.cpu);
    if promise == Promise::Timers {
        let order = entered.and_then(|()| plain::timer_order());
        let order = order.unwrap_or_else(|err| ClaimCases::unknown(Claim::Order, reason(&err)));
        return Ok(vec![plain::never_early(punctual_sys::clock::sleep_until), order]);
    }
    entered?;
    match promise {
        Promise::PriorityInheritance => inheritance::of_mutexes(inheritance::PROMISED),
        Promise::ConditionInheritance => inheritance::of_condition(inheritance::PROMISED),
        Promise::WakeOrder => order::of_waiters(order::PROMISED),
        Promise::Preemption => {
            let mut cases = vec![same_cpu::preemption(same_cpu::PROMISED)?];
            cases.extend(across::migration(grounds)?);
            Ok(cases)
        }
        Promise::RoundRobin => budgets::round_robin(budgets::PROMISED),
        _ => budgets::starvation(grounds),
    }
}

#[cfg(test)]
mod tests;
