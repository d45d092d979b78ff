//! What guests cannot do, or not with these settings, is one line.

use crate::program::{Scratch, punctual};

#[test]
fn settings_of_threads_that_cannot_be_had_are_one_line() {
    let scratch = Scratch::new("lab-threads-refused");
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
    let scratch = Scratch::new("lab-libvirt");
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
