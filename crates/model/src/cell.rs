//! One point of the matrix, complete: everything needed to carry it out.

mod check;

use crate::hash::fnv1a;
use crate::{CpuSet, Explain, Kernel, Load, Method, Percent, Period, Policy, Prepare, Roles, Span};
use serde::{Deserialize, Serialize};
use std::fmt;

/// One measurement that can be carried out, here, in a guest or on another machine.
///
/// Invariant: it carries *all* dimensions, so two equal cells ask for the same thing.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Cell {
    /// The kernel it runs on.
    pub kernel: Kernel,
    /// Background work while measuring.
    pub load: Load,
    /// How the measured thread is scheduled.
    pub policy: Policy,
    /// Distance between due times, ns.
    #[serde(rename = "period_ns")]
    pub period: Period,
    /// How the measured thread waits.
    pub method: Method,
    /// One measured thread runs on each of these CPUs, pinned. A deadline thread cannot be pinned: then it is one
    /// thread for each of these CPUs, on any CPU.
    pub cpus: CpuSet,
    /// Measured time, ns, after the warm-up.
    #[serde(rename = "duration_ns")]
    pub duration: Span,
    /// Time, ns, whose cycles run but are not recorded.
    #[serde(rename = "warm_up_ns")]
    pub warm_up: Span,
    /// Lateness, ns, above which a wake-up counts as a miss. `null`: the period.
    #[serde(rename = "deadline_ns")]
    pub deadline: Option<Span>,
    /// Timer slack, ns, of the measured threads. `null`: the kernel's default for the policy (50 us for normal
    /// policies, none for real-time ones), `PR_SET_TIMERSLACK(2const)`.
    #[serde(rename = "timer_slack_ns")]
    pub timer_slack: Option<Span>,
    /// First due time, ns after a full second of the method's clock. `null`: at once.
    #[serde(rename = "align_ns")]
    pub align: Option<Span>,
    /// How much later, ns, the due times of each next CPU are. `null`: all at the same time.
    #[serde(rename = "distance_ns")]
    pub distance: Option<Span>,
    /// Whether all memory must be locked, `mlockall(2)`.
    pub lock_memory: bool,
    /// Value, us, held in `/dev/cpu_dma_latency` while measuring. `null`: left alone.
    pub cpu_dma_latency_us: Option<u32>,
    /// CPUs of the load. `null`: every CPU that may be used.
    #[serde(default)]
    pub load_cpus: Option<CpuSet>,
    /// How the load is scheduled. `null`: `other` at nice 0.
    #[serde(default)]
    pub load_policy: Option<Policy>,
    /// Share, percent, of its rate at the start that the load has to keep, or the cell is an error. `null`: a load that
    /// ends or falls behind is recorded as such.
    #[serde(rename = "load_must_hold_percent", default)]
    pub load_must_hold: Option<Percent>,
    /// Settings of the machine that are changed for as long as the cell lasts.
    #[serde(default)]
    pub prepare: Prepare,
    /// How late wake-ups are explained, by tracing the kernel meanwhile. `null`: they are not.
    #[serde(default)]
    pub explain: Option<Explain>,
    /// Latency, ns, above which a wake-up ends the cell for all its threads. `null`: none does.
    #[serde(rename = "stop_above_ns", default)]
    pub stop_above: Option<Span>,
    /// Shell command that runs at a spike, outside the measured CPUs, with the spike as JSON on its stdin ([`Explanation`]). A
    /// spike is what is explained or, where nothing is, the wake-up that ends the cell. `null`: none.
    ///
    /// [`Explanation`]: crate::Explanation
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_spike: Option<String>,
    /// Whether the kernel's tracers `timerlat` and `osnoise` run after the cell, under the same load.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub tracers: bool,
    /// Machines that take part, where answers are measured over a link.
    #[serde(default, skip_serializing_if = "Roles::is_empty")]
    pub roles: Roles,
}

impl Cell {
    /// The first measured cycle; those before it are warm-up.
    #[must_use]
    pub fn first_cycle(&self) -> u64 {
        self.period.cycles_in(self.warm_up)
    }

    /// One past the last cycle: warm-up and measured cycles together.
    #[must_use]
    pub fn end_cycle(&self) -> u64 {
        self.first_cycle() + self.period.cycles_in(self.duration)
    }

    /// The lateness above which a wake-up is a miss.
    #[must_use]
    pub fn deadline(&self) -> Span {
        self.deadline.unwrap_or(self.period.span())
    }

    /// The identity: a hash of the contents.
    #[must_use]
    pub fn id(&self) -> CellId {
        CellId(format!("{:016x}", fnv1a(&canonical_text(self))))
    }

    /// What people call the cell: the axes that a table shows.
    #[must_use]
    pub fn label(&self) -> String {
        format!("{}/{}", self.load.label(), self.policy)
    }
}

/// All dimensions in a fixed order, independent of any serializer's version.
fn canonical_text(cell: &Cell) -> String {
    let Cell { kernel, load, policy, period, method, cpus, duration, warm_up, .. } = cell;
    let optional = |span: Option<Span>| span.map_or_else(|| "-".to_owned(), |span| span.to_string());
    let dma = cell.cpu_dma_latency_us.map_or_else(|| "-".to_owned(), |us| us.to_string());
    // Left out when not asked for, so that a cell keeps its identity when more can be asked.
    let align = cell.align.map(|offset| format!(" align {offset}")).unwrap_or_default();
    let distance = cell.distance.map(|distance| format!(" distance {distance}")).unwrap_or_default();
    let load_cpus = cell.load_cpus.as_ref().map(|cpus| format!(" load on {cpus}")).unwrap_or_default();
    let load_policy = cell.load_policy.map(|policy| format!(" load as {policy}")).unwrap_or_default();
    let must_hold = cell.load_must_hold.map(|share| format!(" load holds {}", share.get())).unwrap_or_default();
    let of_load = format!("{load_cpus}{load_policy}{must_hold}");
    let tracers = if cell.tracers { " tracers" } else { "" };
    let prepare = if cell.prepare.is_empty() { String::new() } else { format!(" prepare {}", cell.prepare) };
    let stop_above = cell.stop_above.map(|above| format!(" stop above {above}")).unwrap_or_default();
    let on_spike = cell.on_spike.as_ref().map(|command| format!(" on spike {command}")).unwrap_or_default();
    let explain = cell.explain.as_ref().map(|asked| format!(" explain {asked}")).unwrap_or_default();
    let roles = if cell.roles.is_empty() { String::new() } else { format!(" {}", cell.roles) };
    format!(
        "{kernel} {load} {policy} {period} {method} {cpus} {duration} {warm_up} {} {} {} {dma}{align}{distance}{of_load}{prepare}{explain}{stop_above}{on_spike}{tracers}{roles}",
        optional(cell.deadline),
        optional(cell.timer_slack),
        cell.lock_memory,
    )
}

/// Identity of a [`Cell`]: 16 hexadecimal digits that follow from its contents.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct CellId(String);

impl fmt::Display for CellId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn cell() -> Cell {
        Cell {
            kernel: Kernel::Running,
            load: Load::NONE,
            policy: Policy::OTHER,
            period: Period::try_from(Span(1_000_000)).unwrap(),
            method: Method::CLOCK_NANOSLEEP,
            cpus: [0, 1].into_iter().collect(),
            duration: Span(2_000_000_000),
            warm_up: Span(250_500_000),
            deadline: None,
            timer_slack: None,
            align: None,
            distance: None,
            lock_memory: true,
            cpu_dma_latency_us: Some(0),
            load_cpus: None,
            load_policy: None,
            load_must_hold: None,
            prepare: Prepare::default(),
            explain: None,
            stop_above: None,
            on_spike: None,
            tracers: false,
            roles: Roles::default(),
        }
    }

    pub(super) fn traced() -> Cell {
        Cell { kernel: "debian:6.1-rt".parse().unwrap(), tracers: true, ..cell() }
    }

    #[test]
    fn json_has_units_in_its_keys_and_reads_back() {
        let json = serde_json::to_string(&cell()).unwrap();
        assert_eq!(
            json,
            r#"{"kernel":"running","load":"none","policy":"other","period_ns":1000000,"method":"clock_nanosleep","cpus":"0-1","duration_ns":2000000000,"warm_up_ns":250500000,"deadline_ns":null,"timer_slack_ns":null,"align_ns":null,"distance_ns":null,"lock_memory":true,"cpu_dma_latency_us":0,"load_cpus":null,"load_policy":null,"load_must_hold_percent":null,"prepare":{},"explain":null,"stop_above_ns":null}"#
        );
        assert_eq!(serde_json::from_str::<Cell>(&json).unwrap(), cell());
        let json_of_traced = serde_json::to_string(&traced()).unwrap();
        assert!(json_of_traced.ends_with(r#""stop_above_ns":null,"tracers":true}"#), "{json_of_traced}");
        assert_eq!(serde_json::from_str::<Cell>(&json_of_traced).unwrap(), traced());
        assert!(serde_json::from_str::<Cell>(&json.replace("lock_memory", "lock")).is_err());
        assert!(serde_json::from_str::<Cell>(&json.replace(":1000000,", ":0,")).is_err());
    }

    #[test]
    fn warm_up_is_rounded_up_to_whole_cycles() {
        assert_eq!((cell().first_cycle(), cell().end_cycle()), (251, 2251));
    }

    #[test]
    fn the_id_follows_from_every_dimension() {
        let id = cell().id();
        assert_eq!(id.to_string(), "6f3d3a950f31d5ee");
        let others = [
            Cell { load: Load::messaging(), ..cell() },
            Cell { cpus: [0].into_iter().collect(), ..cell() },
            Cell { warm_up: Span(0), ..cell() },
            Cell { deadline: Some(Span(1)), ..cell() },
            Cell { timer_slack: Some(Span(1)), ..cell() },
            Cell { align: Some(Span(0)), ..cell() },
            Cell { distance: Some(Span(0)), ..cell() },
            Cell { load_cpus: Some([0].into_iter().collect()), ..cell() },
            Cell { load_policy: Some(Policy::OTHER), ..cell() },
            Cell { load_must_hold: Some(Percent::HALF), ..cell() },
            Cell { explain: Some(Explain::default()), ..cell() },
            Cell { stop_above: Some(Span(1)), ..cell() },
            Cell { on_spike: Some("true".to_owned()), ..cell() },
            Cell { prepare: Prepare { timer_migration: Some(false), ..Prepare::default() }, ..cell() },
            Cell { tracers: true, ..cell() },
            Cell { roles: Roles { target_cpu: Some(1), ..Roles::default() }, ..cell() },
            Cell { lock_memory: false, ..cell() },
            Cell { cpu_dma_latency_us: None, ..cell() },
        ];
        assert!(others.iter().all(|other| other.id() != id));
    }
}
