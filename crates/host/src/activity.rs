//! The machine's activity, read once a second.

mod below;
mod counters;
mod power;
mod sensors;

use super::HostFs;
pub use below::BelowKernel;
use counters::{Stat, interrupts_of_cpus};
use power::Meter;
use punctual_model::{CpuSet, MachineSecond, Span};
use sensors::Sensors;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Periodic readings of the activity around a cell's threads. They never interrupt a measured CPU.
#[derive(Debug)]
pub struct ActivityLog {
    fs: HostFs,
    measured: CpuSet,
    /// The measured threads.
    threads: Vec<u32>,
    /// Whether the kernel counts migrations of threads (`CONFIG_SCHED_DEBUG`).
    tells_migrations: bool,
    /// The control group of this process.
    group: Option<PathBuf>,
    sensors: Sensors,
    meter: Meter,
    last: Counters,
}

/// Counters that only rise.
#[derive(Debug, Default)]
struct Counters {
    stat: Stat,
    interrupts: BTreeMap<String, u64>,
    soft_interrupts: BTreeMap<String, u64>,
    faults: Option<u64>,
    major_faults: Option<u64>,
    migrations: Option<u64>,
    group_throttlings: Option<u64>,
    heat_throttlings: Option<u64>,
    smis: Option<u64>,
    energy_uj: Vec<Option<u64>>,
}

impl ActivityLog {
    /// The first reading.
    pub fn begin(fs: HostFs, measured: &CpuSet, threads: Vec<u32>) -> ActivityLog {
        let group = super::cgroup::our_group(&fs);
        let (sensors, meter) = (Sensors::find(&fs, measured), Meter::find(&fs, measured));
        let tells_migrations = migrations_of(punctual_sys::thread::id()).is_some() && fs.exists("proc/stat");
        let (measured, last) = (measured.clone(), Counters::default());
        let mut log = ActivityLog { fs, measured, threads, tells_migrations, group, sensors, meter, last };
        log.last = log.counters();
        log
    }

    /// Activity since the previous reading, which was `elapsed` ago; this one is `at` into the measured window.
    pub fn read(&mut self, at: Span, elapsed: Span) -> MachineSecond {
        let began = punctual_sys::usage::thread_cpu_time();
        let now = self.counters();
        let before = std::mem::take(&mut self.last);
        let since = |now: Option<u64>, then: Option<u64>| Some(now?.saturating_sub(then?));
        let row = MachineSecond {
            at,
            elapsed,
            idle_ms: since(now.stat.idle_ms, before.stat.idle_ms),
            steal_ms: since(now.stat.steal_ms, before.stat.steal_ms),
            context_switches: since(now.stat.context_switches, before.stat.context_switches),
            interrupts: since(now.stat.interrupts, before.stat.interrupts),
            soft_interrupts: since(now.stat.soft_interrupts, before.stat.soft_interrupts),
            forks: since(now.stat.forks, before.stat.forks),
            interrupts_by_kind: risen(&now.interrupts, &before.interrupts),
            soft_interrupts_by_kind: risen(&now.soft_interrupts, &before.soft_interrupts),
            faults: since(now.faults, before.faults),
            major_faults: since(now.major_faults, before.major_faults),
            migrations: since(now.migrations, before.migrations),
            group_throttlings: since(now.group_throttlings, before.group_throttlings),
            heat_throttlings: since(now.heat_throttlings, before.heat_throttlings),
            smis: since(now.smis, before.smis),
            frequency_khz: self.sensors.frequency_khz(&self.fs, &self.measured),
            temperature_mc: self.sensors.temperature_mc(&self.fs),
            power_mw: self.meter.power_mw(&self.fs, &now.energy_uj, &before.energy_uj, elapsed),
            reading_us: Some((punctual_sys::usage::thread_cpu_time().ns() - began.ns()) / 1000),
        };
        self.last = now;
        row
    }

    fn counters(&self) -> Counters {
        let fs = &self.fs;
        let vmstat = fs.text("proc/vmstat").unwrap_or_default();
        let of_vm = |name: &str| value_of(&vmstat, name);
        Counters {
            stat: Stat::parse(&fs.text("proc/stat").unwrap_or_default()),
            interrupts: interrupts_of_cpus(&fs.text("proc/interrupts").unwrap_or_default(), &self.measured),
            soft_interrupts: interrupts_of_cpus(&fs.text("proc/softirqs").unwrap_or_default(), &self.measured),
            faults: of_vm("pgfault"),
            major_faults: of_vm("pgmajfault"),
            migrations: self
                .tells_migrations
                .then(|| self.threads.iter().filter_map(|thread| migrations_of(*thread)).sum()),
            group_throttlings: self
                .group
                .as_ref()
                .and_then(|group| value_of(&std::fs::read_to_string(group.join("cpu.stat")).ok()?, "nr_throttled")),
            heat_throttlings: sensors::heat_throttlings(fs, &self.measured),
            smis: self.sensors.smis(),
            energy_uj: self.meter.counters(fs),
        }
    }
}

/// The value of a line `NAME VALUE`.
fn value_of(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok())
}

/// Number of migrations of a thread; `None` when it has ended, or the kernel does not count them.
fn migrations_of(thread: u32) -> Option<u64> {
    let text = HostFs::running().text(format!("proc/{thread}/sched"))?;
    let line = text.lines().find(|line| line.starts_with("se.nr_migrations"))?;
    line.rsplit(':').next()?.trim().parse().ok()
}

/// The positive increases since `before`.
fn risen(now: &BTreeMap<String, u64>, before: &BTreeMap<String, u64>) -> BTreeMap<String, u64> {
    let rise = |(kind, count): (&String, &u64)| {
        let rise = count.saturating_sub(before.get(kind).copied().unwrap_or(0));
        (rise > 0).then(|| (kind.clone(), rise))
    };
    now.iter().filter_map(rise).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_kinds_that_came_are_in_a_row() {
        let map = |pairs: &[(&str, u64)]| pairs.iter().map(|(kind, n)| ((*kind).to_owned(), *n)).collect();
        let now: BTreeMap<_, _> = map(&[("LOC", 10), ("26:ttyS0", 5), ("NMI", 3)]);
        assert_eq!(risen(&now, &map(&[("LOC", 7), ("NMI", 3)])), map(&[("26:ttyS0", 5), ("LOC", 3)]));
        assert_eq!(risen(&now, &map(&[("LOC", 11), ("NMI", 4), ("26:ttyS0", 6)])), map(&[]), "a CPU was taken away");
    }

    #[test]
    fn values_are_found_by_their_whole_name() {
        let text = "pgfault_x 1\npgfault 2\nbroken\nempty ";
        assert_eq!((value_of(text, "pgfault"), value_of(text, "empty"), value_of(text, "none")), (Some(2), None, None));
    }

    #[test]
    fn a_machine_that_says_nothing_gives_rows_of_nothing() {
        let mut log = ActivityLog::begin(HostFs { root: "/nonexistent".into() }, &CpuSet::default(), vec![1 << 23]);
        let row = log.read(Span(1), Span(2));
        let reading_us = row.reading_us;
        assert_eq!(row, MachineSecond { at: Span(1), elapsed: Span(2), reading_us, ..MachineSecond::default() });
    }

    #[test]
    fn this_machine_says_most_of_it() {
        let own = punctual_sys::sched::affinity(0).unwrap();
        let mut log = ActivityLog::begin(HostFs::here(), &own, vec![punctual_sys::thread::id()]);
        let row = log.read(Span(1), Span(2));
        assert!(row.idle_ms.is_some() && row.faults.is_some() && row.reading_us.is_some(), "{row:?}");
    }
}
