//! The lines of cyclictest's text, and the `#` lines of ours.

use super::tally::Tally;
use model::Policy;
use std::fmt::Write;

/// One thread, as it is shown.
#[derive(Debug, Clone)]
pub(super) struct Shown {
    /// Its id, gettid(2).
    pub(super) tid: u32,
    /// 0 unless a real-time policy's.
    pub(super) priority: u32,
    pub(super) interval_us: u64,
    /// Read back from the kernel.
    pub(super) policy: Policy,
    /// The CPU it is pinned to; `None`: not pinned.
    pub(super) cpu: Option<u32>,
    /// The memory node of that CPU; `None`: not known.
    pub(super) node: Option<u32>,
    pub(super) tally: Tally,
    /// Due times already past when the thread could wait again; `None` for relative waits, which have no due times.
    pub(super) missed: Option<u64>,
    /// Samples for which there was no room.
    pub(super) lost: u64,
    /// System management interrupts of its CPU during the run, when last read; `None`: not counted.
    pub(super) smis: Option<u64>,
    /// A wait that was overdue at the end: at least this late, in the unit of the output.
    pub(super) overdue: Option<i64>,
}

/// What the original prints as the minimum of no values; its maximum is 0.
const NO_MINIMUM: i64 = 1_000_000;

impl Shown {
    fn min(&self) -> i64 {
        self.tally.min.unwrap_or(NO_MINIMUM)
    }

    fn max(&self) -> i64 {
        self.tally.max.unwrap_or(0)
    }
}

/// `T: 0 ( 7326) P:80 I:1000 C:    500 Min:      2 Act:    3 Avg:    8 Max:     230`
pub(super) fn status(index: usize, thread: &Shown, nanoseconds: bool) -> String {
    let Shown { tid, priority, interval_us, tally, smis, .. } = thread;
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
pub(super) fn statuses(threads: &[Shown], nanoseconds: bool) -> String {
    threads.iter().enumerate().map(|(index, thread)| status(index, thread, nanoseconds)).collect()
}

/// What SIGUSR1 prints on stderr.
pub(super) fn snapshot(threads: &[Shown], nanoseconds: bool) -> String {
    let rule = "#---------------------------\n";
    format!("{rule}# cyclictest current status:\n{}{rule}", statuses(threads, nanoseconds))
}

/// The view while it runs: a head, an empty line, the status lines. `load` is `/proc/loadavg`.
pub(super) fn view(threads: &[Shown], load: &str, nanoseconds: bool) -> String {
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

/// Moves the cursor of a terminal back to the head of a view, ECMA-48 CUU.
pub(super) fn back_up(n_threads: usize) -> String {
    format!("\x1b[{}A", n_threads + 2)
}

/// `       0:       3:      25`: thread, cycle, value.
pub(super) fn value(index: usize, cycle: u64, value: i64) -> String {
    format!("{index:>8}:{cycle:>8}:{value:>8}\n")
}

/// A `#` line with one number a thread, zero-padded to `width`.
pub(super) fn row(label: &str, width: usize, values: impl IntoIterator<Item = i64>) -> String {
    let mut line = format!("# {label}:");
    for value in values {
        let _ = write!(line, " {value:0width$}");
    }
    line.push('\n');
    line
}

/// The row of the footer about system management interrupts, if they were counted.
pub(super) fn smi_row(threads: &[Shown]) -> String {
    let counts: Option<Vec<i64>> =
        threads.iter().map(|thread| thread.smis.and_then(|n| i64::try_from(n).ok())).collect();
    counts.map_or_else(String::new, |counts| row("SMIs", 5, counts))
}

/// What the original does not say, each as a `#` line: due times missed, and the policy that the threads really had;
/// then, if there were any, samples lost, wake-ups too early, and waits still open.
pub(super) fn truth(threads: &[Shown]) -> String {
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

/// What follows a run with `-b`: all thread ids; and the thread and value that broke it, if any did.
pub(super) fn break_lines(threads: &[Shown], broke: Option<(u32, i64)>) -> String {
    let mut text = row("Thread Ids", 5, threads.iter().map(|thread| i64::from(thread.tid)));
    if let Some((tid, value)) = broke {
        let _ = write!(text, "# Break thread: {tid}\n# Break value: {value}\n");
    }
    text
}

/// The line about idle states.
pub(super) fn dma_latency(us: u32) -> String {
    format!("# /dev/cpu_dma_latency set to {us}us\n")
}

/// Minima, means and maxima as the histogram's footer has them.
pub(super) fn footer(threads: &[Shown], of_all: bool) -> String {
    let max = threads.iter().map(Shown::max);
    let of_all = max.clone().max().filter(|_| of_all);
    row("Min Latencies", 5, threads.iter().map(Shown::min))
        + &row("Avg Latencies", 5, threads.iter().map(|thread| thread.tally.mean_cut().unwrap_or(0)))
        + &row("Max Latencies", 5, max.chain(of_all))
}

#[cfg(test)]
pub(super) mod tests;
