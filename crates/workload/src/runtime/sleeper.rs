//! One sleeping process: started, awaited, released, read from, and always ended.

use super::protocol::{Reader, ReadyLine, Sleep, ready};
use super::{Launch, RuntimeError, SleepProgram, launch, telling_line};
use punctual_model::{CpuSet, MonoTime, Policy, Runtime, Span};
use punctual_sys::process::Leader;
use punctual_sys::waited::Waited;
use punctual_sys::{clock, pipe, sched};
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::process::{ChildStderr, ChildStdin, ChildStdout, ExitStatus, Stdio};
use std::time::Duration;

/// Sleeps of 100 us before a program reports that it is ready. More than 200, after which Java compiles its code
/// (`Tier3InvocationThreshold`), and a third of a second where a sleep takes 1 ms.
const WARM_UP: u32 = 300;
/// Timeout until a program is ready. Java takes 1 s on a small machine, 2 s more as the only idle-class
/// process on a busy one.
const READY_TIMEOUT: Duration = Duration::from_secs(60);
const READY_LOOK_INTERVAL: Duration = Duration::from_millis(10);
/// Timeout of the exit status of a program that has closed its output.
const EXIT_TIMEOUT: Duration = Duration::from_secs(1);
/// Time between SIGTERM and SIGKILL.
const KILL_GRACE: Duration = Duration::from_millis(200);
/// Most passes over the threads of a program until all have the requested policy.
const MAX_PASSES: u32 = 10;
/// Longest line of a program that is ready, bytes.
const LONGEST_READY: usize = 200;
/// Capacity of a pipe, bytes (pipe(7)).
const PIPE_BYTES: usize = 65536;

/// A process that sleeps. Dropping it kills its whole process group.
#[derive(Debug)]
pub struct Sleeper {
    runtime: Runtime,
    cpu: u32,
    leader: Leader,
    input: ChildStdin,
    output: ChildStdout,
    stderr: Option<ChildStderr>,
    /// Text not parsed yet.
    text: Vec<u8>,
    /// `Some` once released.
    reader: Option<Reader>,
    is_over: bool,
}

impl Sleeper {
    /// Starts the program on a CPU of its own, to sleep for `asked` each time. It starts up, but does not sleep yet.
    /// Call it from the thread that lives as long as the cell: the process ends with its parent thread. Errors: when
    /// the process cannot be started.
    pub fn start(made: &SleepProgram, cpu: u32, settings: &Launch, asked: Span) -> Result<Sleeper, RuntimeError> {
        let runtime = made.runtime;
        let failed = |source| RuntimeError::Process { cpu, runtime, source };
        let (program, arguments) = &made.command;
        let mut command = launch::command(Some(settings), program);
        let command = command
            .args(arguments)
            .args([asked.ns().to_string(), WARM_UP.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut leader = Leader::spawn(command).map_err(failed)?;
        let (input, output, stderr) = leader.pipes();
        let pipes = input.zip(output);
        let (input, output) = pipes.ok_or_else(|| failed(io::Error::other("no pipe to it")))?;
        Ok(Sleeper { runtime, cpu, leader, input, output, stderr, text: Vec::new(), reader: None, is_over: false })
    }

    /// Waits until the program has started up and slept a few times. Errors: when it ends, writes something else, or
    /// exceeds the timeout.
    pub fn wait_until_ready(&mut self) -> Result<ReadyLine, RuntimeError> {
        let mut waited = Waited::every(READY_LOOK_INTERVAL);
        loop {
            // A program that writes no line is not one of ours.
            let is_cut = self.text.len() > PIPE_BYTES;
            if let Some(end) = self.text.iter().position(|byte| *byte == b'\n').or(is_cut.then_some(LONGEST_READY)) {
                let line = String::from_utf8_lossy(&self.text[..end]).into_owned();
                self.text.clear();
                let (cpu, runtime) = (self.cpu, self.runtime);
                return ready(&line).map_err(|source| RuntimeError::Protocol { cpu, runtime, source });
            }
            if waited.look() >= READY_TIMEOUT || punctual_host::is_wait_to_end() {
                let (cpu, runtime, seconds) = (self.cpu, self.runtime, READY_TIMEOUT.as_secs());
                return Err(RuntimeError::NotReady { cpu, runtime, seconds });
            }
            if self.has_words(READY_LOOK_INTERVAL)? && !self.take_words()? {
                return Err(self.ended());
            }
        }
    }

    /// Compares the policy and the CPUs of every thread of process `pid`, as the kernel reports them, with the
    /// requested ones. A thread that ends meanwhile is ignored. Errors: when a thread differs.
    pub fn check_threads(&self, pid: u32, settings: &Launch) -> Result<(), RuntimeError> {
        let asked_cpus: CpuSet = [self.cpu].into_iter().collect();
        for tid in punctual_host::threads_of(pid) {
            let Ok((policy, cpus)) = sched::policy(tid).and_then(|policy| Ok((policy, sched::affinity(tid)?))) else {
                continue;
            };
            let pairs = [
                ("policy", settings.policy.to_string(), policy.to_string()),
                ("CPUs", asked_cpus.to_string(), cpus.to_string()),
            ];
            for (what, asked, found) in pairs {
                if asked != found {
                    let (cpu, runtime) = (self.cpu, self.runtime);
                    return Err(RuntimeError::Differs { cpu, runtime, tid, what, asked, found });
                }
            }
        }
        Ok(())
    }

    /// Sets this policy for every thread of process `pid`, and for the threads that they start. A thread started
    /// meanwhile is found in the next pass; [`Sleeper::check_threads`] checks that all have the policy. Errors: when
    /// the kernel refuses the policy.
    pub fn set_policy(&self, pid: u32, policy: Policy) -> Result<(), RuntimeError> {
        for _ in 0..MAX_PASSES {
            let differs = |tid: &u32| sched::policy(*tid).is_ok_and(|found| found.to_string() != policy.to_string());
            let others: Vec<u32> = punctual_host::threads_of(pid).into_iter().filter(differs).collect();
            if others.is_empty() {
                return Ok(());
            }
            for tid in others {
                match sched::set_inherited_policy(tid, policy) {
                    // The thread has ended.
                    Err(err) if err.raw_os_error() == Some(libc::ESRCH) => {}
                    set => set.map_err(|source| self.failed(source))?,
                }
            }
        }
        Ok(())
    }

    /// Releases the program: it starts its first sleep. Errors: when it has ended.
    pub fn release(&mut self) -> Result<(), RuntimeError> {
        self.reader = Some(Reader::new(clock::monotonic()));
        self.input.write_all(b"go\n").map_err(|_| self.ended())
    }

    /// Passes the sleeps that the program has reported since the last call to `take`; does not wait for any. Errors:
    /// when the program has ended, or writes an invalid line.
    pub fn read(&mut self, mut take: impl FnMut(Sleep)) -> Result<(), RuntimeError> {
        if !self.has_words(Duration::ZERO)? {
            return Ok(());
        }
        // Once: that empties the pipe, while a loop would never finish with a program that writes faster than it is
        // read.
        if self.take_words()? { self.feed(&mut take) } else { Err(self.ended()) }
    }

    /// Ends the program at any point, and passes the last complete sleeps to `take`. Returns the time just before it
    /// was killed. Errors: when the program writes an invalid line.
    pub fn end(&mut self, mut take: impl FnMut(Sleep)) -> Result<MonoTime, RuntimeError> {
        let cut = clock::monotonic();
        self.kill();
        while self.has_words(Duration::ZERO)? && self.take_words()? {
            self.feed(&mut take)?;
        }
        Ok(cut)
    }

    fn feed(&mut self, take: &mut impl FnMut(Sleep)) -> Result<(), RuntimeError> {
        let (cpu, runtime) = (self.cpu, self.runtime);
        let Some(reader) = &mut self.reader else { return Ok(()) };
        let fed = reader.feed(&self.text, clock::monotonic(), take);
        self.text.clear();
        fed.map_err(|source| RuntimeError::Protocol { cpu, runtime, source })
    }

    /// Whether the program has written output or ended; waits for at most `timeout`.
    fn has_words(&self, timeout: Duration) -> Result<bool, RuntimeError> {
        match pipe::wait_readable(self.output.as_fd(), timeout) {
            Err(err) if err.kind() == io::ErrorKind::Interrupted => Ok(false),
            result => result.map_err(|source| self.failed(source)),
        }
    }

    /// Reads the content of the pipe into `text`; `false` at its end.
    fn take_words(&mut self) -> Result<bool, RuntimeError> {
        let held = self.text.len();
        self.text.resize(held + PIPE_BYTES, 0);
        let n_bytes = self.output.read(self.text.get_mut(held..).unwrap_or_default());
        self.text.truncate(held + n_bytes.as_ref().copied().unwrap_or(0));
        n_bytes.map(|n_bytes| n_bytes > 0).map_err(|source| self.failed(source))
    }

    fn failed(&self, source: io::Error) -> RuntimeError {
        RuntimeError::Process { cpu: self.cpu, runtime: self.runtime, source }
    }

    /// The error for a program that has ended.
    fn ended(&mut self) -> RuntimeError {
        let status =
            self.wait(EXIT_TIMEOUT).map_or_else(|| "closed its output".to_owned(), |status| status.to_string());
        let mut words = vec![0; PIPE_BYTES];
        // Only present text: a child of the process may hold the pipe open.
        let n_bytes = self.stderr.take().map_or(0, |mut stderr| {
            let is_there = pipe::wait_readable(stderr.as_fd(), Duration::ZERO).unwrap_or(false);
            if is_there { stderr.read(&mut words).unwrap_or(0) } else { 0 }
        });
        words.truncate(n_bytes);
        let said = telling_line(&String::from_utf8_lossy(&words), status);
        RuntimeError::Ended { cpu: self.cpu, runtime: self.runtime, said }
    }

    /// Waits until the started process has ended, for at most `timeout`; returns its exit status.
    fn wait(&mut self, timeout: Duration) -> Option<ExitStatus> {
        let mut waited = Waited::begin();
        loop {
            match self.leader.status() {
                Ok(None) if waited.look() < timeout => std::thread::sleep(Duration::from_millis(1)),
                Ok(status) => return status,
                Err(_) => return None,
            }
        }
    }

    /// Ends the whole process group, by SIGTERM first: Java removes its files then.
    fn kill(&mut self) {
        if self.is_over {
            return;
        }
        self.is_over = true;
        // A SCHED_IDLE process would need CPU time to end. Without the permission, that may take long.
        for tid in punctual_host::threads_of(self.leader.id()) {
            if sched::policy(tid).is_ok_and(|policy| policy.to_string() == Policy::Idle.to_string()) {
                let _ = sched::set_policy(tid, Policy::OTHER);
            }
        }
        let _ = self.leader.signal(libc::SIGTERM);
        self.wait(KILL_GRACE);
        let _ = self.leader.end();
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        self.kill();
    }
}
