//! Events of every kind, written as the kernel does and read back.

use super::super::format::Format;
use super::super::pages::tests::{LAYOUT, Record, page, written};
use super::*;
use analysis::explain::Trace;

/// Formats as in this program's own kernel.
pub(in crate::trace) fn formats() -> Vec<(String, Format)> {
    let of = |path: &str, id: u16, fields: &[(&str, usize, usize)]| {
        let lines: String = fields
            .iter()
            .map(|(name, at, bytes)| format!("\tfield:int {name};\toffset:{at};\tsize:{bytes};\tsigned:0;\n"))
            .collect();
        (path.to_owned(), Format::parse(&format!("name: x\nID: {id}\n{lines}")).unwrap())
    };
    vec![
        of(
            "sched/sched_switch",
            1,
            &[
                ("prev_comm", 8, 16),
                ("prev_pid", 24, 4),
                ("prev_prio", 28, 4),
                ("prev_state", 32, 8),
                ("next_comm", 40, 16),
                ("next_pid", 56, 4),
                ("next_prio", 60, 4),
            ],
        ),
        of("sched/sched_waking", 2, &[("pid", 24, 4)]),
        of("timer/hrtimer_start", 3, &[("hrtimer", 8, 8), ("expires", 24, 8), ("softexpires", 32, 8)]),
        of("timer/hrtimer_expire_entry", 4, &[("hrtimer", 8, 8), ("function", 24, 8)]),
        of("irq/irq_handler_entry", 5, &[("irq", 8, 4), ("name", 12, 4)]),
        of("irq/irq_handler_exit", 6, &[("irq", 8, 4)]),
        of("irq/softirq_entry", 7, &[("vec", 8, 4)]),
        of("irq/softirq_exit", 8, &[("vec", 8, 4)]),
        of("nmi/nmi_handler", 9, &[("delta_ns", 16, 8)]),
        of("power/cpu_idle", 10, &[("state", 8, 4)]),
        of("workqueue/workqueue_execute_start", 11, &[("function", 16, 8)]),
        of("exceptions/page_fault_user", 12, &[]),
        of("ftrace/kernel_stack", 13, &[("size", 8, 4), ("caller", 16, 64)]),
        of("ftrace/print", 14, &[]),
        of("irq_vectors/local_timer_entry", 15, &[]),
        of("irq_vectors/local_timer_exit", 16, &[]),
        of("timer/timer_expire_entry", 18, &[("timer", 8, 8), ("function", 24, 8)]),
        of("sched/sched_pi_setprio", 19, &[("pid", 12, 4), ("oldprio", 16, 4), ("newprio", 20, 4)]),
    ]
}

/// The data of an event: its ID, the current thread, and numbers at offsets.
pub(in crate::trace) fn data(id: u16, pid: i32, bytes: usize, parts: &[(usize, &[u8])]) -> Vec<u8> {
    let mut data = vec![0; bytes];
    data[..2].copy_from_slice(&id.to_ne_bytes());
    data[2] = 5;
    data[4..8].copy_from_slice(&pid.to_ne_bytes());
    for (at, part) in parts {
        data[*at..*at + part.len()].copy_from_slice(part);
    }
    data
}

/// One event of each kind.
pub(in crate::trace) fn all_kinds() -> Vec<Record> {
    let int = |value: i32| value.to_ne_bytes();
    let long = |value: u64| value.to_ne_bytes();
    let events = [
        data(
            1,
            7,
            64,
            &[
                (8, b"a b-[c]\0"),
                (24, &int(7)),
                (28, &int(120)),
                (32, &long(1)),
                (40, b"0123456789abcdef"),
                (56, &int(8)),
                (60, &int(-1)),
            ],
        ),
        data(2, 8, 28, &[(24, &int(9))]),
        data(3, 8, 48, &[(8, &long(0xabc)), (24, &long(50_000)), (32, &long(10))]),
        data(4, 8, 32, &[(8, &long(0xabc)), (24, &long(0xf00))]),
        data(5, 8, 28, &[(8, &int(36)), (12, &int(12 << 16 | 16)), (16, b"virtio1-req\0")]),
        data(6, 8, 16, &[(8, &int(36))]),
        data(7, 8, 12, &[(8, &int(9))]),
        data(8, 8, 12, &[(8, &int(9))]),
        data(9, 8, 28, &[(16, &long(65_000))]),
        data(10, 8, 16, &[(8, &int(2))]),
        data(10, 8, 16, &[(8, &int(-1))]),
        data(11, 8, 24, &[(16, &long(0xfff))]),
        data(12, 8, 32, &[]),
        data(13, 8, 80, &[(8, &int(2)), (16, &long(0x11)), (24, &long(0x22))]),
        data(14, 8, 24, &[]),
        data(15, 8, 12, &[]),
        data(16, 8, 12, &[]),
        data(18, 8, 40, &[(24, &long(0xf01))]),
        data(19, 8, 24, &[(12, &int(9)), (16, &int(120)), (20, &int(9))]),
        // Not decoded.
        data(17, 8, 12, &[]),
    ];
    events.into_iter().map(|data| Record::Event(10, data)).collect()
}

/// The decoder of these formats.
pub(crate) fn decoder() -> Decoder {
    Decoder::new(LAYOUT, &formats())
}

/// A page with one event of each kind, of this time.
pub(crate) fn page_of_all_kinds(at_ns: u64) -> Vec<u8> {
    page(at_ns, 0, &written(&all_kinds()), &LAYOUT, None)
}

fn decoded(pages: &[u8]) -> (Trace, ReadCounts) {
    let decoder = decoder();
    let mut trace = decoder.begin(1);
    let counted = decoder.read(&mut trace, 0, pages);
    (trace, counted)
}

#[test]
fn pages_before_a_time_are_left_out_but_the_one_that_may_contain_it() {
    let pages: Vec<u8> = [1_000, 2_000, 3_000].into_iter().flat_map(|at| page(at, 0, &[], &LAYOUT, None)).collect();
    let one = LAYOUT.page_bytes;
    for (since_ns, first) in [(0, 0), (999, 0), (1_000, 0), (1_999, 0), (2_000, 1), (2_500, 1), (9_000, 2)] {
        assert_eq!(pages_since(&pages, one, since_ns), &pages[first * one..], "{since_ns}");
    }
    assert_eq!(pages_since(&[], one, 5), &[] as &[u8]);
    // A page that was cut is damaged, not old.
    assert_eq!(pages_since(&pages[..one + 3], one, 5_000).len(), one + 3);
}

#[test]
fn every_kind_of_event_is_decoded_and_others_are_passed_over() {
    let (trace, counted) = decoded(&page_of_all_kinds(1000));
    assert_eq!(counted, ReadCounts { events: 20, damaged: 0 });
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
fn lost_and_damaged_pages_are_known() {
    let good = page_of_all_kinds(1000);
    let lost = page(9000, 1 << 31, &written(&all_kinds()), &LAYOUT, None);
    let (trace, _) = decoded(&[good.clone(), lost.clone()].concat());
    assert_eq!((trace.cpus[0].is_cut, &trace.cpus[0].lost_ns[..]), (false, &[9000][..]));
    // A loss before the first page means that the trace was overwritten.
    let (trace, _) = decoded(&page(1000, 1 << 31, &written(&all_kinds()), &LAYOUT, None));
    assert_eq!((trace.cpus[0].is_cut, trace.cpus[0].lost_ns.len()), (true, 0));
    assert_eq!((trace.covers(0, 1009), trace.covers(0, 1010)), (false, true));
    let (trace, counted) = decoded(&[good.clone(), vec![0xff; LAYOUT.page_bytes], good].concat());
    assert_eq!((counted.events, counted.damaged, trace.cpus[0].events.len()), (40, 1, 38));
}
