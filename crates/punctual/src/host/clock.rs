//! How far the machine's clocks are apart.

use model::ClockId;
use rt::sys;

/// `clock - CLOCK_MONOTONIC`, ns: of a few readings the one that took least, so that a preemption between two of them is no
/// step. NTP slews both alike, so it changes only when the clock is set.
pub(crate) fn ahead_of_monotonic_ns(clock: ClockId) -> i64 {
    let reading = |_| {
        let before = sys::clock::monotonic();
        let there = sys::clock::now(clock);
        let took = sys::clock::monotonic().since(before).0;
        (took, there.0.cast_signed().wrapping_sub(before.0.cast_signed()))
    };
    (0..5).map(reading).min_by_key(|(took, _)| *took).map_or(0, |(_, distance)| distance)
}
