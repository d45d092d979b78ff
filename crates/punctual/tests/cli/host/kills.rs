//! SIGKILL at random instants, with settings of this very machine.
//!
//! All is as before after `punctual recover`. The gate visits each named place instead (`life/prepare.rs`).

use crate::places::Places;
use crate::program::{
    a_cpu_and_the_others, cell, command, is_root, kill_and_wait, machine, run, running, skip_unless, traces,
};
use punctual_model::{Cell, Conditions, Prepare, Span, SplitMix64};
use punctual_sys::testing::comes_true;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Kills for each of `PUNCTUAL_ROUNDS`, of which there are 20 by default.
const KILLS_OF_A_ROUND: u64 = 10;

/// What a cell may change: files with their contents, control groups, and what else is left behind.
#[derive(Debug, PartialEq, Eq)]
struct State {
    files: BTreeMap<PathBuf, String>,
    left: Vec<String>,
}

/// Entries of a directory, as paths.
fn entries(directory: &str) -> Vec<PathBuf> {
    std::fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}

impl State {
    fn read() -> State {
        let below = |directory: &str, file: &str| entries(directory).into_iter().map(|path| path.join(file)).collect();
        let cpus = "/sys/devices/system/cpu";
        let idle = entries(cpus).into_iter().flat_map(|cpu| entries(&cpu.join("cpuidle").display().to_string()));
        let paths: [Vec<PathBuf>; 5] = [
            below("/proc/irq", "smp_affinity_list"),
            below(cpus, "cpufreq/scaling_governor"),
            idle.map(|state| state.join("disable")).collect(),
            below("/sys/fs/cgroup", "cpuset.cpus"),
            [
                "/sys/devices/virtual/workqueue/cpumask",
                "/sys/kernel/mm/transparent_hugepage/enabled",
                "/sys/fs/cgroup/cgroup.subtree_control",
                "/proc/sys/kernel/timer_migration",
                "/proc/sys/kernel/sched_rt_runtime_us",
            ]
            .map(PathBuf::from)
            .to_vec(),
        ];
        let text = |path: PathBuf| Some((path.clone(), std::fs::read_to_string(&path).ok()?));
        let journals = entries("/run/punctual").into_iter().map(|path| path.display().to_string());
        State {
            files: paths.into_iter().flatten().filter_map(text).collect(),
            left: journals.chain(traces()).collect(),
        }
    }

    fn has(&self, path: &str) -> bool {
        self.files.contains_key(Path::new(path))
    }

    /// Every setting that this machine has, as `--prepare` takes them.
    fn all_changes(&self) -> Prepare {
        let mut prepare = Prepare::default();
        let mut set = |text: &str| prepare.set_all(text).expect("settings");
        set("irq_cpus=others");
        for (path, text) in [
            ("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "governor=performance"),
            ("/sys/devices/system/cpu/cpu0/cpuidle/state0/disable", "idle_latency=0us"),
            ("/sys/devices/virtual/workqueue/cpumask", "housekeeping_cpus=others"),
            ("/sys/kernel/mm/transparent_hugepage/enabled", "transparent_hugepages=never"),
            ("/proc/sys/kernel/timer_migration", "timer_migration=off"),
            ("/proc/sys/kernel/sched_rt_runtime_us", "rt_runtime=960ms"),
        ] {
            if self.has(path) {
                set(text);
            }
        }
        prepare
    }
}

/// The state to which the machine returns, whatever happens.
struct Restored(State);

impl Drop for Restored {
    fn drop(&mut self) {
        let _ = command("recover --wait").output();
        let now = State::read();
        for (path, before) in self.0.files.iter().filter(|(path, before)| now.files.get(*path) != Some(before)) {
            // Of a choice, the one in brackets.
            let value = before.split_once('[').and_then(|(_, rest)| rest.split(']').next()).unwrap_or(before);
            eprintln!("{}: {:?}, was {before:?}", path.display(), now.files.get(path));
            let _ = std::fs::write(path, value);
        }
    }
}

#[test]
#[ignore = "host: changes settings of the machine, at instants of its own"]
fn root_a_cell_killed_at_any_instant_leaves_this_machine_as_it_was_after_recover() {
    skip_unless!(is_root());
    let Some((measured, _)) = a_cpu_and_the_others() else { return };
    let (_machine, places) = (machine(), Places::new());
    let before = Restored(State::read());
    let short = cell("other", "messaging:groups=1", &measured.to_string(), "20ms");
    let conditions = Conditions { prepare: before.0.all_changes(), warm_up: Span(0), ..short.conditions };
    let cell = Cell { conditions, ..short };
    let began = Instant::now();
    assert!(places.start_cell(command("cell"), &cell).wait().unwrap().success());
    let length = began.elapsed();
    assert_eq!(State::read(), before.0, "a cell that ends by itself");
    let rounds = std::env::var("PUNCTUAL_ROUNDS").ok().and_then(|n| n.parse().ok()).unwrap_or(20);
    let (kills, seed) = (KILLS_OF_A_ROUND * rounds, u64::from(std::process::id()));
    let mut random = SplitMix64::new(seed);
    let mut changed = 0;
    for kill in 0..kills {
        let instant = length.mul_f64(random.below(1 << 20) as f64 / f64::from(1 << 20));
        let mut child = places.start_cell(command("cell"), &cell);
        std::thread::sleep(instant);
        kill_and_wait(&mut child);
        let what = format!("kill {kill} of seed {seed}, after {instant:?}");
        assert!(comes_true(|| running().is_empty()), "{what}: {:?} left", running());
        changed += u64::from(State::read().files != before.0.files);
        run(&mut command("recover --wait")).expect_success();
        assert_eq!(State::read(), before.0, "{what}");
    }
    eprintln!("{kills} kills within {length:?}, {changed} of them while settings were changed");
    assert!(changed > 0, "no kill came while settings were changed");
}
