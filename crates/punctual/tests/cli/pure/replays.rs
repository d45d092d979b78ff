//! Recorded faults, explained again: the same cause, owner and nanoseconds on every machine.

use crate::program::{Scratch, command, punctual, run};
use crate::servo::{FAULTS, Fault, is_of};
use expect_test::expect_file;
use model::Explanation;
use serde_json::Value;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// The recordings.
pub(crate) fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/captures")
}

/// The file of the recording of a fault.
pub(crate) fn file_of(fault: &Fault) -> String {
    format!("servo-{}.dat.zst", fault.name.replace('_', "-"))
}

/// Spikes of a recording, as they are explained now.
fn again(path: &Path) -> Vec<Explanation> {
    let said = run(command("explain --again --format json").arg(path));
    assert_eq!((said.status, said.stderr.as_str()), (0, ""), "{}", path.display());
    let spikes = said.json()["spikes"].as_array().unwrap().clone();
    spikes.into_iter().map(|spike: Value| serde_json::from_value(spike["now"].clone()).unwrap()).collect()
}

/// Recordings are explained where system calls have their numbers.
fn may_replay() -> bool {
    let is_same = cfg!(target_arch = "x86_64");
    if !is_same {
        eprintln!("skipped: recorded on x86_64");
    }
    is_same
}

#[test]
fn every_planted_fault_is_named_in_its_recording() {
    if !may_replay() {
        return;
    }
    let mut text = String::new();
    for fault in &FAULTS {
        let all = again(&directory().join(file_of(fault)));
        let is_named = |one: &Explanation| one.blame().is_some_and(|share| is_of(share, fault));
        assert!(all.iter().any(is_named), "{}: {all:#?}", fault.name);
        writeln!(text, "{}", file_of(fault)).unwrap();
        for one in &all {
            assert!(one.is_complete(), "{one:#?}");
            writeln!(text, "  {}: {} ns", one.thread.as_ref().unwrap().name, one.latency.ns()).unwrap();
            for share in &one.shares {
                let said = (share.total.ns(), share.pieces, share.evidence);
                let code = share.code.as_ref().map_or("", |code| code.at.function.as_deref().unwrap_or("?"));
                writeln!(text, "    {said:?} {} {code}", crate::servo::described(share)).unwrap();
            }
        }
    }
    expect_file![directory().join("verdicts.txt")].assert_eq(&text);
}

#[test]
fn nothing_is_measured_with_again() {
    for (arguments, line) in [
        ("explain --again --above 1ms", "--again cannot be combined with --above <TIME>"),
        ("explain nanosleep --again --cpus 0", "--again cannot be combined with --cpus <LIST>"),
        ("watch --again -- true", "--again cannot be combined with [COMMAND]..."),
        ("watch x --again --no-explain", "--again cannot be combined with --no-explain"),
        ("explain . --again", "invalid run .: it has no run.jsonl; name a directory written by `punctual run`"),
        (
            "explain .",
            "invalid method `.`: expected a way to wait; to explain the spikes of a run: punctual explain . --again",
        ),
        ("explain . --again --format md", "unsupported: --again in this format; use text or json"),
        (
            "watch ./servo",
            "unknown argument `./servo`: a program to watch comes after `--`, like punctual watch -- ./servo",
        ),
    ] {
        let said = punctual(arguments);
        assert_eq!((said.status, said.stderr.as_str()), (1, format!("punctual: {line}\n").as_str()), "{arguments}");
    }
}

#[test]
fn recordings_that_cannot_be_read_are_named_and_the_others_are_explained() {
    if !may_replay() {
        return;
    }
    let scratch = Scratch::new("replays");
    let whole = std::fs::read(directory().join(file_of(&FAULTS[0]))).unwrap();
    let captures = scratch.path("captures");
    std::fs::create_dir(&captures).unwrap();
    scratch.file("run.jsonl", "");
    let run_dir = scratch.dir();
    let none = punctual(&format!("explain {} --again", run_dir.display()));
    assert_eq!((none.status, none.stdout.as_str()), (1, ""));
    assert!(none.last_line().contains("no events are kept of its spikes"), "{none:?}");
    let mut damaged = whole.clone();
    let middle = damaged.len() / 2;
    damaged[middle] ^= 1;
    for (name, content) in [("a.dat.zst", &whole[..]), ("b.dat.zst", &damaged), ("c.dat.zst", b"text"), ("d.txt", b"")]
    {
        std::fs::write(captures.join(name), content).unwrap();
    }
    std::os::unix::fs::symlink(captures.join("a.dat.zst"), captures.join("e.dat.zst")).unwrap();
    let said = punctual(&format!("explain {} --again", run_dir.display()));
    assert_eq!(said.status, 1);
    let n = again(&captures.join("a.dat.zst")).len();
    assert!(said.stdout.starts_with(&format!("0 of {n} verdict")), "{said:?}");
    let lines: Vec<&str> = said.stderr.lines().collect();
    for (line, begin) in lines.iter().zip([
        "punctual: b.dat.zst: damaged",
        "punctual: c.dat.zst: damaged",
        "punctual: e.dat.zst: cannot read",
    ]) {
        assert!(line.starts_with(begin), "{said:?}");
    }
    assert_eq!(lines.len(), 3, "{said:?}");
}
