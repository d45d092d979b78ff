//! Interrupts: what they are for, and how long they are waited for.

use super::super::Sent;
use super::*;
use crate::LinkCounts;
use crate::line::Line;
use crate::sys;
use crate::wire::UioDevice;
use std::io::{PipeWriter, Write};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// A logger whose interrupts are counted in a pipe; four triggers were sent to reach the other end.
fn asking() -> (Asking, Arc<LinkCounts>, PipeWriter) {
    let (reader, writer) = std::io::pipe().unwrap();
    let counts = Arc::<LinkCounts>::default();
    let line = Line::Uio(UioDevice::counted_in(OwnedFd::from(reader).into()));
    let logger = Logger { line, session: 0, first: 0, tries: 4, patience: 3, parts: None, counts: Arc::clone(&counts) };
    (Asking::new(logger).unwrap(), counts, writer)
}

#[test]
fn an_edge_answers_the_present_trigger_or_the_one_before() {
    const HIGH: Option<bool> = Some(true);
    const LOW: Option<bool> = Some(false);
    let (asking, ..) = asking();
    let came = |level, at_ns| asking.judge_interrupt(Interrupt { level, unseen: 0, at_ns: Some(at_ns) });
    let sent = |number, was_answered| {
        asking.go_on(number, was_answered);
        asking.is_open.set(true);
        asking.sent.set(Sent { monotonic_ns: number * 100, ..Sent::default() });
    };
    sent(5, true);
    assert_eq!(came(LOW, 500), Answer::Foreign, "the fourth had its answer");
    assert_eq!(came(HIGH, 499), Answer::Foreign, "before the trigger");
    assert_eq!([came(HIGH, 500), came(None, 500)], [Answer::Present; 2]);
    asking.is_open.set(false);
    assert_eq!([came(HIGH, 501), came(None, 501)], [Answer::Foreign; 2], "once more");
    sent(6, true);
    sent(7, false);
    assert_eq!([came(LOW, 701), came(LOW, 702)], [Answer::Late, Answer::Foreign]);
    assert_eq!(came(HIGH, 703), Answer::Present);
}

#[test]
fn a_late_answer_is_waited_for_and_nothing_is_left_for_the_next_trigger() {
    let (asking, counts, mut writer) = asking();
    let settle = || {
        let (settled, allocations) = RtSection::enter(|rt| asking.settle(rt));
        assert_eq!((settled, allocations), (Ok(()), 0));
        asking.is_open.get()
    };
    assert!(!settle(), "nothing is to be waited for");
    asking.go_on(5, true);
    asking.is_open.set(true);
    asking.silence.set(2);
    asking.sent.set(Sent { monotonic_ns: sys::clock::monotonic().0, ..Sent::default() });
    let device = std::thread::spawn(move || {
        // The last one says that there was one more before it.
        for count in [7_u32, 8, 10] {
            writer.write_all(&count.to_ne_bytes()).unwrap();
        }
        writer
    });
    // It comes while it is waited for, or before.
    assert!(!settle());
    let writer = device.join().unwrap();
    assert!(!settle());
    assert_eq!(asking.silence.get(), 0, "there is somebody");
    assert_eq!((counts.late.load(Relaxed), counts.foreign.load(Relaxed)), (1, 3));
    asking.go_on(6, false);
    asking.is_open.set(true);
    asking.sent.set(Sent { monotonic_ns: sys::clock::monotonic().0, ..Sent::default() });
    let began = sys::clock::monotonic();
    assert!(settle(), "it is given up, and still has no answer");
    assert!(sys::clock::monotonic().since(began).0 >= Logger::HELD.ns().cast_signed() - 1_000_000);
    assert_eq!(counts.late.load(Relaxed), 1);
    drop(writer);
}
