//! The latency above which a wake-up is explained.
//!
//! It is low enough to find the worst of each window, and high enough that explaining stays cheap: each stop of the
//! trace costs some milliseconds of CPU time.

use punctual_model::{Histogram, Span};

/// Explanations that are kept of a window.
pub(crate) const KEPT: usize = 3;
/// Most explanations of a window.
const MOST: usize = 12;
/// Wake-ups after which a p99 is known well enough.
const ENOUGH: u64 = 1_000;

/// The threshold of the present window.
#[derive(Debug, Clone)]
pub(crate) struct Threshold {
    /// The threshold that was asked for; `None`: derived from latencies.
    asked: Option<Span>,
    /// Twice the p99 of the last window with enough wake-ups.
    derived: Option<Span>,
    /// Latencies of the kept explanations, largest first, ns.
    kept: Vec<u64>,
    explained: usize,
}

impl Threshold {
    pub(crate) fn new(asked: Option<Span>) -> Threshold {
        Threshold { asked, derived: None, kept: Vec::new(), explained: 0 }
    }

    /// Takes the latency of an explained wake-up.
    pub(crate) fn explained(&mut self, latency: Span) {
        self.explained += 1;
        let at = self.kept.partition_point(|kept| *kept >= latency.ns());
        self.kept.insert(at, latency.ns());
        self.kept.truncate(KEPT);
    }

    /// The end of a window, with the latencies of its worst CPU.
    pub(crate) fn window_ended(&mut self, worst: &Histogram) {
        self.derived = twice_p99(worst).or(self.derived);
        (self.kept, self.explained) = (Vec::new(), 0);
    }

    /// The present threshold; `present` are latencies of this window. `None`: nothing is explained.
    pub(crate) fn above(&self, present: &Histogram) -> Option<Span> {
        let base = self.asked.or(self.derived).or_else(|| twice_p99(present))?;
        if self.explained >= MOST {
            return None;
        }
        let least = self.kept.get(KEPT - 1).map_or(0, |least| *least);
        Some(base.max(Span(least)))
    }
}

/// Twice the p99, as `punctual explain` derives it.
fn twice_p99(histogram: &Histogram) -> Option<Span> {
    let p99 = punctual_analysis::quantile(histogram, 0.99).filter(|_| histogram.n >= ENOUGH)?;
    Some(Span(u64::try_from(p99).ok()?.saturating_mul(2)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_derived_from_enough_latencies_rises_and_ends() {
        let none = Histogram::default();
        let mut latencies = Histogram::default();
        latencies.record_n(100, 989);
        latencies.record_n(200, 10);
        let mut threshold = Threshold::new(None);
        assert_eq!(threshold.above(&latencies), None, "999");
        latencies.record(100);
        assert_eq!(threshold.above(&latencies), Some(Span(200)), "twice 100: 10 of 1000 are beyond");
        latencies.record(200);
        assert_eq!(threshold.above(&latencies), Some(Span(400)));
        threshold.window_ended(&latencies);
        assert_eq!(threshold.above(&none), Some(Span(400)));
        for latency in [900, 500, 700] {
            assert_eq!(threshold.above(&none), Some(Span(400)));
            threshold.explained(Span(latency));
        }
        assert_eq!(threshold.above(&none), Some(Span(500)));
        threshold.explained(Span(800));
        assert_eq!(threshold.above(&none), Some(Span(700)));
        (4..MOST).for_each(|_| threshold.explained(Span(2)));
        assert_eq!(threshold.above(&none), None);
        threshold.window_ended(&none);
        assert_eq!(threshold.above(&none), Some(Span(400)), "too few latencies change nothing");
    }

    #[test]
    fn what_was_asked_for_is_the_least() {
        let mut threshold = Threshold::new(Some(Span(600)));
        assert_eq!(threshold.above(&Histogram::default()), Some(Span(600)));
        [500, 500, 500].into_iter().for_each(|latency| threshold.explained(Span(latency)));
        assert_eq!(threshold.above(&Histogram::default()), Some(Span(600)));
    }
}
