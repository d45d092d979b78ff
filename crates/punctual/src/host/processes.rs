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

/// The children of the calling thread; none where the kernel does not list them (`CONFIG_PROC_CHILDREN`,
/// proc_tid_children(5)).
pub(crate) fn children_of_this_process() -> Vec<u32> {
    let text = std::fs::read_to_string("/proc/thread-self/children").unwrap_or_default();
    text.split_whitespace().filter_map(|pid| pid.parse().ok()).collect()
}
