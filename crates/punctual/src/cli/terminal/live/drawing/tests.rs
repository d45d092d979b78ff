//! Golden views at several sizes.

use super::*;
use expect_test::{Expect, expect};

const WIDE: Room = Room { width: 79, height: 39, unicode: true };

fn thread(cpu: u32, bins: &[(u64, u64)]) -> ThreadProgress {
    ThreadProgress {
        thread: Measured::Cpu(cpu),
        n: bins.iter().map(|(_, count)| count).sum(),
        min_ns: Some(2_140),
        last_ns: Some(5_000),
        mean_ns: Some(5_233),
        p99_ns: Some(8_704),
        max_ns: bins.last().and_then(|(lower, _)| i64::try_from(lower + 26_000).ok()),
        missed: 0,
        bins: bins.iter().map(|&(lower_ns, count)| Bin { lower_ns, count }).collect(),
        spikes: Vec::new(),
    }
}

fn spike(at_ms: u64, latency_ns: i64) -> Spike {
    Spike { at: Span(at_ms * 1_000_000), latency_ns, above_ns: 17_400 }
}

/// Two CPUs after 7 of 10 s.
fn progress() -> Progress {
    let mut threads = vec![
        thread(0, &[(2_000, 3_000), (5_000, 3_996), (20_000, 3)]),
        thread(1, &[(1_000, 12), (2_000, 6_000), (5_000, 980), (10_000, 6), (100_000, 1)]),
    ];
    threads[1].missed = 1_204;
    threads[0].spikes = vec![spike(1_003, 21_000), spike(3_412, 26_000), spike(6_999, 40_000)];
    threads[1].spikes = vec![spike(2_000, 18_000), spike(3_412, 126_000), spike(5_001, 19_500)];
    Progress { elapsed: Span(7_000_900_000), threads, loads: Vec::new() }
}

fn check(progress: &Progress, room: Room, expected: &Expect) {
    let view = View { duration: Span(10_000_000_000), limit: None, has_due_times: true };
    let lines = lines(progress, view, room);
    assert!(lines.len() <= room.height && lines.iter().all(|line| line.chars().count() <= room.width), "{lines:#?}");
    // The bar keeps the indentation, which `expect!` would strip.
    let drawn: String = lines.iter().map(|line| format!("|{line}\n")).collect();
    expected.assert_eq(&drawn);
}

#[test]
fn at_80_columns_everything_is_there() {
    check(
        &progress(),
        WIDE,
        &expect![[r#"
            |       3 s left
            |    7/10 s   wake-ups      min     last     mean      p99      max   missed
            |     CPU 0      6 999  2.14 us     5 us  5.23 us   8.7 us    46 us        0
            |     CPU 1      6 999  2.14 us     5 us  5.23 us   8.7 us   126 us    1 204
            |
            |      from   wake-ups  both on a log scale
            |      1 us         12  ████████████████
            |      2 us      9 000  ████████████████████████████████████████████████████████
            |      5 us      4 976  ████████████████████████████████████████████████████
            |     10 us          6  ████████████
            |     20 us          3  █████████
            |     50 us
            |    100 us          1  ████
            |
            |      when  last spikes, later than 2 x p99 of their CPU
            |   2.000 s  CPU 1       18 us   above 17.4 us
            |   3.412 s  CPU 0       26 us   above 17.4 us
            |   3.412 s  CPU 1      126 us   above 17.4 us
            |   5.001 s  CPU 1     19.5 us   above 17.4 us
            |   6.999 s  CPU 0       40 us   above 17.4 us
        "#]],
    );
}

#[test]
fn at_60_columns_the_mean_gives_way_and_a_plain_terminal_gets_ascii() {
    check(
        &progress(),
        Room { width: 59, height: 39, unicode: false },
        &expect![[r#"
            |       3 s left
            |    7/10 s   wake-ups     last      p99      max   missed
            |     CPU 0      6 999     5 us   8.7 us    46 us        0
            |     CPU 1      6 999     5 us   8.7 us   126 us    1 204
            |
            |      from   wake-ups  both on a log scale
            |      1 us         12  ##########
            |      2 us      9 000  ####################################
            |      5 us      4 976  ##################################
            |     10 us          6  ########
            |     20 us          3  #####
            |     50 us
            |    100 us          1  ###
            |
            |      when  last spikes, later than 2 x p99 of their CPU
            |   2.000 s  CPU 1       18 us   above 17.4 us
            |   3.412 s  CPU 0       26 us   above 17.4 us
            |   3.412 s  CPU 1      126 us   above 17.4 us
            |   5.001 s  CPU 1     19.5 us   above 17.4 us
            |   6.999 s  CPU 0       40 us   above 17.4 us
        "#]],
    );
}

#[test]
fn at_40_columns_only_what_matters_is_left() {
    check(
        &progress(),
        Room { width: 39, height: 39, unicode: false },
        &expect![[r#"
            |       3 s left
            |    7/10 s   wake-ups      max   missed
            |     CPU 0      6 999    46 us        0
            |     CPU 1      6 999   126 us    1 204
            |
            |      from   wake-ups
            |      1 us         12  #####
            |      2 us      9 000  ################
            |      5 us      4 976  ###############
            |     10 us          6  ###
            |     20 us          3  ##
            |     50 us
            |    100 us          1  #
            |
            |      when  last spikes
            |   2.000 s  CPU 1       18 us
            |   3.412 s  CPU 0       26 us
            |   3.412 s  CPU 1      126 us
            |   5.001 s  CPU 1     19.5 us
            |   6.999 s  CPU 0       40 us
        "#]],
    );
}

#[test]
fn the_first_line_has_the_time_left_and_the_limit() {
    let line = |limit: Option<u64>, elapsed_ns| {
        let view = View { duration: Span(10_000_000_000), limit: limit.map(Span), has_due_times: true };
        let progress = Progress { elapsed: Span(elapsed_ns), ..progress() };
        lines(&progress, view, WIDE).remove(0)
    };
    assert_eq!(line(None, 7_000_900_000), "       3 s left");
    assert_eq!(line(None, 10_000_000_001), "       0 s left");
    assert_eq!(line(Some(126_000), 0), "      10 s left, limit 126 us met so far");
    assert_eq!(line(Some(125_999), 0), "      10 s left, limit 125 999 ns EXCEEDED: 126 000 ns on CPU 1");
}

#[test]
fn the_first_line_has_the_rate_of_each_load_that_counts() {
    let load = |load: &str, operation: &str, per_second| LoadProgress {
        load: load.to_owned(),
        operation: operation.to_owned(),
        per_second,
    };
    let loads =
        vec![load("messaging", "message", Some(248_012)), load("make", "run", None), load("disk", "write", Some(1))];
    let view = View { duration: Span(10_000_000_000), limit: None, has_due_times: true };
    let first = lines(&Progress { loads, ..progress() }, view, WIDE).remove(0);
    assert_eq!(first, "       3 s left, messaging 248 012 messages/s, disk 1 write/s");
}

#[test]
fn what_has_no_room_is_left_out() {
    check(
        &progress(),
        Room { height: 16, ..WIDE },
        &expect![[r#"
            |       3 s left
            |    7/10 s   wake-ups      min     last     mean      p99      max   missed
            |     CPU 0      6 999  2.14 us     5 us  5.23 us   8.7 us    46 us        0
            |     CPU 1      6 999  2.14 us     5 us  5.23 us   8.7 us   126 us    1 204
            |
            |      from   wake-ups  both on a log scale
            |      1 us         12  ████████████████
            |      2 us      9 000  ████████████████████████████████████████████████████████
            |      5 us      4 976  ████████████████████████████████████████████████████
            |     10 us          6  ████████████
            |     20 us          3  █████████
            |     50 us
            |    100 us          1  ████
        "#]],
    );
    check(
        &progress(),
        Room { height: 8, ..WIDE },
        &expect![[r#"
            |       3 s left
            |    7/10 s   wake-ups      min     last     mean      p99      max   missed
            |     CPU 0      6 999  2.14 us     5 us  5.23 us   8.7 us    46 us        0
            |     CPU 1      6 999  2.14 us     5 us  5.23 us   8.7 us   126 us    1 204
        "#]],
    );
    check(
        &progress(),
        Room { height: 1, ..WIDE },
        &expect![[r#"
            |       3 s left
        "#]],
    );
}

#[test]
fn of_many_cpus_the_latest_are_shown() {
    let threads = (0..16).map(|cpu| thread(cpu, &[(2_000, 9), (1_000 * u64::from(cpu * 7 % 16), 1)])).collect();
    check(
        &Progress { elapsed: Span(0), threads, loads: Vec::new() },
        Room { height: 6, ..WIDE },
        &expect![[r#"
            |      10 s left
            |    0/10 s   wake-ups      min     last     mean      p99      max   missed
            |     CPU 2         10  2.14 us     5 us  5.23 us   8.7 us    40 us        0
            |     CPU 9         10  2.14 us     5 us  5.23 us   8.7 us    41 us        0
            |    CPU 11         10  2.14 us     5 us  5.23 us   8.7 us    39 us        0
            |        13 other CPUs, max 38 us
        "#]],
    );
}

#[test]
fn before_the_first_sample_nothing_is_made_up() {
    let none = ThreadProgress { min_ns: None, last_ns: None, mean_ns: None, p99_ns: None, ..thread(0, &[]) };
    let threads = vec![none];
    check(
        &Progress { elapsed: Span(0), threads, loads: Vec::new() },
        WIDE,
        &expect![[r#"
            |      10 s left
            |    0/10 s   wake-ups      min     last     mean      p99      max   missed
            |     CPU 0          0        -        -        -        -        -        0
        "#]],
    );
}

#[test]
fn many_bins_keep_the_tail() {
    let bins: Vec<_> =
        std::iter::successors(Some(0), |lower| Some(Bin::after(*lower))).take(20).map(|lower| (lower, 1)).collect();
    check(
        &Progress { elapsed: Span(1), threads: vec![thread(0, &bins)], loads: Vec::new() },
        WIDE,
        &expect![[r#"
            |      10 s left
            |    0/10 s   wake-ups      min     last     mean      p99      max   missed
            |     CPU 0         20  2.14 us     5 us  5.23 us   8.7 us      1 s        0
            |
            |      from   wake-ups  both on a log scale
            |      0 us          8  ████████████████████████████████████████████████████████
            |    200 us          1  ██████████████████
            |    500 us          1  ██████████████████
            |      1 ms          1  ██████████████████
            |      2 ms          1  ██████████████████
            |      5 ms          1  ██████████████████
            |     10 ms          1  ██████████████████
            |     20 ms          1  ██████████████████
            |     50 ms          1  ██████████████████
            |    100 ms          1  ██████████████████
            |    200 ms          1  ██████████████████
            |    500 ms          1  ██████████████████
            |       1 s          1  ██████████████████
            |
            |            no spike so far, later than 2 x p99 of its CPU
        "#]],
    );
}

#[test]
fn a_bar_is_as_long_as_the_logarithm_of_its_count() {
    for (n, most, length) in [(0, 0, 0), (0, 9, 0), (1, 1, 10), (1, u64::MAX, 1), (9, 99, 5), (99, 99, 10)] {
        assert_eq!(bar(n, most, 10, false).len(), length, "{n} of {most}");
    }
    assert_eq!(bar(9, 9, 0, false), "");
}

#[test]
fn watched_threads_are_named_and_not_by_a_cpu() {
    let mut progress = progress();
    progress.threads.iter_mut().zip([("controller", 4711), ("log\u{1b}[2J", 12)]).for_each(|(one, (name, tid))| {
        one.thread = Measured::Thread { name: name.to_owned(), tid };
        one.spikes.clear();
    });
    check(
        &progress,
        Room { height: 4, ..WIDE },
        &expect![[r#"
            |       3 s left
            |         7/10 s   wake-ups      min     last      p99      max     late
            |controller 4711      6 999  2.14 us     5 us   8.7 us    46 us        0
            |     log�[2J 12      6 999  2.14 us     5 us   8.7 us   126 us    1 204
        "#]],
    );
    check(
        &progress,
        Room { height: 3, width: 50, unicode: true },
        &expect![[r#"
            |       3 s left
            |         7/10 s   wake-ups      max     late
            |              2 other threads, max 126 us
        "#]],
    );
    let view = View { duration: Span(10_000_000_000), limit: Some(Span(100_000)), has_due_times: true };
    let status = &lines(&progress, view, WIDE)[0];
    assert!(status.contains("EXCEEDED: 126 us of log"), "{status}");
}
