//! The methods: a [`Wait`] for each, made before the barrier.

mod cobalt;
#[cfg(target_arch = "x86_64")]
mod devices;
mod exchange;
mod handoff;
#[cfg(target_arch = "x86_64")]
mod movable;
mod noise;
mod signals;
mod sleep;

use crate::cyclic::{Limits, run_cycles};
use crate::{LinkEnd, LogWriter, LoopResult, RtSection, Wait, Watcher};
pub use cobalt::CobaltOutcome;
use cobalt::CobaltSleep;
#[cfg(target_arch = "x86_64")]
use devices::Timers;
use exchange::{LoggerWait, TargetWait};
use handoff::HandoffWait;
#[cfg(target_arch = "x86_64")]
use movable::Movable;
use noise::Noise;
pub use noise::NoiseOutcome;
use punctual_model::{Method, Period, Policy, Schedule};
use punctual_sys::counter::Counter;
use signals::{Itimer, SignalTimer};
use sleep::{FutexTimeout, PollTimeout, Relative, Sleep, TimerFile, Yield};
use std::io;

/// The [`Wait`] of any method, with its kernel objects.
#[derive(Debug)]
pub(crate) enum AnyWait {
    Sleep(Sleep),
    #[cfg(target_arch = "x86_64")]
    Movable(Movable),
    Relative(Relative),
    TimerFile(TimerFile),
    Itimer(Itimer),
    SignalTimer(SignalTimer),
    Futex(FutexTimeout),
    Poll(PollTimeout),
    Yield(Yield),
    Cobalt(CobaltSleep),
    Noise(Box<Noise>),
    #[cfg(target_arch = "x86_64")]
    Timers(Timers),
    Logger(Box<LoggerWait>),
    Target(TargetWait),
    Handoff(HandoffWait),
}

impl AnyWait {
    /// Makes the kernel objects of `link`, or of `method` without a link, in the thread that will wait.
    pub(crate) fn new(
        (method, counter): (Method, Counter),
        policy: Policy,
        period: Period,
        link: Option<LinkEnd>,
    ) -> io::Result<AnyWait> {
        match link {
            Some(link) => AnyWait::of_link(link, policy),
            None => AnyWait::of_method((method, counter), policy, period),
        }
    }

    /// A wait whose due time in `cycle` can be moved. Errors: outside a guest that was started for this, and for all
    /// methods but `clock_nanosleep`.
    #[cfg_attr(not(target_arch = "x86_64"), expect(unused_variables, reason = "only guests of x86-64 are searched"))]
    pub(crate) fn movable(method: Method, cycle: u64) -> io::Result<AnyWait> {
        match method {
            #[cfg(target_arch = "x86_64")]
            Method::ClockNanosleep { clock, relative: false } => Movable::new(clock, cycle).map(AnyWait::Movable),
            _ => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    #[cfg_attr(not(target_arch = "x86_64"), expect(unused_variables, reason = "only devices of x86-64 guests take it"))]
    fn of_link(link: LinkEnd, policy: Policy) -> io::Result<AnyWait> {
        Ok(match link {
            #[cfg(target_arch = "x86_64")]
            LinkEnd::Timers(timers) => AnyWait::Timers(Timers::new(timers, policy)?),
            LinkEnd::Logger(logger) => AnyWait::Logger(Box::new(LoggerWait::new(logger)?)),
            LinkEnd::Target(target) => AnyWait::Target(TargetWait::new(target)),
        })
    }

    fn of_method((method, counter): (Method, Counter), policy: Policy, period: Period) -> io::Result<AnyWait> {
        let span = period.span();
        Ok(match method {
            Method::ClockNanosleep { clock, relative: false } => AnyWait::Sleep(Sleep(clock)),
            Method::ClockNanosleep { clock, relative: true } => {
                AnyWait::Relative(Relative { clock: Some(clock), span })
            }
            Method::Nanosleep => AnyWait::Relative(Relative { clock: None, span }),
            Method::Timerfd { clock } => AnyWait::TimerFile(TimerFile::new(clock)?),
            Method::Itimer => AnyWait::Itimer(Itimer::new(span)),
            Method::PosixTimer { clock } => AnyWait::SignalTimer(SignalTimer::new(clock, span)?),
            Method::Futex { clock } => AnyWait::Futex(FutexTimeout::new(clock)),
            Method::Poll => AnyWait::Poll(PollTimeout),
            Method::Deadline => AnyWait::Yield(Yield),
            Method::Noise { threshold } => AnyWait::Noise(Box::new(Noise::new(threshold, counter)?)),
            Method::Cobalt { timerfd } => AnyWait::Cobalt(CobaltSleep::new(policy.priority().unwrap_or(0), timerfd)?),
            Method::Handoff(handoff) => AnyWait::Handoff(HandoffWait::new(handoff, period)?),
        })
    }

    /// Whether the kernel counts overruns of this method.
    pub(crate) fn counts_overruns(&self) -> bool {
        matches!(self, AnyWait::SignalTimer(_))
    }

    /// The thread id of the waker, if another thread wakes this one.
    pub(crate) fn waker(&self) -> Option<u32> {
        if let AnyWait::Handoff(wait) = self { Some(wait.waker()) } else { None }
    }

    /// What Cobalt counted for the cycles, where it schedules this thread.
    pub(crate) fn cobalt(&self) -> Option<CobaltOutcome> {
        match self {
            AnyWait::Cobalt(wait) => wait.outcome(),
            #[cfg(target_arch = "x86_64")]
            AnyWait::Timers(wait) => wait.cobalt_outcome(),
            _ => None,
        }
    }

    /// What a loop without waits counted.
    pub(crate) fn noise(&self) -> Option<NoiseOutcome> {
        if let AnyWait::Noise(noise) = self { Some(noise.outcome()) } else { None }
    }

    /// Runs the cycles, see [`run_cycles`].
    pub(crate) fn run(
        &self,
        rt: &RtSection<'_>,
        schedule: &Schedule,
        limits: &Limits,
        log: &mut LogWriter,
        watcher: &mut Option<Watcher>,
    ) -> Result<LoopResult, i32> {
        type With<'a> = (&'a RtSection<'a>, &'a Schedule, &'a Limits, &'a mut LogWriter, &'a mut Option<Watcher>);
        fn run<W: Wait>(wait: &W, (rt, schedule, limits, log, watcher): With<'_>) -> Result<LoopResult, i32> {
            run_cycles(rt, wait, schedule, limits, log, watcher)
        }
        let with = (rt, schedule, limits, log, watcher);
        match self {
            AnyWait::Sleep(wait) => run(wait, with),
            #[cfg(target_arch = "x86_64")]
            AnyWait::Movable(wait) => run(wait, with),
            AnyWait::Relative(wait) => run(wait, with),
            AnyWait::TimerFile(wait) => run(wait, with),
            AnyWait::Itimer(wait) => run(wait, with),
            AnyWait::SignalTimer(wait) => run(wait, with),
            AnyWait::Futex(wait) => run(wait, with),
            AnyWait::Poll(wait) => run(wait, with),
            AnyWait::Yield(wait) => run(wait, with),
            AnyWait::Cobalt(wait) => run(wait, with),
            AnyWait::Noise(wait) => run(&**wait, with),
            #[cfg(target_arch = "x86_64")]
            AnyWait::Timers(wait) => run(wait, with),
            AnyWait::Logger(wait) => run(&**wait, with),
            AnyWait::Target(wait) => run(wait, with),
            AnyWait::Handoff(wait) => {
                let wait = wait.counting_from(limits.first_recorded());
                let ended = run(wait, with)?;
                Ok(LoopResult { passed_over: ended.passed_over + wait.passed_over(), ..ended })
            }
        }
    }
}

#[cfg(not(loom))]
#[cfg(test)]
mod tests;
