//! Captures that are written, read, and judged again.

use super::super::testing::{layouts, page_of_wakeup};
use super::*;
use punctual_analysis::explain::{Facts, Subject, WaitsFor};

fn case() -> Case {
    let subject = Subject {
        pid: 9,
        waits_for: WaitsFor::Timer,
        cpu: 0,
        priority: 19,
        due_ns: 5_000,
        woke_ns: 80_000,
        slack_ns: 0,
    };
    let facts = Facts { frozen_ns: 100_000, ..Facts::default() };
    Case { cycle: 3, due_ns: 4_000, thread: None, subject, facts, inside: None }
}

fn symbols(address: u64) -> Option<String> {
    Some(format!("function_{address:x}"))
}

/// A capture of one wake-up, as it is made while a cell runs.
pub(crate) fn capture() -> Capture {
    let decoder = layouts().decoder().unwrap();
    let around = Window::cut(&decoder, &(0..90_000), &[page_of_wakeup(), Vec::new()], false);
    let window = Window { from_ns: 0, around, own: Vec::new() };
    let (trace, _) = window.trace(&decoder, |trace| drop(trace.names.insert(9, "servo".to_owned())));
    let explanation = case().explain(&trace, &symbols).unwrap();
    assert!(explanation.is_complete());
    Capture::new(layouts(), window, &trace, &symbols, &[], vec![(case(), explanation)])
}

#[test]
fn a_capture_is_judged_anywhere_as_it_was_at_first() {
    let capture = capture();
    let read = Capture::unpack(&capture.pack()).unwrap();
    let [again] = &read.again().unwrap()[..] else { panic!("one case") };
    assert_eq!((again.now.as_ref(), read.version()), (Some(&again.then), env!("CARGO_PKG_VERSION")));
    assert_eq!((again.then.cycle, again.then.due_ns), (3, 4_000));
    assert_eq!(read.names[&9], "servo");
}

#[test]
fn another_verdict_is_seen() {
    let mut capture = capture();
    capture.evidence.verdicts[0].shares.clear();
    let read = Capture::unpack(&capture.pack()).unwrap();
    let [again] = &read.again().unwrap()[..] else { panic!("one case") };
    assert_ne!(again.now.as_ref(), Some(&again.then));
    // Not covered any more.
    capture.evidence.cases[0].facts.armed_ns = 6_000;
    let read = Capture::unpack(&capture.pack()).unwrap();
    assert_eq!(read.again().unwrap()[0].now, None);
}

#[test]
fn what_is_no_capture_is_named() {
    let error = |file: &[u8]| Capture::unpack(file).unwrap_err().to_string();
    let packed = capture().pack();
    let mut flipped = packed.clone();
    let last = flipped.len() - 20;
    flipped[last] ^= 1;
    let trace = DatHead { layouts: layouts(), ..DatHead::default() }.file(&[("", &[page_of_wakeup()])]);
    let mut late = capture();
    late.evidence.cases[0].subject.woke_ns = 1;
    let mut uneven = capture();
    uneven.evidence.verdicts.clear();
    for (file, said) in [
        (b"".to_vec(), "damaged: its checksum"),
        (packed[..packed.len() - 1].to_vec(), "damaged: its checksum"),
        (flipped, "damaged: "),
        (compress_to_vec(&trace[..], CompressionLevel::Fastest), "no capture: it holds a trace"),
        (compress_to_vec(&b"text"[..], CompressionLevel::Fastest), "unknown kind of file"),
        (late.pack(), "damaged: times that are not in order"),
        (uneven.pack(), "damaged: times that are not in order"),
    ] {
        assert!(error(&file).contains(said), "{} has no {said}", error(&file));
    }
}
