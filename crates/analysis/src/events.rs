//! Kernel events used by explanations, as plain data.

mod marks;

pub use marks::MarkNames;

use std::collections::{BTreeSet, HashMap};
use std::ops::Range;

/// Bits of an event's flags (`enum trace_flag_type`, include/linux/trace_events.h).
pub mod flags {
    /// Interrupts were off.
    pub const IRQS_OFF: u8 = 0x01;
    /// The thread was to be switched out (TIF_NEED_RESCHED).
    pub const NEED_RESCHED: u8 = 0x04;
    /// The event is of an interrupt handler, not of the current thread.
    pub const HARDIRQ: u8 = 0x08;
    /// The event is of a softirq, not of the current thread.
    pub const SOFTIRQ: u8 = 0x10;
}

/// State of a thread that is switched out (`prev_state` of `sched_switch`; include/linux/sched.h).
pub mod state {
    /// Uninterruptible sleep: `D`.
    pub const UNINTERRUPTIBLE: u32 = 0x02;
    /// Stopped by a signal or a debugger: `T`, `t`.
    pub const STOPPED: u32 = 0x0c;
    /// Mask of all sleeping and stopped states. A thread without any of these bits is runnable.
    pub const NOT_RUNNABLE: u32 = 0xff;
}

/// Priority of a thread of policy deadline (`MAX_DL_PRIO - 1`, include/linux/sched/deadline.h).
pub(crate) const DEADLINE_PRIORITY: i32 = -1;

/// Context that interrupts a thread. Contexts nest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Context {
    /// Interrupt of the processor itself, by its index in [`Trace::vectors`].
    Vector(u8),
    /// Device interrupt, by number.
    Interrupt(u32),
    /// Softirq, by number.
    Softirq(u8),
    /// Non-maskable interrupt.
    Nmi,
}

impl Context {
    /// Whether the owner of this name is a device interrupt, which has a number ([`Trace::owner_name`]).
    pub(crate) fn is_of_device(owner: &str) -> bool {
        owner.strip_prefix("interrupt ").is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_digit()))
    }

    /// Whether interrupts are off in this context.
    pub fn is_hard(self) -> bool {
        !matches!(self, Context::Softirq(_))
    }
}

/// Kind of an event, with its fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// `sched_switch`.
    Switch {
        /// ID of the thread that is switched out.
        prev: i32,
        /// Its kernel priority: -1 deadline, 0 to 98 real-time, 100 to 139 normal; a lower number is a higher priority.
        prev_priority: i32,
        /// Its state, see [`state`].
        prev_state: u32,
        /// ID of the thread that is switched in; 0 is idle.
        next: i32,
        /// Its priority.
        next_priority: i32,
    },
    /// `sched_waking`: a thread is woken.
    Waking {
        /// ID of the woken thread.
        pid: i32,
    },
    /// `sched_migrate_task`: a thread that does not run is moved to another CPU.
    Migrate {
        /// ID of the thread.
        pid: i32,
        /// Its new CPU.
        cpu: u32,
    },
    /// `hrtimer_start`.
    TimerStart {
        /// Address of the timer.
        timer: u64,
        /// Latest expiry, ns of its clock.
        expires_ns: i64,
        /// Earliest expiry, ns of its clock.
        soft_ns: i64,
    },
    /// `hrtimer_expire_entry`.
    TimerExpire {
        /// Address of the timer.
        timer: u64,
        /// Address of its function; `None` if the kernel does not record it.
        function: Option<u64>,
    },
    /// `timer_expire_entry`: a timer of the timer wheel.
    WheelExpire {
        /// Address of its function.
        function: u64,
    },
    /// `sched_pi_setprio`: priority inheritance changes the priority of a thread, which may run on another CPU.
    Inherit {
        /// ID of the thread.
        pid: i32,
        /// Its new priority, as in `Switch`.
        priority: i32,
    },
    /// `softirq_raise`: this softirq is to run on this CPU.
    Raise(Context),
    /// `netif_rx`, or `netif_receive_skb`: the kernel receives a packet.
    Packet {
        /// Address of its buffer.
        buffer: u64,
        /// Its device, by its index in [`Trace::devices`].
        device: u16,
        /// Whether it is queued for a softirq; else it is passed on to its socket.
        is_queued: bool,
    },
    /// Entry of an interrupt or softirq.
    Enter(Context),
    /// Exit of an interrupt or softirq.
    Leave(Context),
    /// `nmi_handler`, recorded at its end.
    Nmi {
        /// Its duration.
        length_ns: u64,
    },
    /// `cpu_idle`: the CPU enters an idle state, or leaves it (`None`).
    Idle {
        /// Number of the idle state.
        state: Option<u32>,
    },
    /// `workqueue_execute_start`.
    Work {
        /// Address of the function.
        function: u64,
    },
    /// `page_fault_user`.
    PageFault,
    /// `sys_enter`: a watched thread calls the kernel.
    SysEnter {
        /// Number of the system call.
        number: i64,
        /// Its first three arguments.
        arguments: [u64; 3],
    },
    /// `sys_exit`.
    SysExit {
        /// Number of the system call.
        number: i64,
        /// Its result; an error is its negative errno.
        result: i64,
    },
    /// `sched_stat_runtime`: the scheduler adds this time to the run time of a thread, without what a hypervisor took
    /// where it knows that.
    Ran {
        /// ID of the thread.
        pid: i32,
        /// The time since the last such event, ns.
        ran_ns: u64,
    },
    /// `sched_process_exit`: the current thread ends.
    Exit,
    /// Kernel stack, by its index in [`Trace::stacks`]. It belongs to the event before it.
    Stack(u32),
    /// Text that a thread writes into the trace, as a measured one does to stop it.
    Mark,
    /// A wanted mark that the current thread passes, by its number among the [`MarkNames`].
    Pass(u16),
}

/// One event of one CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    /// Its time, `CLOCK_MONOTONIC`, ns.
    pub at_ns: u64,
    /// ID of the current thread.
    pub pid: i32,
    /// [`flags`].
    pub flags: u8,
    /// Its kind.
    pub what: What,
}

impl Event {
    /// Puts events in the order of time. Those of a CPU mostly are, and then it takes no memory, which sorting would.
    pub fn sort(events: &mut [Event]) {
        if !events.is_sorted_by_key(|event| event.at_ns) {
            events.sort_by_key(|event| event.at_ns);
        }
    }

    /// Puts events of all CPUs, with their CPUs, in the order of time, however they are divided.
    pub fn sort_of_cpus(events: &mut [(u32, Event)]) {
        events.sort_by_key(|(cpu, event)| (event.at_ns, *cpu));
    }

    /// Whether this thread was current at the event.
    pub(crate) fn is_by(&self, pid: i32) -> bool {
        // The stack of a switch follows it, with the previous thread as current.
        self.pid == pid && !matches!(self.what, What::Stack(_))
    }

    /// Whether this thread starts a timer to wait for it. The kernel also restarts timers of its own in interrupts,
    /// such as that of the clock tick, while any thread is current.
    pub(crate) fn is_timer_start_of(&self, pid: i32) -> bool {
        let is_thread = self.flags & (flags::HARDIRQ | flags::SOFTIRQ) == 0;
        self.pid == pid && is_thread && matches!(self.what, What::TimerStart { .. })
    }

    /// Whether it is the switch to this thread.
    pub(crate) fn is_switch_to(&self, pid: i32) -> bool {
        matches!(self.what, What::Switch { next, .. } if next == pid)
    }

    /// Whether this thread ran at the event, or from the event on.
    pub(crate) fn is_run_by(&self, pid: i32) -> bool {
        self.is_by(pid) || self.is_switch_to(pid)
    }
}

/// Events of one CPU, in the order of time.
#[derive(Debug, Clone, Default)]
pub struct CpuEvents {
    /// The events.
    pub events: Vec<Event>,
    /// Whether older events were overwritten, or do not exist.
    pub is_cut: bool,
    /// Times before which events were lost, ns.
    pub lost_ns: Vec<u64>,
}

impl CpuEvents {
    /// Index of the first event at or after `at_ns`.
    pub(crate) fn from(&self, at_ns: u64) -> usize {
        self.events.partition_point(|event| event.at_ns < at_ns)
    }

    /// Events from `from` to `to`, both inclusive.
    pub(crate) fn between(&self, from: u64, to: u64) -> &[Event] {
        let end = self.events.partition_point(|event| event.at_ns <= to);
        self.events.get(self.from(from)..end).unwrap_or_default()
    }

    /// Index of the last event before `at_ns`: it shows that the trace covers a CPU on which little happens.
    pub fn last_before(&self, at_ns: u64) -> usize {
        self.from(at_ns).saturating_sub(1)
    }

    /// Time of the last event before `lost_ns`, ns: those between the two were lost.
    fn known_before(&self, lost_ns: u64) -> u64 {
        let before = self.from(lost_ns).checked_sub(1).and_then(|last| self.events.get(last));
        before.map_or(0, |last| last.at_ns)
    }

    /// Whether events of these times, ns, may have been lost.
    pub(crate) fn lacks(&self, from_ns: u64, to_ns: u64) -> bool {
        self.lost_ns.iter().any(|lost_ns| *lost_ns >= from_ns && self.known_before(*lost_ns) < to_ns)
    }

    fn within(&self, times_ns: &Range<u64>) -> CpuEvents {
        let first = self.last_before(times_ns.start);
        let end = self.events.partition_point(|event| event.at_ns <= times_ns.end);
        CpuEvents {
            events: self.events.get(first..end).unwrap_or_default().to_vec(),
            is_cut: self.is_cut || first > 0,
            lost_ns: self.lost_ns.iter().copied().filter(|at| self.known_before(*at) <= times_ns.end).collect(),
        }
    }
}

/// Trace of all CPUs, after it was stopped.
#[derive(Debug, Clone, Default)]
pub struct Trace {
    /// One entry for each CPU, by number.
    pub cpus: Vec<CpuEvents>,
    /// Names of threads.
    pub names: HashMap<i32, String>,
    /// Times at which events called them so, ns; `None` for names of another source.
    pub named_ns: HashMap<i32, u64>,
    /// Names of the processor's interrupt vectors, without `_entry`.
    pub vectors: Vec<String>,
    /// Names of device interrupts, by number.
    pub interrupts: HashMap<u32, String>,
    /// Names of network devices.
    pub devices: Vec<String>,
    /// Kernel stacks, innermost function first.
    pub stacks: Vec<Vec<u64>>,
    /// Addresses of the functions that timers called.
    pub timer_functions: BTreeSet<u64>,
    /// Wanted marks, and texts that are.
    pub marks: MarkNames,
}

/// Most names of threads that are kept: programs without end may start threads without end.
const MOST_NAMES: usize = 1 << 17;

/// Whether the name of this thread has room among `names`.
pub fn has_room_for_name(names: &HashMap<i32, String>, pid: i32) -> bool {
    names.len() < MOST_NAMES || names.contains_key(&pid)
}

impl Trace {
    /// Notes what an event called a thread. The CPUs are read one after the other, so a later name may be known.
    pub fn note_name(&mut self, pid: i32, at_ns: u64, name: String) {
        if self.named_ns.get(&pid).is_none_or(|known_ns| *known_ns <= at_ns) && has_room_for_name(&self.names, pid) {
            self.named_ns.insert(pid, at_ns);
            if self.names.get(&pid) != Some(&name) {
                self.names.insert(pid, name);
            }
        }
    }

    /// Index of a network device; `None` if there are too many.
    pub fn device(&mut self, name: String) -> Option<u16> {
        const MOST: usize = 4096;
        let known = self.devices.iter().position(|known| *known == name);
        let index = known.or_else(|| (self.devices.len() < MOST).then_some(self.devices.len()))?;
        if known.is_none() {
            self.devices.push(name);
        }
        u16::try_from(index).ok()
    }

    /// Adds the names of another trace of the same time.
    pub fn add_names(&mut self, other: &mut Trace) {
        for (pid, name) in other.names.drain() {
            let at_ns = other.named_ns.get(&pid).copied().unwrap_or(0);
            self.note_name(pid, at_ns, name);
        }
    }

    pub(crate) fn cpu(&self, cpu: u32) -> Option<&CpuEvents> {
        self.cpus.get(usize::try_from(cpu).ok()?)
    }

    /// All CPUs with their numbers.
    pub(crate) fn numbered(&self) -> impl Iterator<Item = (u32, &CpuEvents)> {
        (0..).zip(&self.cpus)
    }

    /// Passes to `use_it` what the trace of these times, ns, would be: of each CPU with the last event before them.
    pub fn within<T>(&mut self, times_ns: &Range<u64>, use_it: impl FnOnce(&Trace) -> T) -> T {
        let all = std::mem::take(&mut self.cpus);
        self.cpus = all.iter().map(|cpu| cpu.within(times_ns)).collect();
        let result = use_it(self);
        self.cpus = all;
        result
    }

    /// Name of the owner of a CPU: a thread, or the context that interrupted it.
    pub(crate) fn owner_name(&self, context: Option<Context>, pid: i32) -> String {
        match context {
            None if pid == 0 => "idle".to_owned(),
            None => self.names.get(&pid).cloned().unwrap_or_else(|| "?".to_owned()),
            Some(Context::Vector(index)) => {
                format!("interrupt {}", self.vectors.get(usize::from(index)).map_or("?", String::as_str))
            }
            Some(Context::Interrupt(number)) => match self.interrupts.get(&number) {
                Some(name) => format!("interrupt {number} {name}"),
                None => format!("interrupt {number}"),
            },
            Some(Context::Softirq(number)) => format!("softirq {}", softirq_name(number)),
            Some(Context::Nmi) => "non-maskable interrupt".to_owned(),
        }
    }

    /// Whether the trace contains the events of `cpu` from `at_ns` on.
    pub fn covers(&self, cpu: u32, at_ns: u64) -> bool {
        self.cpu(cpu).is_some_and(|cpu| {
            let first = cpu.events.first();
            first.is_some_and(|first| !cpu.is_cut || first.at_ns <= at_ns)
        })
    }
}

/// Kernel name of a softirq (include/linux/interrupt.h).
pub(crate) fn softirq_name(number: u8) -> &'static str {
    const NAMES: [&str; 10] =
        ["HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU"];
    NAMES.get(usize::from(number)).copied().unwrap_or("?")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_bounded_and_those_known_may_change() {
        let mut trace = Trace::default();
        let most = i32::try_from(MOST_NAMES).unwrap();
        (1..=most + 1).for_each(|pid| trace.note_name(pid, 1, "sh".to_owned()));
        trace.note_name(most, 2, "ls".to_owned());
        assert_eq!((trace.names.len(), trace.named_ns.len()), (MOST_NAMES, MOST_NAMES));
        assert_eq!([most, most + 1].map(|pid| trace.names.get(&pid).map(String::as_str)), [Some("ls"), None]);
    }

    #[test]
    fn events_may_be_lost_since_the_last_one_before_a_gap() {
        let event = |at_ns| Event { at_ns, pid: 1, flags: 0, what: What::Mark };
        let of = |lost_ns| CpuEvents { events: [100, 200].map(event).to_vec(), is_cut: false, lost_ns: vec![lost_ns] };
        for (lost_ns, from_ns, to_ns, lacks) in [
            (150, 10, 100, false),
            (150, 10, 101, true),
            (150, 110, 140, true),
            (150, 150, 160, true),
            (150, 151, 199, false),
            (50, 0, 1, true),
            (50, 51, 99, false),
            (300, 150, 200, false),
            (300, 250, 260, true),
        ] {
            assert_eq!(of(lost_ns).lacks(from_ns, to_ns), lacks, "{lost_ns} {from_ns} {to_ns}");
            assert!(
                !lacks || of(lost_ns).within(&(from_ns..to_ns)).lacks(from_ns, to_ns),
                "{lost_ns} {from_ns} {to_ns}"
            );
        }
    }
}
