//! A store of fifty machines and a year: the time of an addition and of histories.

use super::statistics::row;
use analysis::testing::RunBuilder;
use model::SplitMix64;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

const MACHINES: u32 = 50;
const NIGHTS: u32 = 365;
const CELLS: usize = 26;
const BLOCKS: u32 = 10;

/// The promises, s.
const ADD: f64 = 0.5;
const HISTORY: f64 = 1.0;

/// Measures and prints the table.
pub(super) fn report(program: &Path, times: u64) -> Result<(), String> {
    let dir = std::env::temp_dir().join(format!("punctual-bench-store-{}", std::process::id()));
    fs::create_dir_all(&dir).map_err(|err| format!("{}: {err}", dir.display()))?;
    let measured = measure(program, &dir, times);
    let _ = fs::remove_dir_all(&dir);
    measured
}

fn measure(program: &Path, dir: &Path, times: u64) -> Result<(), String> {
    let store = dir.join("store.sqlite");
    let template = dir.join("template");
    write(&template, &night(0))?;
    seconds(program, &store, &["store", "add", &template.display().to_string()])?;
    let file = fs::metadata(template.join("run.jsonl")).map_err(|err| err.to_string())?;
    let one = fs::metadata(&store).map_err(|err| err.to_string())?.len();
    let began = Instant::now();
    fill(&store).map_err(|err| format!("{}: {err}", store.display()))?;
    let bytes = fs::metadata(&store).map_err(|err| err.to_string())?.len();
    let runs = u64::from(MACHINES * NIGHTS);
    let cells = runs * u64::try_from(CELLS).unwrap_or(0);
    println!(
        "\nstore: {MACHINES} machines, {NIGHTS} nights, {CELLS} cells of {BLOCKS} blocks: {} MB, {} bytes a cell \
         (raw run: {} bytes a cell, first store {one} bytes), filled in {:.0} s",
        bytes / 1_000_000,
        bytes / cells,
        file.len() / u64::try_from(CELLS).unwrap_or(1),
        began.elapsed().as_secs_f64()
    );
    println!("{:<46}{:>10}  {:<20}promise", "", "median", "[95 %]");
    let mut added = Vec::new();
    for time in 0..times {
        let run = dir.join(format!("night-{time}"));
        write(&run, &night(1 + time))?;
        added.push(seconds(program, &store, &["store", "add", &run.display().to_string()])?);
    }
    row("s, add a run", &added, ADD);
    for (name, words) in [
        ("s, history of a machine", &["history", "--machine", "board-7."][..]),
        ("s, history of one cell of a machine", &["history", "--machine", "board-7.", "--cell", "none/fifo:80"]),
        ("s, list of all runs", &["store", "list", "--format", "csv"]),
        ("s, histories of all series", &["history"]),
    ] {
        let all: Result<Vec<f64>, String> = (0..times).map(|_| seconds(program, &store, words)).collect();
        row(name, &all?, HISTORY);
    }
    Ok(())
}

/// Wall time of a command; a change is no failure.
fn seconds(program: &Path, store: &Path, words: &[&str]) -> Result<f64, String> {
    let mut command = Command::new(program);
    command.args(words).arg("--store").arg(store).stdout(Stdio::null());
    let began = Instant::now();
    let status = command.status().map_err(|err| format!("{}: {err}", program.display()))?;
    let took = began.elapsed().as_secs_f64();
    if matches!(status.code(), Some(0 | 2)) { Ok(took) } else { Err(format!("{words:?} ended with {status}")) }
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

fn write(dir: &Path, run: &RunBuilder) -> Result<(), String> {
    let mut lines = vec![serde_json::to_string(&run.header).map_err(|err| err.to_string())?];
    for entry in &run.entries {
        lines.push(serde_json::to_string(entry).map_err(|err| err.to_string())?);
    }
    fs::create_dir_all(dir)
        .and_then(|()| fs::write(dir.join("run.jsonl"), lines.join("\n") + "\n"))
        .map_err(|err| format!("{}: {err}", dir.display()))
}

/// Copies the run of the template to every machine and night, with responses that vary by 10 %.
fn fill(store: &Path) -> rusqlite::Result<()> {
    let mut connection = rusqlite::Connection::open(store)?;
    connection.execute_batch("PRAGMA synchronous = OFF; PRAGMA foreign_keys = OFF")?;
    let transaction = connection.transaction()?;
    let copies = format!(
        "CREATE TEMP TABLE copy AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {}) \
         SELECT i + 1 AS run, i / {NIGHTS} + 1 AS machine, (i % {NIGHTS}) * 86400000 AS later FROM n",
        MACHINES * NIGHTS - 1
    );
    transaction.execute_batch(&copies)?;
    transaction.execute_batch(&format!(
        "WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < {MACHINES}) \
         INSERT INTO machine SELECT i, identity || i, 'board-' || (i - 1) || '.', model, cpu_model, architecture, \
         hypervisor FROM n, machine WHERE id = 1"
    ))?;
    transaction.execute_batch(
        "INSERT INTO run SELECT c.run, identity || c.run, c.machine, configuration_id, started_unix_ms + c.later, title, \
         path, tool, measurements, planned, added_unix_ms FROM copy c, run r WHERE r.id = 1;
         INSERT INTO measurement SELECT c.run, cell_index, cell_id, c.machine, started_unix_ms + c.later, again, \
         kernel_release, blocks, measured_ns, samples, missed, lost, min_ns, mean_ns, p50_ns, p99_ns, p99_low_ns, \
         p99_high_ns, p999_ns, max_ns, max_at_least, typical_p99_ns * (1 + 0.2 * (random() / 1.9e19)), \
         typical_max_ns * (1 + 0.2 * (random() / 1.9e19)) FROM copy c, measurement m WHERE m.run_id = 1;
         INSERT INTO block SELECT c.run, cell_index, block, started_unix_ms + c.later, samples, p99_ns, max_ns \
         FROM copy c, block b WHERE b.run_id = 1;
         INSERT INTO histogram SELECT c.run, cell_index, counts FROM copy c, histogram h WHERE h.run_id = 1;
         INSERT INTO finding SELECT c.run, number, cell_index, kind, importance, sentence \
         FROM copy c, finding f WHERE f.run_id = 1;",
    )?;
    transaction.commit()
}
