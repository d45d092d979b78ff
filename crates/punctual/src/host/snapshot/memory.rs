//! Reading what the memory management does beside.

use super::read::field;
use crate::host::HostFs;
use model::Memory;

pub(super) fn read(fs: &HostFs, meminfo: &str) -> Memory {
    Memory {
        huge_pages: fs.chosen("sys/kernel/mm/transparent_hugepage/enabled"),
        swap_bytes: bytes(meminfo, "SwapTotal"),
        // 2 unmerges what was merged and stops.
        ksm: fs.number::<u32>("sys/kernel/mm/ksm/run").map(|run| run == 1),
        compaction_proactiveness: fs.number("proc/sys/vm/compaction_proactiveness"),
        compacts_locked_pages: fs.switch("proc/sys/vm/compact_unevictable_allowed"),
        stat_interval_s: fs.number("proc/sys/vm/stat_interval"),
    }
}

/// A size of `/proc/meminfo`, which is in KiB.
pub(super) fn bytes(meminfo: &str, name: &str) -> Option<u64> {
    field(meminfo, name)?.strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}
