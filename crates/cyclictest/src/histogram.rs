//! The histogram and its footer, in both layouts.

use super::option_values::Layout;
use super::text::{ThreadReport, footer, row, smi_row, truth};
use std::fmt::Write;

/// Formats the histogram of `threads` with `rows` rows; `of_all` adds a column for all threads if there are several.
/// One blank follows the row number, then TABs separate columns: published scripts cut at these.
pub(super) fn histogram(threads: &[ThreadReport], rows: u64, of_all: bool, layout: Layout) -> String {
    let of_all = of_all && threads.len() > 1;
    let mut text = "# Histogram\n".to_owned();
    let mut totals = vec![0_u64; threads.len() + usize::from(of_all)];
    for index in 0..rows {
        let counts = threads.iter().map(|thread| thread.tally.in_row(index));
        let sum: u64 = counts.clone().sum();
        if sum == 0 && layout == Layout::V2_7 {
            continue;
        }
        let _ = write!(text, "{index:06} ");
        for (column, (count, total)) in counts.chain(of_all.then_some(sum)).zip(&mut totals).enumerate() {
            let tab = if column == 0 { "" } else { "\t" };
            let _ = write!(text, "{tab}{count:06}");
            *total += count;
        }
        text.push('\n');
    }
    let number = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
    if layout == Layout::V2_4 {
        text += &row("Total", 9, totals.into_iter().map(number));
    }
    text += &footer(threads, of_all);
    let overflows = threads.iter().map(|thread| thread.tally.overflows);
    let sum = of_all.then(|| overflows.clone().sum());
    text += &row("Histogram Overflows", 5, overflows.chain(sum).map(number));
    text += "# Histogram Overflow at cycle number:\n";
    for (index, thread) in threads.iter().enumerate() {
        let cycles = &thread.tally.overflow_cycles;
        let mut line = row(&format!("Thread {index}"), 5, cycles.iter().copied().map(number));
        let others = thread.tally.overflows.saturating_sub(cycles.len() as u64);
        if others > 0 {
            line.truncate(line.trim_end().len());
            let _ = writeln!(line, " # {others:05} others");
        }
        text += &line;
    }
    text + &smi_row(threads) + &truth(threads) + "\n"
}

#[cfg(test)]
mod tests {
    use super::super::text::tests::shown;
    use super::*;
    use expect_test::expect;

    fn threads() -> [ThreadReport; 2] {
        [shown(0, &[1, 1, 3, 9, 5, 6, 7], 4), shown(1, &[1, 4], 4)]
    }

    fn visible(threads: &[ThreadReport], rows: u64, of_all: bool, layout: Layout) -> String {
        histogram(threads, rows, of_all, layout).replace('\t', "<TAB>")
    }

    #[test]
    fn up_to_2_6_zeros_and_totals_are_printed() {
        expect![[r"
            # Histogram
            000000 000000<TAB>000000
            000001 000002<TAB>000001
            000002 000000<TAB>000000
            000003 000001<TAB>000000
            # Total: 000000003 000000001
            # Min Latencies: 00001 00001
            # Avg Latencies: 00004 00002
            # Max Latencies: 00009 00004
            # Histogram Overflows: 00004 00001
            # Histogram Overflow at cycle number:
            # Thread 0: 00003 00004 00005 00006
            # Thread 1: 00001
            # Missed Cycles: 00000 00003
            # Policies: fifo:80 fifo:80

        "]]
        .assert_eq(&visible(&threads(), 4, false, Layout::V2_4));
    }

    #[test]
    fn from_2_7_on_they_are_not() {
        expect![[r"
            # Histogram
            000001 000002<TAB>000001<TAB>000003
            000003 000001<TAB>000000<TAB>000001
            # Min Latencies: 00001 00001
            # Avg Latencies: 00004 00002
            # Max Latencies: 00009 00004 00009
            # Histogram Overflows: 00004 00001 00005
            # Histogram Overflow at cycle number:
            # Thread 0: 00003 00004 00005 00006
            # Thread 1: 00001
            # Missed Cycles: 00000 00003
            # Policies: fifo:80 fifo:80

        "]]
        .assert_eq(&visible(&threads(), 4, true, Layout::V2_7));
    }

    #[test]
    fn one_thread_has_no_sum_and_more_overflows_than_rows_are_counted() {
        expect![[r"
            # Histogram
            000000 000000
            # Total: 000000000
            # Min Latencies: 00001
            # Avg Latencies: 00002
            # Max Latencies: 00003
            # Histogram Overflows: 00003
            # Histogram Overflow at cycle number:
            # Thread 0: 00000 # 00002 others
            # Missed Cycles: 00000
            # Policies: fifo:80

        "]]
        .assert_eq(&histogram(&[shown(0, &[1, 2, 3], 1)], 1, true, Layout::V2_4));
    }

    #[test]
    fn the_column_of_all_threads_sums_up_in_the_totals_too() {
        let text = histogram(&threads(), 4, true, Layout::V2_4);
        assert!(text.contains("\n# Total: 000000003 000000001 000000004\n"), "{text}");
    }
}
