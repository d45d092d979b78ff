//! Another process, as the kernel shows it.

use super::HostFs;

/// The threads of process `pid`; none when it has ended.
pub(crate) fn threads_of(pid: u32) -> Vec<u32> {
    let tasks = HostFs::here().root.join(format!("proc/{pid}/task"));
    let entries = std::fs::read_dir(tasks).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// Memory that process `pid` has locked, bytes (`VmLck` of proc_pid_status(5)); `None` when it cannot be read.
pub(crate) fn memory_locked_bytes_of(pid: u32) -> Option<u64> {
    let status = HostFs::here().text(format!("proc/{pid}/status"))?;
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
