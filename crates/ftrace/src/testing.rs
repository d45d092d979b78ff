//! Pages as the kernel writes them, for tests.
#![expect(clippy::unwrap_used, reason = "tests only")]
#![cfg_attr(not(test), allow(dead_code, reason = "other crates need a part of it"))]

use super::dat::DatHead;
use super::decode::Decoder;
use super::layouts::Layouts;
use super::pages::PageLayout;
pub(crate) use super::pages::joined as header;

/// The layout of a 4 KiB page, as in this program's own kernel.
pub(crate) const LAYOUT: PageLayout = PageLayout { commit_at: 8, commit_bytes: 8, data_at: 16, page_bytes: 4096 };

/// A record that the kernel may write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Record {
    /// An event: time since the previous record, and its data in whole words.
    Event(u32, Vec<u8>),
    /// A discarded event, with its number of words.
    Discarded(u32, u32),
    /// A time extension for more than 27 bits.
    Extend(u64),
    /// An absolute time.
    Absolute(u64),
}

fn split(value: u64) -> (u32, [u8; 4]) {
    let low = u32::try_from(value & 0x7ff_ffff).unwrap();
    (low, u32::try_from(value >> 27).unwrap().to_ne_bytes())
}

/// The records as the kernel writes them.
pub(crate) fn written(records: &[Record]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for record in records {
        match record {
            Record::Event(delta, data) if (4..=112).contains(&data.len()) => {
                bytes.extend(header(u32::try_from(data.len() / 4).unwrap(), *delta));
                bytes.extend(data);
            }
            Record::Event(delta, data) => {
                bytes.extend(header(0, *delta));
                bytes.extend(u32::try_from(data.len() + 4).unwrap().to_ne_bytes());
                bytes.extend(data);
            }
            Record::Discarded(delta, words) => {
                bytes.extend(header(29, *delta));
                bytes.extend((words * 4).to_ne_bytes());
                bytes.extend(vec![0xee; usize::try_from(*words).unwrap() * 4 - 4]);
            }
            Record::Extend(delta) => {
                let (low, high) = split(*delta);
                bytes.extend(header(30, low));
                bytes.extend(high);
            }
            Record::Absolute(time) => {
                let (low, high) = split(time & ((1 << 59) - 1));
                bytes.extend(header(31, low));
                bytes.extend(high);
            }
        }
    }
    bytes
}

pub(crate) fn page(time_ns: u64, flags: u64, records: &[u8], layout: &PageLayout, lost: Option<u64>) -> Vec<u8> {
    let mut page = vec![0; layout.page_bytes.max(layout.data_at + records.len() + 8)];
    page[..8].copy_from_slice(&time_ns.to_ne_bytes());
    let commit = records.len() as u64 | flags;
    if layout.commit_bytes == 4 {
        page[layout.commit_at..][..4].copy_from_slice(&u32::try_from(commit).unwrap().to_ne_bytes());
    } else {
        page[layout.commit_at..][..8].copy_from_slice(&commit.to_ne_bytes());
    }
    page[layout.data_at..][..records.len()].copy_from_slice(records);
    if let Some(lost) = lost {
        page[layout.data_at + records.len()..][..8].copy_from_slice(&lost.to_ne_bytes());
    }
    page
}

/// Layouts as in this program's own kernel.
pub fn layouts() -> Layouts {
    let of = |path: &str, id: u16, fields: &[(&str, usize, usize)]| {
        let lines: String = fields
            .iter()
            .map(|(name, at, bytes)| format!("\tfield:int {name};\toffset:{at};\tsize:{bytes};\tsigned:0;\n"))
            .collect();
        let (_, name) = path.split_once('/').unwrap();
        (path.to_owned(), format!("name: {name}\nID: {id}\n{lines}"))
    };
    let formats = vec![
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
        of(
            "timer/hrtimer_start",
            3,
            &[("hrtimer", 8, 8), ("function", 16, 8), ("expires", 24, 8), ("softexpires", 32, 8)],
        ),
        of("timer/hrtimer_expire_entry", 4, &[("hrtimer", 8, 8), ("now", 16, 8), ("function", 24, 8)]),
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
    ];
    let page = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
                \tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n\
                \tfield: char data;\toffset:16;\tsize:4080;\tsigned:1;\n";
    Layouts { page: page.to_owned(), event: "# compressed entry header\n".to_owned(), page_bytes: 4096, formats }
}

/// The data of an event: its ID, the current thread, and numbers at offsets.
pub(crate) fn data(id: u16, pid: i32, bytes: usize, parts: &[(usize, &[u8])]) -> Vec<u8> {
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
pub(crate) fn all_kinds() -> Vec<Record> {
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
pub fn decoder() -> Decoder {
    layouts().decoder().unwrap()
}

/// A page with one event of each kind, of this time.
pub fn page_of_all_kinds(at_ns: u64) -> Vec<u8> {
    page(at_ns, 0, &written(&all_kinds()), &LAYOUT, None)
}

/// The events of a wake-up of thread 9 by a timer of 5000 ns: its start, its expiry, its interrupt, and the switch.
pub(crate) fn wakeup() -> Vec<Record> {
    let switch = |prev: i32, next: i32| {
        data(1, prev, 64, &[(24, &prev.to_ne_bytes()), (28, &120_i32.to_ne_bytes()), (56, &next.to_ne_bytes())])
    };
    let due = 5_000_u64.to_ne_bytes();
    vec![
        Record::Event(100, data(3, 9, 48, &[(8, &[1]), (24, &due), (32, &due)])),
        Record::Event(100, switch(9, 8)),
        Record::Extend(4000),
        Record::Event(900, data(15, 8, 12, &[])),
        Record::Event(100, data(4, 8, 32, &[(8, &[1])])),
        Record::Event(100, data(2, 8, 28, &[(24, &9_i32.to_ne_bytes())])),
        Record::Event(100, data(16, 8, 12, &[])),
        Record::Discarded(5, 3),
        Record::Event(70_000, switch(8, 9)),
        Record::Absolute(90_000),
    ]
}

/// A page with [`wakeup`].
pub fn page_of_wakeup() -> Vec<u8> {
    page(100, 0, &written(&wakeup()), &LAYOUT, None)
}

/// Period of the thread in [`loop_file`], and the number of its activations.
pub const LOOP_PERIOD_NS: u64 = 2_000_000;
/// See [`LOOP_PERIOD_NS`].
pub const LOOPS: u64 = 120;
/// Address of the function of its timer.
const WAKES: u64 = 0xf00;

/// A trace of one CPU and one thread, `control`, that runs for 50 us in each period, 5 us after the interrupt of its
/// timer; in one of them `logger` keeps the CPU for 400 us. The clock is `CLOCK_MONOTONIC`, or `boot` and this much
/// ahead of it.
pub fn loop_file(ahead_ns: u64) -> Vec<u8> {
    let names = [(8, "logger"), (9, "control")].map(|(pid, name)| (pid, name.to_owned()));
    let head = DatHead {
        layouts: layouts(),
        names: names.into_iter().collect(),
        functions: vec![(WAKES, "hrtimer_wakeup".to_owned())],
        ..DatHead::default()
    };
    let pages: Vec<u8> = (1..=LOOPS).flat_map(|cycle| loop_page(cycle, ahead_ns)).collect();
    let file = head.file(&[("", &[pages])]);
    let Some(at) = (0..file.len()).find(|at| ahead_ns > 0 && file[*at..].starts_with(b"[mono]")) else { return file };
    // Said twice: in the options, and before the pages.
    let other = file[at..].to_vec();
    let last = (1..other.len()).find(|at| other[*at..].starts_with(b"[mono]")).unwrap();
    let mut file = file;
    for at in [at, at + last] {
        file[at..at + 6].copy_from_slice(b"[boot]");
    }
    file
}

/// The page of one period: the interrupt, the switch in, the start of the next timer, and the switch out.
fn loop_page(cycle: u64, ahead_ns: u64) -> Vec<u8> {
    let due_ns = 1_000_000_000 + cycle * LOOP_PERIOD_NS;
    let (int, long) = (|value: i32| value.to_ne_bytes(), |value: u64| value.to_ne_bytes());
    let switch = |prev: i32, prev_state: u64, next: i32| {
        let priority = |pid| int(if pid == 9 { 19 } else { 120 });
        let name = |pid| match pid {
            8 => &b"logger\0"[..],
            9 => b"control\0",
            _ => b"swapper\0",
        };
        data(
            1,
            prev,
            64,
            &[
                (8, name(prev)),
                (24, &int(prev)),
                (28, &priority(prev)),
                (32, &long(prev_state)),
                (40, name(next)),
                (56, &int(next)),
                (60, &priority(next)),
            ],
        )
    };
    // In an interrupt that asks for a switch.
    let hard = |mut data: Vec<u8>| {
        data[2] |= 8;
        data
    };
    let is_late = cycle == LOOPS - 20;
    // `logger` does not let go at the interrupt.
    let before = if is_late { 8 } else { 0 };
    let mut records = Vec::new();
    if is_late {
        records.push(Record::Event(0, switch(0, 0, 8)));
    }
    let next_ns = due_ns + LOOP_PERIOD_NS;
    records.extend([
        Record::Event(600, hard(data(15, before, 12, &[]))),
        Record::Event(
            400,
            hard(data(4, before, 32, &[(8, &long(0xabc)), (16, &long(due_ns + 600)), (24, &long(WAKES))])),
        ),
        Record::Event(1_000, hard(data(2, before, 28, &[(24, &int(9))]))),
        Record::Event(1_000, hard(data(16, before, 12, &[]))),
        Record::Event(if is_late { 400_000 } else { 2_000 }, switch(before, 0, 9)),
        Record::Event(
            45_000,
            data(3, 9, 48, &[(8, &long(0xabc)), (16, &long(WAKES)), (24, &long(next_ns)), (32, &long(next_ns))]),
        ),
        Record::Event(1_000, switch(9, 1, 0)),
    ]);
    page(due_ns + ahead_ns, 0, &written(&records), &LAYOUT, None)
}
