//! Guests in machine time, whose late wake-ups are explained through both kernels.

use crate::guest::lab::guests_with;
use crate::guest::vm::kernel;
use crate::program::{
    Scratch, Start, command, entries, finish, inconclusive, kill_and_wait, machine_and_scratch, running,
};
use crate::real::explain::{instances, sums_agree};
use punctual_model::{ExplainRecord, Explanation, HostPiece, Record};
use punctual_sys::testing::comes_true;
use std::path::{Path, PathBuf};
use std::process::Child;

/// A campaign with one cell in an emulated guest, whose wake-ups above `above` are explained.
pub(crate) struct Campaign {
    pub(crate) child: Child,
    _scratch: Scratch,
    out: PathBuf,
}

impl Campaign {
    pub(crate) fn start(scratch: Scratch, above: &str, duration: &str, guest: &str) -> Campaign {
        let text = format!(
            "repetitions = 1\nduration = \"{duration}\"\nwarm_up = \"1s\"\n\
             explain = {{ above = \"{above}\", keep = 200 }}\n\
             [axes]\nload = [\"none\"]\npolicy = [\"fifo:80\"]\nperiod = [\"5ms\"]\n\
             kernel = [{{ image = \"{}\", clock = \"emulated\", {guest} }}]\n",
            kernel().unwrap().display()
        );
        let (plan, out) = (scratch.file("plan.toml", text), scratch.path("run"));
        let arguments = format!("run {} --wait --out {}", plan.display(), out.display());
        Campaign { child: command(&arguments).start_piped(), _scratch: scratch, out }
    }

    /// Waits for the process beside the guest, which starts when the guest is at rest.
    pub(crate) fn wait_for_guest(&self) {
        let parent = format!("--parent\0{}\0", self.child.id());
        let is_beside = |path: &Path| {
            let line = std::fs::read_to_string(path.join("cmdline")).unwrap_or_default();
            line.contains("--beside-guest") && line.contains(&parent)
        };
        let is_there = || std::fs::read_dir("/proc").unwrap().flatten().any(|entry| is_beside(&entry.path()));
        assert!(comes_true(is_there), "a process runs beside the guest");
    }

    pub(crate) fn qemu(&self) -> u32 {
        let of_campaign = format!("punctual-guest-{}", self.child.id());
        let [qemu] = guests_with(&of_campaign)[..] else { panic!("one guest") };
        qemu
    }

    pub(crate) fn record(self) -> Record {
        finish(self.child).expect_success();
        entries(&self.out).remove(0).record
    }
}

/// The explanations, checked: each adds up, both clocks are tied.
#[track_caller]
pub(crate) fn explained(record: &Record) -> &ExplainRecord {
    let host = record.lab.as_ref().unwrap().host.as_ref().unwrap();
    assert_eq!(host.not_joined, None);
    let tie = host.tie.unwrap();
    assert!(tie.error_ns > 0 && tie.marks > 0, "{tie:?}");
    let explained = record.explained.as_ref().unwrap();
    sums_agree(explained);
    assert_eq!(explained.host_error_ns, Some(tie.error_ns));
    assert!(explained.worst.iter().all(|one| one.host.is_some()), "{:#?}", explained.worst);
    explained
}

#[test]
fn root_vm_late_wake_ups_of_a_guest_have_what_its_host_did_meanwhile() {
    let Some(_) = kernel().and_then(|_| instances()) else { return };
    let (_machine, scratch) = machine_and_scratch("lab-both");
    let record = Campaign::start(scratch, "1us", "2s", "cpus = 1").record();
    if record.lab.as_ref().unwrap().host.as_ref().is_some_and(|host| host.not_joined.is_some()) {
        return inconclusive("the clocks of both kernels could not be tied");
    }
    assert!(record.threads.iter().all(punctual_model::ThreadRecord::is_consistent), "{:?}", record.threads);
    let explained = explained(&record);
    for one in &explained.worst {
        let lanes = one.host.as_ref().unwrap();
        for lane in [&lanes.vcpu, &lanes.emulator] {
            // Without gaps from the due time on, unless there are more pieces than are kept.
            let is_cut = lane.len() == Explanation::STRETCHES;
            let follows = |at: u64, piece: &HostPiece| piece.at.ns() == at || is_cut && piece.at.ns() > at;
            let end =
                lane.iter().try_fold(0, |at, piece| follows(at, piece).then(|| piece.at.ns() + piece.length.ns()));
            let is_whole = if is_cut { end <= Some(one.latency.ns()) } else { end == Some(one.latency.ns()) };
            assert!(end.is_some() && is_whole, "{one:#?}");
        }
    }
    if explained.explained == 0 {
        inconclusive("nothing was late and covered by the trace");
    }
}

#[test]
fn root_vm_what_runs_beside_a_guest_ends_with_its_campaign() {
    let Some(_) = kernel().and_then(|_| instances()) else { return };
    let (_machine, scratch) = machine_and_scratch("lab-beside-killed");
    let mut campaign = Campaign::start(scratch, "1ms", "10min", "host_load = \"cpu\"");
    campaign.wait_for_guest();
    let of_campaign = format!("punctual-guest-{}", campaign.child.id());
    let is_load =
        |pid: &u32| std::fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name == "load/cpu\n");
    let load_works = || running().iter().any(is_load);
    assert!(comes_true(load_works), "the load of this machine works");
    kill_and_wait(&mut campaign.child);
    assert!(comes_true(|| guests_with(&of_campaign).is_empty()), "QEMU outlives its campaign");
    assert!(comes_true(|| !load_works()), "the load outlives its campaign");
}
