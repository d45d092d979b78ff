//! Mutated runs and imports, read, judged and shown in every format, for as long as `cargo xtask fuzz` requests.
//!
//! Inputs may be accepted or refused, but nothing may panic: in a release build that is an abort. Overflowing sums of
//! impossible numbers wrap there; they are counted and pass. `PUNCTUAL_FUZZ_RUNS` names a directory with real runs to
//! mutate.

use super::*;
use punctual_analysis::comparison::{self, Question};
use punctual_analysis::testing::RunBuilder;
use punctual_host::testing::Scratch;
use punctual_import::{ImportOptions, Unit, import};
use punctual_model::{ImportHeader, Plan, Span};
use punctual_report::{ImportedSet, html};
use punctual_sys::testing::{Random, fuzz, mutate as mutate_bytes};
use serde_json::Value;
use std::path::PathBuf;

/// Values at the limits of arithmetic, dates and layouts.
fn strange(random: &mut Random) -> Value {
    let numbers: [Value; 12] = [
        0.into(),
        1.into(),
        (-1).into(),
        u64::MAX.into(),
        i64::MAX.into(),
        i64::MIN.into(),
        u32::MAX.into(),
        Span::MAX.ns().into(),
        punctual_model::LAST_UNIX_MS.into(),
        (punctual_model::LAST_UNIX_MS + 1).into(),
        1e308.into(),
        (-0.5).into(),
    ];
    let others = [Value::Null, "".into(), "\n\u{1b}[2J\u{202e}".into(), true.into(), Value::Array(Vec::new())];
    if random.below(4) > 0 { random.one(&numbers).clone() } else { random.one(&others).clone() }
}

/// Changes one value at random depth.
fn mutate(value: &mut Value, random: &mut Random) {
    let length = match value {
        Value::Array(items) => items.len(),
        Value::Object(members) => members.len(),
        _ => 0,
    };
    // Most values are deep; each level ends the descent with the same chance.
    if length == 0 || random.below(12) == 0 {
        *value = match value {
            Value::Number(number) if random.below(2) == 0 => {
                let near = number.as_i64().unwrap_or(0);
                random
                    .one(&[near.wrapping_add(1), near.wrapping_neg(), near.wrapping_mul(1000), near / 1000])
                    .to_owned()
                    .into()
            }
            _ => strange(random),
        };
        return;
    }
    let at = random.below(length);
    match value {
        Value::Array(items) => match random.below(8) {
            0 => drop(items.remove(at)),
            1 => items.insert(at, items[random.below(length)].clone()),
            2 => items.swap(at, random.below(length)),
            _ => mutate(&mut items[at], random),
        },
        Value::Object(members) => {
            let key = members.keys().nth(at).unwrap().clone();
            if random.below(20) == 0 {
                members.remove(&key);
            } else {
                mutate(members.get_mut(&key).unwrap(), random);
            }
        }
        _ => {}
    }
}

/// The lines of a run file.
fn run() -> Vec<Value> {
    let mut run = RunBuilder::new();
    run.cell("none", "other").cell("messaging", "fifo:80").require("max=1ms,p99=200us,misses_per_hour=1");
    run.header.plan.repetitions = 6;
    for block in 0..6 {
        for cell in 0..2 {
            run.measure(block, cell, |cpu, cycle| {
                i64::try_from(cycle * 37 % 5_000).unwrap() + i64::from(cpu) * 900_000
            });
        }
    }
    let entries = run.entries.iter().map(|entry| serde_json::to_value(entry).unwrap());
    std::iter::once(serde_json::to_value(&run.header).unwrap()).chain(entries).collect()
}

fn imports() -> Vec<Value> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../import/tests/files");
    let read = |name: &str| {
        import(&dir.join(name), &ImportOptions { unit: Some(Unit::Us), ..ImportOptions::default() }).unwrap()
    };
    let mut require = punctual_model::Requirement::default();
    require.set_all("max=1ms,p99=200us").unwrap();
    let header = ImportHeader {
        format: punctual_model::RUN_FORMAT,
        tool: "t".to_owned(),
        imported_unix_ms: 1_790_000_000_000,
        title: "t".to_owned(),
        require,
    };
    let measurements = ["cyclictest-h.txt", "jitterdebugger-us.raw", "rteval-cyclictest.xml"].map(read).concat();
    let measurements = measurements.iter().map(|measurement| serde_json::to_value(measurement).unwrap());
    std::iter::once(serde_json::to_value(header).unwrap()).chain(measurements).collect()
}

const FORMATS: [RunFormat; 10] = [
    RunFormat::Text,
    RunFormat::Json,
    RunFormat::Csv,
    RunFormat::Md,
    RunFormat::Junit,
    RunFormat::Tap,
    RunFormat::Lava,
    RunFormat::Hgrm,
    RunFormat::Gnuplot,
    RunFormat::Prom,
];

/// Shows the results in every format, on a page, and side by side with themselves.
fn show_all(results: Results<'_>) {
    for format in FORMATS {
        let _ = document(&results, OutputOptions { all_findings: true, spikes: usize::MAX, ..format.into() });
    }
    html(&[results]);
    html(&[results, results]);
}

/// Runs the analysis and output of all commands on a run; returns whether its header was readable.
fn is_shown(dir: &Path) -> bool {
    let Ok(run) = punctual_store::read(dir) else { return false };
    let (header, entries) = (&run.header, &run.entries[..]);
    let summary = punctual_analysis::summarise(header, entries);
    show_all(Results::Own(OwnRun { name: "r", header, entries, summary: &summary }));
    if header.cells.len() > 1 {
        let _ = comparison::compare_cells(header, entries, 0, 1, &Question::default());
    }
    let again = &mut punctual_analysis::summarise(header, entries);
    let _ = punctual_analysis::check_against(again, (header, entries), (header, entries), &Question::default());
    run.damage.iter().for_each(|damage| assert!(!damage.to_string().is_empty()));
    true
}

/// Runs the analysis and output of all commands on imported measurements.
fn is_import_shown(dir: &Path) -> bool {
    let Ok(Some(run)) = punctual_store::read_imported(dir) else { return false };
    let summary = punctual_analysis::summarise_imported(&run.measurements, &run.header.require);
    show_all(Results::Imported(ImportedSet { name: "r", header: &run.header, summary: &summary }));
    if let [a, b, ..] = &summary.cells[..] {
        let _ = comparison::compare_imported(a, b, &Question::default());
    }
    true
}

/// A file with some values changed and sometimes one bit flipped. Checksums are omitted, because they would reject most
/// changes.
fn changed(lines: &[Value], random: &mut Random) -> Vec<u8> {
    let mut lines = lines.to_vec();
    for _ in 0..=random.below(3) {
        let at = random.below(lines.len());
        mutate(&mut lines[at], random);
    }
    let mut bytes = lines.iter().map(|line| line.to_string() + "\n").collect::<String>().into_bytes();
    if random.below(4) == 0 {
        let at = random.below(bytes.len());
        bytes[at] ^= 1 << random.below(8);
    }
    bytes
}

fn lines_of(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap();
    let line = |line: &str| {
        let mut line: Value = serde_json::from_str(line).unwrap();
        line.as_object_mut().unwrap().remove("xxh3");
        line
    };
    text.lines().map(line).collect()
}

/// Real runs, if a directory is given.
fn real_runs() -> Vec<Vec<Value>> {
    let dir = std::env::var_os("PUNCTUAL_FUZZ_RUNS").map(PathBuf::from);
    let found = dir.map(|dir| punctual_store::below(&dir).unwrap().0).unwrap_or_default();
    found
        .iter()
        .map(|found| found.dir.join("run.jsonl"))
        .filter(|file| file.exists())
        .map(|file| lines_of(&file))
        .collect()
}

#[test]
fn fuzz_runs() {
    let seeds: Vec<_> = std::iter::once(run()).chain(real_runs()).collect();
    let scratch = Scratch::make();
    let tried = |bytes: &[u8]| {
        std::fs::write(scratch.path("run.jsonl"), bytes).unwrap();
        is_shown(&scratch.path(""))
    };
    fuzz("runs", 40, true, |random| changed(&random.one(&seeds).clone(), random), tried);
}

#[test]
fn fuzz_imports() {
    let (seed, scratch) = (imports(), Scratch::make());
    let tried = |bytes: &[u8]| {
        std::fs::write(scratch.path("imported.jsonl"), bytes).unwrap();
        is_import_shown(&scratch.path(""))
    };
    fuzz("imports", 40, true, |random| changed(&seed, random), tried);
}

#[test]
fn fuzz_plans() {
    let plans = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../plans");
    let mut paths: Vec<_> = std::fs::read_dir(plans).unwrap().flatten().map(|entry| entry.path()).collect();
    paths.sort();
    let seeds: Vec<_> = paths.iter().map(|path| std::fs::read(path).unwrap()).collect();
    let words: [&[u8]; 8] = [b"18446744073709551615", b"-1", b"1e308", b"\"", b"[[", b"366d", b"\\u001b", b"\xff"];
    let tried = |bytes: &[u8]| {
        let Ok(plan) = Plan::parse(&String::from_utf8_lossy(bytes)) else { return false };
        assert_eq!(Plan::parse(&plan.to_toml()), Ok(plan.clone()), "a plan says itself again");
        let machine = punctual_campaign::Machine {
            cpus: [0, 1].into_iter().collect(),
            lock_memory: true,
            dma_latency: true,
            may_have: &|_| true,
            why_not: &|_| None,
            why_no_load: &|_| None,
        };
        let _ = punctual_campaign::expand(&plan, &machine);
        true
    };
    fuzz("plans", 40, true, |random| mutate_bytes(&seeds, &words, random), tried);
}

#[test]
fn fuzz_cells() {
    let mut run = RunBuilder::new();
    run.cell("messaging", "deadline:1ms/10ms/10ms").cell("disk:/tmp", "fifo:80");
    let seeds: Vec<_> = run.header.cells.iter().map(|cell| serde_json::to_value(cell).unwrap()).collect();
    let tried = |bytes: &[u8]| {
        let Ok(cell) = punctual_model::json::cell(bytes) else { return false };
        let _ = cell.check().and_then(|()| cell.check_on(&[0, 1].into_iter().collect()));
        let _ = (cell.label(), cell.id(), cell.period.cycles_in(cell.duration));
        true
    };
    fuzz("cells", 40, true, |random| changed(&[random.one(&seeds).clone()], random), tried);
}
