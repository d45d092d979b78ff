//! The events of the kernel that explanations are made of, as plain data.

use std::collections::{BTreeSet, HashMap};

/// Bits of an event's flags (`enum trace_flag_type`, include/linux/trace_events.h).
pub mod flags {
    /// Interrupts were off.
    pub const IRQS_OFF: u8 = 0x01;
    /// The thread was to be switched out.
    pub const NEED_RESCHED: u8 = 0x04;
    /// In an interrupt, whose own the event is, and not the current thread's.
    pub const HARDIRQ: u8 = 0x08;
    /// The same in a softirq.
    pub const SOFTIRQ: u8 = 0x10;
}

/// What a thread that is switched out waits for (`prev_state` of `sched_switch`; include/linux/sched.h).
pub mod state {
    /// Uninterruptible sleep: `D`.
    pub const UNINTERRUPTIBLE: u32 = 0x02;
    /// Stopped by a signal or a debugger: `T`, `t`.
    pub const STOPPED: u32 = 0x0c;
    /// Any sleep or stop at all; without one of these bits the thread could run on.
    pub const NOT_RUNNABLE: u32 = 0xff;
}

/// What interrupts a thread. Contexts are nested.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Context {
    /// An interrupt of the processor itself, by its index in [`Trace::vectors`].
    Vector(u8),
    /// An interrupt of a device, by number.
    Interrupt(u32),
    /// A softirq, by number.
    Softirq(u8),
    /// A non-maskable interrupt.
    Nmi,
}

impl Context {
    /// Whether interrupts are off in it.
    #[must_use]
    pub fn is_hard(self) -> bool {
        !matches!(self, Context::Softirq(_))
    }
}

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// `sched_switch`.
    Switch {
        /// Thread that is switched out.
        prev: i32,
        /// Its priority as the kernel counts: -1 deadline, 0 to 98 real-time, 100 to 139 normal; lower is more.
        prev_priority: i32,
        /// Why: [`state`].
        prev_state: u32,
        /// Thread that is switched in; 0 is idle.
        next: i32,
        /// Its priority.
        next_priority: i32,
    },
    /// `sched_waking`: somebody wakes a thread.
    Waking {
        /// Who is woken.
        pid: i32,
    },
    /// `hrtimer_start`.
    TimerStart {
        /// Address of the timer.
        timer: u64,
        /// When it is to expire at the latest, ns of its clock.
        expires_ns: i64,
        /// When it may expire, ns of its clock.
        soft_ns: i64,
    },
    /// `hrtimer_expire_entry`.
    TimerExpire {
        /// Address of the timer.
        timer: u64,
        /// Address of the function that it calls; `None` where the kernel does not say.
        function: Option<u64>,
    },
    /// `timer_expire_entry`: a timer of the timer wheel.
    WheelExpire {
        /// Address of the function that it calls.
        function: u64,
    },
    /// `sched_pi_setprio`: priority inheritance gives a thread another priority, also one that runs on another CPU.
    Inherit {
        /// The thread.
        pid: i32,
        /// Its priority from now on, as in `Switch`.
        priority: i32,
    },
    /// An interrupt or softirq begins.
    Enter(Context),
    /// It ends.
    Leave(Context),
    /// `nmi_handler`, which comes at its end.
    Nmi {
        /// How long it took.
        length_ns: u64,
    },
    /// `cpu_idle`: the CPU enters an idle state, or leaves it (`None`).
    Idle {
        /// Its number.
        state: Option<u32>,
    },
    /// `workqueue_execute_start`.
    Work {
        /// Address of the function.
        function: u64,
    },
    /// `page_fault_user`.
    PageFault,
    /// A stack of the kernel, by its index in [`Trace::stacks`]. It belongs to the event before it.
    Stack(u32),
    /// What a measured thread wrote when it stopped the trace.
    Mark,
}

/// One event of one CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    /// When, `CLOCK_MONOTONIC`, ns.
    pub at_ns: u64,
    /// The thread that was current.
    pub pid: i32,
    /// [`flags`].
    pub flags: u8,
    /// What.
    pub what: What,
}

impl Event {
    /// Whether it says that this thread was current when it happened.
    pub(super) fn is_by(&self, pid: i32) -> bool {
        // The stack of a switch comes behind it, and still names the thread before.
        self.pid == pid && !matches!(self.what, What::Stack(_))
    }

    /// Whether this thread starts a timer, as it does to wait. In an interrupt the kernel starts timers of its own again, like
    /// that of the clock tick, whichever thread is current.
    pub(super) fn is_timer_start_of(&self, pid: i32) -> bool {
        let is_thread = self.flags & (flags::HARDIRQ | flags::SOFTIRQ) == 0;
        self.pid == pid && is_thread && matches!(self.what, What::TimerStart { .. })
    }

    /// Whether it is the switch to this thread.
    pub(super) fn is_switch_to(&self, pid: i32) -> bool {
        matches!(self.what, What::Switch { next, .. } if next == pid)
    }

    /// Whether it says that this thread ran when it happened, or from then on.
    pub(super) fn is_run_by(&self, pid: i32) -> bool {
        self.is_by(pid) || self.is_switch_to(pid)
    }
}

/// The events of one CPU, in time.
#[derive(Debug, Clone, Default)]
pub struct CpuEvents {
    /// The events.
    pub events: Vec<Event>,
    /// Whether older events were overwritten, or there were none before.
    pub is_cut: bool,
    /// Before which instants events were lost.
    pub lost_ns: Vec<u64>,
}

impl CpuEvents {
    /// Index of the first event at or after `at_ns`.
    pub(super) fn from(&self, at_ns: u64) -> usize {
        self.events.partition_point(|event| event.at_ns < at_ns)
    }

    /// The events from `from` until `to`, both included.
    pub(super) fn between(&self, from: u64, to: u64) -> &[Event] {
        let end = self.events.partition_point(|event| event.at_ns <= to);
        self.events.get(self.from(from)..end).unwrap_or_default()
    }
}

/// The frozen trace of all CPUs.
#[derive(Debug, Clone, Default)]
pub struct Trace {
    /// One entry for each CPU, by number.
    pub cpus: Vec<CpuEvents>,
    /// Names of threads.
    pub names: HashMap<i32, String>,
    /// Names of the processor's interrupts, without `_entry`.
    pub vectors: Vec<String>,
    /// Names of the devices' interrupts.
    pub interrupts: HashMap<u32, String>,
    /// Stacks of the kernel, innermost function first.
    pub stacks: Vec<Vec<u64>>,
    /// Addresses of the functions that timers called.
    pub timer_functions: BTreeSet<u64>,
}

impl Trace {
    pub(super) fn cpu(&self, cpu: u32) -> Option<&CpuEvents> {
        self.cpus.get(usize::try_from(cpu).ok()?)
    }

    /// Every CPU with its number.
    pub(super) fn numbered(&self) -> impl Iterator<Item = (u32, &CpuEvents)> {
        (0..).zip(&self.cpus)
    }

    /// What whoever had a CPU is called: a thread, or what interrupted it.
    pub(super) fn owner_name(&self, context: Option<Context>, pid: i32) -> String {
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

    /// Whether the events of `cpu` from `at_ns` on are there.
    #[must_use]
    pub fn covers(&self, cpu: u32, at_ns: u64) -> bool {
        self.cpu(cpu).is_some_and(|cpu| {
            let first = cpu.events.first();
            first.is_some_and(|first| !cpu.is_cut || first.at_ns <= at_ns)
        })
    }
}

/// The kernel's names (include/linux/interrupt.h).
fn softirq_name(number: u8) -> &'static str {
    const NAMES: [&str; 10] =
        ["HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU"];
    NAMES.get(usize::from(number)).copied().unwrap_or("?")
}
