//! The same trace in files of every kind tells the same.

use super::super::dat::DatHead;
use super::super::dat::tests::{Pack, in_sections, zlib, zstd};
use super::super::layouts::Layouts;
use super::super::perf::tests::{file as perf_file, round, sample};
use super::super::testing::{LAYOUT, Record, data, layouts, page, written};
use super::*;
use punctual_analysis::explain::{Event, Taker, What, flags};
use punctual_analysis::recorded::{Judged, Wanted, judge};
use punctual_model::{Span, Watch, WatchTarget};
use std::io::Write;

const NAME: &str = "a-1 [0] 2.3: b";
const BEGIN_NS: u64 = 10_000_000_000;
const CYCLES: u64 = 120;

/// Thread 9 waits for a timer every millisecond, on CPU 0; once, thread 7 has the CPU then. Thread 8 runs on CPU 1.
fn events() -> Vec<(u32, Event)> {
    let switch = |prev: i32, prev_state: u32, next: i32| {
        let priority = |pid: i32| match pid {
            7 => 10,
            9 => 19,
            _ => 120,
        };
        What::Switch { prev, prev_priority: priority(prev), prev_state, next, next_priority: priority(next) }
    };
    let mut events = Vec::new();
    for cycle in 0..CYCLES {
        let due_ns = BEGIN_NS + cycle * 1_000_000;
        let mut add = |cpu: u32, after_us: i64, pid: i32, flags: u8, what: What| {
            let at_ns = due_ns.checked_add_signed(after_us * 1000).unwrap();
            events.push((cpu, Event { at_ns, pid, flags, what }));
        };
        let is_late = cycle == 110;
        let (before, late_us) = if is_late { (7, 400) } else { (0, 0) };
        if is_late {
            add(0, -100, 0, flags::IRQS_OFF, switch(0, 0, 7));
        }
        let in_interrupt = flags::IRQS_OFF | flags::HARDIRQ;
        add(0, 0, before, in_interrupt, What::TimerExpire { timer: 0xabc, function: Some(0xf00) });
        add(0, 2, before, in_interrupt, What::Waking { pid: 9 });
        add(1, 3, 0, flags::IRQS_OFF, switch(0, 0, 8));
        add(0, 6 + late_us, before, flags::IRQS_OFF, switch(before, u32::from(is_late), 9));
        add(1, 50, 8, flags::IRQS_OFF, switch(8, 1, 0));
        let next_ns = due_ns.cast_signed() + 1_000_000;
        add(0, 100 + late_us, 9, 0, What::TimerStart { timer: 0xabc, expires_ns: next_ns, soft_ns: next_ns });
        add(0, 110 + late_us, 9, flags::IRQS_OFF, switch(9, 1, 0));
    }
    events.sort_by_key(|(_, event)| event.at_ns);
    events
}

fn raw(event: &Event) -> Vec<u8> {
    let int = |value: i32| value.to_ne_bytes();
    let mut raw = match event.what {
        What::Switch { prev, prev_priority, prev_state, next, next_priority } => {
            let name = |pid: i32| if pid == 9 { NAME.as_bytes() } else { b"other" };
            let ids = [(24, int(prev)), (28, int(prev_priority)), (56, int(next)), (60, int(next_priority))];
            let mut parts: Vec<(usize, &[u8])> = ids.iter().map(|(at, bytes)| (*at, &bytes[..])).collect();
            let state = u64::from(prev_state).to_ne_bytes();
            parts.extend([(8, name(prev)), (40, name(next)), (32, &state[..])]);
            data(1, event.pid, 64, &parts)
        }
        What::Waking { pid } => data(2, event.pid, 28, &[(24, &int(pid))]),
        What::TimerStart { timer, expires_ns, soft_ns } => {
            let words = [timer.to_ne_bytes(), expires_ns.to_ne_bytes(), soft_ns.to_ne_bytes()];
            let function = 0xf00_u64.to_ne_bytes();
            data(3, event.pid, 48, &[(8, &words[0]), (16, &function), (24, &words[1]), (32, &words[2])])
        }
        What::TimerExpire { timer, function } => {
            let words = [timer.to_ne_bytes(), event.at_ns.to_ne_bytes(), function.unwrap().to_ne_bytes()];
            data(4, event.pid, 32, &[(8, &words[0]), (16, &words[1]), (24, &words[2])])
        }
        other => panic!("{other:?}"),
    };
    raw[2] = event.flags;
    raw
}

/// Raw pages of each CPU.
fn pages() -> Vec<Vec<u8>> {
    let of_cpu = |cpu: u32| {
        let mut at_ns = BEGIN_NS;
        let events: Vec<_> = events().into_iter().filter(|(of, _)| *of == cpu).map(|(_, event)| event).collect();
        let of_page = |events: &[Event]| {
            let records = events.iter().map(|event| {
                let before = std::mem::replace(&mut at_ns, event.at_ns);
                Record::Event(u32::try_from(event.at_ns - before).unwrap(), raw(event))
            });
            let begin = events[0].at_ns;
            let mut records: Vec<Record> = records.collect();
            if let Record::Event(delta, _) = &mut records[0] {
                *delta = 0;
            }
            page(begin, 0, &written(&records), &LAYOUT, None)
        };
        events.chunks(30).flat_map(of_page).collect()
    };
    vec![of_cpu(0), of_cpu(1)]
}

fn dat_head(layouts: Layouts) -> DatHead {
    let functions = vec![(0xf00, "hrtimer_wakeup".to_owned())];
    DatHead { layouts, functions, ..DatHead::default() }
}

fn dat() -> Vec<u8> {
    dat_head(layouts()).file(&[("", &pages())])
}

fn dat_7(compression: &str, pack: Option<Pack>) -> Vec<u8> {
    in_sections(&dat_head(layouts()), compression, pack, &[("", &pages())])
}

/// With `sched_wakeup` instead of `sched_waking`, of which it has the format only.
fn of_wakeups() -> Vec<u8> {
    let mut layouts = layouts();
    let waking = layouts.formats.iter_mut().find(|(path, _)| path == "sched/sched_waking").unwrap();
    let unused = (waking.0.clone(), waking.1.replace("ID: 2", "ID: 99"));
    *waking = (waking.0.replace("waking", "wakeup"), waking.1.replace("waking", "wakeup"));
    layouts.formats.push(unused);
    dat_head(layouts).file(&[("", &pages())])
}

/// Two rounds each cycle, the CPUs one after the other.
fn perf() -> Vec<u8> {
    let mut records = Vec::new();
    for events in events().chunks(5) {
        for of in [1, 0] {
            let of_cpu = events.iter().filter(|(cpu, _)| *cpu == of);
            records.extend(of_cpu.map(|(cpu, event)| sample(event.at_ns, *cpu, &raw(event))));
        }
        records.push(round());
    }
    perf_file(&records)
}

/// As the kernel prints it, or trace-cmd.
fn text(is_kernel: bool) -> Vec<u8> {
    let name = |pid: i32| if pid == 9 { NAME } else { "other" };
    let mut text =
        if is_kernel { "# entries-in-buffer/entries-written: 1/1   #P:2\n".to_owned() } else { String::new() };
    for (cpu, Event { at_ns, pid, flags, what }) in events() {
        let (kind, fields) = match what {
            What::Switch { prev, prev_priority, prev_state, next, next_priority } => {
                let state = if prev_state == 1 { "S" } else { "R" };
                let (from, to) = (name(prev), name(next));
                (
                    "sched_switch",
                    if is_kernel {
                        format!(
                            "prev_comm={from} prev_pid={prev} prev_prio={prev_priority} prev_state={state} ==> next_comm={to} next_pid={next} next_prio={next_priority}"
                        )
                    } else {
                        format!("{from}:{prev} [{prev_priority}] {state} ==> {to}:{next} [{next_priority}]")
                    },
                )
            }
            What::Waking { pid } => ("sched_waking", format!("comm={} pid={pid} prio=19 target_cpu=000", name(pid))),
            What::TimerStart { timer, expires_ns, soft_ns } => (
                "hrtimer_start",
                format!(
                    "hrtimer={timer:016x} function=hrtimer_wakeup expires={expires_ns} softexpires={soft_ns} mode=ABS"
                ),
            ),
            What::TimerExpire { timer, .. } => {
                ("hrtimer_expire_entry", format!("hrtimer={timer:016x} function=hrtimer_wakeup now={at_ns}"))
            }
            other => panic!("{other:?}"),
        };
        let column = match flags {
            0 => ".....",
            1 => "d..2.",
            _ => "d.h1.",
        };
        let (s, us) = (at_ns / 1_000_000_000, at_ns % 1_000_000_000 / 1000);
        text += &format!("{:>16}-{pid:<7} [{cpu:03}] {column} {s:5}.{us:06}: {kind}: {fields}\n", name(pid));
    }
    text.into_bytes()
}

/// The files that `trace.sh` packs.
fn packed() -> Vec<(String, Vec<u8>)> {
    let mut files = vec![("metadata.textproto".to_owned(), b"trace_type: FTRACE\n".to_vec())];
    files.extend((0..).zip(pages()).map(|(cpu, pages)| (format!("./traces/cpu{cpu}"), pages)));
    files.push(("formats/header_page".to_owned(), layouts().page.into_bytes()));
    let formats =
        layouts().formats.into_iter().map(|(path, text)| (format!("formats/{path}/format"), text.into_bytes()));
    files.extend(formats);
    files
}

fn tar() -> Vec<u8> {
    let mut tar = Vec::new();
    for (name, content) in packed() {
        let mut head = [0; 512];
        head[..name.len()].copy_from_slice(name.as_bytes());
        head[124..135].copy_from_slice(format!("{:011o}", content.len()).as_bytes());
        head[156] = b'0';
        head[257..263].copy_from_slice(b"ustar ");
        tar.extend(head);
        tar.extend(content);
        tar.resize(tar.len().next_multiple_of(512), 0);
    }
    tar.extend([0; 1024]);
    tar
}

fn gzip(content: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}

/// Small files of every kind.
pub(crate) fn files() -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("dat", dat()),
        ("wakeups", of_wakeups()),
        ("dat 7", dat_7("none", None)),
        ("dat 7 zlib", dat_7("zlib", Some(zlib))),
        ("dat 7 zstd", dat_7("zstd", Some(zstd))),
        ("perf", perf()),
        ("trace", text(true)),
        ("report", text(false)),
        ("tar", tar()),
        ("tar.gz", gzip(&tar())),
        ("text.gz", gzip(&text(true))),
    ]
}

pub(crate) fn judged(file: RecordedFile) -> Result<Judged, RecordingError> {
    let RecordedFile { mut recording, names, .. } = file;
    let watch = Watch::new(WatchTarget::Everywhere);
    let wanted =
        Wanted { watch, above: Some(Span(200_000)), keep: 3, taker: Taker::Hypervisor, names, marks: Vec::new() };
    judge(&mut *recording, &wanted, &mut |_| ())
}

#[test]
fn the_same_trace_tells_the_same_whatever_the_file() {
    let shown = |file: RecordedFile| {
        let judged = judged(file).unwrap();
        assert_eq!((judged.times_ns.start, judged.events, judged.gaps), (BEGIN_NS, 7 * CYCLES + 1, 0));
        let threads: Vec<_> = judged.threads.iter().map(|one| &one.thread).collect();
        (format!("{threads:#?}"), format!("{:#?}", judged.explained))
    };
    let (threads, explained) = shown(RecordedFile::open(Cursor::new(dat())).unwrap());
    assert!(threads.contains(NAME) && explained.contains("HigherPriority"), "{threads}\n{explained}");
    for (kind, file) in files() {
        let file = RecordedFile::open(Cursor::new(file)).unwrap();
        let is_text = matches!(kind, "trace" | "report" | "text.gz");
        assert_eq!(file.resolution_ns, if is_text { 1000 } else { 1 }, "{kind}");
        let now = shown(file);
        assert_eq!(now, (threads.clone(), explained.clone()), "{kind}");
    }
    let (names, contents): (Vec<_>, Vec<_>) = packed().into_iter().unzip();
    let list = names.into_iter().zip(contents.iter().map(|content| content.len() as u64)).collect();
    let directory = RecordedFile::of_directory(list, move |index| Ok(Cursor::new(contents[index].clone()))).unwrap();
    assert_eq!(shown(directory), (threads, explained));
}

#[test]
fn what_is_no_trace_is_named() {
    let error = |file: &[u8]| RecordedFile::open(Cursor::new(file.to_vec())).unwrap_err().to_string();
    for (file, said) in [
        (&b""[..], "the file is empty"),
        (b"\n", UNKNOWN),
        (b"a text\n", UNKNOWN),
        (b"\x7fELF", UNKNOWN),
        (
            b"2ELIFREP",
            "unsupported: perf.data of another byte order, or of version 1; read its text: perf script --ns -i FILE > FILE.txt",
        ),
        (b"PERFILE2", "damaged: it ends too early"),
        (ZSTD, "a capture: punctual explain FILE --again explains it"),
        (&gzip(&gzip(&text(true))), UNKNOWN),
        (&gzip(b""), "the file is empty"),
        (&gzip(&tar()[..5000]), "damaged: content beyond its end"),
        (&gzip(&tar()[..512 * 3]), "damaged: content beyond its end"),
    ] {
        assert_eq!(error(file), said);
    }
    let nothing = RecordedFile::of_directory(vec![("a".to_owned(), 5)], |_| Ok(Cursor::new([0; 5]))).unwrap_err();
    assert!(nothing.to_string().starts_with("unsupported: files without traces/cpu0"), "{nothing}");
}

/// Every beginning of a file is judged or refused in one line.
#[test]
fn a_cut_file_ends_in_a_result_or_in_one_line() {
    for (kind, file) in files() {
        let step = file.len() / 150;
        for end in (0..file.len()).step_by(step).chain([file.len() - 1]) {
            let said =
                RecordedFile::open(Cursor::new(file[..end].to_vec())).and_then(judged).map_err(|err| err.to_string());
            let is_one_line = said.as_ref().err().is_none_or(|said| !said.is_empty() && !said.contains('\n'));
            assert!(is_one_line, "{kind} {end}: {said:?}");
        }
    }
}
