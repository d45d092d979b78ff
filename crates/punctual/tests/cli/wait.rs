//! Waiting for what a test has started, by its CPU time and not by a clock: machines of tests stand still for minutes.

use crate::program::running;
use std::collections::BTreeMap;
use std::time::Duration;

/// CPU seconds that the processes of a test may use before what they were to do has not come true.
const BUDGET_S: u64 = 240;

/// Looks, about a second apart, in which no process of the test has used CPU time: nothing will come.
const STILL: u32 = 60;

/// Polls until `condition` holds; returns whether it held before the processes of this test stood still or had used up
/// their CPU time.
pub(crate) fn comes_true(mut condition: impl FnMut() -> bool) -> bool {
    let (mut seen, mut used, mut still) = (ticks(), 0, 0);
    loop {
        for _ in 0..100 {
            if condition() {
                return true;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        let now = ticks();
        // Processes that have ended count by what their parents have of them.
        used += now.iter().map(|(pid, n)| n.saturating_sub(seen.get(pid).copied().unwrap_or(0))).sum::<u64>();
        still = if now == seen { still + 1 } else { 0 };
        seen = now;
        if still >= STILL || used / TICKS_PER_S >= BUDGET_S {
            return condition();
        }
    }
}

/// USER_HZ of proc_pid_stat(5), a constant of Linux.
const TICKS_PER_S: u64 = 100;

/// CPU time of each process of this test, with that of children it has waited for: fields 14 to 17 of
/// proc_pid_stat(5), ticks.
fn ticks() -> BTreeMap<u32, u64> {
    let of = |pid: u32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let fields = stat.rsplit_once(") ")?.1.split(' ');
        Some((pid, fields.skip(11).take(4).filter_map(|field| field.parse::<u64>().ok()).sum()))
    };
    running().into_iter().filter_map(of).collect()
}
