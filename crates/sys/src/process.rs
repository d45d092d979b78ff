//! Processes of a load: forked, tied to their parent, killed as a group, reaped.

use crate::check;
use std::ffi::CStr;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::RawFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::{ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus};

/// Forks a process that runs `work` and exits with the status that it returns.
///
/// The child joins process group `group` (`None`: a new one, with its own id), gets `at_parents_end` when its parent
/// ends, blocks no signal, and has the default disposition of SIGINT and SIGTERM. It never returns into the caller's
/// code. Errors: `EAGAIN` at `RLIMIT_NPROC`, `ENOMEM`; an error also when this process has more than one thread: after
/// `fork` only the calling thread exists, and locks held by others would stay locked (fork(2)).
pub fn fork_tied(group: Option<u32>, at_parents_end: i32, work: impl FnOnce() -> i32) -> io::Result<u32> {
    let threads = std::fs::read_dir("/proc/self/task")?.count();
    if threads != 1 {
        return Err(io::Error::other(format!("fork needs a process with 1 thread, not {threads}")));
    }
    // Without it the child could not be tied, nor tell why.
    let mut signal: libc::c_int = 0;
    // SAFETY: PR_GET_PDEATHSIG writes an integer to `signal`, which outlives the call.
    check(unsafe { libc::prctl(libc::PR_GET_PDEATHSIG, &raw mut signal) }.into())
        .map_err(|err| io::Error::other(format!("prctl: {err}")))?;
    let parent = std::process::id();
    // SAFETY: this process has one thread, so the child may use everything that the parent can use.
    match check(unsafe { libc::fork() }.into())? {
        0 => {
            let status = catch_unwind(AssertUnwindSafe(|| {
                take_signals_by_default();
                let tied = tie_to(parent, at_parents_end).is_ok() && join_group(group).is_ok();
                if tied { work() } else { 1 }
            }));
            exit_now(status.unwrap_or(101))
        }
        pid => {
            let pid = u32::try_from(pid).map_err(io::Error::other)?;
            // Both sides set the group, so that it is set whichever runs first; the child's own call reports errors.
            let _ = set_group(pid, group.unwrap_or(pid));
            Ok(pid)
        }
    }
}

/// Exits immediately, without running exit handlers.
fn exit_now(status: i32) -> ! {
    // SAFETY: `_exit` takes an integer and does not return.
    unsafe { libc::_exit(status) }
}

fn take_signals_by_default() {
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGPIPE] {
        // SAFETY: SIG_DFL is a valid disposition for these signals.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
    crate::signal::block_none();
}

fn join_group(group: Option<u32>) -> io::Result<()> {
    set_group(0, group.unwrap_or(0))
}

fn set_group(pid: u32, group: u32) -> io::Result<()> {
    // SAFETY: the call takes integers only.
    check(unsafe { libc::setpgid(pid.cast_signed(), group.cast_signed()) }.into()).map(drop)
}

/// Makes the kernel send SIGKILL to the calling process when the thread that created it ends
/// (`PR_SET_PDEATHSIG(2const)`). Errors: when the kernel refuses, or process `parent` is already gone.
pub fn die_with(parent: u32) -> io::Result<()> {
    tie_to(parent, libc::SIGKILL)
}

/// Makes the calling process the new parent of orphans among its descendants (`PR_SET_CHILD_SUBREAPER(2const)`).
pub fn adopt_orphans() -> io::Result<()> {
    // SAFETY: PR_SET_CHILD_SUBREAPER takes an integer and no pointers.
    check(unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1) }.into()).map(drop)
}

/// Makes the kernel end the calling process after `seconds`, also after an exec (alarm(2)).
pub fn end_after(seconds: u32) {
    // SAFETY: the call takes an integer and cannot fail.
    unsafe { libc::alarm(seconds) };
}

/// Makes the kernel kill the calling process, and each later descendant, once that process has used `seconds` of CPU
/// time (`RLIMIT_CPU`, getrlimit(2)). A limit longer than the present one changes nothing.
pub fn kill_after_cpu_time(seconds: u32) {
    // With equal soft and hard limits there is no SIGXCPU before, which would dump core.
    let limit = libc::rlimit64 { rlim_cur: seconds.into(), rlim_max: seconds.into() };
    // SAFETY: `limit` outlives the call; raising a lower limit is refused.
    unsafe { libc::setrlimit64(libc::RLIMIT_CPU, &raw const limit) };
}

fn tie_to(parent: u32, signal: i32) -> io::Result<()> {
    // SAFETY: PR_SET_PDEATHSIG takes an integer and no pointers.
    check(unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, signal) }.into())?;
    let now = std::os::unix::process::parent_id();
    if now == parent { Ok(()) } else { Err(io::Error::other("the parent process has ended")) }
}

/// Leaves the open descriptor `fd` open, under the same number, in the program that `command` starts.
pub fn inherit(command: &mut Command, fd: RawFd) {
    // SAFETY: F_SETFD takes integers only; a descriptor that is not open is refused.
    let keep = move || check(unsafe { libc::fcntl(fd, libc::F_SETFD, 0) }.into()).map(drop);
    // SAFETY: between fork and exec the closure makes one async-signal-safe call (signal-safety(7)) and accesses only
    // its own integer.
    unsafe { command.pre_exec(keep) };
}

/// Closes the open descriptor `fd` on exec, in this process and its children (`FD_CLOEXEC`, fcntl(2)). Errors: `EBADF`
/// when the descriptor is not open.
pub fn close_on_exec(fd: RawFd) -> io::Result<()> {
    // SAFETY: F_SETFD takes integers only; a descriptor that is not open is refused.
    check(unsafe { libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC) }.into()).map(drop)
}

/// Whether this process has privileges that its user has not, from file capabilities or a set-user-ID bit
/// (`AT_SECURE`, getauxval(3)).
pub fn has_rights_of_its_file() -> bool {
    // SAFETY: the call takes an integer and reads what the kernel passed to this process.
    unsafe { libc::getauxval(libc::AT_SECURE) != 0 }
}

/// Drops all capabilities of the calling thread permanently (capset(2)); its children have none either.
pub fn drop_capabilities() -> io::Result<()> {
    /// `struct __user_cap_header_struct` (linux/capability.h); pid 0: the calling thread.
    #[repr(C)]
    struct Header {
        version: u32,
        pid: i32,
    }
    // `_LINUX_CAPABILITY_VERSION_3`, whose sets have two words each: effective, permitted, inheritable.
    let header = Header { version: 0x2008_0522, pid: 0 };
    let none = [[0_u32; 3]; 2];
    // SAFETY: header and sets have the layout of this version, and outlive the call.
    check(unsafe { libc::syscall(libc::SYS_capset, &raw const header, none.as_ptr()) }).map(drop)
}

/// Allows the first thread's stack to grow to `bytes`: raises `RLIMIT_STACK`, which the kernel reads at each growth
/// (getrlimit(2)). Errors: when the hard limit is lower and this process may not raise it.
pub fn have_stack(bytes: u64) -> io::Result<()> {
    let mut limit = libc::rlimit64 { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is memory for the limits.
    check(unsafe { libc::getrlimit64(libc::RLIMIT_STACK, &raw mut limit) }.into())?;
    if limit.rlim_cur >= bytes {
        return Ok(());
    }
    let limit = libc::rlimit64 { rlim_cur: bytes, rlim_max: limit.rlim_max.max(bytes) };
    // SAFETY: `limit` outlives the call.
    check(unsafe { libc::setrlimit64(libc::RLIMIT_STACK, &raw const limit) }.into()).map(drop)
}

/// The architecture of the running kernel, `x86_64` or `aarch64`, `uname(2)`: that of this process may be an older one.
pub fn machine() -> String {
    let mut names = MaybeUninit::<libc::utsname>::zeroed();
    // SAFETY: `names` is memory for the result, and the call cannot fail with it.
    unsafe { libc::uname(names.as_mut_ptr()) };
    // SAFETY: all zeroes is a valid utsname, and the kernel has filled it in.
    let names = unsafe { names.assume_init() };
    // SAFETY: the kernel ends the text in 0, and `names` outlives the borrow.
    unsafe { CStr::from_ptr(names.machine.as_ptr()) }.to_string_lossy().into_owned()
}

/// The user that started this process, `getuid(2)`.
pub fn user_id() -> u32 {
    // SAFETY: the call takes no arguments and cannot fail.
    unsafe { libc::getuid() }
}

/// The effective user of this process, `geteuid(2)`.
pub fn effective_user_id() -> u32 {
    // SAFETY: the call takes no arguments and cannot fail.
    unsafe { libc::geteuid() }
}

/// Sends `signal` to process group `group`. Errors: `ESRCH` when the group has no process.
pub fn signal_group(group: u32, signal: i32) -> io::Result<()> {
    // SAFETY: the call takes integers only.
    check(unsafe { libc::killpg(group.cast_signed(), signal) }.into()).map(drop)
}

/// Sends `signal` to process `pid`. Errors: `ESRCH` when there is no such process.
pub fn signal(pid: u32, signal: i32) -> io::Result<()> {
    // SAFETY: the call takes integers only.
    check(unsafe { libc::kill(pid.cast_signed(), signal) }.into()).map(drop)
}

/// The outcome of [`reap`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Child {
    /// This child has ended, and is now reaped.
    Ended(u32, ExitStatus),
    /// There are children, and all of them run.
    Running,
    /// There is no child.
    None,
}

/// Reaps an ended child without waiting (`waitpid(2)`): child `pid`, or any child for `None`. Errors: the kernel's
/// error, except that there is no child.
pub fn reap(pid: Option<u32>) -> io::Result<Child> {
    let mut status = 0;
    let which = pid.map_or(-1, u32::cast_signed);
    // SAFETY: `status` is memory for the status.
    let result = check(unsafe { libc::waitpid(which, &raw mut status, libc::WNOHANG) }.into());
    match result {
        Ok(0) => Ok(Child::Running),
        Ok(pid) => {
            let pid = u32::try_from(pid).map_err(io::Error::other)?;
            Ok(Child::Ended(pid, ExitStatus::from_raw(status)))
        }
        Err(err) if err.raw_os_error() == Some(libc::ECHILD) => Ok(Child::None),
        Err(err) => Err(err),
    }
}

/// A child that leads a process group. It is reaped after the last signal to the group: until then no other process
/// gets its number.
#[derive(Debug)]
pub struct Leader {
    child: std::process::Child,
    reaped: Option<ExitStatus>,
}

impl Leader {
    /// Starts the command in a new process group. Errors: as `Command::spawn`.
    pub fn spawn(command: &mut Command) -> io::Result<Leader> {
        Ok(Leader { child: command.process_group(0).spawn()?, reaped: None })
    }

    /// Its process id, and that of the group.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// The pipes that it was started with, each at the first call.
    pub fn pipes(&mut self) -> (Option<ChildStdin>, Option<ChildStdout>, Option<ChildStderr>) {
        (self.child.stdin.take(), self.child.stdout.take(), self.child.stderr.take())
    }

    /// How it has ended; `None` while it runs. It is not reaped (waitid(2), `WNOWAIT`).
    pub fn status(&self) -> io::Result<Option<ExitStatus>> {
        if self.reaped.is_some() {
            return Ok(self.reaped);
        }
        let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
        let flags = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
        // SAFETY: `info` is memory for the result; zeros are a valid value of it.
        check(unsafe { libc::waitid(libc::P_PID, self.id(), info.as_mut_ptr(), flags) }.into())?;
        // SAFETY: as above.
        let info = unsafe { info.assume_init() };
        // SAFETY: the kernel writes this field of a child, or leaves zero.
        let pid = unsafe { info.si_pid() };
        // SAFETY: as above.
        let status = unsafe { info.si_status() };
        let raw = match info.si_code {
            libc::CLD_EXITED => status << 8,
            libc::CLD_DUMPED => status | 0x80,
            _ => status,
        };
        Ok((pid != 0).then(|| ExitStatus::from_raw(raw)))
    }

    /// Sends `signal` to the group, unless the leader was reaped. Errors: `ESRCH` when the group has no process.
    pub fn signal(&self, signal: i32) -> io::Result<()> {
        if self.reaped.is_none() { signal_group(self.id(), signal) } else { Ok(()) }
    }

    /// Waits until it has ended, and reaps it. Others of the group go on.
    pub fn reap(&mut self) -> io::Result<ExitStatus> {
        let status = self.child.wait()?;
        self.reaped = Some(status);
        Ok(status)
    }

    /// Kills the group, and reaps the leader.
    pub fn end(&mut self) -> io::Result<ExitStatus> {
        // The group may be gone already.
        let _ = self.signal(libc::SIGKILL);
        self.reap()
    }
}

impl Drop for Leader {
    fn drop(&mut self) {
        let _ = self.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::comes_true;

    #[test]
    fn a_leader_tells_how_it_ended_and_keeps_its_number_until_its_group_is_ended() {
        for (script, raw) in [("exit 3", 3 << 8), ("kill -KILL $$", libc::SIGKILL)] {
            let mut leader = Leader::spawn(Command::new("sh").args(["-c", &format!("sleep 1000 & {script}")])).unwrap();
            assert!(comes_true(|| leader.status().unwrap().is_some()));
            assert_eq!(leader.status().unwrap(), Some(ExitStatus::from_raw(raw)));
            assert!(std::fs::exists(format!("/proc/{}", leader.id())).unwrap());
            leader.signal(0).unwrap();
            assert_eq!(leader.end().unwrap(), ExitStatus::from_raw(raw));
            assert!(comes_true(|| signal_group(leader.id(), 0).is_err()));
            // The number may be that of another group now.
            leader.signal(libc::SIGKILL).unwrap();
            assert_eq!(leader.status().unwrap(), Some(ExitStatus::from_raw(raw)));
        }
    }
}
