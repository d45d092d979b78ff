//! Timeline of the owners of each CPU around a late wake-up, for charts and exports.

use super::event::{Context, Trace};
use super::timeline;

/// A stretch of one CPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slice {
    /// The CPU.
    pub cpu: u32,
    /// Its start, `CLOCK_MONOTONIC`, ns.
    pub from_ns: u64,
    /// Its end, `CLOCK_MONOTONIC`, ns.
    pub to_ns: u64,
    /// Name of the owner of the CPU.
    pub name: String,
    /// `thread`, `idle`, `interrupt`, `softirq` or `nmi`.
    pub kind: &'static str,
    /// ID of the current thread.
    pub pid: i32,
}

/// Owners of every CPU from `from_ns` to `to_ns`.
pub fn slices(trace: &Trace, from_ns: u64, to_ns: u64) -> Vec<Slice> {
    let of_cpu = |(cpu, events): (u32, &super::CpuEvents)| {
        let slice = move |stretch: timeline::Stretch| Slice {
            cpu,
            from_ns: stretch.from_ns,
            to_ns: stretch.to_ns,
            name: trace.owner_name(stretch.context, stretch.pid),
            kind: match stretch.context {
                None if stretch.pid == 0 => "idle",
                None => "thread",
                Some(Context::Softirq(_)) => "softirq",
                Some(Context::Nmi) => "nmi",
                Some(_) => "interrupt",
            },
            pid: stretch.pid,
        };
        let stretches = if events.events.is_empty() { Vec::new() } else { timeline::stretches(events, from_ns, to_ns) };
        stretches.into_iter().map(slice).collect::<Vec<_>>()
    };
    trace.numbered().flat_map(of_cpu).collect()
}
