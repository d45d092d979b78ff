//! The first lines: which machine, and what was measured on it.

use super::lines::Lines;
use analysis::RunSummary;
use analysis::wording::{duration, things};
use model::{Header, Host};
use std::collections::BTreeSet;
use std::io;

pub(super) fn write(out: &mut dyn io::Write, header: &Header, summary: &RunSummary, lines: &Lines) -> io::Result<()> {
    machine(out, header, lines)?;
    lines.paragraph(out, "", &measured(header, summary))
}

/// This program and the machine.
pub(super) fn machine(out: &mut dyn io::Write, header: &Header, lines: &Lines) -> io::Result<()> {
    let mut machine = vec![header.tool.clone()];
    machine.extend(named(&header.host));
    lines.facts(out, &machine)
}

/// What is known of a machine that was not looked at by us: nothing is concluded from what is missing.
pub(super) fn known_facts(host: &Host) -> Vec<String> {
    let hypervisor = host.hypervisor.as_ref().map(|_| ground(host));
    let all = [host.hostname.clone(), processors(host), kernel(host), host.architecture.clone(), hypervisor];
    all.into_iter().flatten().collect()
}

/// What is known of the machine; what is not is left out.
pub(super) fn named(host: &Host) -> Vec<String> {
    let container = host.container.as_ref().map(|name| format!("container ({name})"));
    let all = [host.hostname.clone(), processors(host), kernel(host), Some(ground(host)), container];
    all.into_iter().flatten().collect()
}

fn processors(host: &Host) -> Option<String> {
    match (host.cpus_online.as_ref().map(model::CpuSet::len), &host.cpu_model) {
        (Some(n), Some(model)) => Some(format!("{n} x {model}")),
        (Some(n), None) => Some(things(u64::try_from(n).unwrap_or(0), "CPU")),
        (None, model) => model.clone(),
    }
}

fn kernel(host: &Host) -> Option<String> {
    let model = host.preemption.map(|model| format!(" ({})", model.name())).unwrap_or_default();
    host.kernel_release.as_ref().map(|release| format!("Linux {release}{model}"))
}

/// What the kernel runs on. On x86 a hypervisor shows itself unless it hides (a bit of CPUID); elsewhere it often does
/// not, so there its absence says little.
fn ground(host: &Host) -> String {
    match (&host.hypervisor, host.architecture.as_deref()) {
        (Some(name), _) => format!("virtual machine ({name})"),
        (None, Some("x86_64")) => "bare metal".to_owned(),
        (None, _) => "no hypervisor seen".to_owned(),
    }
}

/// How much was measured, and whatever is the same for all cells.
pub(super) fn measured(header: &Header, summary: &RunSummary) -> String {
    let span = |span: model::Span| duration(span.ns() as f64);
    let n_cells = u64::try_from(header.cells.len()).unwrap_or(0);
    let blocks = things(u64::from(header.plan.repetitions), "block");
    let durations: BTreeSet<_> = header.cells.iter().map(|cell| cell.duration).collect();
    let longest = durations.last().filter(|_| durations.len() > 1).map(|longest| format!(" to {}", span(*longest)));
    let shortest = durations.first().copied().unwrap_or(header.plan.duration);
    let duration = format!("{}{}", span(shortest), longest.unwrap_or_default());
    let mut parts = vec![format!("{} x {blocks} of {duration}", things(n_cells, "cell"))];
    let periods: BTreeSet<_> = header.cells.iter().map(|cell| cell.period).collect();
    let methods: BTreeSet<_> = header.cells.iter().map(|cell| cell.method).collect();
    if let ([period], [method]) = (&Vec::from_iter(periods)[..], &Vec::from_iter(methods)[..]) {
        parts.push(if method.waits() {
            format!("every {} by {method}", span(period.span()))
        } else {
            method.to_string()
        });
    }
    let cpus: BTreeSet<_> = header.cells.iter().map(|cell| &cell.cpus).collect();
    if let [cpus] = &Vec::from_iter(cpus)[..] {
        parts.push(format!("on CPU{} {cpus}", if cpus.len() == 1 { "" } else { "s" }));
    }
    let total = summary.cells.iter().map(|cell| cell.measured.ns()).sum();
    parts.push(format!("{} measured", span(model::Span(total))));
    let n_virtual = header.cells.iter().filter(|cell| cell.kernel.is_virtual()).count();
    if n_virtual > 0 {
        let all = if n_virtual == header.cells.len() { "all" } else { "in part" };
        parts.push(format!("{all} in virtual time (an instruction is a nanosecond)"));
    }
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bare_metal_is_said_only_where_a_hypervisor_would_show() {
        for (architecture, hypervisor, expected) in [
            (Some("x86_64"), None, "bare metal"),
            (Some("aarch64"), None, "no hypervisor seen"),
            (Some("i686"), None, "no hypervisor seen"),
            (None, None, "no hypervisor seen"),
            (Some("x86_64"), Some("KVM"), "virtual machine (KVM)"),
            (Some("aarch64"), Some("KVM"), "virtual machine (KVM)"),
        ] {
            let own = |text: Option<&str>| text.map(str::to_owned);
            let host = Host { architecture: own(architecture), hypervisor: own(hypervisor), ..Host::default() };
            assert_eq!(named(&host), [expected], "{architecture:?}");
        }
    }
}
