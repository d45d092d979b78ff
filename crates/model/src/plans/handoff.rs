//! Hand-offs: one thread wakes another by an object of the kernel.

use crate::words::word::words;
use crate::{Policy, UnknownWord};
use std::fmt;
use std::str::FromStr;

words! {
    /// The object by which one thread wakes another.
    HandoffKind, "hand-off" {
        /// A word of memory, `FUTEX_WAIT` and `FUTEX_WAKE` (futex(2)).
        Futex = "futex",
        /// Two futexes with priority inheritance in turn, which their holder unlocks: `FUTEX_LOCK_PI`,
        /// `FUTEX_UNLOCK_PI`.
        FutexPi = "futex-pi",
        /// A condition variable of the C library that this program is linked with: `pthread_cond_signal(3)`.
        Condvar = "condvar",
        /// An event file, eventfd(2).
        Eventfd = "eventfd",
        /// An event file that is waited for by `epoll_wait(2)`, then read.
        Epoll = "epoll",
        /// A byte in a pipe, pipe(2).
        Pipe = "pipe",
        /// A byte in a pair of stream sockets, socketpair(2).
        Socketpair = "socketpair",
        /// A message in a POSIX queue, mq_overview(7).
        Mq = "mq",
        /// A POSIX semaphore of the C library, sem_overview(7).
        Sem = "sem",
        /// A System V semaphore, semop(2).
        SysvSem = "sysv-sem",
        /// A signal to the thread, tgkill(2), which waits by `sigwaitinfo(2)`.
        Signal = "signal",
    }
}

words! {
    /// A place relative to a CPU.
    CpuPlace, "place of a CPU" {
        /// The same core.
        Sibling = "sibling",
        /// Another core with the same last-level cache.
        SameCache = "same-cache",
        /// Another socket.
        OtherSocket = "other-socket",
    }
}

/// The CPU of a waker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WakerCpu {
    /// This one.
    Cpu(u32),
    /// The first usable one there, from the CPU of the measured thread.
    At(CpuPlace),
}

impl FromStr for WakerCpu {
    type Err = UnknownWord;

    fn from_str(text: &str) -> Result<Self, UnknownWord> {
        text.parse().map(WakerCpu::Cpu).or_else(|_| text.parse().map(WakerCpu::At))
    }
}

impl fmt::Display for WakerCpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WakerCpu::Cpu(cpu) => write!(f, "{cpu}"),
            WakerCpu::At(place) => write!(f, "{place}"),
        }
    }
}

/// A waker thread that wakes the measured one at each due time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Handoff {
    /// The object.
    pub kind: HandoffKind,
    /// The CPU of the waker; `None`: that of the measured thread.
    pub cpu: Option<WakerCpu>,
    /// The policy of the waker; `None`: that of the measured thread.
    pub policy: Option<Policy>,
}

impl Handoff {
    /// The word of the method.
    pub(super) const WORD: &str = "handoff";
}

/// Parse error of a hand-off.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HandoffError {
    /// Unknown object.
    #[error(transparent)]
    Unknown(#[from] UnknownWord),
    /// An option that hand-offs do not have, a wrong value, or an option given twice.
    #[error("invalid option `{0}` for method handoff: expected cpu=CPU policy=POLICY, each once")]
    Option(String),
}

impl FromStr for Handoff {
    type Err = HandoffError;

    /// Reads `KIND[,cpu=CPU][,policy=POLICY]`.
    fn from_str(text: &str) -> Result<Self, HandoffError> {
        let mut parts = text.split(',');
        let kind: HandoffKind = parts.next().unwrap_or_default().parse()?;
        let mut handoff = Handoff { kind, cpu: None, policy: None };
        for option in parts {
            let invalid = || HandoffError::Option(option.to_owned());
            match option.split_once('=') {
                Some(("cpu", cpu)) if handoff.cpu.is_none() => handoff.cpu = Some(cpu.parse().map_err(|_| invalid())?),
                Some(("policy", policy)) if handoff.policy.is_none() => {
                    handoff.policy = Some(policy.parse().map_err(|_| invalid())?);
                }
                _ => return Err(invalid()),
            }
        }
        Ok(handoff)
    }
}

impl fmt::Display for Handoff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", Handoff::WORD, self.kind)?;
        self.cpu.map_or(Ok(()), |cpu| write!(f, ",cpu={cpu}"))?;
        self.policy.map_or(Ok(()), |policy| write!(f, ",policy={policy}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Method;

    #[test]
    fn hand_offs_print_as_they_are_typed() {
        for kind in HandoffKind::KNOWN {
            for options in ["", ",cpu=3", ",cpu=same-cache", ",policy=fifo:90", ",cpu=0,policy=other:nice=5"] {
                let text = format!("handoff:{kind}{options}");
                assert_eq!(text.parse::<Method>().map(|method| method.to_string()), Ok(text));
            }
        }
        let swapped = "handoff:pipe,policy=fifo:9,cpu=1".parse::<Method>().unwrap();
        assert_eq!(swapped.to_string(), "handoff:pipe,cpu=1,policy=fifo:9");
    }

    #[test]
    fn a_wrong_hand_off_is_one_line() {
        let option = |given: &str| {
            format!("invalid option `{given}` for method handoff: expected cpu=CPU policy=POLICY, each once")
        };
        for given in ["cpu=", "cpu=-1", "cpu=a", "policy=fast", "other", "cpu", ""] {
            let error = format!("handoff:mq,{given}").parse::<Method>().unwrap_err();
            assert_eq!(error.to_string(), option(given));
        }
        assert_eq!("handoff:mq,cpu=1,cpu=1".parse::<Method>().unwrap_err().to_string(), option("cpu=1"));
        let HandoffError::Unknown(unknown) = "eventdf".parse::<Handoff>().unwrap_err() else { panic!("unknown") };
        assert_eq!((unknown.nearest().as_deref(), unknown.kind), (Some("eventfd"), "hand-off"));
        assert!("handoff".parse::<Method>().unwrap_err().to_string().starts_with("unknown hand-off `` (known: futex "));
    }
}
