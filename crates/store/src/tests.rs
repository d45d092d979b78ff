//! Runs damaged byte by byte: the reader returns the original data, or reports the damage.

use super::*;
use punctual_analysis::testing::RunBuilder;
use punctual_host::testing::Scratch;
use punctual_import::{ImportOptions, import};
use punctual_model::{Entry, Header, ImportHeader, SplitMix64};
use std::fs;
use std::path::Path;
use std::sync::Arc;

/// A run of four measurements, in a directory.
fn a_run(dir: &Path) -> (Header, Vec<Entry>) {
    let mut run = RunBuilder::new();
    run.cell("none", "other").cell("messaging", "fifo:80").require("max=1ms");
    run.header.plan.repetitions = 2;
    for (block, cell) in [(0, 0), (0, 1), (1, 1), (1, 0)] {
        run.measure(block, cell, |cpu, cycle| i64::from(cycle == 700) * 90_000 + i64::from(cpu) + 5_000);
    }
    let mut writer = create(dir, &run.header).unwrap();
    run.entries.iter().for_each(|entry| writer.entry(entry).unwrap());
    (run.header, run.entries)
}

/// Result of reading a damaged file.
#[derive(Debug, PartialEq)]
enum Found {
    /// The run is read as it was written.
    Whole,
    /// The damage is reported; the rest is read as it was written.
    Named,
}

/// Reads the run. Wrong data, or missing data without a report of damage, fails the test.
fn found(dir: &Path, header: &Header, entries: &[Entry], what: &str) -> Found {
    let Ok(run) = read(dir) else { return Found::Named };
    assert_eq!(run.header, *header, "{what}");
    assert!(run.entries.iter().all(|entry| entries.contains(entry)), "{what}");
    match run.damage.is_empty() {
        true => {
            assert_eq!(run.entries.len(), entries.len(), "{what}: lost without a word");
            Found::Whole
        }
        false => Found::Named,
    }
}

/// A random place below `end`, the same for every size of pointers.
fn below(random: &mut SplitMix64, end: usize) -> usize {
    usize::try_from(random.next_bits() % end as u64).unwrap()
}

#[test]
fn any_bit_that_is_flipped_is_named_or_without_effect() {
    let scratch = Scratch::make();
    let (header, entries) = a_run(scratch.dir());
    let file = scratch.path(FILE);
    let whole = fs::read(&file).unwrap();
    let mut random = SplitMix64::new(1);
    let ends = whole.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at);
    // The last bytes of each line, where the checksums are, and random positions.
    let ends = ends.take(2).flat_map(|end| end - 30..=end).collect::<Vec<_>>();
    let anywhere: Vec<_> = (0..100).map(|_| below(&mut random, whole.len())).collect();
    let (mut named, mut tried) = (0, 0);
    for at in ends.into_iter().chain(anywhere) {
        let bit = random.next_bits() % 8;
        let mut damaged = whole.clone();
        damaged[at] ^= 1 << bit;
        fs::write(&file, damaged).unwrap();
        named += u32::from(found(scratch.dir(), &header, &entries, &format!("bit {bit} of byte {at}")) == Found::Named);
        tried += 1;
    }
    // Of the 31 bytes at the end of a line, 12 are not digits of the checksum.
    assert!(named > tried / 2 && named < tried, "{named} of {tried}");
}

#[test]
fn truncated_and_spliced_files_are_read_as_far_as_they_are_whole() {
    let scratch = Scratch::make();
    let (header, entries) = a_run(scratch.dir());
    let file = scratch.path(FILE);
    let whole = fs::read(&file).unwrap();
    let lines: Vec<&[u8]> = whole.split_inclusive(|byte| *byte == b'\n').collect();
    let mut random = SplitMix64::new(2);
    let mut below = |end: usize| below(&mut random, end);
    for n in 0..200 {
        let (from, to) = (below(whole.len()), below(whole.len()));
        let (from, to) = (from.min(to), from.max(to));
        let line = 1 + below(lines.len() - 1);
        let (kind, damaged) = match n % 8 {
            0 => ("cut", whole[..to].to_vec()),
            1 => ("without a part", [&whole[..from], &whole[to..]].concat()),
            2 => ("a part repeated", [&whole[..to], &whole[from..]].concat()),
            3 => ("a page of NULs", [&whole[..from], &vec![0; to - from], &whole[to..]].concat()),
            4 => ("a tail of NULs", [&whole[..to], &[0; 4096]].concat()),
            5 => ("a line twice", [&whole[..], lines[line]].concat()),
            6 => ("parts exchanged", [&whole[to..], &whole[from..to], &whole[..from]].concat()),
            _ => {
                let mut halves = lines[..line].concat();
                halves.extend_from_slice(&lines[line][..lines[line].len() / 2]);
                halves.extend_from_slice(&lines[1][lines[1].len() / 2..]);
                lines[line + 1..].iter().for_each(|line| halves.extend_from_slice(line));
                ("halves of two lines", halves)
            }
        };
        fs::write(&file, &damaged).unwrap();
        let is_cut_between_lines = damaged.ends_with(b"\n") && whole.starts_with(&damaged);
        if !is_cut_between_lines {
            found(scratch.dir(), &header, &entries, &format!("{n}: {kind} {from} {to} {line}"));
        }
    }
}

#[test]
fn lines_without_a_checksum_are_read_and_facts_come_clean() {
    let scratch = Scratch::make();
    let (mut header, entries) = a_run(scratch.dir());
    header.host.hostname = Some("board\n<LAVA_SIGNAL_TESTCASE TEST_CASE_ID=x RESULT=pass>\x1b[2J".to_owned());
    let lines = std::iter::once(serde_json::to_string(&header).unwrap())
        .chain(entries.iter().map(|entry| serde_json::to_string(entry).unwrap()));
    fs::write(scratch.path(FILE), lines.map(|line| line + "\n").collect::<String>()).unwrap();
    let run = read(scratch.dir()).unwrap();
    assert_eq!((run.entries, run.damage), (entries, vec![]));
    let hostname = "board <LAVA_SIGNAL_TESTCASE TEST_CASE_ID=x RESULT=pass>\u{fffd}[2J";
    assert_eq!(run.header.host.hostname.as_deref(), Some(hostname));
}

#[test]
fn a_date_beyond_calendars_is_named_with_its_line_and_field() {
    let scratch = Scratch::make();
    let (header, entries) = a_run(scratch.dir());
    let file = scratch.path(FILE);
    let [good, entry] = [serde_json::to_string(&header).unwrap(), serde_json::to_string(&entries[0]).unwrap()];
    let late = |line: &str, from: u64| {
        let (old, new) = (format!("\"started_unix_ms\":{from}"), "\"started_unix_ms\":253402300800000");
        assert!(line.contains(&old));
        line.replace(&old, new)
    };
    let reason = "invalid started_unix_ms `253402300800000`: expected a date up to the year 9999";
    fs::write(&file, format!("{good}\n{}\n", late(&entry, entries[0].record.started_unix_ms))).unwrap();
    let damage = read(scratch.dir()).unwrap().damage[0].to_string();
    assert!(damage.starts_with(&format!("{}:2: damaged line ({reason}", file.display())), "{damage}");
    fs::write(&file, late(&good, header.started_unix_ms) + "\n").unwrap();
    let refused = read(scratch.dir()).unwrap_err().to_string();
    assert!(refused.starts_with(&format!("{}:1: invalid header: {reason}", file.display())), "{refused}");
}

#[test]
fn imports_have_checksums_and_dates_too() {
    let scratch = Scratch::make();
    let header = ImportHeader {
        format: punctual_model::RUN_FORMAT,
        tool: "t".to_owned(),
        imported_unix_ms: 5,
        title: String::new(),
        require: punctual_model::Requirement::default(),
    };
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../import/tests/files/cyclictest-h.txt");
    let mut imported = import(&source, &ImportOptions::default()).unwrap().remove(0);
    (imported.started_unix_ms, imported.threads[0].missed) = (Some(7), Some(2000));
    let file = keep_imported(scratch.dir(), &header, std::slice::from_ref(&imported)).unwrap();
    let read = || read_imported(scratch.dir()).map(|run| run.unwrap());
    assert_eq!(read().unwrap().measurements, [imported]);
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replace("\"missed\":2000", "\"missed\":2001")).unwrap();
    let damage = read().unwrap().damage[0].to_string();
    assert!(damage.contains(":2: damaged line (checksum mismatch); "), "{damage}");
    fs::write(&file, text.replace("\"imported_unix_ms\":5", "\"imported_unix_ms\":6")).unwrap();
    assert!(read().unwrap_err().to_string().contains(":1: invalid header: checksum mismatch; "));
    let late = text.replace("\"started_unix_ms\":7", "\"started_unix_ms\":253402300800000");
    let late: Vec<_> = late.lines().map(|line| line.split(",\"xxh3\"").next().unwrap().to_owned() + "}\n").collect();
    fs::write(&file, late.concat()).unwrap();
    let damage = read().unwrap().damage[0].to_string();
    assert!(damage.contains(":2: damaged line (invalid started_unix_ms `253402300800000`: "), "{damage}");
}

#[test]
fn hosts_that_differ_in_counts_share_their_memory_once_they_are_written() {
    let scratch = Scratch::make();
    let (_, entries) = a_run(scratch.dir());
    let of = |cpu_time_ms, kernel: &str| {
        let mut entry = entries[0].clone();
        for host in [&mut entry.record.host_before, &mut entry.record.host_after] {
            let host = Arc::make_mut(host);
            (host.platform.cpu_time_ms, host.tasks.looked_at) = (Some(cpu_time_ms), Some(7));
            host.kernel_release = Some(kernel.to_owned());
        }
        entry
    };
    let shares = |alike: bool, second: Entry| {
        let mut hosts = Hosts::default();
        let [first, second] = [of(1, "a"), second].map(|one| if alike { hosts.alike(one) } else { hosts.shared(one) });
        Arc::ptr_eq(&first.record.host_after, &second.record.host_before)
    };
    assert!(shares(true, of(2, "a")) && !shares(true, of(2, "b")));
    assert!(shares(false, of(1, "a")) && !shares(false, of(2, "a")));
}
