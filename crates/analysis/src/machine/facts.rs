//! Facts of a machine that affect latency, as texts: to detect changes and to distinguish machines.

use crate::machine::texts::*;
use punctual_model::{Host, Prepare, Roles, fnv1a};
use serde::Serialize;
use std::fmt;

/// A fact, its text, and its uses.
struct Fact {
    name: &'static str,
    text: fn(&Host) -> Option<String>,
    /// Whether it should stay the same during a run, because it does not change by itself.
    holds: bool,
    /// Whether it is part of the fingerprint: results of machines with different values are hard to compare. Facts that
    /// only root can read, or that differ from boot to boot, are not.
    compares: bool,
    /// Whether different values mean different machines, so that a latency of one tells nothing about the other.
    identifies: bool,
    /// Whether it is one about the co-kernel.
    is_of_cokernel: bool,
    /// Whether a cell with these settings changes it for its duration; another finding reports whether they persisted.
    is_made_by: fn(&Prepare) -> bool,
}

const fn shown(name: &'static str, text: fn(&Host) -> Option<String>) -> Fact {
    Fact { name, text, holds: false, compares: false, identifies: false, is_of_cokernel: false, is_made_by: |_| false }
}

const fn holds(name: &'static str, text: fn(&Host) -> Option<String>) -> Fact {
    Fact { holds: true, ..shown(name, text) }
}

const fn compares(name: &'static str, text: fn(&Host) -> Option<String>) -> Fact {
    Fact { compares: true, ..shown(name, text) }
}

const fn both(name: &'static str, text: fn(&Host) -> Option<String>) -> Fact {
    Fact { compares: true, ..holds(name, text) }
}

const fn identifies(name: &'static str, text: fn(&Host) -> Option<String>) -> Fact {
    Fact { identifies: true, ..both(name, text) }
}

impl Fact {
    const fn of_cokernel(self) -> Fact {
        Fact { is_of_cokernel: true, ..self }
    }

    const fn made_by(self, is_made_by: fn(&Prepare) -> bool) -> Fact {
        Fact { is_made_by, ..self }
    }
}

/// Clock sources that are read without a system call, in tens of nanoseconds (drivers/clocksource, Linux 6.12).
pub(crate) const FAST_CLOCKS: [&str; 6] =
    ["tsc", "kvm-clock", "hyperv_clocksource_tsc_page", "arch_sys_counter", "riscv_clocksource", "timebase"];

/// The fact about other threads with a real-time policy.
const OTHER_TASKS: &str = "other real-time tasks";

/// All facts. A golden file of the tests of `punctual doctor` has those of the fingerprint.
const FACTS: &[Fact] = &[
    holds("boot", |host| host.boot_id.clone()),
    both("kernel", |host| host.kernel_release.clone()),
    both("kernel version", |host| host.kernel_version.clone()),
    holds("command line", |host| host.command_line.clone()),
    compares("boot parameters", boot_parameters),
    both("preemption model", |host| host.preemption.map(|model| model.name().to_owned())),
    both("kernel options", |host| pairs(&host.kernel.options)),
    holds("tracer", |host| host.kernel.tracer.clone()),
    both("lock checking", |host| switch(host.kernel.lockdep)),
    both("expedited RCU", |host| both_switches(host.kernel.rcu_normal, host.kernel.rcu_expedited)),
    compares("consoles", |host| words(&host.kernel.consoles)),
    both("console level", |host| number(host.kernel.console_level)),
    identifies("machine", |host| host.platform.machine.clone()),
    both("firmware", |host| host.platform.firmware.clone()),
    identifies("hypervisor", |host| Some(host.hypervisor.clone().unwrap_or_else(|| "none seen".to_owned()))),
    both("container", |host| Some(host.container.clone().unwrap_or_else(|| "none seen".to_owned()))),
    identifies("architecture", |host| host.architecture.clone()),
    identifies("CPU model", |host| host.cpu_model.clone()),
    compares("CPU kinds", |host| groups(&host.processors.kinds, Clone::clone)),
    both("microcode", |host| groups(&host.processors.microcode, Clone::clone)),
    both("CPUs on line", |host| cpus(host.cpus_online.as_ref())),
    both("threads of a core", |host| switch(host.processors.smt_active)),
    both("memory nodes", |host| some_of(host.processors.nodes.len())),
    both("mitigations", |host| pairs(&host.processors.vulnerabilities)),
    both("clock source", |host| host.clock_source.clone()),
    both("timer", |host| groups(&host.clocks.timer_devices, Clone::clone)),
    both("frequency governor", |host| Some(host.governors.join(" "))).made_by(|prepare| prepare.governor.is_some()),
    both("frequency limits", frequency_limits),
    both("energy preference", |host| {
        groups(&host.power.frequency, |policy| policy.energy_preference.clone().unwrap_or_default())
    })
    .made_by(|prepare| prepare.governor.is_some()),
    both("turbo", |host| switch(host.power.turbo)),
    both("idle driver", |host| host.power.idle_driver.clone()),
    both("idle governor", |host| host.power.idle_governor.clone()),
    both("idle states", idle_states).made_by(|prepare| prepare.idle_latency.is_some()),
    both("guest_halt_poll_ns", |host| number(host.power.halt_poll_ns)),
    both("PCIe ASPM", |host| host.power.pcie_aspm.clone()),
    holds("PCI devices that may be suspended", |host| Some(host.power.suspendable.as_ref()?.join(" "))),
    holds("cache groups", |host| number(host.processors.cache_groups)),
    both("sched_rt_runtime_us", |host| number(host.rt_runtime_us))
        .made_by(|prepare| prepare.rt_runtime_us.is_some() || !prepare.files.is_empty()),
    both("sched_rt_period_us", |host| number(host.rt_period_us)),
    both("real-time budget of the group", |host| number(host.scheduling.cgroup_rt_runtime_us))
        .made_by(|prepare| prepare.rt_runtime_us.is_some() || prepare.cgroup.is_some()),
    both("CPU quota", |host| number(host.scheduling.cpu_quota_us)).made_by(|prepare| prepare.cgroup.is_some()),
    holds("fair server", |host| groups(&host.scheduling.fair_server_runtime_us, ToString::to_string)),
    holds("ext server", |host| groups(&host.scheduling.ext_server_runtime_us, ToString::to_string)),
    holds("energy-aware scheduling", |host| switch(host.scheduling.energy_aware)),
    both("sched_ext", |host| host.scheduling.sched_ext.clone()),
    both("autogroup", |host| switch(host.scheduling.autogroup)),
    both("isolated CPUs", |host| cpus(host.cpus_isolated.as_ref())),
    both("nohz_full", |host| cpus(host.scheduling.nohz_full.as_ref())),
    both("workqueue CPUs", |host| cpus(host.scheduling.workqueue_cpus.as_ref()))
        .made_by(|prepare| prepare.housekeeping_cpus.is_some()),
    both("timer migration", |host| switch(host.scheduling.timer_migration))
        .made_by(|prepare| prepare.timer_migration.is_some() || !prepare.files.is_empty()),
    both("NUMA balancing", |host| switch(host.scheduling.numa_balancing)),
    both("soft watchdog", |host| switch(host.scheduling.soft_watchdog)),
    both("NMI watchdog", |host| switch(host.scheduling.nmi_watchdog)),
    holds("interrupt affinities", irq_affinities).made_by(|prepare| prepare.irq_cpus.is_some()),
    holds("network interrupts", network_interrupts),
    both("default interrupt affinity", |host| cpus(host.interrupts.default_cpus.as_ref()))
        .made_by(|prepare| prepare.irq_cpus.is_some()),
    holds(OTHER_TASKS, other_tasks),
    both("daemons", |host| host.tasks.is_complete.then(|| host.tasks.daemons.join(" "))),
    both("transparent huge pages", |host| host.memory.huge_pages.clone())
        .made_by(|prepare| prepare.transparent_hugepages.is_some() || !prepare.files.is_empty()),
    both("swap, bytes", |host| number(host.memory.swap_bytes)),
    both("page merging", |host| switch(host.memory.ksm)),
    both("compaction", |host| number(host.memory.compaction_proactiveness)),
    both("compaction of locked pages", |host| switch(host.memory.compacts_locked_pages)),
    both("statistics interval, s", |host| number(host.memory.stat_interval_s)),
    // Fingerprints are stored, so that later facts stay out of them.
    holds("co-kernel", co_kernel).of_cokernel(),
    holds("co-kernel parameters", |host| pairs(&host.cokernel.as_ref()?.cobalt.as_ref()?.parameters)).of_cokernel(),
    holds("co-kernel CPUs", |host| cpus(host.cokernel.as_ref()?.cpus())).of_cokernel(),
    holds("co-kernel timer", co_kernel_timer).of_cokernel(),
    holds("gravity, ns", gravity).of_cokernel().made_by(|prepare| prepare.cobalt_gravity.is_some()),
    shown("mode switches", mode_switches).of_cokernel(),
    shown("co-kernel faults", co_kernel_faults).of_cokernel(),
];

/// A fact that differs between two hosts: its name and both texts.
pub type Difference = (&'static str, Option<String>, Option<String>);

/// The known facts of the co-kernel of `host`: names and texts.
pub fn of_cokernel(host: &Host) -> impl Iterator<Item = (&'static str, String)> {
    let facts = FACTS.iter().filter(|fact| fact.is_of_cokernel);
    facts.filter_map(|fact| Some((fact.name, (fact.text)(host)?)))
}

/// The names of all facts.
pub fn names() -> impl Iterator<Item = &'static str> {
    FACTS.iter().map(|fact| fact.name)
}

/// Texts of all facts of `host`, in the order of [`names`]; `None`: unknown.
pub fn all(host: &Host) -> impl Iterator<Item = Option<String>> {
    FACTS.iter().map(|fact| (fact.text)(host))
}

/// Texts of all facts of a host that is known from an imported file only. A text that an unknown machine has as well,
/// such as "none seen" for the hypervisor, is unknown.
pub fn told(host: &Host) -> Vec<Option<String>> {
    let unknown = Host::default();
    all(host).zip(all(&unknown)).map(|(fact, unknown)| if fact == unknown { None } else { fact }).collect()
}

/// Facts that should have stayed the same and differ from `earlier` to `later`. Facts that `prepare` changes for a
/// cell, or that another of its `roles` changes on this machine, do not count.
pub fn changes(earlier: &Host, later: &Host, prepare: &Prepare, roles: &Roles) -> Vec<Difference> {
    let is_made = |fact: &Fact| (fact.is_made_by)(prepare) || fact.name == OTHER_TASKS && !roles.is_empty();
    let held = FACTS.iter().filter(|fact| fact.holds && !is_made(fact));
    if earlier.interrupts == later.interrupts {
        return differing(held, earlier, later);
    }
    let with_shared = |host: &Host, other: &Host| {
        let interrupts = host.interrupts.shared_with(&other.interrupts);
        Host { interrupts, ..host.clone() }
    };
    differing(held, &with_shared(earlier, later), &with_shared(later, earlier))
}

/// Identity of a machine over its kernels and settings: 16 hexadecimal digits, a hash of its node name and of the facts
/// that distinguish machines. [`Fingerprint`] also changes with the kernel and each setting.
pub fn identity(host: &Host) -> String {
    let facts = FACTS.iter().filter(|fact| fact.identifies).map(|fact| (fact.name, (fact.text)(host)));
    let facts = std::iter::once(("node name", host.hostname.clone())).chain(facts);
    let lines = facts.map(|(name, text)| format!("{name}={}\n", text.unwrap_or_else(|| "?".to_owned())));
    format!("{:016x}", fnv1a(&lines.collect::<String>()))
}

/// The known facts of the fingerprint of `host`: names and texts.
pub fn compared(host: &Host) -> impl Iterator<Item = (&'static str, String)> {
    FACTS.iter().filter(|fact| fact.compares).filter_map(|fact| Some((fact.name, (fact.text)(host)?)))
}

/// Facts of the fingerprint that differ between `a` and `b`.
pub(crate) fn differences(a: &Host, b: &Host) -> Vec<Difference> {
    differing(FACTS.iter().filter(|fact| fact.compares), a, b)
}

/// Facts of the fingerprint that differ from `earlier` to `later`, except those that `prepare` changes for a cell.
pub(crate) fn differences_but_made(earlier: &Host, later: &Host, prepare: &Prepare) -> Vec<Difference> {
    differing(FACTS.iter().filter(|fact| fact.compares && !(fact.is_made_by)(prepare)), earlier, later)
}

/// The gravities of two hosts, if they are known and differ.
pub(crate) fn gravities(a: &Host, b: &Host) -> Option<Difference> {
    differing(FACTS.iter().filter(|fact| fact.name == "gravity, ns"), a, b).pop()
}

/// Whether different values of the fact with this name mean different machines.
pub(crate) fn tells_machines_apart(name: &str) -> bool {
    FACTS.iter().any(|fact| fact.identifies && fact.name == name)
}

/// Facts that differ between two hosts. A fact that is unknown for one of them does not differ.
fn differing<'a>(facts: impl Iterator<Item = &'a Fact>, a: &Host, b: &Host) -> Vec<Difference> {
    let texts = facts.map(|fact| (fact.name, (fact.text)(a), (fact.text)(b)));
    texts.filter(|(_, a, b)| a.is_some() && b.is_some() && a != b).collect()
}

/// Names of the facts of the fingerprint, in its order.
pub fn of_fingerprint() -> impl Iterator<Item = &'static str> {
    FACTS.iter().filter(|fact| fact.compares).map(|fact| fact.name)
}

/// Fingerprint of everything about a machine that affects results: 16 hexadecimal digits. Machines with the same
/// fingerprint are comparable; for others, the differing facts decide.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, schemars::JsonSchema)]
#[serde(transparent)]
pub struct Fingerprint(String);

impl Fingerprint {
    /// The fingerprint of `host`: a hash of the facts that [`of_fingerprint`] names.
    pub fn of(host: &Host) -> Fingerprint {
        let facts = FACTS.iter().filter(|fact| fact.compares);
        let lines =
            facts.map(|fact| format!("{}={}\n", fact.name, (fact.text)(host).unwrap_or_else(|| "?".to_owned())));
        Fingerprint(format!("{:016x}", fnv1a(&lines.collect::<String>())))
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::host;
    use punctual_model::{CoKernel, Cobalt, Gravity, ModeSwitches, RealtimeTask};

    #[test]
    fn a_machine_changes_only_where_both_sides_are_known() {
        let changes =
            |earlier: &Host, later: &Host| super::changes(earlier, later, &Prepare::default(), &Roles::default());
        assert_eq!(changes(&host(), &host()), []);
        assert_eq!(
            changes(&Host::default(), &host()),
            [("frequency governor", Some(String::new()), Some("performance".to_owned()))]
        );
        let mut later = host();
        later.memory.huge_pages = Some("always".to_owned());
        later.kernel.tracer = None;
        let expected = ("transparent huge pages", Some("madvise".to_owned()), Some("always".to_owned()));
        assert_eq!(changes(&host(), &later), [expected]);
    }

    #[test]
    fn what_changes_by_itself_is_no_change() {
        let mut later = host();
        later.platform.steal_ms = Some(77);
        later.platform.cpu_time_ms = Some(78);
        later.platform.hottest = None;
        later.platform.smi_count = Some(3);
        later.interrupts.groups[0].effective = None;
        later.interrupts.groups.push(punctual_model::IrqGroup::new(&[999], "0".parse().unwrap(), None));
        later.cpus_allowed = None;
        assert_eq!(changes(&host(), &later, &Prepare::default(), &Roles::default()), []);
        assert_eq!(Fingerprint::of(&host()), Fingerprint::of(&later));
    }

    #[test]
    fn the_fingerprint_is_stable_and_notices_what_matters() {
        let of = |change: fn(&mut Host)| {
            let mut host = host();
            change(&mut host);
            Fingerprint::of(&host).to_string()
        };
        let same = of(|_| ());
        assert_eq!(same, "caf3682ef07a0426", "results of this machine are compared by it for ever");
        assert_eq!(same, of(|host| host.hostname = None));
        assert_eq!(same, of(|host| host.boot_id = None));
        assert_eq!(same, of(|host| host.command_line.as_mut().unwrap().insert_str(0, "BOOT_IMAGE=/vmlinuz-2 ")));
        assert_eq!(same, of(|host| host.kernel.tracer = None), "only root can read it");
        let changes: [fn(&mut Host); 6] = [
            |host| host.command_line.as_mut().unwrap().push_str(" nosmt"),
            |host| host.kernel_release = Some("6.2".to_owned()),
            |host| host.governors.clear(),
            |host| host.hypervisor = Some("KVM".to_owned()),
            |host| host.power.idle_states[0].disabled = host.cpus_online.clone().unwrap(),
            |host| host.scheduling.nohz_full = None,
        ];
        for change in changes {
            assert_ne!(same, of(change));
        }
    }

    #[test]
    fn a_co_kernel_is_not_in_the_fingerprint_and_its_gravity_holds() {
        let gravity = |user_ns| Some(Gravity { irq_ns: Some(0), kernel_ns: None, user_ns });
        let mut with = host();
        let cobalt = Cobalt { version: Some("3.2.2".to_owned()), gravity: gravity(Some(2000)), ..Cobalt::default() };
        with.cokernel = Some(CoKernel { cobalt: Some(cobalt), ..CoKernel::default() });
        assert_eq!(Fingerprint::of(&host()), Fingerprint::of(&with));
        assert_eq!(differences(&host(), &with), []);
        let mut later = with.clone();
        let cobalt = later.cokernel.as_mut().unwrap().cobalt.as_mut().unwrap();
        (cobalt.gravity, cobalt.faults) = (gravity(Some(0)), Some([("Page fault".to_owned(), 1)].into()));
        cobalt.mode_switches = Some(ModeSwitches { threads: 1, switches: 9, most: None });
        let texts = ["irq 0, kernel ?, user 2000", "irq 0, kernel ?, user 0"].map(|text| Some(text.to_owned()));
        let [before, after] = texts;
        assert_eq!(changes(&with, &later, &Prepare::default(), &Roles::default()), [("gravity, ns", before, after)]);
    }

    #[test]
    fn a_target_on_the_same_machine_is_no_change() {
        let mut later = host();
        let thread = RealtimeTask {
            name: "measured/1".to_owned(),
            policy: "fifo".to_owned(),
            priority: Some(80),
            is_kernel: false,
            count: 1,
        };
        later.tasks.realtime = vec![thread];
        let changed = |roles: &Roles| changes(&host(), &later, &Prepare::default(), roles).len();
        let target = Roles { target: "here".parse().ok(), ..Roles::default() };
        assert_eq!((changed(&Roles::default()), changed(&target)), (1, 0));
    }

    #[test]
    fn what_a_cell_changes_itself_is_no_change() {
        let mut later = host();
        later.governors = vec!["powersave".to_owned()];
        later.scheduling.timer_migration = Some(true);
        let names = |prepare: &Prepare| {
            changes(&host(), &later, prepare, &Roles::default()).into_iter().map(|(name, ..)| name).collect::<Vec<_>>()
        };
        let mut prepare = Prepare::default();
        assert_eq!(names(&prepare), ["frequency governor", "timer migration"]);
        prepare.set("governor", "powersave").unwrap();
        assert_eq!(names(&prepare), ["timer migration"]);
        prepare.set("timer_migration", "on").unwrap();
        assert_eq!(names(&prepare), [""; 0]);
    }

    #[test]
    fn every_setting_of_a_cell_makes_its_facts() {
        let mut prepare = Prepare::default();
        for (key, value) in [
            ("governor", "performance"),
            ("idle_latency", "0us"),
            ("rt_runtime", "unlimited"),
            ("timer_migration", "off"),
            ("transparent_hugepages", "never"),
            ("irqbalance", "paused"),
            ("irq_cpus", "others"),
            ("housekeeping_cpus", "others"),
            ("cgroup", "/x"),
        ] {
            let _ = prepare.set(key, value);
        }
        let made: Vec<_> = FACTS.iter().filter(|fact| (fact.is_made_by)(&prepare)).map(|fact| fact.name).collect();
        assert_eq!(made.len(), 11, "{made:?}");
    }

    #[test]
    fn names_are_unique() {
        let names: std::collections::BTreeSet<_> = FACTS.iter().map(|fact| fact.name).collect();
        assert_eq!(names.len(), FACTS.len());
    }
}
