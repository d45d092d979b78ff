//! Fuzzing with malformed pages, for as long as `cargo xtask fuzz` requests.
//!
//! Reader, decoder and analysis run against mutations: nothing may panic, and an explanation has to add up for any
//! input.

#![expect(clippy::disallowed_macros, reason = "read by developers only")]

use super::capture::tests::capture;
use super::recorded_file::tests::{files, judged};
use super::testing::{LAYOUT, all_kinds, decoder, loop_file, page, wakeup, written};
use super::{Capture, RecordedFile};
use punctual_analysis::explain::{Facts, Subject, Taker, WaitsFor, explain};
use punctual_model::SplitMix64;
use punctual_sys::testing::{fuzz_runs, fuzz_seed};
use std::io::Cursor;

struct Random(SplitMix64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.0.next_bits() % u64::try_from(end.max(1)).unwrap()).unwrap()
    }
}

/// A page with the wake-up of thread 9, and with all kinds of events.
fn seed(random: &mut Random) -> Vec<u8> {
    let mut records = all_kinds();
    records.extend(wakeup());
    for _ in 0..random.below(4) {
        let (a, b) = (random.below(records.len()), random.below(records.len()));
        records.swap(a, b);
    }
    let lost = [0, 1 << 31, 3 << 30][random.below(3)];
    page(1000, lost, &written(&records), &LAYOUT, Some(5))
}

/// One mutation below `end`: a flipped bit, a byte of `values`, a replaced number, or a cut.
fn mutate(random: &mut Random, bytes: &mut Vec<u8>, end: usize, values: [u8; 8]) {
    let at = random.below(bytes.len().min(end));
    match random.below(4) {
        0 => bytes[at] ^= 1 << random.below(8),
        1 => bytes[at] = values[random.below(8)],
        2 => {
            let value = random.0.next_bits().to_ne_bytes();
            let end = (at + 8).min(bytes.len());
            bytes[at..end].copy_from_slice(&value[..end - at]);
        }
        _ if random.below(20) == 0 => bytes.truncate(at.max(1)),
        _ => {}
    }
}

/// Up to two pages, mutated.
fn mutated(random: &mut Random) -> Vec<u8> {
    let mut bytes: Vec<u8> = (0..=random.below(2)).flat_map(|_| seed(random)).collect();
    for _ in 0..random.below(8) {
        // Most of a page is empty; the records lie at its beginning.
        mutate(random, &mut bytes, 1400, [0, 1, 0x1d, 0x1e, 0x1f, 0x7f, 0x80, 0xff]);
    }
    bytes
}

#[test]
fn fuzz_trace() {
    let seed = fuzz_seed();
    let mut random = Random(SplitMix64::new(seed));
    let decoder = decoder();
    let (mut runs, mut damaged, mut explained) = (0_u64, 0_u64, 0_u64);
    for run in fuzz_runs(2000) {
        let mut trace = decoder.begin(2);
        for cpu in 0..2 {
            damaged += decoder.read(&mut trace, cpu, &mutated(&mut random)).damaged;
        }
        let priority = [-1, 19, 120][random.below(3)];
        let late = random.below(200_000) as u64;
        let subject = Subject {
            pid: 9,
            waits_for: [WaitsFor::Timer, WaitsFor::Device, WaitsFor::Answer, WaitsFor::Nothing][random.below(4)],
            cpu: 0,
            priority,
            due_ns: 5_000,
            woke_ns: 5_000 + late,
            slack_ns: 0,
        };
        let taker = [Taker::Firmware, Taker::Hypervisor, Taker::Nobody][random.below(3)];
        let facts = Facts { taker, frozen_ns: u64::MAX, ..Facts::default() };
        if let Some(explanation) = explain(&trace, &subject, &facts, &|address| Some(format!("{address:x}"))) {
            assert!(explanation.is_complete(), "run {run} with seed {seed}: {explanation:#?}");
            explained += 1;
        }
        runs += 1;
    }
    eprintln!("trace: {runs} traces, {damaged} damaged pages, {explained} explained");
    assert!(damaged > 0 && explained > 0 && explained < runs, "mutations that are all the same show nothing");
}

#[test]
fn fuzz_capture() {
    let seed = fuzz_seed();
    let mut random = Random(SplitMix64::new(seed));
    let whole = capture().trace_file();
    let (mut runs, mut refused, mut judged) = (0_u64, 0_u64, 0_u64);
    for run in fuzz_runs(2000) {
        let mut file = whole.clone();
        for _ in 0..=random.below(6) {
            mutate(&mut random, &mut file, usize::MAX, [0, 1, 9, b'-', b'0', 0x7f, 0x80, 0xff]);
        }
        match Capture::of_trace_file(&file).and_then(|capture| capture.again()) {
            Err(err) => {
                let said = err.to_string();
                assert!(!said.is_empty() && !said.contains('\n'), "run {run} with seed {seed}: {said}");
                refused += 1;
            }
            Ok(again) => {
                let now = again.iter().filter_map(|one| one.now.as_ref());
                assert!(
                    now.clone().all(punctual_model::Explanation::is_complete),
                    "run {run} with seed {seed}: {again:#?}"
                );
                judged += 1;
            }
        }
        runs += 1;
    }
    eprintln!("capture: {runs} files, {refused} refused, {judged} judged");
    assert!(refused > 0 && judged > 0, "mutations that are all the same show nothing");
}

#[test]
fn fuzz_recording() {
    let seed = fuzz_seed();
    let mut random = Random(SplitMix64::new(seed));
    let mut files = files();
    files.push(("loop", loop_file(5_000_000_000)));
    let (mut runs, mut refused, mut explained) = (0_u64, 0_u64, 0_u64);
    for run in fuzz_runs(500) {
        let (kind, mut file) = files[random.below(files.len())].clone();
        for _ in 0..=random.below(6) {
            // Also heads, which are small parts of their files.
            let end = [usize::MAX, 8192][random.below(2)];
            mutate(&mut random, &mut file, end, [0, 1, b' ', b'-', b'9', 0x7f, 0x80, 0xff]);
        }
        match RecordedFile::open(Cursor::new(file)).and_then(judged) {
            Err(err) => {
                let said = err.to_string();
                assert!(!said.is_empty() && !said.contains('\n'), "{kind}, run {run} with seed {seed}: {said}");
                refused += 1;
            }
            Ok(judged) => {
                let all = &judged.explained.worst;
                assert!(
                    all.iter().all(punctual_model::Explanation::is_complete),
                    "{kind}, run {run} with seed {seed}: {all:#?}"
                );
                explained += all.len() as u64;
            }
        }
        runs += 1;
    }
    eprintln!("recording: {runs} files, {refused} refused, {explained} explained");
    assert!(refused > 0 && explained > 0, "mutations that are all the same show nothing");
}
