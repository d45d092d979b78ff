//! Threads that packets release, beside the time stamps that the kernel gives their programs.

use super::response::{HOST, Network, TARGET};
use super::watch::{saw_nothing, watch, watched};
use crate::program::{Scratch, inconclusive, machine_and_scratch, skip_unless};
use crate::servo::{compiled_from, may_watch};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::RowAccessor;
use punctual_model::{PacketReleases, Record, WatchRecord, WatchedThread};
use std::fs;
use std::path::Path;

/// Time, ns, by which the clock of the trace and that of the program may differ.
const CLOCKS_NS: u64 = 1_000;
const PACKETS: usize = 1500;
/// `released_by` of a row: an interrupt, or a packet.
const BY_INTERRUPT: i32 = 2;

/// Of each packet: sent, received by the kernel and by the program, ns; and the calls without one.
pub(crate) type Log = (Vec<[u64; 3]>, u64);

/// The records and the log of the program with these arguments; `None` if the machine let it do nothing.
pub(crate) fn measured(
    scratch: &Scratch,
    program: &Path,
    arguments: &str,
    more: &str,
) -> Option<(Record, WatchRecord, Log)> {
    let (log, out, rows) = (scratch.path("log"), scratch.path("run"), scratch.path("rows.parquet"));
    let _ = (fs::remove_dir_all(&out), fs::remove_file(&rows));
    let words: Vec<&str> = arguments.split(' ').chain([log.to_str().unwrap()]).collect();
    let options = format!("--for 1h --warm-up 0s --no-explain --wait {more} --record {}", rows.display());
    let program = program.to_str().unwrap();
    let said = watch(&format!("{options} --out {}", out.display()), &[&[program], &words[..]].concat());
    if saw_nothing(&said) {
        return None;
    }
    said.expect_success();
    let (record, seen) = watched(&out);
    let text = fs::read_to_string(log).unwrap();
    let numbers = |line: &str| line.split(' ').map(|word| word.parse().unwrap()).collect::<Vec<u64>>();
    let mut lines: Vec<Vec<u64>> = text.lines().map(numbers).collect();
    let empty = lines.pop().unwrap()[0];
    if seen.gaps > 0 {
        inconclusive("events were lost");
        return None;
    }
    Some((record, seen, (lines.into_iter().map(|line| line.try_into().unwrap()).collect(), empty)))
}

/// The releases by packets, ns, each with what the program knows of its packet.
pub(crate) fn releases(scratch: &Scratch, record: &Record, tid: u32, log: &[[u64; 3]]) -> Vec<(u64, [u64; 3])> {
    let rows = SerializedFileReader::new(fs::File::open(scratch.path("rows.parquet")).unwrap()).unwrap();
    let rows = rows.get_row_iter(None).unwrap().map(Result::unwrap);
    let released = rows.filter(|row| row.get_uint(0).unwrap() == tid && row.get_int(2).unwrap() == BY_INTERRUPT);
    let packet = |row: parquet::record::Row| {
        let release_ns = record.started.0.checked_add_signed(row.get_long(4).unwrap()).unwrap();
        let user_ns = release_ns + row.get_long(5).unwrap().cast_unsigned();
        // The last one may be for a packet that the program does not wait for any more.
        Some((release_ns, *log.iter().find(|[.., at]| at + CLOCKS_NS >= user_ns)?))
    };
    released.filter_map(packet).collect()
}

/// Checks that each release by a packet is between its sending and its reception by the program.
fn are_between(scratch: &Scratch, record: &Record, tid: u32, log: &[[u64; 3]]) {
    for (release_ns, [sent, _, at]) in releases(scratch, record, tid, log) {
        assert!((sent.saturating_sub(CLOCKS_NS)..=at + CLOCKS_NS).contains(&release_ns), "{release_ns} {sent} {at}");
    }
}

/// Checks that the stages and the numbers add up, of a program whose last call may have ended by its time-out.
fn add_up(thread: &WatchedThread, packets: &PacketReleases, device: &str, timed_out: bool) {
    let n = packets.arrival_to_running.n;
    let others = thread.releases.interrupt.checked_sub(n + packets.unknown);
    assert!(others.is_some_and(|others| others <= u64::from(timed_out)), "{timed_out} {thread:#?}");
    let stages = || packets.stages().into_iter().filter_map(|(_, stage)| stage);
    assert_eq!(stages().map(|stage| stage.sum_ns).sum::<i128>(), packets.arrival_to_running.sum_ns, "{packets:#?}");
    let of = |stage: &Option<punctual_model::Histogram>| stage.as_ref().map_or(0, |stage| stage.n);
    assert_eq!(of(&packets.interrupt_to_softirq), 0, "{packets:#?}");
    let (queued, delivered) = (of(&packets.queue_to_softirq), of(&packets.softirq_to_wakeup));
    assert_eq!((delivered, packets.wakeup_to_running.n), (queued, n), "{packets:#?}");
    assert_eq!(queued + of(&packets.packet_to_wakeup), n, "{packets:#?}");
    let names: Vec<_> = packets.devices.iter().map(|one| (&*one.name, one.n)).collect();
    assert_eq!(names, if n > 0 { vec![(device, n)] } else { vec![] }, "{packets:#?}");
    assert!(packets.carriers.iter().map(|one| one.n).sum::<u64>() <= n, "{packets:#?}");
}

#[test]
fn root_a_thread_is_released_when_its_packet_arrives() {
    skip_unless!(may_watch());
    let (_machine, scratch) = machine_and_scratch("watch-packets");
    let Some(network) = Network::new("packets") else { return };
    let program = compiled_from(&scratch, "packets", include_str!("../../watched/packets.c"), &[]);
    let space = |machine: usize| format!("/run/netns/{}", network.names[machine]);
    let veth = format!("{} {} 10.213.7.2", space(HOST), space(TARGET));
    let loopback = format!("{0} {0} 127.0.0.1", space(TARGET));
    let mut released = 0;
    for (mode, path, device) in [("recv", &veth, "eth0"), ("poll", &loopback, "lo"), ("epoll", &veth, "eth0")] {
        let arguments = format!("{mode} {PACKETS} {path}");
        let Some((record, seen, (log, _))) = measured(&scratch, &program, &arguments, "--thread receiver") else {
            continue;
        };
        let [thread]: [_; 1] = seen.threads.try_into().unwrap();
        let Some(packets) = &thread.packets else { continue };
        add_up(&thread, packets, device, log.len() < PACKETS);
        are_between(&scratch, &record, thread.tid, &log);
        released += packets.arrival_to_running.n;
    }
    if released == 0 {
        inconclusive("no wake-up by a packet while they were traced");
    }
}

#[test]
fn root_a_thread_that_polls_has_no_wake_up_and_its_calls_are_counted() {
    skip_unless!(may_watch());
    let (_machine, scratch) = machine_and_scratch("watch-polls");
    let program = compiled_from(&scratch, "packets", include_str!("../../watched/packets.c"), &[]);
    let Some((_, seen, (_, empty))) = measured(&scratch, &program, "spin 400 - - 127.0.0.1", "") else { return };
    let Some(receiver) = seen.others.iter().find(|one| one.name == "receiver") else {
        return inconclusive("the receiver never ran at a look");
    };
    // Before it becomes the program, its process makes such a call.
    assert!(receiver.empty_polls.is_some_and(|n| (empty..empty + 10).contains(&n)), "{empty} {receiver:#?}");
}
