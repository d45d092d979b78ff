//! The files of this machine that a preparation changes, and their new values.

use super::change::{Change, Form, read};
use crate::HostFs;
use crate::process;
use punctual_model::{CpuSet, CpusAway, Prepare, Span};

/// The file of the gravity of Cobalt's clock.
pub(super) const GRAVITY: &str = "proc/xenomai/clock/coreclk";

/// All changes in the order in which they are made. Settings that already have the value are left out. Errors: one line
/// with the setting that this machine does not have, or the value that it does not support.
pub(super) fn changes(fs: &HostFs, prepare: &Prepare, measured: &CpuSet) -> Result<Vec<Change>, String> {
    let mut changes = Vec::new();
    if let Some(governor) = &prepare.governor {
        for cpu in measured.iter() {
            changes.extend(self::governor(fs, cpu, governor)?);
        }
    }
    if let Some(latency) = prepare.idle_latency {
        for cpu in measured.iter() {
            changes.extend(idle_states(fs, cpu, latency)?);
        }
    }
    if let Some(us) = prepare.rt_runtime_us {
        changes.extend(file(fs, "rt_runtime", "proc/sys/kernel/sched_rt_runtime_us", &us.to_string(), Form::Text)?);
    }
    if let Some(on) = prepare.timer_migration {
        let value = if on { "1" } else { "0" };
        changes.extend(file(fs, "timer_migration", "proc/sys/kernel/timer_migration", value, Form::Text)?);
    }
    if let Some(gravity) = prepare.cobalt_gravity {
        let ns = gravity.ns();
        let value = format!("{ns}i {ns}k {ns}u");
        let change = file(fs, "cobalt_gravity", GRAVITY, &value, Form::Gravity);
        changes
            .extend(change.map_err(|_| "cannot set cobalt_gravity: Cobalt does not run on this machine".to_owned())?);
    }
    if let Some(when) = &prepare.transparent_hugepages {
        let path = "sys/kernel/mm/transparent_hugepage/enabled";
        changes.extend(file(fs, "transparent_hugepages", path, when, Form::Choice)?);
    }
    for (name, value) in &prepare.files {
        let path = Prepare::file_of(name)
            .ok_or_else(|| format!("cannot set {name}: expected a sysctl or a path below /sys"))?;
        let is_choice = fs.text(&path).is_some_and(|text| text.contains('['));
        let form = if is_choice { Form::Choice } else { Form::Text };
        changes.extend(file(fs, name, &path, value, form)?);
    }
    // Before interrupts are moved, which irqbalance would move back.
    if prepare.pause_irqbalance == Some(true) {
        changes.extend(irqbalance(fs)?);
    }
    if let Some(cpus) = &prepare.irq_cpus {
        changes.extend(interrupts(fs, &resolved("irq_cpus", fs, cpus, measured)?));
    }
    if let Some(cpus) = &prepare.housekeeping_cpus {
        changes.extend(housekeeping(fs, &resolved("housekeeping_cpus", fs, cpus, measured)?)?);
    }
    Ok(changes)
}

/// The change of one file; `None` when it already has the value.
fn file(fs: &HostFs, setting: &str, path: &str, value: &str, form: Form) -> Result<Option<Change>, String> {
    let before = read(fs, path, form).ok_or_else(|| format!("cannot set {setting}: no /{path} on this machine"))?;
    Ok((!form.is_same(&before, value)).then(|| Change::File {
        path: path.to_owned(),
        before,
        during: value.to_owned(),
        form,
    }))
}

/// New values of files of the trace, in this order; of a mask of CPUs their list. What a file has is its value before,
/// or else what it got here.
pub(super) fn of_trace(fs: &HostFs, files: &[(String, String)]) -> Vec<Change> {
    let mut changes: Vec<Change> = Vec::new();
    for (path, during) in files {
        let earlier = changes.iter().rev().find_map(|change| match change {
            Change::File { path: changed, during, .. } => Some(during.clone()).filter(|_| changed == path),
            Change::Stopped { .. } => None,
        });
        let cpus: Option<CpuSet> = during.parse().ok().filter(|_| path.ends_with("_cpumask"));
        let form = match () {
            () if cpus.is_some() => Form::Mask,
            () if path.ends_with("_kb") => Form::Kib,
            () if fs.text(path).is_some_and(|text| text.contains('[')) => Form::Choice,
            () => Form::Text,
        };
        let before = earlier.or_else(|| read(fs, path, form)).unwrap_or_default();
        // `7 (expanded: 1408)`: of a trace that was never used.
        let before = before.split_once("(expanded: ").map_or(before.as_str(), |(_, size)| size.trim_end_matches(')'));
        let during = cpus.map_or_else(|| during.clone(), |cpus| mask(&cpus));
        changes.push(Change::File { path: path.clone(), before: before.to_owned(), during, form });
    }
    changes
}

fn governor(fs: &HostFs, cpu: u32, governor: &str) -> Result<Option<Change>, String> {
    let directory = format!("sys/devices/system/cpu/cpu{cpu}/cpufreq");
    let available = fs.text(format!("{directory}/scaling_available_governors")).unwrap_or_default();
    if !available.is_empty() && !available.split_whitespace().any(|name| name == governor) {
        return Err(format!("invalid governor `{governor}` for CPU {cpu}: expected one of {available}"));
    }
    file(fs, "governor", &format!("{directory}/scaling_governor"), governor, Form::Text)
}

/// Disables every idle state with an exit latency above `latency`.
fn idle_states(fs: &HostFs, cpu: u32, latency: Span) -> Result<Vec<Change>, String> {
    let directory = format!("sys/devices/system/cpu/cpu{cpu}/cpuidle");
    let latencies = (0..).map_while(|state| {
        let us: u64 = fs.number(format!("{directory}/state{state}/latency"))?;
        Some((state, us))
    });
    let states: Vec<(u32, u64)> = latencies.collect();
    if states.is_empty() {
        return Err(format!("cannot set idle_latency: CPU {cpu} has no idle states in /{directory}"));
    }
    let deep = states.into_iter().filter(|(_, us)| us.saturating_mul(1000) > latency.ns());
    let forbid = |(state, _)| file(fs, "idle_latency", &format!("{directory}/state{state}/disable"), "1", Form::Text);
    deep.map(forbid).filter_map(Result::transpose).collect()
}

/// Stops every process of that name, but for those that are stopped already. There may be none.
fn irqbalance(fs: &HostFs) -> Result<Vec<Change>, String> {
    let stopped = |pid: u32| {
        process::state_of(pid).filter(|state| *state != 'T')?;
        let started_ticks = process::started_ticks_of(pid)?;
        Some(Change::Stopped { pid, name: "irqbalance".to_owned(), started_ticks })
    };
    Ok(fs
        .numbers_in("proc")
        .into_iter()
        .filter(|pid| fs.text(format!("proc/{pid}/comm")).as_deref() == Some("irqbalance"))
        .filter_map(stopped)
        .collect())
}

/// Moves every interrupt that has an affinity list.
fn interrupts(fs: &HostFs, cpus: &CpuSet) -> Vec<Change> {
    let value = cpus.to_string();
    let change = |irq: u32| {
        let path = format!("proc/irq/{irq}/smp_affinity_list");
        let before = read(fs, &path, Form::Interrupt).filter(|before| !before.is_empty() && *before != value)?;
        Some(Change::File { path, before, during: value.clone(), form: Form::Interrupt })
    };
    fs.numbers_in("proc/irq").into_iter().filter_map(change).collect()
}

const WORKQUEUES: &str = "sys/devices/virtual/workqueue/cpumask";
const GROUPS: &str = "sys/fs/cgroup";

/// Confines unbound kernel work to `cpus`, and the processes of all groups directly below the root.
fn housekeeping(fs: &HostFs, cpus: &CpuSet) -> Result<Vec<Change>, String> {
    let mut changes: Vec<Change> =
        file(fs, "housekeeping_cpus", WORKQUEUES, &mask(cpus), Form::Mask)?.into_iter().collect();
    let controllers = |name: &str| fs.text(format!("{GROUPS}/{name}")).unwrap_or_default();
    let has_cpuset = |list: &str| list.split_whitespace().any(|controller| controller == "cpuset");
    if !has_cpuset(&controllers("cgroup.controllers")) {
        return Ok(changes);
    }
    let is_on = has_cpuset(&controllers("cgroup.subtree_control"));
    if !is_on {
        changes.push(Change::File {
            path: format!("{GROUPS}/cgroup.subtree_control"),
            before: "-cpuset".to_owned(),
            during: "+cpuset".to_owned(),
            form: Form::Controllers,
        });
    }
    for group in fs.directories_in(GROUPS) {
        let path = format!("{GROUPS}/{group}/cpuset.cpus");
        // Enabling the controller creates the file, which is then empty: the group may use every CPU.
        let before = if is_on { read(fs, &path, Form::GroupCpus) } else { Some(String::new()) };
        let before = before.filter(|before| *before != cpus.to_string());
        changes.extend(before.map(|before| Change::File {
            path,
            before,
            during: cpus.to_string(),
            form: Form::GroupCpus,
        }));
    }
    Ok(changes)
}

/// Whether the groups below the root are confined; this process may be in one of them.
pub(super) fn leaves_its_group(prepare: &Prepare) -> bool {
    prepare.housekeeping_cpus.is_some()
}

/// Moves this process to the root group, with version 2: it measures the CPUs that the others may not use. Errors: one
/// line, when the kernel refuses.
pub(super) fn leave_group(fs: &HostFs) -> Result<(), String> {
    let path = fs.root.join(GROUPS).join("cgroup.procs");
    if !path.exists() {
        return Ok(());
    }
    std::fs::write(&path, "0").map_err(|err| format!("cannot move to the root group ({}): {err}", path.display()))
}

/// A CPU mask with as many hexadecimal digits as needed, in groups of eight, highest CPU first.
fn mask(cpus: &CpuSet) -> String {
    let words = cpus.iter().max().map_or(1, |highest| highest / 32 + 1);
    let word = |n: u32| cpus.iter().filter(|cpu| cpu / 32 == n).fold(0_u32, |bits, cpu| bits | 1 << (cpu % 32));
    let texts = (0..words).rev().map(|n| format!("{:08x}", word(n)));
    texts.collect::<Vec<_>>().join(",")
}

fn resolved(setting: &str, fs: &HostFs, cpus: &CpusAway, measured: &CpuSet) -> Result<CpuSet, String> {
    let online = fs.text("sys/devices/system/cpu/online").and_then(|list| list.parse().ok());
    let online: CpuSet = online.ok_or_else(|| format!("cannot set {setting}: the CPUs of this machine are unknown"))?;
    cpus.resolve(&online, measured).map_err(|err| format!("{setting}: {err}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_have_all_words_up_to_the_highest_cpu() {
        for (cpus, text) in [
            ("0", "00000001"),
            ("0-3", "0000000f"),
            ("31-32", "00000001,80000000"),
            ("64", "00000001,00000000,00000000"),
        ] {
            assert_eq!(mask(&cpus.parse().unwrap()), text);
        }
    }
}
