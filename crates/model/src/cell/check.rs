//! What cannot be measured, whoever asks for it.

use super::Cell;
use crate::{CpuSet, Explain, Kernel, Method, Policy, Span};

/// Periods that timerlat knows (`timerlat_period_us`, kernel/trace/trace_osnoise.c).
const TIMERLAT_PERIODS: std::ops::RangeInclusive<Span> = Span(100_000)..=Span::SECOND;

/// Slack that can be asked for. 0 is the kernel's word for "the default"; above 1 s it is no slack but another period.
const TIMER_SLACK: std::ops::RangeInclusive<Span> = Span(1)..=Span::SECOND;

impl Cell {
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
        if self.align.or(self.distance).is_some()
            && (self.method.is_relative() || self.method == Method::Deadline || self.method.link().is_some())
        {
            let why = "its due times follow from when it starts to wait";
            return Err(format!("align and distance do not apply to method {}: {why}", self.method));
        }
        if self.distance.is_some_and(|distance| distance >= self.period.span()) {
            return Err(format!("a distance between CPUs is less than the period of {}", self.period));
        }
        self.check_load_policy()?;
        if self.prepare.rt_runtime_us == Some(-1) && self.load_policy.is_some_and(Policy::is_realtime) {
            return Err("a real-time load without a limit on real-time threads would take the machine; leave \
                 rt_runtime or load_policy out"
                .to_owned());
        }
        self.explain.as_ref().map_or(Ok(()), Explain::check)?;
        if self.on_spike.is_some() && self.explain.is_none() && self.stop_above.is_none() {
            return Err("on_spike needs to know what a spike is: ask for stop_above, or explain".to_owned());
        }
        self.check_tracers()?;
        self.roles.check(self)?;
        self.check_method()
    }

    /// What a machine cannot do where this process may use the CPUs `allowed`.
    ///
    /// # Errors
    /// As [`Cell::check`].
    pub fn check_on(&self, allowed: &CpuSet) -> Result<(), String> {
        if self.on_spike.is_some() && allowed.minus(&self.cpus).is_empty() {
            return Err(
                "all CPUs are measured, and none is left for the command of on_spike; measure fewer, like --cpus 0"
                    .to_owned(),
            );
        }
        Ok(())
    }

    /// What does not go together with the cost suite, which has processes that do not wait for due times.
    fn check_cost(&self) -> Result<(), String> {
        let method = self.method;
        let asked = [
            ("explain", self.explain.is_some()),
            ("stop_above", self.stop_above.is_some()),
            ("on_spike", self.on_spike.is_some()),
            ("align", self.align.is_some()),
            ("distance", self.distance.is_some()),
            ("tracers", self.tracers),
            ("lock_memory", self.lock_memory),
            ("[roles]", !self.roles.is_empty()),
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
        self.check_load_policy()
    }

    /// What the processes of a load cannot have.
    fn check_load_policy(&self) -> Result<(), String> {
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
            (Method::Response(link), _) => link.check(self),
            (Method::Sleep(_), Policy::Deadline(_)) => {
                Err("the threads of a language's runtime cannot share a deadline policy; ask for another".to_owned())
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{cell, traced};
    use super::*;

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
                Cell { on_spike: Some("true".to_owned()), ..cell() },
                "on_spike needs to know what a spike is: ask for stop_above, or explain",
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
                Cell { method: "response:uio".parse().unwrap(), ..cell() },
                "response:uio is of the lab, in virtual time; name a kernel like debian:6.1, or another link",
            ),
            (
                Cell { method: "response:uio".parse().unwrap(), kernel: "debian:6.1".parse().unwrap(), ..cell() },
                "the devices of response:uio have periods of 5ms 10ms 20ms 25ms 50ms 100ms, not 1ms",
            ),
            (
                Cell { method: "response:udp:h:1".parse().unwrap(), cpus: "0-1".parse().unwrap(), ..cell() },
                "one thread waits for the answers of a link; name one CPU to measure on (cpus, --cpus)",
            ),
            (
                Cell { align: Some(Span(0)), method: "response:udp:h:1".parse().unwrap(), ..cell() },
                "align and distance do not apply to method response:udp:h:1: its due times follow from when it starts to wait",
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
}
