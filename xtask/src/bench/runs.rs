//! Large runs and files: statistics, the page, merging, import.

use super::Setup;
use super::engine::{Finished, Promise, Scratch, each, finish, judge, pair, repeated, rounds, row, run, table, value};
#[path = "../../../crates/punctual/tests/cli/field/webdriver.rs"]
#[expect(dead_code, reason = "the tests do more with a browser")]
mod webdriver;

use punctual_model::{
    Cell, Entry, Episodes, Header, Histogram, Period, Planned, Second, Shard, Slice, Span, SplitMix64, Worst,
};
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A real run, from which large ones are made: records of idle and busy CPUs.
struct Source {
    header: Header,
    entries: Vec<Entry>,
}

impl Source {
    fn measure(setup: &Setup, scratch: &Scratch) -> Result<Source, String> {
        const PLAN: &str = "title = \"bench\"\nrepetitions = 1\nduration = \"2s\"\nwarm_up = \"200ms\"\n\
                            [axes]\nload = [\"none\", \"cpu\"]\npolicy = [\"other\", \"fifo:80\"]\nperiod = [\"1ms\"]\n";
        let (plan, dir) = (scratch.write("plan.toml", PLAN)?, scratch.path("source"));
        run(&setup.program, "run --wait --out", &[&dir, &plan])?;
        let text = fs::read_to_string(dir.join("run.jsonl")).map_err(|err| format!("{}: {err}", dir.display()))?;
        let (header, entries) = text.split_once('\n').unwrap_or_default();
        let damaged = |err: serde_json::Error| format!("{}: {err}", dir.display());
        let entries = entries.lines().map(serde_json::from_str).collect::<Result<_, _>>().map_err(damaged)?;
        Ok(Source { header: serde_json::from_str(header).map_err(damaged)?, entries })
    }

    /// Writes a run of many cells in the order of its seed, or a shard of it. Returns its directory and its size, MB.
    ///
    /// They are copies of the records, under periods that differ by a nanosecond each, because a run has no duplicate
    /// cells. They are written one by one: memory that this process once held would count as that of its children.
    fn multiplied(&self, dir: PathBuf, n: usize, blocks: u32, shard: Option<Shard>) -> Result<(PathBuf, f64), String> {
        let source = |index: usize| &self.entries[index % self.entries.len()];
        let cell = |index: usize| -> Result<Cell, String> {
            let cell = source(index).record.cell.clone();
            let more = u64::try_from(index / self.entries.len()).map_err(|err| err.to_string())?;
            Ok(Cell { period: period(cell.period.ns() + more)?, ..cell })
        };
        let cells = (0..n).map(cell).collect::<Result<_, String>>()?;
        let mut header = Header { cells, shard, ..self.header.clone() };
        header.plan.repetitions = blocks;
        let is_virtual = header.is_virtual();
        let has = |planned: &Planned| shard.is_none_or(|shard| shard.has(planned, n, is_virtual));
        let entries = header.measurements().into_iter().filter(has).map(|planned| {
            let cell = &header.cells[planned.cell_index];
            let mut entry = source(planned.cell_index).clone();
            entry.planned = planned;
            (entry.record.cell_id, entry.record.cell) = (cell.id(), cell.clone());
            entry
        });
        let bytes = write(&dir, &header, entries)?;
        Ok((dir, bytes as f64 / 1e6))
    }

    /// A run of one cell with these latencies, each counted `times` times, as if it had been measured.
    fn one_cell(&self, dir: PathBuf, latencies: &[i64], times: u64) -> Result<PathBuf, String> {
        /// Period and parts of the measurement, and how many of the largest latencies it has.
        const PERIOD_NS: u64 = 100_000;
        const SLICES: u64 = 64;
        const WORST: usize = 1_000;
        let n = latencies.len() as u64;
        let mut entry = self.entries.first().ok_or("the run has no record")?.clone();
        let record = &mut entry.record;
        (record.cell.period, record.cell.duration) = (period(PERIOD_NS)?, Span(n * PERIOD_NS));
        record.measured = record.cell.duration;
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
        let cycles = n.div_ceil(SLICES);
        let slice = |(i, part): (u64, &[i64])| Slice { first_cycle: i * cycles, cycles, histogram: of(part) };
        thread.slices = (0..).zip(latencies.chunks(usize::try_from(cycles).unwrap_or(1))).map(slice).collect();
        let per_second = usize::try_from(Span::SECOND.ns() / PERIOD_NS).unwrap_or(1);
        let second = |(second, part): (u64, &[i64])| {
            let (n, max_ns) = (part.len() as u64 * times, part.iter().copied().max());
            Second { second, n, max_ns, ..Second::default() }
        };
        thread.seconds = (0..).zip(latencies.chunks(per_second)).map(second).collect();
        let worst = latencies.iter().zip(0..).map(|(latency_ns, cycle)| Worst { latency_ns: *latency_ns, cycle });
        thread.worst = worst.collect();
        thread.worst.sort_by(|a, b| b.cmp(a));
        thread.worst.truncate(WORST);
        entry.planned = Planned { block: 0, position: 0, cell_index: 0 };
        let mut header = Header { cells: vec![entry.record.cell.clone()], ..self.header.clone() };
        header.plan.repetitions = 1;
        write(&dir, &header, std::iter::once(entry))?;
        Ok(dir)
    }
}

fn period(ns: u64) -> Result<Period, String> {
    Period::try_from(Span(ns)).map_err(|err| err.to_string())
}

/// Writes a run. Returns its size, bytes.
pub(super) fn write(dir: &Path, header: &Header, entries: impl Iterator<Item = Entry>) -> Result<u64, String> {
    let path = dir.join("run.jsonl");
    let write = || -> std::io::Result<u64> {
        fs::create_dir_all(dir)?;
        let mut file = BufWriter::new(File::create(&path)?);
        writeln!(file, "{}", serde_json::to_string(header)?)?;
        for entry in entries {
            writeln!(file, "{}", serde_json::to_string(&entry)?)?;
        }
        file.flush()?;
        Ok(fs::metadata(&path)?.len())
    };
    write().map_err(|err| format!("{}: {err}", dir.display()))
}

/// `show` and `compare` on large runs, and beside numpy on the same latencies.
pub(super) fn statistics(setup: &Setup) -> Result<(), String> {
    /// The same work in numpy: read the latencies, and compute three quantiles, which are timed separately.
    const NUMPY: &str = "import numpy,sys,time;a=numpy.load(sys.argv[1]);t=time.process_time();\
        q=numpy.quantile(a,[.5,.99,.999]);print(time.process_time()-t)";
    let Setup { program, pairs, .. } = setup;
    let scratch = Scratch::new()?;
    let source = Source::measure(setup, &scratch)?;
    table("statistics: wall-clock time on a machine with nothing else to do, else CPU time");
    let hundred = source.multiplied(scratch.path("hundred"), 100, 12, None)?.0;
    let two = source.multiplied(scratch.path("pair"), 2, 24, None)?.0;
    for (name, words, dir, most_ms) in [
        ("show, 100 cells x 12 blocks", "show", &hundred, 300.0),
        ("compare, 24 blocks", "compare --metric p50", &two, 100.0),
    ] {
        let all = repeated(*pairs, || judge(program, words, &[dir]))?;
        let of = |of: fn(&Finished) -> f64| all.iter().map(of).collect::<Vec<_>>();
        row(&format!("{name}, ms"), &of(|one| one.wall_s * 1e3), Promise::AtMost(most_ms));
        row("  its CPU time, ms", &of(|one| one.cpu_s * 1e3), Promise::None);
        row("  its peak RSS, MB", &of(|one| one.rss_mb), Promise::AtMost(100.0));
    }
    let cpu_ms = |dir: &Path| Ok(judge(program, "show", &[dir])?.cpu_s * 1e3);
    let million = latencies(1_000_000);
    let small = source.one_cell(scratch.path("million"), &million, 1)?;
    let large = source.one_cell(scratch.path("milliard"), &million, 1_000)?;
    let [of_large, of_small] = rounds(*pairs, [&|| cpu_ms(&large), &|| cpu_ms(&small)])?;
    pair("show, CPU ms, 10^9 samples and 10^6", &of_large, &of_small, Promise::AtMost(1.1));

    let many = latencies(10_000_000);
    let dir = source.one_cell(scratch.path("samples"), &many, 1)?;
    let file = scratch.path("samples.npy");
    write_npy(&file, &many)?;
    drop(many);
    let python =
        |script: &str, files: &[&Path]| finish(Command::new("/usr/bin/python3").args(["-c", script]).args(files), b"");
    if python("import numpy", &[]).is_err() {
        println!("beside numpy: not measured; apt-get install python3-numpy");
        return Ok(());
    }
    let ours = || Ok((cpu_ms(&dir)?, 0.0));
    let numpy = || {
        let all = python(NUMPY, &[&file])?;
        Ok((all.cpu_s * 1e3, all.stdout.trim().parse::<f64>().map_err(|err| format!("numpy: {err}"))? * 1e3))
    };
    let [ours, numpy] = rounds(*pairs, [&ours, &numpy])?;
    let of = |both: &[(f64, f64)], of: fn(&(f64, f64)) -> f64| both.iter().map(of).collect::<Vec<_>>();
    let shown = of(&ours, |one| one.0);
    pair("show a cell of 10^7 / numpy, CPU ms", &shown, &of(&numpy, |one| one.0), Promise::AtMost(0.05));
    pair("show / quantiles of numpy alone, CPU ms", &shown, &of(&numpy, |one| one.1), Promise::AtMost(0.05));
    Ok(())
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

/// The latencies in numpy's fastest input format (NPY, version 1.0).
fn write_npy(path: &Path, latencies: &[i64]) -> Result<(), String> {
    let mut head = format!("{{'descr': '<i8', 'fortran_order': False, 'shape': ({},), }}", latencies.len());
    while (head.len() + 11) % 64 != 0 {
        head.push(' ');
    }
    head.push('\n');
    let write = || -> std::io::Result<()> {
        let mut file = BufWriter::new(File::create(path)?);
        file.write_all(b"\x93NUMPY\x01\x00")?;
        file.write_all(&u16::try_from(head.len()).unwrap_or(0).to_le_bytes())?;
        file.write_all(head.as_bytes())?;
        latencies.iter().try_for_each(|latency| file.write_all(&latency.to_le_bytes()))?;
        file.flush()
    };
    write().map_err(|err| format!("{}: {err}", path.display()))
}

/// The HTML page of a run: time to write it, its size, and the longest task of a browser that opens it.
pub(super) fn report(setup: &Setup) -> Result<(), String> {
    let scratch = Scratch::new()?;
    let source = Source::measure(setup, &scratch)?;
    for (cells, blocks, seconds, bytes) in [(100, 12, 1.0, Promise::AtMost(1e6)), (10_000, 1, 10.0, Promise::None)] {
        let (dir, megabytes) = source.multiplied(scratch.path("many"), cells, blocks, None)?;
        let page = scratch.path("page.html");
        let made = || Ok(run(&setup.program, "report", &[&dir, Path::new("-o"), &page])?.wall_s);
        table(format_args!("report of {cells} cells x {blocks} ({megabytes:.0} MB of records)"));
        row("page, s", &repeated(setup.pairs, made)?, Promise::AtMost(seconds));
        value("its bytes", fs::metadata(&page).map_err(|err| err.to_string())?.len() as f64, bytes);
        match webdriver::Browser::start() {
            Ok(browser) => {
                value("longest task of a browser (below 50: none), ms", opened(&browser, &page), Promise::AtMost(200.0))
            }
            Err(reason) => println!("not opened: {reason}"),
        }
        fs::remove_dir_all(&dir).map_err(|err| err.to_string())?;
    }
    Ok(())
}

/// Longest task, ms, of opening the page and scrolling through it.
fn opened(browser: &webdriver::Browser, page: &Path) -> f64 {
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
    longest.as_f64().unwrap_or(f64::NAN)
}

/// Merging of shards: time and memory for 10 000 measurements in four shards.
pub(super) fn merge(setup: &Setup) -> Result<(), String> {
    let scratch = Scratch::new()?;
    let source = Source::measure(setup, &scratch)?;
    let first: Shard = "1/4".parse().map_err(|err: punctual_model::ShardError| err.to_string())?;
    let (mut dirs, mut megabytes) = (Vec::new(), 0.0);
    for (n, shard) in first.all().enumerate() {
        let (dir, size) = source.multiplied(scratch.path(&format!("shard-{n}")), 2_500, 4, Some(shard))?;
        dirs.push(dir);
        megabytes += size;
    }
    let out = scratch.path("out");
    let merged = || {
        let mut paths: Vec<_> = dirs.iter().map(PathBuf::as_path).collect();
        paths.extend([Path::new("--out"), &out]);
        let finished = run(&setup.program, "merge", &paths);
        let _ = fs::remove_dir_all(&out);
        finished
    };
    table(format_args!("merge of 10 000 measurements in four shards ({megabytes:.0} MB)"));
    let all = repeated(setup.pairs, merged)?;
    row("s", &all.iter().map(|one| one.wall_s).collect::<Vec<_>>(), Promise::AtMost(10.0));
    row("peak RSS, MB", &all.iter().map(|one| one.rss_mb).collect::<Vec<_>>(), Promise::AtMost(300.0));
    Ok(())
}

/// Bytes of a record of jitterdebugger, and records of a large file, 400 MB.
const RECORD: usize = 28;
const LARGE: u64 = 400_000_000 / RECORD as u64;

/// Import of a large `samples.raw` of jitterdebugger: speed, memory, and comparison with a conversion to CSV in Python.
pub(super) fn import(setup: &Setup) -> Result<(), String> {
    /// Conversion of a file as `jittersamples` does it, in pure Python and to /dev/null: a line `CPU;SECONDS;LATENCY`
    /// for each record.
    const PYTHON: &str = include_str!("conversion.py");
    let scratch = Scratch::new()?;
    let (large, small) = (scratch.path("large.raw"), scratch.path("small.raw"));
    write_samples(&large, LARGE).and_then(|()| write_samples(&small, LARGE / 10)).map_err(|err| err.to_string())?;
    let import = |file: &Path| {
        let out = scratch.path("imported");
        let finished = run(&setup.program, "import", &[file, Path::new("--out"), &out]);
        let _ = fs::remove_dir_all(&out);
        finished
    };
    let python = || finish(Command::new("/usr/bin/python3").args(["-c", PYTHON]).arg(&large), b"");
    let ways: [&dyn Fn() -> _; 3] = [&|| import(&large), &python, &|| import(&small)];
    let [ours, python, of_small] = rounds(setup.pairs, ways)?;
    let megabytes = (LARGE * RECORD as u64) as f64 / 1e6;
    table(format_args!("import of samples.raw, {megabytes:.0} MB"));
    let rates: Vec<_> = ours.iter().map(|ours| megabytes / ours.wall_s).collect();
    row("MB a second, wall-clock time", &rates, Promise::AtLeast(100.0));
    let ratios = each(&python, &ours, |python, ours| python.cpu_s / ours.cpu_s);
    row("CPU time of Python's conversion / ours", &ratios, Promise::AtLeast(20.0));
    memory(&ours, &ours, &of_small);
    Ok(())
}

/// Memory for a file, and its growth over that for a tenth of the file, which is to be none.
pub(super) fn memory(ours: &[Finished], large: &[Finished], small: &[Finished]) {
    let growth = each(large, small, |large, small| large.rss_mb / small.rss_mb);
    row("peak RSS / that of a tenth of the file", &growth, Promise::AtMost(1.1));
    row("  peak RSS, MB", &ours.iter().map(|one| one.rss_mb).collect::<Vec<_>>(), Promise::None);
}

/// Writes a file as `jitterdebugger -s -i 1000` does on four CPUs: a latency of 3 us to 2 ms, most of them small.
fn write_samples(path: &Path, records: u64) -> std::io::Result<()> {
    const SECOND_NS: u64 = 1_000_000_000;
    let mut file = BufWriter::with_capacity(1 << 20, File::create(path)?);
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
