//! Refinement of a late wake-up: its due time moved to the beginning of what delayed it.

use super::Woken;

/// A wake-up may end so much earlier, ns, when its due time moves within what delays it: the timer's interrupt comes
/// at another place.
const TOLERANCE_NS: u64 = 2_000;

/// Distance from a guess to both sides, ns: two steps of a timer.
const AROUND_GUESS_NS: u64 = 32;

/// The end of a refinement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Refined {
    /// How much earlier the due time is, ns.
    pub(super) earlier_ns: u64,
    /// The latency from there, ns.
    pub(super) latency_ns: u64,
    /// Whether the beginning was found; it is earlier otherwise.
    pub(super) is_whole: bool,
    /// Number of wake-ups that were tried.
    pub(super) tried: u32,
}

/// Moves the due time of the wake-up `first`, at most to the beginning of its wait, as long as it wakes at the same
/// instant, to the nanosecond: one nanosecond earlier it would have woken before the delay. `wake` lets it wake with a
/// due time that is so much earlier; `guesses_ns`, in ascending order, save most of them if the delay begins at one.
/// Errors: those of `wake`.
pub(super) fn refine<E>(
    first: Woken,
    guesses_ns: &[u64],
    mut wake: impl FnMut(u64) -> Result<Woken, E>,
) -> Result<Refined, E> {
    let latency_of = |woken: Woken, earlier_ns: u64| woken.woke_ns.saturating_sub(woken.due_ns) + earlier_ns;
    let most_ns = first.due_ns.saturating_sub(first.waits_ns);
    let tolerance = TOLERANCE_NS.min(latency_of(first, 0) / 4);
    let mut refined = Refined { earlier_ns: 0, latency_ns: latency_of(first, 0), is_whole: true, tried: 0 };
    let mut try_at = |refined: &mut Refined, earlier_ns: u64| {
        let woken = wake(earlier_ns)?;
        refined.tried += 1;
        let is_delayed = woken.woke_ns + tolerance >= first.woke_ns;
        if is_delayed && latency_of(woken, earlier_ns) > refined.latency_ns {
            (refined.earlier_ns, refined.latency_ns) = (earlier_ns, latency_of(woken, earlier_ns));
        }
        Ok(is_delayed)
    };
    let (mut delayed, mut before) = (0, None);
    let around = |guess_ns: &u64| [guess_ns + AROUND_GUESS_NS, guess_ns.saturating_sub(AROUND_GUESS_NS)];
    for earlier_ns in guesses_ns.iter().flat_map(around).chain([most_ns]) {
        let is_open = earlier_ns > delayed && before.is_none_or(|before| earlier_ns < before) && earlier_ns <= most_ns;
        if is_open {
            if try_at(&mut refined, earlier_ns)? { delayed = earlier_ns } else { before = Some(earlier_ns) }
        }
    }
    let Some(mut before) = before else { return Ok(Refined { is_whole: false, ..refined }) };
    while before - delayed > 1 {
        let middle = delayed + (before - delayed) / 2;
        if try_at(&mut refined, middle)? { delayed = middle } else { before = middle }
    }
    Ok(refined)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;

    /// A wake-up due at 1 ms, delayed from `begin` to `end`; others take 4 us.
    fn with_delay(begin: u64, end: u64) -> impl Fn(u64) -> Result<Woken, Infallible> {
        move |earlier| {
            let due = 1_000_000 - earlier;
            let woke = if (begin..end).contains(&due) { end } else { due };
            Ok(Woken { due_ns: 1_000_000, woke_ns: woke + 4_000, waits_ns: 905_000 })
        }
    }

    #[test]
    fn the_due_time_is_moved_to_the_first_nanosecond_of_the_delay() {
        for (begin, end, earlier_ns, is_whole) in [
            (999_999, 1_037_000, 1, true),
            (1_000_000, 1_100_000, 0, true),
            (937_123, 1_000_001, 62_877, true),
            (905_000, 1_300_000, 95_000, false),
            (905_001, 1_300_000, 94_999, true),
            (100_000, 1_300_000, 95_000, false),
        ] {
            let wake = with_delay(begin, end);
            for (guess_ns, most_tried) in [(0, 20), (earlier_ns, 11), (earlier_ns + 20, 11), (50_000, 20), (99_999, 20)]
            {
                let refined = refine(wake(0).unwrap(), &[10, guess_ns], &wake).unwrap();
                assert_eq!((refined.earlier_ns, refined.is_whole), (earlier_ns, is_whole), "{begin} {guess_ns}");
                assert_eq!(refined.latency_ns, end + 4_000 - (1_000_000 - earlier_ns), "{begin}");
                assert!(refined.tried <= most_tried, "{begin}, {guess_ns}: {}", refined.tried);
            }
        }
    }
}
