//! The HTML page of a run: time to write it, its size, and the longest task of a browser that opens it.

use super::{CONFIDENCE, judged, median};
#[path = "../../../crates/punctual/tests/cli/field/webdriver.rs"]
#[expect(dead_code, reason = "the tests do more with a browser")]
mod webdriver;

use analysis::median_interval;
use model::{Cell, Entry, Header, Period, Span};
use std::fs::{self, File};
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

/// Promises for a run with this number of cells and blocks: seconds, and bytes where there is a limit.
const SIZES: [(usize, u32, f64, Option<f64>); 2] = [(100, 12, 1.0, Some(1e6)), (10_000, 1, 10.0, None)];

/// Longest task of a browser that opens a page, ms.
const LONGEST_TASK_MS: f64 = 200.0;

/// Measured once, as the source of all cells: real records, of idle and busy CPUs.
const PLAN: &str = "title = \"bench\"\nrepetitions = 1\nduration = \"2s\"\nwarm_up = \"200ms\"\n\
                    [axes]\nload = [\"none\", \"cpu\"]\npolicy = [\"other\", \"fifo:80\"]\nperiod = [\"1ms\"]\n";

/// Creates the runs and prints the costs of their pages.
pub(super) fn report(program: &Path, pairs: u64) -> Result<(), String> {
    let dir = std::env::temp_dir().join(format!("punctual-bench-report-{}", std::process::id()));
    fs::create_dir_all(&dir).map_err(|err| err.to_string())?;
    let result = in_directory(&dir, program, pairs);
    let _ = fs::remove_dir_all(&dir);
    result
}

fn in_directory(dir: &Path, program: &Path, pairs: u64) -> Result<(), String> {
    let source = source(dir, program)?;
    for (cells, blocks, seconds, bytes) in SIZES {
        let (run_dir, page) = (dir.join(format!("{cells}")), dir.join(format!("{cells}.html")));
        let size = fabricate(&source, &run_dir, cells, blocks)?;
        let times = (0..pairs).map(|_| made(program, &run_dir, &page)).collect::<Result<Vec<_>, String>>()?;
        let said = match median_interval(&times, CONFIDENCE) {
            Some((lower, middle, upper)) => {
                format!("{middle:.2} s [{lower:.2}-{upper:.2}]  <= {seconds} {}", judged(lower, upper, seconds))
            }
            None => format!("{:.2} s (6 pairs at least)", median(times.into_iter())),
        };
        println!("\nreport of {cells} cells x {blocks} ({:.0} MB of records): {said}", size as f64 / 1e6);
        let bytes_made = fs::metadata(&page).map_err(|err| err.to_string())?.len() as f64;
        let limit =
            bytes.map(|limit| format!("  <= {limit:.0} {}", judged(bytes_made, bytes_made, limit))).unwrap_or_default();
        println!("  the page has {bytes_made:.0} bytes{limit}");
        println!("  {}", opened(&page));
        fs::remove_dir_all(&run_dir).map_err(|err| err.to_string())?;
    }
    Ok(())
}

/// Measures the records of which large runs are made; returns the directory of the run.
pub(super) fn source(dir: &Path, program: &Path) -> Result<PathBuf, String> {
    let (plan, source) = (dir.join("plan.toml"), dir.join("source"));
    fs::write(&plan, PLAN).map_err(|err| err.to_string())?;
    run(Command::new(program).arg("run").arg(&plan).arg("--wait").arg("--out").arg(&source))?;
    Ok(source)
}

/// Creates a run of many cells in the order of its seed. Returns its size in bytes.
///
/// They are copies of the records of `source`, under periods that differ by a nanosecond each, because a run has no
/// duplicate cells.
pub(super) fn fabricate(source: &Path, dir: &Path, n_cells: usize, blocks: u32) -> Result<u64, String> {
    let failed = |err: std::io::Error| err.to_string();
    let file = BufReader::new(File::open(source.join("run.jsonl")).map_err(failed)?);
    let mut lines = file.lines();
    let header = lines.next().ok_or("an empty run")?.map_err(failed)?;
    let mut header: Header = serde_json::from_str(&header).map_err(|err| err.to_string())?;
    let entries =
        lines.map(|line| serde_json::from_str::<Entry>(&line.map_err(failed)?).map_err(|err| err.to_string()));
    let entries = entries.collect::<Result<Vec<_>, String>>()?;
    let cell = |index: usize| -> Result<Cell, String> {
        let cell = entries[index % entries.len()].record.cell.clone();
        let nanosecond = u64::try_from(index / entries.len()).map_err(|err| err.to_string())?;
        let period = Period::try_from(Span(cell.period.ns() + nanosecond)).map_err(|err| err.to_string())?;
        Ok(Cell { period, ..cell })
    };
    header.cells = (0..n_cells).map(cell).collect::<Result<_, String>>()?;
    header.plan.repetitions = blocks;
    fs::create_dir_all(dir).map_err(failed)?;
    let path = dir.join("run.jsonl");
    let mut out = BufWriter::new(File::create(&path).map_err(failed)?);
    let mut write = |line: Vec<u8>| out.write_all(&line).and_then(|()| out.write_all(b"\n")).map_err(failed);
    write(serde_json::to_vec(&header).map_err(|err| err.to_string())?)?;
    for planned in header.measurements() {
        let cell = &header.cells[planned.cell_index];
        let mut entry = entries[planned.cell_index % entries.len()].clone();
        entry.planned = planned;
        (entry.record.cell_id, entry.record.cell) = (cell.id(), cell.clone());
        write(serde_json::to_vec(&entry).map_err(|err| err.to_string())?)?;
    }
    out.flush().map_err(failed)?;
    Ok(fs::metadata(&path).map_err(failed)?.len())
}

/// Time to write the page, s.
fn made(program: &Path, run_dir: &Path, page: &PathBuf) -> Result<f64, String> {
    let started = Instant::now();
    run(Command::new(program).arg("report").arg(run_dir).arg("-o").arg(page))?;
    Ok(started.elapsed().as_secs_f64())
}

fn run(command: &mut Command) -> Result<(), String> {
    let output = command.stdin(Stdio::null()).output().map_err(|err| err.to_string())?;
    let said = || String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.success() { Ok(()) } else { Err(format!("punctual: {}", said())) }
}

/// Results of opening the page and scrolling through it.
fn opened(page: &Path) -> String {
    let browser = match webdriver::Browser::start() {
        Ok(browser) => browser,
        Err(reason) => return format!("not opened: {reason}"),
    };
    browser.look(1280, 900, false);
    browser.open(page);
    let longest = browser.wait_for(
        "let longest = 0;
         new PerformanceObserver(list => list.getEntries().forEach(task => longest = Math.max(longest, task.duration)))
           .observe({ type: 'longtask', buffered: true });
         let y = 0;
         const step = () => {
           scrollTo(0, y += 2000);
           if (y < document.documentElement.scrollHeight && y < 400000) requestAnimationFrame(step);
           else setTimeout(() => done(longest), 500);
         };
         setTimeout(step, 500);",
    );
    let longest = longest.as_f64().unwrap_or(f64::NAN);
    let kept = judged(longest, longest, LONGEST_TASK_MS);
    format!("longest task while opening and scrolling: {longest:.0} ms (below 50: none)  <= {LONGEST_TASK_MS} {kept}")
}
