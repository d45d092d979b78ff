//! Data of the pictures of imported measurements, as far as the file has them.

use super::{Distribution, imported_histogram, slices};
use crate::summary::curves::{Curves, NewMaximum, by_number, rising, rungs};
use punctual_model::{Histogram, Imported, ImportedThread, Span};

/// The curves of one imported measurement; only the measured time without a distribution.
pub fn imported_curves(imported: &Imported) -> Curves {
    let threads = &imported.threads;
    let measured = imported.measured.unwrap_or(Span(0));
    let Some(histogram) = imported_histogram(imported) else { return Curves { measured, ..Curves::default() } };
    let beyond = || threads.iter().filter_map(|thread| thread.beyond);
    let is_cut = beyond().any(|beyond| beyond.samples.is_none());
    let all = Distribution::of(threads, &histogram);
    Curves {
        rungs: if is_cut { Vec::new() } else { rungs(|p| all.at(p)) },
        beyond: beyond().filter_map(|beyond| beyond.samples).fold(0, u64::saturating_add),
        is_cut,
        by_cpu: by_number(threads.iter().filter_map(numbered)),
        new_maxima: new_maxima(&slices(threads), measured),
        measured,
        histogram,
        ..Curves::default()
    }
}

fn numbered(thread: &ImportedThread) -> Option<(u32, &Histogram)> {
    Some((thread.cpu.unwrap_or(thread.number), thread.histogram.as_ref()?))
}

/// Maxima over stretches of equal length; none where the file has no course of time.
fn new_maxima(slices: &[Histogram], measured: Span) -> Vec<NewMaximum> {
    let parts = u128::try_from(slices.len()).unwrap_or(u128::MAX);
    let after = |end: u128| Span(u64::try_from(u128::from(measured.ns()) * end / parts).unwrap_or(u64::MAX));
    let maxima = slices.iter().zip(1_u128..).filter(|_| measured > Span(0));
    rising(maxima.filter_map(|(slice, end)| Some((after(end), slice.max_ns?, false))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::imported::tests::imported;
    use crate::testing::imported_thread as thread;
    use punctual_model::{Beyond, Slice};

    #[test]
    fn lines_end_where_the_histogram_of_the_tool_does() {
        let mut some = thread(&vec![5_000; 97_000]);
        some.beyond = Some(Beyond { samples: Some(3_000), at_least_ns: 30_000 });
        (some.samples, some.max_ns, some.number) = (Some(100_000), Some(900_000), 7);
        let curves = imported_curves(&imported(vec![some.clone()]));
        assert_eq!((curves.histogram.n, curves.beyond, curves.by_cpu[&7].n), (97_000, 3_000, 97_000));
        let last = curves.rungs.last().unwrap();
        assert!((0.03..0.1).contains(&last.exceedance) && last.interval_ns.is_none(), "{last:?}");
        assert_eq!(curves.new_maxima, [], "the file has no course of time");

        some.beyond = Some(Beyond { samples: None, at_least_ns: 30_000 });
        let curves = imported_curves(&imported(vec![some]));
        assert!(curves.is_cut && curves.rungs.is_empty() && curves.histogram.n == 97_000);
    }

    #[test]
    fn stretches_tell_when_a_maximum_was_new() {
        let slice = |latency_ns: i64| Slice { first_cycle: 0, cycles: 1, histogram: Histogram::of(&[latency_ns]) };
        let mut timed = thread(&[5_000, 4_000, 9_000, 9_000]);
        timed.slices = [5_000, 4_000, 9_000, 9_000].map(slice).to_vec();
        let mut imported = imported(vec![timed]);
        assert_eq!(imported_curves(&imported).new_maxima, [], "the time is unknown");
        imported.measured = Some(Span(8_000));
        let seen = imported_curves(&imported).new_maxima;
        assert_eq!(
            seen.iter().map(|new| (new.after.ns(), new.latency_ns)).collect::<Vec<_>>(),
            [(2_000, 5_000), (6_000, 9_000)]
        );
    }

    #[test]
    fn no_distribution_has_no_line() {
        let bare = ImportedThread { samples: Some(3), max_ns: Some(7), ..ImportedThread::default() };
        assert_eq!(imported_curves(&imported(vec![bare])), Curves::default());
    }
}
