//! Ready plans as a table, and a run before it begins.

use super::Style;
use super::json::{DryRun, ReadyPlan, ReadyPlans};
use super::lines::{Lines, shortened};
use super::list::size;
use super::table::{Column, Field, Table, UNKNOWN};
use punctual_analysis::wording::{count, duration, things};
use punctual_model::Cell;
use std::io;

/// Width of a title, however narrow the terminal is.
const SHORTEST_TITLE: usize = 20;
/// Blocks whose order is shown.
const SHOWN_BLOCKS: usize = 3;

/// Writes the plans of the binary, one line each. Errors: if `out` cannot be written.
pub fn ready_plans(plans: &ReadyPlans, out: &mut dyn io::Write, style: Style) -> io::Result<()> {
    let lines = Lines::new(style);
    let fields: [Field<ReadyPlan>; 4] = [
        (Column::text("name").after(0), |plan| plan.name.to_owned()),
        (Column::figure("cells"), |plan| known(plan, count(number(plan.cells)))),
        (Column::figure("about"), |plan| known(plan, duration(plan.expected_ns as f64))),
        (Column::text("title"), |_| String::new()),
    ];
    let mut table = Table::of(&fields, &plans.plans);
    let room = lines.width.saturating_sub(table.width() - "title".len()).max(SHORTEST_TITLE);
    for (row, plan) in table.rows.iter_mut().zip(&plans.plans) {
        row.last_mut().into_iter().for_each(|title| *title = shortened(&plan.title, room));
    }
    table.write(out, &lines)?;
    if plans.plans.iter().any(|plan| plan.cells == 0) {
        lines.paragraph(out, "", "-: this machine lacks what it needs; punctual run NAME --dry-run says what.")?;
    }
    let next = "punctual run NAME measures one, with --dry-run it shows the cells; punctual plan show NAME > my.toml is a \
                start for your own.";
    lines.paragraph(out, "", next)
}

/// `value`, unless nothing of the plan can be measured here.
fn known(plan: &ReadyPlan, value: String) -> String {
    if plan.cells == 0 { UNKNOWN.to_owned() } else { value }
}

/// Writes a run before it begins: cells, order, time, disk space, limits, settings, programs. Errors: if `out` cannot
/// be written.
pub fn dry_run(run: &DryRun<'_>, out: &mut dyn io::Write, style: Style) -> io::Result<()> {
    let lines = Lines::new(style);
    let most = if run.can_end_early { "at most " } else { "" };
    lines.paragraph(out, "", &format!("{}: nothing is measured (--dry-run)", run.title))?;
    let all = format!(
        "{} x {most}{} = {most}{}, about {}, {} on disk",
        things(number(run.cells.len()), "cell"),
        things(u64::from(run.blocks), "block"),
        things(number(run.measurements), "measurement"),
        duration(run.expected_ns as f64),
        size(run.disk_bytes)
    );
    lines.paragraph(out, "", &all)?;
    if !run.cells.is_empty() {
        writeln!(out)?;
        cells(run).fitted(lines.width).write(out, &lines)?;
    }
    for skipped in &run.skipped {
        lines.paragraph(out, "", &skipped.to_string())?;
    }
    writeln!(out)?;
    lines.paragraph(out, "", &order(run))?;
    let limits = run.require.limits().map(|(key, limit)| format!("{key} {}", duration(limit.ns() as f64)));
    let rate = run.require.misses_per_hour.map(|rate| format!("misses per hour {rate}"));
    let waiting = run.require.waiting_percent.map(|percent| format!("waiting {percent} %"));
    list(out, &lines, "limits", &limits.chain(rate).chain(waiting).collect::<Vec<_>>())?;
    run.cannot_pass.iter().try_for_each(|limit| lines.paragraph(out, "  ", &limit.to_string()))?;
    list(out, &lines, "settings", &run.settings)?;
    list(out, &lines, "programs", &run.programs)
}

/// A row for each cell, numbered as in the order.
fn cells(run: &DryRun<'_>) -> Table {
    let columns = vec![
        Column::figure("no.").after(0),
        Column::text("cell"),
        Column::figure("every"),
        Column::figure("for"),
        Column::text("CPUs"),
    ];
    let row = |(index, planned): (usize, &super::json::PlannedCell<'_>)| {
        let Cell { period, duration: measured, cpus, .. } = planned.cell;
        vec![
            (index + 1).to_string(),
            planned.name.clone(),
            duration(period.ns() as f64),
            duration(measured.ns() as f64),
            cpus.to_string(),
        ]
    };
    Table::new(columns, run.cells.iter().enumerate().map(row).collect())
}

/// The order of the first blocks, if it is known before the run.
fn order(run: &DryRun<'_>) -> String {
    let (Some(order), Some(seed)) = (&run.order, run.seed) else {
        return "order: random in each block; the seed is drawn at the start and recorded (--seed fixes it)".to_owned();
    };
    let of_block = |(index, block): (usize, &Vec<usize>)| {
        let cells: Vec<_> = block.iter().map(|cell| (cell + 1).to_string()).collect();
        format!("block {}: {}", index + 1, cells.join(" "))
    };
    let blocks: Vec<_> = order.iter().take(SHOWN_BLOCKS).enumerate().map(of_block).collect();
    let more = if order.len() > SHOWN_BLOCKS { "; ..." } else { "" };
    format!("order: random in each block, seed {seed}; {}{more}", blocks.join("; "))
}

/// A labeled list; `none` if it is empty.
fn list(out: &mut dyn io::Write, lines: &Lines, label: &str, items: &[String]) -> io::Result<()> {
    let items = if items.is_empty() { "none".to_owned() } else { items.join("; ") };
    lines.paragraph(out, "", &format!("{label}: {items}"))
}

fn number(n: usize) -> u64 {
    u64::try_from(n).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::super::json::PlannedCell;
    use super::*;
    use expect_test::expect;
    use punctual_analysis::CannotPass;
    use punctual_analysis::findings::Skipped;
    use punctual_analysis::testing::RunBuilder;
    use punctual_model::Requirement;

    fn written(write: impl Fn(&mut Vec<u8>) -> io::Result<()>) -> String {
        let mut out = Vec::new();
        write(&mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn plans_are_listed_with_their_size_and_needs() {
        let plan = |name, cells, blocks, needs: &[&str]| ReadyPlan {
            name,
            title: format!("The plan {name}"),
            cells,
            blocks,
            measurements: cells * usize::try_from(blocks).unwrap(),
            expected_ns: 86_400_000_000,
            needs: needs.iter().map(|need| (*need).to_owned()).collect(),
        };
        let plans = ReadyPlans { plans: vec![plan("a", 8, 6, &[]), plan("b", 1, 1, &["root", "QEMU"])] };
        expect![[r#"
            name  cells   about  title
            a         8  86.4 s  The plan a
            b         1  86.4 s  The plan b
            punctual run NAME measures one, with --dry-run it shows the cells; punctual plan
              show NAME > my.toml is a start for your own.
        "#]]
        .assert_eq(&written(|out| ready_plans(&plans, out, Style::plain(80))));
    }

    #[test]
    fn a_dry_run_shows_everything_that_a_run_would_do() {
        let mut builder = RunBuilder::new();
        builder.cell("none", "other").cell("messaging", "fifo:80");
        let names = ["none/other", "messaging/fifo:80"];
        let cells = &builder.header.cells;
        let planned = || names.iter().zip(cells).map(|(name, cell)| PlannedCell { name: (*name).to_owned(), cell });
        let (mut require, none) = (Requirement::default(), Requirement::default());
        require.set_all("max=1ms,p999=200us,misses_per_hour=1").unwrap();
        let run = DryRun {
            title: "How late?",
            cells: planned().collect(),
            skipped: Vec::new(),
            blocks: 4,
            measurements: 8,
            can_end_early: false,
            seed: Some(7),
            order: Some(vec![vec![0, 1], vec![1, 0], vec![1, 0], vec![0, 1]]),
            expected_ns: 22_400_000_000,
            disk_bytes: 123_000,
            require: &require,
            cannot_pass: CannotPass::all(&require, names.into_iter().zip(cells), 4),
            settings: vec!["governor=performance".to_owned()],
            programs: vec!["cmd:make -j4".to_owned(), "write files in /mnt".to_owned()],
        };
        expect![[r#"
            How late?: nothing is measured (--dry-run)
            2 cells x 4 blocks = 8 measurements, about 22.4 s, 123 kB on disk

            no.  cell               every  for  CPUs
              1  none/other          1 ms  2 s  0-1
              2  messaging/fifo:80   1 ms  2 s  0-1

            order: random in each block, seed 7; block 1: 1 2; block 2: 2 1; block 3: 2 1;
              ...
            limits: max 1 ms; p99.9 200 us; misses per hour 1
              misses_per_hour=1 cannot pass: messaging/fifo:80 takes 1 348 times as long at
                least (--duration, --repetitions)
            settings: governor=performance
            programs: cmd:make -j4; write files in /mnt
        "#]]
        .assert_eq(&written(|out| dry_run(&run, out, Style::plain(80))));
        let few = DryRun {
            cells: planned().take(1).collect(),
            skipped: vec![Skipped { cells: vec!["messaging/fifo:80".to_owned()], reason: "needs root".to_owned() }],
            blocks: 1,
            measurements: 1,
            can_end_early: true,
            seed: None,
            order: None,
            require: &none,
            cannot_pass: Vec::new(),
            settings: Vec::new(),
            programs: Vec::new(),
            ..run
        };
        expect![[r#"
            How late?: nothing is measured (--dry-run)
            1 cell x at most 1 block = at most 1 measurement, about 22.4 s, 123 kB on disk

            no.  cell        every  for  CPUs
              1  none/other   1 ms  2 s  0-1
            skipped cells: messaging/fifo:80: needs root

            order: random in each block; the seed is drawn at the start and recorded (--seed
              fixes it)
            limits: none
            settings: none
            programs: none
        "#]]
        .assert_eq(&written(|out| dry_run(&few, out, Style::plain(80))));
    }
}
