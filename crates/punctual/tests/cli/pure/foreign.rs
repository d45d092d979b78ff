//! Files of other users: nothing in them controls a terminal, forges a line, is read without limit or ends in an abort.

use crate::program::{PROGRAM, ProgramOutput, Scratch, ended};
use crate::session::play;
use punctual_analysis::testing::RunBuilder;
use punctual_model::Header;
use std::path::{Path, PathBuf};
use std::process::Command;

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
        let acts = |c: char| c != '\n' && !punctual_model::is_plain(c);
        assert!(!said.stdout.contains(acts) && !said.stderr.contains(acts), "{format}: {said:?}");
        let forged = said.stdout.lines().any(|line| line.starts_with("<LAVA_SIGNAL_TESTCASE TEST_CASE_ID=forged"));
        assert!(!forged, "{format}: {said:?}");
        let shows_names = ["text --all", "json", "csv"].contains(&format);
        assert!(said.stdout.contains("forged") || !shows_names, "{format}: {said:?}");
    }
}

#[test]
fn what_is_quoted_or_read_has_an_end() {
    play(|scratch, _| drop(a_run(scratch, "run", |_| {})));
}
