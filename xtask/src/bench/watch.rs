//! Costs of watching: latency that it adds to each wake-up of a watched thread, and CPU time of the watcher.

use super::process::{finish, quiet_cell};
use super::statistics::row;
use model::{CpuSet, Record, Span};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Promises: us added to the median latency of a watched thread, and % of one CPU for ten threads at 1 kHz.
const ADDED_US: f64 = 0.6;
const MOST_PERCENT: f64 = 2.0;
/// Measured time of a wake-up cell, and of the ten threads.
const TIME: Span = Span(2_000_000_000);
const THREADS: u32 = 10;

/// A directory of one benchmark, which is removed on success and on failure.
struct Files(PathBuf);

impl Files {
    fn make() -> Result<Files, String> {
        let dir = std::env::temp_dir().join(format!("punctual-bench-watch-{}", std::process::id()));
        std::fs::create_dir_all(&dir).map_err(|err| format!("{}: {err}", dir.display()))?;
        Ok(Files(dir))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Measures both and prints the table.
pub(super) fn report(program: &Path, cpus: &CpuSet, pairs: u64) -> Result<(), String> {
    println!("\nwatch: {pairs} pairs");
    println!("{:<46}{:>10}  {:<20}promise", "", "median", "[95 %]");
    let files = Files::make()?;
    let cpu: CpuSet = cpus.iter().last().into_iter().collect();
    let cell = serde_json::to_vec(&quiet_cell(cpu, TIME)).map_err(|err| err.to_string())?;
    std::fs::write(files.path("cell.json"), cell).map_err(|err| err.to_string())?;
    let (mut plain_added, mut explained_added) = (Vec::new(), Vec::new());
    for pair in 0..pairs {
        // The order of the three rotates.
        let mut ways = [None, Some(&["--no-explain"][..]), Some(&[][..])];
        let turn = usize::try_from(pair % 3).unwrap_or(0);
        ways.rotate_left(turn);
        let mut medians = Vec::new();
        for way in ways {
            medians.push(median_us(program, &files, way)?);
        }
        medians.rotate_right(turn);
        if let [alone, watched, explained] = medians[..] {
            plain_added.push(watched - alone);
            explained_added.push(explained - alone);
        }
    }
    row("median latency, added by watching, us", &plain_added, ADDED_US);
    row("  and by the trace of the surroundings, us", &explained_added, ADDED_US);
    for (name, more) in
        [("% of a CPU, ten threads at 1 kHz, messaging", &["--no-explain"][..]), ("  and late ones explained", &[])]
    {
        let shares: Result<Vec<f64>, String> = (0..pairs).map(|_| percent(program, &files, more)).collect();
        row(name, &shares?, MOST_PERCENT);
    }
    Ok(())
}

/// A shell command that measures the cell `n` times at once; the record of the first goes to `record.json`.
fn cells(program: &Path, files: &Files, n: u32) -> String {
    let (program, cell, record) = (program.display(), files.path("cell.json"), files.path("record.json"));
    let more = format!("'{program}' cell < '{}' > /dev/null & ", cell.display()).repeat(n as usize - 1);
    format!("{more}'{program}' cell < '{}' > '{}'; wait", cell.display(), record.display())
}

/// Median latency, us, of the measured thread: alone, or watched with these options.
fn median_us(program: &Path, files: &Files, watched: Option<&[&str]>) -> Result<f64, String> {
    let shell = cells(program, files, 1);
    match watched {
        None => drop(finish(Command::new("sh").args(["-c", &shell]), b"")?),
        Some(options) => {
            let mut command = Command::new(program);
            command.args(["watch", "--thread", "measured/*", "--warm-up", "0s", "--for", "60s", "--no-keep"]);
            command.args(options).args(["--", "sh", "-c", &shell]);
            finish(&mut command, b"")?;
        }
    }
    let text = std::fs::read_to_string(files.path("record.json")).map_err(|err| format!("punctual cell: {err}"))?;
    let record: Record = serde_json::from_str(&text).map_err(|err| format!("punctual cell: {err}"))?;
    let median = record.threads.first().and_then(|thread| analysis::quantile(&thread.histogram, 0.5));
    median.map(|ns| ns as f64 / 1e3).ok_or_else(|| "punctual cell: no wake-up".to_owned())
}

/// CPU time of the watcher, % of one CPU.
fn percent(program: &Path, files: &Files, options: &[&str]) -> Result<f64, String> {
    let shell = cells(program, files, THREADS);
    let mut command = Command::new(program);
    command.args(["watch", "--thread", "measured/*", "--warm-up", "0s", "--for", "60s", "--no-keep"]);
    command.args(["--load", "messaging", "--format", "json"]).args(options).args(["--", "sh", "-c", &shell]);
    let finished = finish(&mut command, b"")?;
    let document: serde_json::Value = serde_json::from_str(&finished.stdout).map_err(|err| err.to_string())?;
    let share = document["cells"][0]["summary"]["watch"]["watching_cpus"].as_f64();
    share.map(|share| share * 100.0).ok_or_else(|| "punctual watch: no CPU time in its document".to_owned())
}
