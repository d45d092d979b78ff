//! Import of a large `samples.raw` of jitterdebugger: speed, memory, and comparison with a conversion to CSV in Python.

use super::process::{Finished, finish};
use super::{CONFIDENCE, judged, median};
use analysis::median_interval;
use model::SplitMix64;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Bytes of a record.
const RECORD: usize = 28;

/// Records of the large file, 400 MB, and of one a tenth as large.
const LARGE: u64 = 400_000_000 / RECORD as u64;
const SMALL: u64 = LARGE / 10;

/// Promises: bytes a second, the factor over Python, and memory that does not grow with the file.
const MB_PER_SECOND: f64 = 100.0;
const TIMES_AS_FAST: f64 = 20.0;
const GROWTH: f64 = 1.1;

/// Conversion of a file as `jittersamples` does it, in pure Python and to /dev/null: a line `CPU;SECONDS;LATENCY` for
/// each record.
const PYTHON: &str = "\
import struct, sys
record = struct.Struct('<IqqQ')
with open(sys.argv[1], 'rb') as file, open('/dev/null', 'w') as out:
    while block := file.read(record.size * 65536):
        out.writelines(f'{cpu};{s}.{ns:09};{latency}\\n' for cpu, s, ns, latency in record.iter_unpack(block))
";

/// Makes the files, runs the pairs and prints the table.
pub(super) fn report(program: &Path, pairs: u64) -> Result<(), String> {
    let scratch = Scratch::new()?;
    let (large, small) = (scratch.path("large.raw"), scratch.path("small.raw"));
    let write = |path: &Path, records| write(path, records).map_err(|err| format!("{}: {err}", path.display()));
    write(&large, LARGE)?;
    write(&small, SMALL)?;
    let import = |file: &Path| {
        let out = scratch.path("imported");
        let finished = timed(Command::new(program).arg("import").arg(file).arg("--out").arg(&out));
        let _ = fs::remove_dir_all(&out);
        finished
    };
    let python = || timed(Command::new("/usr/bin/python3").args(["-c", PYTHON]).arg(&large));
    let (mut rates, mut ratios, mut growth, mut rss_mb) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for pair in 0..pairs {
        let (ours, theirs) = if pair % 2 == 0 {
            let ours = import(&large)?;
            (ours, python()?)
        } else {
            let theirs = python()?;
            (import(&large)?, theirs)
        };
        let of_small = import(&small)?;
        rates.push(megabytes() / ours.wall_s);
        ratios.push(theirs.cpu_s / ours.cpu_s);
        growth.push(ours.rss_kib / of_small.rss_kib);
        rss_mb.push(ours.rss_kib / 1024.0);
    }
    println!("\nimport of samples.raw, {:.0} MB, {pairs} times", megabytes());
    println!("{:<46}{:>10}  {:<20}promise", "", "median", "[95 %]");
    at_least("MB a second, wall-clock time", &rates, MB_PER_SECOND);
    at_least("CPU time of Python's conversion / ours", &ratios, TIMES_AS_FAST);
    memory(growth, rss_mb);
    Ok(())
}

/// Size of the large file, MB.
fn megabytes() -> f64 {
    (LARGE * RECORD as u64) as f64 / 1e6
}

/// Prints the memory for a file, and its growth over that for a tenth of the file.
pub(super) fn memory(growth: Vec<f64>, rss_mb: Vec<f64>) {
    let (said, promise) = interval(&growth, |lower, upper| format!("<= {GROWTH} {}", judged(lower, upper, GROWTH)));
    println!(
        "{:<46}{:>10.3}  {said:<20}{promise}",
        "peak RSS / that of a tenth of the file",
        median(growth.into_iter())
    );
    println!("{:<46}{:>10.2}", "  peak RSS, MB", median(rss_mb.into_iter()));
}

pub(super) fn at_least(name: &str, values: &[f64], limit: f64) {
    let (said, promise) = interval(values, |lower, upper| format!(">= {limit} {}", judged(-upper, -lower, -limit)));
    println!("{name:<46}{:>10.1}  {said:<20}{promise}", median(values.iter().copied()));
}

/// The interval of a median, and the result of a promise.
fn interval(values: &[f64], promise: impl Fn(f64, f64) -> String) -> (String, String) {
    match median_interval(values, CONFIDENCE) {
        Some((lower, _, upper)) => (format!("[{lower:.3}-{upper:.3}]"), promise(lower, upper)),
        None => ("(6 times at least)".to_owned(), String::new()),
    }
}

/// A finished process with its times.
pub(super) struct Timed {
    pub(super) wall_s: f64,
    pub(super) cpu_s: f64,
    pub(super) rss_kib: f64,
}

pub(super) fn timed(command: &mut Command) -> Result<Timed, String> {
    let Finished { started, reaped, .. } = finish(command, b"")?;
    let wall_ns = sys::clock::monotonic().since(started).0;
    let cpu_s = (reaped.usage.user_us + reaped.usage.system_us) as f64 / 1e6;
    Ok(Timed { wall_s: wall_ns as f64 / 1e9, cpu_s, rss_kib: reaped.max_rss_kib as f64 })
}

/// Writes a file as `jitterdebugger -s -i 1000` does on four CPUs: a latency of 3 us to 2 ms, most of them small.
fn write(path: &Path, records: u64) -> std::io::Result<()> {
    const SECOND_NS: u64 = 1_000_000_000;
    let mut file = std::io::BufWriter::with_capacity(1 << 20, fs::File::create(path)?);
    let mut random = SplitMix64::new(11);
    for i in 0..records {
        let latency_us = 3 + random.next_bits() % 4 + 2_000 / (random.next_bits() % 65_536 + 1);
        let woke_ns = 3_600 * SECOND_NS + i / 4 * 1_000_000 + latency_us * 1_000 + random.next_bits() % 1_000;
        let mut record = [0; RECORD];
        record[..4].copy_from_slice(&u32::try_from(i % 4).unwrap_or(0).to_le_bytes());
        for (word, at) in [(woke_ns / SECOND_NS, 4), (woke_ns % SECOND_NS, 12), (latency_us, 20)] {
            record[at..at + 8].copy_from_slice(&word.to_le_bytes());
        }
        file.write_all(&record)?;
    }
    file.flush()
}

/// A directory that is removed on drop.
pub(super) struct Scratch(PathBuf);

impl Scratch {
    pub(super) fn new() -> Result<Scratch, String> {
        let dir = std::env::temp_dir().join(format!("punctual-bench-{}", std::process::id()));
        fs::create_dir_all(&dir).map_err(|err| format!("{}: {err}", dir.display()))?;
        Ok(Scratch(dir))
    }

    /// The path of a file in it.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
