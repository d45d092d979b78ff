//! What cannot be measured, whoever asks for it.

use super::Cell;
use crate::{CpuSet, Explain, Kernel, Link, Method, Policy, Span, Task};
use std::mem::discriminant;

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
        let (task, asked) = (self.task, &self.conditions);
        if self.cpus.is_empty() {
            return Err("no CPU is named; name at least one, like 0".to_owned());
        }
        if !self.task.has_latencies() {
            return self.check_cost();
        }
        if self.duration < self.period.span() {
            let (duration, period) = (self.duration, self.period);
            return Err(format!(
                "a duration of {duration} has no room for one period of {period}; measure at least {period}"
            ));
        }
        if asked.timer_slack.is_some_and(|slack| !TIMER_SLACK.contains(&slack)) {
            let (min, max) = (TIMER_SLACK.start(), TIMER_SLACK.end());
            return Err(format!("a timer slack is {min} to {max}; 0 would mean \"the default\" to the kernel"));
        }
        if asked.timer_slack.is_some() && self.policy.is_realtime() {
            return Err(format!("timer slack does not apply to {}: real-time threads have none", self.policy));
        }
        if asked.align.is_some_and(|offset| offset >= Span::SECOND) {
            return Err("an alignment is an offset into a second, 0us to below 1s".to_owned());
        }
        if asked.align.or(asked.distance).is_some()
            && (task.is_relative() || task == Task::Cyclic(Method::Deadline) || task.link().is_some())
        {
            let why = "its due times follow from when it starts to wait";
            return Err(format!("align and distance do not apply to method {task}: {why}"));
        }
        if asked.distance.is_some_and(|distance| distance >= self.period.span()) {
            return Err(format!("a distance between CPUs is less than the period of {}", self.period));
        }
        self.check_load_policy()?;
        if asked.prepare.rt_runtime_us == Some(-1) && asked.load_policy.is_some_and(Policy::is_realtime) {
            return Err("a real-time load without a limit on real-time threads would take the machine; leave \
                 rt_runtime or load_policy out"
                .to_owned());
        }
        asked.explain.as_ref().map_or(Ok(()), Explain::check)?;
        if asked.on_spike.is_some() && asked.explain.is_none() && asked.stop_above.is_none() {
            return Err("on_spike needs to know what a spike is: ask for stop_above, or explain".to_owned());
        }
        self.check_tracers()?;
        self.check_roles()?;
        self.check_task()
    }

    /// What a machine cannot do where this process may use the CPUs `allowed`.
    ///
    /// # Errors
    /// As [`Cell::check`].
    pub fn check_on(&self, allowed: &CpuSet) -> Result<(), String> {
        if self.conditions.on_spike.is_some() && allowed.minus(&self.cpus).is_empty() {
            return Err(
                "all CPUs are measured, and none is left for the command of on_spike; measure fewer, like --cpus 0"
                    .to_owned(),
            );
        }
        Ok(())
    }

    /// What does not go together with the cost suite, which has processes that do not wait for due times.
    fn check_cost(&self) -> Result<(), String> {
        let (task, asked) = (self.task, &self.conditions);
        let given = [
            ("explain", asked.explain.is_some()),
            ("stop_above", asked.stop_above.is_some()),
            ("on_spike", asked.on_spike.is_some()),
            ("align", asked.align.is_some()),
            ("distance", asked.distance.is_some()),
            ("tracers", asked.tracers),
            ("lock_memory", self.lock_memory),
            ("[roles]", !asked.roles.is_empty()),
        ];
        if let Some((key, _)) = given.iter().find(|(_, is_given)| *is_given) {
            return Err(format!("method {task} waits for nothing, so {key} does not apply to it; leave it out"));
        }
        if self.cpus.len() > 1 {
            let cpus = &self.cpus;
            return Err(format!("method {task} runs on one CPU, which its processes share, not on {cpus}; name one"));
        }
        if matches!(self.policy, Policy::Deadline(_)) {
            return Err(format!("the processes of method {task} make others, which cannot have {}", self.policy));
        }
        self.check_load_policy()
    }

    /// What the processes of a load cannot have.
    fn check_load_policy(&self) -> Result<(), String> {
        match self.conditions.load_policy {
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
            () if !self.conditions.tracers => Ok(()),
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

    /// What does not go together with the task.
    fn check_task(&self) -> Result<(), String> {
        let (task, asked) = (self.task, &self.conditions);
        if task.is_in_other_processes() && asked.explain.is_some() {
            return Err(format!(
                "method {task} measures in other processes, which cannot be explained; leave explain out"
            ));
        }
        if task.is_in_other_processes() && asked.stop_above.is_some() {
            return Err(format!(
                "method {task} measures in other processes, which cannot stop each other; leave stop_above out"
            ));
        }
        match task {
            Task::Cyclic(method) => self.check_method(method),
            Task::Sleep(_) if self.lock_memory => {
                Err("a language's program locks its own memory or none; lock_memory has to be false".to_owned())
            }
            Task::Sleep(_) if asked.prepare.cgroup.is_some() => {
                Err("a language's program runs in the group that this one was started in; leave cgroup out".to_owned())
            }
            Task::Sleep(_) if matches!(self.policy, Policy::Deadline(_)) => {
                Err("the threads of a language's runtime cannot share a deadline policy; ask for another".to_owned())
            }
            Task::Response(link) => self.check_link(link),
            Task::Sleep(_) | Task::Cost(_) => Ok(()),
        }
    }

    /// What does not go together with the way to wait.
    fn check_method(&self, method: Method) -> Result<(), String> {
        let (policy, period) = (self.policy, self.period);
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
            _ => Ok(()),
        }
    }

    /// What does not go together with answers over `link`.
    fn check_link(&self, link: Link) -> Result<(), String> {
        match () {
            () if matches!(self.policy, Policy::Deadline(_)) => Err(format!(
                "who waits for an answer has no period of its own and cannot have {}; ask for another",
                self.policy
            )),
            () if matches!(link, Link::UioDevice(_)) => Err(format!(
                "{link}: nobody knows when its interrupts were due; how they are answered is measured by: punctual \
                 respond --on {link}"
            )),
            () if link == Link::Uio && !self.kernel.is_virtual() => {
                Err("response:uio is of the lab, in virtual time; name a kernel like debian:6.1, or another link"
                    .to_owned())
            }
            () if link == Link::Uio && Link::devices(self.period).is_none() => Err(format!(
                "the devices of response:uio have periods of 5ms 10ms 20ms 25ms 50ms 100ms, not {}",
                self.period
            )),
            () if self.cpus.len() > 1 => {
                Err("one thread waits for the answers of a link; name one CPU to measure on (cpus, --cpus)".to_owned())
            }
            () => Ok(()),
        }
    }

    /// What does not go together with the machines that take part.
    fn check_roles(&self) -> Result<(), String> {
        let (task, asked) = (self.task, &self.conditions);
        let roles = &asked.roles;
        let link = task.link().filter(|link| !matches!(link, Link::Uio | Link::SerialLoop(_) | Link::GpioLoop(_)));
        let of_logger = [
            ("load_cpus", self.load_cpus.is_some()),
            ("load_policy", asked.load_policy.is_some()),
            ("load_must_hold", asked.load_must_hold.is_some()),
            ("prepare", !asked.prepare.is_empty()),
        ];
        let is_shared = roles.target.is_some() || roles.host.is_some();
        match () {
            () if roles.is_empty() => Ok(()),
            () if link.is_none() => Err(format!(
                "roles are of a link between machines, like response:udp:HOST:PORT, and {task} has none; leave [roles] out"
            )),
            () if self.kernel != Kernel::Running => {
                Err("guests of the lab have roles of their own (docs/response.md); leave [roles] out".to_owned())
            }
            () if roles.target.is_none() && (roles.target_cpu.is_some() || roles.target_link.is_some()) => {
                Err("target_cpu and target_link are of a target that is started; name it, like target = \"ssh:HOST\""
                    .to_owned())
            }
            () if roles
                .target_link
                .is_some_and(|there| Some(discriminant(&there)) != link.as_ref().map(discriminant)) =>
            {
                Err(format!("target_link has to be the other end of {task}"))
            }
            () => match of_logger.iter().find(|(_, is_asked)| *is_asked && is_shared) {
                Some((key, _)) => Err(format!("{key} does not reach the target or the host; leave it out")),
                None => Ok(()),
            },
        }
    }
}
