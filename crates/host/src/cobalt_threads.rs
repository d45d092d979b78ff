//! Real-time tasks of the kernel under Cobalt, as its list of threads has them.

use crate::HostFs;
use punctual_model::{Policy, RtPriority};
use std::fs::File;
use std::io::Read;

/// A real-time task of the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CobaltTask {
    /// Its CPU.
    pub cpu: u32,
    /// ID of its thread.
    pub tid: u32,
    /// Its policy; `None` outside Cobalt's real-time class.
    pub policy: Option<Policy>,
}

/// Maximum size of the list, bytes: a thread takes 80.
const LONGEST_BYTES: u64 = 1 << 20;

/// The real-time tasks of the kernel with this name; `None` when the list is unreadable.
pub fn cobalt_tasks(fs: &HostFs, name: &str) -> Option<Vec<CobaltTask>> {
    let mut bytes = Vec::new();
    let file = File::open(fs.root.join("proc/xenomai/sched/threads")).ok()?;
    file.take(LONGEST_BYTES).read_to_end(&mut bytes).ok()?;
    Some(tasks(&String::from_utf8_lossy(&bytes), name))
}

/// Rows `CPU PID CLASS TYPE PRI TIMEOUT STAT NAME`; names of the kernel's are in brackets (`vfile_schedlist_show`,
/// kernel/cobalt/sched.c).
fn tasks(text: &str, name: &str) -> Vec<CobaltTask> {
    let task = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [cpu, tid, class, _, priority, _, _, listed] = fields[..] else { return None };
        let priority = || RtPriority::new(priority.parse().ok()?);
        let is_it = listed.strip_prefix('[').and_then(|listed| listed.strip_suffix(']')) == Some(name);
        let policy = if class == "rt" { priority().map(Policy::Fifo) } else { None };
        is_it.then_some(CobaltTask { cpu: cpu.parse().ok()?, tid: tid.parse().ok()?, policy })
    };
    text.lines().filter_map(task).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_of_the_kernel_are_found_by_name() {
        let text = "CPU  PID    CLASS  TYPE      PRI   TIMEOUT       STAT       NAME\n\
                    \x20 0  0      idle   core       -1   -             R          [ROOT]\n\
                    \x20 0  66     rt     cobalt      0   -             W          timerbench\n\
                    \x20 1  67     rt     core       90   275us         D          [timerbench]\n\
                    \x20 1  68     weak   core        0   -             D          [timerbench]\n\
                    \x20 x  69     rt     core       90   -             D          [timerbench]\n\
                    half a row [timerbench]\n";
        let fifo = "fifo:90".parse().ok();
        let found = [CobaltTask { cpu: 1, tid: 67, policy: fifo }, CobaltTask { cpu: 1, tid: 68, policy: None }];
        assert_eq!(tasks(text, "timerbench"), found);
        assert_eq!(tasks("", "timerbench"), []);
    }
}
