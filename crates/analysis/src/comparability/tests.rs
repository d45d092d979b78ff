//! What is compared on purpose, and what cannot be.

use super::*;
use crate::testing::{RunBuilder, cell, host};
use model::{Prepare, Span};

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
    // How a requirement or a load is judged is no condition of the latency.
    assert_eq!(of_cells(|cell| cell.load_must_hold = model::Percent::new(50), &[]), []);
}

#[test]
fn what_is_waited_for_prevents_a_comparison_unless_it_is_asked_about() {
    let half = |cell: &mut Cell| cell.period = "500us".parse().unwrap();
    // A miss is one of the period, where there is no other deadline.
    assert_eq!(of_cells(half, &[]), [("period", Role::Prevents), ("deadline", Role::Beside)]);
    assert_eq!(of_cells(half, &["method"])[0], ("period", Role::Prevents));
    assert_eq!(of_cells(half, &["period"])[0], ("period", Role::Asked));
    for method in ["timerfd", "clock_nanosleep:realtime", "clock_nanosleep:relative", "sleep:python3"] {
        let other = |cell: &mut Cell| cell.method = method.parse().unwrap();
        assert_eq!(of_cells(other, &["period", "policy"]), [("method", Role::Prevents)], "{method}");
        assert_eq!(of_cells(other, &["method"]), [("method", Role::Asked)], "{method}");
    }
}

#[test]
fn answers_of_other_machines_are_not_compared() {
    assert_eq!(of_cells(|cell| cell.roles.target = "ssh:board".parse().ok(), &["load"]), [("roles", Role::Prevents)]);
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
        ("warm-up", &|cell| cell.warm_up = Span::SECOND),
        ("timer slack", &|cell| cell.timer_slack = Some(Span(1_000))),
        ("align", &|cell| cell.align = Some(Span(0))),
        ("memory", &|cell| cell.lock_memory = false),
        ("cpu_dma_latency, us", &|cell| cell.cpu_dma_latency_us = None),
        ("CPUs of the load", &|cell| cell.load_cpus = Some(cpus(0))),
        ("policy of the load", &|cell| cell.load_policy = Some("batch".parse().unwrap())),
        ("settings made", &|cell| cell.prepare = Prepare { timer_migration: Some(false), ..Prepare::default() }),
    ];
    for (fact, change) in changes {
        assert_eq!(of_cells(change, &[]), [(fact, Role::Beside)]);
    }
    assert_eq!(of_cells(|cell| cell.policy = "rr:80".parse().unwrap(), &["policy"]), [("policy", Role::Asked)]);
}

#[test]
fn another_machine_prevents_a_comparison_and_another_configuration_does_not() {
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
        ("preemption model", Role::Beside, &|host| host.preemption = Some(model::Preemption::None)),
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
    assert_eq!(of_hosts(|host| (host.boot_id, host.hostname) = (None, text("other"))), [], "no part of a fingerprint");
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
         (Cortex-A53 and Cortex-A76), so a ratio would be of nothing"
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
    run.header.plan.prepare = Prepare { timer_migration: Some(false), ..Prepare::default() };
    assert_eq!(facts(&run), ["CPU model", "frequency governor"]);
    run.header.plan.prepare.governor = Some("performance".to_owned());
    assert_eq!(facts(&run), ["CPU model"]);
}
