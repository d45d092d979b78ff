//! Duration of the statistics: `show` and `compare` on large runs, and beside numpy on the same latencies.

use super::process::finish;
use super::{CONFIDENCE, judged};
use analysis::median_interval;
use model::{Cell, Entry, Episodes, Header, Histogram, Period, Planned, Second, Slice, Span, SplitMix64, Worst};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Cells and blocks of the large run.
const CELLS: usize = 100;
const BLOCKS: u32 = 12;

/// Period and step of the synthetic measurements.
const PERIOD_NS: u64 = 100_000;
const SLICES: u64 = 64;
const WORST: usize = 1_000;

/// The same work in numpy: read the latencies, and compute three quantiles, which are timed separately.
const NUMPY: &str = "import numpy,sys,time;a=numpy.load(sys.argv[1]);t=time.process_time();\
    q=numpy.quantile(a,[.5,.99,.999]);print(time.process_time()-t)";

/// Creates the runs, times the commands and prints the table.
pub(super) fn report(program: &Path, times: u64) -> Result<(), String> {
    let scratch = Scratch::new()?;
    let (header, entries) = recorded(program, &scratch)?;
    println!("\nstatistics: {times} times each; wall-clock time on a machine with nothing else to do, else CPU time");
    println!("{:<46}{:>10}  {:<20}promise", "", "median", "[95 %]");

    let run = |name: &str, cells: usize, blocks: u32| multiplied(&scratch, name, &header, &entries, cells, blocks);
    let hundred = run("hundred", CELLS, BLOCKS)?;
    let show = |dir: &Path| milliseconds(Command::new(program).arg("show").arg(dir));
    let timed = repeated(times, || show(&hundred))?;
    row(&format!("show, {CELLS} cells x {BLOCKS} blocks, ms"), &timed.wall_ms, 300.0);
    row("  its CPU time, ms", &timed.cpu_ms, f64::INFINITY);
    row("  its peak RSS, MB", &timed.rss_mb, 100.0);
    let pair = run("pair", 2, 24)?;
    let compare = || milliseconds(Command::new(program).args(["compare", "--metric", "p50"]).arg(&pair));
    let timed = repeated(times, compare)?;
    row("compare, 24 blocks, ms", &timed.wall_ms, 100.0);
    row("  its CPU time, ms", &timed.cpu_ms, f64::INFINITY);
    row("  its peak RSS, MB", &timed.rss_mb, 100.0);

    let latencies = latencies(1_000_000);
    let small = one_cell(&scratch, "million", &header, &entries, &latencies, 1)?;
    let large = one_cell(&scratch, "milliard", &header, &entries, &latencies, 1_000)?;
    let (of_small, of_large) = alternated(times, || show(&small), || show(&large))?;
    let ratios: Vec<f64> = of_large.iter().zip(&of_small).map(|(large, small)| large / small).collect();
    row("show, 10^9 samples / 10^6 samples, CPU time", &ratios, 1.1);

    let latencies = self::latencies(10_000_000);
    let dir = one_cell(&scratch, "samples", &header, &entries, &latencies, 1)?;
    let file = scratch.0.join("samples.npy");
    write_npy(&file, &latencies)?;
    drop(latencies);
    if finish(Command::new("/usr/bin/python3").args(["-c", "import numpy"]), b"").is_err() {
        println!("beside numpy: not measured; apt-get install python3-numpy");
        return Ok(());
    }
    let mut alone = Vec::new();
    let numpy = || {
        let timed = milliseconds(Command::new("/usr/bin/python3").args(["-c", NUMPY]).arg(&file))?;
        alone.extend(timed.stdout.trim().parse::<f64>().map(|seconds| seconds * 1e3));
        Ok(timed)
    };
    let (ours, theirs) = alternated(times, || show(&dir), numpy)?;
    row("show, a cell of 10^7 samples, CPU ms", &ours, f64::INFINITY);
    row("numpy, three quantiles of the same 10^7, CPU ms", &theirs, f64::INFINITY);
    row("  its quantiles alone, CPU ms", &alone, f64::INFINITY);
    let ratio = |theirs: &[f64]| ours.iter().zip(theirs).map(|(ours, theirs)| ours / theirs).collect::<Vec<_>>();
    row("show / numpy, ratio", &ratio(&theirs), 0.05);
    row("show / quantiles of numpy alone, ratio", &ratio(&alone), 0.05);
    Ok(())
}

/// A directory that is removed on drop.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Result<Scratch, String> {
        let dir = std::env::temp_dir().join(format!("punctual-statistics-{}", std::process::id()));
        fs::create_dir_all(&dir).map_err(|err| format!("{}: {err}", dir.display()))?;
        Ok(Scratch(dir))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A finished process with its times.
struct Timed {
    wall_ms: f64,
    cpu_ms: f64,
    rss_mb: f64,
    stdout: String,
}

fn milliseconds(command: &mut Command) -> Result<Timed, String> {
    // `compare` has several exit statuses of its own, so the status of the shell counts.
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", "\"$@\"; [ $? != 1 ]", "sh"]).arg(command.get_program()).args(command.get_args());
    let finished = finish(&mut shell, b"")?;
    let wall_ns = sys::clock::monotonic().since(finished.started).0;
    let rss_mb = finished.reaped.max_rss_kib as f64 / 1024.0;
    let usage = finished.reaped.usage;
    let cpu_ms = (usage.user_us + usage.system_us) as f64 / 1e3;
    Ok(Timed { wall_ms: wall_ns as f64 / 1e6, cpu_ms, rss_mb, stdout: finished.stdout })
}

#[derive(Default)]
struct Repeated {
    wall_ms: Vec<f64>,
    cpu_ms: Vec<f64>,
    rss_mb: Vec<f64>,
}

fn repeated(times: u64, mut measure: impl FnMut() -> Result<Timed, String>) -> Result<Repeated, String> {
    let mut all = Repeated::default();
    for _ in 0..times {
        let timed = measure()?;
        all.wall_ms.push(timed.wall_ms);
        all.cpu_ms.push(timed.cpu_ms);
        all.rss_mb.push(timed.rss_mb);
    }
    Ok(all)
}

/// The CPU times of both, ms, one after the other, in alternating order.
fn alternated(
    times: u64,
    mut a: impl FnMut() -> Result<Timed, String>,
    mut b: impl FnMut() -> Result<Timed, String>,
) -> Result<(Vec<f64>, Vec<f64>), String> {
    let mut both = (Vec::new(), Vec::new());
    for i in 0..times {
        if i % 2 == 0 {
            both.0.push(a()?.cpu_ms);
        }
        both.1.push(b()?.cpu_ms);
        if i % 2 == 1 {
            both.0.push(a()?.cpu_ms);
        }
    }
    Ok(both)
}

pub(super) fn row(name: &str, values: &[f64], limit: f64) {
    let promise = |lower, upper| {
        if limit.is_finite() { format!("<= {limit} {}", judged(lower, upper, limit)) } else { String::new() }
    };
    match median_interval(values, CONFIDENCE) {
        Some((lower, median, upper)) => {
            println!("{name:<46}{median:>10.3}  {:<20}{}", format!("[{lower:.3}-{upper:.3}]"), promise(lower, upper));
        }
        None => println!("{name:<46}{:>10.3}  (6 times at least)", super::median(values.iter().copied())),
    }
}

/// A real run of one cell and two blocks, the source of all others.
fn recorded(program: &Path, scratch: &Scratch) -> Result<(Header, Vec<Entry>), String> {
    let (plan, dir) = (scratch.0.join("plan.toml"), scratch.0.join("recorded"));
    let text = "repetitions = 2\nduration = \"2s\"\n[axes]\nload = [\"none\"]\npolicy = [\"other\"]\n";
    fs::write(&plan, text).map_err(|err| format!("{}: {err}", plan.display()))?;
    finish(Command::new(program).args(["run", "--wait", "--out"]).arg(&dir).arg(&plan), b"")?;
    let text = fs::read_to_string(dir.join("run.jsonl")).map_err(|err| format!("{}: {err}", dir.display()))?;
    let mut lines = text.lines();
    let damaged = |err: serde_json::Error| format!("{}: {err}", dir.display());
    let header = serde_json::from_str(lines.next().unwrap_or_default()).map_err(damaged)?;
    let entries = lines.map(serde_json::from_str).collect::<Result<_, _>>().map_err(damaged)?;
    Ok((header, entries))
}

/// Writes a run entry by entry: memory that this process once held would count as that of its children.
fn write_run(
    scratch: &Scratch,
    name: &str,
    header: &Header,
    entries: impl Iterator<Item = Entry>,
) -> Result<PathBuf, String> {
    let dir = scratch.0.join(name);
    let write = || -> std::io::Result<()> {
        fs::create_dir_all(&dir)?;
        let mut file = std::io::BufWriter::new(fs::File::create(dir.join("run.jsonl"))?);
        writeln!(file, "{}", serde_json::to_string(header)?)?;
        for entry in entries {
            writeln!(file, "{}", serde_json::to_string(&entry)?)?;
        }
        file.flush()
    };
    write().map_err(|err| format!("{}: {err}", dir.display()))?;
    Ok(dir)
}

/// A run with this number of cells and blocks, each with the records of the real one; the cells differ in their
/// periods.
fn multiplied(
    scratch: &Scratch,
    name: &str,
    header: &Header,
    entries: &[Entry],
    cells: usize,
    blocks: u32,
) -> Result<PathBuf, String> {
    let template = header.cells.first().ok_or("the run has no cell")?;
    let period =
        |i: usize| Period::try_from(Span(template.period.ns() + 1_000 * i as u64)).map_err(|err| err.to_string());
    let cells: Vec<Cell> =
        (0..cells).map(|i| Ok(Cell { period: period(i)?, ..template.clone() })).collect::<Result<_, String>>()?;
    let mut header = header.clone();
    (header.cells, header.plan.repetitions) = (cells, blocks);
    let planned = (0..blocks).flat_map(|block| (0..header.cells.len()).map(move |cell_index| (block, cell_index)));
    let made = planned.zip(entries.iter().cycle()).zip(0..).map(|(((block, cell_index), entry), i)| {
        let mut entry = entry.clone();
        entry.planned = Planned { block, position: u32::try_from(cell_index).unwrap_or(0), cell_index };
        entry.record.cell = header.cells[cell_index].clone();
        entry.record.started_unix_ms = header.started_unix_ms + 3_000 * i;
        entry
    });
    write_run(scratch, name, &header, made)
}

/// Latencies with a heavy tail, ns.
fn latencies(n: u64) -> Vec<i64> {
    let mut random = SplitMix64::new(7);
    let mut latency = || {
        let shape = random.below(1 << 20) + 1;
        3_000 + i64::try_from(random.below(4_000)).unwrap_or(0) + 2_000_000 / i64::try_from(shape).unwrap_or(1)
    };
    (0..n).map(|_| latency()).collect()
}

/// A run of one cell with these latencies, each counted `times` times, as if it had been measured.
fn one_cell(
    scratch: &Scratch,
    name: &str,
    header: &Header,
    entries: &[Entry],
    latencies: &[i64],
    times: u64,
) -> Result<PathBuf, String> {
    let n = latencies.len() as u64;
    let cell = Cell {
        period: Period::try_from(Span(PERIOD_NS)).map_err(|err| err.to_string())?,
        duration: Span(n * PERIOD_NS),
        ..header.cells.first().ok_or("the run has no cell")?.clone()
    };
    let mut entry = entries.first().ok_or("the run has no record")?.clone();
    let record = &mut entry.record;
    (record.cell, record.measured) = (cell.clone(), cell.duration);
    record.threads.truncate(1);
    let thread = record.threads.first_mut().ok_or("the record has no thread")?;
    let of = |latencies: &[i64]| {
        let mut histogram = Histogram::default();
        latencies.iter().for_each(|ns| histogram.record_n(*ns, times));
        histogram
    };
    thread.histogram = of(latencies);
    (thread.recorded, thread.cycles_due) = (n * times, n * times);
    (thread.missed, thread.early, thread.lost, thread.censored) = (0, 0, 0, None);
    thread.episodes = Episodes::default();
    let per_slice = n.div_ceil(SLICES);
    let slice = |(i, part): (u64, &[i64])| Slice { first_cycle: i * per_slice, cycles: per_slice, histogram: of(part) };
    thread.slices = (0..).zip(latencies.chunks(usize::try_from(per_slice).unwrap_or(1))).map(slice).collect();
    let per_second = usize::try_from(Span::SECOND.ns() / PERIOD_NS).unwrap_or(1);
    let second = |(second, part): (u64, &[i64])| Second {
        second,
        n: part.len() as u64 * times,
        max_ns: part.iter().copied().max(),
        ..Second::default()
    };
    thread.seconds = (0..).zip(latencies.chunks(per_second)).map(second).collect();
    let mut worst: Vec<Worst> =
        latencies.iter().zip(0..).map(|(latency_ns, cycle)| Worst { latency_ns: *latency_ns, cycle }).collect();
    worst.sort_by(|a, b| b.cmp(a));
    worst.truncate(WORST);
    thread.worst = worst;
    entry.planned = Planned { block: 0, position: 0, cell_index: 0 };
    let mut header = header.clone();
    (header.cells, header.plan.repetitions) = (vec![cell], 1);
    write_run(scratch, name, &header, std::iter::once(entry))
}

/// The latencies in numpy's fastest input format (NPY, version 1.0).
fn write_npy(path: &Path, latencies: &[i64]) -> Result<(), String> {
    let mut head = format!("{{'descr': '<i8', 'fortran_order': False, 'shape': ({},), }}", latencies.len());
    while (head.len() + 11) % 64 != 0 {
        head.push(' ');
    }
    head.push('\n');
    let write = || -> std::io::Result<()> {
        let mut file = std::io::BufWriter::new(fs::File::create(path)?);
        file.write_all(b"\x93NUMPY\x01\x00")?;
        file.write_all(&u16::try_from(head.len()).unwrap_or(0).to_le_bytes())?;
        file.write_all(head.as_bytes())?;
        latencies.iter().try_for_each(|latency| file.write_all(&latency.to_le_bytes()))?;
        file.flush()
    };
    write().map_err(|err| format!("{}: {err}", path.display()))
}
