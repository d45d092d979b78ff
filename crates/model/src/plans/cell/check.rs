//! Checks of a cell that do not depend on the machine.

use super::endless::{check_endless, no_housekeeping};
use super::{Cell, applies};
use crate::{CobaltContext, CpuSet, Explain, Host, Link, Mark, Method, Period, Policy, Span, Task};
use std::mem::discriminant;

/// Valid periods of timerlat (`timerlat_period_us`, kernel/trace/trace_osnoise.c).
const TIMERLAT_PERIODS: std::ops::RangeInclusive<Span> = Span(100_000)..=Span::SECOND;

/// Valid timer slack. To the kernel 0 means "the default"; a slack above 1 s would act as another period.
const TIMER_SLACK: std::ops::RangeInclusive<Span> = Span(1)..=Span::SECOND;

impl Cell {
    /// Checks the cell against limits that hold on every machine. Errors: one line: the error and the remedy.
    pub fn check(&self) -> Result<(), String> {
        let asked = &self.conditions;
        if self.cpus.is_empty() {
            return Err("no CPU is selected; name at least one, like 0".to_owned());
        }
        if let Some(refused) = applies::refusal(self) {
            return Err(refused);
        }
        if !self.task.has_latencies() {
            return self.check_cost();
        }
        if self.duration < self.period.span() {
            let (duration, period) = (self.duration, self.period);
            return Err(format!(
                "duration {duration} is shorter than the period of {period}; measure at least {period}"
            ));
        }
        if asked.timer_slack.is_some_and(|slack| !TIMER_SLACK.contains(&slack)) {
            let (min, max) = (TIMER_SLACK.start(), TIMER_SLACK.end());
            return Err(format!("invalid timer slack: expected {min} to {max}; to the kernel 0 means \"the default\""));
        }
        if asked.align.is_some_and(|offset| offset >= Span::SECOND) {
            return Err("invalid align: expected an offset into a second, from 0us to below 1s".to_owned());
        }
        if asked.distance.is_some_and(|distance| distance >= self.period.span()) {
            return Err(format!("invalid distance: expected less than the period of {}", self.period));
        }
        self.check_period_step()?;
        self.check_load_policy()?;
        asked.explain.as_ref().map_or(Ok(()), Explain::check)?;
        Mark::check(&asked.marks)?;
        if asked.on_spike.is_some() && asked.explain.is_none() && asked.stop_above.is_none() {
            return Err("on_spike needs a definition of a spike; add stop_above or explain".to_owned());
        }
        self.check_tracers()?;
        self.check_roles()?;
        self.check_task()
    }

    /// Checks the cell against the CPUs `allowed` that this process may use. Errors: as [`Cell::check`].
    pub fn check_on(&self, allowed: &CpuSet) -> Result<(), String> {
        if self.conditions.on_spike.is_some() && allowed.minus(&self.cpus).is_empty() {
            return Err(
                "no CPU is left for the command of on_spike: all are measured; measure fewer, like --cpus 0".to_owned()
            );
        }
        if self.task.is_noise() && self.policy.is_realtime() && allowed.minus(&self.cpus).is_empty() {
            return Err(no_housekeeping(self.policy, allowed));
        }
        Ok(())
    }

    /// Checks a cell whose threads never wait against the machine. Errors: as [`Cell::check`].
    pub fn check_on_host(&self, host: &Host) -> Result<(), String> {
        if self.task.is_noise() { check_endless(self.policy, &self.cpus, host) } else { Ok(()) }
    }

    /// Conditions that contradict threads of different periods.
    fn check_period_step(&self) -> Result<(), String> {
        let (Some(step), task, asked) = (self.conditions.period_step, &self.task, &self.conditions) else {
            return Ok(());
        };
        let n = u64::try_from(self.cpus.len() - 1).unwrap_or(u64::MAX);
        let longest = Span(step.ns().saturating_mul(n).saturating_add(self.period.ns()));
        match task {
            _ if step == Span(0) => {
                Err("invalid period_step: expected more than 0, like 500us; leave it out for equal periods".to_owned())
            }
            _ if n == 0 => Err(format!(
                "period_step needs 2 CPUs or more, not only {}; name more (cpus, --cpus), or leave it out",
                self.cpus
            )),
            _ if asked.distance.is_some() => Err(
                "period_step and distance cannot be combined: due times of different periods have no constant offset; \
                 leave one out"
                    .to_owned(),
            ),
            _ if longest > Period::MAX => Err(format!(
                "invalid period_step {step}: the thread on the last CPU would have a period of {longest}, the longest \
                 is {}",
                Period::MAX
            )),
            _ if self.duration < longest => Err(format!(
                "duration {} is shorter than the longest period, {longest}; measure at least {longest}",
                self.duration
            )),
            Task::Cyclic(Method::Itimer) if !step.ns().is_multiple_of(1000) => {
                Err(format!("invalid period_step `{step}` for method itimer: expected whole microseconds"))
            }
            _ => Ok(()),
        }
    }

    /// Conditions that contradict the cost suite, whose processes do not wait for due times.
    fn check_cost(&self) -> Result<(), String> {
        let task = &self.task;
        if self.cpus.len() > 1 {
            let cpus = &self.cpus;
            return Err(format!("method {task} runs on one CPU, not on {cpus}; name one"));
        }
        if matches!(self.policy, Policy::Deadline(_)) {
            return Err(format!(
                "method {task} cannot run under SCHED_DEADLINE: its processes fork; choose another policy"
            ));
        }
        self.check_load_policy()
    }

    /// Policies that contradict a load.
    fn check_load_policy(&self) -> Result<(), String> {
        match self.conditions.load_policy {
            Some(Policy::Deadline(_)) => {
                Err("a load cannot run under SCHED_DEADLINE: it has many processes; choose another policy".to_owned())
            }
            Some(policy) if policy.is_realtime() => {
                self.conditions.prepare.without_realtime_limit().map_or(Ok(()), |setting| {
                    Err(format!(
                        "a real-time load cannot run where `{setting}` lets real-time threads use all CPU time; leave it \
                         or load_policy out"
                    ))
                })
            }
            _ => Ok(()),
        }
    }

    /// Conditions that contradict the kernel's tracers.
    fn check_tracers(&self) -> Result<(), String> {
        let (period, policy) = (self.period.span(), self.policy);
        match () {
            () if !self.conditions.tracers => Ok(()),
            () if !TIMERLAT_PERIODS.contains(&period) || !period.ns().is_multiple_of(1000) => {
                let (min, max) = (TIMERLAT_PERIODS.start(), TIMERLAT_PERIODS.end());
                Err(format!("invalid period `{period}` for timerlat: expected {min} to {max} in whole microseconds"))
            }
            () if matches!(policy, Policy::Deadline(_)) => {
                Err("tracers cannot run under SCHED_DEADLINE: their threads are bound to CPUs; leave `tracers` out"
                    .to_owned())
            }
            () => Ok(()),
        }
    }

    /// Conditions that contradict the task.
    fn check_task(&self) -> Result<(), String> {
        match &self.task {
            Task::Timerbench(context) => self.check_timerbench(*context),
            Task::Cyclic(method) => self.check_method(*method),
            Task::Sleep(_) if matches!(self.policy, Policy::Deadline(_)) => Err(
                "method sleep cannot run under SCHED_DEADLINE: a runtime has several threads; choose another policy"
                    .to_owned(),
            ),
            Task::Response(link) => self.check_link(*link),
            Task::Program(_) => self.check_program(),
            Task::Watch(_) | Task::Sleep(_) | Task::Cost(_) => Ok(()),
        }
    }

    /// Conditions that contradict Xenomai's driver.
    fn check_timerbench(&self, context: CobaltContext) -> Result<(), String> {
        let Self { task, policy, period, .. } = self;
        let (shortest, longest) = (CobaltContext::PERIODS.start(), CobaltContext::PERIODS.end());
        match () {
            () if !matches!(policy, Policy::Fifo(_)) => {
                Err(format!("method {task} needs policy fifo, like fifo:80, not {policy}"))
            }
            () if !CobaltContext::PERIODS.contains(&period.span()) => {
                Err(format!("invalid period `{period}` for method {task}: expected {shortest} to {longest}"))
            }
            () if self.duration < Span::SECOND => Err(format!(
                "duration {} is too short for method {task}, whose driver counts in seconds; measure at least 1s",
                self.duration
            )),
            () if self.cpus.len() > 1 => {
                Err(format!("method {task} measures on one CPU, not on {}; name one (cpus, --cpus)", self.cpus))
            }
            () if context == CobaltContext::Handler && !self.cpus.contains(0) => Err(format!(
                "method {task} measures on CPU 0, not on {}: the driver's timer is always there",
                self.cpus
            )),
            () => Ok(()),
        }
    }

    /// Conditions that contradict an outside program.
    fn check_program(&self) -> Result<(), String> {
        let name = self.task.label();
        if matches!(self.policy, Policy::Deadline(_)) {
            return Err(format!(
                "{name} cannot be started under SCHED_DEADLINE, which forbids threads; choose another policy"
            ));
        }
        Ok(())
    }

    /// Policies and periods that contradict the wait method.
    fn check_method(&self, method: Method) -> Result<(), String> {
        let (policy, period) = (self.policy, self.period);
        match (method, policy) {
            (Method::Deadline, Policy::Deadline(budget)) if budget.period != period.span() => Err(format!(
                "invalid period `{period}` for method deadline: expected {}, the period of policy {policy}",
                budget.period
            )),
            (Method::Deadline, Policy::Deadline(_)) => Ok(()),
            (Method::Deadline, _) => Err(format!(
                "method deadline needs policy SCHED_DEADLINE, like deadline:{}us/{period}/{period}",
                (period.ns() / 5000).max(1)
            )),
            (Method::Cobalt { .. }, Policy::Fifo(_)) if !self.lock_memory => {
                Err("method cobalt needs locked memory; raise the limit with ulimit -l unlimited, or run as root"
                    .to_owned())
            }
            (Method::Cobalt { .. }, Policy::Fifo(_)) => Ok(()),
            (Method::Cobalt { .. }, _) => Err(format!("method cobalt needs policy fifo, like fifo:80, not {policy}")),
            (Method::Handoff(handoff), _)
                if [Some(policy), handoff.policy].iter().any(|policy| matches!(policy, Some(Policy::Deadline(_)))) =>
            {
                Err("method handoff cannot run under SCHED_DEADLINE; choose another policy".to_owned())
            }
            (Method::Noise { .. }, Policy::Deadline(_)) => Err(format!(
                "method {} cannot run under SCHED_DEADLINE, which throttles a thread that never waits; choose another \
                 policy",
                self.task
            )),
            (Method::Noise { .. }, policy) if policy.is_realtime() && self.kernel.is_virtual() => Err(format!(
                "method {} under {policy} would take the only CPU of a guest in virtual time; choose policy other",
                self.task
            )),
            (Method::Noise { .. }, _) if period != Method::NOISE_PERIOD => {
                let expected = Method::NOISE_PERIOD;
                Err(format!("invalid period `{period}` for method {}: expected {expected}", self.task))
            }
            (Method::Noise { .. }, _)
                if let Some(explain) = &self.conditions.explain
                    && (explain.above.is_some() || explain.stacks) =>
            {
                let what = if explain.stacks { "stacks" } else { "above" };
                Err(format!(
                    "{what} of explain does not apply to method {}, of which every gap above its threshold is explained; \
                     leave it out",
                    self.task
                ))
            }
            (Method::Noise { .. }, policy) if policy.is_realtime() => {
                self.conditions.prepare.without_realtime_limit().map_or(Ok(()), |setting| {
                    Err(format!("method {} cannot run under {policy} with `{setting}`; leave it out", self.task))
                })
            }
            // setitimer(2) takes microseconds.
            (Method::Itimer, _) if period.ns() % 1000 != 0 => {
                Err(format!("invalid period `{period}` for method itimer: expected whole microseconds"))
            }
            _ => Ok(()),
        }
    }

    /// Conditions that contradict response times over `link`.
    fn check_link(&self, link: Link) -> Result<(), String> {
        match () {
            () if matches!(self.policy, Policy::Deadline(_)) => {
                Err("method response cannot run under SCHED_DEADLINE; choose another policy".to_owned())
            }
            () if matches!(link, Link::UioDevice(_)) => Err(format!(
                "unsupported: {link} as a link, whose interrupts have no known due times; measure its answers with: \
                 punctual respond --on {link}"
            )),
            () if link == Link::Oob && !matches!(self.policy, Policy::Fifo(_)) => {
                Err(format!("response:oob needs policy fifo, like fifo:80, not {}", self.policy))
            }
            () if link == Link::Oob && !self.lock_memory => {
                Err("response:oob needs locked memory; raise the limit with ulimit -l unlimited, or run as root"
                    .to_owned())
            }
            () if link == Link::Oob && !self.kernel.is_virtual() => {
                Err("response:oob needs a lab guest in virtual time; name the file of a kernel with Cobalt, like \
                     /path/of/bzImage"
                    .to_owned())
            }
            () if link == Link::Uio && !self.kernel.is_virtual() => {
                Err("response:uio needs a lab guest in virtual time; name a kernel like debian:6.1, or another link"
                    .to_owned())
            }
            () if link.is_timers() && Link::devices(self.period).is_none() => Err(format!(
                "invalid period `{}` for response:{link}: expected one of 5ms 10ms 20ms 25ms 50ms 100ms",
                self.period
            )),
            () if self.cpus.len() > 1 => Err("method response measures on one CPU; name one (cpus, --cpus)".to_owned()),
            () => Ok(()),
        }
    }

    /// Conditions that contradict the roles.
    fn check_roles(&self) -> Result<(), String> {
        let (task, roles) = (&self.task, &self.conditions.roles);
        let link =
            task.link().filter(|link| !link.is_timers() && !matches!(link, Link::SerialLoop(_) | Link::GpioLoop(_)));
        match () {
            () if roles.is_empty() => Ok(()),
            () if link.is_none() => Err(format!(
                "[roles] needs a link between machines, like response:udp:HOST:PORT, not {task}; leave it out"
            )),
            () if roles.target.is_none() && (roles.target_cpu.is_some() || roles.target_link.is_some()) => {
                Err("target_cpu and target_link need a target; name it, like target = \"ssh:HOST\"".to_owned())
            }
            () if roles
                .target_link
                .is_some_and(|there| Some(discriminant(&there)) != link.as_ref().map(discriminant)) =>
            {
                Err(format!("invalid target_link: expected the other end of {task}"))
            }
            () => Ok(()),
        }
    }
}
