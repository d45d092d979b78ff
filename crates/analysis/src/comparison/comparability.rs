//! Differences between two measurements, and the rule for which of them prevent a comparison of latencies.
//!
//! Conditions that are varied to see their effect are shown with the answer: kernel, governor, policy, load. Conditions
//! that change the meaning of a latency prevent an answer: the period, the method of waiting, and the machine. A
//! difference of this kind is allowed if it is the axis under comparison.

use crate::machine::facts;
use crate::wording::facts_apart;
use punctual_model::{Cell, Conditions, Explain, Header, Host, Kernel, Mark};
use serde::Serialize;
use std::collections::BTreeSet;
use std::fmt;

/// Conditions that prevent a comparison unless they are under comparison. The method includes its clock; roles name
/// machines.
const PREVENTING: &[&str] = &["time", "period", "period step", "method", "roles"];

/// Facts by which a guest's kernel names its machine, if it can (SMBIOS). A lean kernel cannot, on the same machine of
/// QEMU; clock and architecture tell guests apart.
const NAMED_BY_KERNEL: &[&str] = &["hypervisor", "machine"];

/// A condition, or a fact about the machine, that is not the same for both.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, schemars::JsonSchema)]
pub struct Difference {
    /// Name of the condition or fact.
    pub fact: &'static str,
    /// Its value for the first; `None`: unknown.
    pub a: Option<String>,
    /// Its value for the second; `None`: unknown.
    pub b: Option<String>,
    /// Its effect on the comparison.
    pub role: Role,
}

/// Effect of a difference on a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Prevents it: a ratio of such latencies is meaningless.
    Prevents,
    /// Contributes to the ratio, in addition to the conditions under comparison.
    Beside,
    /// Is a condition under comparison.
    Asked,
}

/// `period (1ms and 200us)`.
impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (a, b) = facts_apart(self.a.as_deref(), self.b.as_deref());
        write!(f, "{} ({a} and {b})", self.fact)
    }
}

/// Differences between two measurements, each a cell on a machine. `asked` holds the axes of
/// [`punctual_model::Selector::AXES`] under comparison.
pub fn differences(a: (&Cell, &Host), b: (&Cell, &Host), asked: &[&str]) -> Vec<Difference> {
    let conditions = conditions(a.0).into_iter().zip(conditions(b.0)).filter(|(a, b)| a != b);
    let conditions = conditions.map(|((fact, a), (_, b))| {
        let role = match () {
            () if asked.contains(&fact) => Role::Asked,
            () if PREVENTING.contains(&fact) => Role::Prevents,
            () => Role::Beside,
        };
        Difference { fact, a: Some(a), b: Some(b), role }
    });
    let are_guests = [a.0, b.0].iter().all(|cell| matches!(cell.kernel, Kernel::Lab(_)));
    let of_machines = of_machines(a.1, b.1).into_iter().map(|one| match one.role {
        Role::Prevents if are_guests && NAMED_BY_KERNEL.contains(&one.fact) => Difference { role: Role::Beside, ..one },
        _ => one,
    });
    // With another gravity latencies have another zero.
    let gravity = [a.0, b.0].iter().any(|cell| cell.task.feels_gravity()).then(|| facts::gravities(a.1, b.1)).flatten();
    let gravity = gravity.map(|(fact, a, b)| Difference { fact, a, b, role: Role::Prevents });
    conditions.chain(of_machines).chain(gravity).collect()
}

/// Differences between a machine now and at the start of a run, without the settings that the run's plan makes itself.
pub fn since(header: &Header, now: &Host) -> Vec<Difference> {
    with_roles(facts::differences_but_made(&header.host, now, &header.plan.settings()))
}

/// Differences between two machines.
fn of_machines(a: &Host, b: &Host) -> Vec<Difference> {
    // Fast path: most pairs are of one machine, and thousands of records hold the same snapshot.
    if a == b { Vec::new() } else { with_roles(facts::differences(a, b)) }
}

fn with_roles(facts: Vec<facts::Difference>) -> Vec<Difference> {
    let role = |fact| if facts::tells_machines_apart(fact) { Role::Prevents } else { Role::Beside };
    facts.into_iter().map(|(fact, a, b)| Difference { fact, a, b, role: role(fact) }).collect()
}

/// Differences between two runs as a whole: conditions with different sets of values, and facts of the machines at
/// their start.
pub fn of_runs(a: &Header, b: &Header) -> Vec<Difference> {
    let values = |header: &Header, index: usize| -> String {
        let of_cell = |cell| conditions(cell).into_iter().nth(index).map(|(_, value)| value);
        let values: BTreeSet<String> = header.cells.iter().filter_map(of_cell).collect();
        values.into_iter().collect::<Vec<_>>().join(", ")
    };
    let names = a.cells.first().map(conditions).unwrap_or_default();
    let conditions = names.iter().enumerate().filter(|_| !b.cells.is_empty()).filter_map(|(index, (fact, _))| {
        let (a, b) = (values(a, index), values(b, index));
        let role = if PREVENTING.contains(fact) { Role::Prevents } else { Role::Beside };
        (a != b).then_some(Difference { fact, a: Some(a), b: Some(b), role })
    });
    conditions.chain(of_machines(&a.host, &b.host)).collect()
}

/// Says `differences` in one sentence for each role, those that prevent a comparison first.
pub(super) fn remarks<'a>(differences: impl Iterator<Item = &'a Difference>) -> Vec<String> {
    let (preventing, beside): (Vec<_>, Vec<_>) = differences.partition(|one| one.role == Role::Prevents);
    let joined = |all: Vec<&Difference>| all.into_iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let roles = [("Not comparable (forced)", preventing), ("Also different", beside)];
    roles
        .into_iter()
        .filter(|(_, all)| !all.is_empty())
        .map(|(head, all)| format!("{head}: {}.", joined(all)))
        .collect()
}

/// All conditions of a cell, as texts in a fixed order.
fn conditions(cell: &Cell) -> Vec<(&'static str, String)> {
    let Cell { kernel, load, policy, period, task, cpus, duration, deadline: _, lock_memory, load_cpus, conditions } =
        cell;
    let Conditions {
        warm_up,
        timer_slack,
        align,
        distance,
        period_step,
        cpu_dma_latency_us,
        load_policy,
        load_must_hold: _,
        prepare,
        explain,
        stop_above: _,
        // Runs outside the measured CPUs.
        on_spike: _,
        marks,
        // Run after the cell.
        tracers: _,
        roles,
    } = conditions;
    fn or<T: ToString>(value: Option<&T>, otherwise: &str) -> String {
        value.map_or(otherwise.to_owned(), ToString::to_string)
    }
    vec![
        ("time", kernel.time().to_owned()),
        ("kernel", kernel.to_string()),
        ("load", load.to_string()),
        ("policy", policy.to_string()),
        ("period", period.to_string()),
        ("method", task.to_string()),
        ("measured CPUs", cpus.to_string()),
        ("duration", duration.to_string()),
        ("warm-up", warm_up.to_string()),
        ("deadline", cell.deadline().to_string()),
        ("timer slack", or(timer_slack.as_ref(), "the kernel's")),
        ("align", or(align.as_ref(), "none")),
        ("distance", or(distance.as_ref(), "none")),
        ("period step", or(period_step.as_ref(), "none")),
        ("memory", if *lock_memory { "locked" } else { "not locked" }.to_owned()),
        ("cpu_dma_latency, us", or(cpu_dma_latency_us.as_ref(), "left alone")),
        ("CPUs of the load", or(load_cpus.as_ref(), "all")),
        ("policy of the load", or(load_policy.as_ref(), "other")),
        ("prepare", prepare.to_string()),
        ("roles", if roles.is_empty() { "none".to_owned() } else { roles.to_string() }),
        ("marks", if marks.is_empty() { "none".to_owned() } else { texts(marks).join(", ") }),
        ("traced", explain.as_ref().map_or("no", traced).to_owned()),
    ]
}

fn texts(marks: &[Mark]) -> Vec<String> {
    marks.iter().map(Mark::to_string).collect()
}

/// Tracing overhead added to every wake-up. The number of explained wake-ups does not add to it.
fn traced(asked: &Explain) -> &'static str {
    match (asked.stacks, asked.witness.is_some()) {
        (false, false) => "yes",
        (true, false) => "with stacks",
        (false, true) => "with a witness",
        (true, true) => "with stacks and a witness",
    }
}

/// One sentence that names the differences that prevent a comparison; `None` if there are none.
pub fn why_not(differences: &[Difference]) -> Option<String> {
    let preventing: Vec<_> = differences.iter().filter(|difference| difference.role == Role::Prevents).collect();
    let named = preventing.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    (!preventing.is_empty()).then(|| format!("not comparable: they differ in {named}, so a ratio would be meaningless"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{RunBuilder, cell, host};
    use punctual_model::{CoKernel, Cobalt, Gravity, Prepare, Span};

    fn of_cells(change: impl Fn(&mut Cell), asked: &[&str]) -> Vec<(&'static str, Role)> {
        let mut other = cell("none", "other");
        change(&mut other);
        let found = differences((&cell("none", "other"), &host()), (&other, &host()), asked);
        found.into_iter().map(|one| (one.fact, one.role)).collect()
    }

    fn of_hosts(change: impl Fn(&mut Host)) -> Vec<(&'static str, Role)> {
        let mut other = host();
        change(&mut other);
        of_machines(&host(), &other).into_iter().map(|one| (one.fact, one.role)).collect()
    }

    #[test]
    fn equal_measurements_do_not_differ() {
        assert_eq!((of_cells(|_| (), &[]), of_hosts(|_| ())), (Vec::new(), Vec::new()));
        assert_eq!(why_not(&[]), None);
        // The limits of a verdict or a load do not change the latency.
        assert_eq!(of_cells(|cell| cell.conditions.load_must_hold = punctual_model::Percent::new(50), &[]), []);
    }

    #[test]
    fn what_is_waited_for_prevents_a_comparison_unless_it_is_asked_about() {
        let half = |cell: &mut Cell| cell.period = "500us".parse().unwrap();
        // The deadline defaults to the period.
        assert_eq!(of_cells(half, &[]), [("period", Role::Prevents), ("deadline", Role::Beside)]);
        assert_eq!(of_cells(half, &["method"])[0], ("period", Role::Prevents));
        assert_eq!(of_cells(half, &["period"])[0], ("period", Role::Asked));
        for method in ["timerfd", "clock_nanosleep:realtime", "clock_nanosleep:relative", "sleep:python3"] {
            let other = |cell: &mut Cell| cell.task = method.parse().unwrap();
            assert_eq!(of_cells(other, &["period", "policy"]), [("method", Role::Prevents)], "{method}");
            assert_eq!(of_cells(other, &["method"]), [("method", Role::Asked)], "{method}");
        }
    }

    #[test]
    fn answers_of_other_machines_are_not_compared() {
        assert_eq!(
            of_cells(|cell| cell.conditions.roles.target = "ssh:board".parse().ok(), &["load"]),
            [("roles", Role::Prevents)]
        );
    }

    #[test]
    fn threads_of_different_periods_are_not_compared_with_threads_of_one() {
        let step = |cell: &mut Cell| cell.conditions.period_step = Some(Span(500_000));
        assert_eq!(of_cells(step, &["load"]), [("period step", Role::Prevents)]);
    }

    #[test]
    fn what_is_changed_on_purpose_is_shown() {
        let cpus = |cpu: u32| [cpu].into_iter().collect();
        type Changes<'a> = [(&'a str, &'a dyn Fn(&mut Cell)); 12];
        let changes: Changes<'_> = [
            ("load", &|cell| cell.load = "messaging".parse().unwrap()),
            ("policy", &|cell| cell.policy = "fifo:80".parse().unwrap()),
            ("measured CPUs", &|cell| cell.cpus = cpus(1)),
            ("duration", &|cell| cell.duration = Span::SECOND),
            ("warm-up", &|cell| cell.conditions.warm_up = Span::SECOND),
            ("timer slack", &|cell| cell.conditions.timer_slack = Some(Span(1_000))),
            ("align", &|cell| cell.conditions.align = Some(Span(0))),
            ("memory", &|cell| cell.lock_memory = false),
            ("cpu_dma_latency, us", &|cell| cell.conditions.cpu_dma_latency_us = None),
            ("CPUs of the load", &|cell| cell.load_cpus = Some(cpus(0))),
            ("policy of the load", &|cell| cell.conditions.load_policy = Some("batch".parse().unwrap())),
            ("prepare", &|cell| {
                cell.conditions.prepare = Prepare { timer_migration: Some(false), ..Prepare::default() }
            }),
        ];
        for (fact, change) in changes {
            assert_eq!(of_cells(change, &[]), [(fact, Role::Beside)]);
        }
        assert_eq!(of_cells(|cell| cell.policy = "rr:80".parse().unwrap(), &["policy"]), [("policy", Role::Asked)]);
    }

    #[test]
    fn another_machine_prevents_a_comparison_but_a_setting_does_not() {
        let text = |text: &str| Some(text.to_owned());
        type Changes<'a> = [(&'a str, Role, &'a dyn Fn(&mut Host)); 11];
        let changes: Changes<'_> = [
            ("CPU model", Role::Prevents, &|host| host.cpu_model = text("Cortex-A76")),
            ("architecture", Role::Prevents, &|host| host.architecture = text("riscv64")),
            ("hypervisor", Role::Prevents, &|host| host.hypervisor = text("KVM")),
            ("machine", Role::Prevents, &|host| host.platform.machine = text("Board 8")),
            ("kernel", Role::Beside, &|host| host.kernel_release = text("6.12.0")),
            ("boot parameters", Role::Beside, &|host| host.command_line = text("mitigations=off")),
            ("container", Role::Beside, &|host| host.container = text("docker")),
            ("frequency governor", Role::Beside, &|host| host.governors = vec!["powersave".to_owned()]),
            ("clock source", Role::Beside, &|host| host.clock_source = text("hpet")),
            ("preemption model", Role::Beside, &|host| host.preemption = Some(punctual_model::Preemption::None)),
            ("transparent huge pages", Role::Beside, &|host| host.memory.huge_pages = text("always")),
        ];
        for (fact, role, change) in changes {
            assert_eq!(of_hosts(change), [(fact, role)]);
        }
        let mitigations = |host: &mut Host| {
            host.processors.vulnerabilities = [("spectre_v2".to_owned(), "Vulnerable".to_owned())].into();
        };
        assert_eq!(of_hosts(mitigations), [], "unknown of one");
        assert_eq!(of_hosts(|host| host.cpu_model = None), [], "unknown of one");
        assert_eq!(
            of_hosts(|host| (host.boot_id, host.hostname) = (None, text("other"))),
            [],
            "no part of a fingerprint"
        );
    }

    #[test]
    fn latencies_of_a_co_kernel_with_another_gravity_are_not_compared() {
        let of = |user_ns| {
            let gravity = Some(Gravity { irq_ns: Some(0), kernel_ns: Some(user_ns), user_ns: Some(user_ns) });
            let cobalt = Some(Cobalt { gravity, ..Cobalt::default() });
            Host { cokernel: Some(CoKernel { cobalt, ..CoKernel::default() }), ..host() }
        };
        let role = |task: &str, gravity: [i64; 2]| {
            let cell = Cell { task: task.parse().unwrap(), ..cell("none", "fifo:80") };
            let found = differences((&cell, &of(gravity[0])), (&cell, &of(gravity[1])), &[]);
            found.into_iter().find(|one| one.fact == "gravity, ns").map(|one| one.role)
        };
        assert_eq!(role("clock_nanosleep", [0, 2000]), None);
        assert_eq!(role("cobalt", [0, 2000]), Some(Role::Prevents));
        assert_eq!(role("program:xenomai-latency:latency", [0, 2000]), Some(Role::Prevents));
        assert_eq!(role("program:cyclictest:cyclictest", [0, 2000]), None);
        assert_eq!(role("cobalt", [2000, 2000]), None);
    }

    #[test]
    fn a_guest_whose_kernel_cannot_name_its_machine_is_on_the_same_one() {
        let lean = Host { hypervisor: Some("unnamed".to_owned()), ..host() };
        let named = Host { hypervisor: Some("QEMU Standard PC".to_owned()), ..host() };
        for (kernels, role) in [
            (["running", "running"], Role::Prevents),
            (["running", "/k/lean"], Role::Prevents),
            (["debian:6.1", "/k/lean"], Role::Beside),
        ] {
            let [a, b] = kernels.map(|kernel| Cell { kernel: kernel.parse().unwrap(), ..cell("none", "other") });
            let found = differences((&a, &named), (&b, &lean), &["kernel"]);
            let of_machine = found.iter().find(|one| one.fact == "hypervisor").unwrap();
            assert_eq!(of_machine.role, role, "{kernels:?}");
        }
    }

    #[test]
    fn the_line_names_all_that_prevents_and_nothing_else() {
        let mut other = cell("messaging", "other");
        other.period = "200us".parse().unwrap();
        let machine = Host { cpu_model: Some("Cortex-A76".to_owned()), hypervisor: Some("KVM".to_owned()), ..host() };
        let found = differences((&cell("none", "other"), &host()), (&other, &machine), &[]);
        assert_eq!(
            why_not(&found).unwrap(),
            "not comparable: they differ in period (1ms and 200us), hypervisor (none seen and KVM), CPU model \
             (Cortex-A53 and Cortex-A76), so a ratio would be meaningless"
        );
        assert_eq!(found.iter().filter(|one| one.role == Role::Beside).count(), 2, "load, deadline: {found:?}");
    }

    #[test]
    fn runs_differ_where_their_sets_of_values_do() {
        let (mut a, mut b) = (RunBuilder::new(), RunBuilder::new());
        a.cell("none", "other").cell("none", "fifo:80");
        b.cell("none", "fifo:80").cell("none", "other");
        assert_eq!(of_runs(&a.header, &b.header), []);
        b.cell("messaging", "other");
        b.header.cells[2].period = "2ms".parse().unwrap();
        b.header.host.kernel_release = Some("6.12.0".to_owned());
        let found: Vec<_> = of_runs(&a.header, &b.header).iter().map(ToString::to_string).collect();
        assert_eq!(
            found,
            [
                "load (none and messaging, none)",
                "period (1ms and 1ms, 2ms)",
                "deadline (1ms and 1ms, 2ms)",
                "kernel (6.1.0-21-rt-arm64 and 6.12.0)"
            ]
        );
        assert_eq!(of_runs(&a.header, &RunBuilder::new().header), [], "without any cell");
    }

    #[test]
    fn what_a_plan_sets_itself_is_no_difference_when_its_run_goes_on() {
        let mut run = RunBuilder::new();
        run.cell("none", "other");
        let mut now = host();
        (now.governors, now.scheduling.timer_migration) = (vec!["powersave".to_owned()], Some(true));
        (now.boot_id, now.cpu_model) = (Some("b8".to_owned()), Some("Cortex-A76".to_owned()));
        let facts = |run: &RunBuilder| since(&run.header, &now).into_iter().map(|one| one.fact).collect::<Vec<_>>();
        assert_eq!(facts(&run), ["CPU model", "frequency governor", "timer migration"], "a boot is none");
        run.header.plan.conditions.prepare = Prepare { timer_migration: Some(false), ..Prepare::default() };
        assert_eq!(facts(&run), ["CPU model", "frequency governor"]);
        run.header.plan.conditions.prepare.governor = Some("performance".to_owned());
        assert_eq!(facts(&run), ["CPU model"]);
    }
}
