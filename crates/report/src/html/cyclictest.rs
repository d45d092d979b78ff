//! The CPUs of a cell as cyclictest's status lines, for mails and for scripts that read them.

use super::markup::{Markup, Text};
use crate::cells::Member;
use punctual_model::{Histogram, Policy, Task};
use std::fmt::Write;

/// Writes the lines of a cell, folded; nothing for other tasks than periodic waits, and for policies without a number.
pub(super) fn write(page: &mut Markup, member: &Member<'_>, cpus: &[(u32, &Histogram)]) {
    let Some(cell) = member.row.own().map(|own| &own.cell) else { return };
    let waits = matches!(cell.task, Task::Cyclic(_)) && !cell.task.is_noise();
    let Some(priority) = priority(cell.policy).filter(|_| waits) else { return };
    let lines = lines(priority, |cpu| cell.period_on(cpu).ns() / 1_000, cpus);
    page.add(format_args!(
        "<details class=quiet><summary>cyclictest lines</summary><p>T is the CPU; latencies in us. The thread id (-) and \
         Act, the last latency, are not recorded.</p>\n<pre class=copy tabindex=0>{}</pre></details>\n",
        Text(lines)
    ));
}

/// Returns the priority that cyclictest would show: 0 of normal policies; `None` of `SCHED_DEADLINE`.
fn priority(policy: Policy) -> Option<u32> {
    match policy {
        Policy::Other(_) | Policy::Batch | Policy::Idle => Some(0),
        Policy::Fifo(priority) | Policy::RoundRobin(priority) => Some(priority.get()),
        Policy::Deadline(_) => None,
    }
}

/// Returns a line for each CPU with samples, in the widths of cyclictest. It cuts fractions of a microsecond off, too.
fn lines(priority: u32, interval_us: impl Fn(u32) -> u64, cpus: &[(u32, &Histogram)]) -> String {
    let mut lines = String::new();
    for (cpu, histogram) in cpus {
        let values = histogram.min_ns.zip(histogram.mean_ns()).zip(histogram.max_ns);
        let Some(((min, avg), max)) = values.map(|((min, avg), max)| ((min / 1_000, avg / 1_000), max / 1_000)) else {
            continue;
        };
        let interval_us = interval_us(*cpu);
        // Writing to a String never fails.
        let _ = writeln!(
            lines,
            "T:{cpu:>2} (    -) P:{priority:>2} I:{interval_us} C:{:>7} Min:{min:>7} Avg:{avg:>5} Max:{max:>8}",
            histogram.n
        );
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_the_widths_of_cyclictest_and_no_unknown_number() {
        let [few, none] = [Histogram::of(&[2_900, 3_000, 6_257_999]), Histogram::default()];
        assert_eq!(
            lines(80, |cpu| 250 + 50 * u64::from(cpu), &[(0, &few), (1, &none), (12, &few)]),
            "T: 0 (    -) P:80 I:250 C:      3 Min:      2 Avg: 2087 Max:    6257\n\
             T:12 (    -) P:80 I:850 C:      3 Min:      2 Avg: 2087 Max:    6257\n"
        );
        let priorities = ["other", "other:nice=5", "rr:7", "fifo:80", "deadline:200us/1ms/1ms"];
        let priorities = priorities.map(|policy| priority(policy.parse().unwrap()));
        assert_eq!(priorities, [Some(0), Some(0), Some(7), Some(80), None]);
    }
}
