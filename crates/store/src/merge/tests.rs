//! Shards of one run merge to it, whatever their order; others are refused and nothing is lost.

use super::super::{create, read};
use super::*;
use punctual_analysis::testing::{RunBuilder, lab};
use punctual_host::testing::Scratch;
use punctual_model::{Entry, planned_order};
use std::fs;
use std::sync::Arc;

/// A run of 5 blocks of two cells, of this machine or in virtual time.
fn whole(is_virtual: bool) -> (Header, Vec<Entry>) {
    of_kernels(if is_virtual { &["debian:6.1"; 2] } else { &["running"; 2] })
}

/// A run of 5 blocks of a cell of each of these kernels.
fn of_kernels(kernels: &[&str]) -> (Header, Vec<Entry>) {
    let mut run = RunBuilder::new();
    for (kernel, (load, policy)) in
        kernels.iter().zip([("none", "other"), ("messaging", "fifo:80"), ("none", "fifo:80")])
    {
        run.cell(load, policy);
        run.header.cells.last_mut().unwrap().kernel = kernel.parse().unwrap();
    }
    let is_virtual = run.header.is_virtual();
    run.header.plan.repetitions = 5;
    for planned in run.header.measurements() {
        let late = i64::from(planned.block) * 100;
        run.measure(planned.block, planned.cell_index, |cpu, cycle| {
            late + i64::from(cpu) + i64::try_from(cycle % 7).unwrap()
        });
        let entry = run.entries.last_mut().unwrap();
        entry.planned = planned;
        entry.record.lab = is_virtual.then(lab);
    }
    (run.header, run.entries)
}

/// Writes the shards of a run; returns their directories.
fn shards(scratch: &Scratch, (header, entries): &(Header, Vec<Entry>), n: u32) -> Vec<PathBuf> {
    let first: Shard = format!("1/{n}").parse().unwrap();
    first.all().map(|shard| shard_of(scratch, header, entries, shard, &shard.to_string().replace('/', "of"))).collect()
}

fn shard_of(scratch: &Scratch, header: &Header, entries: &[Entry], shard: Shard, name: &str) -> PathBuf {
    let dir = scratch.path(name);
    let header = Header { shard: Some(shard), ..header.clone() };
    let mut writer = create(&dir, &header).unwrap();
    let own = header.measurements();
    entries.iter().filter(|entry| own.contains(&entry.planned)).for_each(|entry| writer.entry(entry).unwrap());
    dir
}

fn of(dirs: &[PathBuf], out: &Path) -> Result<Merged, String> {
    forced(dirs, out, false)
}

fn forced(dirs: &[PathBuf], out: &Path, force: bool) -> Result<Merged, String> {
    let parts = dirs.iter().map(|dir| Part::open(dir).unwrap().unwrap()).collect();
    merge(parts, out, force).map_err(|err| err.to_string())
}

fn bytes(dir: &Path) -> Vec<u8> {
    fs::read(dir.join("run.jsonl")).unwrap()
}

#[test]
fn shards_in_any_order_make_the_same_run_as_one_machine() {
    if !punctual_sys::testing::runs_alone() {
        return;
    }
    for is_virtual in [false, true] {
        let scratch = Scratch::make();
        let run = whole(is_virtual);
        let alone = scratch.path("alone");
        let mut writer = create(&alone, &run.0).unwrap();
        run.1.iter().for_each(|entry| writer.entry(entry).unwrap());
        drop(writer);
        for n in [1, 2, 4] {
            let mut dirs = shards(&scratch, &run, n);
            dirs.rotate_left(1);
            dirs.reverse();
            let out = scratch.path(&format!("merged-{n}"));
            let merged = of(&dirs, &out).unwrap();
            assert_eq!((merged.made, merged.all, merged.is_changed), (10, 10, true));
            assert!(merged.incomplete.is_empty() && merged.damage.is_empty() && merged.notes.is_empty());
            assert_eq!(bytes(&out), bytes(&alone), "{n}");
            // Again, and with a shard named twice.
            dirs.push(dirs[0].clone());
            let modified = || fs::metadata(out.join("run.jsonl")).unwrap().modified().unwrap();
            let before = modified();
            assert!(!of(&dirs, &out).unwrap().is_changed);
            assert_eq!((bytes(&out), modified()), (bytes(&alone), before));
            dirs.iter().for_each(|dir| drop(fs::remove_dir_all(dir)));
        }
    }
}

/// Those of an installed kernel are measured one after the other in each block, because each is booted.
#[test]
fn shards_of_a_run_over_boots_make_the_whole_run() {
    if !punctual_sys::testing::runs_alone() {
        return;
    }
    let scratch = Scratch::make();
    let run = of_kernels(&["installed:6.1.0-rt", "installed:6.12.0", "installed:6.1.0-rt"]);
    assert_ne!(run.0.measurements(), planned_order(3, 5, run.0.seed));
    let merged = of(&shards(&scratch, &run, 2), &scratch.path("out")).unwrap();
    assert_eq!((merged.made, merged.damage.len(), merged.incomplete), (15, 0, Vec::new()));
    assert_eq!(read(&scratch.path("out")).unwrap().entries, run.1);
}

#[test]
fn what_is_missing_is_named_and_can_be_added() {
    if !punctual_sys::testing::runs_alone() {
        return;
    }
    let scratch = Scratch::make();
    let run = whole(false);
    let dirs = shards(&scratch, &run, 3);
    let out = scratch.path("out");
    // The last line of a shard is torn, and another shard is lost.
    let torn = bytes(&dirs[1]);
    fs::write(dirs[1].join("run.jsonl"), &torn[..torn.len() - 10]).unwrap();
    let merged = of(&dirs[..2], &out).unwrap();
    assert_eq!((merged.made, merged.all), (4 + 3, 10));
    let named = |merged: &Merged| -> Vec<_> {
        merged.incomplete.iter().map(|one| format!("{} {} {}", one.shard, one.made, one.all)).collect()
    };
    assert_eq!(named(&merged), ["2/3 3 4", "3/3 0 2"]);
    assert!(merged.damage[0].to_string().contains("1of3") ^ merged.damage[0].to_string().contains("2of3"));
    assert_eq!(read(&out).unwrap().entries.len(), 7);
    // The repaired shard and the late one complete it.
    fs::write(dirs[1].join("run.jsonl"), torn).unwrap();
    let merged = of(&dirs[1..], &out).unwrap();
    assert_eq!((merged.made, merged.is_changed, named(&merged)), (10, true, vec![]));
    let found = read(&out).unwrap();
    assert_eq!((found.entries, found.header.shard), (run.1, None));
}

type Change = fn(&mut Header, &mut Vec<Entry>);
/// Changes of a shard's run, with the reason for which it does not belong to the others.
const CHANGES: [(&str, Change, &str); 7] = [
    (
        "version",
        |header, _| header.tool = "punctual 9".to_owned(),
        "they differ in the version that measured (punctual 0.1.0 and punctual 9)",
    ),
    (
        "plan",
        |header, entries| {
            header.plan.repetitions = 6;
            header.plan.axes.load.pop();
            entries.clear()
        },
        "they are parts of different plans, which differ in axes.load, repetitions",
    ),
    (
        "seed",
        |header, entries| {
            header.seed = 8;
            entries.clear()
        },
        "they differ in the seed of the order (7 and 8)",
    ),
    ("samples", |header, _| header.samples = true, "only one of them keeps samples"),
    (
        "cells",
        |header, entries| {
            header.cells[0].cpus = [0].into_iter().collect();
            entries.clear()
        },
        "their cells differ in measured CPUs (0-1 and 0, 0-1)",
    ),
    (
        "machine",
        |header, _| header.host.cpu_model = Some("Cortex-A76".to_owned()),
        "their machines differ: CPU model (",
    ),
    ("kernel", |header, _| header.host.kernel_release = Some("6.99".to_owned()), "their machines differ: kernel ("),
];

#[test]
fn what_does_not_belong_together_is_refused_and_named() {
    let scratch = Scratch::make();
    let (header, entries) = whole(false);
    let shard = |text: &str| text.parse::<Shard>().unwrap();
    let a = shard_of(&scratch, &header, &entries, shard("1/2"), "a");
    for (name, change, reason) in CHANGES {
        let (mut header, mut entries) = (header.clone(), entries.clone());
        change(&mut header, &mut entries);
        let b = shard_of(&scratch, &header, &entries, shard("2/2"), name);
        let out = scratch.path(&format!("{name}-out"));
        let expected = format!("cannot merge {} and {}: {reason}", a.display(), b.display());
        let said = of(&[a.clone(), b.clone()], &out).unwrap_err();
        assert!(said.starts_with(&expected), "{said}\n{expected}");
        assert!(!out.exists());
        if reason.starts_with("their machines") {
            assert!(said.ends_with("; --force merges them anyway"), "{said}");
            let merged = forced(&[a.clone(), b], &out, true).unwrap();
            assert_eq!((merged.made, merged.notes.len()), (10, 1));
        }
    }
    let third = shard_of(&scratch, &header, &entries, shard("3/3"), "third");
    let said = of(&[a.clone(), third], &scratch.path("numbers")).unwrap_err();
    assert!(said.ends_with(": they are the shards 1/2 and 3/3"), "{said}");
}

#[test]
fn two_results_of_one_measurement_are_refused() {
    let scratch = Scratch::make();
    let (header, mut entries) = whole(false);
    let shard: Shard = "1/2".parse().unwrap();
    let a = shard_of(&scratch, &header, &entries, shard, "a");
    entries[0].record.started_unix_ms += 1;
    let b = shard_of(&scratch, &header, &entries, shard, "b");
    let said = of(&[a, b], &scratch.path("out")).unwrap_err();
    assert!(said.contains(": both hold block 1 of "), "{said}");
    assert!(said.ends_with(", with different results; name one of them"), "{said}");
}

#[test]
fn guests_of_another_qemu_kernel_or_program_are_refused() {
    type Change = fn(&mut punctual_model::LabRecord);
    let changes: [(Change, &str); 3] = [
        (
            |lab| lab.qemu = "QEMU emulator version 8.0".to_owned(),
            "their guests differ in QEMU (QEMU emulator version 7.2.0 and QEMU emulator version 8.0)",
        ),
        (|lab| lab.kernel_hash = "1".repeat(16), "their guests differ in the content of the kernel ("),
        (|lab| lab.initramfs_hash = "1".repeat(16), "their guests differ in initramfs, which holds punctual itself ("),
    ];
    for (change, reason) in changes {
        let scratch = Scratch::make();
        let (header, mut entries) = whole(true);
        let a = shard_of(&scratch, &header, &entries, "1/2".parse().unwrap(), "a");
        entries.iter_mut().for_each(|entry| change(entry.record.lab.as_mut().unwrap()));
        let b = shard_of(&scratch, &header, &entries, "2/2".parse().unwrap(), "b");
        let said = of(&[a, b], &scratch.path("out")).unwrap_err();
        assert!(said.contains(reason), "{said}");
    }
}

#[test]
fn what_lies_in_the_way_is_kept() {
    if !punctual_sys::testing::runs_alone() {
        return;
    }
    let scratch = Scratch::make();
    let dirs = shards(&scratch, &whole(false), 2);
    let said = |out: &Path| of(&dirs, out).unwrap_err();
    let full = scratch.path("full");
    fs::create_dir(&full).unwrap();
    fs::write(full.join("thesis.tex"), "precious").unwrap();
    let expected = format!("cannot merge into {}: it exists and is not a run; name a new directory", full.display());
    assert_eq!(said(&full), expected);
    let expected = format!("cannot merge into {}: it is shard 1/2; name another directory", dirs[0].display());
    assert_eq!(said(&dirs[0]), expected);
    let file = scratch.file("file", "x");
    assert!(said(&file).ends_with(": it is not a directory; name a new one"));
    // A link in place of the run's file.
    let linked = scratch.path("linked");
    fs::create_dir(&linked).unwrap();
    std::os::unix::fs::symlink(dirs[0].join("run.jsonl"), linked.join("run.jsonl")).unwrap();
    let expected = format!("cannot read {}: expected a regular file, found a link", linked.join("run.jsonl").display());
    assert_eq!(said(&linked), expected);
    assert_eq!(Part::open(&linked).unwrap_err().to_string(), expected);
    // A merge or a measurement that still writes.
    let out = scratch.path("out");
    fs::create_dir(&out).unwrap();
    let other = fs::File::open(&out).unwrap();
    other.lock().unwrap();
    assert!(said(&out).ends_with(": another merge writes it; wait for its end"));
    drop(other);
    of(&dirs, &out).unwrap();
    let writer = super::super::append(&out, 10).unwrap();
    assert!(said(&out).ends_with(": a measurement writes it; wait for its end"));
    drop(writer);
    assert!(!of(&dirs, &out).unwrap().is_changed);
}

#[test]
fn a_killed_merge_leaves_nothing_in_the_way() {
    let scratch = Scratch::make();
    let dirs = shards(&scratch, &whole(false), 2);
    let out = scratch.path("out");
    fs::create_dir_all(out.join("samples")).unwrap();
    fs::write(out.join("run.jsonl.new"), "half").unwrap();
    assert_eq!(of(&dirs, &out).unwrap().made, 10);
    assert!(!out.join("run.jsonl.new").exists());
    // A shard whose process was killed before it wrote a header.
    let empty = scratch.path("empty");
    fs::create_dir(&empty).unwrap();
    fs::write(empty.join("run.jsonl.new"), "half").unwrap();
    assert!(Part::open(&empty).unwrap().is_none());
    fs::write(empty.join("other"), "").unwrap();
    assert!(Part::open(&empty).unwrap_err().to_string().contains("it has no run.jsonl"));
}

#[test]
fn samples_captures_films_and_failures_come_along() {
    let scratch = Scratch::make();
    let (header, mut entries) = whole(false);
    let header = Header { samples: true, ..header };
    let lost = entries.remove(3).planned;
    let dirs: Vec<_> = ["1/2", "2/2"]
        .into_iter()
        .map(|text| {
            let dir = shard_of(&scratch, &header, &entries, text.parse().unwrap(), &text.replace('/', "of"));
            ["samples", "captures"].into_iter().for_each(|name| fs::create_dir(dir.join(name)).unwrap());
            dir
        })
        .collect();
    let owner = &dirs[usize::try_from(lost.block % 2).unwrap()];
    super::super::failed::keep(owner, &[Failed { planned: lost, reason: "the load died".to_owned() }]).unwrap();
    for entry in entries.iter().skip(1) {
        let planned = entry.planned;
        let dir = &dirs[usize::try_from(planned.block % 2).unwrap()];
        fs::write(dir.join("samples").join(super::super::writer::sample_name(&planned)), format!("{planned:?}"))
            .unwrap();
        let capture = format!("{}-spike.dat.zst", super::super::writer::stem(&planned));
        fs::write(dir.join("captures").join(capture), format!("{planned:?}")).unwrap();
    }
    let film = KeptFilm { planned: entries[1].planned, cycle: 3, film: Arc::default() };
    dirs.iter().for_each(|dir| crate::keep_film(dir, film.clone()).unwrap());
    let out = scratch.path("out");
    let merged = of(&dirs, &out).unwrap();
    assert_eq!((merged.made, merged.notes.len(), merged.failed.len()), (9, 1, 1));
    assert_eq!(crate::films::of_directory(&out), [film]);
    assert!(merged.notes[0].starts_with("missing samples: "), "{:?}", merged.notes);
    assert_eq!(read(&out).unwrap().header.failed[0].reason, "the load died");
    for entry in entries.iter().skip(1) {
        let copy = out.join("samples").join(super::super::writer::sample_name(&entry.planned));
        assert_eq!(fs::read_to_string(copy).unwrap(), format!("{:?}", entry.planned));
        let capture = format!("{}-spike.dat.zst", super::super::writer::stem(&entry.planned));
        assert_eq!(crate::read_capture(&out, &capture).unwrap(), format!("{:?}", entry.planned).into_bytes());
    }
}
