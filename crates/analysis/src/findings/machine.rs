//! What about the machine makes it late, or makes the numbers about something else.

use super::{Finding, Limiter};
use crate::machine::facts::{self, FAST_CLOCKS};
use model::{Entry, Header, Host, Kernel, LabClock, Preemption};

/// Findings from the machine at the start, and from how it changed until the end.
pub(super) fn findings(header: &Header, entries: &[Entry]) -> Vec<Finding> {
    // Where a target was started, it is what was measured.
    let of_target = entries.iter().find_map(|entry| entry.record.response.as_ref()?.target.as_ref()?.host.as_deref());
    let host = of_target.unwrap_or(&header.host);
    let here = || header.cells.iter().filter(|cell| cell.kernel == Kernel::Running);
    let in_guests = |clock| header.cells.iter().filter(|cell| cell.kernel.clock() == Some(clock)).count();
    let realtime_cells = here().any(|cell| cell.policy.is_realtime());
    let mut findings = changes(header, entries);
    for clock in [LabClock::Virtual, LabClock::Emulated, LabClock::Kvm] {
        match (clock, u64::try_from(in_guests(clock)).unwrap_or(u64::MAX)) {
            (_, 0) => {}
            (LabClock::Virtual, cells) => findings.push(Finding::VirtualTime { cells }),
            (LabClock::Emulated, cells) => findings.push(Finding::EmulatedTime { cells }),
            (LabClock::Kvm, cells) => findings.push(Finding::GuestTime { cells }),
        }
    }
    if here().next().is_none() {
        // What follows is about cells on the kernel that runs here.
        return findings;
    }
    findings.extend(host.hypervisor.clone().map(|hypervisor| Finding::VirtualMachine { hypervisor }));
    findings.extend(host.container.clone().map(|container| Finding::Container { container }));
    if realtime_cells {
        let preemption = host.preemption.filter(|model| *model != Preemption::Realtime);
        findings.extend(preemption.map(|preemption| Finding::NotRealtimeKernel { preemption }));
        findings.extend(realtime_share(host).map(|Share { runtime_us, period_us, limiter }| match limiter {
            Limiter::Throttling => Finding::RtThrottling { runtime_us, period_us },
            Limiter::FairServer => Finding::FairServer { runtime_us: period_us - runtime_us, period_us },
        }));
    }
    if host.governors.iter().any(|governor| governor != "performance") {
        findings.push(Finding::Governor { governors: host.governors.clone() });
    }
    let slow_clock = host.clock_source.clone().filter(|clock| !FAST_CLOCKS.contains(&clock.as_str()));
    findings.extend(slow_clock.map(|clock_source| Finding::ClockSource { clock_source }));
    findings
}

/// How much of a CPU real-time threads may use while normal ones want it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Share {
    /// What they may use of each period, us; less than the period.
    pub(super) runtime_us: u64,
    /// The period, us.
    pub(super) period_us: u64,
    /// What sees to it.
    pub(super) limiter: Limiter,
}

/// The default of Linux 6.12: 50 ms of each second are for normal threads, whatever `sched_rt_runtime_us` says
/// (kernel/sched/deadline.c, `fair_server_init`). It can be changed, but only debugfs tells.
const WITH_FAIR_SERVER: Share = Share { runtime_us: 950_000, period_us: 1_000_000, limiter: Limiter::FairServer };

/// `None` when nothing stops real-time threads or it is unknown.
pub(super) fn realtime_share(host: &Host) -> Option<Share> {
    if host.has_fair_server() == Some(true) {
        return Some(WITH_FAIR_SERVER);
    }
    let runtime_us = u64::try_from(host.rt_runtime_us?).ok()?;
    let period_us = host.rt_period_us?;
    (runtime_us < period_us).then_some(Share { runtime_us, period_us, limiter: Limiter::Throttling })
}

/// Facts that should hold from the start of the run to its end but did not; each change once.
///
/// A cell on another kernel is compared only with itself.
fn changes(header: &Header, entries: &[Entry]) -> Vec<Finding> {
    let mut changes = Vec::new();
    // What the cells change themselves is so from the first of them on.
    let prepared = entries.first().filter(|_| !header.plan.conditions.prepare.is_empty());
    let start = prepared.map_or(&header.host, |entry| &*entry.record.host_before);
    for entry in entries {
        let record = &entry.record;
        let here = matches!(record.cell.kernel, Kernel::Running) && !record.cell.conditions.roles.is_logged_elsewhere();
        let pairs = [(here, start, &*record.host_before), (true, &*record.host_before, &*record.host_after)];
        for (_, earlier, later) in pairs.into_iter().filter(|(compare, ..)| *compare) {
            for (fact, before, after) in
                facts::changes(earlier, later, &record.cell.conditions.prepare, &record.cell.conditions.roles)
            {
                let change = Finding::HostChanged { fact, before, after };
                if !changes.contains(&change) {
                    changes.push(change);
                }
            }
        }
    }
    changes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{RunBuilder, host};

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
            (Host { hypervisor: vm, ..host() }, Finding::VirtualMachine { hypervisor: "KVM".into() }),
            (Host { container: docker, ..host() }, Finding::Container { container: "docker".into() }),
            (
                Host { clock_source: Some("hpet".into()), ..host() },
                Finding::ClockSource { clock_source: "hpet".into() },
            ),
            (
                Host { governors: vec!["performance".into(), "powersave".into()], ..host() },
                Finding::Governor { governors: vec!["performance".into(), "powersave".into()] },
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
        assert_eq!(found, [Finding::Container { container: "docker".into() }]);
    }

    #[test]
    fn what_concerns_real_time_threads_needs_one() {
        let throttled = Host { rt_runtime_us: Some(950_000), preemption: Some(Preemption::Full), ..host() };
        assert_eq!(found(throttled.clone(), "other"), []);
        let findings = found(throttled, "fifo:80");
        let throttling = Finding::RtThrottling { runtime_us: 950_000, period_us: 1_000_000 };
        assert_eq!(findings, [Finding::NotRealtimeKernel { preemption: Preemption::Full }, throttling]);
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
        let throttling = Finding::RtThrottling { runtime_us: 950_000, period_us: 1_000_000 };
        let fair_server = Finding::FairServer { runtime_us: 50_000, period_us: 1_000_000 };
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
    fn a_change_is_found_once() {
        let mut run = RunBuilder::new();
        run.cell("none", "other");
        run.measure(0, 0, |_, _| 5_000);
        run.measure(1, 0, |_, _| 5_000);
        let powersave = Host { governors: vec!["powersave".into()], ..host() };
        run.entries[0].record.host_after = powersave.clone().into();
        run.entries[1].record.host_before = powersave.clone().into();
        run.entries[1].record.host_after = powersave.into();
        let change = Finding::HostChanged {
            fact: "frequency governor",
            before: Some("performance".into()),
            after: Some("powersave".into()),
        };
        assert_eq!(findings(&run.header, &run.entries), [change]);
    }
}
