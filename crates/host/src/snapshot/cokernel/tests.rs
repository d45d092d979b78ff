//! Co-kernels as their files show them, and files that are damaged.

use super::*;
use crate::testing::Scratch;
use punctual_model::OnCpus;

/// `sched/stat` of Xenomai 3.2.2 while `latency -t0` runs.
const STAT: &str = "\
CPU  PID    MSW        CSW        XSC        PF    STAT       %CPU  NAME
  0  0      0          1506       0          0     00018000   99.9  [ROOT]
  0  63     1          1          5          0     000680c0    0.0  latency
  0  66     1          2          5          0     00068042    0.0  display-63
  0  67     2          1503       1507       0     0004c042    0.1  sampling-63
";

/// A machine of one CPU on which Cobalt runs, as Xenomai 3.2.2 shows it.
fn cobalt_machine() -> Scratch {
    let scratch = Scratch::make();
    for (file, text) in [
        ("clock/coreclk", CORE_CLOCK),
        ("latency", "2000\n"),
        ("version", "3.2.2\n"),
        ("faults", "TRAP         CPU0\n  0:            0    (Divide error)\n 14:            3    (Page fault)\n"),
        ("sched/stat", STAT),
    ] {
        scratch.file(&format!("proc/xenomai/{file}"), text);
    }
    scratch
}

const CORE_CLOCK: &str = "\
gravity: irq=0 kernel=2000 user=2000
 devices: timer=lapic, clock=<Linux clocksource>
watchdog: off
  ticks: 3780289671 (0000 e152a487)
";

fn timers(device: &str) -> Clocks {
    Clocks {
        timer_devices: vec![OnCpus { cpus: [0].into_iter().collect(), value: device.to_owned() }],
        ..Clocks::default()
    }
}

fn read_with(scratch: &Scratch, command_line: &str, device: &str) -> Option<CoKernel> {
    read(&scratch.machine(), None, None, Some(command_line), &timers(device))
}

#[test]
fn a_running_core_is_read() {
    let scratch = cobalt_machine();
    let read = read_with(&scratch, "quiet xenomai.sysheap-size=8192 xenomai.state", "proxy").unwrap();
    assert_eq!((read.pipeline, read.is_running()), (Some(Pipeline::Dovetail), Some(true)));
    let cobalt = read.cobalt.unwrap();
    assert_eq!((cobalt.version.as_deref(), cobalt.is_initialized), (Some("3.2.2"), Some(true)));
    assert_eq!(cobalt.gravity, Some(Gravity { irq_ns: Some(0), kernel_ns: Some(2000), user_ns: Some(2000) }));
    assert_eq!((cobalt.timer.as_deref(), cobalt.clock.as_deref()), (Some("lapic"), Some("<Linux clocksource>")));
    assert_eq!((cobalt.cpus, cobalt.has_smi_chipset), (None, None), "neither SMP nor PCI");
    assert_eq!(cobalt.parameters, [("sysheap_size".to_owned(), "8192".to_owned())].into());
    assert_eq!(cobalt.faults, Some([("Page fault".to_owned(), 3)].into()));
    let most = SwitchingThread { name: "sampling-63".to_owned(), switches: 2 };
    assert_eq!(cobalt.mode_switches, Some(ModeSwitches { threads: 3, switches: 4, most: Some(most) }));
}

#[test]
fn the_core_clock_of_a_stopped_core_is_not_read() {
    let scratch = cobalt_machine();
    scratch.file("proc/config.gz", "");
    let version = Some("#1 PREEMPT IRQPIPE 2026-01-01");
    let stopped = read(&scratch.machine(), None, version, None, &timers("lapic")).unwrap();
    assert_eq!((stopped.pipeline, stopped.is_running()), (Some(Pipeline::Dovetail), Some(false)));
    let cobalt = stopped.cobalt.unwrap();
    assert_eq!(cobalt.gravity, Some(Gravity { user_ns: Some(2000), ..Gravity::default() }), "of the file latency");
    assert_eq!(cobalt.timer, None);
    // The I-pipe selects timers at boot, running or not.
    scratch.file("proc/ipipe/version", "18\n");
    let old = read_with(&scratch, "", "lapic").unwrap();
    assert_eq!((old.pipeline, old.is_running()), (Some(Pipeline::Ipipe), None));
    assert_eq!(old.cobalt.unwrap().gravity.unwrap().kernel_ns, Some(2000));
}

#[test]
fn parameters_in_effect_come_before_those_of_the_command_line() {
    let scratch = Scratch::make();
    for (name, value) in [("state", "disabled\n"), ("smi", "detect\n"), ("allowed_group", "-1\n")] {
        scratch.file(&format!("sys/module/xenomai/parameters/{name}"), value);
    }
    let line = "xenomai.smi=enabled xenomai.smi_mask=1 xenomai.=x xenomai.a= yxenomai.b=1";
    let cobalt = read_with(&scratch, line, "lapic").unwrap().cobalt.unwrap();
    let pairs: Vec<_> = cobalt.parameters.iter().map(|(name, value)| format!("{name}={value}")).collect();
    assert_eq!(pairs, ["allowed_group=-1", "smi=detect", "smi_mask=1", "state=disabled"]);
    assert_eq!((cobalt.version, cobalt.gravity, cobalt.faults, cobalt.mode_switches), (None, None, None, None));
    assert_eq!(read_with(&Scratch::make(), line, "lapic"), None, "a kernel without Cobalt takes no notice of them");
}

#[test]
fn evl_is_read() {
    let scratch = Scratch::make();
    for (file, text) in [
        ("evl/control/abi", "32\n"),
        ("evl/control/state", "running\n"),
        ("evl/control/cpus", "1-3\n"),
        ("clock/monotonic/gravity", "2000i 3500k 3500u\n"),
        ("thread/timer-responder:2136/stats", "1 311156 311175 0 46999122352 0\n"),
        ("thread/logger:9/stats", "7 1 1 0 5 0\n"),
    ] {
        scratch.file(&format!("sys/devices/virtual/{file}"), text);
    }
    let evl = read_with(&scratch, "", "proxy").unwrap().evl.unwrap();
    assert_eq!((evl.abi, evl.state.as_deref()), (Some(32), Some("running")));
    assert_eq!(evl.cpus.map(|cpus| cpus.to_string()).as_deref(), Some("1-3"));
    assert_eq!(evl.gravity, Some(Gravity { irq_ns: Some(2000), kernel_ns: Some(3500), user_ns: Some(3500) }));
    let most = SwitchingThread { name: "logger:9".to_owned(), switches: 7 };
    assert_eq!(evl.mode_switches, Some(ModeSwitches { threads: 2, switches: 8, most: Some(most) }));
    scratch.file("sys/devices/virtual/thread/x/stats", "\n");
    let damaged = read_with(&scratch, "", "proxy").unwrap().evl.unwrap();
    assert_eq!(damaged.mode_switches, None, "a sum without one of them would be wrong");
}

#[test]
fn masks_of_one_word_are_read() {
    for (mask, expected) in [
        ("0000000f", Some("0-3")),
        ("0", Some("")),
        ("ffffffffffffffff", Some("0-63")),
        ("1ffffffffffffffff", None),
        ("", None),
        ("-1", None),
        ("x", None),
        ("1,1", None),
    ] {
        assert_eq!(cpus(mask).map(|cpus| cpus.to_string()).as_deref(), expected, "{mask:?}");
    }
}

#[test]
fn gravities_are_read_as_far_as_they_can_be() {
    let of = |irq_ns, kernel_ns, user_ns| Some(Gravity { irq_ns, kernel_ns, user_ns });
    for (text, expected) in [
        ("irq=0 kernel=3350 user=-1", of(Some(0), Some(3350), Some(-1))),
        ("user=1 irq=x", of(None, None, Some(1))),
        ("irq=99999999999999999999", None),
        ("irqs=1", None),
        ("", None),
    ] {
        assert_eq!(gravity_of_cobalt(text), expected, "{text:?}");
    }
    for (text, expected) in [("1i -2k", of(Some(1), Some(-2), None)), ("i k u", None), ("", None)] {
        assert_eq!(gravity_of_evl(text), expected, "{text:?}");
    }
}

#[test]
fn faults_are_summed_over_cpus_and_none_is_not_unknown() {
    let of = |rows: &str| faults(&format!("TRAP         CPU0        CPU1\n{rows}"));
    assert_eq!(of(" 14:            1           2    (Page fault)\n  1:  0  0  (Debug)\n").unwrap()["Page fault"], 3);
    assert_eq!(of("  0:            0           0    (Divide error)\n"), Some(BTreeMap::new()));
    assert_eq!(of(&format!("  0: {} 5 (x)", u64::MAX)).unwrap()["x"], u64::MAX);
    for damaged in ["14 1 (x)", "14: -1 (x)", "14: 1 x", "14: 1 (x", "14: 1 ()", "14: a (x)"] {
        assert_eq!(of(damaged), None, "{damaged}");
    }
    assert_eq!((faults(""), faults("14: 1 (x)")), (None, None));
    let many: String = (0..=MOST_ENTRIES).map(|trap| format!("{trap}: 1 (kind {trap})\n")).collect();
    assert_eq!(of(&many), None);
}

#[test]
fn mode_switches_of_threads_with_any_name_are_summed() {
    let of = |rows: &str| mode_switches(&format!("{}{rows}", &STAT[..STAT.find('\n').unwrap() + 1]));
    let row = |switches: &str, name: &str| {
        format!("  1  70     {switches}          1          5          0     00048044    0.0  {name}\n")
    };
    assert_eq!(of(""), Some(ModeSwitches::default()));
    let named = of(&row("3", "a b  c")).unwrap();
    assert_eq!(named.most, Some(SwitchingThread { name: "a b  c".to_owned(), switches: 3 }));
    assert_eq!(of(&row("3", "x\u{1b}[2J")).unwrap().most.unwrap().name, "x\u{fffd}[2J");
    let most = u64::MAX.to_string();
    assert_eq!(of(&(row(&most, "a") + &row("9", "b"))).unwrap().switches, u64::MAX);
    assert_eq!(of(&row("0", "quiet")).unwrap().most, None);
    for damaged in [row("-1", "a"), row("3", ""), row("3", &"n".repeat(65)), "0 1 2\n".to_owned(), "\n".to_owned()] {
        assert_eq!(of(&damaged), None, "{damaged:?}");
    }
    for head in ["", "CPU PID MSW", "CPU PID CSW MSW XSC PF STAT %CPU NAME"] {
        assert_eq!(mode_switches(head), None, "{head:?}");
    }
}

#[test]
fn a_file_that_is_too_long_is_unknown() {
    let scratch = cobalt_machine();
    scratch.file("proc/xenomai/sched/stat", STAT.to_owned() + &"\n".repeat(1 << 20));
    scratch.file("proc/xenomai/version", "3".repeat(65));
    scratch.file("proc/xenomai/faults", b"TRAP\n 1: 1 (\xff)\n");
    let cobalt = read_with(&scratch, "", "proxy").unwrap().cobalt.unwrap();
    assert_eq!((cobalt.mode_switches, cobalt.version), (None, None));
    assert_eq!(cobalt.faults, Some([("\u{fffd}".to_owned(), 1)].into()));
}
