//! Other processes, as the kernel shows them.

use super::HostFs;
use punctual_model::RunningKernel;
use std::io;

/// The threads of process `pid`; none when it has ended.
pub fn threads_of(pid: u32) -> Vec<u32> {
    let tasks = HostFs::running().root.join(format!("proc/{pid}/task"));
    let entries = std::fs::read_dir(tasks).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// The thread that thread `caller` knows as `tid`, in its PID namespace (pid_namespaces(7)); `None` when there is none
/// in its process, or it cannot be read.
pub fn thread_as_known_to(caller: u32, tid: u32) -> Option<u32> {
    if ids_of(caller)?.len() == 1 {
        return Some(tid);
    }
    threads_of(caller).into_iter().find(|one| own_id_of(*one) == Some(tid))
}

/// The ID that thread or process `id` has in its own PID namespace; `None` when it has ended.
pub fn own_id_of(id: u32) -> Option<u32> {
    ids_of(id)?.last().copied()
}

/// The IDs of a thread in its PID namespace and in those around it, the outermost first.
fn ids_of(tid: u32) -> Option<Vec<u32>> {
    let status = HostFs::running().text(format!("proc/{tid}/status"))?;
    let ids = status.lines().find_map(|line| line.strip_prefix("NSpid:"))?;
    ids.split_whitespace().map(|id| id.parse().ok()).collect()
}

/// Name of thread `tid` of process `pid`; `None` when it has ended.
pub fn name_of_thread(pid: u32, tid: u32) -> Option<String> {
    HostFs::running().text(format!("proc/{pid}/task/{tid}/comm"))
}

/// Start time of process `pid`, clock ticks since boot (field 22 of proc_pid_stat(5)); `None` after its end, reaped or
/// not.
pub fn started_ticks_of(pid: u32) -> Option<u64> {
    started_ticks_below(&HostFs::running(), pid)
}

fn started_ticks_below(fs: &HostFs, pid: u32) -> Option<u64> {
    let stat = stat_of(fs, &format!("proc/{pid}/stat"))?;
    let lives = |stat: &str| !stat.starts_with(ENDED);
    // A process exists for as long as one of its threads: the first thread may end before the others.
    let thread_lives = |tid: &u32| stat_of(fs, &format!("proc/{pid}/task/{tid}/stat")).is_some_and(|stat| lives(&stat));
    if !lives(&stat) && !fs.numbers_in(&format!("proc/{pid}/task")).iter().any(thread_lives) {
        return None;
    }
    stat.split(' ').nth(19)?.parse().ok()
}

/// State of thread `tid`, one letter (proc_pid_stat(5)); `None` after its end, reaped or not.
pub fn state_of_thread(tid: u32) -> Option<char> {
    let stat = stat_of(&HostFs::running(), &format!("proc/{tid}/stat"))?;
    stat.chars().next().filter(|state| !ENDED.contains(state))
}

/// Time of thread `tid` on the CPU, and in which it was to run and did not, ns (`/proc/TID/schedstat`,
/// Documentation/scheduler/sched-stats.rst); `None` after its end, or where the kernel does not count.
pub fn times_of_thread(tid: u32) -> Option<(u64, u64)> {
    let text = HostFs::running().text(format!("proc/{tid}/schedstat"))?;
    let mut numbers = text.split_whitespace().map_while(|word| word.parse().ok());
    numbers.next().zip(numbers.next())
}

/// How often thread `tid` got a CPU (`/proc/TID/schedstat`); `None` as for [`times_of_thread`].
pub fn turns_of_thread(tid: u32) -> Option<u64> {
    HostFs::running().text(format!("proc/{tid}/schedstat"))?.split_whitespace().nth(2)?.parse().ok()
}

/// States of a thread that has ended: zombie, dead (proc_pid_stat(5)).
const ENDED: [char; 3] = ['Z', 'X', 'x'];

/// Whether process `pid` has ended, reaped or not.
pub fn is_gone(pid: u32) -> bool {
    started_ticks_of(pid).is_none()
}

/// The error for a thread that cannot be created.
pub fn no_thread(err: &io::Error) -> io::Error {
    io::Error::other(format!("cannot create a thread: {err}; raise `ulimit -u`, or pids.max of the control group"))
}

/// The release of the running kernel, like `6.1.0-56-amd64`.
pub fn kernel_release() -> Option<String> {
    HostFs::running().text("proc/sys/kernel/osrelease")
}

/// The kernel that runs; `None` where its boot has no identity.
pub fn running_kernel() -> Option<RunningKernel> {
    let fs = HostFs::running();
    Some(RunningKernel {
        boot_id: fs.boot_id()?,
        release: kernel_release()?,
        command_line: fs.text("proc/cmdline").unwrap_or_default(),
    })
}

/// The number of the PID namespace of this process (pid_namespaces(7)).
pub fn pid_namespace() -> Option<u64> {
    let link = std::fs::read_link(HostFs::running().root.join("proc/self/ns/pid")).ok()?;
    link.to_str()?.strip_prefix("pid:[")?.strip_suffix(']')?.parse().ok()
}

/// Whether this process is in the initial PID namespace, and not in that of a container.
pub fn is_initial_pid_namespace() -> bool {
    // PROC_PID_INIT_INO (include/linux/proc_ns.h).
    pid_namespace() == Some(0xefff_fffc)
}

/// The state of process `pid`, one letter: `T` when it is stopped; `None` when it has ended (field 3 of
/// proc_pid_stat(5)).
pub(crate) fn state_of(pid: u32) -> Option<char> {
    stat_of(&HostFs::running(), &format!("proc/{pid}/stat"))?.chars().next()
}

/// Fields of a `stat` file from the state on: the name before it may contain any character.
fn stat_of(fs: &HostFs, path: &str) -> Option<String> {
    let stat = fs.text(path)?;
    stat.rsplit_once(") ").map(|(_, rest)| rest.to_owned())
}

/// Checks that `/proc` is mounted: without it nothing is known about the machine, and no cell can be started. Errors:
/// one line with the command that mounts it.
pub fn check_proc() -> Result<(), String> {
    if HostFs::running().exists("proc/self/stat") {
        Ok(())
    } else {
        Err("/proc is not mounted; mount -t proc proc /proc".to_owned())
    }
}

/// Memory that process `pid` has locked, bytes (`VmLck` of proc_pid_status(5)); `None` when it cannot be read.
pub fn memory_locked_bytes_of(pid: u32) -> Option<u64> {
    let status = HostFs::running().text(format!("proc/{pid}/status"))?;
    let kib = status.lines().find_map(|line| line.strip_prefix("VmLck:"))?.trim().strip_suffix("kB")?;
    kib.trim().parse::<u64>().ok().map(|kib| kib * 1024)
}

/// Reads the state, the memory map and the limits of every process (proc(5)). A process that ends meanwhile is skipped.
/// Errors: when processes cannot be listed.
pub fn look_at_all_processes() -> io::Result<()> {
    for entry in std::fs::read_dir("/proc")? {
        let path = entry?.path();
        let is_process = path.file_name().is_some_and(|name| name.as_encoded_bytes().iter().all(u8::is_ascii_digit));
        for file in ["stat", "status", "smaps_rollup"].into_iter().filter(|_| is_process) {
            let _ = std::fs::read(path.join(file));
        }
    }
    Ok(())
}

/// The children of process `pid`; none where the kernel does not list them (`CONFIG_PROC_CHILDREN`,
/// proc_tid_children(5)).
pub fn children_of(pid: u32) -> Vec<u32> {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let lists = threads.filter_map(|thread| std::fs::read_to_string(thread.path().join("children")).ok());
    lists.flat_map(|list| list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<u32>>()).collect()
}

/// Process `pid` and all its descendants, as far as the kernel lists them ([`children_of`]).
pub fn with_descendants(pid: u32) -> Vec<u32> {
    let mut pids = vec![pid];
    let mut next = 0;
    // The list grows while it is walked.
    while let Some(pid) = pids.get(next).copied() {
        pids.extend(children_of(pid));
        next += 1;
    }
    pids
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Scratch;

    #[test]
    fn this_process_is_seen() {
        let pid = std::process::id();
        assert!(threads_of(pid).contains(&punctual_sys::thread::id()));
        assert!(memory_locked_bytes_of(pid).is_some());
    }

    #[test]
    fn a_process_that_was_not_reaped_is_gone() {
        let mut child = std::process::Command::new("cat").stdin(std::process::Stdio::piped()).spawn().unwrap();
        let pid = child.id();
        assert!(!is_gone(pid));
        punctual_sys::process::signal(pid, libc::SIGKILL).unwrap();
        assert!(punctual_sys::testing::comes_true(|| state_of(pid) == Some('Z')));
        assert!(is_gone(pid) && started_ticks_of(pid).is_none());
        child.wait().unwrap();
    }

    #[test]
    fn a_process_lives_as_long_as_one_of_its_threads() {
        for (threads, expected) in [
            (&[('S', 9)][..], Some(7)),
            (&[('T', 9)], Some(7)),
            (&[('Z', 9)], None),
            (&[('X', 9)], None),
            (&[('Z', 9), ('S', 10)], Some(7)),
            (&[('Z', 9), ('R', 10), ('Z', 11)], Some(7)),
            (&[('Z', 9), ('Z', 10)], None),
            (&[], None),
        ] {
            let scratch = Scratch::make();
            let write = |path: &str, state: char| {
                let fields = ["0"; 18].join(" ");
                scratch.file(path, format!("9 (a) Z (b) {state} {fields} 7 0\n"));
            };
            for (state, tid) in threads {
                write(&format!("proc/9/task/{tid}/stat"), *state);
            }
            threads.iter().take(1).for_each(|(state, _)| write("proc/9/stat", *state));
            assert_eq!(started_ticks_below(&scratch.machine(), 9), expected, "{threads:?}");
        }
    }

    #[test]
    fn a_process_that_is_not_there_has_nothing() {
        // Above the highest id that there can be (proc_sys_kernel(5), pid_max).
        let pid = 1 << 22;
        assert_eq!((threads_of(pid), memory_locked_bytes_of(pid)), (Vec::new(), None));
    }
}
