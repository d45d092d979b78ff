//! A store of fifty machines and a year: the time of an addition and of histories.

use super::Setup;
use super::engine::{Promise, Scratch, judge, repeated, row, table};
use super::runs::write;
use punctual_analysis::testing::RunBuilder;
use punctual_model::SplitMix64;
use std::fs;
use std::path::Path;
use std::time::Instant;

const MACHINES: u32 = 50;
const NIGHTS: u32 = 365;
const CELLS: usize = 26;
const BLOCKS: u32 = 10;

/// Measures and prints the table.
pub(super) fn report(setup: &Setup) -> Result<(), String> {
    let Setup { program, pairs, .. } = setup;
    let scratch = Scratch::new()?;
    let store = scratch.path("store.sqlite");
    let size = |path: &Path| fs::metadata(path).map(|file| file.len()).map_err(|err| err.to_string());
    // Wall time of a command; a change is no failure.
    let seconds = |words: &str, paths: &[&Path]| {
        let paths = [paths, &[Path::new("--store"), &store]].concat();
        Ok(judge(program, words, &paths)?.wall_s)
    };
    let night = |day: u64| {
        let (run, dir) = (night(day), scratch.path(&format!("night-{day}")));
        let bytes = write(&dir, &run.header, run.entries.into_iter())?;
        Ok::<_, String>((dir, bytes))
    };
    let (template, raw) = night(0)?;
    seconds("store add", &[&template])?;
    let one = size(&store)?;
    let began = Instant::now();
    fill(&store).map_err(|err| format!("{}: {err}", store.display()))?;
    let bytes = size(&store)?;
    let cells = CELLS as u64;
    table(format_args!(
        "store: {MACHINES} machines, {NIGHTS} nights, {CELLS} cells of {BLOCKS} blocks: {} MB, {} bytes a cell \
         (raw run: {} bytes a cell, first store {one} bytes), filled in {:.0} s",
        bytes / 1_000_000,
        bytes / (u64::from(MACHINES * NIGHTS) * cells),
        raw / cells,
        began.elapsed().as_secs_f64()
    ));
    let added: Result<Vec<f64>, String> = (1..=*pairs).map(|day| seconds("store add", &[&night(day)?.0])).collect();
    row("s, add a run", &added?, Promise::AtMost(0.5));
    for (name, words) in [
        ("s, history of a machine", "history --machine board-7."),
        ("s, history of one cell of a machine", "history --machine board-7. --cell none/fifo:80"),
        ("s, list of all runs", "store list --format csv"),
        ("s, histories of all series", "history"),
    ] {
        row(name, &repeated(*pairs, || seconds(words, &[]))?, Promise::AtMost(1.0));
    }
    Ok(())
}

/// A run of all cells, with a histogram of some 300 buckets in each.
fn night(day: u64) -> RunBuilder {
    let mut run = RunBuilder::new();
    run.header.host.hostname = Some("board-0.".to_owned());
    run.header.started_unix_ms += day * 86_400_000;
    run.header.plan.repetitions = BLOCKS;
    for cell in 0..CELLS {
        run.cell(if cell % 2 == 0 { "none" } else { "messaging" }, &format!("fifo:{}", 80 - cell / 2));
    }
    for block in 0..BLOCKS {
        for cell in 0..CELLS {
            let seed = (day << 16) + u64::from(block) * 100 + u64::try_from(cell).unwrap_or(0);
            let mut bits = SplitMix64::new(seed);
            let latencies: Vec<i64> = (0..4_000)
                .map(|_| {
                    let uniform = ((bits.next_bits() >> 12) as f64 + 0.5) / (1u64 << 52) as f64;
                    whole(8_000.0 - 6_000.0 * uniform.ln())
                })
                .collect();
            run.measure(block, cell, |cpu, cycle| {
                let index = usize::try_from(cycle * 2 + u64::from(cpu)).unwrap_or(0) % latencies.len();
                latencies.get(index).copied().unwrap_or(8_000)
            });
        }
    }
    run
}

#[expect(clippy::cast_possible_truncation, reason = "some microseconds")]
fn whole(ns: f64) -> i64 {
    ns.round() as i64
}

/// Copies the run of the template to every machine and night, with responses that vary by 10 %.
fn fill(store: &Path) -> rusqlite::Result<()> {
    let sql = include_str!("fill.sql").replace("MACHINES", &MACHINES.to_string());
    rusqlite::Connection::open(store)?.execute_batch(&sql.replace("NIGHTS", &NIGHTS.to_string()))
}
