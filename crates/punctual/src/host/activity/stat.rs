//! `/proc/stat`: what all CPUs together did.

/// `USER_HZ` of every Linux architecture that this program runs on: 100 ticks a second (proc_stat(5)).
const TICK_MS: u64 = 10;

/// Counters since boot; `None` where the kernel does not say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Stat {
    pub(super) idle_ms: Option<u64>,
    pub(super) steal_ms: Option<u64>,
    pub(super) context_switches: Option<u64>,
    pub(super) interrupts: Option<u64>,
    pub(super) soft_interrupts: Option<u64>,
    pub(super) forks: Option<u64>,
}

impl Stat {
    pub(super) fn parse(text: &str) -> Stat {
        let value = |name: &str, index: usize| -> Option<u64> {
            let line = text.lines().find(|line| line.split(' ').next() == Some(name))?;
            line.split_whitespace().nth(1 + index)?.parse().ok()
        };
        let ticks = |index| value("cpu", index).map(|ticks| ticks.saturating_mul(TICK_MS));
        Stat {
            idle_ms: ticks(3),
            steal_ms: ticks(7),
            context_switches: value("ctxt", 0),
            interrupts: value("intr", 0),
            soft_interrupts: value("softirq", 0),
            forks: value("processes", 0),
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
        let now = Stat::parse(text);
        assert_eq!((now.idle_ms, now.steal_ms), (Some(400), Some(800)));
        assert_eq!((now.interrupts, now.context_switches, now.soft_interrupts), (Some(500), Some(600), Some(8)));
        assert_eq!(Stat::parse("cpu  1 2"), Stat::default());
        assert_eq!(Stat::parse("cpu  1 2 3 18446744073709551615").idle_ms, Some(u64::MAX));
    }
}
