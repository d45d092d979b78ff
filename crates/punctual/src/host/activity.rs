//! What the whole machine does from one second to the next, from `/proc/stat` (proc_stat(5)).

use super::HostFs;
use model::{MachineSecond, Span};

/// Milliseconds a tick of `/proc/stat`: `USER_HZ` is 100 on every architecture Linux still has (asm-generic/param.h).
const TICK_MS: u64 = 10;

/// Counters of the machine since boot; `None` where the kernel does not say.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Activity {
    idle_ms: Option<u64>,
    steal_ms: Option<u64>,
    context_switches: Option<u64>,
    interrupts: Option<u64>,
    soft_interrupts: Option<u64>,
    forks: Option<u64>,
}

impl Activity {
    /// Reads the counters.
    pub(crate) fn read(fs: &HostFs) -> Activity {
        Activity::parse(&fs.text("proc/stat").unwrap_or_default())
    }

    fn parse(text: &str) -> Activity {
        let value = |name: &str, index: usize| -> Option<u64> {
            let line = text.lines().find(|line| line.split(' ').next() == Some(name))?;
            line.split_whitespace().nth(1 + index)?.parse().ok()
        };
        let ticks = |index| value("cpu", index).map(|ticks| ticks * TICK_MS);
        Activity {
            idle_ms: ticks(3),
            steal_ms: ticks(7),
            context_switches: value("ctxt", 0),
            interrupts: value("intr", 0),
            soft_interrupts: value("softirq", 0),
            forks: value("processes", 0),
        }
    }

    /// What happened from `before` to `self`, which was read `elapsed` later, `at` into the measured window.
    pub(crate) fn since(&self, before: &Activity, at: Span, elapsed: Span) -> MachineSecond {
        let difference = |now: Option<u64>, then: Option<u64>| Some(now?.saturating_sub(then?));
        MachineSecond {
            at,
            elapsed,
            idle_ms: difference(self.idle_ms, before.idle_ms),
            steal_ms: difference(self.steal_ms, before.steal_ms),
            context_switches: difference(self.context_switches, before.context_switches),
            interrupts: difference(self.interrupts, before.interrupts),
            soft_interrupts: difference(self.soft_interrupts, before.soft_interrupts),
            forks: difference(self.forks, before.forks),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_found_and_missing_ones_are_unknown() {
        let text =
            "cpu  10 20 30 40 50 60 70 80 90 100\ncpu0 1 2 3 4\nintr 500 1 2\nctxt 600\nprocesses 7\nsoftirq 8 1";
        let now = Activity::parse(text);
        assert_eq!((now.idle_ms, now.steal_ms), (Some(400), Some(800)));
        assert_eq!((now.interrupts, now.context_switches, now.soft_interrupts), (Some(500), Some(600), Some(8)));
        assert_eq!(Activity::parse("cpu  1 2"), Activity::default());
        let earlier = Activity { steal_ms: Some(500), ..Activity::default() };
        let row = now.since(&earlier, Span(1), Span(2));
        assert_eq!((row.steal_ms, row.interrupts), (Some(300), None));
    }
}
