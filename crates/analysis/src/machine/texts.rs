//! Text forms of facts.

use punctual_model::{CpuSet, Host, NetworkDevice, OnCpus};
use std::collections::BTreeMap;
use std::fmt::Display;

/// Boot parameters that name files and disks, which differ between machines of the same kind.
const PLACES: [&str; 9] =
    ["BOOT_IMAGE", "initrd", "ip", "ostree", "resume", "root", "rootflags", "systemd.machine_id", "rd.luks.uuid"];

pub(super) fn boot_parameters(host: &Host) -> Option<String> {
    let words = host.command_line.as_deref()?.split_whitespace();
    let kept = words.filter(|word| !PLACES.contains(&word.split('=').next().unwrap_or_default()));
    Some(kept.collect::<Vec<_>>().join(" "))
}

pub(super) fn frequency_limits(host: &Host) -> Option<String> {
    groups(&host.power.frequency, |policy| {
        let khz = |khz: Option<u64>| khz.map_or_else(|| "?".to_owned(), |khz| khz.to_string());
        let driver = policy.driver.as_deref().unwrap_or("?");
        format!("{driver} {}-{} kHz", khz(policy.min_khz), khz(policy.max_khz))
    })
}

pub(super) fn idle_states(host: &Host) -> Option<String> {
    let state = |state: &punctual_model::IdleState| {
        let off = if state.disabled.is_empty() { String::new() } else { format!(" off on {}", state.disabled) };
        format!("{}{off}", state.name)
    };
    let states: Vec<_> = host.power.idle_states.iter().map(state).collect();
    (!states.is_empty()).then(|| states.join(", "))
}

/// Affinities of interrupts; `None` if irqbalance runs, because it changes them.
pub(super) fn irq_affinities(host: &Host) -> Option<String> {
    let is_balanced = host.tasks.daemons.iter().any(|daemon| daemon == "irqbalance");
    // The effective affinity may change within the allowed one.
    let mut may: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for group in &host.interrupts.groups {
        may.entry(group.cpus.to_string()).or_default().push(&group.irqs);
    }
    let texts: Vec<_> = may.into_iter().map(|(cpus, irqs)| format!("{} to {cpus}", irqs.join(","))).collect();
    (!is_balanced && !texts.is_empty()).then(|| texts.join("; "))
}

pub(super) fn other_tasks(host: &Host) -> Option<String> {
    let others = host.tasks.realtime.iter().filter(|task| !task.is_kernel);
    let texts = others.map(|task| {
        let priority = task.priority.map(|priority| format!(":{priority}")).unwrap_or_default();
        format!("{} x {} {}{priority}", task.count, task.name, task.policy)
    });
    host.tasks.is_complete.then(|| texts.collect::<Vec<_>>().join(", "))
}

/// The co-kernel and its interrupt pipeline: `Cobalt 3.2.2 on Dovetail`.
pub(super) fn co_kernel(host: &Host) -> Option<String> {
    let it = host.cokernel.as_ref()?;
    let has_core = it.cobalt.is_some() || it.evl.is_some();
    let below = it.pipeline.filter(|_| has_core).map(|pipeline| format!(" on {}", pipeline.name()));
    Some(format!("{}{}", it.name()?, below.unwrap_or_default()))
}

pub(super) fn co_kernel_timer(host: &Host) -> Option<String> {
    let cobalt = host.cokernel.as_ref()?.cobalt.as_ref()?;
    let named = [("timer", &cobalt.timer), ("clock", &cobalt.clock)];
    let texts = named.into_iter().filter_map(|(word, name)| Some(format!("{word} {}", name.as_ref()?)));
    Some(texts.collect::<Vec<_>>().join(", ")).filter(|text| !text.is_empty())
}

pub(super) fn gravity(host: &Host) -> Option<String> {
    let values = host.cokernel.as_ref()?.gravity()?.values();
    let text = |(name, ns): (&str, Option<i64>)| format!("{name} {}", number(ns).unwrap_or_else(|| "?".to_owned()));
    Some(values.map(text).join(", "))
}

/// Switches of all real-time threads: `9 by 3 threads, 7 of them by logger`.
pub(super) fn mode_switches(host: &Host) -> Option<String> {
    let it = host.cokernel.as_ref()?.mode_switches()?;
    let most = it.most.as_ref().map(|most| format!(", {} of them by {}", most.switches, most.name));
    let threads = crate::wording::things(u64::from(it.threads), "thread");
    Some(format!("{} by {threads}{}", it.switches, most.unwrap_or_default()))
}

pub(super) fn co_kernel_faults(host: &Host) -> Option<String> {
    let faults = host.cokernel.as_ref()?.cobalt.as_ref()?.faults.as_ref()?;
    Some(pairs(faults).unwrap_or_else(|| "none".to_owned()))
}

pub(super) fn switch(on: Option<bool>) -> Option<String> {
    on.map(|on| if on { "on" } else { "off" }.to_owned())
}

pub(super) fn both_switches(normal: Option<bool>, expedited: Option<bool>) -> Option<String> {
    Some(format!("normal {}, expedited {}", switch(normal)?, switch(expedited)?))
}

pub(super) fn number<T: ToString>(number: Option<T>) -> Option<String> {
    number.map(|number| number.to_string())
}

pub(super) fn some_of(count: usize) -> Option<String> {
    (count > 0).then(|| count.to_string())
}

/// What each network device holds back, and whether its link sleeps.
pub(super) fn network_interrupts(host: &Host) -> Option<String> {
    let text = |value: Option<String>| value.unwrap_or_else(|| "?".to_owned());
    let one = |device: &NetworkDevice| {
        let (us, adapts) = (text(number(device.rx_delay_us)), text(switch(device.rx_adapts)));
        format!("{} {us} us adaptive {adapts} EEE {}", device.name, text(switch(device.link_sleeps)))
    };
    (!host.network.is_empty()).then(|| host.network.iter().map(one).collect::<Vec<_>>().join(", "))
}

pub(super) fn cpus(cpus: Option<&CpuSet>) -> Option<String> {
    cpus.map(ToString::to_string)
}

pub(super) fn words(words: &[String]) -> Option<String> {
    (!words.is_empty()).then(|| words.join(" "))
}

pub(super) fn pairs<T: Display>(pairs: &BTreeMap<String, T>) -> Option<String> {
    let texts: Vec<_> = pairs.iter().map(|(name, value)| format!("{name}={value}")).collect();
    (!texts.is_empty()).then(|| texts.join(", "))
}

pub(super) fn groups<T>(groups: &[OnCpus<T>], text: impl Fn(&T) -> String) -> Option<String> {
    let texts: Vec<_> = groups.iter().map(|group| format!("{}: {}", group.cpus, text(&group.value))).collect();
    (!texts.is_empty()).then(|| texts.join(", "))
}
