//! Lines of cyclictest's text output, and additional `#` lines.

use super::tally::Tally;
use punctual_model::Policy;
use std::fmt::Write;

/// Result of one thread for display.
#[derive(Debug, Clone)]
pub(super) struct ThreadReport {
    /// Thread id, gettid(2).
    pub(super) tid: u32,
    /// Priority; 0 unless the policy is real-time.
    pub(super) priority: u32,
    pub(super) interval_us: u64,
    /// Policy as read back from the kernel.
    pub(super) policy: Policy,
    /// The CPU it is pinned to; `None`: not pinned.
    pub(super) cpu: Option<u32>,
    /// The NUMA node of that CPU; `None`: unknown.
    pub(super) node: Option<u32>,
    pub(super) tally: Tally,
    /// Missed due times, already past when the thread could wait again; `None` for relative waits, which have no due
    /// times.
    pub(super) missed: Option<u64>,
    /// Samples lost because the log was full.
    pub(super) lost: u64,
    /// System management interrupts of its CPU during the run, as last read; `None`: not counted.
    pub(super) smis: Option<u64>,
    /// A wait that was overdue at the end: a lower bound, in the unit of the output.
    pub(super) overdue: Option<i64>,
}

/// Minimum printed by the original without any value; its maximum is 0.
const NO_MINIMUM: i64 = 1_000_000;

impl ThreadReport {
    fn min(&self) -> i64 {
        self.tally.min.unwrap_or(NO_MINIMUM)
    }

    fn max(&self) -> i64 {
        self.tally.max.unwrap_or(0)
    }
}

/// Status line: `T: 0 ( 7326) P:80 I:1000 C:    500 Min:      2 Act:    3 Avg:    8 Max:     230`
pub(super) fn status(index: usize, thread: &ThreadReport, nanoseconds: bool) -> String {
    let ThreadReport { tid, priority, interval_us, tally, smis, .. } = thread;
    let smis = smis.map(|smis| format!(" SMI:{smis:>8}")).unwrap_or_default();
    let width = if nanoseconds { 8 } else { 5 };
    let (act, avg) = (tally.last.unwrap_or(0), tally.mean_cut().unwrap_or(0));
    format!(
        "T:{index:>2} ({tid:>5}) P:{priority:>2} I:{interval_us} C:{:>7} Min:{:>7} Act:{act:>width$} Avg:{avg:>width$} Max:{:>8}{smis}\n",
        tally.cycles,
        thread.min(),
        thread.max(),
    )
}

/// The status lines of all threads.
pub(super) fn statuses(threads: &[ThreadReport], nanoseconds: bool) -> String {
    threads.iter().enumerate().map(|(index, thread)| status(index, thread, nanoseconds)).collect()
}

/// Output of SIGUSR1 on stderr.
pub(super) fn snapshot(threads: &[ThreadReport], nanoseconds: bool) -> String {
    let rule = "#---------------------------\n";
    format!("{rule}# cyclictest current status:\n{}{rule}", statuses(threads, nanoseconds))
}

/// Display during a run: a header, an empty line, the status lines. `load` is `/proc/loadavg`.
pub(super) fn view(threads: &[ThreadReport], load: &str, nanoseconds: bool) -> String {
    let policy = threads.first().map_or("", |thread| match thread.policy {
        Policy::Other(_) => "other",
        Policy::Batch => "batch",
        Policy::Idle => "idle",
        Policy::Fifo(_) => "fifo",
        Policy::RoundRobin(_) => "rr",
        Policy::Deadline(_) => "deadline",
    });
    format!("policy: {policy}: loadavg: {load}          \n\n{}", statuses(threads, nanoseconds))
}

/// Moves the cursor of a terminal back to the header of a display, ECMA-48 CUU.
pub(super) fn back_up(n_threads: usize) -> String {
    format!("\x1b[{}A", n_threads + 2)
}

/// Line of `-v`: `       0:       3:      25`: thread, cycle, value.
pub(super) fn value(index: usize, cycle: u64, value: i64) -> String {
    format!("{index:>8}:{cycle:>8}:{value:>8}\n")
}

/// A `#` line with one number for each thread, zero-padded to `width`.
pub(super) fn row(label: &str, width: usize, values: impl IntoIterator<Item = i64>) -> String {
    let mut line = format!("# {label}:");
    for value in values {
        let _ = write!(line, " {value:0width$}");
    }
    line.push('\n');
    line
}

/// The footer row of system management interrupts, if they were counted.
pub(super) fn smi_row(threads: &[ThreadReport]) -> String {
    let counts: Option<Vec<i64>> =
        threads.iter().map(|thread| thread.smis.and_then(|n| i64::try_from(n).ok())).collect();
    counts.map_or_else(String::new, |counts| row("SMIs", 5, counts))
}

/// Additional `#` lines that the original does not print: missed due times and the effective policies; then, if there
/// were any, lost samples, early wake-ups, and open waits.
pub(super) fn truth(threads: &[ThreadReport]) -> String {
    let count = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    let known: Option<Vec<i64>> = threads.iter().map(|thread| thread.missed.map(count)).collect();
    let mut text = known.map_or_else(String::new, |missed| row("Missed Cycles", 5, missed));
    let policies: String = threads.iter().map(|thread| format!(" {}", thread.policy)).collect();
    let _ = writeln!(text, "# Policies:{policies}");
    for (label, counts) in [
        ("Lost Samples", threads.iter().map(|thread| thread.lost).collect::<Vec<_>>()),
        ("Early Wakeups", threads.iter().map(|thread| thread.tally.early).collect()),
    ] {
        if counts.iter().any(|n| *n > 0) {
            text += &row(label, 5, counts.into_iter().map(count));
        }
    }
    if threads.iter().any(|thread| thread.overdue.is_some()) {
        text += &row("Still Waiting", 5, threads.iter().map(|thread| thread.overdue.unwrap_or(0)));
    }
    text
}

/// Lines after a run with `-b`: all thread ids, and the thread and value of the break, if there was one.
pub(super) fn break_lines(threads: &[ThreadReport], broke: Option<(u32, i64)>) -> String {
    let mut text = row("Thread Ids", 5, threads.iter().map(|thread| i64::from(thread.tid)));
    if let Some((tid, value)) = broke {
        let _ = write!(text, "# Break thread: {tid}\n# Break value: {value}\n");
    }
    text
}

/// The line on idle states.
pub(super) fn dma_latency(us: u32) -> String {
    format!("# /dev/cpu_dma_latency set to {us}us\n")
}

/// Minima, means and maxima of the histogram's footer.
pub(super) fn footer(threads: &[ThreadReport], of_all: bool) -> String {
    let max = threads.iter().map(ThreadReport::max);
    let of_all = max.clone().max().filter(|_| of_all);
    row("Min Latencies", 5, threads.iter().map(ThreadReport::min))
        + &row("Avg Latencies", 5, threads.iter().map(|thread| thread.tally.mean_cut().unwrap_or(0)))
        + &row("Max Latencies", 5, max.chain(of_all))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use expect_test::expect;
    use punctual_model::{Nanos, RtPriority};

    /// A thread on CPU `cpu` with these latencies in us, in a histogram of `rows` rows.
    pub(crate) fn shown(cpu: u32, latencies_us: &[i64], rows: u64) -> ThreadReport {
        let mut tally = Tally::new(false, rows);
        for us in latencies_us {
            tally.take(Nanos(us * 1000 + 500));
        }
        ThreadReport {
            tid: 7326 + cpu,
            priority: 80,
            interval_us: 1000 + 500 * u64::from(cpu),
            policy: Policy::Fifo(RtPriority::new(80).unwrap()),
            cpu: Some(cpu),
            node: Some(0),
            tally,
            missed: Some(3 * u64::from(cpu)),
            lost: 0,
            smis: None,
            overdue: None,
        }
    }

    #[test]
    fn status_lines_have_the_columns_of_the_original() {
        let threads = [shown(0, &[2, 230, 3], 0), shown(1, &[], 0)];
        expect![[r"
        #---------------------------
        # cyclictest current status:
        T: 0 ( 7326) P:80 I:1000 C:      3 Min:      2 Act:    3 Avg:   78 Max:     230
        T: 1 ( 7327) P:80 I:1500 C:      0 Min:1000000 Act:    0 Avg:    0 Max:       0
        #---------------------------
    "]]
        .assert_eq(&snapshot(&threads, false));
        expect![[r"
        T: 0 ( 7326) P:80 I:1000 C:      3 Min:      2 Act:       3 Avg:      78 Max:     230
    "]]
        .assert_eq(&statuses(&threads[..1], true));
        expect![[r"
        policy: fifo: loadavg: 0.10 0.20 0.30 1/100 99<10 blanks>

        T: 0 ( 7326) P:80 I:1000 C:      3 Min:      2 Act:    3 Avg:   78 Max:     230
    "]]
        .assert_eq(&view(&threads[..1], "0.10 0.20 0.30 1/100 99", false).replace("          \n", "<10 blanks>\n"));
        assert_eq!(back_up(2), "\x1b[4A");
    }

    #[test]
    fn management_interrupts_stand_at_the_end_of_a_line_and_of_the_footer() {
        let counted = ThreadReport { smis: Some(7), ..shown(0, &[2], 1) };
        assert!(status(0, &counted, false).ends_with(" Max:       2 SMI:       7\n"));
        assert_eq!(smi_row(&[counted]), "# SMIs: 00007\n");
        assert_eq!(smi_row(&[shown(0, &[2], 1)]), "");
    }

    #[test]
    fn a_minimum_above_a_million_and_a_negative_value_are_shown_as_they_are() {
        let text = status(0, &shown(0, &[2_000_000], 0), false);
        assert!(text.contains(" Min:2000000 Act:2000000 Avg:2000000 Max: 2000000"), "{text}");
        let text = status(0, &shown(0, &[-6], 0), false);
        assert!(text.contains(" Min:     -6 Act:   -6 Avg:   -6 Max:      -6"), "{text}");
    }

    #[test]
    fn values_of_verbose_output() {
        assert_eq!(value(0, 1, 20), "       0:       1:      20\n");
        assert_eq!(value(11, 12_345_678, -1_234_567), "      11:12345678:-1234567\n");
    }

    #[test]
    fn what_the_original_does_not_say_is_on_lines_of_its_own() {
        let mut threads = [shown(0, &[2, 230, 3], 0), shown(1, &[4], 0)];
        expect![[r"
        # Missed Cycles: 00000 00003
        # Policies: fifo:80 fifo:80
    "]]
        .assert_eq(&truth(&threads));
        threads[0].lost = 7;
        threads[1].overdue = Some(123_456);
        threads[1].missed = None;
        threads[1].policy = Policy::Idle;
        threads[1].tally.take(Nanos(-1));
        expect![[r"
        # Policies: fifo:80 idle
        # Lost Samples: 00007 00000
        # Early Wakeups: 00000 00001
        # Still Waiting: 00000 123456
    "]]
        .assert_eq(&truth(&threads));
    }

    #[test]
    fn a_break_is_reported_as_the_original_does() {
        let threads = [shown(0, &[2], 0), shown(1, &[4], 0)];
        expect![[r"
        # Thread Ids: 07326 07327
        # Break thread: 7327
        # Break value: 4
    "]]
        .assert_eq(&break_lines(&threads, Some((7327, 4))));
        expect![[r"
        # Thread Ids: 07326 07327
    "]]
        .assert_eq(&break_lines(&threads, None));
        assert_eq!(dma_latency(0), "# /dev/cpu_dma_latency set to 0us\n");
    }
}
