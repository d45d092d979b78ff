//! Gaps with a known cause: how often it is named, and whether a thread is named that did not run.

use crate::guest::vm::{Clock, INIT, boot, kernel, records};
use crate::host::spinner::Spinner;
use crate::program::{
    Scratch, a_cpu, command, is_stopped, machine, record, skip_unless, start_cell, wait_for_progress,
};
use crate::real::explain::instances;
use crate::real::noise::{assert_divided, noise};
use crate::series::{Round, series};
use punctual_model::{Cause, Cell, Conditions, Evidence, Explain, ExplainRecord, Layer, Share};
use punctual_sys::process;
use punctual_sys::testing::comes_true;
use std::process::Command;
use std::thread::{scope, sleep};
use std::time::Duration;

/// A cell whose gaps are explained.
fn explained(duration: &str) -> Cell {
    let cell = noise("fifo:1", duration);
    let explain = Some(Explain::default());
    Cell { conditions: Conditions { explain, ..cell.conditions.clone() }, ..cell }
}

/// The largest share of each kept gap from this length on.
fn longer(explained: &ExplainRecord, ns: u64) -> Vec<&Share> {
    explained.worst.iter().filter(|one| one.latency.ns() >= ns).filter_map(|one| one.blame()).collect()
}

#[test]
#[ignore = "host: causes of gaps"]
fn root_a_stop_is_named_and_no_thread_for_it() {
    skip_unless!(instances().is_some());
    let _machine = machine();
    series("noise stop", || {
        let mut child = start_cell(command("cell --progress"), &explained("1h"));
        wait_for_progress(&mut child);
        process::signal(child.id(), libc::SIGSTOP).unwrap();
        assert!(comes_true(|| is_stopped(child.id())), "it runs on");
        assert!(Command::new("sleep").arg("0.01").status().unwrap().success());
        process::signal(child.id(), libc::SIGCONT).unwrap();
        process::signal(child.id(), libc::SIGINT).unwrap();
        let record = record(child);
        let blames = longer(assert_divided(&record), 10_000_000);
        match blames.first() {
            Some(share) if share.cause == Cause::Stopped => Round::Right,
            Some(share) => Round::Wrong(format!("{share:?}")),
            None => Round::Nothing(format!("{:#?}", record.explained)),
        }
    });
}

#[test]
#[ignore = "host: causes of gaps"]
fn root_a_thread_of_real_time_is_named_and_none_beside_it() {
    skip_unless!(instances().is_some());
    let _machine = machine();
    series("noise fifo", || {
        let burst = Duration::from_millis(2);
        let culprit = Spinner::on(a_cpu(), Duration::from_secs(4), "fifo:5", burst, Duration::from_millis(40));
        let record = record(start_cell(command("cell"), &explained("1s")));
        drop(culprit);
        let blames = longer(assert_divided(&record), 1_900_000);
        let is_meant = |share: &&&Share| share.cause == Cause::HigherPriority && share.owner.name == "culprit";
        let right = blames.iter().filter(is_meant).count();
        Round::right_if(right >= 10 && right * 2 > blames.len(), || format!("{right} of {}: {blames:#?}", blames.len()))
    });
}

#[test]
#[ignore = "host: causes of gaps"]
fn root_without_a_culprit_none_is_named() {
    skip_unless!(instances().is_some());
    let _machine = machine();
    series("noise nothing", || {
        // It runs on another CPU, if there is one.
        let other = punctual_sys::sched::affinity(0).unwrap().iter().find(|cpu| *cpu != a_cpu());
        let pause = Duration::from_millis(5);
        let burst = Duration::from_micros(500);
        let culprit = other.map(|cpu| Spinner::on(cpu, Duration::from_secs(4), "fifo:5", burst, pause));
        let record = record(start_cell(command("cell"), &explained("1s")));
        drop(culprit);
        let explained = assert_divided(&record);
        let owners = explained.causes.iter().flat_map(|cause| &cause.owners);
        let named = owners.filter(|owner| owner.name == "culprit").count();
        let direct = explained.evidence_ns[Evidence::Direct.index()];
        match named {
            0 => Round::right_if(explained.explained > 0 && direct > 0, || format!("{explained:#?}")),
            _ => Round::Wrong(format!("{:#?}", explained.causes)),
        }
    });
}

/// The process of a guest that was booted from these files.
fn emulator_of(scratch: &Scratch) -> Option<u32> {
    let image = scratch.path("image").display().to_string();
    let pids =
        std::fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.into_iter().find(|pid: &u32| {
        let words = std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        words.starts_with("qemu") && words.contains(&image)
    })
}

/// A guest whose emulator is stopped for 100 ms each second: its kernel sees nothing of that.
#[test]
#[ignore = "host: causes of gaps"]
fn vm_a_stopped_vcpu_is_the_hosts() {
    let Some(kernel) = kernel() else { return };
    const STOP: Duration = Duration::from_millis(100);
    series("noise stopped vCPU", || {
        let scratch = Scratch::new("noise-vcpu");
        // In real time, throttling would be a part of each second, too.
        let (cpus, policy) = ("1".parse().unwrap(), "other".parse().unwrap());
        let cell = Cell { cpus, policy, ..explained("8s") };
        scratch.file("cell0", serde_json::to_vec(&cell).unwrap());
        let init =
            format!("{INIT}/punctual cell </cell0 2>/dev/null | /busybox sed 's/^/record: /'\n/busybox poweroff -f\n");
        let said = scope(|scope| {
            let guest = scope.spawn(|| boot(&scratch, &kernel, &init, Clock::Machine));
            while !guest.is_finished() {
                sleep(Duration::from_secs(1));
                let Some(pid) = emulator_of(&scratch) else { continue };
                let _ = process::signal(pid, libc::SIGSTOP);
                sleep(STOP);
                let _ = process::signal(pid, libc::SIGCONT);
            }
            guest.join().unwrap()
        });
        let [record] = &records(&said)[..] else { return Round::Nothing(said) };
        let explained = assert_divided(record);
        let blames = longer(explained, 95_000_000);
        let is_host = |share: &&Share| share.cause == Cause::Hypervisor || share.cause == Cause::CpuStalled;
        if let Some(wrong) = blames.iter().find(|share| share.or.is_none() && !is_host(share)) {
            return Round::Wrong(format!("{wrong:?}"));
        }
        let below = explained.layers.iter().find(|total| total.layer == Layer::FirmwareOrHost);
        let longest = below.map_or(0, |total| total.longest.ns());
        Round::right_if(longest >= 95_000_000, || format!("{longest} {:#?}", explained.causes))
    });
}
