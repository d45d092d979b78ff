//! Another process, as the kernel shows it.

use super::HostFs;

/// The threads of process `pid`; none when it has ended.
pub(crate) fn threads_of(pid: u32) -> Vec<u32> {
    let tasks = HostFs::running().root.join(format!("proc/{pid}/task"));
    let entries = std::fs::read_dir(tasks).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// When process `pid` was started, clock ticks since boot; `None` when it has ended (field 22 of proc_pid_stat(5)).
pub(crate) fn started_ticks_of(pid: u32) -> Option<u64> {
    stat_of(pid)?.split(' ').nth(19)?.parse().ok()
}

/// Whether there is no process `pid` any more.
pub(crate) fn is_gone(pid: u32) -> bool {
    started_ticks_of(pid).is_none()
}

/// The release of the running kernel, like `6.1.0-56-amd64`.
pub(crate) fn kernel_release() -> Option<String> {
    HostFs::running().text("proc/sys/kernel/osrelease")
}

/// The number of the namespace in which ids of processes are meant here (pid_namespaces(7)).
pub(crate) fn pid_namespace() -> Option<u64> {
    let link = std::fs::read_link(HostFs::running().root.join("proc/self/ns/pid")).ok()?;
    link.to_str()?.strip_prefix("pid:[")?.strip_suffix(']')?.parse().ok()
}

/// Whether ids of processes are the kernel's own here, and not those of a container.
pub(crate) fn is_initial_pid_namespace() -> bool {
    // PROC_PID_INIT_INO (include/linux/proc_ns.h).
    pid_namespace() == Some(0xefff_fffc)
}

/// The state of process `pid`, one letter: `T` when it is stopped; `None` when it has ended (field 3 of proc_pid_stat(5)).
pub(crate) fn state_of(pid: u32) -> Option<char> {
    stat_of(pid)?.chars().next()
}

/// What follows the name, which may hold anything: from the state on.
fn stat_of(pid: u32) -> Option<String> {
    let stat = HostFs::running().text(format!("proc/{pid}/stat"))?;
    stat.rsplit_once(") ").map(|(_, rest)| rest.to_owned())
}

/// Memory that process `pid` has locked, bytes (`VmLck` of proc_pid_status(5)); `None` when it cannot be read.
pub(crate) fn memory_locked_bytes_of(pid: u32) -> Option<u64> {
    let status = HostFs::running().text(format!("proc/{pid}/status"))?;
    let kib = status.lines().find_map(|line| line.strip_prefix("VmLck:"))?.trim().strip_suffix("kB")?;
    kib.trim().parse::<u64>().ok().map(|kib| kib * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_seen() {
        let pid = std::process::id();
        assert!(threads_of(pid).contains(&rt::sys::thread::id()));
        assert!(memory_locked_bytes_of(pid).is_some());
    }

    #[test]
    fn a_process_that_is_not_there_has_nothing() {
        // Above the highest id that there can be (proc_sys_kernel(5), pid_max).
        let pid = 1 << 22;
        assert_eq!((threads_of(pid), memory_locked_bytes_of(pid)), (Vec::new(), None));
    }
}
