//! Hand-made events of a watched thread and its surroundings, for tests to the nanosecond.

use super::activation::Activation;
use super::calls::Call;
use super::track::{Completed, Track};
use crate::events::{Context, CpuEvents, Event, Trace, What, flags, state};
use std::collections::HashMap;
use syscalls::Sysno;

/// The watched thread, of FIFO priority 80.
pub(crate) const ME: i32 = 100;
/// Another thread.
pub(crate) const OTHER: i32 = 200;
/// One more.
pub(crate) const THIRD: i32 = 300;
pub(crate) const TIMER: u64 = 0xabc;
const TICK: Context = Context::Vector(0);

pub(crate) fn call(known: Sysno, arguments: [u64; 3]) -> Call {
    Call::of(i64::from(known.id()), arguments)
}

/// The wait of most loops here.
pub(crate) fn until_instant() -> Call {
    call(Sysno::clock_nanosleep, [1, 1, 0])
}

/// Events on two CPUs, in the order of time.
#[derive(Debug, Clone)]
pub(crate) struct Script {
    pub(crate) trace: Trace,
    events: Vec<(u32, Event)>,
    current: [i32; 2],
    priorities: HashMap<i32, i32>,
}

impl Script {
    /// The watched thread runs on CPU 0; CPU 1 is idle.
    pub(crate) fn new() -> Script {
        let mut trace = Trace { cpus: vec![CpuEvents::default(); 2], ..Trace::default() };
        trace.vectors = vec!["local_timer".to_owned()];
        trace.interrupts.insert(36, "virtio1-req".to_owned());
        for (pid, name) in [(ME, "control"), (OTHER, "logger"), (THIRD, "vision")] {
            trace.names.insert(pid, name.to_owned());
        }
        let priorities = HashMap::from([(ME, 19), (OTHER, 130), (THIRD, 49), (0, 120)]);
        Script { trace, events: Vec::new(), current: [ME, 0], priorities }
    }

    pub(crate) fn priority(mut self, pid: i32, priority: i32) -> Script {
        self.priorities.insert(pid, priority);
        self
    }

    /// An event of this CPU's current thread.
    pub(crate) fn on(mut self, cpu: u32, at_ns: u64, flags: u8, what: What) -> Script {
        let index = usize::try_from(cpu).unwrap();
        let event = Event { at_ns, pid: self.current[index], flags, what };
        self.trace.cpus[index].events.push(event);
        self.events.push((cpu, event));
        self
    }

    /// An event on CPU 0.
    pub(crate) fn at(self, at_ns: u64, what: What) -> Script {
        self.on(0, at_ns, 0, what)
    }

    pub(crate) fn enter(self, at_ns: u64, known: Sysno, arguments: [u64; 3]) -> Script {
        self.at(at_ns, What::SysEnter { number: i64::from(known.id()), arguments })
    }

    pub(crate) fn exit(self, at_ns: u64, known: Sysno, result: i64) -> Script {
        self.at(at_ns, What::SysExit { number: i64::from(known.id()), result })
    }

    /// The thread starts a timer that is due at `due_ns`.
    pub(crate) fn timer(self, at_ns: u64, timer: u64, due_ns: u64) -> Script {
        let due = due_ns.cast_signed();
        self.at(at_ns, What::TimerStart { timer, expires_ns: due, soft_ns: due })
    }

    /// CPU `cpu` switches to `next`; the thread before has `prev_state`.
    pub(crate) fn switch_on(mut self, cpu: u32, at_ns: u64, next: i32, prev_state: u32) -> Script {
        let index = usize::try_from(cpu).unwrap();
        let prev = self.current[index];
        let (prev_priority, next_priority) = (self.priorities[&prev], self.priorities[&next]);
        self = self.on(cpu, at_ns, 0, What::Switch { prev, prev_priority, prev_state, next, next_priority });
        self.current[index] = next;
        self
    }

    pub(crate) fn switch(self, at_ns: u64, next: i32, prev_state: u32) -> Script {
        self.switch_on(0, at_ns, next, prev_state)
    }

    /// CPU 0 runs `next` without an event.
    pub(crate) fn unseen(mut self, next: i32) -> Script {
        self.current[0] = next;
        self
    }

    /// The thread goes to sleep.
    pub(crate) fn sleep(self, at_ns: u64, next: i32) -> Script {
        self.switch(at_ns, next, 1)
    }

    /// The thread goes to sleep as for a disk.
    pub(crate) fn sleep_for_disk(self, at_ns: u64) -> Script {
        self.switch(at_ns, 0, state::UNINTERRUPTIBLE)
    }

    /// Interrupt of the timer on CPU 0, which wakes the thread 1 us later.
    pub(crate) fn tick(self, at_ns: u64) -> Script {
        self.interrupted(at_ns, TICK)
    }

    /// An interrupt that wakes the thread 1 us later.
    pub(crate) fn interrupted(self, at_ns: u64, context: Context) -> Script {
        let inside = flags::HARDIRQ | flags::NEED_RESCHED;
        self.on(0, at_ns, flags::HARDIRQ, What::Enter(context))
            .on(0, at_ns + 1_000, inside, What::Waking { pid: ME })
            .on(0, at_ns + 1_500, inside, What::Leave(context))
    }

    /// The current thread of a CPU wakes the thread.
    pub(crate) fn woken_by(self, cpu: u32, at_ns: u64) -> Script {
        self.on(cpu, at_ns, 0, What::Waking { pid: ME })
    }

    /// An activation of the thread from its wait until an instant: due at 1 ms, back in the program at 1.005 ms.
    pub(crate) fn released() -> Script {
        Script::new()
            .enter(100_000, Sysno::clock_nanosleep, [1, 1, 0])
            .timer(101_000, TIMER, 1_000_000)
            .sleep(102_000, 0)
            .tick(1_001_000)
            .switch(1_004_000, ME, 0)
            .exit(1_005_000, Sysno::clock_nanosleep, 0)
    }

    /// The thread waits for its next activation at this time, and sleeps 2 us later.
    pub(crate) fn waits(self, at_ns: u64) -> Script {
        let sleep = self.enter(at_ns, Sysno::clock_nanosleep, [1, 1, 0]);
        sleep.timer(at_ns + 1_000, TIMER, at_ns + 1_000_000).sleep(at_ns + 2_000, 0)
    }

    /// The thread waits until `due_ns`, from `at_ns` on.
    pub(crate) fn waits_until(self, at_ns: u64, due_ns: u64) -> Script {
        self.enter(at_ns, Sysno::clock_nanosleep, [1, 1, 0]).timer(at_ns + 1_000, TIMER, due_ns).sleep(at_ns + 2_000, 0)
    }

    /// The timer that is due at `due_ns` wakes the thread, which returns to the program 5 us later.
    pub(crate) fn runs_at(self, due_ns: u64) -> Script {
        self.tick(due_ns + 1_000).switch(due_ns + 4_000, ME, 0).exit(due_ns + 5_000, Sysno::clock_nanosleep, 0)
    }

    /// A loop of `n` activations of 50 us, one in [`Script::PERIOD_NS`]; then the thread is in the program, released at
    /// `(n + 1) * PERIOD_NS`.
    pub(crate) fn in_a_loop(n: u64) -> Script {
        let begin = Script::new().waits_until(100_000, Script::PERIOD_NS);
        let turn = |script: Script, cycle: u64| {
            let due_ns = cycle * Script::PERIOD_NS;
            script.runs_at(due_ns).waits_until(due_ns + 50_000, due_ns + Script::PERIOD_NS)
        };
        (1..=n).fold(begin, turn).runs_at((n + 1) * Script::PERIOD_NS)
    }

    /// Period of [`Script::in_a_loop`], ns.
    pub(crate) const PERIOD_NS: u64 = 2_000_000;

    /// All events, in the order of time.
    pub(crate) fn events(&self) -> Vec<(u32, Event)> {
        let mut events = self.events.clone();
        events.sort_by_key(|(_, event)| event.at_ns);
        events
    }

    /// The activations of the thread, whose waits are in `wait`.
    pub(crate) fn activations(&self, wait: Call) -> Vec<Activation> {
        let mut track = Track::new(ME, Some(wait));
        let events = self.events();
        let completed = events.iter().filter_map(|(cpu, event)| track.take(*cpu, event, &[]));
        let one = |completed| match completed {
            Completed::Activation(one) => Some(*one),
            Completed::Sleep { .. } => None,
        };
        completed.filter_map(one).collect()
    }

    /// The only activation.
    #[track_caller]
    pub(crate) fn activation(&self, wait: Call) -> Activation {
        let [one] = <[Activation; 1]>::try_from(self.activations(wait)).expect("one activation");
        one
    }
}
