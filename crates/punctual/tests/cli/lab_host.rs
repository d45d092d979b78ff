//! Late wake-ups of guests in machine time, explained through both kernels.

use crate::explain::{Spinner, in_most_rounds, instances};
use crate::lab::guests_with;
use crate::program::{
    Scratch, Start, comes_true, command, entries, finish, kill_and_wait, machine, machine_and_scratch, skip_unless,
};
use crate::vm::kernel;
use model::{Cause, ExplainRecord, HostState, Record};
use std::fmt::Write;
use std::path::Path;
use std::process::Child;
use std::thread::sleep;
use std::time::{Duration, Instant};
use sys::{process, sched};

/// A campaign with one cell in an emulated guest, whose wake-ups above `above` are explained.
struct Campaign {
    child: Child,
    _scratch: Scratch,
    out: std::path::PathBuf,
}

impl Campaign {
    fn start(scratch: Scratch, above: &str, duration: &str, guest: &str) -> Campaign {
        let mut text = String::new();
        write!(
            text,
            "repetitions = 1\nduration = \"{duration}\"\nwarm_up = \"1s\"\nexplain = {{ above = \"{above}\", keep = 200 }}\n\
             [axes]\nload = [\"none\"]\npolicy = [\"fifo:80\"]\nperiod = [\"5ms\"]\n\
             kernel = [{{ image = \"{}\", clock = \"emulated\", {guest} }}]\n",
            kernel().unwrap().display()
        )
        .unwrap();
        let (plan, out) = (scratch.file("plan.toml", text), scratch.path("run"));
        let arguments = format!("run {} --wait --out {}", plan.display(), out.display());
        Campaign { child: command(&arguments).start_piped(), _scratch: scratch, out }
    }

    /// Waits until the guest measures: the process beside it starts when it is at rest.
    fn wait_for_measurement(&self) {
        let parent = format!("--parent\0{}\0", self.child.id());
        let is_beside = |path: &Path| {
            let line = std::fs::read_to_string(path.join("cmdline")).unwrap_or_default();
            line.contains("--beside-guest") && line.contains(&parent)
        };
        let is_there = || std::fs::read_dir("/proc").unwrap().flatten().any(|entry| is_beside(&entry.path()));
        assert!(comes_true(is_there), "a process runs beside the guest");
        // The guest exchanges clock marks, starts the cell, and warms up for 1 s.
        sleep(Duration::from_secs(4));
    }

    fn qemu(&self) -> u32 {
        let of_campaign = format!("punctual-guest-{}", self.child.id());
        let [qemu] = guests_with(&of_campaign)[..] else { panic!("one guest") };
        qemu
    }

    fn record(self) -> Record {
        finish(self.child).expect_success();
        entries(&self.out).remove(0).record
    }
}

/// The explanations, checked: each adds up, both clocks are tied.
#[track_caller]
fn explained(record: &Record) -> &ExplainRecord {
    let host = record.lab.as_ref().unwrap().host.as_ref().unwrap();
    assert_eq!(host.not_joined, None);
    let tie = host.tie.unwrap();
    // The lab says how large the error is; a mark takes some microseconds, on a busy machine longer.
    assert!(tie.error_ns > 0 && tie.error_ns < 1_000_000 && tie.marks > 20, "{tie:?}");
    let explained = record.explained.as_ref().unwrap();
    assert_eq!(explained.host_error_ns, Some(tie.error_ns));
    for one in &explained.worst {
        assert!(one.is_complete(), "{one:#?}");
        assert!(one.host.is_some(), "{one:#?}");
    }
    explained
}

/// Median of the latencies, ns: the upper end of its bucket.
fn median_ns(record: &Record) -> u64 {
    let histogram = &record.threads[0].histogram;
    let mut ns = 1000;
    while histogram.count_above(ns) * 2 > histogram.n {
        ns += ns / 16;
    }
    ns
}

#[test]
#[ignore = "long: measures in a guest for 14 s"]
fn root_vm_a_stopped_guest_is_named_in_20_of_20_rounds() {
    const ROUNDS: usize = 20;
    let Some(_) = kernel().and_then(|_| instances()) else { return };
    let (_machine, scratch) = machine_and_scratch("lab-stopped");
    let campaign = Campaign::start(scratch, "8ms", "14s", "cpus = 2");
    campaign.wait_for_measurement();
    let qemu = campaign.qemu();
    for _ in 0..ROUNDS {
        process::signal(qemu, libc::SIGSTOP).unwrap();
        sleep(Duration::from_millis(20));
        process::signal(qemu, libc::SIGCONT).unwrap();
        sleep(Duration::from_millis(300));
    }
    let record = campaign.record();
    let explained = explained(&record);
    for cpu in 0..2 {
        let stopped = explained.worst.iter().filter(|one| one.cpu == cpu).filter(|one| {
            one.blame().is_some_and(|share| share.cause == Cause::GuestStopped && share.total.ns() > 10_000_000)
        });
        assert_eq!(stopped.count(), ROUNDS, "CPU {cpu}: {:#?}", explained.causes);
    }
}

#[test]
#[ignore = "long: measures in a guest for 12 s"]
fn root_vm_a_thread_that_takes_the_cpu_of_a_vcpu_is_named_and_covers_what_was_lost() {
    let Some(_) = kernel().and_then(|_| instances()) else { return };
    let here = sched::affinity(0).unwrap();
    let (first, last) = (here.iter().next().unwrap(), here.iter().last().unwrap());
    skip_unless!(first != last);
    let _machine = machine();
    in_most_rounds(|| beside_a_culprit(first, last));
}

/// A guest whose vCPU has CPU `last`, which a thread takes for 10 ms at a time.
fn beside_a_culprit(first: u32, last: u32) -> Result<(), String> {
    let scratch = Scratch::new("lab-culprit");
    let guest = format!("vcpu_cpus = \"{last}\", emulator_cpus = \"{first}\"");
    let campaign = Campaign::start(scratch, "1ms", "12s", &guest);
    campaign.wait_for_measurement();
    let culprit =
        Spinner::on(last, Duration::from_secs(6), "fifo:90", Duration::from_millis(10), Duration::from_millis(200));
    let began = Instant::now();
    sleep(Duration::from_secs(6).saturating_sub(began.elapsed()));
    drop(culprit);
    let record = campaign.record();
    let explained = explained(&record);
    let usual_ns = median_ns(&record);
    let limit_ns = 10 * usual_ns;
    let late: Vec<_> = explained.worst.iter().filter(|one| one.latency.ns() > limit_ns).collect();
    let off = |one: &&model::Explanation| -> u64 {
        let vcpu = &one.host.as_ref().unwrap().vcpu;
        vcpu.iter().filter(|piece| piece.state != HostState::Running).map(|piece| piece.length.ns()).sum()
    };
    // A wake-up is late by the usual without any culprit: under emulation by up to half a millisecond.
    let lost = |one: &&model::Explanation| one.latency.ns() - usual_ns;
    let (lost, off): (u64, u64) = (late.iter().map(lost).sum(), late.iter().map(off).sum());
    if off * 100 < lost * 95 {
        return Err(format!("{off} of {lost} ns lost in {} wake-ups later than {limit_ns} ns", late.len()));
    }
    let named = late.iter().filter(|one| {
        one.blame().is_some_and(|share| share.cause == Cause::VcpuWaiting && share.owner.name == "culprit")
    });
    // One of 28 bursts may fall between two due times of the guest.
    if named.count() < 20 { Err(format!("{:#?}", explained.causes)) } else { Ok(()) }
}

#[test]
fn root_vm_what_runs_beside_a_guest_ends_with_its_campaign() {
    let Some(_) = kernel().and_then(|_| instances()) else { return };
    let (_machine, scratch) = machine_and_scratch("lab-beside-killed");
    let mut campaign = Campaign::start(scratch, "1ms", "60s", "host_load = \"cpu\"");
    campaign.wait_for_measurement();
    let of_campaign = format!("punctual-guest-{}", campaign.child.id());
    let with = |text: &str| {
        let line = |path: std::path::PathBuf| std::fs::read_to_string(path.join("comm")).unwrap_or_default();
        let all = std::fs::read_dir("/proc").unwrap().flatten();
        all.filter(|entry| line(entry.path()).trim() == text).count()
    };
    let workers = with("load/cpu");
    assert!(workers > 0, "the load of this machine works");
    kill_and_wait(&mut campaign.child);
    assert!(comes_true(|| guests_with(&of_campaign).is_empty()), "QEMU outlives its campaign");
    assert!(comes_true(|| with("load/cpu") == 0), "the load outlives its campaign");
}
