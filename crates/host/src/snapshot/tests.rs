//! Snapshots of recorded machines, and of inconsistent machines.

use super::*;
use crate::recorded::{self, MACHINES, Tree};
use expect_test::expect_file;
use proptest::prelude::*;
use punctual_analysis::{doctor, facts::Fingerprint};
use punctual_model::CpuSet;
use std::path::Path;

#[test]
fn recorded_machines_are_read() {
    for machine in MACHINES {
        let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/golden/{machine}.json"));
        let host = recorded::host(machine);
        let json = serde_json::to_string_pretty(&host).unwrap();
        expect_file![golden].assert_eq(&(json.clone() + "\n"));
        assert_eq!(serde_json::from_str::<Host>(&json).unwrap(), host, "{machine}");
    }
}

#[test]
fn machines_that_differ_have_fingerprints_that_differ() {
    let fingerprints: BTreeSet<_> = MACHINES.map(|machine| Fingerprint::of(&recorded::host(machine))).into();
    assert_eq!(fingerprints.len(), MACHINES.len());
}

#[test]
fn a_host_is_compact_in_json() {
    // Two of them are in every record; the machine with the most CPUs of those recorded has 24.
    for machine in MACHINES {
        let n_bytes = serde_json::to_vec(&recorded::host(machine)).unwrap().len();
        assert!(n_bytes < 8192, "{machine}: {n_bytes} bytes");
    }
}

#[test]
fn nothing_to_read_is_unknown() {
    let host = Tree::empty().snapshot();
    assert_eq!(host, Host { architecture: host.architecture.clone(), ..Host::default() });
}

/// Derives everything from a host; none of it may panic.
fn survives(host: &Host) {
    let json = serde_json::to_string(host).unwrap();
    assert_eq!(&serde_json::from_str::<Host>(&json).unwrap(), host);
    let _ = (doctor::examine(host), doctor::in_brief(host), Fingerprint::of(host));
}

#[test]
fn absurd_files_are_no_reason_to_panic() {
    let list = (0..8192).step_by(2).map(|cpu| cpu.to_string()).collect::<Vec<_>>().join(",");
    let contents = [
        "",
        "\n",
        "\0",
        "-1",
        "99999999999999999999999999",
        "18446744073709551615",
        "-9223372036854775808",
        "max 0",
        "0 0",
        "[]",
        "0-8191",
        "5-1",
        "ffffffff,ffffffff,ffffffff",
        ":::",
        "cpu 18446744073709551615 18446744073709551615 0 0 0 0 0 18446744073709551615",
        "1 (x) R 1 0 0 0 0 99999999999 0 0 0 0 0 0 0 0 0 0 4294967295 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 4294967295 1",
        "k\u{fc}hl \u{1f9ca} \u{202e}",
        &list,
    ];
    for content in contents.iter().map(|content| content.as_bytes()).chain([&b"\xff\xfe\x80"[..]]) {
        let mut tree = Tree::of("container");
        for path in tree.files.clone() {
            tree.write(&path, content);
        }
        survives(&tree.snapshot());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]
    #[test]
    fn no_file_with_any_content_makes_it_panic(
        machine in prop::sample::select(MACHINES.to_vec()),
        damage in prop::collection::vec((any::<prop::sample::Index>(), prop_oneof![
            prop::collection::vec(any::<u8>(), 0..40),
            "[0-9,: ()/.-]{0,30}".prop_map(String::into_bytes),
        ]), 1..200),
    ) {
        let mut tree = Tree::of(machine);
        let files = Vec::from_iter(tree.files.clone());
        for (which, content) in &damage {
            tree.write(which.get::<String>(&files), content);
        }
        survives(&tree.snapshot());
    }
}

#[test]
fn devices_that_may_be_suspended_and_parts_of_the_cache_are_found() {
    let mut tree = Tree::of("laptop");
    for (device, control, status, driver) in [
        ("0000:00:02.0", "auto", "suspended", "driver/uevent"),
        ("0000:00:14.0", "on", "active", "driver/uevent"),
        ("0000:00:1f.0", "auto", "unsupported", "driver/uevent"),
        ("0000:00:1f.3", "auto", "active", "no_driver"),
    ] {
        let dir = format!("sys/bus/pci/devices/{device}");
        for (file, text) in [("power/control", control), ("power/runtime_status", status), (driver, "")] {
            tree.write(&format!("{dir}/{file}"), text.as_bytes());
        }
    }
    assert_eq!(tree.snapshot().power.suspendable, Some(vec!["0000:00:02.0".to_owned()]));

    tree.write("proc/cpuinfo", b"processor : 0\nflags : tsc cat_l3\n");
    assert_eq!(tree.snapshot().processors.cache_groups, Some(0));
    for file in ["schemata", "info/L3/cbm_mask", "realtime/schemata"] {
        tree.write(&format!("sys/fs/resctrl/{file}"), b"L3:0=f");
    }
    assert_eq!(tree.snapshot().processors.cache_groups, Some(2));
}

#[test]
fn as_many_cpus_as_there_can_be_are_read() {
    let mut tree = Tree::of("rt");
    for (file, list) in [("online", "1-4095"), ("offline", "0"), ("present", "0-4095")] {
        tree.write(&format!("sys/devices/system/cpu/{file}"), list.as_bytes());
    }
    let host = tree.snapshot();
    assert_eq!(host.cpus_online.as_ref().map(CpuSet::len), Some(4095));
    assert_eq!(
        host.processors.offline.as_ref().map(ToString::to_string).as_deref(),
        Some("0"),
        "the boot CPU may be off line"
    );
    assert!(host.clocks.timer_devices[0].cpus.to_string().starts_with("1-3"), "what can be read is read");
    survives(&host);
}

#[test]
fn a_directory_in_place_of_a_file_is_unknown() {
    let mut tree = Tree::of("vm");
    tree.write("proc/sys/vm/x", b"");
    for path in ["sys/devices/system/cpu/smt/control/x", "sys/class/tty/console/active/x"] {
        let file = path.trim_end_matches("/x");
        tree.remove(file);
        tree.write(path, b"1");
    }
    let host = tree.snapshot();
    assert_eq!((host.processors.smt, host.kernel.consoles), (None, vec![]));
}

#[test]
fn system_management_interrupts_are_counted() {
    let mut tree = Tree::of("rt");
    let mut registers = vec![0; 0x34];
    registers.extend(77_u64.to_ne_bytes());
    tree.write("dev/cpu/0/msr", &registers);
    assert_eq!(tree.snapshot().platform.smi_count, Some(77));
    tree.write("dev/cpu/0/msr", &registers[..0x38]);
    assert_eq!(tree.snapshot().platform.smi_count, None, "the register is not there");
}

#[test]
fn a_machine_made_from_an_image_is_no_container() {
    let mut tree = Tree::of("vm");
    assert_eq!(tree.snapshot().container, None);
    tree.remove("proc/2/comm");
    assert_eq!(tree.snapshot().container.as_deref(), Some("docker"));
}
