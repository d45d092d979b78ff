//! Fuzzing: every parser with mutations of its test files, for as long as `cargo xtask fuzz` requests.
//!
//! A parser may accept or reject any input, but must not panic; accepted input must be consistent and survive being
//! stored.

use super::error::MAX_REASON;
use super::*;
use punctual_sys::testing::{fuzz, mutate};
use std::path::PathBuf;

/// Words that are likely to trigger parser errors.
const WORDS: [&str; 25] = [
    "18446744073709551615",
    "9223372036854775807",
    "-9223372036854775808",
    "-1",
    "0",
    "4294967296",
    "1e308",
    "nan",
    "inf",
    "-",
    ":",
    "|",
    "\t",
    "\n",
    "#",
    "T:",
    "over:",
    "Index",
    "\x1b[2A",
    "<a b='",
    "<!--",
    "root@x:~# cyclictest -p80 -Up99 '' -h",
    "0.5",
    "# ----lat min|",
    "\u{fffd}",
];

/// Runs the parser on mutations of the files whose names begin with `prefix`.
fn fuzz_files(prefix: &str) {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/files");
    let mut files: Vec<_> = std::fs::read_dir(dir).unwrap().flatten().map(|entry| entry.path()).collect();
    files.sort();
    let is_meant = |path: &&PathBuf| path.file_name().unwrap().to_string_lossy().starts_with(prefix);
    let seeds: Vec<_> = files.iter().filter(is_meant).map(|path| std::fs::read(path).unwrap()).collect();
    assert!(!seeds.is_empty(), "no file {prefix}*");
    let words = WORDS.map(str::as_bytes);
    let tried = |bytes: &[u8]| {
        let unit = [None, Some(Unit::Ns), Some(Unit::Us)][bytes.len() % 3];
        accepted_by(bytes, &ImportOptions { unit, ..ImportOptions::default() })
    };
    fuzz(prefix, 300, false, |random| mutate(&seeds, &words, random), tried);
}

/// Whether the input is accepted; the result must be consistent, and an error one line.
fn accepted_by(bytes: &[u8], stated: &ImportOptions) -> bool {
    let read = match detect::content(&bytes[..bytes.len().min(512)]) {
        Ok(Content::Raw) => raw::read(bytes, bytes.len() as u64, "x", stated).map_err(|err| match err {
            raw::RawError::ParseError(err) => err,
            raw::RawError::Io(err) => panic!("{err}"),
        }),
        Ok(Content::Text) => text(bytes, "x", stated),
        Err(err) => Err(err),
    };
    if let Err(ParseError { reason, .. }) = &read {
        assert!(
            !reason.is_empty()
                && reason.chars().count() <= MAX_REASON + 3
                && reason.chars().all(punctual_model::is_plain),
            "{reason:?}"
        );
    }
    let read = read.ok();
    for imported in read.iter().flatten() {
        assert!(!imported.threads.is_empty());
        assert!(imported.threads.iter().all(punctual_model::ImportedThread::is_consistent));
        let stored = serde_json::to_string(imported).unwrap();
        // Only lengths are compared: the decimal form of a mean may differ in its last digit.
        let back: Imported = serde_json::from_str(&stored).unwrap();
        assert_eq!(back.threads.len(), imported.threads.len());
    }
    read.is_some()
}

#[test]
fn fuzz_cyclictest() {
    fuzz_files("cyclictest");
}

#[test]
fn fuzz_jitterdebugger() {
    fuzz_files("jitterdebugger");
}

#[test]
fn fuzz_rtla() {
    fuzz_files("rtla");
}

#[test]
fn fuzz_rteval() {
    fuzz_files("rteval");
}

#[test]
fn fuzz_oslat() {
    fuzz_files("oslat");
}

#[test]
fn fuzz_xenomai() {
    fuzz_files("xenomai");
}

#[test]
fn fuzz_latmus() {
    fuzz_files("latmus");
}

#[test]
fn fuzz_hdr() {
    fuzz_files("hdr");
}

#[test]
fn fuzz_ros2() {
    fuzz_files("ros2");
}

#[test]
fn fuzz_samples() {
    fuzz_files("samples");
}

#[test]
fn fuzz_osadl() {
    fuzz_files("osadl");
}
