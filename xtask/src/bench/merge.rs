//! Merging of shards: time and memory for 10 000 measurements in four shards.

use super::process::finish;
use super::{CONFIDENCE, judged, median, report};
use analysis::median_interval;
use model::{Header, Shard};
use std::fs::{self, File};
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

/// Size of the run: cells, blocks, shards.
const SIZE: (usize, u32, &str) = (2_500, 4, "1/4");
const SECONDS: f64 = 10.0;
const MEGABYTES: f64 = 300.0;

/// Creates the shards and prints the cost of merging them.
pub(super) fn report(program: &Path, times: u64) -> Result<(), String> {
    let dir = std::env::temp_dir().join(format!("punctual-bench-merge-{}", std::process::id()));
    fs::create_dir_all(&dir).map_err(|err| err.to_string())?;
    let result = in_directory(&dir, program, times);
    let _ = fs::remove_dir_all(&dir);
    result
}

fn in_directory(dir: &Path, program: &Path, times: u64) -> Result<(), String> {
    let (cells, blocks, first) = SIZE;
    let first: Shard = first.parse().map_err(|err: model::ShardError| err.to_string())?;
    let whole = dir.join("whole");
    let bytes = report::fabricate(&report::source(dir, program)?, &whole, cells, blocks)?;
    let shards = first.all().map(|shard| split(&whole, dir, shard)).collect::<Result<Vec<_>, _>>()?;
    let (mut seconds, mut megabytes) = (Vec::new(), Vec::new());
    for n in 0..times {
        let out = dir.join(format!("out-{n}"));
        let started = Instant::now();
        let merged = finish(Command::new(program).arg("merge").args(&shards).arg("--out").arg(&out), &[])?;
        seconds.push(started.elapsed().as_secs_f64());
        megabytes.push(merged.reaped.max_rss_kib as f64 / 1000.0);
        fs::remove_dir_all(&out).map_err(|err| err.to_string())?;
    }
    let measurements = cells * usize::try_from(blocks).unwrap_or(usize::MAX);
    println!("\nmerge of {measurements} measurements in {} shards ({:.0} MB)", first.of(), bytes as f64 / 1e6);
    for (values, limit, unit) in [(seconds, SECONDS, "s"), (megabytes, MEGABYTES, "MB")] {
        match median_interval(&values, CONFIDENCE) {
            Some((lower, middle, upper)) => {
                let kept = judged(lower, upper, limit);
                println!("  {middle:.2} {unit} [{lower:.2}-{upper:.2}]  <= {limit} {kept}");
            }
            None => println!("  {:.2} {unit} (6 pairs at least)", median(values.into_iter())),
        }
    }
    Ok(())
}

/// Writes the lines of a shard of the run in `whole`, whose measurements are in order.
fn split(whole: &Path, dir: &Path, shard: Shard) -> Result<PathBuf, String> {
    let failed = |err: std::io::Error| err.to_string();
    let mut lines = BufReader::new(File::open(whole.join("run.jsonl")).map_err(failed)?).lines();
    let header = lines.next().ok_or("an empty run")?.map_err(failed)?;
    let header: Header = serde_json::from_slice(header.as_bytes()).map_err(|err| err.to_string())?;
    let dir = dir.join(shard.to_string().replace('/', "of"));
    fs::create_dir_all(&dir).map_err(failed)?;
    let mut out = BufWriter::new(File::create(dir.join("run.jsonl")).map_err(failed)?);
    let order = header.measurements();
    let (n_cells, is_virtual) = (header.cells.len(), header.is_virtual());
    let header = serde_json::to_string(&Header { shard: Some(shard), ..header }).map_err(|err| err.to_string())?;
    writeln!(out, "{header}").map_err(failed)?;
    for (planned, line) in order.iter().zip(lines) {
        if shard.has(planned, n_cells, is_virtual) {
            writeln!(out, "{}", line.map_err(failed)?).map_err(failed)?;
        }
    }
    out.flush().map_err(failed)?;
    Ok(dir)
}
