//! Recorded traces in files: the same activations by every clock, and limits of hostile ones.

use super::super::dat::{DatHead, Machine};
use super::super::testing::{LAYOUT, LOOP_PERIOD_NS, LOOPS, layouts, loop_file, page_of_all_kinds};
use super::*;
use punctual_analysis::explain::Taker;
use punctual_analysis::recorded::{Judged, Wanted, judge};
use punctual_model::{Cause, Span, Watch, WatchTarget};
use std::collections::HashMap;
use std::io::Cursor;

fn judged(file: Vec<u8>) -> Judged {
    let mut recording = DatRecording::new(DatFile::open(Cursor::new(file)).unwrap()).unwrap();
    let watch = Watch::new(WatchTarget::Everywhere);
    let wanted =
        Wanted { watch, above: None, keep: 20, taker: Taker::Firmware, names: HashMap::new(), marks: Vec::new() };
    judge(&mut recording, &wanted, &mut |_| ()).unwrap()
}

#[test]
fn a_file_has_the_same_activations_by_every_clock() {
    // By another clock due times are late by what passes between the interrupt and the event of the expiry.
    for (ahead_ns, later_ns) in [(0, 0), (5_000_000_000, 400)] {
        let judged = judged(loop_file(ahead_ns));
        let [control] = &judged.threads[..] else { panic!("{:?}", judged.threads) };
        let one = &control.thread;
        // The first one has no due time: the start of its timer is not in the trace.
        assert_eq!((one.name.as_str(), one.activations, one.skipped), ("control", LOOPS - 1, 0));
        assert_eq!(one.releases, punctual_model::Releases { timer: LOOPS - 1, ..Default::default() }, "{ahead_ns}");
        assert_eq!((one.period.map(|found| found.period.ns()), one.releases.timer), (Some(LOOP_PERIOD_NS), LOOPS - 1));
        let at = |ns: i64| Some(ns - later_ns);
        assert_eq!((one.latency.min_ns, one.latency.max_ns), (at(5_000), at(403_000)));
        let [spike] = &judged.explained.worst[..] else { panic!("{:#?}", judged.explained) };
        let first = &spike.shares[0];
        assert_eq!((first.cause, first.owner.name.as_str()), (Cause::NotPreemptible, "logger"), "{:#?}", spike.shares);
        assert_eq!((spike.latency, spike.is_complete()), (Span(at(448_000).unwrap().cast_unsigned()), true));
        assert_eq!((judged.gaps, judged.events), (0, LOOPS * 7 + 1));
    }
}

#[test]
fn a_damaged_page_at_either_end_of_a_part_is_a_gap_until_the_next_page() {
    let of_part = PART_BYTES / LAYOUT.page_bytes;
    // At the end of a part the last event before it is noted, too.
    for (damaged, gaps) in [(of_part, 2), (of_part + 1, 1)] {
        let page = |number: usize| match number == damaged {
            true => vec![0xff; LAYOUT.page_bytes],
            false => page_of_all_kinds(number as u64 * 10_000),
        };
        let pages: Vec<u8> = (1..=of_part + 2).flat_map(page).collect();
        let file = DatHead { layouts: layouts(), ..DatHead::default() }.file(&[("", &[pages])]);
        let mut recording = DatRecording::new(DatFile::open(Cursor::new(file)).unwrap()).unwrap();
        let mut all = Trace { cpus: vec![CpuEvents::default()], ..Trace::default() };
        while recording.next(&mut all).unwrap().is_some() {}
        let lost_ns = &all.cpus[0].lost_ns;
        assert_eq!((lost_ns.len(), lost_ns.last()), (gaps, Some(&((damaged as u64 + 1) * 10_000))), "{lost_ns:?}");
        assert!(!all.cpus[0].is_cut);
    }
}

#[test]
fn clocks_that_count_no_nanoseconds_are_refused() {
    let mut file = loop_file(5);
    let at = (0..file.len()).rev().find(|at| file[*at..].starts_with(b"[boot]")).unwrap();
    file[at..at + 6].copy_from_slice(b"[upti]");
    let err = DatRecording::new(DatFile::open(Cursor::new(file)).unwrap()).unwrap_err();
    assert!(err.to_string().starts_with("unsupported: the clock `upti`, which does not count nanoseconds"), "{err}");
}

#[test]
fn system_calls_of_another_architecture_have_no_names() {
    let head = |uname: &str, machine: Option<&str>| DatHead {
        uname: uname.to_owned(),
        machine: machine.map(|name| Machine { architecture: name.to_owned(), ..Machine::default() }),
        ..DatHead::default()
    };
    let own = std::env::consts::ARCH;
    let of_own = format!("Linux board 6.1.0 {own}");
    for (uname, machine, foreign) in [
        ("", None, None),
        (of_own.as_str(), None, None),
        ("Linux board 6.1.0 sparc64", None, Some("sparc64")),
        ("something else", None, None),
        (of_own.as_str(), Some("sparc64"), Some("sparc64")),
        ("Linux board 6.1.0 sparc64", Some(own), None),
    ] {
        assert_eq!(head(uname, machine).foreign_architecture().as_deref(), foreign, "{uname} {machine:?}");
    }
}
