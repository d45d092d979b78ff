//! Parser for command lines of the original cyclictest, for imported results.

use super::options::{self, Invocation, Options};
use punctual_model::{CpuSet, Period, Policy, Span};

/// Measurement parameters known from a command line alone.
#[derive(Debug, PartialEq, Eq)]
pub struct KnownParameters {
    /// Policy; `None` when the threads differ.
    pub policy: Option<Policy>,
    /// Period; `None` when the threads differ, as with `-d` unless it is 0, or when it is outside the range of
    /// [`Period`].
    pub period: Option<Period>,
    /// Rows of the histogram: values from this number of units on are overflows; `None` without a histogram.
    pub rows: Option<u64>,
}

/// Larger than the number of CPUs of any machine.
const MAX_CPUS: u32 = 4_096;

/// Parses the command line of a run with `threads` threads. `None` when it is not understood, so nothing is guessed.
pub fn asked_there(command_line: &str, threads: u32) -> Option<KnownParameters> {
    let mut words = command_line.split_whitespace().map(str::to_owned);
    let program = words.next()?;
    // Under the name cyclictest, or as a subcommand of this program.
    let is_command = || program.rsplit('/').next() == Some("punctual");
    if !(program.ends_with("cyclictest") || is_command() && words.next().as_deref() == Some("cyclictest")) {
        return None;
    }
    // The CPUs of that machine are unknown; as many as threads suffice, unless the command line names another (-a7).
    let words: Vec<_> = words.collect();
    let read = |cpus: u32| match options::read(&words, &(0..cpus).collect::<CpuSet>(), None) {
        Ok(Invocation::Measure(options)) => Some(options),
        _ => None,
    };
    let options = read(threads.max(1)).or_else(|| read(MAX_CPUS))?;
    let Options { threads, histogram, .. } = *options;
    let one = |of: &dyn Fn(usize) -> u64| (1..threads.len()).all(|i| of(i) == of(0)).then(|| of(0));
    let period_us = one(&|i| threads[i].interval_us);
    let policy = threads.first()?.policy;
    Some(KnownParameters {
        policy: threads.iter().all(|thread| thread.policy == policy).then_some(policy),
        period: period_us.and_then(|us| Period::try_from(Span(us.checked_mul(1_000)?)).ok()),
        rows: histogram.map(|histogram| histogram.rows),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_certain_is_known() {
        let asked = |line: &str| asked_there(line, 2);
        let us = |us: u64| Period::try_from(Span(us * 1_000)).ok();
        let fifo = |priority: &str| Some(format!("fifo:{priority}").parse().unwrap());
        assert_eq!(
            asked("cyclictest -q -m -p80 -S -i 1000 -l 3000 -h 30 --json=h.json"),
            Some(KnownParameters { policy: fifo("80"), period: us(1_000), rows: Some(30) })
        );
        assert_eq!(asked("/usr/bin/cyclictest -p 98 -t 2 -i 200").unwrap().period, None, "threads are 500 us apart");
        assert_eq!(asked("cyclictest -p 98 -t 1 -a 7 -i 500").unwrap().period, us(500), "a CPU that is not known");
        assert_eq!(asked("/opt/punctual cyclictest -i 500 -t1").unwrap().period, us(500));
        assert!(asked("punctual measure").is_none());
        assert_eq!(asked("cyclictest -p 98 -t 1").unwrap().period, us(1_000), "its default");
        assert_eq!(asked("cyclictest -i 200 -t1").unwrap().policy, Some(Policy::OTHER));
        for line in ["", "rtla timerlat hist", "cyclictest -smp -p 80", "cyclictest -i foo"] {
            assert_eq!(asked(line), None, "{line}");
        }
    }
}
