//! The engine of all benchmarks: processes with their costs, interleaved rounds, tables of medians and promises.

use super::Setup;
use punctual_analysis::median_interval;
use punctual_model::{Cell, CpuSet, MonoTime, Record, Span};
use serde_json::Value;
use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Confidence of all intervals, as in all of punctual.
const CONFIDENCE: f64 = 0.95;

/// The program in cargo's release directory.
pub(super) fn program(root: &Path) -> Result<PathBuf, String> {
    let targets = fs::read_dir(root.join("target")).map_err(|err| err.to_string())?.flatten();
    let path = targets.map(|target| target.path().join("release/punctual")).find(|path| path.is_file());
    path.ok_or_else(|| "cannot find a release build; run `make build` first".to_owned())
}

/// A finished process and the kernel's accounting of it and of the children it waited for.
pub(super) struct Finished {
    /// Time just before the start, `CLOCK_MONOTONIC`.
    pub(super) started: MonoTime,
    pub(super) wall_s: f64,
    pub(super) cpu_s: f64,
    /// Largest resident set of one process.
    pub(super) rss_mb: f64,
    pub(super) stdout: String,
}

impl Finished {
    /// Its output as JSON; lines of text may surround the document.
    pub(super) fn json(&self) -> Result<Value, String> {
        let (start, end) = (self.stdout.find('{'), self.stdout.rfind('}'));
        let json = start.zip(end).and_then(|(start, end)| self.stdout.get(start..=end)).ok_or("no JSON")?;
        serde_json::from_str(json).map_err(|err| err.to_string())
    }

    /// CPU time for each of `n` wake-ups, us.
    pub(super) fn cpu_us(&self, n: u64) -> f64 {
        self.cpu_s * 1e6 / n as f64
    }
}

/// Runs `command` to its end with `input` on its stdin. Errors: if it ends with a status other than 0.
pub(super) fn finish(command: &mut Command, input: &[u8]) -> Result<Finished, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let failed = |err: std::io::Error| format!("{name}: {err}");
    let started = punctual_sys::clock::monotonic();
    let spawned = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
    let mut child = spawned.map_err(failed)?;
    let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
    stdin.map_or(Ok(()), |mut stdin| stdin.write_all(input)).map_err(failed)?;
    let mut text = String::new();
    stdout.map_or(Ok(0), |mut stdout| stdout.read_to_string(&mut text)).map_err(failed)?;
    let reaped = punctual_sys::usage::wait(child.id()).map_err(failed)?;
    if reaped.status != 0 {
        let status = reaped.status;
        return Err(format!("{name} ended with wait status {status:#x}; run as root, with nothing else measuring"));
    }
    Ok(Finished {
        started,
        wall_s: punctual_sys::clock::monotonic().since(started).0 as f64 / 1e9,
        cpu_s: (reaped.usage.user_us + reaped.usage.system_us) as f64 / 1e6,
        rss_mb: reaped.max_rss_kib as f64 / 1024.0,
        stdout: text,
    })
}

/// Runs the program with words that have no blanks, and these paths.
pub(super) fn run(program: &Path, words: &str, paths: &[&Path]) -> Result<Finished, String> {
    finish(Command::new(program).args(words.split_whitespace()).args(paths), b"")
        .map_err(|err| format!("{words}: {err}"))
}

/// The same, where any exit status but 1 is a result.
pub(super) fn judge(program: &Path, words: &str, paths: &[&Path]) -> Result<Finished, String> {
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", "\"$@\"; [ $? != 1 ]", "sh"]).arg(program).args(words.split_whitespace()).args(paths);
    finish(&mut shell, b"").map_err(|err| format!("{words}: {err}"))
}

impl Setup {
    pub(super) fn one_cpu(&self) -> CpuSet {
        [self.cpu].into_iter().collect()
    }

    /// The record of a cell.
    pub(super) fn record(&self, cell: &Cell) -> Result<Record, String> {
        Ok(self.recorded(cell)?.1)
    }

    /// The process of a cell, and its record.
    pub(super) fn recorded(&self, cell: &Cell) -> Result<(Finished, Record), String> {
        let json = serde_json::to_vec(cell).map_err(|err| err.to_string())?;
        let finished = finish(Command::new(&self.program).arg("cell"), &json)?;
        let record = serde_json::from_str(&finished.stdout).map_err(|err| format!("punctual cell: {err}"))?;
        Ok((finished, record))
    }
}

/// A cell without a load: FIFO 80 every millisecond by `clock_nanosleep`, memory locked, idle states shallow.
pub(super) fn quiet_cell(cpus: CpuSet, duration: Span) -> Cell {
    Cell { cpus, duration, ..punctual_analysis::testing::cell("none", "fifo:80") }
}

/// Smallest and median latency of the first thread of a record, us.
pub(super) fn min_and_median_us(record: &Record) -> Result<(f64, f64), String> {
    let thread = record.threads.first().ok_or("punctual cell: no thread")?;
    let known = thread.histogram.min_ns.zip(punctual_analysis::quantile(&thread.histogram, 0.5));
    let known = known.map(|(min, median)| (min as f64 / 1e3, median as f64 / 1e3));
    known.ok_or_else(|| "punctual cell: no wake-up".to_owned())
}

/// A number at a place of a document, like `cells/0/summary/mean_ns`.
pub(super) fn number(json: &Value, place: &str) -> Result<f64, String> {
    json.pointer(&format!("/{place}")).and_then(Value::as_f64).ok_or_else(|| format!("no `{place}` in its JSON"))
}

/// Runs all ways once in each round; the order rotates. Returns the results of each way.
pub(super) fn rounds<T, const N: usize>(
    n: u64,
    ways: [&dyn Fn() -> Result<T, String>; N],
) -> Result<[Vec<T>; N], String> {
    let mut all = [(); N].map(|()| Vec::new());
    for round in 0..usize::try_from(n).unwrap_or(usize::MAX) {
        for way in 0..N {
            let way = (way + round) % N;
            all[way].push(ways[way]()?);
        }
    }
    Ok(all)
}

/// One way, `n` times.
pub(super) fn repeated<T>(n: u64, way: impl Fn() -> Result<T, String>) -> Result<Vec<T>, String> {
    (0..n).map(|_| way()).collect()
}

/// A number of each pair.
pub(super) fn each<A, B>(a: &[A], b: &[B], of: impl Fn(&A, &B) -> f64) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| of(a, b)).collect()
}

/// The limits of a promise.
#[derive(Debug, Clone, Copy)]
pub(super) enum Promise {
    None,
    AtMost(f64),
    AtLeast(f64),
    Within(f64, f64),
}

impl Promise {
    /// The promise, and its result: kept or broken when the interval lies wholly on one side of a limit.
    fn judged(self, lower: f64, upper: f64) -> String {
        let (text, least, most) = match self {
            Promise::None => return String::new(),
            Promise::AtMost(most) => (format!("<= {most}"), f64::NEG_INFINITY, most),
            Promise::AtLeast(least) => (format!(">= {least}"), least, f64::INFINITY),
            Promise::Within(least, most) => (format!("{least} to {most}"), least, most),
        };
        let result = match () {
            () if lower >= least && upper <= most => "kept",
            () if upper < least || lower > most => "NOT KEPT",
            () => "not told apart",
        };
        format!("{text} {result}")
    }
}

/// Begins a table.
pub(super) fn table(title: impl std::fmt::Display) {
    println!("\n{title}\n{:<50}{:>12}  {:<22}promise", "", "median", "[95 %]");
}

/// A line of a table: the median of the values.
pub(super) fn row(name: &str, values: &[f64], promise: Promise) {
    match median_interval(values, CONFIDENCE) {
        Some((lower, median, upper)) => {
            let interval = format!("[{lower:.3}-{upper:.3}]");
            println!("{name:<50}{median:>12.3}  {interval:<22}{}", promise.judged(lower, upper));
        }
        None => println!("{name:<50}{:>12.3}  (6 times at least)", median(values)),
    }
}

/// A line with one value, which is exact.
pub(super) fn value(name: &str, value: f64, promise: Promise) {
    println!("{name:<50}{value:>12.3}  {:<22}{}", "", promise.judged(value, value));
}

/// The lines of a pair: the ratio, and what both have.
pub(super) fn pair(name: &str, ours: &[f64], theirs: &[f64], promise: Promise) {
    row(&format!("{name}, ours / theirs"), &each(ours, theirs, |ours, theirs| ours / theirs), promise);
    println!("  ours {:.3}, theirs {:.3}", median(ours), median(theirs));
}

/// The median; for an even number the mean of the middle two. NaN for an empty list.
pub(super) fn median(values: &[f64]) -> f64 {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    let upper = values.get(values.len() / 2).copied().unwrap_or(f64::NAN);
    let lower = values.get((values.len().max(1) - 1) / 2).copied().unwrap_or(f64::NAN);
    f64::midpoint(lower, upper)
}

/// A directory that is removed on drop.
pub(super) struct Scratch(pub(super) PathBuf);

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

    /// A new file in it.
    pub(super) fn write(&self, name: &str, text: impl AsRef<[u8]>) -> Result<PathBuf, String> {
        let path = self.path(name);
        fs::write(&path, text).map_err(|err| format!("{}: {err}", path.display()))?;
        Ok(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_across_the_limit_tells_nothing() {
        for (promise, lower, upper, says) in [
            (Promise::AtMost(1.0), 0.8, 1.0, "<= 1 kept"),
            (Promise::AtMost(1.0), 0.8, 1.01, "<= 1 not told apart"),
            (Promise::AtMost(1.0), 1.0, 1.2, "<= 1 not told apart"),
            (Promise::AtMost(1.0), 1.01, 1.2, "<= 1 NOT KEPT"),
            (Promise::AtLeast(2.0), 1.0, 1.9, ">= 2 NOT KEPT"),
            (Promise::AtLeast(2.0), 2.0, 9.0, ">= 2 kept"),
            (Promise::Within(0.9, 1.1), 0.9, 1.1, "0.9 to 1.1 kept"),
            (Promise::Within(0.9, 1.1), 0.8, 1.0, "0.9 to 1.1 not told apart"),
            (Promise::None, 0.0, 1.0, ""),
        ] {
            assert_eq!(promise.judged(lower, upper), says);
        }
    }

    #[test]
    fn the_median_is_the_middle() {
        for (values, middle) in [(&[3.0][..], 3.0), (&[4.0, 1.0], 2.5), (&[9.0, 1.0, 2.0], 2.0)] {
            assert!((median(values) - middle).abs() < 1e-12);
        }
        assert!(median(&[]).is_nan());
    }

    #[test]
    fn the_order_of_the_ways_rotates() {
        let order = std::cell::RefCell::new(String::new());
        let way = |name: char| {
            order.borrow_mut().push(name);
            Ok(name)
        };
        let all = rounds(3, [&|| way('a'), &|| way('b')]);
        assert_eq!(all, Ok([vec!['a'; 3], vec!['b'; 3]]));
        assert_eq!(order.into_inner(), "abbaab");
    }
}
