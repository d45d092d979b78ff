//! Events of every kind, written as the kernel does and read back.

use super::super::testing::{LAYOUT, Record, all_kinds, data, decoder, page, page_of_all_kinds, written};
use super::*;
use punctual_analysis::explain::{MarkNames, Trace};

fn decoded(pages: &[u8]) -> (Trace, ReadCounts) {
    let decoder = decoder();
    let mut trace = decoder.begin(1);
    let counted = decoder.read(&mut trace, 0, pages);
    (trace, counted)
}

#[test]
fn every_kind_of_event_is_decoded_and_others_are_passed_over() {
    let (trace, counted) = decoded(&page_of_all_kinds(1000));
    assert_eq!(counted, ReadCounts { events: 20, ..ReadCounts::default() });
    let what: Vec<_> = trace.cpus[0].events.iter().map(|event| event.what).collect();
    let want = [
        What::Switch { prev: 7, prev_priority: 120, prev_state: 1, next: 8, next_priority: -1 },
        What::Waking { pid: 9 },
        What::TimerStart { timer: 0xabc, expires_ns: 50_000, soft_ns: 10 },
        What::TimerExpire { timer: 0xabc, function: Some(0xf00) },
        What::Enter(Context::Interrupt(36)),
        What::Leave(Context::Interrupt(36)),
        What::Enter(Context::Softirq(9)),
        What::Leave(Context::Softirq(9)),
        What::Nmi { length_ns: 65_000 },
        What::Idle { state: Some(2) },
        What::Idle { state: None },
        What::Work { function: 0xfff },
        What::PageFault,
        What::Stack(0),
        What::Mark,
        What::Enter(Context::Vector(0)),
        What::Leave(Context::Vector(0)),
        What::WheelExpire { function: 0xf01 },
        What::Inherit { pid: 9, priority: 9 },
    ];
    assert_eq!(what, want);
    let first = trace.cpus[0].events[0];
    assert_eq!((first.at_ns, first.pid, first.flags), (1010, 7, 5));
    assert_eq!((trace.names[&7].as_str(), trace.names[&8].as_str()), ("a b-[c]", "0123456789abcdef"));
    assert_eq!((trace.interrupts[&36].as_str(), trace.vectors[0].as_str()), ("virtio1-req", "local_timer"));
    assert_eq!(trace.stacks, [[0x11, 0x22]]);
    assert!(trace.timer_functions.iter().eq(&[0xf00, 0xf01]));
}

#[test]
fn a_thread_has_its_latest_name_whichever_cpu_is_read_last() {
    let switch = |name: &[u8]| data(1, 7, 64, &[(8, name), (24, &7_i32.to_ne_bytes())]);
    let named = |at_ns: u64, name: &[u8]| page(at_ns, 0, &written(&[Record::Event(10, switch(name))]), &LAYOUT, None);
    let (forked, executed) = (named(1000, b"shell\0"), named(9000, b"sleep\0"));
    for cpus in [[&forked, &executed], [&executed, &forked]] {
        let decoder = decoder();
        let mut trace = decoder.begin(2);
        for (cpu, pages) in cpus.into_iter().enumerate() {
            decoder.read(&mut trace, cpu, pages);
        }
        assert_eq!(trace.names[&7], "sleep");
    }
}

#[test]
fn lost_and_damaged_pages_are_known() {
    let good = page_of_all_kinds(1000);
    let lost = page(9000, 1 << 31, &written(&all_kinds()), &LAYOUT, None);
    let (trace, _) = decoded(&[good.clone(), lost.clone()].concat());
    assert_eq!((trace.cpus[0].is_cut, &trace.cpus[0].lost_ns[..]), (false, &[9000][..]));
    // A loss before the first page means that the trace was overwritten.
    let (trace, _) = decoded(&page(1000, 1 << 31, &written(&all_kinds()), &LAYOUT, None));
    assert_eq!((trace.cpus[0].is_cut, trace.cpus[0].lost_ns.len()), (true, 0));
    assert_eq!((trace.covers(0, 1009), trace.covers(0, 1010)), (false, true));
    let (damaged, later) = (vec![0xff; LAYOUT.page_bytes], page_of_all_kinds(5000));
    let (trace, counted) = decoded(&[&good[..], &damaged, &good].concat());
    assert_eq!((counted.events, counted.damaged, trace.cpus[0].events.len()), (40, 1, 38));
    // Until the next page that is not damaged, or the last event.
    let last_ns = decoded(&good).0.cpus[0].events.last().unwrap().at_ns;
    for (pages, is_cut, lost_ns, ends_damaged) in [
        ([&good, &damaged, &later], false, 5000, false),
        ([&damaged, &damaged, &later], true, 5000, false),
        ([&good, &damaged, &damaged], false, last_ns, true),
    ] {
        let (trace, counted) = decoded(&pages.map(|page| &page[..]).concat());
        let found = (trace.cpus[0].is_cut, &trace.cpus[0].lost_ns[..], counted.ends_damaged);
        assert_eq!(found, (is_cut, &[lost_ns][..], ends_damaged));
    }
    let counted = page(9000, 3 << 30, &written(&all_kinds()), &LAYOUT, Some(7));
    let decoder = decoder();
    for (pages, expected) in [
        (&[][..], (0, 0)),
        (&page_of_all_kinds(1000), (0, 0)),
        (&lost, (1, 0)),
        (&[&counted[..], &lost, &counted, &[0xff; LAYOUT.page_bytes]].concat(), (3, 14)),
    ] {
        assert_eq!(decoder.lost(pages), expected);
    }
}

#[test]
fn texts_and_probes_are_passes_of_the_marks_that_are_wanted() {
    let mut layouts = super::super::testing::layouts();
    for (path, format) in &mut layouts.formats {
        if path == "ftrace/print" {
            format.push_str("\tfield:char buf[];\toffset:16;\tsize:0;\tsigned:0;\n");
        }
    }
    let probes = [("punctual_4_7_9/mark1_0", 21), ("punctual_4_7_9/mark7_1", 22), ("punctual_4_7_9/other", 23)];
    layouts.formats.extend(probes.map(|(path, id)| (path.to_owned(), format!("name: x\nID: {id}\n"))));
    let decoder = layouts.decoder().unwrap();
    let text = |text: &[u8]| data(14, 8, 32, &[(16, text)]);
    let probe = |id| data(id, 8, 16, &[]);
    let events = [text(b"frame 7\n\0"), text(b"other\0"), probe(21), probe(22), probe(23)];
    let records: Vec<Record> = events.into_iter().map(|data| Record::Event(10, data)).collect();
    let page = page(1000, 0, &written(&records), &LAYOUT, None);
    let mut trace = decoder.begin(1);
    trace.marks = MarkNames::new(&["marker:frame", "function:solve"].map(|mark| mark.parse().unwrap()));
    decoder.read(&mut trace, 0, &page);
    let found: Vec<_> = trace.cpus[0].events.iter().map(|event| (event.what, event.flags)).collect();
    assert_eq!(found, [(What::Pass(0), 5), (What::Mark, 5), (What::Pass(1), 0)]);
}
