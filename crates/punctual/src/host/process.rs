//! Another process, as the kernel shows it.

use super::HostFs;
use std::path::PathBuf;

/// The threads of process `pid`; none when it has ended.
pub(crate) fn threads_of(pid: u32) -> Vec<u32> {
    let tasks = HostFs::here().root.join(format!("proc/{pid}/task"));
    let entries = std::fs::read_dir(tasks).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// The timer slack of process `pid`, ns (proc_pid_timerslack_ns(5)); `None` when it has ended or may not be looked at.
pub(crate) fn timer_slack_ns(pid: u32) -> Option<u64> {
    HostFs::here().number(format!("proc/{pid}/timerslack_ns"))
}

/// The file that process `pid` was started from; `None` when it has ended or may not be looked at.
pub(crate) fn program_of(pid: u32) -> Option<PathBuf> {
    std::fs::read_link(HostFs::here().root.join(format!("proc/{pid}/exe"))).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_seen() {
        let pid = std::process::id();
        assert!(threads_of(pid).contains(&rt::sys::thread::id()));
        assert_eq!(program_of(pid), std::env::current_exe().ok());
        assert!(timer_slack_ns(pid).is_some_and(|slack| slack > 0));
    }

    #[test]
    fn a_process_that_is_not_there_has_nothing() {
        // Above the highest id that there can be (proc_sys_kernel(5), pid_max).
        let pid = 1 << 22;
        assert_eq!((threads_of(pid), timer_slack_ns(pid), program_of(pid)), (Vec::new(), None, None));
    }
}
