//! Frames of the interpreters that are installed here, which say themselves where they are.

use super::*;
use punctual_host::mapped_code;
use punctual_host::testing::Scratch;
use punctual_model::{CodeFrame, CodePlace};
use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Write};
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
        let checked = "import sys; sys.exit(not (3, 8) <= sys.version_info[:2] <= (3, 14))";
        Command::new(python).args(["-c", checked]).status().is_ok_and(|status| status.success())
    };
    let all: Vec<PathBuf> = pythons.filter(|python| python.exists() && is_known(python)).collect();
    if all.is_empty() {
        println!("skipped: no Python 3.8 to 3.14 in /usr/bin or ~/.pyenv/versions");
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
        let told = words
            .map(|word| word.rsplit_once(':').unwrap())
            .map(|(name, line)| (name.to_owned(), line.parse().unwrap()));
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
        let is_script =
            |one: &CodeFrame| one.file.as_deref().is_some_and(|file| script.to_string_lossy().ends_with(file));
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
        let (mut read, mut unknown, mut moved, mut inner, mut wrong) = (0, 0, 0, 0, 0);
        let is_enough = || {
            for _ in 0..200 {
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
                // Each function is in its own lines; callers in a line of the other one are rare.
                assert!([0, left, right].contains(&places[run].1), "{places:?}");
                assert!(["left", "right"].contains(&within.0.as_str()), "{places:?}");
                let called = if within.0 == "left" { left } else { right };
                wrong += u32::from(![0, called].contains(&places[run].1));
            }
            read > 100 && inner > 10
        };
        assert!(punctual_sys::testing::comes_true(is_enough), "{}: {read} {unknown} {inner}", python.display());
        println!(
            "{}: {read} read, {inner} within a function, {moved} moved on, {unknown} unknown, {wrong} wrong",
            python.display()
        );
    }
}

/// Memory that is made up: bytes by their addresses, and words that are other ones at the end of a reading of frames.
struct Image {
    bytes: BTreeMap<u64, u8>,
    later: Vec<(u64, u64)>,
}

fn put(bytes: &mut BTreeMap<u64, u8>, at: u64, data: &[u8]) {
    bytes.extend((at..).zip(data.iter().copied()));
}

impl Memory for Image {
    fn read(&self, parts: &[(u64, usize)]) -> io::Result<Vec<Vec<u8>>> {
        let mut bytes = self.bytes.clone();
        if parts.iter().any(|(_, n)| *n < 4096) {
            self.later.iter().for_each(|(at, word)| put(&mut bytes, *at, &word.to_le_bytes()));
        }
        // Each page in which something is.
        let is_mapped = |at: u64| bytes.range(at & !4095..=at | 4095).next().is_some();
        let read = parts.iter().map(|(at, n)| {
            let all = *at..at.checked_add(*n as u64).ok_or(io::ErrorKind::Other)?;
            if all.clone().step_by(4096).chain(all.clone().last()).any(|at| !is_mapped(at)) {
                return Err(io::ErrorKind::Other.into());
            }
            Ok(all.map(|at| bytes.get(&at).copied().unwrap_or(0)).collect())
        });
        read.collect()
    }
}

/// Addresses in the image: the thread, what has its frame, frames, code, texts, the table; types are below 100.
const STATE: u64 = 0x10000;
const HOLDER: u64 = 0x20000;
const FRAMES: [u64; 2] = [0x30000, 0x30100];
const CODES: [u64; 2] = [0x40000, 0x41000];
const TEXTS: [u64; 3] = [0x50000, 0x50100, 0x50200];
const TABLE: u64 = 0x60000;

/// A thread of 3.12 in line 10 of `inner`, called in line 10 of `outer`.
fn image(lies: &[(u64, u64)], later: &[(u64, u64)]) -> (Python, PythonThread) {
    let layout = Layout::of(12).unwrap();
    let mut bytes = BTreeMap::new();
    let mut word = |at: u64, value: u64| put(&mut bytes, at, &value.to_le_bytes());
    word(STATE + layout.interpreter, 7);
    word(STATE + layout.id, 9);
    word(STATE + layout.frame, HOLDER);
    word(HOLDER, FRAMES[0]);
    for index in 0..2 {
        word(FRAMES[index] + layout.code, CODES[index]);
        word(FRAMES[index] + layout.previous, if index == 0 { FRAMES[1] } else { 0 });
        word(FRAMES[index] + layout.instruction, CODES[index] + layout.instructions + 2);
        word(FRAMES[index] + 64, 0);
        for (field, value) in [(8, 1), (16, 4), (layout.first_line & !7, 10 << 32), (layout.name, TEXTS[index])] {
            word(CODES[index] + field, value);
        }
        word(CODES[index] + layout.filename, TEXTS[2]);
        word(CODES[index] + layout.table, TABLE);
    }
    word(TABLE + 8, 3);
    word(TABLE + 16, 1);
    for (at, text) in TEXTS.iter().zip(["inner", "outer", "/opt/a\u{1b}.py"]) {
        for (field, value) in [(8, 2), (16, text.len() as u64), (32, 1 << 2 | 1 << 5 | 1 << 6)] {
            put(&mut bytes, at + field, &u64::to_le_bytes(value));
        }
        put(&mut bytes, at + layout.ascii, text.as_bytes());
    }
    // An entry without a change of the line, of 8 instructions.
    put(&mut bytes, TABLE + 32, &[0x80 | 10 << 3 | 7]);
    lies.iter().for_each(|(at, word)| put(&mut bytes, *at, &word.to_le_bytes()));
    let memory = Image { bytes, later: later.to_vec() };
    let at = Addresses { runtime: 0, code: 1, text: 2, bytes: 3, frame: 4 };
    let python = Python { memory: Box::new(memory), layout, at, object: "python3.12".to_owned() };
    (python, PythonThread { state: STATE, interpreter: 7, id: 9 })
}

#[test]
fn frames_are_named_and_cut_to_what_is_there_before_and_after() {
    let layout = Layout::of(12).unwrap();
    let found = |later: &[(u64, u64)]| {
        let (python, thread) = image(&[], later);
        python.frames(&thread).map(|one| (places(&one.frames), one.is_still))
    };
    let [inner, outer] = ["inner", "outer"].map(|name| (name.to_owned(), 10));
    let both = vec![inner.clone(), outer.clone()];
    assert_eq!(found(&[]), Some((both.clone(), true)));
    let (python, thread) = image(&[], &[]);
    assert_eq!(python.frames(&thread).unwrap().frames[0].file.as_deref(), Some("/opt/a.py"));
    let at = |index: usize| (FRAMES[index] + layout.instruction, CODES[index] + layout.instructions + 4);
    // It runs on in the same function; has returned from it; has called another; was called again; has ended.
    assert_eq!(found(&[at(0)]), Some((vec![inner, (outer.0.clone(), 0)], false)));
    assert_eq!(found(&[(HOLDER, FRAMES[1])]), Some((vec![outer.clone()], false)));
    assert_eq!(found(&[(FRAMES[0] + layout.code, CODES[1])]), Some((vec![outer], false)));
    assert_eq!(found(&[at(1)]), None);
    assert_eq!(found(&[(STATE + layout.id, 8)]), None);
}

#[test]
fn memory_that_lies_is_read_with_bounds_and_named_by_nothing() {
    let layout = Layout::of(12).unwrap();
    let lies: [(u64, u64, bool); 13] = [
        // Frames without end: those that were visited.
        (FRAMES[1] + layout.previous, FRAMES[0], true),
        (FRAMES[1] + layout.previous, u64::MAX, false),
        (HOLDER, u64::MAX - 3, false),
        (STATE + layout.frame, u64::MAX, false),
        (CODES[0] + 8, 2, false),
        (CODES[0] + layout.name, CODES[1], false),
        (CODES[0] + layout.filename, u64::MAX - 20, false),
        (TEXTS[0] + 16, u64::MAX, false),
        (TEXTS[0] + 16, 900, true),
        (TEXTS[0] + 32, 3 << 2, false),
        (TABLE + 16, 1 << 40, false),
        (FRAMES[0] + layout.instruction, CODES[1] + layout.instructions, false),
        (CODES[0] + 16, u64::MAX, false),
    ];
    for (at, value, is_named) in lies {
        let (python, thread) = image(&[(at, value)], &[]);
        let found = python.frames(&thread);
        assert_eq!(found.is_some(), is_named, "{at:x} {value:x} {found:?}");
        assert!(found.is_none_or(|one| one.frames.len() <= CodePlace::FRAMES));
    }
}
