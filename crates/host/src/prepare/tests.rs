//! Changing settings on a recorded machine.

use super::change::Form;
use super::*;
use crate::testing::Scratch;
use std::path::PathBuf;

/// A machine in a directory of its own: four CPUs, two idle states each, three interrupts.
struct Machine {
    scratch: Scratch,
    fs: HostFs,
}

const IRQ: &str = "proc/irq/24/smp_affinity_list";
const GRAVITY: &str = "proc/xenomai/clock/coreclk";
const THP: &str = "sys/kernel/mm/transparent_hugepage/enabled";

impl Machine {
    fn new() -> Machine {
        let scratch = Scratch::make();
        let machine = Machine { fs: scratch.machine(), scratch };
        machine.set("sys/devices/system/cpu/online", "0-3");
        for cpu in 0..4 {
            let directory = format!("sys/devices/system/cpu/cpu{cpu}");
            machine.set(&format!("{directory}/cpufreq/scaling_governor"), "powersave");
            machine.set(&format!("{directory}/cpufreq/scaling_available_governors"), "performance powersave");
            for (state, us) in [(0, 0), (1, 2), (2, 133)] {
                machine.set(&format!("{directory}/cpuidle/state{state}/latency"), &us.to_string());
                machine.set(&format!("{directory}/cpuidle/state{state}/disable"), "0");
            }
        }
        machine.set("proc/sys/kernel/sched_rt_runtime_us", "950000");
        machine.set("proc/sys/kernel/timer_migration", "1");
        machine.set("proc/sys/kernel/random/boot_id", "this-boot");
        machine.set(THP, "always");
        machine.set("sys/devices/virtual/workqueue/cpumask", "f");
        machine.set("sys/fs/cgroup/cgroup.controllers", "cpuset cpu io");
        machine.set("sys/fs/cgroup/cgroup.subtree_control", "cpuset cpu");
        machine.set("sys/fs/cgroup/cgroup.procs", "");
        machine.set("sys/fs/cgroup/system.slice/cpuset.cpus", "");
        machine.set("sys/fs/cgroup/user.slice/cpuset.cpus", "0-3");
        for irq in [1, 24, 25] {
            machine.set(&format!("proc/irq/{irq}/smp_affinity_list"), "0-3");
        }
        machine
    }

    /// Adds a running Cobalt.
    fn with_cobalt(self) -> Machine {
        self.set("sys/devices/system/clockevents/clockevent0/current_device", "proxy");
        self.set(GRAVITY, "gravity: irq=0 kernel=2000 user=2000\n devices: timer=lapic, clock=<Linux clocksource>");
        self
    }

    fn set(&self, path: &str, value: &str) {
        self.scratch.file(path, format!("{value}\n"));
    }

    fn get(&self, path: &str) -> String {
        std::fs::read_to_string(self.fs.root.join(path)).unwrap().trim().to_owned()
    }

    fn prepare(&self, text: &str) -> Result<Preparation, String> {
        let mut prepare = Prepare::default();
        prepare.set_all(text).unwrap();
        Preparation::make(&self.fs, &prepare, &"2-3".parse().unwrap())
    }

    /// All values, except journals.
    fn all(&self) -> Vec<(PathBuf, String)> {
        let mut found = Vec::new();
        let mut directories = vec![self.fs.root.join("proc"), self.fs.root.join("sys")];
        while let Some(directory) = directories.pop() {
            for entry in std::fs::read_dir(directory).unwrap().flatten() {
                if entry.file_type().unwrap().is_dir() {
                    directories.push(entry.path());
                } else {
                    found.push((entry.path(), std::fs::read_to_string(entry.path()).unwrap().trim().to_owned()));
                }
            }
        }
        found.sort();
        found
    }

    fn journals(&self) -> usize {
        std::fs::read_dir(self.fs.root.join("run/punctual")).map_or(0, Iterator::count)
    }
}

const EVERYTHING: &str = "governor=performance,idle_latency=10us,rt_runtime=900ms,timer_migration=off,\
                          transparent_hugepages=never,irq_cpus=others,housekeeping_cpus=others";

#[test]
fn everything_is_changed_and_put_back() {
    let machine = Machine::new();
    let before = machine.all();
    let preparation = machine.prepare(EVERYTHING).unwrap();
    for (path, value) in [
        ("sys/devices/system/cpu/cpu2/cpufreq/scaling_governor", "performance"),
        ("sys/devices/system/cpu/cpu1/cpufreq/scaling_governor", "powersave"),
        ("sys/devices/system/cpu/cpu3/cpuidle/state2/disable", "1"),
        ("sys/devices/system/cpu/cpu3/cpuidle/state1/disable", "0"),
        ("sys/devices/system/cpu/cpu0/cpuidle/state2/disable", "0"),
        ("proc/sys/kernel/sched_rt_runtime_us", "900000"),
        ("proc/sys/kernel/timer_migration", "0"),
        (THP, "never"),
        (IRQ, "0-1"),
        ("sys/devices/virtual/workqueue/cpumask", "00000003"),
        ("sys/fs/cgroup/system.slice/cpuset.cpus", "0-1"),
        ("sys/fs/cgroup/user.slice/cpuset.cpus", "0-1"),
        ("sys/fs/cgroup/cgroup.procs", "0"),
    ] {
        assert_eq!(machine.get(path), value, "{path}");
    }
    assert_eq!(machine.journals(), 1);
    let settings = preparation.settings();
    assert_eq!(settings.len(), 13);
    assert!(settings.iter().all(|setting| setting.at_end.as_ref() == Some(&setting.during)), "{settings:?}");
    drop(preparation);
    machine.set("sys/fs/cgroup/cgroup.procs", "");
    assert_eq!(machine.all(), before);
    assert_eq!(machine.journals(), 0);
}

#[test]
fn what_is_so_already_is_left_alone_and_leaves_no_journal() {
    let machine = Machine::new();
    let preparation = machine.prepare("timer_migration=on,transparent_hugepages=always").unwrap();
    assert_eq!((preparation.settings(), machine.journals()), (Vec::new(), 0));
}

#[test]
fn a_setting_that_cannot_be_is_one_line_and_nothing_stays_changed() {
    let machine = Machine::new();
    std::fs::remove_dir_all(machine.fs.root.join("sys/devices/system/cpu/cpu3/cpufreq")).unwrap();
    let before = machine.all();
    for (text, message) in [
        ("governor=schedutil", "invalid governor `schedutil` for CPU 2: expected one of performance powersave"),
        (
            "timer_migration=off,governor=performance",
            "cannot set governor: no /sys/devices/system/cpu/cpu3/cpufreq/scaling_governor on this machine",
        ),
        ("irq_cpus=9", "irq_cpus: CPU 9 is not online; online CPUs: 0-3"),
    ] {
        assert_eq!(machine.prepare(text).unwrap_err(), message);
        assert_eq!((machine.all(), machine.journals()), (before.clone(), 0), "{text}");
    }
}

#[test]
fn a_value_that_the_kernel_does_not_take_is_noticed_and_the_rest_put_back() {
    let machine = Machine::new();
    // A file that accepts every write and reads as empty.
    std::fs::remove_file(machine.fs.root.join(THP)).unwrap();
    std::os::unix::fs::symlink("/dev/null", machine.fs.root.join(THP)).unwrap();
    let refused = machine.prepare("timer_migration=off,transparent_hugepages=never").unwrap_err();
    assert_eq!(refused, format!("cannot set /{THP} to never: it reads "));
    assert_eq!(machine.get("proc/sys/kernel/timer_migration"), "1");
}

/// The kernel shows the filter of this process as hexadecimal digits, and takes nine bits of it.
#[test]
fn a_value_that_the_kernel_writes_in_its_own_way_is_put_back() {
    const FILTER: &str = "/proc/self/coredump_filter";
    let machine = Machine::new();
    for name in ["sched_rt_runtime_us", "timer_migration"] {
        let path = machine.fs.root.join("proc/sys/kernel").join(name);
        std::fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink(FILTER, &path).unwrap();
    }
    let filter = || std::fs::read_to_string(FILTER).unwrap();
    std::fs::write(FILTER, "1").unwrap();
    assert!(machine.prepare("timer_migration=on").unwrap().settings().is_empty(), "it has the value");
    drop(machine.prepare("timer_migration=off").unwrap());
    assert_eq!(filter(), "00000001\n");
    let refused = machine.prepare("rt_runtime=900ms").unwrap_err();
    assert_eq!(refused, "cannot set /proc/sys/kernel/sched_rt_runtime_us to 900000: it reads 000001a0");
    assert_eq!(filter(), "00000001\n");
    assert!(Form::Text.is_same("3\t4\t0\t7", "3 4 0 7") && !Form::Text.is_same("30", "3"));
}

#[test]
fn a_value_that_something_else_has_changed_shows_and_is_left_alone() {
    let machine = Machine::new();
    let preparation = machine.prepare("timer_migration=off,transparent_hugepages=never").unwrap();
    machine.set(THP, "madvise");
    let at_end: Vec<_> = preparation.settings().into_iter().map(|setting| setting.at_end.unwrap()).collect();
    assert_eq!(at_end, ["0", "madvise"]);
    drop(preparation);
    assert_eq!(
        (machine.get(THP), machine.get("proc/sys/kernel/timer_migration")),
        ("madvise".to_owned(), "1".to_owned())
    );
    assert_eq!(machine.journals(), 0, "there is nothing left to be done");
}

/// Makes the journal of `preparation` look like that of a process that was killed.
fn killed(machine: &Machine, preparation: Preparation) {
    let path = std::fs::read_dir(machine.fs.root.join("run/punctual")).unwrap().next().unwrap().unwrap().path();
    let text = std::fs::read_to_string(&path).unwrap();
    std::mem::forget(preparation);
    let ticks = format!("\"started_ticks\":{}", process_ticks());
    assert!(text.contains(&ticks), "{text}");
    std::fs::write(path, text.replace(&ticks, "\"started_ticks\":1")).unwrap();
}

fn process_ticks() -> u64 {
    crate::process::started_ticks_of(std::process::id()).unwrap()
}

#[test]
fn recover_puts_back_what_a_killed_process_left_and_only_that() {
    let machine = Machine::new();
    let before = machine.all();
    let living = machine.prepare("timer_migration=off").unwrap();
    let [recovered] = &recover(&machine.fs)[..] else { panic!("its process lives") };
    let told = format!("process {} has changed settings and is still running (", std::process::id());
    assert!(recovered.failed[0].starts_with(&told) && recovered.restored.is_empty(), "{recovered:?}");
    assert_eq!((machine.journals(), machine.get("proc/sys/kernel/timer_migration").as_str()), (1, "0"));
    drop(living);
    killed(&machine, machine.prepare(EVERYTHING).unwrap());
    // As after a kill that followed the first changes.
    machine.set(THP, "always");
    let recovered = recover(&machine.fs);
    machine.set("sys/fs/cgroup/cgroup.procs", "");
    assert_eq!((machine.all(), machine.journals()), (before, 0));
    assert_eq!((recovered.len(), recovered[0].restored.len(), recovered[0].left.len()), (1, 12, 0), "{recovered:?}");
    assert_eq!(recover(&machine.fs), []);
}

#[test]
fn after_another_boot_nothing_is_to_be_put_back() {
    let machine = Machine::new();
    killed(&machine, machine.prepare("timer_migration=off").unwrap());
    machine.set("proc/sys/kernel/random/boot_id", "the-next");
    let recovered = recover(&machine.fs);
    assert!(recovered[0].rebooted && recovered[0].restored.is_empty(), "{recovered:?}");
    assert_eq!((machine.get("proc/sys/kernel/timer_migration"), machine.journals()), ("0".to_owned(), 0));
}

/// The error of `recover` for the one journal, which is kept; nothing is changed.
#[track_caller]
fn refused(machine: &Machine) -> String {
    let before = machine.all();
    let recovered = recover(&machine.fs);
    assert_eq!((recovered.len(), recovered[0].failed.len(), recovered[0].restored.len()), (1, 1, 0), "{recovered:?}");
    assert_eq!((machine.journals(), machine.all()), (1, before));
    recovered[0].failed[0].clone()
}

#[test]
fn a_journal_that_cannot_be_used_is_named_and_kept() {
    let machine = Machine::new();
    let path = machine.fs.root.join("run/punctual/1.journal.json");
    let expect = |reason: &str| {
        let said = refused(&machine);
        let begin = format!("invalid journal {}: {reason}", path.display());
        let end = "; settings may still be changed: check them, then remove this file";
        assert!(said.starts_with(&begin) && said.ends_with(end), "{said}");
    };
    for (text, reason) in [("", "EOF"), ("{", "EOF"), ("[1]", "invalid ")] {
        machine.set("run/punctual/1.journal.json", text);
        expect(reason);
    }
    let journal = |path: &str| {
        let change = format!(r#"{{"kind":"file","path":"{path}","before":"1","during":"0","form":"text"}}"#);
        format!(r#"{{"pid":4194305,"started_ticks":1,"boot_id":"this-boot","changes":[{change}]}}"#)
    };
    let outside = machine.fs.root.join("outside");
    machine.set("outside", "0");
    machine.set("proc/sys/kernel/core_pattern", "0");
    let absolute = outside.display().to_string();
    for bad in ["outside", "sys/../outside", "../outside", &absolute, "proc/sys/kernel/core_pattern"] {
        machine.set("run/punctual/1.journal.json", &journal(bad));
        expect(&format!("/{bad} is not a setting that punctual changes"));
    }
    machine.set("proc/sys/kernel/timer_migration", "0");
    machine.set("run/punctual/1.journal.json", &journal("proc/sys/kernel/timer_migration"));
    let mode = |path: &std::path::Path, mode| {
        std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(mode)).unwrap();
    };
    mode(&path, 0o646);
    expect("writable by other users");
    mode(&path, 0o644);
    // Neither through a link nor out of a FIFO, which would block.
    std::fs::rename(&path, &outside).unwrap();
    std::os::unix::fs::symlink(&outside, &path).unwrap();
    expect("Too many levels of symbolic links");
    std::fs::remove_file(&path).unwrap();
    std::process::Command::new("mkfifo").arg(&path).status().unwrap();
    expect("expected a regular file");
    std::fs::remove_file(&path).unwrap();
    std::fs::rename(&outside, &path).unwrap();
    let directory = path.parent().unwrap();
    mode(directory, 0o777);
    assert!(
        refused(&machine)
            .starts_with(&format!("cannot use the journals in {}: writable by other users;", directory.display()))
    );
    assert!(machine.prepare("transparent_hugepages=never").unwrap_err().contains("writable by other users;"));
    mode(directory, 0o1777);
    assert_eq!(recover(&machine.fs)[0].restored, ["/proc/sys/kernel/timer_migration: 1"]);
    assert_eq!(machine.journals(), 0);
}

#[test]
fn a_stopped_process_goes_on_afterwards() {
    let machine = Machine::new();
    let mut child = std::process::Command::new("cat").stdin(std::process::Stdio::piped()).spawn().unwrap();
    machine.set(&format!("proc/{}/comm", child.id()), "irqbalance");
    let state = || crate::process::state_of(child.id());
    punctual_sys::process::signal(child.id(), libc::SIGSTOP).unwrap();
    assert!(punctual_sys::testing::comes_true(|| state() == Some('T')));
    drop(machine.prepare("irqbalance=pause").unwrap());
    assert_eq!(state(), Some('T'), "the administrator has stopped it");
    punctual_sys::process::signal(child.id(), libc::SIGCONT).unwrap();
    assert!(punctual_sys::testing::comes_true(|| state() != Some('T')));
    let preparation = machine.prepare("irqbalance=pause").unwrap();
    assert_eq!(preparation.settings()[0].at_end.as_deref(), Some("stopped"));
    drop(preparation);
    assert!(punctual_sys::testing::comes_true(|| state() != Some('T')));
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn the_gravity_of_a_clock_is_read_from_a_running_core_only() {
    let none = Machine::new().prepare("cobalt_gravity=0us").unwrap_err();
    assert_eq!(none, "cannot set cobalt_gravity: Cobalt does not run on this machine");
    let machine = Machine::new().with_cobalt();
    machine.set("sys/devices/system/clockevents/clockevent0/current_device", "lapic");
    assert_eq!(machine.prepare("cobalt_gravity=0us").unwrap_err(), none, "a stopped core is not read");
    machine.set("sys/devices/system/clockevents/clockevent0/current_device", "proxy");
    drop(machine.prepare("cobalt_gravity=2us").unwrap_err());
    assert_eq!(machine.get(GRAVITY), "0i 2000k 2000u", "written, here not read back as a line, and restored");
    let same = Machine::new().with_cobalt();
    same.set(GRAVITY, "gravity: irq=0 kernel=0 user=0");
    assert!(same.prepare("cobalt_gravity=0us").unwrap().settings().is_empty(), "it has the value");
}

/// A trace that was never used has its size in brackets, and is stopped at the end whether it was on or not.
#[test]
fn the_trace_is_put_back_as_it_was() {
    for on in ["0", "1"] {
        let machine = Machine::new();
        let files = ["tracing_on", "buffer_size_kb", "current_tracer"].map(|name| format!("sys/kernel/tracing/{name}"));
        let before = [on, "7 (expanded: 1408)", "nop"];
        for (path, value) in files.iter().zip(before) {
            machine.set(path, value);
        }
        let now = || files.each_ref().map(|path| machine.get(path));
        let [on_path, size, tracer] = &files;
        let planned = [(on_path, "1"), (size, "125"), (tracer, "timerlat"), (on_path, "0")];
        let planned = planned.map(|(path, value)| (path.clone(), value.to_owned()));
        let mut preparation = Preparation::of_trace(&machine.fs, &planned).unwrap();
        assert_eq!(now(), ["1", "125", "timerlat"]);
        preparation.end().unwrap();
        assert_eq!(now(), ["0", "125", "timerlat"]);
        drop(preparation);
        assert_eq!(now(), [on, "1408", "nop"]);
        killed(&machine, Preparation::of_trace(&machine.fs, &planned).unwrap());
        recover(&machine.fs);
        assert_eq!(now(), [on, "1408", "nop"]);
    }
}
