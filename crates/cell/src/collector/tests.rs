//! Tables of samples: boundaries of seconds, slices, stretches, episodes and spikes.

use super::*;
use punctual_model::{ClockTime, Nanos, Period};

fn collect(end: u64, deadline: u64, samples: &[(u64, i64)]) -> Collector {
    let schedule = Schedule { first_due: ClockTime(7), period: Period::try_from(Span(1_000_000)).unwrap() };
    let mut collector = Collector::new(schedule, &Task::CLOCK_NANOSLEEP, 10..end, Span(deadline));
    for &(cycle, latency_ns) in samples {
        collector.take(Sample { cycle, latency: Nanos(latency_ns) });
    }
    collector
}

#[test]
fn only_measured_cycles_count() {
    let collector = collect(20, 1_000_000, &[(9, 5), (10, 6), (19, 7), (20, 8)]);
    assert_eq!((collector.histogram.n, collector.last_ns, collector.last_cycle), (2, Some(7), Some(20)));
}

#[test]
fn a_wake_up_that_reaches_into_the_window_is_that_of_its_first_due_time() {
    let late = |latency_ns| collect(20, 1, &[(8, latency_ns)]);
    let seen = |collector: &Collector| (collector.histogram.max_ns, collector.missed, collector.last_cycle);
    // Cycle 10 is due 2 ms after cycle 8: just then it can still be waited for.
    assert_eq!(seen(&late(2_000_000)), (None, 0, Some(8)));
    assert_eq!(seen(&late(2_000_001)), (Some(1), 0, Some(10)), "1 ns later it has passed");
    assert_eq!(seen(&late(3_000_001)), (Some(1_000_001), 1, Some(10)));
    assert_eq!(seen(&late(99_000_000)), (Some(97_000_000), 9, Some(10)), "all are accounted for");
    let taken = collect(20, 1, &[]).take(Sample { cycle: 8, latency: Nanos(3_000_001) });
    assert_eq!(taken, Some((0, 1_000_001)), "as in the file of samples");

    let open = |task: &str, at_least_ns| {
        let schedule = Schedule { first_due: ClockTime(7), period: Period::try_from(Span(1_000_000)).unwrap() };
        let collector = Collector::new(schedule, &task.parse().unwrap(), 10..20, Span(1));
        let wait = collector.open_in_window(Censored { cycle: -2, at_least_ns });
        (wait.cycle, wait.at_least_ns)
    };
    assert_eq!(open("clock_nanosleep", 2_000_000), (-2, 2_000_000));
    assert_eq!(open("clock_nanosleep", 2_000_001), (0, 1));
    assert_eq!(open("nanosleep", 2_000_001), (-2, 2_000_001), "a relative wait has no due times behind it");
}

#[test]
fn missed_due_times_stop_at_the_end() {
    assert_eq!(collect(20, 1, &[(10, 2_000_001)]).missed, 2);
    assert_eq!(collect(20, 1, &[(18, 9_000_000)]).missed, 1);
    assert_eq!(collect(20, 1, &[(19, 9_000_000)]).missed, 0);
}

#[test]
fn seconds_and_slices_cut_at_their_boundaries() {
    let collector = collect(2 * 1280 + 10, 100, &[(10, 5), (1009, -3), (1010, 200), (1049, 9), (1050, 1)]);
    let rows: Vec<_> =
        collector.seconds.iter().map(|s| (s.second, s.n, s.max_ns, s.max_cycle, s.over_deadline)).collect();
    assert_eq!(rows, [(0, 2, Some(5), Some(0), 0), (1, 3, Some(200), Some(1000), 1)]);
    let slices: Vec<_> = collector.slices.iter().map(|s| (s.first_cycle, s.cycles, s.histogram.n)).collect();
    assert_eq!(slices, [(0, 40, 1), (960, 40, 1), (1000, 40, 2), (1040, 40, 1)]);
    assert_eq!(collector.early, 1);
}

#[test]
fn a_slice_has_at_least_20_cycles_and_the_last_may_be_shorter() {
    let collector = collect(10 + 50, 1, &[(10, 1), (59, 1)]);
    assert_eq!(collector.slices.iter().map(|s| (s.first_cycle, s.cycles)).collect::<Vec<_>>(), [(0, 20), (40, 10)]);
}

#[test]
fn slices_and_seconds_of_different_periods_cover_the_same_times() {
    let mut cell = punctual_analysis::testing::cell("none", "other");
    cell.conditions.period_step = Some(Span(500_000));
    cell.conditions.warm_up = Span(5_000_000);
    cell.duration = Span(3_000_000_000);
    let tables = |n: usize| {
        let schedule = Schedule { first_due: ClockTime(7), period: cell.period_of(n) };
        let mut collector = Collector::of_thread(&cell, schedule);
        for cycle in 0..collector.end + 9 {
            collector.take(Sample { cycle, latency: Nanos(5) });
        }
        collector
    };
    let (first, second) = (tables(0), tables(1));
    assert_eq!((first.histogram.n, second.histogram.n), (3000, 2000), "3:2");
    // 47 cycles of 1 ms in a stretch. The first of 1.5 ms is due at 6 ms, 1 ms after the window begins.
    assert_eq!((first.stretch, second.stretch, second.lead), (Some(Span(47_000_000)), first.stretch, Span(1_000_000)));
    let slices = |all: &Collector, period: u64| -> Vec<(u64, bool)> {
        let in_stretch = |slice: &Slice| {
            let due = |cycle: u64| all.lead.0 + cycle * period;
            let number = due(slice.first_cycle) / 47_000_000;
            let last = due(slice.first_cycle + slice.cycles - 1);
            (number, slice.histogram.n == slice.cycles && last / 47_000_000 == number)
        };
        all.slices.iter().map(in_stretch).collect()
    };
    let want: Vec<_> = (0..64).map(|number| (number, true)).collect();
    assert_eq!(slices(&first, 1_000_000), want);
    assert_eq!(slices(&second, 1_500_000), want);
    assert_eq!(second.slices.iter().take(3).map(|slice| slice.cycles).collect::<Vec<_>>(), [31, 31, 32]);
    let seconds = |all: &Collector| all.seconds.iter().map(|row| (row.second, row.n)).collect::<Vec<_>>();
    assert_eq!(seconds(&first), [(0, 1000), (1, 1000), (2, 1000)]);
    assert_eq!(seconds(&second), [(0, 666), (1, 667), (2, 667)]);
}

#[test]
fn a_stretch_has_20_cycles_of_the_slowest_thread() {
    let mut cell = punctual_analysis::testing::cell("none", "other");
    cell.conditions.period_step = Some(Span(9_100_000));
    let schedule = |n| Schedule { first_due: ClockTime(0), period: cell.period_of(n) };
    let stretch = |n| Collector::of_thread(&cell, schedule(n)).stretch;
    assert_eq!((stretch(0), stretch(1)), (Some(Span(220_000_000)), stretch(0)));
}

#[test]
fn misses_closer_than_a_second_are_one_episode() {
    let late = 2_000_000;
    // Each wakes 2 ms late. The second is due just within a second of the first wake-up, the third exactly a second
    // after the second wake-up.
    let mut collector = collect(5000, 1_000_000, &[(10, late), (1011, late), (1011 + 1002, late)]);
    let worst = collector.finish(None);
    let found: Vec<_> = collector.episodes.first.iter().map(|e| (e.first_cycle, e.last_cycle, e.count)).collect();
    assert_eq!((collector.episodes.count, found), (2, vec![(0, 1001, 2), (2003, 2003, 1)]));
    assert_eq!(worst.first(), Some(&Worst { latency_ns: late, cycle: 2003 }));
}

#[test]
fn a_spike_is_later_than_twice_the_p99_of_before() {
    let samples: Vec<_> = (0..1000).map(|i| (10 + i, if i < 990 { 5 } else { 50 })).collect();
    let mut collector = collect(5000, 1_000_000, &samples[..999]);
    collector.watch_for_spikes();
    assert_eq!((collector.progress(3).p99_ns, collector.spike_above_ns), (None, None), "too few to know p99");
    let mut collector = collect(5000, 1_000_000, &samples);
    assert_eq!(collector.progress(3).p99_ns, Some(5));
    assert_eq!(collector.progress(3).spikes, [], "none before anybody watches");
    collector.watch_for_spikes();
    for (cycle, latency_ns) in [(1010, 10), (1011, 11), (1012, 4)].into_iter().chain((1013..1019).map(|i| (i, 20))) {
        collector.take(Sample { cycle, latency: Nanos(latency_ns) });
    }
    let spikes = collector.progress(3).spikes;
    assert_eq!(spikes.len(), Spike::TOLD);
    let last = Spike { at: Span(1_008_000_000), latency_ns: 20, above_ns: 10 };
    assert_eq!((spikes[0].at, spikes.last()), (Span(1_004_000_000), Some(&last)));
    let mut other = collect(5000, 1_000_000, &samples);
    other.watch_for_spikes();
    other.take(Sample { cycle: 1010, latency: Nanos(10) });
    other.take(Sample { cycle: 1011, latency: Nanos(11) });
    assert_eq!(other.spikes.iter().map(|spike| spike.latency_ns).collect::<Vec<_>>(), [11], "equal is none");
}

#[test]
fn a_trigger_without_an_answer_is_a_miss_and_late_answers_miss_nothing() {
    let schedule = Schedule { first_due: ClockTime(7), period: Period::try_from(Span(1_000_000)).unwrap() };
    let method: Task = "response:udp:x:1".parse().unwrap();
    let mut collector = Collector::new(schedule, &method, 10..5010, Span(1_000_000));
    let sample = |cycle, latency_ns| Sample { cycle, latency: Nanos(latency_ns) };
    collector.take(sample(10, 50_000_000));
    collector.take_unanswered(sample(9, 3_000_000_000));
    collector.take_unanswered(sample(11, 3_000_000_000));
    collector.take(sample(12, 5));
    collector.take_unanswered(sample(4510, 400_000));
    collector.take_unanswered(sample(5010, 400_000));
    collector.take_unknown(2);
    collector.finish(None);
    assert_eq!((collector.histogram.n, collector.missed, collector.episodes.count), (2, 2, 1));
    let rows: Vec<_> = collector.seconds.iter().map(|row| (row.second, row.n, row.missed, row.max_ns)).collect();
    assert_eq!(rows, [(0, 2, 1, Some(50_000_000)), (4, 0, 1, None)]);
    let slices = collector.unanswered.iter();
    let slices: Vec<_> = slices.map(|slice| (slice.first_cycle, slice.histogram.n, slice.histogram.min_ns)).collect();
    assert_eq!(slices, [(0, 1, Some(3_000_000_000)), (4424, 1, Some(400_000)), (4977, 2, Some(0))]);
    let wired: Task = "response:gpio:gpiochip0/1,2".parse().unwrap();
    let mut collector = Collector::new(schedule, &wired, 10..5010, Span(1_000_000));
    collector.take(sample(10, 50_000_000));
    assert_eq!(collector.missed, 49, "no trigger could be sent meanwhile");
}

#[test]
fn an_open_wait_is_a_miss() {
    let mut collector = collect(5000, 1_000_000, &[]);
    collector.finish(Some(Censored { cycle: -3, at_least_ns: 9_300_000_000 }));
    assert_eq!(collector.episodes.first.first().map(|e| e.worst_ns), Some(9_300_000_000));
}

#[test]
fn only_the_largest_are_kept() {
    let samples: Vec<_> = (0..3000_u64).map(|i| (10 + i, i.cast_signed() % 1500)).collect();
    let mut collector = collect(5000, 1_000_000, &samples);
    let worst = collector.finish(None);
    assert_eq!(worst.len(), 150, "one in 20");
    assert_eq!((worst[0].latency_ns, worst[0].cycle, worst[149].latency_ns), (1499, 2999, 1425));
    assert_eq!(collect(5000, 1_000_000, &samples[..500]).finish(None).len(), 100);
    let many: Vec<_> = (0..30_000_u64).map(|i| (10 + i, 1)).collect();
    assert_eq!(collect(40_000, 1_000_000, &many).finish(None).len(), MAX_WORST);
}
