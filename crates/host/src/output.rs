//! Output of other programs with limits: however much they write, and for however long, memory and waits are bounded.

use punctual_sys::storage::bounded_memory_file;
use punctual_sys::waited::Waited;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek};
use std::process::{Child, Command, ExitStatus, Output};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// Limit of a record or another long answer, bytes. A record has some hundred kB, a file of an instrument 128 MiB.
pub const ANSWER_BYTES: u64 = 256 << 20;
/// Memory of a line besides its bytes.
const LINE_BYTES: u64 = 64;
/// Limit of each output of a program that is run to its end, bytes.
const OUTPUT_BYTES: u64 = 1 << 20;
const POLL_INTERVAL: Duration = Duration::from_millis(2);

/// Bytes that a program may still write, on all of its pipes together.
#[derive(Debug, Clone)]
pub struct OutputLimit(Arc<AtomicU64>);

impl OutputLimit {
    /// A limit of `bytes`; each line counts for [`LINE_BYTES`] more than it has.
    pub fn new(bytes: u64) -> OutputLimit {
        OutputLimit(Arc::new(AtomicU64::new(bytes)))
    }

    /// Allows `bytes` from now on.
    pub fn allow(&self, bytes: u64) {
        self.0.store(bytes, Relaxed);
    }

    /// Allows as much as `line` has taken, once it is used and freed.
    pub fn give_back(&self, line: &str) {
        self.0.fetch_add(line.len() as u64 + LINE_BYTES, Relaxed);
    }

    fn take(&self, bytes: u64) {
        let _ = self.0.fetch_update(Relaxed, Relaxed, |left| Some(left.saturating_sub(bytes + LINE_BYTES)));
    }
}

/// The error of a program that has reached its limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("output limit exceeded: too many lines, or a line too long")]
pub struct TooMuchOutput;

/// The lines of one output, without their ends; what is not UTF-8 is replaced. They end at the end of the output, or
/// after the error.
#[derive(Debug)]
pub struct Lines<R> {
    input: Option<BufReader<R>>,
    limit: OutputLimit,
}

impl<R: Read> Lines<R> {
    /// The lines of `input`, which count for `limit`.
    pub fn new(input: R, limit: &OutputLimit) -> Lines<R> {
        Lines { input: Some(BufReader::new(input)), limit: limit.clone() }
    }
}

impl<R: Read> Iterator for Lines<R> {
    type Item = Result<String, TooMuchOutput>;

    fn next(&mut self) -> Option<Self::Item> {
        let input = self.input.as_mut()?;
        let mut line = Vec::new();
        let left = self.limit.0.load(Relaxed);
        let read = input.take(left.max(1)).read_until(b'\n', &mut line);
        let has_end = line.pop_if(|last| *last == b'\n').is_some();
        if read.is_err() || !has_end && line.is_empty() {
            self.input = None;
            return None;
        }
        let length = line.len() as u64;
        if length >= left {
            self.input = None;
            return Some(Err(TooMuchOutput));
        }
        self.limit.take(length);
        // Without a copy where it is valid.
        Some(Ok(String::from_utf8(line).unwrap_or_else(|err| String::from_utf8_lossy(err.as_bytes()).into_owned())))
    }
}

/// Waits until `child` has ended, at most `timeout`; it is killed then. Errors: if it cannot be waited for.
pub fn end_within(child: &mut Child, timeout: Duration) -> io::Result<ExitStatus> {
    let mut waited = Waited::begin();
    end_unless(child, || waited.look() >= timeout)
}

fn end_unless(child: &mut Child, mut is_over: impl FnMut() -> bool) -> io::Result<ExitStatus> {
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        if is_over() {
            child.kill()?;
            return child.wait();
        }
        std::thread::sleep(POLL_INTERVAL);
    }
}

/// The stop requests of this process, see [`end_waits_with`].
static STOP: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// From now on, waits for the start or the end of a tool end early once `is_stopped` is set.
pub fn end_waits_with(is_stopped: &Arc<AtomicBool>) {
    let _ = STOP.set(Arc::clone(is_stopped));
}

/// Whether waits for a tool are to end.
pub fn is_wait_to_end() -> bool {
    STOP.get().is_some_and(|is_stopped| is_stopped.load(Relaxed))
}

/// Runs a program to its end, at most `timeout` and to a stop request, and returns its output, at most
/// [`OUTPUT_BYTES`] of each: writing more fails in the program. Errors: if it cannot be started.
pub fn output_of(command: &mut Command, timeout: Duration) -> io::Result<Output> {
    let file = || bounded_memory_file("output", OUTPUT_BYTES);
    let (stdout, stderr) = (file()?, file()?);
    let mut child = command.stdout(stdout.try_clone()?).stderr(stderr.try_clone()?).spawn()?;
    let mut waited = Waited::begin();
    let status = end_unless(&mut child, || waited.look() >= timeout || is_wait_to_end())?;
    Ok(Output { status, stdout: written(&stdout)?, stderr: written(&stderr)? })
}

/// What a program has written to a bounded file in memory. Errors: if the kernel refuses.
pub fn written(mut file: &File) -> io::Result<Vec<u8>> {
    // Its position is shared with the program.
    let length = file.stream_position()?;
    file.rewind()?;
    let mut bytes = Vec::new();
    file.take(length).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;

    fn lines(text: &[u8], bytes: u64) -> Vec<Result<String, TooMuchOutput>> {
        Lines::new(text, &OutputLimit::new(bytes)).collect()
    }

    #[test]
    fn lines_end_at_the_limit_of_their_sum() {
        let ok = |line: &str| Ok(line.to_owned());
        assert_eq!(lines(b"", 0), []);
        assert_eq!(lines(b"\n", 0), [Err(TooMuchOutput)]);
        assert_eq!(lines(b"a\n\nb", 1000), [ok("a"), ok(""), ok("b")]);
        assert_eq!(lines(b"\xffa\n", 1000), [ok("\u{fffd}a")]);
        // Two lines of three bytes need 67 each, and a byte is left.
        assert_eq!(lines(b"abc\nabc\n", 2 * 67), [ok("abc"), ok("abc")]);
        assert_eq!(lines(b"abc\nabc\n", 67 + 4), [ok("abc"), ok("abc")]);
        assert_eq!(lines(b"abc\nabc\n", 67 + 3), [ok("abc"), Err(TooMuchOutput)]);
        assert_eq!(lines(&[b'x'; 1 << 20], 1 << 20), [Err(TooMuchOutput)]);
        assert_eq!(lines(&b"y\n".repeat(1000), 6500).len(), 101);
    }

    #[test]
    fn output_that_never_ends_is_cut() {
        let mut all = Lines::new(io::repeat(b'x'), &OutputLimit::new(1 << 16));
        assert_eq!((all.next(), all.next()), (Some(Err(TooMuchOutput)), None));
        let limit = OutputLimit::new(100);
        let mut all = Lines::new(&b"y\ny\ny\n"[..], &limit);
        let first = all.next().unwrap().unwrap();
        limit.give_back(&first);
        assert!(all.next().unwrap().is_ok() && all.next().unwrap().is_ok(), "what is given back is free again");
        for program in ["yes", "cat"] {
            let mut command = Command::new(program);
            command.args((program == "cat").then_some("/dev/zero"));
            let output = output_of(&mut command, Duration::MAX).unwrap();
            assert!(!output.status.success() && output.stdout.len() as u64 == OUTPUT_BYTES, "{program}");
        }
        let killed = output_of(Command::new("sleep").arg("1000"), Duration::ZERO).unwrap();
        assert_eq!(killed.status.signal(), Some(libc::SIGKILL));
    }

    #[test]
    fn a_stop_request_ends_the_wait_for_a_tool() {
        if !punctual_sys::testing::runs_alone() {
            return;
        }
        assert!(!is_wait_to_end());
        end_waits_with(&Arc::new(AtomicBool::new(true)));
        let killed = output_of(Command::new("sleep").arg("1000"), Duration::MAX).unwrap();
        assert_eq!(killed.status.signal(), Some(libc::SIGKILL));
    }
}
