//! System calls that ask for what a real-time thread needs, and those of them that the kernel refused.

use crate::events::{Event, What};
use punctual_model::RefusedCall;
use std::collections::HashMap;
use syscalls::Sysno;

/// Most refused calls that are kept apart.
const MOST: usize = 64;
/// Errors by which the kernel refuses (errno(3)). Others tell that a call means nothing, or that its thread has ended;
/// programs probe with `EFAULT` and `E2BIG`.
const ERRORS: [(i64, &str); 7] =
    [(1, "EPERM"), (11, "EAGAIN"), (12, "ENOMEM"), (13, "EACCES"), (16, "EBUSY"), (22, "EINVAL"), (38, "ENOSYS")];
/// Names of policies by number (include/uapi/linux/sched.h), and the flag that children do not inherit it.
const POLICIES: [&str; 7] = ["other", "fifo", "rr", "batch", "", "idle", "deadline"];
const RESET_ON_FORK: u64 = 0x4000_0000;
/// `PRIO_PROCESS` of setpriority(2).
const OF_THREAD: u64 = 0;
/// Resource limits by number (include/uapi/asm-generic/resource.h).
const RESOURCES: [(u64, &str); 3] = [(8, "RLIMIT_MEMLOCK"), (13, "RLIMIT_NICE"), (14, "RLIMIT_RTPRIO")];

/// Calls that change what is found later of a process: its user and its capabilities.
const CHANGES: [&str; 4] = ["setuid", "setreuid", "setresuid", "capset"];

/// Things that calls ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wish {
    /// A policy or a priority.
    Policy,
    /// CPUs.
    Cpus,
    /// Locked memory.
    Memory,
    /// A nice value.
    Nice,
    /// A higher resource limit.
    Resource,
}

/// A call that asks.
#[derive(Debug, Clone)]
struct Request {
    wish: Wish,
    call: &'static str,
    asked: Option<String>,
    /// ID of the thread for which it asks, as the caller knows it; 0: the caller.
    target: i32,
    bytes: u64,
}

/// A call that the kernel refused.
#[derive(Debug, Clone)]
pub struct Refused {
    /// ID of the thread that called.
    pub pid: i32,
    /// ID of the thread for which it asked, as the caller knows it.
    pub target: i32,
    /// Kind of what it asked for.
    pub wish: Wish,
    /// Bytes that it wanted to lock.
    pub bytes: u64,
    /// Whether the kernel's event of its entry is missing: a filter before that refused it.
    pub is_filtered: bool,
    /// Whether its limit was looked for, or cannot be found any more.
    pub is_examined: bool,
    /// Its record, without names of threads.
    pub call: RefusedCall,
}

/// The calls of all watched threads that ask.
#[derive(Debug, Default)]
pub(super) struct Requests {
    /// What each thread asks for that is in one of [`ASKING`].
    open: HashMap<i32, Option<Request>>,
    pub(super) refused: Vec<Refused>,
    has_gaps: bool,
}

/// Calls that may ask.
const ASKING: [Sysno; 9] = [
    Sysno::sched_setscheduler,
    Sysno::sched_setattr,
    Sysno::sched_setparam,
    Sysno::sched_setaffinity,
    Sysno::mlock,
    Sysno::mlock2,
    Sysno::mlockall,
    Sysno::setpriority,
    Sysno::prlimit64,
];

fn asks(number: i64) -> bool {
    ASKING.iter().any(|known| i64::from(known.id()) == number)
}

impl Request {
    /// The request of a call with these arguments; `None` if it asks for nothing.
    fn of(number: i64, arguments: Option<[u64; 3]>) -> Option<Request> {
        let known = usize::try_from(number).ok().and_then(Sysno::new)?;
        let [first, second, third] = arguments.unwrap_or_default();
        let id = |argument: u64| i32::try_from(argument).unwrap_or(0);
        let (wish, asked, target) = match known {
            Sysno::sched_setscheduler => {
                let name = usize::try_from(second & !RESET_ON_FORK).ok().and_then(|number| POLICIES.get(number));
                (Wish::Policy, name.map(|name| (*name).to_owned()), id(first))
            }
            Sysno::sched_setattr | Sysno::sched_setparam => (Wish::Policy, None, id(first)),
            Sysno::sched_setaffinity => (Wish::Cpus, None, id(first)),
            Sysno::mlock | Sysno::mlock2 => (Wish::Memory, Some(format!("{second} bytes of locked memory")), 0),
            Sysno::mlockall => (Wish::Memory, Some("locked memory".to_owned()), 0),
            Sysno::setpriority if first == OF_THREAD => {
                #[expect(clippy::cast_possible_truncation, reason = "the kernel takes an int")]
                let nice = third.cast_signed() as i32;
                (Wish::Nice, Some(format!("nice {nice}")), id(second))
            }
            Sysno::prlimit64 if third != 0 => {
                let (_, name) = RESOURCES.into_iter().find(|(number, _)| *number == second)?;
                (Wish::Resource, Some(name.to_owned()), id(first))
            }
            _ => return None,
        };
        let asked = asked.filter(|_| arguments.is_some());
        Some(Request { wish, call: known.name(), asked, target, bytes: second })
    }
}

impl Requests {
    /// Takes the entry or the exit of a call; `is_known`: the thread had events before.
    pub(super) fn take(&mut self, event: &Event, is_known: bool) {
        match event.what {
            What::SysEnter { number, arguments } if asks(number) => {
                self.open.insert(event.pid, Request::of(number, Some(arguments)));
            }
            What::SysExit { number, result } => {
                let open = if self.open.is_empty() { None } else { self.open.remove(&event.pid) };
                let is_filtered = open.is_none() && is_known && !self.has_gaps && asks(number);
                if result >= 0 {
                    self.granted(event.pid, number, open.flatten().as_ref());
                } else if let Some((_, error)) = ERRORS.into_iter().find(|(number, _)| -number == result)
                    && let Some(request) = if is_filtered { Request::of(number, None) } else { open.flatten() }
                {
                    self.refuse(event.pid, request, error, is_filtered);
                }
            }
            _ => {}
        }
    }

    /// Forgets the open calls after lost events. From then on a missing entry proves nothing.
    pub(super) fn lost(&mut self) {
        self.open.clear();
        self.has_gaps = true;
    }

    fn granted(&mut self, pid: i32, number: i64, request: Option<&Request>) {
        for one in self.refused.iter_mut().filter(|one| one.pid == pid && !one.is_examined) {
            let name = usize::try_from(number).ok().and_then(Sysno::new).map_or("", |known| known.name());
            let is_resource = request.is_some_and(|request| request.wish == Wish::Resource);
            one.is_examined = is_resource || CHANGES.contains(&name);
        }
        let Some(request) = request else { return };
        let target = if request.target == 0 { pid } else { request.target };
        for one in self.refused.iter_mut().filter(|one| one.wish == request.wish && one.target == target) {
            one.call.granted_later = true;
        }
    }

    fn refuse(&mut self, pid: i32, request: Request, error: &str, is_filtered: bool) {
        let target = if request.target == 0 { pid } else { request.target };
        let call = RefusedCall {
            call: request.call.to_owned(),
            asked: request.asked,
            target: (target != pid).then(|| format!("thread {target}")),
            error: Some(error.to_owned()),
            n: 1,
            ..RefusedCall::default()
        };
        let is_same = |one: &&mut Refused| {
            let (before, now) = (&one.call, &call);
            let is_same = (&before.call, &before.asked, &before.error) == (&now.call, &now.asked, &now.error);
            is_same && (one.pid, one.target) == (pid, target)
        };
        if let Some(before) = self.refused.iter_mut().find(is_same) {
            before.call.n += 1;
            before.call.granted_later = false;
        } else if self.refused.len() < MOST {
            let (wish, bytes) = (request.wish, request.bytes);
            self.refused.push(Refused { pid, target, wish, bytes, is_filtered, is_examined: false, call });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watch::script::{ME, Script};

    /// The refused calls of a script, whose thread made a call before.
    fn refused(script: Script) -> Vec<Refused> {
        let mut requests = Requests::default();
        script.events().iter().zip(0..).for_each(|((_, event), i)| requests.take(event, i > 0));
        requests.refused
    }

    #[test]
    fn a_refused_call_is_known_with_what_it_asked_for() {
        let minus_10 = (-10_i64).cast_unsigned();
        for (known, arguments, result, expected) in [
            (Sysno::sched_setscheduler, [0, 1, 9], -1, Some((Some("fifo"), None, "EPERM"))),
            (Sysno::sched_setscheduler, [0, 2 | RESET_ON_FORK, 9], -1, Some((Some("rr"), None, "EPERM"))),
            (Sysno::sched_setscheduler, [7, 1, 9], -1, Some((Some("fifo"), Some("thread 7"), "EPERM"))),
            (Sysno::sched_setscheduler, [0, 9, 9], -22, Some((None, None, "EINVAL"))),
            (Sysno::sched_setattr, [0, 5, 0], -16, Some((None, None, "EBUSY"))),
            (Sysno::mlockall, [3, 0, 0], -12, Some((Some("locked memory"), None, "ENOMEM"))),
            (Sysno::mlock, [0, 4096, 0], -12, Some((Some("4096 bytes of locked memory"), None, "ENOMEM"))),
            (Sysno::setpriority, [0, 0, minus_10], -13, Some((Some("nice -10"), None, "EACCES"))),
            (Sysno::prlimit64, [0, 14, 8], -1, Some((Some("RLIMIT_RTPRIO"), None, "EPERM"))),
            // Reads a limit, asks for another one, for a process group; a probe of the kernel's size of the mask; fine.
            (Sysno::prlimit64, [0, 14, 0], -1, None),
            (Sysno::prlimit64, [0, 7, 8], -1, None),
            (Sysno::setpriority, [1, 0, minus_10], -13, None),
            (Sysno::sched_setaffinity, [0, 128, 0], -14, None),
            (Sysno::mlockall, [3, 0, 0], 0, None),
            (Sysno::read, [3, 0, 0], -1, None),
        ] {
            let before = Script::new().enter(1, Sysno::getpid, [0; 3]).exit(2, Sysno::getpid, 0);
            let all = refused(before.enter(10, known, arguments).exit(20, known, result));
            let found: Vec<_> = all
                .iter()
                .map(|one| (one.call.asked.as_deref(), one.call.target.as_deref(), one.call.error.as_deref().unwrap()))
                .collect();
            assert_eq!(found, expected.into_iter().collect::<Vec<_>>(), "{known} {arguments:?}");
            assert!(all.iter().all(|one| !one.is_filtered && one.call.n == 1));
        }
    }

    #[test]
    fn calls_alike_are_one_and_a_later_one_that_succeeds_is_known() {
        let asks = |script: Script, at_ns: u64, policy: u64, result: i64| {
            script.enter(at_ns, Sysno::sched_setscheduler, [0, policy, 9]).exit(
                at_ns + 1,
                Sysno::sched_setscheduler,
                result,
            )
        };
        let twice = asks(asks(Script::new(), 10, 1, -1), 20, 1, -1);
        let of = |script: &Script| -> Vec<(u64, bool)> {
            refused(script.clone()).iter().map(|one| (one.call.n, one.call.granted_later)).collect()
        };
        assert_eq!(of(&twice), [(2, false)]);
        assert_eq!(of(&asks(twice.clone(), 30, 2, -1)), [(2, false), (1, false)]);
        let granted = asks(twice, 30, 2, 0);
        assert_eq!(of(&granted), [(2, true)]);
        assert_eq!(of(&asks(granted.clone(), 40, 1, -1)), [(3, false)]);
        // For another thread.
        let other = granted.enter(50, Sysno::sched_setscheduler, [7, 1, 9]).exit(51, Sysno::sched_setscheduler, -1);
        assert_eq!(of(&other), [(2, true), (1, false)]);
    }

    #[test]
    fn a_limit_is_not_looked_for_after_a_change_of_what_it_is_read_from() {
        let asked = Script::new().enter(1, Sysno::getpid, [0; 3]).exit(2, Sysno::getpid, 0);
        let asked = asked.enter(10, Sysno::sched_setscheduler, [0, 1, 9]).exit(20, Sysno::sched_setscheduler, -1);
        for (known, arguments, is_examined) in [
            (Sysno::setresuid, [7, 7, 7], true),
            (Sysno::capset, [0; 3], true),
            (Sysno::prlimit64, [0, 14, 8], true),
            (Sysno::prlimit64, [0, 14, 0], false),
            (Sysno::getpid, [0; 3], false),
        ] {
            let all = refused(asked.clone().enter(30, known, arguments).exit(40, known, 0));
            assert_eq!(all[0].is_examined, is_examined, "{known} {arguments:?}");
        }
    }

    #[test]
    fn a_call_without_its_entry_was_filtered_unless_events_may_be_missing() {
        let exit = What::SysExit { number: i64::from(Sysno::sched_setscheduler.id()), result: -1 };
        let event = Event { at_ns: 9, pid: ME, flags: 0, what: exit };
        for (is_known, is_lost, expected) in [(true, false, 1), (false, false, 0), (true, true, 0)] {
            let mut requests = Requests::default();
            if is_lost {
                requests.lost();
            }
            requests.take(&event, is_known);
            assert_eq!(requests.refused.len(), expected, "{is_known} {is_lost}");
            assert!(requests.refused.iter().all(|one| one.is_filtered && one.call.asked.is_none()));
        }
    }
}
