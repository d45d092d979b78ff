//! Duration of the stages of every answer within this machine, not only of late ones.

use super::event::{CpuEvents, Event, Trace, What};
use super::locate::{Subject, WaitsFor, Wake};
use punctual_model::Histogram;
use std::ops::Range;

/// A thread that is woken by answers, or by a device.
#[derive(Debug, Clone)]
pub struct Answered {
    /// Its thread ID.
    pub pid: i32,
    /// Its measured time, `CLOCK_MONOTONIC`, ns.
    pub measured_ns: Range<u64>,
}

/// Collector that takes a trace in parts.
#[derive(Debug, Clone)]
pub struct Answers {
    threads: Vec<(Answered, [Histogram; 2])>,
}

impl Answers {
    /// An empty collector.
    pub fn new(threads: impl Iterator<Item = Answered>) -> Answers {
        Answers { threads: threads.map(|thread| (thread, Default::default())).collect() }
    }

    /// Takes the next part of the trace. A wake-up that crosses the border of two parts is not counted.
    pub fn take(&mut self, trace: &Trace) {
        for (Answered { pid, measured_ns }, [handler, queue]) in &mut self.threads {
            for wake in wakes(trace, *pid) {
                let (Some((_, entry)), Some((_, waking)), Some((_, switched))) =
                    (wake.entry, wake.waking, wake.switched)
                else {
                    continue;
                };
                if measured_ns.contains(&entry) {
                    handler.record((waking - entry).cast_signed());
                    queue.record((switched - waking).cast_signed());
                }
            }
        }
    }

    /// Histograms of each thread, in their order: from the interrupt to the waking, and from the waking to the switch.
    pub fn histograms(self) -> impl Iterator<Item = [Histogram; 2]> {
        self.threads.into_iter().map(|(_, stages)| stages)
    }
}

/// The wake-ups of `pid`, except those by timers.
fn wakes(trace: &Trace, pid: i32) -> impl Iterator<Item = Wake> {
    let of_all = || trace.cpus.iter().flat_map(|cpu| &cpu.events);
    let is_asleep = |event: &&Event| matches!(event.what, What::Switch { prev, .. } if prev == pid);
    let mut sleeps: Vec<u64> = of_all().filter(is_asleep).map(|event| event.at_ns).collect();
    sleeps.sort_unstable();
    // The thread may have slept since before the trace, and one that stopped the trace has not slept again.
    sleeps.extend(of_all().filter(|event| event.is_run_by(pid)).map(|event| event.at_ns).max());
    sleeps.splice(0..0, of_all().map(|event| event.at_ns).min());
    let pairs: Vec<_> = sleeps.iter().zip(sleeps.iter().skip(1)).map(|(a, b)| (*a, *b)).collect();
    pairs.into_iter().filter_map(move |(due_ns, woke_ns)| {
        let subject = Subject { pid, waits_for: WaitsFor::Answer, cpu: 0, priority: 0, due_ns, woke_ns, slack_ns: 0 };
        let wake = Wake::find(trace, &subject);
        let (cpu, waking) = wake.waking?;
        (!is_by_timer(trace.cpu(cpu)?, waking)).then_some(wake)
    })
}

/// Whether a timer caused the waking at `at_ns`: it expired before, with no entry, exit or switch in between.
fn is_by_timer(cpu: &CpuEvents, at_ns: u64) -> bool {
    let is_turn = |event: &&Event| matches!(event.what, What::Enter(_) | What::Leave(_) | What::Switch { .. });
    let mut before = cpu.between(0, at_ns).iter().rev().take_while(|event| !is_turn(event));
    before.any(|event| matches!(event.what, What::TimerExpire { .. }))
}
