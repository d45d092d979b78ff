//! Frames of the interpreters that are installed here, which say themselves where they are.

use super::*;
use punctual_host::mapped_code;
use punctual_model::CodeFrame;
use punctual_host::testing::Scratch;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};

/// A thread beside the main one waits in known lines, and says before what its frames are; then both call, for as long
/// as they run, one of two functions from one of two lines.
const SCRIPT: &str = "\
import sys, threading
try: tid = threading.get_native_id
except AttributeError: tid = lambda: 0
def told():
    frame, all = sys._getframe(1), [str(tid())]
    while frame: all, frame = all + ['%s:%d' % (frame.f_code.co_name, frame.f_lineno)], frame.f_back
    print(' '.join(all), flush=True)
def solve_ik(depth):
    if depth: return solve_ik(depth - 1)
    told(); sys.stdin.readline()
class Robot:
    def step(self):
        return [
            solve_ik(depth)
            for depth in (
                3,)]
    def gehe_nach_fünf_日本(self, *what): self.step()
def left(x): return sum(i for i in range(x))
def right(x):
    x += 1
    return x
def forever():
    while True:
        left(3)
        right(4)
thread = threading.Thread(target=lambda: (Robot().gehe_nach_fünf_日本(1), forever()))
thread.start(); thread.join()
";

/// All interpreters of supported versions that are installed here; a note if there are none.
fn installed() -> Vec<PathBuf> {
    let home = std::env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
    let versions = std::fs::read_dir(home.join(".pyenv/versions")).into_iter().flatten().flatten();
    let pythons = versions.map(|one| one.path().join("bin/python3")).chain([PathBuf::from("/usr/bin/python3")]);
    let is_known = |python: &PathBuf| {
        let checked = "import sys; sys.exit(not (3, 8) <= sys.version_info[:2] <= (3, 13))";
        Command::new(python).args(["-c", checked]).status().is_ok_and(|status| status.success())
    };
    let all: Vec<PathBuf> = pythons.filter(|python| python.exists() && is_known(python)).collect();
    if all.is_empty() {
        println!("skipped: no Python 3.8 to 3.13 in /usr/bin or ~/.pyenv/versions");
    }
    all
}

/// A running script.
struct Running {
    child: Child,
    input: ChildStdin,
    tid: u32,
    told: Vec<(String, u32)>,
}

impl Running {
    fn start(python: &Path, script: &Path) -> Running {
        let mut command = Command::new(python);
        let mut child = command.arg(script).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let mut words = line.split_whitespace();
        let tid = words.next().unwrap().parse().unwrap();
        let told = words.map(|word| word.rsplit_once(':').unwrap()).map(|(name, line)| (name.to_owned(), line.parse().unwrap()));
        let (input, told) = (child.stdin.take().unwrap(), told.collect());
        Running { child, input, tid, told }
    }

    /// `None` if this user may not read it.
    fn frames(&self) -> Option<(Python, PythonThread)> {
        let python = Python::find(self.child.id(), &mapped_code(self.child.id(), &[])).unwrap()?;
        let thread = python.thread(self.tid).unwrap();
        Some((python, thread))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn places(frames: &[CodeFrame]) -> Vec<(String, u32)> {
    frames.iter().map(|one| (one.function.clone().unwrap(), one.line.unwrap_or(0))).collect()
}

#[test]
fn root_frames_are_those_that_the_program_itself_says() {
    let scratch = Scratch::make();
    let script = scratch.file("control.py", SCRIPT);
    for python in installed() {
        let running = Running::start(&python, &script);
        // The line is said before the program waits in it.
        let waits = || punctual_host::state_of_thread(running.tid) == Some('S');
        assert!(punctual_sys::testing::comes_true(waits));
        let Some((interpreter, thread)) = running.frames() else { return println!("skipped: needs root") };
        let mut found = Vec::new();
        // It may still be on its way into the wait.
        let is_there = || {
            let read = interpreter.frames(&thread);
            let is_still = read.as_ref().is_some_and(|read| read.is_still);
            found = read.map(|read| read.frames).unwrap_or_default();
            is_still && places(&found) == running.told
        };
        assert!(punctual_sys::testing::comes_true(is_there), "{}: {found:#?} {:?}", python.display(), running.told);
        assert!(running.told.iter().any(|(name, _)| name == "gehe_nach_fünf_日本"), "{:?}", running.told);
        let is_script = |one: &CodeFrame| one.file.as_deref().is_some_and(|file| script.to_string_lossy().ends_with(file));
        assert!(found.iter().take(6).all(is_script), "{found:#?}");
        assert!(interpreter.thread(running.tid + 1).is_none());
        assert!(interpreter.has(&thread) && !interpreter.has(&PythonThread { id: thread.id + 1, ..thread }));
    }
}

#[test]
fn root_a_running_thread_is_never_in_a_line_that_its_caller_does_not_call() {
    let scratch = Scratch::make();
    let script = scratch.file("control.py", SCRIPT);
    let line = |of: &str| u32::try_from(SCRIPT.lines().position(|line| line.trim() == of).unwrap() + 1).unwrap();
    let (left, right) = (line("left(3)"), line("right(4)"));
    for python in installed() {
        let mut running = Running::start(&python, &script);
        let Some((interpreter, thread)) = running.frames() else { return println!("skipped: needs root") };
        running.input.write_all(b"\n").unwrap();
        let (mut read, mut unknown, mut moved, mut inner) = (0, 0, 0, 0);
        let is_enough = || {
            for _ in 0..2000 {
                let Some(found) = interpreter.frames(&thread) else {
                    unknown += 1;
                    continue;
                };
                moved += u32::from(!found.is_still);
                let places = places(&found.frames);
                let Some(run) = places.iter().position(|(name, _)| name == "forever") else { continue };
                read += 1;
                let Some(within) = run.checked_sub(1).map(|within| places[within].clone()) else { continue };
                inner += 1;
                let called = if places[run].1 == left { "left" } else { "right" };
                assert!([left, right].contains(&places[run].1), "{places:?}");
                assert_eq!(within.0, called, "{}: {places:?}", python.display());
            }
            read > 1000 && inner > 100
        };
        assert!(punctual_sys::testing::comes_true(is_enough), "{}: {read} {unknown} {inner}", python.display());
        println!("{}: {read} read, {inner} within a function, {moved} moved on, {unknown} unknown", python.display());
    }
}
