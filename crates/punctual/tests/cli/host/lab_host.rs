//! Guests in machine time that this machine disturbs: how often the culprit is named through both kernels.

use crate::guest::lab::guests_with;
use crate::guest::lab_host::{Campaign, explained};
use crate::guest::vm::kernel;
use crate::host::spinner::Spinner;
use crate::program::{Scratch, Start, command, entries, machine, machine_and_scratch, skip_unless};
use crate::real::explain::{instances, sums_agree};
use crate::series::{Round, series};
use punctual_model::{Cause, Explanation, HostState, Record};
use punctual_sys::{process, sched};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Stops of one campaign.
const STOPS: usize = 20;

/// The guest exchanges clock marks, starts the cell, and warms up for 1 s.
const BEGINS: Duration = Duration::from_secs(4);

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
#[ignore = "host: stops of a guest"]
fn root_vm_a_stopped_guest_is_named() {
    let Some(_) = kernel().and_then(|_| instances()) else { return };
    let _machine = machine();
    let mut stops = Vec::new();
    // A round is one stop.
    series("lab stopped guest", || {
        if stops.is_empty() {
            stops = twenty_stops();
        }
        stops.pop().unwrap()
    });
}

/// Results of stopping a guest of two CPUs for 20 ms: each CPU is to have each stop, and no other.
fn twenty_stops() -> Vec<Round> {
    let campaign = Campaign::start(Scratch::new("lab-stopped"), "8ms", "14s", "cpus = 2");
    campaign.wait_for_guest();
    sleep(BEGINS);
    let qemu = campaign.qemu();
    for _ in 0..STOPS {
        process::signal(qemu, libc::SIGSTOP).unwrap();
        sleep(Duration::from_millis(20));
        process::signal(qemu, libc::SIGCONT).unwrap();
        sleep(Duration::from_millis(300));
    }
    let record = campaign.record();
    let explained = explained(&record);
    let tie = record.lab.as_ref().and_then(|lab| lab.host.as_ref()?.tie).unwrap();
    // The lab says how large the error is; a mark takes some microseconds, on a busy machine longer.
    let is_tied = tie.error_ns < 1_000_000 && tie.marks > 20;
    let is_stop = |one: &&Explanation| {
        one.blame().is_some_and(|share| share.cause == Cause::GuestStopped && share.total.ns() > 10_000_000)
    };
    let named = [0, 1].map(|cpu| explained.worst.iter().filter(|one| one.cpu == cpu).filter(is_stop).count());
    let said = format!("{named:?} stops named, {tie:?}: {:#?}", explained.causes);
    (0..STOPS)
        .map(|n| match () {
            () if named.iter().any(|named| *named > STOPS) => Round::Wrong(said.clone()),
            () => Round::right_if(is_tied && named.iter().all(|named| n < *named), || said.clone()),
        })
        .collect()
}

#[test]
#[ignore = "host: a thread beside a vCPU"]
fn root_vm_a_thread_that_takes_the_cpu_of_a_vcpu_is_named_and_covers_what_was_lost() {
    let Some(_) = kernel().and_then(|_| instances()) else { return };
    let here = sched::affinity(0).unwrap();
    let (first, last) = (here.iter().next().unwrap(), here.iter().last().unwrap());
    skip_unless!(first != last);
    let _machine = machine();
    series("lab thread beside a vCPU", || beside_a_culprit(first, last));
}

/// A guest whose vCPU has CPU `last`, which a thread takes for 10 ms at a time.
fn beside_a_culprit(first: u32, last: u32) -> Round {
    let guest = format!("vcpu_cpus = \"{last}\", emulator_cpus = \"{first}\"");
    let campaign = Campaign::start(Scratch::new("lab-culprit"), "1ms", "12s", &guest);
    campaign.wait_for_guest();
    sleep(BEGINS);
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
    let off = |one: &&Explanation| -> u64 {
        let vcpu = &one.host.as_ref().unwrap().vcpu;
        vcpu.iter().filter(|piece| piece.state != HostState::Running).map(|piece| piece.length.ns()).sum()
    };
    // A wake-up is late by the usual without any culprit: under emulation by up to half a millisecond.
    let lost = |one: &&Explanation| one.latency.ns() - usual_ns;
    let (lost, off): (u64, u64) = (late.iter().map(lost).sum(), late.iter().map(off).sum());
    if off * 100 < lost * 95 {
        let late = late.len();
        return Round::Nothing(format!("{off} of {lost} ns lost in {late} wake-ups later than {limit_ns} ns"));
    }
    let blames = || late.iter().filter_map(|one| one.blame());
    if let Some(wrong) = blames().find(|share| share.cause == Cause::GuestStopped && share.or.is_none()) {
        return Round::Wrong(format!("{wrong:?}"));
    }
    let named = blames().filter(|share| share.cause == Cause::VcpuOffTheCpu && share.owner.name == "culprit");
    // One of 28 bursts may fall between two due times of the guest.
    Round::right_if(named.count() >= 20, || format!("{:#?}", explained.causes))
}

#[test]
#[ignore = "host: stops of a guest"]
fn vm_a_guest_whose_host_stops_it_says_that_its_cpus_stood_still() {
    let Some(kernel) = kernel() else { return };
    let (_machine, scratch) = machine_and_scratch("lab-steal");
    let plan = format!(
        "repetitions = 1\nwarm_up = \"50ms\"\nduration = \"4s\"\n[explain]\nabove = \"4ms\"\n[axes]\n\
         kernel = [\"{} clock=emulated cpus=2\"]\nload = [\"none\"]\npolicy = [\"fifo:90\"]\n",
        kernel.display()
    );
    let plan = scratch.file("plan.toml", plan).display().to_string();
    let out = scratch.path("run");
    series("lab guest that stands still", || {
        let _ = std::fs::remove_dir_all(&out);
        let mut campaign = command(&format!("run {plan} --seed 1 --wait --out {}", out.display()));
        let mut campaign = campaign.start_silent();
        let of_campaign = format!("punctual-guest-{}", campaign.id());
        let guest = loop {
            if let Some(guest) = guests_with(&of_campaign).first() {
                break *guest;
            }
            assert!(campaign.try_wait().unwrap().is_none(), "no guest was seen");
            sleep(Duration::from_millis(10));
        };
        // The stops also hit the guest's boot, harmlessly: its state is not visible from here.
        while campaign.try_wait().unwrap().is_none() {
            let stopped = process::signal(guest, libc::SIGSTOP);
            sleep(Duration::from_millis(5));
            if stopped.and_then(|()| process::signal(guest, libc::SIGCONT)).is_err() {
                break;
            }
            sleep(Duration::from_millis(100));
        }
        assert!(campaign.wait().unwrap().success());
        let entries = entries(&out);
        let explained = entries[0].record.explained.as_ref().unwrap();
        sums_agree(explained);
        // The trace of this machine shows the stop itself. The guest alone, which has no steal clock, sees it only by
        // its other CPUs and by the interrupt; that is said of wake-ups without a trace of this machine. Other work of
        // this machine delays the guest as well, but never for as long in sum.
        let Some(first) = explained.causes.first() else { return Round::Nothing("nothing was late".to_owned()) };
        let names_the_stop = [Some(first.cause), first.or].into_iter().flatten();
        let is_named = names_the_stop.into_iter().any(|cause| matches!(cause, Cause::GuestStopped | Cause::CpuStalled));
        Round::right_if(is_named && first.blamed >= 10, || format!("{:#?}", explained.causes))
    });
}
