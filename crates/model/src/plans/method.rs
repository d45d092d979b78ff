//! The wait methods of a measured thread, and the clocks they wait by.

use super::handoff::{Handoff, HandoffError};
use crate::{Period, Span, UnknownWord};
use std::fmt;
use std::str::FromStr;

/// A clock of the kernel, clock_gettime(2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum ClockId {
    /// `CLOCK_MONOTONIC`: never set, but slewed by NTP; stops during suspend.
    #[default]
    Monotonic,
    /// `CLOCK_REALTIME`: the wall clock, which any process with the privilege may set.
    Realtime,
    /// `CLOCK_BOOTTIME`: as monotonic, and continues during suspend.
    Boottime,
    /// `CLOCK_TAI`: as realtime, without leap seconds.
    Tai,
    /// `CLOCK_MONOTONIC_RAW`: not slewed. No call waits by it; the scheduler's own clock follows it.
    MonotonicRaw,
}

impl ClockId {
    /// The clocks that can be selected.
    const KNOWN: [ClockId; 4] = [ClockId::Monotonic, ClockId::Realtime, ClockId::Boottime, ClockId::Tai];

    /// The word as typed.
    pub fn name(self) -> &'static str {
        match self {
            ClockId::Monotonic => "monotonic",
            ClockId::Realtime => "realtime",
            ClockId::Boottime => "boottime",
            ClockId::Tai => "tai",
            ClockId::MonotonicRaw => "monotonic_raw",
        }
    }

    /// Whether the clock may be set during a measurement.
    pub fn can_be_set(self) -> bool {
        matches!(self, ClockId::Realtime | ClockId::Tai)
    }
}

/// The wait method of the measured thread.
///
/// All but the relative ones wait for instants on a fixed grid, one a period. A *relative* method waits for a length of
/// time from now: its latency is actual minus requested, and time between two waits is part of neither.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Method {
    /// `clock_nanosleep(2)`: until an instant, or relative.
    ClockNanosleep {
        /// Any clock.
        clock: ClockId,
        /// Whether the wait is for a length of time instead of until an instant.
        relative: bool,
    },
    /// `nanosleep(2)`: relative, `CLOCK_MONOTONIC`.
    Nanosleep,
    /// A timer file, armed and read in each cycle: `timerfd_settime(2)`, `read(2)`.
    Timerfd {
        /// Any clock but TAI.
        clock: ClockId,
    },
    /// The process's only periodic timer, waited for by `sigwaitinfo(2)`: `setitimer(2)` with `ITIMER_REAL`.
    Itimer,
    /// A periodic timer that signals its thread, waited for by `sigwaitinfo(2)`: `timer_settime(2)`, `SIGEV_THREAD_ID`.
    PosixTimer {
        /// Any clock.
        clock: ClockId,
    },
    /// A wait on a futex that is never woken, with a timeout: `FUTEX_WAIT_BITSET` (futex(2)).
    Futex {
        /// Monotonic or realtime clock.
        clock: ClockId,
    },
    /// `ppoll(2)` without descriptors, with the remaining time as timeout, as event loops do.
    Poll,
    /// `sched_yield(2)` of a `SCHED_DEADLINE` thread, which ends its job of this period (sched(7)).
    Deadline,
    /// A wait of Cobalt, the co-kernel of Xenomai 3, until an instant on `CLOCK_MONOTONIC`, in primary mode.
    Cobalt {
        /// A timerfd, armed for each due time, instead of `clock_nanosleep`.
        timerfd: bool,
    },
    /// A wait for another thread, which wakes this one at each due time. Its latency counts from the waker's reading of
    /// the clock just before it does: the waker may be late itself.
    Handoff(Handoff),
    /// No wait: a loop that reads the processor's counter, and reports each gap between two readings.
    Noise {
        /// Shortest gap that is reported; `None`: 1 us, or more where a reading is slow.
        threshold: Option<Span>,
    },
}

/// The word of the only method with an option that is neither a clock nor `relative`.
const COBALT_TIMERFD: &str = "cobalt:timerfd";
const NOISE: &str = "noise";

impl Method {
    /// Every method in its typed form.
    pub const KNOWN: &[&str] = &[
        "clock_nanosleep[:relative][:CLOCK]",
        "nanosleep",
        "timerfd[:CLOCK]",
        "itimer",
        "posix_timer[:CLOCK]",
        "futex[:CLOCK]",
        "poll",
        "deadline",
        "cobalt[:timerfd]",
        "handoff:KIND",
        "noise[:THRESHOLD]",
    ];

    /// The most common method: `clock_nanosleep` until an instant on `CLOCK_MONOTONIC`.
    pub const CLOCK_NANOSLEEP: Method = Method::ClockNanosleep { clock: ClockId::Monotonic, relative: false };

    /// The period of cells of method `noise`: the resolution of the instants of gaps.
    pub const NOISE_PERIOD: Period = Period::SHORTEST;

    /// Whether it waits for a length of time, or not at all, so that there are no due times on a grid.
    pub fn is_relative(self) -> bool {
        matches!(self, Method::ClockNanosleep { relative: true, .. } | Method::Nanosleep | Method::Noise { .. })
    }

    /// The clock of its due times.
    pub fn clock(self) -> ClockId {
        match self {
            Method::ClockNanosleep { clock, .. }
            | Method::Timerfd { clock }
            | Method::PosixTimer { clock }
            | Method::Futex { clock } => clock,
            // The scheduler counts periods on its own clock, which NTP does not slew.
            Method::Deadline => ClockId::MonotonicRaw,
            Method::Nanosleep
            | Method::Itimer
            | Method::Poll
            | Method::Cobalt { .. }
            | Method::Handoff(_)
            | Method::Noise { .. } => ClockId::Monotonic,
        }
    }

    /// Whether timer slack delays its wake-ups. Slack applies to sleeping calls, not to timers (fs/timerfd.c,
    /// kernel/time/posix-timers.c and kernel/time/itimer.c set none).
    pub fn has_timer_slack(self) -> bool {
        !matches!(
            self,
            Method::Timerfd { .. }
                | Method::Itimer
                | Method::PosixTimer { .. }
                | Method::Deadline
                | Method::Cobalt { .. }
                | Method::Handoff(_)
                | Method::Noise { .. }
        )
    }

    /// The hand-off, if another thread wakes the one that waits.
    pub fn handoff(self) -> Option<Handoff> {
        if let Method::Handoff(handoff) = self { Some(handoff) } else { None }
    }

    /// Whether a process can wait by it in one thread only.
    pub fn is_one_a_process(self) -> bool {
        matches!(self, Method::Itimer)
    }

    /// The word, and the options in their written order.
    fn parts(self) -> (&'static str, bool, ClockId) {
        let default = ClockId::Monotonic;
        match self {
            Method::ClockNanosleep { clock, relative } => ("clock_nanosleep", relative, clock),
            Method::Nanosleep => ("nanosleep", false, default),
            Method::Timerfd { clock } => ("timerfd", false, clock),
            Method::Itimer => ("itimer", false, default),
            Method::PosixTimer { clock } => ("posix_timer", false, clock),
            Method::Futex { clock } => ("futex", false, clock),
            Method::Poll => ("poll", false, default),
            Method::Deadline => ("deadline", false, default),
            Method::Cobalt { timerfd: false } => ("cobalt", false, default),
            Method::Cobalt { timerfd: true } => (COBALT_TIMERFD, false, default),
            Method::Handoff(_) => (Handoff::WORD, false, default),
            Method::Noise { .. } => (NOISE, false, default),
        }
    }
}

/// Parse error of a method.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MethodError {
    /// Unknown method.
    #[error(transparent)]
    Unknown(#[from] UnknownWord),
    /// A malformed hand-off.
    #[error(transparent)]
    Handoff(#[from] HandoffError),
    /// An option that the method does not have.
    #[error("invalid option `{given}` for method {method}: expected {takes}")]
    Option {
        /// The method as typed.
        method: String,
        /// The option as typed.
        given: String,
        /// The options of the method.
        takes: String,
    },
}

impl FromStr for Method {
    type Err = MethodError;

    fn from_str(text: &str) -> Result<Self, MethodError> {
        if text == COBALT_TIMERFD {
            return Ok(Method::Cobalt { timerfd: true });
        }
        if let Some(handoff) = text.strip_prefix(Handoff::WORD).filter(|rest| rest.is_empty() || rest.starts_with(':'))
        {
            return Ok(Method::Handoff(handoff.trim_start_matches(':').parse()?));
        }
        use ClockId::{Boottime, Monotonic, Realtime};
        if let Some(given) = text.strip_prefix(NOISE).and_then(|rest| rest.strip_prefix(':')) {
            let threshold = given.parse().ok().filter(|span| *span > Span(0));
            let (method, takes) = (NOISE.to_owned(), "a threshold, like 5us".to_owned());
            let wrong = MethodError::Option { method, given: given.to_owned(), takes };
            return threshold.map(|span| Method::Noise { threshold: Some(span) }).ok_or(wrong);
        }
        let (word, options) = text.split_once(':').map_or((text, None), |(word, options)| (word, Some(options)));
        // futex(2) and timerfd_create(2) support fewer clocks than clock_nanosleep(2) and timer_create(2).
        let (clocks, can_be_relative): (&[ClockId], bool) = match word {
            "clock_nanosleep" => (&ClockId::KNOWN, true),
            "posix_timer" => (&ClockId::KNOWN, false),
            "timerfd" => (&[Monotonic, Realtime, Boottime], false),
            "futex" => (&[Monotonic, Realtime], false),
            _ => (&[], false),
        };
        let (mut clock, mut relative, mut is_clock_given) = (Monotonic, false, false);
        for option in options.into_iter().flat_map(|options| options.split(':')) {
            match clocks.iter().find(|clock| clock.name() == option) {
                Some(given) if !is_clock_given => (clock, is_clock_given) = (*given, true),
                None if option == "relative" && can_be_relative && !relative => relative = true,
                _ if Method::KNOWN.iter().any(|known| known.split([':', '[']).next() == Some(word)) => {
                    let mut takes: Vec<_> = can_be_relative.then_some("relative").into_iter().collect();
                    takes.extend(clocks.iter().map(|clock| clock.name()));
                    let takes = if takes.is_empty() { "no option".to_owned() } else { takes.join(" ") };
                    return Err(MethodError::Option { method: word.to_owned(), given: option.to_owned(), takes });
                }
                _ => {}
            }
        }
        Ok(match word {
            "clock_nanosleep" => Method::ClockNanosleep { clock, relative },
            "nanosleep" => Method::Nanosleep,
            "timerfd" => Method::Timerfd { clock },
            "itimer" => Method::Itimer,
            "posix_timer" => Method::PosixTimer { clock },
            "futex" => Method::Futex { clock },
            "poll" => Method::Poll,
            "deadline" => Method::Deadline,
            "cobalt" => Method::Cobalt { timerfd: false },
            NOISE => Method::Noise { threshold: None },
            _ => return Err(UnknownWord::new("method", text, Method::KNOWN).into()),
        })
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Method::Handoff(handoff) = self {
            return f.pad(&handoff.to_string());
        }
        if let Method::Noise { threshold: Some(threshold) } = self {
            return f.pad(&format!("{NOISE}:{threshold}"));
        }
        let (word, relative, clock) = self.parts();
        let clock = (clock != ClockId::Monotonic).then_some(clock.name());
        let options = [relative.then_some("relative"), clock];
        let words: Vec<_> = std::iter::once(word).chain(options.into_iter().flatten()).collect();
        f.pad(&words.join(":"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_print_as_they_are_typed() {
        for text in [
            "clock_nanosleep",
            "clock_nanosleep:relative",
            "clock_nanosleep:realtime",
            "clock_nanosleep:relative:tai",
            "nanosleep",
            "timerfd",
            "timerfd:boottime",
            "itimer",
            "posix_timer",
            "posix_timer:tai",
            "futex",
            "futex:realtime",
            "poll",
            "deadline",
            "cobalt",
            "cobalt:timerfd",
            "noise",
            "noise:500ns",
        ] {
            assert_eq!(text.parse::<Method>().map(|method| method.to_string()), Ok(text.to_owned()));
        }
        assert_eq!("clock_nanosleep:monotonic".parse(), Ok(Method::CLOCK_NANOSLEEP));
        assert_eq!("clock_nanosleep:tai:relative".parse::<Method>(), "clock_nanosleep:relative:tai".parse());
    }

    #[test]
    fn a_wrong_method_or_option_is_one_line() {
        for (text, message) in [
            ("timerfd:tai", "invalid option `tai` for method timerfd: expected monotonic realtime boottime"),
            ("futex:boottime", "invalid option `boottime` for method futex: expected monotonic realtime"),
            ("timerfd:relative", "invalid option `relative` for method timerfd: expected monotonic realtime boottime"),
            ("poll:", "invalid option `` for method poll: expected no option"),
            ("noise:0us", "invalid option `0us` for method noise: expected a threshold, like 5us"),
            ("itimer:realtime", "invalid option `realtime` for method itimer: expected no option"),
            (
                "clock_nanosleep:tai:tai",
                "invalid option `tai` for method clock_nanosleep: expected relative monotonic realtime boottime tai",
            ),
            (
                "clock_nanosleep:monotonic_raw",
                "invalid option `monotonic_raw` for method clock_nanosleep: expected relative monotonic realtime boottime tai",
            ),
        ] {
            assert_eq!(text.parse::<Method>().map_err(|err| err.to_string()), Err(message.to_owned()));
        }
        let MethodError::Unknown(unknown) = "timer_fd".parse::<Method>().unwrap_err() else { panic!("unknown") };
        assert_eq!(unknown.nearest().as_deref(), Some("timerfd"));
    }
}
