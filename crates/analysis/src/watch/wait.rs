//! Choice of the call in which a thread waits for its next activation, among all calls in which it sleeps.

use super::calls::{Call, CallKind};
use std::collections::BTreeMap;

/// Sleeps after which the choice is made, and the least time, ns, that they take.
const ENOUGH: u64 = 64;
const ENOUGH_NS: u64 = 300_000_000;
/// Time, ns, after which fewer are enough, and their number.
const LONG_NS: u64 = 2_000_000_000;
const FEW: u64 = 3;
/// Intervals of one call that are kept.
const MOST_INTERVALS: usize = 256;
/// Spread of intervals, as a share of their median, up to which due times are on a grid.
const ON_GRID: f64 = 0.02;

/// Sleeps in one call.
#[derive(Debug, Default, Clone)]
struct Sleeps {
    n: u64,
    by_timer: u64,
    slept_ns: u64,
    /// Beginning of the first one.
    began_ns: u64,
    last_release_ns: Option<u64>,
    intervals: Vec<u64>,
}

impl Sleeps {
    /// Median absolute deviation of the intervals as a share of their median; 1 without any.
    fn spread(&self) -> f64 {
        let mut intervals = self.intervals.clone();
        let Some(median) = median(&mut intervals).filter(|median| *median > 0) else { return 1.0 };
        let mut deviations: Vec<u64> = intervals.iter().map(|interval| interval.abs_diff(median)).collect();
        self::median(&mut deviations).map_or(1.0, |deviation| deviation as f64 / median as f64)
    }
}

fn median(values: &mut [u64]) -> Option<u64> {
    values.sort_unstable();
    values.get(values.len() / 2).copied()
}

/// Sleeps of one thread so far, by call.
#[derive(Debug, Default)]
pub(super) struct Chooser {
    calls: BTreeMap<Call, Sleeps>,
}

impl Chooser {
    /// Adds a sleep; returns the call that it waits in once enough are known.
    pub(super) fn take(&mut self, call: Call, from_ns: u64, release_ns: u64, by_timer: bool) -> Option<Call> {
        let sleeps = self.calls.entry(call).or_insert_with(|| Sleeps { began_ns: from_ns, ..Sleeps::default() });
        sleeps.n += 1;
        sleeps.by_timer += u64::from(by_timer);
        sleeps.slept_ns += release_ns.saturating_sub(from_ns);
        if let Some(last) = sleeps.last_release_ns.replace(release_ns)
            && sleeps.intervals.len() < MOST_INTERVALS
        {
            sleeps.intervals.push(release_ns.saturating_sub(last));
        }
        let (n, passed) = (sleeps.n, release_ns.saturating_sub(sleeps.began_ns));
        let is_enough = (n >= ENOUGH && passed >= ENOUGH_NS) || (n >= FEW && passed >= LONG_NS);
        if is_enough { self.choice() } else { None }
    }

    /// The best choice so far; `None` if the thread has not slept twice in one call.
    ///
    /// Among the calls that are at least half as frequent as the most frequent one: a timer whose due times are on a
    /// grid, else the one in which it slept longest.
    pub(super) fn choice(&self) -> Option<Call> {
        let most = self.calls.values().map(|sleeps| sleeps.n).max().filter(|most| *most >= 2)?;
        let frequent = || self.calls.iter().filter(|(_, sleeps)| sleeps.n * 2 >= most);
        let is_on_grid = |(call, sleeps): &(&Call, &Sleeps)| {
            let is_timer =
                sleeps.by_timer * 2 > sleeps.n && (call.kind() != CallKind::Sleep || call.is_until_instant());
            is_timer && sleeps.spread() <= ON_GRID
        };
        let longest = |(_, sleeps): &(&Call, &Sleeps)| sleeps.slept_ns;
        let chosen = frequent().filter(is_on_grid).max_by_key(longest).or_else(|| frequent().max_by_key(longest));
        chosen.map(|(call, _)| *call)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use syscalls::Sysno;

    const MS: u64 = 1_000_000;

    fn call(known: Sysno, arguments: [u64; 3]) -> Call {
        Call::of(i64::from(known.id()), arguments)
    }

    /// The choice after loops of `period` with sleeps of these lengths, each after the other: the call, its length and
    /// whether a timer ends it on the grid.
    fn chosen(loops: u64, sleeps: &[(Call, u64, bool)]) -> Option<Call> {
        let mut chooser = Chooser::default();
        for index in 0..loops {
            let mut at = index * 4 * MS + index % 7 * 30_000;
            for (call, length, is_on_grid) in sleeps {
                let due = if *is_on_grid { (index + 1) * 4 * MS } else { at + length };
                if let Some(chosen) = chooser.take(*call, at, due, *is_on_grid) {
                    return Some(chosen);
                }
                at += length + 10_000;
            }
        }
        chooser.choice()
    }

    #[test]
    fn a_timer_on_a_grid_is_the_wait_however_long_other_sleeps_are() {
        let absolute = call(Sysno::clock_nanosleep, [1, 1, 0]);
        let service = call(Sysno::recvfrom, [7, 0, 0]);
        assert_eq!(chosen(100, &[(service, 3 * MS, false), (absolute, MS / 2, true)]), Some(absolute));
        // A rare sleep is not the wait, even if it is long.
        assert_eq!(chosen(100, &[(absolute, MS, true)]), Some(absolute));
    }

    #[test]
    fn a_slow_start_hastens_no_choice() {
        let mut chooser = Chooser::default();
        assert_eq!(chooser.take(call(Sysno::read, [3, 0, 0]), 0, MS, false), None);
        for index in 0..60 {
            let at = 5_000 * MS + index * 4 * MS;
            assert_eq!(chooser.take(call(Sysno::recvfrom, [7, 0, 0]), at, at + MS, false), None, "{index}");
        }
    }

    #[test]
    fn without_a_grid_the_longest_frequent_sleep_is_the_wait() {
        let lock = call(Sysno::futex, [7, 128, 0]);
        let condition = call(Sysno::futex, [7, 137, 0]);
        assert_eq!(chosen(100, &[(lock, MS / 10, false), (condition, 3 * MS, false)]), Some(condition));
        assert_eq!(chosen(1, &[(lock, MS, false)]), None);
        assert_eq!(chosen(3, &[(lock, MS, false)]), Some(lock));
    }
}
