//! The clock of a guest in terms of the host's, from readings at the start and at the end of a measurement.

use punctual_model::{ClockMark, ClockTie, GuestStop};

/// The largest difference in rate, parts in 10^9, of two clocks that count one oscillator: guests calibrate theirs.
const MAX_DRIFT_PPB: i64 = 500_000;
/// The same within the readings at one end, with their resolution, ns.
const MARK_RESOLUTION_NS: i64 = 1_000;

/// A guest's clock that is tied to the host's.
#[derive(Debug, Clone)]
pub struct GuestClock {
    /// A reading of the guest and the time of the host then, ns.
    start: (u64, u64),
    /// Time of the host between start and end, without stops, and that of the guest, ns.
    rate: (u64, u64),
    /// Stops in which the guest's clock stood still.
    stops: Vec<GuestStop>,
    /// Error and rate.
    pub tie: ClockTie,
}

impl GuestClock {
    /// Ties the clocks by the marks of both ends. `stops` are the times for which QEMU stopped the guest. Errors: one
    /// line, if an end has no marks, or the marks contradict each other.
    pub fn tie(begin: &[ClockMark], end: &[ClockMark], stops: &[GuestStop]) -> Result<GuestClock, String> {
        let [first, last] = [("start", begin), ("end", end)].map(|(name, marks)| best(name, marks));
        let (first, last) = (first?, last?);
        let guest = last.guest_ns.checked_sub(first.guest_ns).filter(|guest| *guest > 0);
        let guest = guest.ok_or("the guest's clock went back between its marks")?;
        let host = middle(&last).saturating_sub(middle(&first));
        let error_ns = half(&first).max(half(&last));
        let uncertain = i128::from(half(&first) + half(&last));
        let within = |host: u64| {
            let gained = i128::from(host) - i128::from(guest);
            gained.abs() <= i128::from(guest) * i128::from(MAX_DRIFT_PPB) / 1_000_000_000 + uncertain
        };
        let stopped: u64 = stops.iter().map(|stop| stop.to_ns.saturating_sub(stop.from_ns)).sum();
        // A stop may hold the guest's clock, too: then it does not see the stop.
        let (host, stops) = match host.saturating_sub(stopped) {
            _ if within(host) => (host, Vec::new()),
            without if stopped > 0 && within(without) => (without, stops.to_vec()),
            _ => {
                let (host, guest) = (host as f64 / 1e6, guest as f64 / 1e6);
                return Err(format!(
                    "the clock marks disagree: {guest:.3} ms of the guest are {host:.3} ms of the host"
                ));
            }
        };
        let drift = (i128::from(host) - i128::from(guest)) * 1_000_000_000 / i128::from(guest);
        let tie = ClockTie {
            error_ns,
            drift_ppb: i64::try_from(drift).unwrap_or(i64::MAX),
            marks: u32::try_from(begin.len() + end.len()).unwrap_or(u32::MAX),
        };
        Ok(GuestClock { start: (first.guest_ns, middle(&first)), rate: (host, guest), stops, tie })
    }

    /// The time of the host, ns, at `guest_ns` of the guest.
    pub fn host_ns(&self, guest_ns: u64) -> u64 {
        let since = i128::from(guest_ns) - i128::from(self.start.0);
        let passed = since * i128::from(self.rate.0) / i128::from(self.rate.1.max(1));
        let mut at = i128::from(self.start.1) + passed;
        for stop in &self.stops {
            if at >= i128::from(stop.from_ns) {
                at += i128::from(stop.to_ns) - i128::from(stop.from_ns);
            }
        }
        u64::try_from(at).unwrap_or(0)
    }
}

/// The shortest reading of one end, if all others agree with it.
fn best(end: &str, marks: &[ClockMark]) -> Result<ClockMark, String> {
    let shortest = marks.iter().min_by_key(|mark| mark.after_ns.saturating_sub(mark.before_ns));
    let Some(best) = shortest.copied() else {
        return Err(format!("no clock marks at the {end} of the measurement"));
    };
    let ahead = |host_ns: u64, guest_ns: u64| i128::from(host_ns) - i128::from(guest_ns);
    let of = ahead(middle(&best), best.guest_ns);
    for mark in marks {
        let apart = i128::from(mark.guest_ns.abs_diff(best.guest_ns)) * i128::from(MAX_DRIFT_PPB) / 1_000_000_000;
        let slack = apart + i128::from(half(&best)) + i128::from(MARK_RESOLUTION_NS);
        let (least, most) = (ahead(mark.before_ns, mark.guest_ns), ahead(mark.after_ns, mark.guest_ns));
        if of + slack < least || of - slack > most {
            let by = (least - of).max(of - most);
            return Err(format!("the clock marks at the {end} disagree by {by} ns"));
        }
    }
    Ok(best)
}

fn middle(mark: &ClockMark) -> u64 {
    mark.before_ns + half(mark)
}

fn half(mark: &ClockMark) -> u64 {
    mark.after_ns.saturating_sub(mark.before_ns) / 2
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn mark(before_ns: u64, width: u64, guest_ns: u64) -> ClockMark {
        ClockMark { before_ns, after_ns: before_ns + width, guest_ns }
    }

    #[test]
    fn times_of_a_guest_become_times_of_the_host_with_an_error() {
        let begin = [mark(1_000_000, 900, 200), mark(1_010_000, 400, 10_000), mark(1_020_000, 5_000, 20_300)];
        let end = [mark(11_010_200, 100, 10_010_000)];
        let clock = GuestClock::tie(&begin, &end, &[]).unwrap();
        assert_eq!(clock.tie, ClockTie { error_ns: 200, drift_ppb: 5_000, marks: 4 });
        assert_eq!(clock.host_ns(10_000), 1_010_200);
        assert_eq!(clock.host_ns(5_010_000), 6_010_225, "half of the drift");
    }

    #[test]
    fn marks_that_disagree_or_are_missing_give_no_tie() {
        let (good, end) = (mark(1_000, 100, 0), mark(10_001_000, 100, 10_000_000));
        let refused = |begin: &[ClockMark], end: &[ClockMark]| GuestClock::tie(begin, end, &[]).unwrap_err();
        assert_eq!(refused(&[], &[end]), "no clock marks at the start of the measurement");
        assert_eq!(refused(&[good], &[]), "no clock marks at the end of the measurement");
        assert_eq!(
            refused(&[good, mark(9_000, 100, 1_000)], &[end]),
            "the clock marks at the start disagree by 6950 ns"
        );
        assert_eq!(refused(&[end], &[good]), "the guest's clock went back between its marks");
        let jumped = mark(30_001_000, 100, 10_000_000);
        let message = "the clock marks disagree: 10.000 ms of the guest are 30.000 ms of the host";
        assert_eq!(refused(&[good], &[jumped]), message);
    }

    #[test]
    fn a_stop_of_the_guest_may_hold_its_clock_or_not() {
        let stop = GuestStop { from_ns: 5_001_050, to_ns: 25_001_050 };
        let (begin, end) = ([mark(1_000, 100, 0)], [mark(30_001_000, 100, 10_000_000)]);
        let held = GuestClock::tie(&begin, &end, &[stop]).unwrap();
        assert_eq!((held.host_ns(1_000_000), held.host_ns(6_000_000)), (1_001_050, 26_001_050));
        let seen = GuestClock::tie(&begin, &[mark(30_001_000, 100, 30_000_000)], &[stop]).unwrap();
        assert_eq!(seen.host_ns(26_000_000), 26_001_050);
    }

    proptest! {
        /// Whatever the offset and the drift within the limit, each time is right within the stated error.
        #[test]
        fn the_error_is_kept(
            offset in 0u64..1 << 60, drift in -400_000i64..400_000, widths in prop::collection::vec(1u64..50_000, 2..20),
            share in 0u64..1000, at in 0u64..1_000_000_000,
        ) {
            let host = |guest: u64| {
                let gained = i128::from(guest) * i128::from(drift) / 1_000_000_000;
                offset + u64::try_from(i128::from(guest) + gained).unwrap()
            };
            let marks = |from: u64| -> Vec<ClockMark> {
                let mark = |(n, width): (u64, &u64)| {
                    let guest = from + n * 60_000;
                    let inside = width * share / 1000;
                    ClockMark { before_ns: host(guest).saturating_sub(inside), after_ns: host(guest) + width - inside, guest_ns: guest }
                };
                (0..).zip(&widths).map(mark).collect()
            };
            let clock = GuestClock::tie(&marks(1_000_000), &marks(1_001_000_000), &[]).unwrap();
            let error = clock.host_ns(1_000_000 + at).abs_diff(host(1_000_000 + at));
            prop_assert!(error <= clock.tie.error_ns + 2, "{error} {:?}", clock.tie);
        }
    }
}
