//! Every way to wait: each a [`Clock`], made before the barrier.

#[cfg(target_arch = "x86_64")]
mod devices;
mod event;
mod exchange;
mod sleep;

use crate::{Clock, Ended, Limits, LinkEnd, LogWriter, RtSection, Watcher, run_cycles};
#[cfg(target_arch = "x86_64")]
use devices::Timers;
use event::{Itimer, SignalTimer};
use exchange::{Answering, Asking};
use model::{Method, Period, Schedule};
use sleep::{Futexed, Polled, Relative, Sleep, TimerFile, Yield};
use std::io;

/// A method with what it needs from the kernel.
#[derive(Debug)]
pub(crate) enum Waiting {
    Sleep(Sleep),
    Relative(Relative),
    TimerFile(TimerFile),
    Itimer(Itimer),
    SignalTimer(SignalTimer),
    Futexed(Futexed),
    Polled(Polled),
    Yield(Yield),
    #[cfg(target_arch = "x86_64")]
    Timers(Timers),
    Asking(Asking),
    Answering(Answering),
}

impl Waiting {
    /// Makes what `method` needs, in the thread that will wait; `link` is what it answers by, if that is what is measured.
    ///
    /// # Errors
    /// When the kernel refuses, or the method is not one of a thread.
    pub(crate) fn by(method: Method, period: Period, link: Option<LinkEnd>) -> io::Result<Waiting> {
        let span = period.span();
        Ok(match method {
            Method::ClockNanosleep { clock, relative: false } => Waiting::Sleep(Sleep(clock)),
            Method::ClockNanosleep { clock, relative: true } => {
                Waiting::Relative(Relative { clock: Some(clock), span })
            }
            Method::Nanosleep => Waiting::Relative(Relative { clock: None, span }),
            Method::Timerfd { clock } => Waiting::TimerFile(TimerFile::new(clock)?),
            Method::Itimer => Waiting::Itimer(Itimer::new(span)),
            Method::PosixTimer { clock } => Waiting::SignalTimer(SignalTimer::new(clock, span)?),
            Method::Futex { clock } => Waiting::Futexed(Futexed::new(clock)),
            Method::Poll => Waiting::Polled(Polled),
            Method::Deadline => Waiting::Yield(Yield),
            Method::Sleep(_) => return Err(io::Error::other("a language's sleep is measured in a program of its own")),
            Method::Response(_) => match link {
                #[cfg(target_arch = "x86_64")]
                Some(LinkEnd::Timers(timers)) => Waiting::Timers(Timers::new(timers)),
                Some(LinkEnd::Logger(logger)) => Waiting::Asking(Asking::new(logger)?),
                Some(LinkEnd::Target(target)) => Waiting::Answering(Answering::new(target)),
                None => return Err(io::Error::other("nothing was made to answer by")),
            },
            Method::Cost(_) => return Err(io::Error::other("what operations cost is measured without waiting")),
        })
    }

    /// Whether the kernel counts overruns for it.
    pub(crate) fn counts_overruns(&self) -> bool {
        matches!(self, Waiting::SignalTimer(_))
    }

    /// Runs the cycles, see [`run_cycles`].
    pub(crate) fn run(
        &self,
        rt: &RtSection<'_>,
        schedule: &Schedule,
        limits: &Limits,
        log: &mut LogWriter,
        watcher: &mut Option<Watcher>,
    ) -> Result<Ended, i32> {
        type With<'a> = (&'a RtSection<'a>, &'a Schedule, &'a Limits, &'a mut LogWriter, &'a mut Option<Watcher>);
        fn run<C: Clock>(clock: &C, (rt, schedule, limits, log, watcher): With<'_>) -> Result<Ended, i32> {
            run_cycles(rt, clock, schedule, limits, log, watcher)
        }
        let with = (rt, schedule, limits, log, watcher);
        match self {
            Waiting::Sleep(clock) => run(clock, with),
            Waiting::Relative(clock) => run(clock, with),
            Waiting::TimerFile(clock) => run(clock, with),
            Waiting::Itimer(clock) => run(clock, with),
            Waiting::SignalTimer(clock) => run(clock, with),
            Waiting::Futexed(clock) => run(clock, with),
            Waiting::Polled(clock) => run(clock, with),
            Waiting::Yield(clock) => run(clock, with),
            #[cfg(target_arch = "x86_64")]
            Waiting::Timers(clock) => run(clock, with),
            Waiting::Asking(clock) => run(clock, with),
            Waiting::Answering(clock) => run(clock, with),
        }
    }
}

#[cfg(not(loom))]
#[cfg(test)]
mod tests;
