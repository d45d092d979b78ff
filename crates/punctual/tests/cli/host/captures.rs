//! Recordings of planted faults, for the tests of the gate that judge them again: `make captures` renews them.

use crate::program::{Scratch, command, machine_and_scratch, run, skip_unless};
use crate::pure::replays::{SPIKES, directory, file_of};
use crate::servo::{FAULTS, Fault, KINDS, Program, explained, is_of, is_possible, may_watch};
use model::{CaptureFile, ExplainRecord};
use std::path::Path;

/// Attempts at each recording.
const ATTEMPTS: usize = 10;

/// Watches the thread with a fault; keeps the smallest recording in which it is to blame.
fn record(scratch: &Scratch, program: &Path, fault: &Fault) {
    let (_, thread) = fault.program.names();
    for attempt in 0..ATTEMPTS {
        let out = scratch.path(&format!("{}-{attempt}", fault.name));
        let options = format!("watch --for 1500ms --keep 60 --wait --format json --thread {thread} --stacks --out");
        let said = run(command(&options).arg(&out).arg("--").args(fault.program.words(program, fault.name)));
        let Some(all) = explained(&said) else { continue };
        let blamed = all.worst.iter().filter(|one| one.blame().is_some_and(|share| is_of(share, fault)));
        let captured = blamed.filter_map(|one| Some(out.join("captures").join(one.capture.as_ref()?)));
        let sized = captured.map(|path| (std::fs::metadata(&path).unwrap().len(), path));
        if let Some((_, path)) = sized.min() {
            std::fs::copy(path, directory().join(file_of(fault))).unwrap();
            return;
        }
    }
    panic!("{}: not blamed in {ATTEMPTS} attempts", fault.name);
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
    let is_wanted = |fault: &&Fault| wanted == "all" || wanted.split(' ').any(|name| name == fault.name);
    for program in [Program::Servo, Program::Blamed] {
        let path = program.compiled(&scratch, &["-g"]);
        let faults = FAULTS.iter().chain(&KINDS).filter(|fault| fault.program == program);
        faults.filter(is_wanted).filter(|fault| is_possible(fault)).for_each(|fault| record(&scratch, &path, fault));
    }
}
