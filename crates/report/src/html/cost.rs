//! Cost of operations as a table, and the picture of the throughput cost: worst latency against throughput.

use super::markup::{Markup, Text};
use super::published::fields;
use super::scale::{BOTTOM, LEFT, Log, RIGHT, TOP, time_label};
use super::table::{section, table};
use super::{Results, runs};
use crate::published;
use crate::sections::cost;
use punctual_analysis::CellSummary;
use punctual_analysis::cost::{TradeOff, trade_offs};
use punctual_analysis::wording::duration;

pub(super) fn write(page: &mut Markup, runs: &[Results<'_>]) {
    for (index, run) in runs::own(runs) {
        let letter = super::letter(runs, index);
        for (id, costs) in [("meanwhile", cost::of_loads(run.summary)), ("bykernel", cost::by_kernel(run.summary))] {
            costs.iter().for_each(|costs| section(page, costs, &format!("{id}{index}"), letter, |_| ()));
        }
        let Some(costs) = cost::of(run.summary, true) else { continue };
        section(page, &costs, &format!("costs{index}"), letter, |page| {
            if let Some(study) = run.header.plan.study {
                theirs(page, &published::throughput(study));
            }
        });
    }
    trade_off(page, runs);
}

/// Writes the published numbers of a study.
fn theirs(page: &mut Markup, rows: &[published::Row]) {
    if rows.is_empty() {
        return;
    }
    page.raw("<h3>Published: LMbench, seconds for one run of it</h3>\n");
    let heads = ["kernel", "load", "seconds", "against", "change"];
    table(page, "Published throughput", "beside", heads, |page| {
        for row in rows {
            let text = |column| row.get(column).unwrap_or("-").to_owned();
            let stand_in = row.get("our_load").filter(|ours| *ours != row.text("load"));
            let load = stand_in.map(|ours| format!("{} (here: {ours})", row.text("load")));
            let change = row.get("change_percent").map_or_else(|| "-".to_owned(), |percent| format!("{percent} %"));
            let load = load.unwrap_or_else(|| text("load"));
            fields(page, "", &[text("kernel"), load, text("lmbench_seconds"), text("baseline"), change]);
        }
    });
    page.raw(
        "<p class=quiet>The suite, the machine and the year differ: the direction of a change can be compared, not its size.</p>\n",
    );
}

/// Width and height of the picture, in quarters of a pixel at its natural size.
const WIDTH: f64 = 1700.0;
const HEIGHT: f64 = 1020.0;
/// The most points of one picture.
const POINTS: usize = 60;
/// Size of the number of a point.
const WIDE: f64 = 44.0;
const HIGH: f64 = 30.0;

fn trade_off(page: &mut Markup, runs: &[Results<'_>]) {
    let mut cells: Vec<(String, &CellSummary)> = Vec::new();
    for (index, run) in runs::own(runs) {
        cells.extend(run.summary.cells.iter().map(|cell| (super::lettered(runs, index, &cell.name), cell)));
    }
    let points: Vec<TradeOff> = trade_offs(&cells).into_iter().filter(|point| point.worst_ns > 0).collect();
    // Times of different clocks have no axis in common.
    let mut clocks: Vec<_> = points.iter().map(|point| point.clock).collect();
    clocks.sort_unstable();
    clocks.dedup();
    for (index, clock) in clocks.into_iter().enumerate() {
        let of_clock: Vec<_> = points.iter().filter(|point| point.clock == clock).take(POINTS).collect();
        picture(page, &format!("throughput{index}"), &of_clock);
    }
}

fn picture(page: &mut Markup, id: &str, points: &[&TradeOff]) {
    let worst = points.iter().map(|point| point.worst_ns as f64);
    let (Some(low), Some(high)) = (worst.clone().reduce(f64::min), worst.reduce(f64::max)) else { return };
    let axis = Log::around(low, high);
    let share = points.iter().map(|point| point.throughput_percent);
    let (from, to) = share.fold((100.0_f64, 100.0_f64), |(from, to), percent| (from.min(percent), to.max(percent)));
    // Whole steps of 5 %, one of them free on each side.
    let (from, to) = ((from / 5.0).floor() * 5.0 - 5.0, (to / 5.0).ceil() * 5.0 + 5.0);
    let x = |percent: f64| LEFT + (percent - from) / (to - from) * (RIGHT - LEFT);
    let is_virtual = points.iter().any(|point| point.clock == Some(punctual_model::LabClock::Virtual));
    let unit = if is_virtual { "virtual time: 1000 instructions are 1 us" } else { "higher is later" };
    page.section(id, "later", "Throughput cost", None);
    page.add(format_args!(
        "<p>A point is a configuration: its worst latency ({unit}), and the work of ordinary programs relative to the first \
         kernel under the same load (geometric mean of all operations). The lower right is best.</p>\n\
         <figure><figcaption>Worst latency against throughput</figcaption><svg class=tradeoff viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=img aria-label=\"Worst latency against \
         relative throughput\">\n<g>"
    ));
    for value in axis.labelled() {
        page.add(format_args!("<path class=grid d=\"M{LEFT} {:.0}H{RIGHT}\"/>", axis.y(value)));
    }
    let step = if to - from > 60.0 { 20.0 } else { 5.0 };
    let ticks: Vec<f64> = std::iter::successors(Some((from / step).ceil() * step), |tick| Some(tick + step))
        .take_while(|tick| *tick <= to + 1e-9)
        .collect();
    ticks.iter().for_each(|tick| page.add(format_args!("<path class=grid d=\"M{:.0} {BOTTOM}V{TOP}\"/>", x(*tick))));
    page.raw("</g><g class=ty>");
    for value in axis.labelled() {
        page.add(format_args!("<text x={:.0} y={:.0}>{}</text>", LEFT - 16.0, axis.y(value) + 12.0, time_label(value)));
    }
    page.raw("</g><g class=tx>");
    for tick in &ticks {
        page.add(format_args!("<text x={:.0} y={:.0}>{tick:.0} %</text>", x(*tick), BOTTOM + 48.0));
    }
    page.add(format_args!(
        "</g><text class=side x={LEFT:.0} y=52>worst latency</text><text text-anchor=end x={RIGHT:.0} y={:.0}>relative \
         throughput</text>\n",
        BOTTOM + 96.0
    ));
    let mut written: Vec<(f64, f64)> = Vec::new();
    for (number, point) in (1..).zip(points) {
        let (px, py) = (x(point.throughput_percent), axis.y(point.worst_ns as f64));
        let more = if point.at_least { "more than " } else { "" };
        let words =
            format!("{}: {more}{}, {:.1} %", point.name, duration(point.worst_ns as f64), point.throughput_percent);
        page.add(format_args!("<circle cx={px:.0} cy={py:.0} r=12><title>{}</title></circle>", Text(&words)));
        // A number that would lie on another moves to its right.
        let mut at = px + 20.0;
        while written.iter().any(|(left, y)| (left - at).abs() < WIDE && (y - py).abs() < HIGH) {
            at += WIDE;
        }
        written.push((at, py));
        page.add(format_args!("<text class=name x={at:.0} y={:.0}>{number}</text>", py - 12.0));
    }
    page.raw("</svg></figure>\n");
    let heads = ["point", "configuration", "worst latency", "throughput"];
    table(page, "The same as a table", "", heads, |page| {
        for (number, point) in (1..).zip(points) {
            let more = if point.at_least { "> " } else { "" };
            page.add(format_args!(
                "<tr><td>{number}<th scope=row>{}<td>{}<td>{:.1} %\n",
                Text(&point.name),
                Text(format!("{more}{}", duration(point.worst_ns as f64))),
                point.throughput_percent
            ));
        }
    });
    page.raw("</section>\n");
}
