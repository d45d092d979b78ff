//! The machine: its facts, the extent of the measurement, and its changes meanwhile.

use crate::lines::Lines;
use punctual_analysis::wording::{duration, things};
use punctual_analysis::{ImportedSummary, RunSummary, facts};
use punctual_model::{Entry, Header, Host, Order, Task};
use std::collections::{BTreeMap, BTreeSet};
use std::io;

/// Writes this program and the machine.
pub(crate) fn write(out: &mut dyn io::Write, header: &Header, lines: &Lines) -> io::Result<()> {
    let mut machine = vec![header.tool.clone()];
    machine.extend(measured_on(header));
    lines.facts(out, &machine)
}

/// The measured machine, or guests whose virtual time does not depend on it.
pub(crate) fn measured_on(header: &Header) -> Vec<String> {
    const NAMED: usize = 4;
    if !header.is_virtual() {
        return named(&header.host);
    }
    let mut seen = BTreeSet::new();
    let kernels = header.cells.iter().map(|cell| cell.kernel.to_string()).filter(|name| seen.insert(name.clone()));
    let mut kernels: Vec<_> = kernels.collect();
    let more = kernels.len().saturating_sub(NAMED);
    kernels.truncate(NAMED);
    let guests = std::iter::once("guests of QEMU in virtual time".to_owned());
    guests.chain(kernels).chain((more > 0).then(|| format!("{more} more kernels"))).collect()
}

/// Known facts of a machine that was not examined here: absence permits no conclusion.
pub(crate) fn known_facts(host: &Host) -> Vec<String> {
    let hypervisor = host.hypervisor.as_ref().map(|_| ground(host));
    let all =
        [host.hostname.clone(), processors(host), kernel(host), cokernel(host), host.architecture.clone(), hypervisor];
    all.into_iter().flatten().collect()
}

/// Known facts of the machine.
pub(crate) fn named(host: &Host) -> Vec<String> {
    let container = host.container.as_ref().map(|name| format!("container ({name})"));
    let all = [host.hostname.clone(), processors(host), kernel(host), cokernel(host), Some(ground(host)), container];
    all.into_iter().flatten().collect()
}

fn processors(host: &Host) -> Option<String> {
    match (host.cpus_online.as_ref().map(punctual_model::CpuSet::len), &host.cpu_model) {
        (Some(n), Some(model)) => Some(format!("{n} x {model}")),
        (Some(n), None) => Some(things(u64::try_from(n).unwrap_or(0), "CPU")),
        (None, model) => model.clone(),
    }
}

fn kernel(host: &Host) -> Option<String> {
    let model = host.preemption.map(|model| format!(" ({})", model.name())).unwrap_or_default();
    host.kernel_release.as_ref().map(|release| format!("Linux {release}{model}"))
}

/// The co-kernel, with the gravity that its programs' latencies are smaller by.
fn cokernel(host: &Host) -> Option<String> {
    let it = host.cokernel.as_ref()?;
    let gravity = it.gravity().and_then(|gravity| gravity.user_ns).filter(|ns| *ns != 0);
    Some(it.name()? + &gravity.map(|ns| format!(" (gravity {ns} ns)")).unwrap_or_default())
}

/// Platform of the kernel. On x86 a hypervisor announces itself unless it hides (a bit of CPUID); on other
/// architectures it often does not, so its absence has little meaning.
fn ground(host: &Host) -> String {
    match (&host.hypervisor, host.architecture.as_deref()) {
        (Some(name), _) => format!("virtual machine ({name})"),
        (None, Some("x86_64")) => "bare metal".to_owned(),
        (None, _) => "no hypervisor seen".to_owned(),
    }
}

/// Extent of the measurement, and the values common to all cells.
pub(crate) fn measured(header: &Header, summary: &RunSummary) -> String {
    let span = |span: punctual_model::Span| duration(span.ns() as f64);
    let n_cells = u64::try_from(header.cells.len()).unwrap_or(0);
    let blocks = things(u64::from(header.plan.repetitions), "block");
    let durations: BTreeSet<_> = header.cells.iter().map(|cell| cell.duration).collect();
    let longest = durations.last().filter(|_| durations.len() > 1).map(|longest| format!(" to {}", span(*longest)));
    let shortest = durations.first().copied().unwrap_or(header.plan.duration);
    let duration = format!("{}{}", span(shortest), longest.unwrap_or_default());
    let mut parts = vec![format!("{} x {blocks} of {duration}", things(n_cells, "cell"))];
    parts.extend(header.shard.map(|shard| format!("shard {shard} of them")));
    let periods: BTreeSet<_> = header.cells.iter().map(|cell| (cell.period, cell.longest_period())).collect();
    let methods: BTreeSet<_> = header.cells.iter().map(|cell| &cell.task).collect();
    if let ([(shortest, longest)], [method]) = (&Vec::from_iter(periods)[..], &Vec::from_iter(methods)[..]) {
        parts.push(if method.has_latencies() {
            let to = if longest > shortest { format!(" to {}", span(longest.span())) } else { String::new() };
            match method {
                // Its threads have periods of their own.
                Task::Watch(_) => method.label(),
                _ if method.is_noise() => method.label(),
                _ => format!("every {}{to} ({})", span(shortest.span()), method.label()),
            }
        } else {
            method.label()
        });
    }
    let cpus: BTreeSet<_> = header.cells.iter().map(|cell| &cell.cpus).collect();
    if let [cpus] = &Vec::from_iter(cpus)[..] {
        parts.push(format!("CPU{} {cpus}", if cpus.len() == 1 { "" } else { "s" }));
    }
    let total = summary.cells.iter().map(|cell| cell.measured.ns()).sum();
    parts.push(format!("{} measured", span(punctual_model::Span(total))));
    let n_virtual = header.cells.iter().filter(|cell| cell.kernel.is_virtual()).count();
    if n_virtual > 0 {
        let all = if n_virtual == header.cells.len() { "all" } else { "in part" };
        parts.push(format!("{all} in virtual time (an instruction is a nanosecond)"));
    }
    parts.join(", ")
}

/// Facts of one machine.
pub(crate) struct Machine {
    /// The head of its column.
    pub(crate) head: String,
    facts: Vec<Option<String>>,
    /// Whether it is a target, a machine other than that of its run.
    is_target: bool,
}

/// The machine of a run with the name `head`, and its targets; machines without known facts are omitted.
pub(crate) fn of_run(head: String, target: &str, header: &Header, summary: &RunSummary) -> Vec<Machine> {
    let targets = summary.cells.iter().filter_map(|cell| cell.response.as_ref()?.target.as_ref()?.host.as_deref());
    let mut hosts: Vec<&Host> = targets.collect();
    hosts.dedup_by(|a, b| facts::all(a).eq(facts::all(b)));
    let machine = |head, host, is_target| Machine { head, facts: facts::all(host).collect(), is_target };
    let targets = hosts.into_iter().map(|host| machine(target.to_owned(), host, true));
    known(std::iter::once(machine(head, &header.host, false)).chain(targets))
}

/// The machines of imported files, named by their files after `prefix`.
pub(crate) fn of_imported(prefix: &str, summary: &ImportedSummary) -> Vec<Machine> {
    let mut hosts: Vec<(&Host, Vec<&str>)> = Vec::new();
    for cell in &summary.cells {
        match hosts.iter_mut().find(|(host, _)| **host == cell.imported.host) {
            Some((_, names)) => names.push(&cell.name),
            None => hosts.push((&cell.imported.host, vec![&cell.name])),
        }
    }
    known(hosts.into_iter().map(|(host, names)| Machine {
        head: format!("{prefix}{}", names.join(", ")),
        facts: facts::told(host),
        is_target: false,
    }))
}

fn known(machines: impl Iterator<Item = Machine>) -> Vec<Machine> {
    machines.filter(|machine| machine.facts.iter().any(Option::is_some)).collect()
}

/// A fact about the machines of all runs.
pub(crate) struct Fact<'a> {
    pub(crate) name: &'static str,
    /// Value at the start of each run; `None`: unknown.
    pub(crate) values: Vec<Option<&'a str>>,
    /// Later values.
    pub(crate) became: Vec<&'a str>,
    /// Whether the runs began with different values.
    pub(crate) differs: bool,
}

impl Fact<'_> {
    /// Whether the fact changed or differs.
    pub(crate) fn is_marked(&self) -> bool {
        self.differs || !self.became.is_empty()
    }
}

/// Every known fact; those that changed, or differ between the runs, come first.
pub(crate) fn facts<'a>(machines: &'a [Machine], changes: &'a [Changes]) -> Vec<Fact<'a>> {
    let fact = |(index, name)| {
        let text = |machine: &'a Machine| machine.facts.get(index).and_then(Option::as_deref).map(or_none);
        let values: Vec<_> = machines.iter().map(text).collect();
        let became = changes.iter().filter_map(|changes| changes.get(name)).flatten();
        let became = became.map(|value| or_none(value)).collect();
        // A missing value is not a difference.
        let of_runs = values.iter().zip(machines).filter(|(_, machine)| !machine.is_target);
        let differs = of_runs.filter_map(|(value, _)| *value).collect::<BTreeSet<_>>().len() > 1;
        Fact { name, values, became, differs }
    };
    let all = facts::names().enumerate().map(fact);
    let mut facts: Vec<_> =
        all.filter(|fact| !fact.became.is_empty() || fact.values.iter().any(Option::is_some)).collect();
    facts.order_by_key(|fact| !fact.is_marked());
    facts
}

/// The text of a fact; that of an empty list is a word.
fn or_none(text: &str) -> &str {
    if text.is_empty() { "none" } else { text }
}

/// Later values of facts, by name.
pub(crate) type Changes = BTreeMap<&'static str, Vec<String>>;

/// Settings that the cells changed, without duplicates, with their values before and during the cells.
pub(crate) fn settings(entries: &[Entry]) -> Vec<(&str, String)> {
    let mut settings: BTreeMap<&str, BTreeSet<(&str, &str)>> = BTreeMap::new();
    for setting in entries.iter().flat_map(|entry| &entry.record.prepared) {
        settings.entry(&setting.what).or_default().insert((&setting.before, &setting.during));
    }
    let text = |(before, during): (&str, &str)| format!("{before} -> {during}");
    let listed = |values: BTreeSet<_>| values.into_iter().map(text).collect::<Vec<_>>().join("; ");
    settings.into_iter().map(|(what, values)| (what, listed(values))).collect()
}

/// Later values of facts, without duplicates, in order of time.
pub(crate) fn changes(header: &Header, entries: &[Entry]) -> Changes {
    let start = &header.host;
    let mut last = start;
    let mut changes: Changes = BTreeMap::new();
    let here = entries.iter().filter(|entry| !entry.record.cell.conditions.roles.is_logged_elsewhere());
    let hosts = here.flat_map(|entry| [&entry.record.host_before, &entry.record.host_after].map(|host| (entry, host)));
    for (entry, host) in hosts {
        // Thousands of records have equal hosts.
        if **host == *last {
            continue;
        }
        last = host;
        let prepare = &entry.record.cell.conditions.prepare;
        for (name, _, now) in facts::changes(start, host, prepare, &header.plan.conditions.roles) {
            let values = changes.entry(name).or_default();
            values.extend(now.filter(|now| !values.contains(now)));
        }
    }
    changes
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_model::{CoKernel, Cobalt, Gravity};

    #[test]
    fn a_co_kernel_is_named_with_its_gravity() {
        let with = |user_ns| {
            let gravity = Some(Gravity { user_ns, ..Gravity::default() });
            let cobalt = Some(Cobalt { version: Some("3.2.2".to_owned()), gravity, ..Cobalt::default() });
            Host { cokernel: Some(CoKernel { cobalt, ..CoKernel::default() }), ..Host::default() }
        };
        assert_eq!(known_facts(&with(Some(2000))), ["Cobalt 3.2.2 (gravity 2000 ns)"]);
        assert_eq!(known_facts(&with(Some(0))), ["Cobalt 3.2.2"]);
        assert_eq!(named(&with(None)), ["Cobalt 3.2.2", "no hypervisor seen"]);
    }

    #[test]
    fn a_fact_of_a_co_kernel_is_in_the_table() {
        let cobalt = Cobalt { faults: Some([("Page fault".to_owned(), 3)].into()), ..Cobalt::default() };
        let host = Host { cokernel: Some(CoKernel { cobalt: Some(cobalt), ..CoKernel::default() }), ..Host::default() };
        let machine = Machine { head: String::new(), facts: facts::all(&host).collect(), is_target: false };
        let machines = [machine];
        let table = super::facts(&machines, &[]);
        let value = |name| table.iter().find(|fact| fact.name == name).and_then(|fact| fact.values[0]);
        assert_eq!((value("co-kernel"), value("co-kernel faults")), (Some("Cobalt"), Some("Page fault=3")));
        assert_eq!(value("mode switches"), None);
    }

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
