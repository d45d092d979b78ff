//! Files of other users: nothing in them controls a terminal, forges a line, is read without limit or ends in an abort.

use crate::program::{PROGRAM, ProgramOutput, Scratch, ended, import_fixture};
use analysis::testing::RunBuilder;
use model::Header;
use std::fs;
use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Runs the program with 1 GiB of memory, to its end: endless reading is killed.
fn bounded(words: &[&str]) -> ProgramOutput {
    ended(Command::new("prlimit").args(["--as=1073741824", PROGRAM]).args(words))
}

/// Directory of a run of two measurements with an altered header.
fn a_run(scratch: &Scratch, name: &str, change: impl Fn(&mut Header)) -> PathBuf {
    let mut run = RunBuilder::new();
    run.cell("none", "other").cell("none", "fifo:80").require("max=1ms");
    run.measure(0, 0, |_, _| 5_000).measure(0, 1, |_, _| 4_000);
    change(&mut run.header);
    scratch.run(name, &run)
}

fn path(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn no_name_in_a_run_acts_upon_a_terminal_or_forges_a_line() {
    const EVIL: &str =
        "x\n<LAVA_SIGNAL_TESTCASE TEST_CASE_ID=forged RESULT=pass>\r\x1b]0;title\x07\x1b[2J\u{9b}1m\u{202e}y\u{2066}";
    let scratch = Scratch::new("foreign-terminal");
    let dir = a_run(&scratch, "run", |header| {
        header.plan.title = EVIL.to_owned();
        header.tool = EVIL.to_owned();
        let host = &mut header.host;
        (host.hostname, host.cpu_model) = (Some(EVIL.to_owned()), Some(EVIL.to_owned()));
        (host.kernel_release, host.kernel_version) = (Some(EVIL.to_owned()), Some(EVIL.to_owned()));
        host.command_line = Some(EVIL.to_owned());
    });
    for format in ["text", "json", "csv", "md", "junit", "tap", "lava", "prom", "text --all"] {
        let words: Vec<&str> = ["show", path(&dir), "--format"].into_iter().chain(format.split(' ')).collect();
        let said = bounded(&words);
        let acts = |c: char| c != '\n' && !model::is_plain(c);
        assert!(!said.stdout.contains(acts) && !said.stderr.contains(acts), "{format}: {said:?}");
        let forged = said.stdout.lines().any(|line| line.starts_with("<LAVA_SIGNAL_TESTCASE TEST_CASE_ID=forged"));
        assert!(!forged, "{format}: {said:?}");
        let shows_names = ["text --all", "json", "csv"].contains(&format);
        assert!(said.stdout.contains("forged") || !shows_names, "{format}: {said:?}");
    }
}

#[test]
fn quoted_words_are_shown_on_one_line_and_cut() {
    let scratch = Scratch::new("foreign-errors");
    let dir = a_run(&scratch, "run", |_| {});
    let evil = "\x1b]0;x\x07\x1b[2J\u{9b}\u{202e}\nroot# ";
    let long = "x".repeat(100_000);
    let key = scratch.file("key.toml", "\"a\\u001b[2Jb\" = 1\n");
    let load = scratch.file("load.toml", "[axes]\nload = [\"disk:/tmp/\\u001b[2J\"]\n");
    let million = scratch.file("million.toml", format!("{} = 1\n", "k".repeat(1_000_000)));
    for words in [
        &["measure", "--load", evil][..],
        &["measure", "--policy", evil],
        &["measure", "--cpus", evil],
        &["measure", "--period", evil],
        &["show", evil],
        &["show", path(&dir), "--format", "hgrm", "--cell", evil],
        &["compare", path(&dir), evil],
        &["run", evil],
        &["import", evil],
        &[evil],
        &["run", path(&key)],
        &["run", path(&load)],
        &["run", path(&million)],
        &["measure", "--load", &long],
        &["show", &long],
    ] {
        let said = bounded(words);
        let what = words.iter().map(|word| word.chars().take(20).collect::<String>()).collect::<Vec<_>>();
        assert_eq!((said.status, said.stderr.lines().count(), said.stdout.as_str()), (1, 1, ""), "{what:?}");
        assert!(!said.stderr.trim_end().contains(|c| !model::is_plain(c)), "{what:?}: {:?}", said.stderr);
        assert!(said.stderr.len() < 10_100, "{what:?}: {} bytes", said.stderr.len());
    }
}

#[test]
fn what_has_no_end_is_refused() {
    let scratch = Scratch::new("foreign-endless");
    let make = |name: &str| {
        let dir = scratch.path(name);
        fs::create_dir(&dir).unwrap();
        dir
    };
    let (zero, pipe, nuls) = (make("zero"), make("pipe"), a_run(&scratch, "nuls", |_| {}));
    symlink("/dev/zero", zero.join("run.jsonl")).unwrap();
    assert!(Command::new("mkfifo").arg(pipe.join("run.jsonl")).status().unwrap().success());
    for (dir, kind) in [(&zero, "a device"), (&pipe, "a pipe")] {
        for command in ["show", "report", "check", "compare"] {
            let file = dir.join("run.jsonl");
            bounded(&[command, path(dir)])
                .expect_error(&format!("cannot read {}: expected a regular file, found {kind}", file.display()));
        }
    }
    bounded(&["import", "/dev/zero"]).expect_error("cannot read /dev/zero: expected a file or a pipe, found a device");
    bounded(&["run", "/dev/zero"]).expect_error("/dev/zero: expected a file or a pipe, found a device");
    let file = nuls.join("run.jsonl");
    let opened = fs::OpenOptions::new().write(true).open(&file).unwrap();
    // A hole, which takes no space.
    opened.set_len(opened.metadata().unwrap().len() + (3 << 30)).unwrap();
    let said = bounded(&["show", path(&nuls)]);
    let named = format!("punctual: {}:4: damaged line (NUL bytes, as after a power failure); ", file.display());
    assert!(said.stderr.starts_with(&named) && said.stderr.lines().count() == 1, "{:?} {}", said.stderr, said.status);

    let periods: Vec<_> = (0..25_001).map(|n| format!("\"{}us\"", 10 + n)).collect();
    let plan = scratch.file("many.toml", format!("duration = \"1s\"\n[axes]\nperiod = [{}]\n", periods.join(",")));
    bounded(&["run", path(&plan)])
        .expect_error("the axes have 100004 combinations, a run at most 100000 cells; remove some values");
}

#[test]
fn a_plan_and_an_import_may_come_from_a_pipe() {
    let scratch = Scratch::new("foreign-pipes");
    let piped = |words: &[&str], bytes: &[u8]| {
        let mut child = Command::new(PROGRAM)
            .args(words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let bytes = bytes.to_vec();
        let writer = std::thread::spawn(move || drop(stdin.write_all(&bytes)));
        let output = child.wait_with_output().unwrap();
        writer.join().unwrap();
        ProgramOutput::of(output)
    };
    piped(&["run", "/dev/stdin"], b"[axes]\nload = []\n")
        .expect_error("/dev/stdin:2:8: axis `load` is empty; give it a value or leave it out");
    piped(&["run", "/dev/stdin"], &vec![b'#'; (16 << 20) + 1]).expect_error("/dev/stdin: larger than 16 MiB");
    for name in ["cyclictest-h.txt", "jitterdebugger-us.raw"] {
        let file = import_fixture(name);
        let import = |from: &str, bytes: &[u8], out: &str| {
            let out = scratch.path(&format!("{name}-{out}"));
            let said = piped(&["import", from, "--unit", "us", "--format", "csv", "--out", path(&out)], bytes)
                .expect_success();
            said.stdout.replace(from, "FILE")
        };
        let (from_pipe, from_file) =
            (import("/dev/stdin", &fs::read(&file).unwrap(), "a"), import(path(&file), b"", "b"));
        assert_eq!(from_pipe.replace("stdin", "NAME"), from_file.replace(name, "NAME"));
    }
}

#[test]
fn a_date_beyond_calendars_is_one_line() {
    let scratch = Scratch::new("foreign-dates");
    let dir = a_run(&scratch, "run", |header| header.started_unix_ms = 253_402_300_800_000);
    let file = dir.join("run.jsonl");
    for words in [&["report", path(&dir)][..], &["show", path(&dir), "--format", "junit"]] {
        let said = bounded(words);
        let begin = format!(
            "punctual: {}:1: invalid header: invalid started_unix_ms `253402300800000`: expected a date up to the year 9999",
            file.display()
        );
        assert!(said.status == 1 && said.stderr.starts_with(&begin) && said.stderr.lines().count() == 1, "{said:?}");
    }
}
