//! One point of the matrix, complete: everything needed to carry it out.

use crate::hash::fnv1a;
use crate::{CpuSet, Explain, Kernel, Load, Method, Percent, Period, Policy, Prepare, Span};
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
    /// Whether the kernel's tracers `timerlat` and `osnoise` run after the cell, under the same load.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub tracers: bool,
}

/// Periods that timerlat knows (`timerlat_period_us`, kernel/trace/trace_osnoise.c).
const TIMERLAT_PERIODS: std::ops::RangeInclusive<Span> = Span(100_000)..=Span::SECOND;

/// Slack that can be asked for. 0 is the kernel's word for "the default"; above 1 s it is no slack but another period.
const TIMER_SLACK: std::ops::RangeInclusive<Span> = Span(1)..=Span::SECOND;

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

    /// What no machine can do, however the cell came to be.
    ///
    /// # Errors
    /// One line: what is wrong and what to do.
    pub fn check(&self) -> Result<(), String> {
        if self.cpus.is_empty() {
            return Err("no CPU is named; name at least one, like 0".to_owned());
        }
        if !self.method.waits() {
            return self.check_cost();
        }
        if self.duration < self.period.span() {
            let (duration, period) = (self.duration, self.period);
            return Err(format!(
                "a duration of {duration} has no room for one period of {period}; measure at least {period}"
            ));
        }
        if self.timer_slack.is_some_and(|slack| !TIMER_SLACK.contains(&slack)) {
            let (min, max) = (TIMER_SLACK.start(), TIMER_SLACK.end());
            return Err(format!("a timer slack is {min} to {max}; 0 would mean \"the default\" to the kernel"));
        }
        if self.timer_slack.is_some() && self.policy.is_realtime() {
            return Err(format!("timer slack does not apply to {}: real-time threads have none", self.policy));
        }
        if self.align.is_some_and(|offset| offset >= Span::SECOND) {
            return Err("an alignment is an offset into a second, 0us to below 1s".to_owned());
        }
        if self.align.or(self.distance).is_some() && (self.method.is_relative() || self.method == Method::Deadline) {
            let why = "its due times follow from when it starts to wait";
            return Err(format!("align and distance do not apply to method {}: {why}", self.method));
        }
        if self.distance.is_some_and(|distance| distance >= self.period.span()) {
            return Err(format!("a distance between CPUs is less than the period of {}", self.period));
        }
        if let Some(policy @ Policy::Deadline(_)) = self.load_policy {
            return Err(format!("a load has many processes, which cannot have {policy}; name another policy for it"));
        }
        if self.prepare.rt_runtime_us == Some(-1) && self.load_policy.is_some_and(Policy::is_realtime) {
            return Err("a real-time load without a limit on real-time threads would take the machine; leave \
                 rt_runtime or load_policy out"
                .to_owned());
        }
        self.explain.as_ref().map_or(Ok(()), Explain::check)?;
        self.check_tracers()?;
        self.check_method()
    }

    /// What does not go together with the cost suite, which has processes that do not wait for due times.
    fn check_cost(&self) -> Result<(), String> {
        let method = self.method;
        let asked = [
            ("explain", self.explain.is_some()),
            ("stop_above", self.stop_above.is_some()),
            ("align", self.align.is_some()),
            ("distance", self.distance.is_some()),
            ("tracers", self.tracers),
            ("lock_memory", self.lock_memory),
        ];
        if let Some((key, _)) = asked.iter().find(|(_, is_asked)| *is_asked) {
            return Err(format!("method {method} waits for nothing, so {key} does not apply to it; leave it out"));
        }
        if self.cpus.len() > 1 {
            let cpus = &self.cpus;
            return Err(format!("method {method} runs on one CPU, which its processes share, not on {cpus}; name one"));
        }
        if matches!(self.policy, Policy::Deadline(_)) {
            return Err(format!("the processes of method {method} make others, which cannot have {}", self.policy));
        }
        match self.load_policy {
            Some(policy @ Policy::Deadline(_)) => {
                Err(format!("a load has many processes, which cannot have {policy}; name another policy for it"))
            }
            _ => Ok(()),
        }
    }

    /// What the kernel's tracers cannot do.
    fn check_tracers(&self) -> Result<(), String> {
        let (period, policy) = (self.period.span(), self.policy);
        match () {
            () if !self.tracers => Ok(()),
            () if self.kernel == Kernel::Running => Err(
                "tracers run in guests of the lab only, not on the running kernel; name kernels like debian:6.1-rt, or \
                 leave `tracers` out"
                    .to_owned(),
            ),
            () if !TIMERLAT_PERIODS.contains(&period) || !period.ns().is_multiple_of(1000) => {
                let (min, max) = (TIMERLAT_PERIODS.start(), TIMERLAT_PERIODS.end());
                Err(format!("timerlat knows periods of {min} to {max} in whole microseconds, not {period}"))
            }
            () if matches!(policy, Policy::Deadline(_)) => {
                Err(format!("the tracers' threads are bound to their CPUs and cannot have {policy}; leave `tracers` out"))
            }
            () => Ok(()),
        }
    }

    /// What does not go together with the method.
    fn check_method(&self) -> Result<(), String> {
        let (method, policy, period) = (self.method, self.policy, self.period);
        match (method, policy) {
            (Method::Deadline, Policy::Deadline(budget)) if budget.period != period.span() => Err(format!(
                "method deadline waits for the periods of its policy: {period} was asked for, and {policy} has {}",
                budget.period
            )),
            (Method::Deadline, Policy::Deadline(_)) => Ok(()),
            (Method::Deadline, _) => Err(format!(
                "method deadline needs a deadline policy, like deadline:{}us/{period}/{period}",
                (period.ns() / 5000).max(1)
            )),
            // setitimer(2) takes microseconds.
            (Method::Itimer, _) if period.ns() % 1000 != 0 => {
                Err(format!("method itimer knows whole microseconds only, not {period}"))
            }
            (Method::Sleep(_), _) if self.lock_memory => {
                Err("a language's program locks its own memory or none; lock_memory has to be false".to_owned())
            }
            (Method::Sleep(_) | Method::Itimer, _) if self.explain.is_some() => Err(format!(
                "method {method} measures in other processes, which cannot be explained; leave explain out"
            )),
            (Method::Sleep(_) | Method::Itimer, _) if self.stop_above.is_some() => Err(format!(
                "method {method} measures in other processes, which cannot stop each other; leave stop_above out"
            )),
            (Method::Sleep(_), _) if self.prepare.cgroup.is_some() => {
                Err("a language's program runs in the group that this one was started in; leave cgroup out".to_owned())
            }
            (Method::Sleep(_), Policy::Deadline(_)) => {
                Err("the threads of a language's runtime cannot share a deadline policy; ask for another".to_owned())
            }
            _ => Ok(()),
        }
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
    let explain = cell.explain.as_ref().map(|asked| format!(" explain {asked}")).unwrap_or_default();
    format!(
        "{kernel} {load} {policy} {period} {method} {cpus} {duration} {warm_up} {} {} {} {dma}{align}{distance}{of_load}{prepare}{explain}{stop_above}{tracers}",
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
            tracers: false,
        }
    }

    fn traced() -> Cell {
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
    fn what_no_machine_can_do_is_refused() {
        assert_eq!(cell().check(), Ok(()));
        let fifo = Policy::Fifo(crate::RtPriority::new(80).unwrap());
        for (impossible, reason) in [
            (Cell { cpus: CpuSet::default(), ..cell() }, "no CPU is named; name at least one, like 0"),
            (
                Cell { duration: Span(999_999), ..cell() },
                "a duration of 999999ns has no room for one period of 1ms; measure at least 1ms",
            ),
            (
                Cell { timer_slack: Some(Span(0)), ..cell() },
                "a timer slack is 1ns to 1s; 0 would mean \"the default\" to the kernel",
            ),
            (
                Cell { timer_slack: Some(Span(1)), policy: fifo, ..cell() },
                "timer slack does not apply to fifo:80: real-time threads have none",
            ),
            (Cell { align: Some(Span::SECOND), ..cell() }, "an alignment is an offset into a second, 0us to below 1s"),
            (
                Cell { align: Some(Span(0)), method: Method::Nanosleep, ..cell() },
                "align and distance do not apply to method nanosleep: its due times follow from when it starts to wait",
            ),
            (
                Cell { distance: Some(Span(1_000_000)), ..cell() },
                "a distance between CPUs is less than the period of 1ms",
            ),
            (
                Cell { method: Method::Deadline, ..cell() },
                "method deadline needs a deadline policy, like deadline:200us/1ms/1ms",
            ),
            (
                Cell { method: Method::Deadline, policy: "deadline:1ms/2ms/2ms".parse().unwrap(), ..cell() },
                "method deadline waits for the periods of its policy: 1ms was asked for, and deadline:1ms/2ms/2ms has 2ms",
            ),
            (
                Cell { method: Method::Itimer, period: "10500ns".parse().unwrap(), ..cell() },
                "method itimer knows whole microseconds only, not 10500ns",
            ),
            (
                Cell { method: Method::Sleep(crate::Runtime::C), ..cell() },
                "a language's program locks its own memory or none; lock_memory has to be false",
            ),
            (
                Cell { method: Method::Cost(crate::CostScope::All), ..cell() },
                "method cost waits for nothing, so lock_memory does not apply to it; leave it out",
            ),
            (
                Cell { method: Method::Cost(crate::CostScope::Total), lock_memory: false, ..cell() },
                "method cost:total runs on one CPU, which its processes share, not on 0-1; name one",
            ),
            (
                Cell { load_policy: Some("deadline:1ms/2ms/2ms".parse().unwrap()), ..cell() },
                "a load has many processes, which cannot have deadline:1ms/2ms/2ms; name another policy for it",
            ),
            (
                Cell { explain: Some(Explain { keep: 0, ..Explain::default() }), ..cell() },
                "1 to 1000 explanations can be kept",
            ),
            (
                Cell { stop_above: Some(Span(1)), method: Method::Itimer, ..cell() },
                "method itimer measures in other processes, which cannot stop each other; leave stop_above out",
            ),
            (
                Cell { explain: Some(Explain::default()), method: Method::Itimer, ..cell() },
                "method itimer measures in other processes, which cannot be explained; leave explain out",
            ),
            (
                Cell { tracers: true, ..cell() },
                "tracers run in guests of the lab only, not on the running kernel; name kernels like debian:6.1-rt, or \
                 leave `tracers` out",
            ),
            (
                Cell { period: "99us".parse().unwrap(), ..traced() },
                "timerlat knows periods of 100us to 1s in whole microseconds, not 99us",
            ),
            (
                Cell { period: "1001ms".parse().unwrap(), ..traced() },
                "timerlat knows periods of 100us to 1s in whole microseconds, not 1001ms",
            ),
            (
                Cell { period: "100500ns".parse().unwrap(), ..traced() },
                "timerlat knows periods of 100us to 1s in whole microseconds, not 100500ns",
            ),
            (
                Cell { policy: "deadline:1ms/2ms/2ms".parse().unwrap(), ..traced() },
                "the tracers' threads are bound to their CPUs and cannot have deadline:1ms/2ms/2ms; leave `tracers` out",
            ),
        ] {
            assert_eq!(impossible.check(), Err(reason.to_owned()));
        }
        for period in ["100us", "1s"] {
            assert_eq!(Cell { period: period.parse().unwrap(), ..traced() }.check(), Ok(()));
        }
        assert_eq!(Cell { timer_slack: Some(Span::SECOND), duration: Span(1_000_000), ..cell() }.check(), Ok(()));
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
            Cell { prepare: Prepare { timer_migration: Some(false), ..Prepare::default() }, ..cell() },
            Cell { tracers: true, ..cell() },
            Cell { lock_memory: false, ..cell() },
            Cell { cpu_dma_latency_us: None, ..cell() },
        ];
        assert!(others.iter().all(|other| other.id() != id));
    }
}
