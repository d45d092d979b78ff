//! Findings about the machine: sources of latency, and reasons why the numbers mean something else.

use super::{Finding, throttling, when};
use crate::machine::facts::{self, FAST_CLOCKS};
use crate::wording::{facts_apart, things};
use punctual_model::{Entry, Header, Host, Kernel, LabClock, Preemption, Prepare};
use std::collections::{HashMap, HashSet};

finding!(
    /// A fact about the machine changed during the run.
    pub struct HostChanged {
        /// The fact.
        pub fact: &'static str,
        /// Value before.
        pub before: Option<String>,
        /// Value after.
        pub after: Option<String>,
        /// Number of further changes of it.
        pub more: u64,
    },
    importance = 4,
    {
        let (before, after) = facts_apart(before.as_deref(), after.as_deref());
        let more = if *more > 0 { format!(", then {}", things(*more, "other change")) } else { String::new() };
        format!("{fact} changed during the run: {before} before, {after} after{more}; blocks may not be comparable")
    },
    [
        HostChanged {
            fact: "frequency governor",
            before: Some("powersave".into()),
            after: Some("performance".into()),
            more: 0,
        },
        HostChanged {
            fact: "other real-time tasks",
            before: Some(String::new()),
            after: Some("1 x audio fifo:60".into()),
            more: 24,
        },
    ]
);

finding!(
    /// A condition, or a fact about the machine, differs from the baseline run.
    pub struct BaselineDiffers {
        /// The fact.
        pub fact: &'static str,
        /// Value in the baseline.
        pub baseline: Option<String>,
        /// Value in this run.
        pub now: Option<String>,
        /// Whether it prevents a comparison, which was forced.
        pub prevents: bool,
    },
    importance = 1,
    {
        let (baseline, now) = facts_apart(baseline.as_deref(), now.as_deref());
        let forced = if *prevents { "; not comparable (forced)" } else { "" };
        format!("{fact} differs from the baseline: {baseline} there, {now} here{forced}")
    },
    [BaselineDiffers {
        fact: "kernel",
        baseline: Some("6.1.0-30-rt".into()),
        now: Some("6.1.0-56-rt".into()),
        prevents: false
    }]
);

finding!(
    /// Measured in a guest with virtual time: its instructions are its clock.
    pub struct VirtualTime {
        /// Number of cells.
        pub cells: u64,
    },
    importance = 0,
    {
        let cells = things(*cells, "cell");
        format!(
            "virtual time in {cells}: each instruction takes 1 ns, nothing else takes time; use it to rank kernels, not \
             as a latency of hardware"
        )
    },
    [VirtualTime { cells: 4 }]
);

finding!(
    /// Measured in an emulated guest: a program of this machine translates its instructions.
    pub struct EmulatedTime {
        /// Number of cells.
        pub cells: u64,
    },
    importance = 0,
    {
        let cells = things(*cells, "cell");
        format!(
            "emulation in {cells}: latencies include QEMU's translation and other work of this machine; they show \
             behavior, not a latency of hardware"
        )
    },
    [EmulatedTime { cells: 2 }]
);

finding!(
    /// Measured in a guest of this machine.
    pub struct GuestTime {
        /// Number of cells.
        pub cells: u64,
    },
    importance = 0,
    {
        let cells = things(*cells, "cell");
        format!("KVM guests in {cells}: latencies include those of this machine's kernel")
    },
    [GuestTime { cells: 2 }]
);

finding!(
    /// Measured inside a virtual machine.
    pub struct VirtualMachine {
        /// The hypervisor.
        pub hypervisor: String,
    },
    importance = 4,
    format!(
        "virtual machine ({hypervisor}): the host can preempt it at any time; the numbers do not bound those of \
             the hardware"
    ),
    [VirtualMachine { hypervisor: "KVM".into() }]
);

finding!(
    /// Measured inside a container.
    pub struct Container {
        /// Its kind.
        pub container: String,
    },
    importance = 9,
    format!("container ({container}): its CPU limits and privileges are part of the result"),
    [Container { container: "docker".into() }]
);

finding!(
    /// The kernel is not `PREEMPT_RT`.
    pub struct NotRealtimeKernel {
        /// Its preemption model.
        pub preemption: Preemption,
    },
    importance = 7,
    {
        let is = preemption.name();
        format!(
            "{is} kernel, not PREEMPT_RT: parts of it delay real-time threads; see: punctual doctor preemption-model"
        )
    },
    [NotRealtimeKernel { preemption: Preemption::Voluntary }]
);

finding!(
    /// CPUs ramp up slowly after idling.
    pub struct Governor {
        /// Governors in use.
        pub governors: Vec<String>,
    },
    importance = 7,
    format!(
        "frequency governor {}: CPUs may be slow after idle; use --prepare governor=performance",
        governors.join(" ")
    ),
    [Governor { governors: vec!["powersave".into()] }]
);

finding!(
    /// The clock is slow to read.
    pub struct ClockSource {
        /// Its name.
        pub clock_source: String,
    },
    importance = 8,
    format!("clock source {clock_source}: slow to read, and part of each latency; see: punctual doctor clock-source"),
    [ClockSource { clock_source: "hpet".into() }]
);

/// Findings from the machine at the start, and from how it changed until the end.
pub(super) fn findings(header: &Header, entries: &[Entry]) -> Vec<Finding> {
    // Where a target was started, the target is the measured machine.
    let of_target = entries.iter().find_map(|entry| entry.record.response.as_ref()?.target.as_ref()?.host.as_deref());
    let host = of_target.unwrap_or(&header.host);
    let here = || header.cells.iter().filter(|cell| cell.kernel.is_here());
    let in_guests = |clock| header.cells.iter().filter(|cell| cell.kernel.clock() == Some(clock)).count() as u64;
    let realtime_cells = here().any(|cell| cell.policy.is_realtime());
    let mut findings = changes(header, entries);
    let [simulated, emulated, kvm] = [LabClock::Virtual, LabClock::Emulated, LabClock::Kvm].map(in_guests);
    findings.extend(when(simulated > 0, VirtualTime { cells: simulated }));
    findings.extend(when(emulated > 0, EmulatedTime { cells: emulated }));
    findings.extend(when(kvm > 0, GuestTime { cells: kvm }));
    if here().next().is_none() {
        // The findings below are about cells on the running kernel.
        return findings;
    }
    findings.extend(host.hypervisor.clone().map(|hypervisor| Finding::from(VirtualMachine { hypervisor })));
    findings.extend(host.container.clone().map(|container| Finding::from(Container { container })));
    if realtime_cells {
        let preemption = host.preemption.filter(|model| *model != Preemption::Realtime);
        findings.extend(preemption.map(|preemption| Finding::from(NotRealtimeKernel { preemption })));
        findings.extend(throttling::of_host(host));
    }
    let is_slow = host.governors.iter().any(|governor| governor != "performance");
    findings.extend(when(is_slow, Governor { governors: host.governors.clone() }));
    let slow_clock = host.clock_source.clone().filter(|clock| !FAST_CLOCKS.contains(&clock.as_str()));
    findings.extend(slow_clock.map(|clock_source| Finding::from(ClockSource { clock_source })));
    findings
}

/// Facts that changed between the start of the run and its end, each once, with its first change.
///
/// A cell on another kernel is compared only with itself.
fn changes(header: &Header, entries: &[Entry]) -> Vec<Finding> {
    let mut changes: Vec<HostChanged> = Vec::new();
    let mut seen = HashSet::new();
    // Changes made for cells are in effect from the first of these cells on.
    let none = Prepare::default();
    let mut prepared: HashMap<&Prepare, &Host> = HashMap::from([(&none, &header.host)]);
    for entry in entries {
        let record = &entry.record;
        let start = *prepared.entry(&record.cell.conditions.prepare).or_insert(&record.host_before);
        let here = matches!(record.cell.kernel, Kernel::Running) && !record.cell.conditions.roles.is_logged_elsewhere();
        let pairs = [(here, start, &*record.host_before), (true, &*record.host_before, &*record.host_after)];
        for (_, earlier, later) in pairs.into_iter().filter(|(compare, ..)| *compare) {
            for (fact, before, after) in
                facts::changes(earlier, later, &record.cell.conditions.prepare, &record.cell.conditions.roles)
            {
                let is_new = seen.insert((fact, before.clone(), after.clone()));
                match changes.iter_mut().find(|known| known.fact == fact) {
                    Some(known) => known.more += u64::from(is_new),
                    None => changes.push(HostChanged { fact, before, after, more: 0 }),
                }
            }
        }
    }
    changes.into_iter().map(Finding::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::{FairServer, RtThrottling};
    use crate::testing::{RunBuilder, host};
    use punctual_model::Host;

    fn found(host: Host, policy: &str) -> Vec<Finding> {
        let mut run = RunBuilder::new();
        run.header.host = host.clone();
        run.cell("none", policy);
        run.measure(0, 0, |_, _| 5_000);
        run.entries[0].record.host_before = host.clone().into();
        run.entries[0].record.host_after = host.into();
        findings(&run.header, &run.entries)
    }

    #[test]
    fn a_good_machine_has_no_findings() {
        assert_eq!(found(host(), "fifo:80"), []);
        assert_eq!(found(Host::default(), "fifo:80"), [], "what is unknown is not held against it");
    }

    #[test]
    fn each_fact_has_its_finding() {
        let (vm, docker) = (Some("KVM".to_owned()), Some("docker".to_owned()));
        for (host, finding) in [
            (Host { hypervisor: vm, ..host() }, VirtualMachine { hypervisor: "KVM".into() }.into()),
            (Host { container: docker, ..host() }, Container { container: "docker".into() }.into()),
            (Host { clock_source: Some("hpet".into()), ..host() }, ClockSource { clock_source: "hpet".into() }.into()),
            (
                Host { governors: vec!["performance".into(), "powersave".into()], ..host() },
                Governor { governors: vec!["performance".into(), "powersave".into()] }.into(),
            ),
        ] {
            for policy in ["other", "fifo:80"] {
                assert_eq!(found(host.clone(), policy), std::slice::from_ref(&finding));
            }
        }
    }

    #[test]
    fn what_is_doubtful_is_so_on_the_machine_that_was_measured() {
        let mut run = RunBuilder::new();
        run.header.host = Host { governors: vec!["powersave".into()], ..host() };
        run.cell("none", "fifo:80");
        run.measure(0, 0, |_, _| 5_000);
        let record = &mut run.entries[0].record;
        (record.host_before, record.host_after) = (run.header.host.clone().into(), run.header.host.clone().into());
        let on_target = Host { container: Some("docker".to_owned()), ..host() };
        record.response = Some(crate::testing::response(on_target));
        let found = findings(&run.header, &run.entries);
        assert_eq!(found, [Container { container: "docker".into() }.into()]);
    }

    #[test]
    fn what_concerns_real_time_threads_needs_one() {
        let throttled = Host { rt_runtime_us: Some(950_000), preemption: Some(Preemption::Full), ..host() };
        assert_eq!(found(throttled.clone(), "other"), []);
        let findings = found(throttled, "fifo:80");
        let throttling = Finding::from(RtThrottling { runtime_us: 950_000, period_us: 1_000_000 });
        assert_eq!(findings, [NotRealtimeKernel { preemption: Preemption::Full }.into(), throttling]);
        for runtime in [None, Some(-1), Some(1_000_000)] {
            assert_eq!(found(Host { rt_runtime_us: runtime, ..host() }, "fifo:80"), [], "{runtime:?}");
        }
    }

    #[test]
    fn the_fair_server_takes_the_place_of_throttling() {
        let on = |release: &str, runtime_us| Host {
            kernel_release: (!release.is_empty()).then(|| release.to_owned()),
            rt_runtime_us: runtime_us,
            ..host()
        };
        let throttling = Finding::from(RtThrottling { runtime_us: 950_000, period_us: 1_000_000 });
        let fair_server = Finding::from(FairServer { runtime_us: 50_000, period_us: 1_000_000 });
        assert_eq!(throttling.importance(), fair_server.importance());
        for (release, runtime_us, finding) in [
            ("6.11.9", Some(950_000), Some(&throttling)),
            ("6.11.9", Some(-1), None),
            ("6.12.0-rt", Some(950_000), Some(&fair_server)),
            ("6.12.0-rt", Some(-1), Some(&fair_server)),
            ("7.0", None, Some(&fair_server)),
            ("", Some(950_000), Some(&throttling)),
        ] {
            let findings = found(on(release, runtime_us), "fifo:80");
            assert_eq!(findings.iter().collect::<Vec<_>>(), Vec::from_iter(finding), "{release} {runtime_us:?}");
            assert_eq!(found(on(release, runtime_us), "other"), [], "{release}");
        }
    }

    #[test]
    fn settings_of_some_cells_are_no_changes_of_the_others() {
        let mut run = RunBuilder::new();
        run.cell("none", "other").cell("none", "other");
        let file = "/sys/devices/system/cpu/cpufreq/policy0/scaling_governor=powersave";
        run.header.cells[1].conditions.prepare = file.parse().unwrap();
        let powersave = Host { governors: vec!["powersave".into()], ..host() };
        for (block, cell) in [(0, 1), (0, 0), (1, 0), (1, 1)] {
            run.measure(block, cell, |_, _| 5_000);
            let record = &mut run.entries.last_mut().unwrap().record;
            if cell == 1 {
                (record.host_before, record.host_after) = (powersave.clone().into(), powersave.clone().into());
            }
        }
        assert_eq!(changes(&run.header, &run.entries), []);
        run.entries[2].record.host_after = powersave.into();
        assert_eq!(changes(&run.header, &run.entries).len(), 1, "not restored");
    }

    #[test]
    fn a_change_is_found_once() {
        let mut run = RunBuilder::new();
        run.cell("none", "other");
        run.measure(0, 0, |_, _| 5_000);
        run.measure(1, 0, |_, _| 5_000);
        let powersave = Host { governors: vec!["powersave".into()], ..host() };
        run.entries[0].record.host_after = powersave.clone().into();
        run.entries[1].record.host_before = powersave.clone().into();
        run.entries[1].record.host_after = powersave.into();
        let change = Finding::from(HostChanged {
            fact: "frequency governor",
            before: Some("performance".into()),
            after: Some("powersave".into()),
            more: 0,
        });
        assert_eq!(findings(&run.header, &run.entries), [change]);
        // Back and forth: one finding for the fact.
        run.measure(2, 0, |_, _| 5_000);
        run.entries[2].record.host_before = run.entries[1].record.host_after.clone();
        let Finding::HostChanged(change) = &findings(&run.header, &run.entries)[0] else { panic!("a change") };
        assert_eq!((change.fact, change.more), ("frequency governor", 1));
    }
}
