//! Fuzzing: every parser with mutations of its test files, for as long as `cargo xtask fuzz` requests.
//!
//! A parser may accept or reject any input, but must not panic; accepted input must be consistent and survive being
//! stored.

#![expect(clippy::disallowed_macros, reason = "read by developers only")]

use super::*;
use model::{Imported, SplitMix64};
use sys::testing::{cpu_us, fuzz_runs, fuzz_seed};

/// Random numbers by seed, so that findings can be reproduced.
struct Random(SplitMix64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0.next_bits()
    }

    fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % u64::try_from(end.max(1)).unwrap()).unwrap()
    }
}

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

/// Limit of bytes added by a repetition.
const MAX_ADDED: usize = 1 << 17;
/// CPU time of a parser, us: far more than the largest input takes.
const MOST_US: u64 = 120_000_000;

/// Returns a mutation of one of `seeds`.
fn mutated(seeds: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    let mut bytes = seeds[random.below(seeds.len())].clone();
    for _ in 0..=random.below(4) {
        let (from, to) = (random.below(bytes.len() + 1), random.below(bytes.len() + 1));
        let (from, to) = (from.min(to), from.max(to).min(from.min(to) + 200));
        match random.below(8) {
            0 => drop(bytes.drain(from..to)),
            1 => {
                let word = WORDS[random.below(WORDS.len())].as_bytes().to_vec();
                drop(bytes.splice(from..from, word));
            }
            2 => {
                // Replaces a number.
                let digits = bytes[from..].iter().position(u8::is_ascii_digit).map(|at| from + at);
                if let Some(start) = digits {
                    let end =
                        bytes[start..].iter().position(|b| !b.is_ascii_digit()).map_or(bytes.len(), |n| start + n);
                    let word = WORDS[random.below(8)].as_bytes().to_vec();
                    drop(bytes.splice(start..end, word));
                }
            }
            3 if from < bytes.len() => bytes[from] = u8::try_from(random.below(256)).unwrap(),
            4 => {
                let copy = bytes[from..to].to_vec();
                let at = random.below(bytes.len() + 1);
                drop(bytes.splice(at..at, copy));
            }
            5 => bytes.truncate(from),
            // Many repetitions, which reveal superlinear cost.
            6 => {
                let copies = 1 + random.below(MAX_ADDED / (to - from + 1));
                let repeated = bytes[from..to].repeat(copies);
                drop(bytes.splice(from..to, repeated));
            }
            _ => {
                let other = &seeds[random.below(seeds.len())];
                let cut = random.below(other.len() + 1);
                bytes.truncate(from);
                bytes.extend_from_slice(&other[cut..]);
            }
        }
    }
    bytes
}

/// Runs the parser on mutations of the files whose names begin with `prefix`.
fn fuzz(prefix: &str) {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/files");
    let mut files: Vec<_> = std::fs::read_dir(dir).unwrap().flatten().map(|entry| entry.path()).collect();
    files.sort();
    let is_meant = |path: &&PathBuf| path.file_name().unwrap().to_string_lossy().starts_with(prefix);
    let seeds: Vec<_> = files.iter().filter(is_meant).map(|path| std::fs::read(path).unwrap()).collect();
    assert!(!seeds.is_empty(), "no file {prefix}*");
    let seed = fuzz_seed();
    let (mut random, mut runs, mut accepted) = (Random(SplitMix64::new(seed)), 0_u64, 0_u64);
    for run in fuzz_runs(300) {
        let bytes = mutated(&seeds, &mut random);
        let stated =
            ImportOptions { unit: [None, Some(Unit::Ns), Some(Unit::Us)][random.below(3)], ..ImportOptions::default() };
        let began = cpu_us();
        let result = std::panic::catch_unwind(|| {
            let is_accepted = accepted_by(&bytes, &stated);
            assert!(cpu_us() - began < MOST_US, "{} bytes took {} us", bytes.len(), cpu_us() - began);
            is_accepted
        });
        match result {
            Ok(is_accepted) => accepted += u64::from(is_accepted),
            Err(panic) => {
                let path = std::env::temp_dir().join(format!("punctual-fuzz-{prefix}"));
                std::fs::write(&path, &bytes).unwrap();
                eprintln!("{prefix}: run {run} with seed {seed} panics; the file is {}", path.display());
                std::panic::resume_unwind(panic);
            }
        }
        runs += 1;
    }
    eprintln!("{prefix}: {runs} files, {accepted} accepted");
    assert!(accepted > 0 && accepted < runs, "mutations that are all the same to the parser show nothing");
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
            !reason.is_empty() && reason.chars().count() <= MAX_REASON + 3 && reason.chars().all(model::is_plain),
            "{reason:?}"
        );
    }
    let read = read.ok();
    for imported in read.iter().flatten() {
        assert!(!imported.threads.is_empty());
        assert!(imported.threads.iter().all(model::ImportedThread::is_consistent));
        let stored = serde_json::to_string(imported).unwrap();
        // Only lengths are compared: the decimal form of a mean may differ in its last digit.
        let back: Imported = serde_json::from_str(&stored).unwrap();
        assert_eq!(back.threads.len(), imported.threads.len());
    }
    read.is_some()
}

#[test]
fn fuzz_cyclictest() {
    fuzz("cyclictest");
}

#[test]
fn fuzz_jitterdebugger() {
    fuzz("jitterdebugger");
}

#[test]
fn fuzz_rtla() {
    fuzz("rtla");
}

#[test]
fn fuzz_rteval() {
    fuzz("rteval");
}

#[test]
fn fuzz_oslat() {
    fuzz("oslat");
}

#[test]
fn fuzz_xenomai() {
    fuzz("xenomai");
}

#[test]
fn fuzz_latmus() {
    fuzz("latmus");
}

#[test]
fn fuzz_hdr() {
    fuzz("hdr");
}

#[test]
fn fuzz_ros2() {
    fuzz("ros2");
}

#[test]
fn fuzz_samples() {
    fuzz("samples");
}

#[test]
fn fuzz_osadl() {
    fuzz("osadl");
}
