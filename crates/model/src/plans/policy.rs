//! Scheduling policies of a measured thread.

use crate::words::word::as_text;
use crate::{Span, UnknownWord};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A static priority of a real-time policy: 1 (lowest) to 99, sched(7).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RtPriority(u8);

impl RtPriority {
    /// Priority of `fifo` and `rr` without a number: 80, above threaded interrupt handlers (50) and below the kernel's
    /// migration and watchdog threads (99).
    pub const DEFAULT: RtPriority = RtPriority(80);

    /// `None` outside 1..=99.
    pub fn new(value: u32) -> Option<Self> {
        u8::try_from(value).ok().filter(|value| (1..=99).contains(value)).map(Self)
    }

    /// The priority as the kernel takes it.
    pub fn get(self) -> u32 {
        u32::from(self.0)
    }
}

/// A nice value: -20 (favored) to 19, sched(7). The default is 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Nice(i8);

impl Nice {
    /// The most favored value.
    pub const HIGHEST: Nice = Nice(-20);

    /// `None` outside -20..=19.
    pub fn new(value: i32) -> Option<Self> {
        i8::try_from(value).ok().filter(|value| (-20..=19).contains(value)).map(Self)
    }

    /// The value as the kernel takes it.
    pub fn get(self) -> i32 {
        i32::from(self.0)
    }
}

/// Parameters of a `SCHED_DEADLINE` thread, sched(7): `runtime <= deadline <= period`, none of them 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeadlineBudget {
    /// CPU time in each period.
    pub runtime: Span,
    /// Time from the start of a period until the runtime must have been provided.
    pub deadline: Span,
    /// Distance between two starts.
    pub period: Span,
}

/// Scheduling policy of the measured thread, sched(7).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(try_from = "String", into = "String")]
pub enum Policy {
    /// `SCHED_OTHER`: the default policy of every program, at nice 0 unless set otherwise.
    Other(Nice),
    /// `SCHED_BATCH`: as other, but a waking thread does not preempt.
    Batch,
    /// `SCHED_IDLE`: runs when no other thread is runnable.
    Idle,
    /// `SCHED_FIFO` at the given priority.
    Fifo(RtPriority),
    /// `SCHED_RR`: as fifo, with time slices among threads of the same priority.
    RoundRobin(RtPriority),
    /// `SCHED_DEADLINE` with these parameters: before all other policies, on any CPU of the root domain.
    Deadline(DeadlineBudget),
}

impl Default for Policy {
    fn default() -> Policy {
        Policy::OTHER
    }
}

/// Parse error of a policy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PolicyError {
    /// Unknown policy; there is no fallback to another one.
    #[error(transparent)]
    Unknown(#[from] UnknownWord),
    /// A priority outside 1..=99.
    #[error("invalid policy `{policy}:{given}`: expected a priority from 1 to 99, like {policy}:80")]
    Priority {
        /// The policy as typed.
        policy: &'static str,
        /// The text in place of the priority.
        given: String,
    },
    /// A priority without a policy: `rt:80`, `80`.
    #[error("invalid policy `{given}`: expected fifo:{priority} or rr:{priority}")]
    NoPolicy {
        /// The policy as typed.
        given: String,
        /// The priority as typed, or the default one.
        priority: u32,
    },
    /// A nice value outside -20..=19, or not a number.
    #[error("invalid policy `other:{0}`: expected a nice value from -20 to 19, like other:nice=5")]
    Nice(String),
    /// Missing or contradictory deadline parameters.
    #[error(
        "invalid policy `deadline:{0}`: expected deadline:RUNTIME/DEADLINE/PERIOD with 0 < RUNTIME <= DEADLINE <= \
         PERIOD, like deadline:200us/1ms/1ms"
    )]
    Budget(String),
}

impl Policy {
    /// The priority as the kernel counts (include/linux/sched/prio.h): -1 deadline, 0 to 98 real-time, 100 to 139
    /// normal; a lower number is a higher priority.
    pub fn kernel_priority(self) -> i32 {
        match self {
            Policy::Fifo(priority) | Policy::RoundRobin(priority) => 99 - priority.get().cast_signed(),
            Policy::Deadline(_) => -1,
            Policy::Other(nice) => 120 + nice.get(),
            Policy::Batch | Policy::Idle => 120,
        }
    }

    /// The priority of a FIFO or round-robin policy, 1 to 99; `None` for all others.
    pub fn priority(self) -> Option<u32> {
        match self {
            Policy::Fifo(priority) | Policy::RoundRobin(priority) => Some(priority.get()),
            _ => None,
        }
    }

    /// Every policy in its typed form.
    pub const KNOWN: &[&str] =
        &["other", "other:nice=N", "batch", "idle", "fifo:PRIORITY", "rr:PRIORITY", "deadline:RUNTIME/DEADLINE/PERIOD"];

    /// `SCHED_OTHER` at nice 0.
    pub const OTHER: Policy = Policy::Other(Nice(0));

    /// Whether it is a real-time policy, which needs a privilege and has no timer slack.
    pub fn is_realtime(self) -> bool {
        matches!(self, Policy::Fifo(_) | Policy::RoundRobin(_) | Policy::Deadline(_))
    }

    /// Whether the thread can be pinned to one CPU. The kernel admits a deadline thread only if its affinity covers all
    /// CPUs of its root domain (`__sched_setscheduler`, kernel/sched/syscalls.c).
    pub fn can_be_pinned(self) -> bool {
        !matches!(self, Policy::Deadline(_))
    }
}

/// The priority of a real-time policy, from text; [`RtPriority::DEFAULT`] if none is given.
fn priority(policy: &'static str, given: Option<&str>) -> Result<RtPriority, PolicyError> {
    let Some(given) = given else { return Ok(RtPriority::DEFAULT) };
    let priority = given.parse().ok().and_then(RtPriority::new);
    priority.ok_or_else(|| PolicyError::Priority { policy, given: given.to_owned() })
}

/// Error for a priority whose policy is missing.
fn no_policy(text: &str, given: Option<&str>) -> PolicyError {
    let priority = priority("fifo", given).unwrap_or(RtPriority::DEFAULT).get();
    PolicyError::NoPolicy { given: text.to_owned(), priority }
}

/// The priority in a word without a `:`, like `80` or `fifo80`.
fn bare_priority(word: &str) -> Option<&str> {
    let number = ["fifo", "rr", ""].into_iter().find_map(|policy| word.strip_prefix(policy))?;
    priority("fifo", Some(number)).is_ok().then_some(number)
}

/// The nice value, from `nice=N`.
fn nice(option: &str) -> Result<Nice, PolicyError> {
    let nice = option.strip_prefix("nice=").and_then(|n| n.parse().ok()).and_then(Nice::new);
    nice.ok_or_else(|| PolicyError::Nice(option.to_owned()))
}

/// The deadline parameters, from `RUNTIME/DEADLINE/PERIOD`.
fn budget(option: &str) -> Result<DeadlineBudget, PolicyError> {
    let spans: Vec<Span> = option.split('/').map_while(|span| span.parse().ok()).collect();
    match spans[..] {
        [runtime, deadline, period]
            if option.split('/').count() == 3 && Span(0) < runtime && runtime <= deadline && deadline <= period =>
        {
            Ok(DeadlineBudget { runtime, deadline, period })
        }
        _ => Err(PolicyError::Budget(option.to_owned())),
    }
}

impl FromStr for Policy {
    type Err = PolicyError;

    /// Parses a policy in any case, with or without the prefix of the kernel's constants: `SCHED_FIFO:80` is `fifo:80`.
    fn from_str(text: &str) -> Result<Self, PolicyError> {
        let lower = text.to_ascii_lowercase();
        let word = lower.strip_prefix("sched_").unwrap_or(&lower);
        let (name, option) = word.split_once(':').map_or((word, None), |(name, option)| (name, Some(option)));
        match (name, option) {
            ("other" | "normal", None) => Ok(Policy::OTHER),
            ("other", Some(option)) => nice(option).map(Policy::Other),
            ("batch", None) => Ok(Policy::Batch),
            ("idle", None) => Ok(Policy::Idle),
            ("fifo", given) => priority("fifo", given).map(Policy::Fifo),
            ("rr", given) => priority("rr", given).map(Policy::RoundRobin),
            ("deadline", given) => budget(given.unwrap_or_default()).map(Policy::Deadline),
            ("rt" | "realtime", given) => Err(no_policy(text, given)),
            (word, None) if bare_priority(word).is_some() => Err(no_policy(text, bare_priority(word))),
            _ => Err(UnknownWord::new("scheduling policy", text, Policy::KNOWN).into()),
        }
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Policy::OTHER => f.pad("other"),
            Policy::Other(nice) => f.pad(&format!("other:nice={}", nice.0)),
            Policy::Batch => f.pad("batch"),
            Policy::Idle => f.pad("idle"),
            Policy::Fifo(priority) => f.pad(&format!("fifo:{}", priority.0)),
            Policy::RoundRobin(priority) => f.pad(&format!("rr:{}", priority.0)),
            Policy::Deadline(DeadlineBudget { runtime, deadline, period }) => {
                f.pad(&format!("deadline:{runtime}/{deadline}/{period}"))
            }
        }
    }
}

as_text!(Policy, PolicyError);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plans::cell::tests::refusals;

    #[test]
    fn policies_print_as_they_are_typed() {
        for text in [
            "other",
            "other:nice=-20",
            "other:nice=19",
            "batch",
            "idle",
            "fifo:1",
            "fifo:99",
            "rr:1",
            "rr:99",
            "deadline:1ns/1ns/1ns",
            "deadline:200us/500us/1ms",
        ] {
            assert_eq!(text.parse::<Policy>().map(|policy| policy.to_string()), Ok(text.to_owned()));
        }
        assert_eq!("other:nice=0".parse(), Ok(Policy::OTHER));
    }

    #[test]
    fn the_kernel_s_names_any_case_and_a_default_priority_are_understood() {
        for (text, policy) in [
            ("fifo", "fifo:80"),
            ("rr", "rr:80"),
            ("FIFO:80", "fifo:80"),
            ("SCHED_FIFO:80", "fifo:80"),
            ("sched_rr", "rr:80"),
            ("SCHED_OTHER", "other"),
            ("SCHED_NORMAL", "other"),
            ("Other:nice=5", "other:nice=5"),
            ("SCHED_DEADLINE:200us/1ms/1ms", "deadline:200us/1ms/1ms"),
        ] {
            assert_eq!(text.parse::<Policy>().map(|policy| policy.to_string()), Ok(policy.to_owned()));
        }
    }

    #[test]
    fn invalid_priorities_nice_values_and_policies_are_refused() {
        for (text, message) in refusals(include_str!("../../tests/refusals/policies.txt")) {
            assert_eq!(text.parse::<Policy>().map_err(|e| e.to_string()), Err(message.to_owned()));
        }
    }
}
