//! Scheduling of a guest's threads on this machine.

use crate::program::{entries, is_root, machine_and_scratch, punctual, skip_unless};
use crate::vm::kernel;
use model::GuestThreadKind;

#[test]
fn root_vm_policies_of_a_guests_threads_are_set_and_read_back() {
    let Some(kernel) = kernel().filter(|_| is_root()) else { return };
    let (_machine, scratch) = machine_and_scratch("lab-threads");
    let last = sys::sched::affinity(0).unwrap().iter().last().unwrap();
    let first = sys::sched::affinity(0).unwrap().iter().next().unwrap();
    skip_unless!(first != last);
    let text = format!(
        "repetitions = 1\nduration = \"500ms\"\nwarm_up = \"100ms\"\n[axes]\nload = [\"none\"]\npolicy = [\"fifo:80\"]\n\
         period = [\"5ms\"]\nkernel = [{{ image = \"{}\", clock = \"emulated\", vcpu_policy = [\"other\", \"fifo:50\"], \
         vcpu_cpus = \"{last}\", emulator_policy = \"rr:51\", emulator_cpus = \"{first}\" }}]\n",
        kernel.display()
    );
    let (plan, out) = (scratch.file("plan.toml", text), scratch.path("run"));
    punctual(&format!("run {} --wait --out {}", plan.display(), out.display())).expect_success();
    let entries = entries(&out);
    assert_eq!(entries.len(), 2);
    for entry in &entries {
        let asked = entry.record.cell.kernel.to_string();
        let threads = &entry.record.lab.as_ref().unwrap().threads;
        let (vcpus, others): (Vec<_>, Vec<_>) = threads.iter().partition(|thread| thread.kind == GuestThreadKind::Vcpu);
        let [vcpu] = &vcpus[..] else { panic!("one vCPU: {threads:?}") };
        assert!(asked.contains(&format!("vcpu_policy={} ", vcpu.policy)), "{asked}: {vcpu:?}");
        assert_eq!(vcpu.cpus.to_string(), last.to_string());
        assert!(!others.is_empty() && others.iter().all(|thread| thread.kind == GuestThreadKind::Emulator));
        let is_set =
            |thread: &&&model::GuestThread| thread.policy == "rr:51" && thread.cpus.to_string() == first.to_string();
        assert!(others.iter().all(|thread| is_set(&thread)), "{others:?}");
        assert!(entry.record.threads[0].is_consistent() && entry.record.threads[0].recorded > 10);
    }
}

#[test]
fn settings_of_threads_that_cannot_be_had_are_one_line() {
    let (_machine, scratch) = machine_and_scratch("lab-threads-refused");
    let here = sys::sched::affinity(0).unwrap();
    for (words, reason) in [
        ("vcpu_policy=fifo:50", "virtual time does not depend on what runs on this machine".to_owned()),
        ("clock=emulated vcpu_policy=fofo", "vcpu_policy: unknown scheduling policy `fofo`".to_owned()),
        ("clock=emulated vcpu_cpus=4000", format!("cannot use vcpu_cpus=4000: this process may use {here}")),
        ("clock=emulated io_cpus=4000", format!("cannot use io_cpus=4000: this process may use {here}")),
    ] {
        let text = format!("[axes]\nkernel = [\"debian:6.1 {words}\"]\nload = [\"none\"]\n");
        let plan = scratch.file("plan.toml", text);
        let said = punctual(&format!("run {} --wait --out {}", plan.display(), scratch.path("run").display()));
        assert!(said.status == 1 && said.last_line().contains(&reason), "{words}: {said:?}");
    }
}

#[test]
fn settings_of_a_libvirt_domain_are_taken_over_and_the_rest_is_named() {
    let (_machine, scratch) = machine_and_scratch("lab-libvirt");
    let domain = |tune: &str| format!("<domain><vcpu>2</vcpu><cputune>{tune}</cputune></domain>");
    let plan = |words: &str| {
        let kernel = format!("/k clock=emulated {words} libvirt={}", scratch.path("vm.xml").display());
        scratch.file("plan.toml", format!("[axes]\nkernel = [\"{kernel}\"]\nload = [\"none\"]\n"))
    };
    let said = |words: &str| punctual(&format!("run {} --dry-run --format json", plan(words).display()));
    scratch.file(
        "vm.xml",
        domain("<shares>5</shares><emulatorpin cpuset='0'/><vcpusched vcpus='0-1' scheduler='batch'/>"),
    );
    let dry = said("");
    assert!(dry.stderr.contains("vm.xml: not taken over: shares\n"), "{dry:?}");
    let expected = "/k clock=emulated cpus=2 vcpu_policy=batch emulator_cpus=0";
    assert!(dry.stdout.contains(&format!("\"{expected}\"")), "{dry:?}");
    assert!(!dry.stdout.contains("libvirt"), "{dry:?}");
    let twice = said("vcpu_policy=fifo:1");
    assert!(twice.status == 1 && twice.last_line().contains("vm.xml: sets vcpu_policy, as the plan does"), "{twice:?}");
    scratch.file("vm.xml", "<!DOCTYPE d [<!ENTITY a \"a\">]><domain>&a;</domain>");
    let hostile = said("");
    assert!(hostile.status == 1 && hostile.last_line().contains("vm.xml:1: invalid XML"), "{hostile:?}");
    scratch.file("vm.xml", " ".repeat((1 << 20) + 1));
    let large = said("");
    assert!(large.status == 1 && large.stderr.lines().count() == 1, "{large:?}");
}
