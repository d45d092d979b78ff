//! System calls: their names, and what a thread that sleeps in one of them waits for.

use crate::events::{Event, What};
use serde::{Deserialize, Serialize};
use syscalls::Sysno;

/// A system call of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Call {
    /// Its number on this architecture.
    pub number: i64,
    /// What tells apart calls with one number: whether a sleep is until an instant, the operation of a futex, or the
    /// file descriptor.
    pub detail: u64,
}

/// What a sleep in a system call is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallKind {
    /// A length of time, or an instant.
    Sleep,
    /// A futex: a lock, a condition variable or a semaphore.
    Futex,
    /// A lock with priority inheritance.
    PiLock,
    /// Memory of the process.
    Memory,
    /// Data on a disk.
    Storage,
    /// CPUs of a thread.
    Affinity,
    /// Anything else.
    Other,
}

/// Calls that sleep until an instant or for a length of time, and those of a futex.
const SLEEPS: [&str; 2] = ["clock_nanosleep", "clock_nanosleep_time64"];
const FUTEXES: [&str; 2] = ["futex", "futex_time64"];

/// Number of a call that the trace does not have.
pub(crate) const UNKNOWN: i64 = -1;

/// `TIMER_ABSTIME` of clock_nanosleep(2).
const ABSOLUTE: u64 = 1;
/// Operations of futex(2), without its flags.
const OPERATION: u64 = 0x7f;
const WAIT: u64 = 0;
/// Value of a futex that is a lock for which others wait, as in glibc, and the bit for that in one that names its owner
/// (futex(2), `FUTEX_WAITERS`). What waits for numbers, like a barrier, has others.
pub(crate) const CONTENDED: u64 = 2;
pub(crate) const HAS_WAITERS: u64 = 0x8000_0000;
const WAIT_BITSET: u64 = 9;
const LOCK_PI: [u64; 2] = [6, 13];
/// `FUTEX_WAKE`, `FUTEX_WAKE_OP`, `FUTEX_UNLOCK_PI`, `FUTEX_WAKE_BITSET`.
const WAKE: [u64; 4] = [1, 5, 7, 10];

impl Call {
    /// The call with this number and its first arguments.
    pub(crate) fn of(number: i64, arguments: [u64; 3]) -> Call {
        // By name, because architectures of 32 bits have further calls, for a time of 64.
        let detail = match sysno(number).map_or("", |known| known.name()) {
            name if SLEEPS.contains(&name) => arguments[1] & ABSOLUTE,
            name if FUTEXES.contains(&name) => arguments[1] & OPERATION,
            name if takes_descriptor(name) => arguments[0],
            "" if number == UNKNOWN => arguments[0],
            _ => 0,
        };
        Call { number, detail }
    }

    /// Its name, like `read`.
    pub fn name(self) -> String {
        match sysno(self.number) {
            Some(known) => known.name().to_owned(),
            None if self.is_unknown() => "unknown call".to_owned(),
            None => format!("system call {}", self.number),
        }
    }

    /// Its name with what tells it apart, like `futex wait` or `read(5)`.
    pub fn text(self) -> String {
        let name = self.name();
        match self.kind() {
            CallKind::PiLock => "lock with priority inheritance".to_owned(),
            CallKind::Futex if self.detail == WAIT => "futex".to_owned(),
            CallKind::Futex if self.detail == WAIT_BITSET => {
                "futex (condition variable, semaphore or rwlock)".to_owned()
            }
            CallKind::Sleep if self.is_until_instant() => format!("{name} until an instant"),
            CallKind::Sleep => format!("{name} for a length of time"),
            _ if self.is_unknown() && self.detail != 0 => format!("{name} with a timer"),
            _ if takes_descriptor(&name) => format!("{name}({})", self.detail),
            _ => name,
        }
    }

    /// Whether it is a sleep in a trace without system calls.
    pub(crate) fn is_unknown(self) -> bool {
        self.number == UNKNOWN
    }

    /// Whether it sleeps until an instant.
    pub(crate) fn is_until_instant(self) -> bool {
        sysno(self.number).is_some_and(|known| SLEEPS.contains(&known.name())) && self.detail & ABSOLUTE != 0
    }

    /// Whether it continues a call that a signal interrupted.
    pub(crate) fn is_restart(self) -> bool {
        sysno(self.number) == Some(Sysno::restart_syscall)
    }

    /// Whether it wakes threads that sleep in the futex that is its first argument.
    pub(crate) fn wakes_futex(self) -> bool {
        WAKE.contains(&self.detail) && self.is_futex()
    }

    /// Whether it waits in a futex with a value that a lock has for which others wait, too.
    pub(crate) fn waits_for_lock(self, value: u64) -> bool {
        let value = value & 0xffff_ffff;
        (value == CONTENDED || value & HAS_WAITERS != 0) && self.detail == WAIT && self.is_futex()
    }

    /// Whether it is one of futex(2).
    pub(crate) fn is_futex(self) -> bool {
        sysno(self.number).is_some_and(|known| FUTEXES.contains(&known.name()))
    }

    /// Whether it gives up the CPU and stays runnable.
    pub(crate) fn is_yield(self) -> bool {
        sysno(self.number) == Some(Sysno::sched_yield)
    }

    /// Whether it may wait for data of a socket.
    pub(crate) fn may_be_of_socket(self) -> bool {
        let name = self.known_name();
        let is_read = ["read", "readv", "io_uring_enter"].contains(&name);
        is_read || self.polls() || name.starts_with("recv") || name.starts_with("accept")
    }

    /// Its name; empty if that is not known.
    fn known_name(self) -> &'static str {
        sysno(self.number).map_or("", |known| known.name())
    }

    /// Whether it waits for one of several things.
    pub(crate) fn polls(self) -> bool {
        let name = self.known_name();
        ["epoll_", "poll", "ppoll", "select", "pselect"].iter().any(|begin| name.starts_with(begin))
    }

    /// Whether a timer that it starts is its own timeout and ends with it, unlike that of `timerfd_settime` or of a
    /// read of one.
    pub(super) fn owns_its_timer(self) -> bool {
        SLEEPS.contains(&self.known_name()) || self.known_name() == "nanosleep" || self.is_futex() || self.polls()
    }

    /// Whether an event ends a call that has replaced the program.
    pub(super) fn is_exec(event: &Event) -> bool {
        let What::SysExit { number, result: 0 } = event.what else { return false };
        matches!(sysno(number), Some(Sysno::execve | Sysno::execveat))
    }

    /// What a sleep in it is for.
    pub(crate) fn kind(self) -> CallKind {
        let name = self.name();
        match name.as_str() {
            "clock_nanosleep" | "nanosleep" | "clock_nanosleep_time64" => CallKind::Sleep,
            "futex" | "futex_time64" if LOCK_PI.contains(&self.detail) => CallKind::PiLock,
            "futex" | "futex_time64" | "futex_wait" | "futex_waitv" => CallKind::Futex,
            "mmap" | "mmap2" | "munmap" | "mremap" | "brk" | "madvise" | "mprotect" => CallKind::Memory,
            "fsync" | "fdatasync" | "sync" | "syncfs" | "msync" | "sync_file_range" => CallKind::Storage,
            "sched_setaffinity" => CallKind::Affinity,
            _ => CallKind::Other,
        }
    }
}

/// Whether the first argument is the descriptor of the file that is waited for.
fn takes_descriptor(name: &str) -> bool {
    const OTHERS: [&str; 12] = [
        "read", "write", "pread64", "pwrite64", "readv", "writev", "recvfrom", "recvmsg", "sendto", "sendmsg", "ioctl",
        "accept4",
    ];
    OTHERS.contains(&name) || name.starts_with("epoll_wait") || name.starts_with("epoll_pwait")
}

fn sysno(number: i64) -> Option<Sysno> {
    usize::try_from(number).ok().and_then(Sysno::new)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(known: Sysno, arguments: [u64; 3]) -> Call {
        Call::of(i64::from(known.id()), arguments)
    }

    #[test]
    fn calls_have_names_and_kinds() {
        for (known, arguments, text, kind) in [
            (Sysno::clock_nanosleep, [1, 1, 0], "clock_nanosleep until an instant", CallKind::Sleep),
            (Sysno::clock_nanosleep, [0, 0, 0], "clock_nanosleep for a length of time", CallKind::Sleep),
            (Sysno::futex, [7, 128, 0], "futex", CallKind::Futex),
            (Sysno::futex, [7, 128 | 9, 0], "futex (condition variable, semaphore or rwlock)", CallKind::Futex),
            (Sysno::futex, [7, 128 | 6, 0], "lock with priority inheritance", CallKind::PiLock),
            (Sysno::read, [5, 0, 0], "read(5)", CallKind::Other),
            (Sysno::fsync, [5, 0, 0], "fsync", CallKind::Storage),
            (Sysno::munmap, [0, 0, 0], "munmap", CallKind::Memory),
        ] {
            let call = call(known, arguments);
            assert_eq!((call.text().as_str(), call.kind()), (text, kind));
        }
        assert_eq!(Call { number: 99_999, detail: 0 }.text(), "system call 99999");
        assert_eq!(Call::of(UNKNOWN, [0; 3]).text(), "unknown call");
        assert_eq!(Call::of(UNKNOWN, [1, 0, 0]).text(), "unknown call with a timer");
    }
}
