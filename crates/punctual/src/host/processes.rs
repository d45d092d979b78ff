//! Looking at every process, as a system monitor does.

use std::io;

/// Reads the state, the memory map and the limits of each process that there is (proc(5)). One that ends meanwhile is
/// passed over.
///
/// # Errors
/// When processes cannot be listed.
pub(crate) fn look_at_all_processes() -> io::Result<()> {
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
pub(crate) fn children_of(pid: u32) -> Vec<u32> {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let lists = threads.filter_map(|thread| std::fs::read_to_string(thread.path().join("children")).ok());
    lists.flat_map(|list| list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<u32>>()).collect()
}
