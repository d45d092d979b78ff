//! Recordings of planted faults, for the tests of the gate that judge them again: `make captures` renews them.

use crate::program::{Scratch, command, machine_and_scratch, run, skip_unless};
use crate::pure::replays::{SPIKES, WHOLE, directory, file_of, whole_file};
use crate::servo::{
    Fault, Program, QUOTA, all_faults, explained, group_with_quota, is_of, is_possible, may_watch, words_in,
};
use punctual_ftrace::DatFile;
use punctual_model::{CaptureFile, ExplainRecord};
use std::collections::HashMap;
use std::path::Path;
use std::process::Command;

/// Attempts at each recording.
const ATTEMPTS: usize = 10;
/// Most bytes of a recording.
const MOST_BYTES: u64 = 300_000;

/// Watches the thread with a fault; keeps the smallest recording in which it is to blame.
fn record(scratch: &Scratch, words: &[String], fault: &Fault) {
    let (_, thread) = fault.program.names();
    let policy = if fault.program == Program::Python { "--policy fifo:80" } else { "" };
    for attempt in 0..ATTEMPTS {
        let out = scratch.path(&format!("{}-{attempt}", fault.name));
        let options =
            format!("watch --for 1500ms --keep 60 --wait --format json {policy} --thread {thread} --stacks --out");
        let said = run(command(&options).arg(&out).arg("--").args(words));
        let Some(all) = explained(&said) else { continue };
        let blamed = all.worst.iter().filter(|one| one.blame().is_some_and(|share| is_of(share, fault)));
        let captured = blamed.filter_map(|one| Some(out.join("captures").join(one.capture.as_ref()?)));
        let sized = captured.map(|path| (std::fs::metadata(&path).unwrap().len(), path));
        if let Some((_, path)) = sized.min().filter(|(bytes, _)| *bytes <= MOST_BYTES) {
            std::fs::copy(path, directory().join(file_of(fault))).unwrap();
            return;
        }
    }
    panic!("{}: not blamed in {ATTEMPTS} attempts", fault.name);
}

/// Records all that happens while the example has a fault, beside what keeps the machine busy.
fn record_whole(scratch: &Scratch, servo: &Path, (name, seconds, busy): (&str, &str, &str)) {
    let path = scratch.path(name);
    let both = format!("{busy} >/dev/null 2>&1 & exec timeout {seconds} \"$@\"");
    let mut capture = command("capture --for 1h --output");
    capture.arg(&path).args(["--", "sh", "-c", &both, "sh"]);
    run(capture.args(Program::Servo.words(servo, "sleep")));
    let kept = scratch.path(&format!("{name}.dat"));
    std::fs::write(&kept, with_few_functions(&path)).unwrap();
    run(Command::new("gzip").arg("-9n").arg(&kept)).expect_success();
    let packed = std::fs::read(kept.with_extension("dat.gz")).unwrap();
    assert!(packed.len() as u64 <= MOST_BYTES, "{name}: {} bytes; record it while less happens", packed.len());
    std::fs::write(directory().join(whole_file(name)), packed).unwrap();
}

/// The file with the functions and threads that are in its events: those of the whole kernel are megabytes.
fn with_few_functions(path: &Path) -> Vec<u8> {
    let mut file = DatFile::open(std::fs::File::open(path).unwrap()).unwrap();
    let pages: Vec<Vec<u8>> = (0..file.buffers[0].n_cpus()).map(|cpu| file.pages(0, cpu).unwrap()).collect();
    let decoder = file.head.layouts.decoder().unwrap();
    let mut trace = decoder.begin(pages.len());
    for (cpu, pages) in pages.iter().enumerate() {
        decoder.read(&mut trace, cpu, pages);
    }
    let all: HashMap<u64, String> = file.head.functions.drain(..).collect();
    file.head.functions = punctual_ftrace::functions(&trace, &|address| all.get(&address).cloned());
    file.head.names.clear();
    file.head.file(&[("", &pages)])
}

/// The faults to record now, if any: their names, or `all`.
fn wanted() -> Option<String> {
    std::env::var("PUNCTUAL_CAPTURES").ok()
}

/// Keeps the smallest capture of a cell whose spike is blamed on the cause of this series, if recordings are wanted.
pub(crate) fn save(series: &str, explained: &ExplainRecord) {
    let is_wanted = |wanted: String| wanted == "all" || wanted.split(' ').any(|name| name == "explain");
    if !wanted().is_some_and(is_wanted) {
        return;
    }
    let spike = SPIKES.iter().find(|spike| spike.series == series).expect("a series that is recorded");
    let blamed = explained.worst.iter().filter(|one| one.blame().is_some_and(|share| spike.is_meant(share)));
    let captured =
        blamed.filter_map(|one| explained.captures.iter().find(|file| Some(&file.name) == one.capture.as_ref()));
    let contents = captured.filter_map(CaptureFile::content);
    if let Some(smallest) = contents.min_by_key(Vec::len) {
        std::fs::write(directory().join(spike.file()), smallest).unwrap();
    }
}

#[test]
#[ignore = "host: records planted faults, on request"]
fn root_planted_faults_are_recorded() {
    skip_unless!(may_watch());
    let Some(wanted) = wanted() else {
        eprintln!("skipped: records only with PUNCTUAL_CAPTURES (make captures)");
        return;
    };
    let (_machine, scratch) = machine_and_scratch("captures");
    let is_wanted = |name: &str| wanted == "all" || wanted.split(' ').any(|word| word == name);
    for program in [Program::Servo, Program::Blamed, Program::Python] {
        let path = program.compiled(&scratch, &["-g"]);
        let faults = all_faults().filter(|fault| fault.program == program && is_wanted(fault.name));
        for fault in faults.filter(|fault| is_possible(fault)) {
            let group = (fault.name == QUOTA.name).then(group_with_quota).flatten();
            match group {
                Some(group) => record(&scratch, &words_in(&group, &path), fault),
                None => record(&scratch, &program.words(&path, fault.name), fault),
            }
        }
        for whole in WHOLE.into_iter().filter(|(name, ..)| program == Program::Servo && is_wanted(name)) {
            record_whole(&scratch, &path, whole);
        }
    }
}
