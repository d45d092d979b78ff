//! Heat strip: the largest latency of every second, one row for each CPU, the blocks from left to right.

use super::markup::Markup;
use super::matrix::Heat;
use crate::words::Counted;
use punctual_analysis::Strip;
use punctual_model::Order;
use std::cmp::Reverse;
use std::fmt::Write;

/// The most boxes of one strip; more seconds share one. A strip shows patterns, for which 800 boxes are enough.
const BOXES: usize = 800;

/// The most rows of one strip: the CPUs with the largest maxima.
const ROWS: usize = 16;

/// Plane of a strip and height of a row, in the units of its picture.
const WIDTH: usize = 1420;
const LEFT: usize = 240;
const ROW: usize = 64;

/// A strip ready to draw.
struct Drawn {
    /// CPU, and the largest latency of each box, ns.
    rows: Vec<(u32, Vec<Option<i64>>)>,
    /// Seconds in a box.
    seconds: usize,
    columns: usize,
    /// CPUs that are not drawn.
    left_out: usize,
}

fn fitted(strip: &Strip) -> Option<Drawn> {
    let max = |row: &[Option<i64>]| row.iter().flatten().max().copied();
    let mut cpus: Vec<_> = strip.by_cpu.iter().filter(|(_, row)| max(row).is_some()).collect();
    cpus.order_by_key(|(_, row)| Reverse(max(row)));
    let left_out = cpus.len().saturating_sub(ROWS);
    cpus.truncate(ROWS);
    cpus.order_by_key(|(cpu, _)| **cpu);
    let seconds = (strip.seconds * cpus.len()).div_ceil(BOXES).max(1);
    let rows: Vec<_> =
        cpus.into_iter().map(|(cpu, row)| (*cpu, row.chunks(seconds).map(max).collect::<Vec<_>>())).collect();
    let columns = rows.first().map(|(_, row)| row.len())?;
    Some(Drawn { rows, seconds, columns, left_out })
}

/// Draws the strip of a cell; nothing where the record has no seconds.
pub(super) fn write(page: &mut Markup, strip: &Strip, heat: Heat, counted: Counted) {
    let Some(drawn) = fitted(strip) else { return };
    let Drawn { rows, seconds, columns, left_out } = &drawn;
    let height = rows.len() * ROW;
    let of = match seconds {
        1 => "each second".to_owned(),
        n => format!("each {n} seconds"),
    };
    page.add(format_args!(
        "<figure class=strip><figcaption>Maximum of {of}</figcaption><svg class=heat viewBox=\"0 0 1760 {}\" role=img \
         tabindex=0 data-seconds={seconds} data-columns={columns} data-empty=\"no {}\" aria-label=\"Largest {} of {of} on each CPU\"><g transform=\"translate({LEFT})\">\
         <svg width={WIDTH} height={height} viewBox=\"0 0 {columns} {height}\" preserveAspectRatio=none>",
        height + 60,
        counted.one(),
        counted.latency()
    ));
    for step in 0..8 {
        let data = boxes(rows, heat, step);
        if !data.is_empty() {
            page.add(format_args!("<path class=t{step} d=\"{data}\"/>"));
        }
    }
    page.raw("</svg>");
    // Between two blocks the machine measured other cells.
    let mut between = String::new();
    for (_, second) in strip.blocks.iter().skip(1) {
        let _ = write!(between, "M{},0v{height}", second / seconds * WIDTH / columns);
    }
    if !between.is_empty() && strip.blocks.len() <= 100 {
        page.add(format_args!("<path class=block d={between} />"));
    }
    page.raw("</g><g class=ty>");
    for (index, (cpu, row)) in rows.iter().enumerate() {
        let values: Vec<_> = row.iter().map(|ns| ns.map(tenths).unwrap_or_default()).collect();
        page.add(format_args!(
            "<text x={} y={} data-us={}>CPU {cpu}</text>",
            LEFT - 16,
            index * ROW + 48,
            quoted(&values.join(","))
        ));
    }
    page.add(format_args!("</g><g class=tx><text class=first x={LEFT} y={}>0 s</text>", height + 52));
    page.add(format_args!("<text class=last x={} y={}>{} s</text>", LEFT + WIDTH, height + 52, strip.seconds));
    page.raw("</g></svg>");
    if strip.blocks.len() > 1 {
        page.raw("<p class=note>Lines separate the blocks.</p>");
    }
    if *left_out > 0 {
        page.add(format_args!("<p class=note>{left_out} CPUs with smaller maxima are left out.</p>"));
    }
    page.raw("</figure>\n");
}

/// Returns all boxes of one color as one path; neighbours are one box.
fn boxes(rows: &[(u32, Vec<Option<i64>>)], heat: Heat, step: i64) -> String {
    let mut data = String::new();
    for (index, (_, row)) in rows.iter().enumerate() {
        let is_step = |ns: &Option<i64>| ns.is_some_and(|ns| heat.of(ns) == step);
        let mut column = 0;
        for run in row.chunk_by(|a, b| is_step(a) == is_step(b)) {
            if run.first().is_some_and(is_step) {
                let _ = write!(data, "M{column} {}h{}v{}h-{}z", index * ROW + 4, run.len(), ROW - 8, run.len());
            }
            column += run.len();
        }
    }
    data
}

/// Returns a latency in tenths of a microsecond to base 36, for the script. Negative ones are 0.
fn tenths(ns: i64) -> String {
    let mut left = u64::try_from(ns).unwrap_or(0) / 100;
    let mut digits = Vec::new();
    loop {
        digits.push(u32::try_from(left % 36).ok().and_then(|digit| char::from_digit(digit, 36)).unwrap_or('0'));
        left /= 36;
        if left == 0 {
            return digits.iter().rev().collect();
        }
    }
}

/// Returns a quoted value of an attribute: an empty one needs its quotes.
fn quoted(value: &str) -> String {
    format!("\"{value}\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_short() {
        for (ns, text) in
            [(-5, "0"), (0, "0"), (99, "0"), (100, "1"), (3_600, "10"), (41_300, "bh"), (1_000_000_000, "5yc1s")]
        {
            assert_eq!(tenths(ns), text, "{ns}");
        }
        assert_eq!(u64::from_str_radix("5yc1s", 36), Ok(10_000_000));
    }

    #[test]
    fn long_strips_are_folded_and_never_lose_a_maximum() {
        let mut strip = Strip { seconds: 10_000, blocks: vec![(0, 0)], ..Strip::default() };
        for cpu in 0..20 {
            let mut row = vec![Some(5_000); 10_000];
            row[777] = Some(1_000_000 + i64::from(cpu));
            strip.by_cpu.insert(cpu, row);
        }
        let drawn = fitted(&strip).unwrap();
        assert_eq!((drawn.rows.len(), drawn.left_out, drawn.rows[0].0), (16, 4, 4));
        assert!(drawn.columns * drawn.rows.len() <= BOXES);
        assert_eq!(drawn.rows[15].1.iter().flatten().max(), Some(&1_000_019));
        assert!(fitted(&Strip::default()).is_none());
    }
}
