//! Scheduling of QEMU's threads on this machine, set from outside while the guest is at rest.
//!
//! Booting at a real-time priority would take all the time of its CPUs.
//!
//! QEMU names its vCPU and I/O threads over QMP; all other threads of its process are the emulator's. Only threads of
//! that process are touched.

use super::qemu::{Limits, Qemu, QemuError};
use punctual_model::{GuestThread, GuestThreadKind, GuestThreads, GuestTids, LabKernel, Load, Policy};
use punctual_sys::sched;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Reason why the threads of a guest on `kernel` under `load` cannot be scheduled as the plan says; `None` when they
/// can.
pub(super) fn why_not(kernel: &LabKernel, load: &Load) -> Option<String> {
    if let Some(path) = &kernel.libvirt {
        return Some(format!("unsupported: libvirt={path} here; name it in the plan of a run"));
    }
    let threads = &kernel.threads;
    if threads.is_empty() {
        return None;
    }
    let here = sched::affinity(0).ok()?;
    for kind in GuestThreadKind::ALL {
        let (name, settings) = (kind.name(), threads.of(kind));
        if let Some(cpus) = settings.cpus.as_ref().filter(|cpus| !cpus.minus(&here).is_empty()) {
            return Some(format!("cannot use {name}_cpus={cpus}: this process may use {here}"));
        }
        let Some(policy) = settings.policy else { continue };
        if !punctual_host::Privileges::may_have(policy) {
            return Some(format!("{name}_policy: {}", punctual_host::how_to_allow(policy)));
        }
        let cpus = settings.cpus.as_ref().unwrap_or(&here);
        let has_less = kind == GuestThreadKind::Vcpu && cpus.len() < usize::try_from(kernel.cpus).unwrap_or(0);
        if has_less && matches!(policy, Policy::Fifo(_)) {
            return Some(format!(
                "vcpu_policy={policy} of {} guest CPUs on CPU {cpus}: a guest CPU that waits for another would never let \
                 it run; use rr, or as many CPUs",
                kernel.cpus
            ));
        }
        // A loaded guest uses all the time of its CPUs; something has to be able to end it.
        if policy.is_realtime() && here.minus(cpus).is_empty() && !load.parts().is_empty() {
            return Some(format!(
                "{name}_policy={policy} of a loaded guest on all CPUs ({here}) would leave none for this program; name \
                 fewer, like {name}_cpus={}",
                here.iter().last().unwrap_or(0)
            ));
        }
    }
    None
}

/// Waits until a booting guest is at rest, sets the scheduling of its threads, and reads it back. Returns all threads,
/// and those whose scheduling was set. Errors: if the guest does not come to rest, QEMU rejects a command, or a setting
/// has no effect.
pub(super) fn settle(
    qemu: &mut Qemu,
    threads: &GuestThreads,
    limits: Limits<'_>,
) -> Result<(GuestTids, Vec<GuestThread>), QemuError> {
    qemu.negotiate(limits)?;
    qemu.wait_for("GUEST_PANICKED", limits)?;
    let vcpus = thread_ids(&qemu.execute("query-cpus-fast", json!({}), limits)?);
    let io = thread_ids(&qemu.execute("query-iothreads", json!({}), limits)?);
    if !threads.is_empty() && !io.is_empty() {
        wait_for_helpers(qemu, limits)?;
    }
    let kinds = kinds(qemu, &vcpus, &io)?;
    let mut set = Vec::new();
    for (tid, kind) in kinds {
        let settings = threads.of(kind);
        if settings.policy.is_none() && settings.cpus.is_none() {
            continue;
        }
        // Helpers of the emulator come and go.
        let Some(name) = punctual_host::name_of_thread(qemu.id(), tid) else { continue };
        let failed = |what: &str, reason: &dyn std::fmt::Display| {
            QemuError::Refused(format!("cannot set {}_{what} of thread {tid} ({name}): {reason}", kind.name()))
        };
        if let Some(cpus) = &settings.cpus {
            sched::set_affinity(tid, cpus).map_err(|err| failed("cpus", &err))?;
        }
        if let Some(policy) = settings.policy {
            // The emulator's threads start helpers, which work for it.
            sched::set_inherited_policy(tid, policy).map_err(|err| failed("policy", &err))?;
        }
        let found = sched::policy(tid).map_err(|err| failed("policy", &err))?.to_string();
        let cpus = sched::affinity(tid).map_err(|err| failed("cpus", &err))?;
        if let Some(policy) = settings.policy.filter(|policy| policy.to_string() != found) {
            return Err(failed("policy", &format!("it has {found}, not {policy}")));
        }
        if let Some(asked) = settings.cpus.as_ref().filter(|asked| **asked != cpus) {
            return Err(failed("cpus", &format!("it has {cpus}, not {asked}")));
        }
        set.push(GuestThread { kind, name, policy: found, cpus });
    }
    Ok((GuestTids { vcpus, emulator: qemu.id() }, set))
}

/// Time after which an idle helper of an I/O thread exits (10 s in QEMU's util/thread-pool.c), and a margin.
const HELPERS_IDLE: Duration = Duration::from_secs(11);

/// Waits until the helpers that read a disk while the guest booted have exited. Those that are started later have the
/// scheduling of their I/O thread; QEMU does not say which thread helps which one.
fn wait_for_helpers(qemu: &mut Qemu, limits: Limits<'_>) -> Result<(), QemuError> {
    let began = Instant::now();
    while began.elapsed() < HELPERS_IDLE {
        if let Some(gone) = qemu.has_exited(limits, POLL_INTERVAL) {
            return Err(gone);
        }
    }
    Ok(())
}

/// The kind of each thread of QEMU, by thread ID.
fn kinds(qemu: &Qemu, vcpus: &[u32], io: &[u32]) -> Result<BTreeMap<u32, GuestThreadKind>, QemuError> {
    let all = punctual_host::threads_of(qemu.id());
    let mut kinds: BTreeMap<u32, GuestThreadKind> =
        all.into_iter().map(|tid| (tid, GuestThreadKind::Emulator)).collect();
    for (tids, kind) in [(vcpus, GuestThreadKind::Vcpu), (io, GuestThreadKind::Io)] {
        for tid in tids {
            match kinds.get_mut(tid) {
                Some(found) => *found = kind,
                None => return Err(QemuError::Refused(format!("thread {tid} is not one of QEMU's"))),
            }
        }
    }
    Ok(kinds)
}

/// The thread IDs in an answer of QMP, in its order: that of the vCPUs' numbers.
fn thread_ids(answer: &Value) -> Vec<u32> {
    let all = answer.as_array().into_iter().flatten();
    all.filter_map(|one| u32::try_from(one["thread-id"].as_u64()?).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_model::Kernel;

    fn refused(kernel: &str, load: &str) -> Option<String> {
        let kernel: Kernel = format!("/k clock=emulated {kernel}").parse().unwrap();
        let Kernel::Lab(kernel) = kernel else { panic!("{kernel} is of the lab") };
        why_not(&kernel, &load.parse().unwrap())
    }

    #[test]
    fn settings_that_this_machine_cannot_have_are_one_line() {
        let here = sched::affinity(0).unwrap();
        assert_eq!(refused("", "cpu"), None);
        assert_eq!(refused(&format!("vcpu_cpus={here} emulator_policy=batch"), "cpu"), None);
        let message = format!("cannot use vcpu_cpus=4000: this process may use {here}");
        assert_eq!(refused("vcpu_cpus=4000", "none"), Some(message.clone()));
        assert_eq!(refused("io_policy=other io_cpus=4000", "none"), Some(message.replace("vcpu", "io")));
        if punctual_sys::process::effective_user_id() == 0 {
            let message = refused("vcpu_policy=fifo:50", "cpu").unwrap();
            assert!(message.starts_with(&format!("vcpu_policy=fifo:50 of a loaded guest on all CPUs ({here}) ")));
            assert_eq!(refused("vcpu_policy=fifo:50", "none"), None);
            let message = refused("vcpu_policy=fifo:50 vcpu_cpus=0 cpus=2", "none").unwrap();
            assert!(message.starts_with("vcpu_policy=fifo:50 of 2 guest CPUs on CPU 0: "), "{message}");
            assert_eq!(refused("vcpu_policy=rr:50 vcpu_cpus=0 cpus=2", "none"), None);
        }
    }

    #[test]
    fn thread_ids_are_read_from_answers_of_qmp() {
        let answer = json!([{"cpu-index": 0, "thread-id": 4711, "target": "x86_64"}, {"thread-id": 4712}, {}]);
        assert_eq!(thread_ids(&answer), [4711, 4712]);
        assert!(thread_ids(&json!({})).is_empty());
    }
}
