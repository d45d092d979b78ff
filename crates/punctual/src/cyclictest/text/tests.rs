//! Each line, with the bytes of cyclictest 2.4.

use super::*;
use expect_test::expect;
use model::{Nanos, RtPriority};

/// A thread on CPU `cpu` with these latencies in us, in a histogram of `rows` rows.
pub(in crate::cyclictest) fn shown(cpu: u32, latencies_us: &[i64], rows: u64) -> Shown {
    let mut tally = Tally::new(false, rows);
    for us in latencies_us {
        tally.take(Nanos(us * 1000 + 500));
    }
    Shown {
        tid: 7326 + cpu,
        priority: 80,
        interval_us: 1000 + 500 * u64::from(cpu),
        policy: Policy::Fifo(RtPriority::new(80).unwrap()),
        cpu: Some(cpu),
        node: Some(0),
        tally,
        missed: Some(3 * u64::from(cpu)),
        lost: 0,
        smis: None,
        overdue: None,
    }
}

#[test]
fn status_lines_have_the_columns_of_the_original() {
    let threads = [shown(0, &[2, 230, 3], 0), shown(1, &[], 0)];
    expect![[r"
        #---------------------------
        # cyclictest current status:
        T: 0 ( 7326) P:80 I:1000 C:      3 Min:      2 Act:    3 Avg:   78 Max:     230
        T: 1 ( 7327) P:80 I:1500 C:      0 Min:1000000 Act:    0 Avg:    0 Max:       0
        #---------------------------
    "]]
    .assert_eq(&snapshot(&threads, false));
    expect![[r"
        T: 0 ( 7326) P:80 I:1000 C:      3 Min:      2 Act:       3 Avg:      78 Max:     230
    "]]
    .assert_eq(&statuses(&threads[..1], true));
    expect![[r"
        policy: fifo: loadavg: 0.10 0.20 0.30 1/100 99<10 blanks>

        T: 0 ( 7326) P:80 I:1000 C:      3 Min:      2 Act:    3 Avg:   78 Max:     230
    "]]
    .assert_eq(&view(&threads[..1], "0.10 0.20 0.30 1/100 99", false).replace("          \n", "<10 blanks>\n"));
    assert_eq!(back_up(2), "\x1b[4A");
}

#[test]
fn management_interrupts_stand_at_the_end_of_a_line_and_of_the_footer() {
    let counted = Shown { smis: Some(7), ..shown(0, &[2], 1) };
    assert!(status(0, &counted, false).ends_with(" Max:       2 SMI:       7\n"));
    assert_eq!(smi_row(&[counted]), "# SMIs: 00007\n");
    assert_eq!(smi_row(&[shown(0, &[2], 1)]), "");
}

#[test]
fn a_minimum_above_a_million_and_a_negative_value_are_shown_as_they_are() {
    let text = status(0, &shown(0, &[2_000_000], 0), false);
    assert!(text.contains(" Min:2000000 Act:2000000 Avg:2000000 Max: 2000000"), "{text}");
    let text = status(0, &shown(0, &[-6], 0), false);
    assert!(text.contains(" Min:     -6 Act:   -6 Avg:   -6 Max:      -6"), "{text}");
}

#[test]
fn values_of_verbose_output() {
    assert_eq!(value(0, 1, 20), "       0:       1:      20\n");
    assert_eq!(value(11, 12_345_678, -1_234_567), "      11:12345678:-1234567\n");
}

#[test]
fn what_the_original_does_not_say_is_on_lines_of_its_own() {
    let mut threads = [shown(0, &[2, 230, 3], 0), shown(1, &[4], 0)];
    expect![[r"
        # Missed Cycles: 00000 00003
        # Policies: fifo:80 fifo:80
    "]]
    .assert_eq(&truth(&threads));
    threads[0].lost = 7;
    threads[1].overdue = Some(123_456);
    threads[1].missed = None;
    threads[1].policy = Policy::Idle;
    threads[1].tally.take(Nanos(-1));
    expect![[r"
        # Policies: fifo:80 idle
        # Lost Samples: 00007 00000
        # Early Wakeups: 00000 00001
        # Still Waiting: 00000 123456
    "]]
    .assert_eq(&truth(&threads));
}

#[test]
fn a_break_is_reported_as_the_original_does() {
    let threads = [shown(0, &[2], 0), shown(1, &[4], 0)];
    expect![[r"
        # Thread Ids: 07326 07327
        # Break thread: 7327
        # Break value: 4
    "]]
    .assert_eq(&break_lines(&threads, Some((7327, 4))));
    expect![[r"
        # Thread Ids: 07326 07327
    "]]
    .assert_eq(&break_lines(&threads, None));
    assert_eq!(dma_latency(0), "# /dev/cpu_dma_latency set to 0us\n");
}
