//! The result of Cobalt's driver `timerbench` as that of an outside instrument: what it does not say stays unknown.

use punctual_model::{
    Beyond, CobaltContext, Histogram, Imported, ImportedThread, Period, Source, Span, StatedConditions,
};
use punctual_sys::cobalt::timerbench::{DEVICE, Outcome};

/// The driver's histogram: `n` buckets of `width_ns`; the last one counts everything above, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Buckets {
    pub(super) n: u32,
    pub(super) width_ns: u32,
}

impl Buckets {
    /// Up to 200 us; takes 240 KB of contiguous memory of the kernel.
    pub(super) const FINE: Buckets = Buckets { n: 20_000, width_ns: 10 };
    /// The same range in 24 KB, which the kernel always finds (`PAGE_ALLOC_COSTLY_ORDER`, include/linux/mmzone.h).
    pub(super) const COARSE: Buckets = Buckets { n: 2_000, width_ns: 100 };
}

/// The stretches in which the driver counts: as many cycles as fit into a second. The first one is its warm-up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Batches {
    period: Period,
}

impl Batches {
    pub(super) fn of(period: Period) -> Batches {
        Batches { period }
    }

    /// Cycles of one (`samples_per_sec`).
    fn cycles(self) -> u64 {
        (Span::SECOND.ns() / self.period.ns()).max(1)
    }

    pub(super) fn length(self) -> Span {
        Span(self.cycles().saturating_mul(self.period.ns()))
    }

    /// The whole ones within `span`, at least one.
    pub(super) fn within(self, span: Span) -> Span {
        let length_ns = self.length().ns();
        Span((span.ns() / length_ns).max(1).saturating_mul(length_ns))
    }
}

/// The result in words of an import. Errors: one line: no batch was completed, or the counts contradict each other.
pub(super) fn imported(
    context: CobaltContext,
    period: Period,
    buckets: Buckets,
    outcome: &Outcome,
) -> Result<Imported, String> {
    let mut remarks = vec!["its first second is a warm-up and left out".to_owned()];
    let thread = thread(period, buckets, outcome, &mut remarks)?;
    // The words of Xenomai's `latency` (testsuite/latency/latency.c).
    let what = match context {
        CobaltContext::Kernel => "in-kernel periodic task",
        CobaltContext::Handler => {
            remarks.push("its timer handler runs in the interrupt, where the priority does not apply".to_owned());
            "in-kernel timer handler"
        }
    };
    let due = thread.samples.unwrap_or(0).saturating_add(u64::try_from(outcome.overruns).unwrap_or(0));
    Ok(Imported {
        conditions: StatedConditions { period: Some(period), ..StatedConditions::of(what) },
        measured: Some(Span(due.saturating_mul(period.ns()))),
        threads: vec![thread],
        remarks,
        ..Imported::of(Source::of("timerbench of Xenomai", DEVICE), u64::from(buckets.width_ns))
    })
}

fn thread(
    period: Period,
    buckets: Buckets,
    outcome: &Outcome,
    remarks: &mut Vec<String>,
) -> Result<ImportedThread, String> {
    let Outcome { mean_ns, min_ns, max_ns, overruns, batches, ref counts } = *outcome;
    let samples: u64 = counts.iter().map(|n| u64::from(*n)).sum();
    let complete = u64::try_from(batches).unwrap_or(0).saturating_mul(Batches::of(period).cycles());
    if batches < 1 {
        return Err("not one second was completed after its warm-up".to_owned());
    }
    if complete > samples || min_ns > max_ns || overruns < 0 {
        return Err("its result contradicts itself; please report this defect".to_owned());
    }
    let unfinished = samples - complete;
    let (min_ns, max_ns) = (i64::from(min_ns), i64::from(max_ns));
    // Each bucket by its upper bound, so that no quantile is below the true one.
    let width_ns = i64::from(buckets.width_ns);
    let rows = (0_i64..).zip(counts).filter(|(_, n)| **n > 0);
    let (last, inner) = (i64::from(buckets.n) - 1, |at: &i64| *at < i64::from(buckets.n) - 1);
    let mut histogram = Histogram::default();
    let upper_ns = |at: i64| (at + 1) * width_ns - 1;
    rows.clone().filter(|(at, _)| inner(at)).for_each(|(at, n)| {
        histogram.record_n(if at == max_ns / width_ns { max_ns } else { upper_ns(at) }, u64::from(*n));
    });
    let beyond = rows.clone().find(|(at, _)| *at == last).map(|(_, n)| u64::from(*n));
    let beyond = beyond.map(|n| Beyond { samples: Some(n), at_least_ns: last * width_ns });
    // Smallest, mean, largest and overruns are those of complete seconds; the histogram has the samples after them.
    let highest = rows.clone().filter(|(at, _)| inner(at)).map(|(at, _)| at).max();
    let above = highest.filter(|at| at * width_ns > max_ns && min_ns >= 0).map(upper_ns);
    let lowest = rows.clone().map(|(at, _)| at).min();
    let below = lowest.filter(|at| upper_ns(*at) < min_ns).map(|at| at * width_ns);
    let is_open = unfinished > 0 && beyond.is_some();
    let may_miss = is_open || above.is_some_and(|ns| u64::try_from(ns).unwrap_or(0) > period.ns());
    if unfinished > 0 {
        let words = "samples of an unfinished second, whose overruns and part of the mean are unknown";
        remarks.push(format!("{unfinished} {words}"));
    }
    let is_mean = (min_ns..=max_ns).contains(&i64::from(mean_ns));
    if !is_mean {
        remarks.push("its mean overflowed and is left out".to_owned());
    }
    let mut thread = ImportedThread {
        samples: Some(samples),
        beyond,
        min_ns: Some(below.unwrap_or(min_ns)),
        max_ns: Some(above.unwrap_or(max_ns)).filter(|_| !is_open),
        mean_ns: is_mean.then_some(f64::from(mean_ns)),
        missed: u64::try_from(overruns).ok().filter(|_| !may_miss),
        ..ImportedThread::default()
    };
    if min_ns >= 0 {
        thread.histogram = Some(histogram);
    } else {
        // Magnitudes say neither what was early nor how late the others were.
        thread.beyond = None;
        remarks.push(negative(min_ns));
    }
    Ok(thread)
}

fn negative(min_ns: i64) -> String {
    format!(
        "negative latencies, down to {min_ns} ns, are counted as positive ones, so the histogram is left out; set \
         cobalt_gravity = \"0us\""
    )
}

/// The numbers of the result in order, each of four bytes, little endian.
pub(super) fn bytes(outcome: &Outcome) -> Vec<u8> {
    let Outcome { mean_ns, min_ns, max_ns, overruns, batches, ref counts } = *outcome;
    let head = [mean_ns, min_ns, max_ns, overruns, batches].into_iter().flat_map(i32::to_le_bytes);
    head.chain(counts.iter().flat_map(|n| n.to_le_bytes())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEN: Buckets = Buckets { n: 10, width_ns: 10 };

    fn half_a_second() -> Period {
        "500ms".parse().unwrap()
    }

    /// Two complete seconds of two cycles each, with these counts.
    fn outcome(min_ns: i32, max_ns: i32, counts: [u32; 10]) -> Outcome {
        Outcome {
            mean_ns: i32::midpoint(min_ns, max_ns),
            min_ns,
            max_ns,
            overruns: 0,
            batches: 2,
            counts: counts.into(),
        }
    }

    fn of(outcome: &Outcome) -> (ImportedThread, Vec<String>) {
        let mut remarks = Vec::new();
        (thread(half_a_second(), TEN, outcome, &mut remarks).unwrap(), remarks)
    }

    #[test]
    fn batches_are_whole_cycles_below_a_second() {
        let of = |period: &str, span| {
            let batches = Batches::of(period.parse().unwrap());
            (batches.cycles(), batches.length().ns(), batches.within(span).ns())
        };
        assert_eq!(of("1ms", Span(2_500_000_000)), (1_000, 1_000_000_000, 2_000_000_000));
        assert_eq!(of("300us", Span::SECOND), (3_333, 999_900_000, 999_900_000));
        assert_eq!(of("1s", Span::SECOND), (1, 1_000_000_000, 1_000_000_000));
        assert_eq!(of("700ms", Span(1)), (1, 700_000_000, 700_000_000));
    }

    #[test]
    fn complete_seconds_are_exact_and_quantiles_upper_bounds() {
        let (thread, remarks) = of(&outcome(12, 33, [0, 1, 2, 1, 0, 0, 0, 0, 0, 0]));
        assert_eq!((thread.min_ns, thread.max_ns, thread.missed), (Some(12), Some(33), Some(0)));
        assert_eq!((thread.samples, thread.mean_ns, thread.beyond), (Some(4), Some(22.0), None));
        assert_eq!(thread.histogram, Some(Histogram::of(&[19, 29, 29, 33])));
        assert_eq!(remarks, [""; 0]);
    }

    #[test]
    fn samples_beyond_the_last_bucket_are_counted_and_the_largest_is_exact() {
        let (thread, _) = of(&outcome(12, 400, [0, 1, 1, 0, 0, 0, 0, 0, 0, 2]));
        assert_eq!(thread.beyond, Some(Beyond { samples: Some(2), at_least_ns: 90 }));
        assert_eq!((thread.max_ns, thread.missed), (Some(400), Some(0)));
        assert_eq!(thread.histogram, Some(Histogram::of(&[19, 29])));
    }

    #[test]
    fn an_unfinished_second_leaves_unknown_what_it_may_have_changed() {
        let (inside, remarks) = of(&outcome(12, 33, [0, 1, 3, 1, 0, 0, 0, 0, 0, 0]));
        assert_eq!((inside.min_ns, inside.max_ns, inside.missed), (Some(12), Some(33), Some(0)));
        assert!(remarks[0].starts_with("1 samples of an unfinished second"), "{remarks:?}");
        let (outside, _) = of(&outcome(12, 33, [1, 1, 2, 1, 1, 0, 0, 0, 0, 0]));
        assert_eq!((outside.min_ns, outside.max_ns, outside.missed), (Some(0), Some(49), Some(0)));
        let (beyond, _) = of(&outcome(12, 33, [0, 1, 2, 1, 0, 0, 0, 0, 0, 1]));
        assert_eq!((beyond.max_ns, beyond.missed), (None, None));
    }

    #[test]
    fn folded_histograms_are_left_out() {
        let (thread, remarks) = of(&outcome(-15, 33, [0, 2, 1, 1, 0, 0, 0, 0, 0, 0]));
        assert_eq!((thread.min_ns, thread.max_ns, thread.histogram), (Some(-15), Some(33), None));
        assert!(remarks[0].contains("cobalt_gravity"), "{remarks:?}");
    }

    #[test]
    fn contradictions_and_no_second_are_one_line() {
        let good = outcome(12, 33, [0, 1, 2, 1, 0, 0, 0, 0, 0, 0]);
        for wrong in [
            Outcome { batches: 0, ..good.clone() },
            Outcome { batches: 3, ..good.clone() },
            Outcome { min_ns: 34, ..good.clone() },
            Outcome { overruns: -1, ..good.clone() },
        ] {
            let reason = thread(half_a_second(), TEN, &wrong, &mut Vec::new()).unwrap_err();
            assert!(!reason.contains('\n'), "{reason}");
        }
        let overflowed = thread(half_a_second(), TEN, &Outcome { mean_ns: -5, ..good }, &mut Vec::new()).unwrap();
        assert_eq!(overflowed.mean_ns, None);
    }
}
