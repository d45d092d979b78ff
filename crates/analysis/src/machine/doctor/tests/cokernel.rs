//! Machines with a co-kernel, and advice on them.

use super::*;
use punctual_model::{CoKernel, Cobalt, Evl, Gravity};

/// A machine on which Cobalt runs on both CPUs, with this change.
fn cobalt(host: &mut Host, change: impl FnOnce(&mut CoKernel, &mut Cobalt)) {
    let mut cobalt = Cobalt {
        is_initialized: Some(true),
        gravity: Some(gravity(0)),
        cpus: Some(cpus("0-1")),
        faults: Some([].into()),
        has_smi_chipset: Some(true),
        ..Cobalt::default()
    };
    let mut cokernel = CoKernel { proxy_cpus: Some(cpus("0-1")), ..CoKernel::default() };
    change(&mut cokernel, &mut cobalt);
    host.cokernel = Some(CoKernel { cobalt: Some(cobalt), ..cokernel });
}

fn evl(host: &mut Host, change: impl FnOnce(&mut Evl)) {
    let mut evl = Evl { state: own("running"), cpus: Some(cpus("0-1")), gravity: Some(gravity(0)), ..Evl::default() };
    change(&mut evl);
    host.cokernel = Some(CoKernel { evl: Some(evl), proxy_cpus: Some(cpus("0-1")), ..CoKernel::default() });
}

fn gravity(user_ns: i64) -> Gravity {
    Gravity { irq_ns: Some(0), kernel_ns: Some(user_ns), user_ns: Some(user_ns) }
}

fn parameter(cobalt: &mut Cobalt, name: &str, value: &str) {
    cobalt.parameters.insert(name.to_owned(), value.to_owned());
}

fn stopped(cokernel: &mut CoKernel) {
    cokernel.proxy_cpus = Some(cpus(""));
}

#[rustfmt::skip]
pub(super) const ROWS: &[Row] = &[
    ("co-kernel-state", |_| (), NotApplicable),
    ("co-kernel-state", |h| cobalt(h, |_, _| ()), Good),
    ("co-kernel-state", |h| cobalt(h, |k, _| k.proxy_cpus = None), Good),
    ("co-kernel-state", |h| cobalt(h, |k, _| stopped(k)), May),
    ("co-kernel-state", |h| cobalt(h, |k, c| { stopped(k); parameter(c, "state", "stopped") }), May),
    ("co-kernel-state", |h| cobalt(h, |k, c| { k.proxy_cpus = None; parameter(c, "state", "stopped") }), Unknown),
    ("co-kernel-state", |h| cobalt(h, |k, c| { stopped(k); c.is_initialized = Some(false); parameter(c, "state", "disabled") }), May),
    ("co-kernel-state", |h| cobalt(h, |k, c| { stopped(k); c.is_initialized = Some(false) }), May),
    ("co-kernel-state", |h| cobalt(h, |_, c| c.is_initialized = None), Unknown),
    ("co-kernel-state", |h| evl(h, |_| ()), Good),
    ("co-kernel-state", |h| evl(h, |e| e.state = own("stopped")), May),
    ("co-kernel-state", |h| evl(h, |e| e.state = own("warmup")), Unknown),
    ("co-kernel-state", |h| evl(h, |e| e.state = None), Unknown),
    ("co-kernel-gravity", |h| cobalt(h, |_, c| { c.is_initialized = Some(false); c.gravity = None }), NotApplicable),
    ("co-kernel-faults", |h| cobalt(h, |_, c| { c.is_initialized = Some(false); c.faults = None }), NotApplicable),
    ("co-kernel-timer", |h| cobalt(h, |_, _| ()), Good),
    ("co-kernel-timer", |h| { cobalt(h, |k, _| stopped(k)); boot(h, "nolapic_timer") }, May),
    ("co-kernel-timer", |h| { cobalt(h, |_, _| ()); boot(h, "nolapic_timer") }, Good),
    ("co-kernel-timer", |h| { cobalt(h, |k, _| stopped(k)); h.clocks.timer_devices[0].value = "pit".into() }, May),
    ("co-kernel-timer", |h| cobalt(h, |k, _| stopped(k)), Good),
    ("co-kernel-timer", |h| cobalt(h, |k, _| k.proxy_cpus = None), Unknown),
    ("co-kernel-gravity", |h| cobalt(h, |_, _| ()), Good),
    ("co-kernel-gravity", |h| cobalt(h, |_, c| c.gravity = Some(gravity(1))), May),
    ("co-kernel-gravity", |h| cobalt(h, |_, c| c.gravity = Some(gravity(-1))), May),
    ("co-kernel-gravity", |h| cobalt(h, |_, c| c.gravity = Some(Gravity { user_ns: Some(0), ..Gravity::default() })), Good),
    ("co-kernel-gravity", |h| cobalt(h, |_, c| c.gravity = None), Unknown),
    ("co-kernel-gravity", |h| evl(h, |e| e.gravity = Some(gravity(3500))), May),
    ("co-kernel-cpus", |h| cobalt(h, |_, _| ()), Good),
    ("co-kernel-cpus", |h| cobalt(h, |_, c| c.cpus = Some(cpus("0"))), May),
    ("co-kernel-cpus", |h| { cobalt(h, |_, c| c.cpus = Some(cpus("0"))); h.cpus_isolated = Some(cpus("")) }, NotApplicable),
    ("co-kernel-cpus", |h| cobalt(h, |_, c| c.cpus = None), Unknown),
    ("co-kernel-cpus", |h| evl(h, |e| e.cpus = Some(cpus("0"))), May),
    ("co-kernel-faults", |h| cobalt(h, |_, _| ()), Good),
    ("co-kernel-faults", |h| cobalt(h, |_, c| c.faults = Some([("Page fault".into(), 1)].into())), May),
    ("co-kernel-faults", |h| cobalt(h, |_, c| c.faults = Some([("Int3".into(), 1)].into())), Good),
    ("co-kernel-faults", |h| cobalt(h, |_, c| c.faults = None), Unknown),
    ("co-kernel-faults", |h| evl(h, |_| ()), NotApplicable),
    ("co-kernel-governor", |h| cobalt(h, |_, _| ()), Good),
    ("co-kernel-governor", |h| { cobalt(h, |_, _| ()); h.governors = vec!["performance".into(), "schedutil".into()] }, May),
    ("co-kernel-governor", |h| { cobalt(h, |_, _| ()); h.governors = vec!["powersave".into()] }, Good),
    ("co-kernel-governor", |h| { evl(h, |_| ()); h.governors.clear() }, NotApplicable),
    ("co-kernel-smi", |h| { cobalt(h, |_, _| ()); h.platform.smi_count = Some(1) }, May),
    ("co-kernel-smi", |h| { cobalt(h, |_, c| parameter(c, "smi", "-1")); h.platform.smi_count = Some(1) }, May),
    ("co-kernel-smi", |h| { cobalt(h, |_, c| parameter(c, "smi", "enabled")); h.platform.smi_count = Some(1) }, Good),
    ("co-kernel-smi", |h| { cobalt(h, |_, _| ()); h.platform.smi_count = Some(0) }, Good),
    ("co-kernel-smi", |h| cobalt(h, |_, _| ()), Unknown),
    ("co-kernel-smi", |h| { cobalt(h, |_, c| c.has_smi_chipset = Some(false)); h.platform.smi_count = Some(1) }, NotApplicable),
    ("co-kernel-smi", |h| { cobalt(h, |_, c| c.has_smi_chipset = None); h.platform.smi_count = Some(1) }, Unknown),
    ("co-kernel-smi", |h| { cobalt(h, |_, _| ()); h.platform.smi_count = Some(1); guest(h) }, NotApplicable),
];

#[test]
fn advice_fits_the_co_kernel() {
    let advice = |name: &str, host: &Host| {
        let check = checks().find(|check| check.name == name).unwrap();
        let remedy = check.examine(host).outcome.remedy.unwrap();
        (remedy.change, remedy.undo)
    };
    let own = |(change, undo): (&str, &str)| (change.to_owned(), undo.to_owned());
    let mut host = host();
    let clock = "/proc/xenomai/clock/coreclk";
    cobalt(&mut host, |_, it| it.gravity = Some(Gravity { irq_ns: Some(7), ..gravity(3350) }));
    let (zero, before) = (format!("echo 0u 0k 0i > {clock}"), format!("echo 3350u 3350k 7i > {clock}"));
    assert_eq!(advice("co-kernel-gravity", &host), (zero, before));
    cobalt(&mut host, |_, it| it.gravity = Some(Gravity { user_ns: Some(2000), ..Gravity::default() }));
    let by_latency = ("echo 0 > /proc/xenomai/latency", "echo 2000 > /proc/xenomai/latency");
    assert_eq!(advice("co-kernel-gravity", &host), own(by_latency));
    evl(&mut host, |it| it.gravity = Some(gravity(3500)));
    let clock = "/sys/devices/virtual/clock/monotonic/gravity";
    assert_eq!(advice("co-kernel-gravity", &host).1, format!("echo 3500u 3500k 0i > {clock}"));

    host.cpus_isolated = Some(cpus("1-2"));
    evl(&mut host, |it| it.cpus = Some(cpus("0")));
    assert_eq!(advice("co-kernel-cpus", &host).0, "kernel parameter evl.oob_cpus=0-2");
    cobalt(&mut host, |_, it| it.cpus = Some(cpus("0")));
    assert_eq!(advice("co-kernel-cpus", &host).0, "kernel parameter xenomai.supported_cpus=0x7");
    let no_cpu_0 = |_: &mut CoKernel, it: &mut Cobalt| it.cpus = Some(cpus("1"));
    cobalt(&mut host, no_cpu_0);
    assert_eq!(advice("co-kernel-cpus", &host).0, "kernel parameter xenomai.supported_cpus=0x7", "with CPU 0");
    for all in ["18446744073709551615", "0xf"] {
        cobalt(&mut host, |cokernel, it| {
            no_cpu_0(cokernel, it);
            parameter(it, "supported_cpus", all);
        });
        let by_affinity = ("echo 0x6 > /proc/xenomai/affinity", "echo 0x2 > /proc/xenomai/affinity");
        assert_eq!(advice("co-kernel-cpus", &host), own(by_affinity), "supported, and not used");
    }
    cobalt(&mut host, no_cpu_0);
    boot(&mut host, "xenomai.supported_cpus=3");
    assert_eq!(advice("co-kernel-cpus", &host).1, "kernel parameter xenomai.supported_cpus=3");
    host.cpus_isolated = Some(cpus("64"));
    assert!(advice("co-kernel-cpus", &host).0.starts_with("isolate CPUs below 64"));
}

#[test]
fn the_built_in_gravity_is_told_from_a_tuned_one() {
    for (architecture, user_ns, irq_ns, is_default) in [
        ("x86_64", 2000, 0, true),
        ("x86_64", 3350, 0, true),
        ("x86_64", 3351, 0, false),
        ("x86_64", 2000, 1, false),
        ("aarch64", 5000, 0, true),
        ("aarch64", 2000, 0, false),
        ("ppc64le", 5000, 0, false),
    ] {
        let mut host = Host { architecture: own(architecture), ..host() };
        cobalt(&mut host, |_, it| it.gravity = Some(Gravity { irq_ns: Some(irq_ns), ..gravity(user_ns) }));
        let found = checks().find(|check| check.name == "co-kernel-gravity").unwrap().examine(&host).outcome.found;
        assert_eq!(found.contains("built-in default"), is_default, "{architecture} {user_ns}: {found}");
    }
}
