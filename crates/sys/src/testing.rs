//! Helpers for tests of all crates, which read no clock (`cargo xtask check`, `tidy/clock.rs`).

mod fuzz;

pub use fuzz::{Random, fuzz, fuzz_runs, fuzz_seed, is_overflow, mutate};

use std::collections::BTreeMap;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::thread;
use std::time::Duration;

/// Environment variable that marks the processes of one test, descendants included; its value is [`mark`].
pub const MARK: &str = "PUNCTUAL_TEST_THREAD";

/// CPU seconds that the processes of a test may use before what they were to do has not come true.
const BUDGET_S: u64 = 240;

/// Looks, about a second apart, in which no process of the test has used CPU time: nothing will come.
const STILL: u32 = 60;

/// USER_HZ of proc_pid_stat(5), a constant of Linux.
const TICKS_PER_S: u64 = 100;

/// Looks until `condition` holds; returns whether it held before the processes of this test stood still or had used up
/// their CPU time. A machine that stands still does not look.
pub fn comes_true(mut condition: impl FnMut() -> bool) -> bool {
    let (mut seen, mut used, mut still) = (ticks(), 0, 0);
    loop {
        for _ in 0..100 {
            if condition() {
                return true;
            }
            thread::sleep(Duration::from_millis(10));
        }
        let now = ticks();
        // Processes that have ended count by what their parents have of them.
        used += now.iter().map(|(pid, n)| n.saturating_sub(seen.get(pid).copied().unwrap_or(0))).sum::<u64>();
        still = if now == seen { still + 1 } else { 0 };
        seen = now;
        if still >= STILL || used / TICKS_PER_S >= BUDGET_S {
            return condition();
        }
    }
}

/// CPU time of each process of this test, with that of children it has waited for: fields 14 to 17 of
/// proc_pid_stat(5), ticks.
fn ticks() -> BTreeMap<u32, u64> {
    let of = |pid: u32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let fields = stat.rsplit_once(") ")?.1.split(' ');
        Some((pid, fields.skip(11).take(4).filter_map(|field| field.parse::<u64>().ok()).sum()))
    };
    running().into_iter().filter_map(of).collect()
}

/// The mark of this test: the ID of its thread. Tests that run at the same time do not see each other's processes.
pub fn mark() -> String {
    crate::thread::id().to_string()
}

/// IDs of the processes that this test has started, descendants included.
pub fn running() -> Vec<u32> {
    marked(&mark())
}

/// IDs of the processes with this mark. A zombie has no environment.
pub fn marked(mark: &str) -> Vec<u32> {
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|pid| variable_of(*pid, MARK).as_deref() == Some(mark)).collect()
}

/// The value of a variable in the environment that a process began with; `None` without it, or for a zombie.
pub fn variable_of(pid: u32, name: &str) -> Option<String> {
    let environment = std::fs::read(format!("/proc/{pid}/environ")).ok()?;
    let mut values = environment.split(|byte| *byte == 0);
    let value = values.find_map(|one| one.strip_prefix(name.as_bytes())?.strip_prefix(b"="))?;
    Some(String::from_utf8_lossy(value).into_owned())
}

/// Marks the process that [`runs_alone`] starts.
const ALONE: &str = "PUNCTUAL_TEST_ALONE";

/// Whether the calling test runs in a process of its own: no other test starts processes there, which have copies of
/// its open files until their exec, or changes what belongs to the process. Elsewhere it is run in one, and has passed.
///
/// # Panics
/// When it has failed there.
#[expect(clippy::print_stdout, reason = "it is the output of a test")]
pub fn runs_alone() -> bool {
    let thread = thread::current();
    // libtest names the thread after the test, and uses the main thread for one test after the other.
    let Some(name) = thread.name().filter(|name| *name != "main" && std::env::var_os(ALONE).is_none()) else {
        return true;
    };
    match only(name) {
        Ok(said) => {
            assert!(said.contains(" 1 passed; 0 failed"), "{said}");
            said.lines().filter(|line| line.starts_with("skipped: ")).for_each(|line| println!("{line}"));
        }
        // QEMU's user emulation starts no program for the emulated machine.
        Err(err) if err.raw_os_error() == Some(libc::ENOEXEC) => return true,
        Err(err) => panic!("cannot start this test program: {err}"),
    }
    false
}

/// What this test program says when it runs one test only.
fn only(name: &str) -> std::io::Result<String> {
    let mut command = Command::new(std::env::current_exe()?);
    let ended = command.args(["--exact", name, "--nocapture", "--test-threads=1"]).env(ALONE, "1").output()?;
    Ok([ended.stdout, ended.stderr].map(|said| String::from_utf8_lossy(&said).into_owned()).concat())
}

/// Lets `command` and its children fail with `EPERM` in this system call, as in a container (seccomp(2)).
///
/// # Panics
/// When the command cannot be started, if the kernel has no such filters.
pub fn deny(command: &mut Command, system_call: libc::c_long) {
    const LOAD_NUMBER: u16 = 0x20;
    const JUMP_IF_EQUAL: u16 = 0x15;
    const RETURN: u16 = 0x06;
    let step = |code, jt, k| libc::sock_filter { code, jt, jf: 0, k };
    let denied = libc::SECCOMP_RET_ERRNO | u32::try_from(libc::EPERM).unwrap_or_default();
    let mut steps = [
        step(LOAD_NUMBER, 0, 0),
        step(JUMP_IF_EQUAL, 1, u32::try_from(system_call).unwrap_or(u32::MAX)),
        step(RETURN, 0, libc::SECCOMP_RET_ALLOW),
        step(RETURN, 0, denied),
    ];
    let filter = move || {
        let program = libc::sock_fprog { len: 4, filter: steps.as_mut_ptr() };
        // SAFETY: PR_SET_NO_NEW_PRIVS takes integers only.
        crate::check(unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) }.into())?;
        let set = libc::SECCOMP_SET_MODE_FILTER;
        // SAFETY: `program` and its four steps outlive the call, which copies them.
        crate::check(unsafe { libc::syscall(libc::SYS_seccomp, set, 0, &raw const program) }).map(drop)
    };
    // SAFETY: between fork and exec the closure makes two system calls and uses only its own memory.
    unsafe { command.pre_exec(filter) };
}

/// CPU time of the calling thread so far, us.
///
/// # Panics
/// When the kernel does not tell it.
pub fn cpu_us() -> u64 {
    let used = crate::usage::thread().expect("own resource usage");
    used.user_us + used.system_us
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn a_test_runs_alone_once_and_by_its_name() {
        let is_alone = std::env::var_os(ALONE).is_some() || thread::current().name() == Some("main");
        assert_eq!(runs_alone(), is_alone);
        let said = only("testing::tests::no_such_test").unwrap();
        assert!(said.contains(" 0 passed; "), "{said}");
    }

    #[test]
    fn what_comes_true_is_waited_for() {
        let looks = Cell::new(0);
        assert!(comes_true(|| looks.replace(looks.get() + 1) == 2));
        assert_eq!(looks.get(), 3);
    }
}
