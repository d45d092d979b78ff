//! Named places of the program (`punctual_sys::fail`): a run lists those that it passes, and a test visits each.

use crate::program::{Scratch, is_stopped, set_mode};
use punctual_model::Cell;
use punctual_sys::testing::comes_true;
use std::collections::BTreeSet;
use std::fs::File;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};

/// What processes of the program say about the places that they pass.
#[derive(Debug)]
pub(crate) struct Places {
    scratch: Scratch,
}

impl Places {
    pub(crate) fn new() -> Places {
        let scratch = Scratch::new("places");
        set_mode(scratch.dir(), 0o777);
        Places { scratch }
    }

    fn list(&self) -> PathBuf {
        self.scratch.path("list")
    }

    fn log(&self) -> PathBuf {
        self.scratch.path("log")
    }

    /// Makes `command` and its descendants do this, like `kill:NAME`, besides listing the places that they pass; `""`
    /// for the list alone. What earlier ones said is forgotten.
    pub(crate) fn act<'a>(&self, command: &'a mut Command, action: &str) -> &'a mut Command {
        for file in [self.list(), self.log()] {
            std::fs::write(&file, "").expect("a scratch file");
            // For programs of other users.
            set_mode(file, 0o666);
        }
        let list = format!("list:{}", self.list().display());
        let all = if action.is_empty() { list } else { format!("{action},{list}") };
        command.env("PUNCTUAL_FAIL_AT", all).env("PUNCTUAL_FAIL_LOG", self.log())
    }

    /// Starts `punctual cell` by `command` with `cell` on its stdin, which a killed one may not read.
    pub(crate) fn start_cell(&self, mut command: Command, cell: &Cell) -> Child {
        let json = serde_json::to_vec(cell).expect("a cell is JSON");
        let stdin = File::open(self.scratch.file("cell.json", json)).expect("a scratch file");
        command.stdin(stdin).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the program starts")
    }

    /// The places that were passed so far, each once, in order; `NAME@2` for the second passage of a process. Those of
    /// the process `by`, if one is named.
    pub(crate) fn passed(&self, by: Option<u32>) -> Vec<String> {
        let mut seen = BTreeSet::new();
        let passed = lines(self.list()).into_iter().filter(|(_, pid)| by.is_none_or(|by| by == *pid));
        passed.filter(|(place, _)| seen.insert(place.clone())).map(|(place, _)| place).collect()
    }

    /// Whether the place was passed.
    pub(crate) fn has(&self, place: &str) -> bool {
        self.passed(None).iter().any(|passed| passed == place)
    }

    /// The places that were passed, which must hold each of `needed`: one that has vanished is not visited any more.
    #[track_caller]
    pub(crate) fn all(&self, by: Option<u32>, needed: &[&str]) -> Vec<String> {
        let passed = self.passed(by);
        let lacking: Vec<_> = needed.iter().filter(|name| !passed.iter().any(|passed| passed == *name)).collect();
        assert!(lacking.is_empty(), "not passed: {lacking:?}, but {passed:?}");
        passed
    }

    /// The processes that did `action`.
    pub(crate) fn acted(&self, action: &str) -> Vec<u32> {
        lines(self.log()).into_iter().filter(|(done, _)| done == action).map(|(_, pid)| pid).collect()
    }

    /// Waits for the end of `child`, which was to be killed at `place`, or a descendant of it.
    #[track_caller]
    pub(crate) fn killed(&self, child: &mut Child, place: &str) -> ExitStatus {
        let status = child.wait().expect("a child");
        let killed = self.acted(&format!("kill:{place}"));
        assert!(!killed.is_empty(), "{place} was not passed: {:?}", self.passed(None));
        let is_first = killed.contains(&child.id());
        assert_eq!(is_first, status.signal() == Some(libc::SIGKILL), "{place}: {status}");
        status
    }

    /// Waits until a process, `child` or a descendant of it, is stopped at `place`, and returns its ID.
    #[track_caller]
    pub(crate) fn stopped(&self, child: &mut Child, place: &str) -> u32 {
        let action = format!("stop:{place}");
        let is_there = || self.acted(&action).first().is_some_and(|pid| is_stopped(*pid));
        let mut status = None;
        let is_known = comes_true(|| {
            status = child.try_wait().expect("a child");
            status.is_some() || is_there()
        });
        assert!(is_known && status.is_none(), "not stopped at {place} ({status:?}): {:?}", self.passed(None));
        self.acted(&action).remove(0)
    }
}

/// Lines of a word and a process ID.
fn lines(file: PathBuf) -> Vec<(String, u32)> {
    let text = std::fs::read_to_string(file).expect("a scratch file");
    let words = text.lines().filter_map(|line| line.split_once(' '));
    words.map(|(word, pid)| (word.to_owned(), pid.parse().expect("a process ID"))).collect()
}

/// The first passages among `places`.
pub(crate) fn names(places: Vec<String>) -> Vec<String> {
    places.into_iter().filter(|place| !place.contains('@')).collect()
}

/// Lets a stopped process go on.
pub(crate) fn go_on(pid: u32) {
    punctual_sys::process::signal(pid, libc::SIGCONT).expect("it exists");
}
