//! Checks of background work of the memory management.

use super::{Check, Outcome};
use punctual_model::Host;

pub(super) const CHECKS: &[Check] = &[
    Check {
        name: "huge-pages",
        why: "With `always`, a page fault may compact memory to find a huge page, and khugepaged replaces pages of running \
              programs.",
        source: "Documentation/admin-guide/mm/transhuge.rst",
        examine: huge_pages,
    },
    Check {
        name: "swap",
        why: "Pages that are not locked may be swapped out; reading one back takes milliseconds.",
        source: "mlockall(2), swapon(8)",
        examine: swap,
    },
    Check {
        name: "shared-cache",
        why: "Programs on other CPUs evict what a thread needs from the last-level cache. Some processors can keep a part of \
              it for some CPUs.",
        source: "Documentation/filesystems/resctrl.rst",
        examine: shared_cache,
    },
    Check {
        name: "page-merging",
        why: "A kernel thread compares pages all the time, and a write to a merged page faults.",
        source: "Documentation/admin-guide/mm/ksm.rst",
        examine: page_merging,
    },
    Check {
        name: "compaction",
        why: "A kernel thread moves pages in the background; an access to such a page waits for it.",
        source: "Documentation/admin-guide/sysctl/vm.rst (compaction_proactiveness)",
        examine: compaction,
    },
    Check {
        name: "locked-pages",
        why: "Compaction may move locked pages too: the next access faults, although the memory is locked.",
        source: "Documentation/admin-guide/sysctl/vm.rst (compact_unevictable_allowed; 0 with PREEMPT_RT)",
        examine: locked_pages,
    },
];

fn huge_pages(host: &Host) -> Outcome {
    match host.memory.huge_pages.as_deref() {
        None => Outcome::not_here("no transparent huge pages here"),
        Some("always") => {
            Outcome::may("always").write("/sys/kernel/mm/transparent_hugepage/enabled", "madvise", "always")
        }
        Some(word) => Outcome::ok(word),
    }
}

fn swap(host: &Host) -> Outcome {
    match host.memory.swap_bytes {
        None => Outcome::unknown("the swap space cannot be read"),
        Some(0) => Outcome::ok("none"),
        Some(bytes) => {
            let gib = crate::wording::number(bytes as f64 / f64::from(1 << 30));
            Outcome::may(format!("{gib} GiB")).change("swapoff -a", "swapon -a")
        }
    }
}

fn shared_cache(host: &Host) -> Outcome {
    match host.processors.cache_groups {
        None => Outcome::not_here("this processor cannot divide its last-level cache"),
        Some(n @ 2..) => Outcome::ok(format!("divided between {n} groups")),
        Some(1) => Outcome::may("all CPUs share all of it: resctrl is mounted, and has one group")
            .change("mkdir /sys/fs/resctrl/realtime", "rmdir /sys/fs/resctrl/realtime")
            .caution("then write its part of the cache to the file schemata there, and its CPUs to cpus_list"),
        Some(_) => Outcome::may("all CPUs share all of it")
            .change("mount -t resctrl resctrl /sys/fs/resctrl", "umount /sys/fs/resctrl")
            .caution("then give the real-time CPUs a group, and a part of the cache, of their own"),
    }
}

fn page_merging(host: &Host) -> Outcome {
    match host.memory.ksm {
        None => Outcome::not_here("not built in"),
        Some(false) => Outcome::ok("off"),
        Some(true) => Outcome::may("on").write("/sys/kernel/mm/ksm/run", 0, 1),
    }
}

fn compaction(host: &Host) -> Outcome {
    match host.memory.compaction_proactiveness {
        None => Outcome::not_here("this kernel does not compact in advance"),
        Some(0) => Outcome::ok("only on demand"),
        Some(level) => {
            Outcome::may(format!("in advance, level {level} of 100")).sysctl("vm.compaction_proactiveness", 0, level)
        }
    }
}

fn locked_pages(host: &Host) -> Outcome {
    match host.memory.compacts_locked_pages {
        None => Outcome::not_here("this kernel does not compact memory"),
        Some(false) => Outcome::ok("compaction leaves them alone"),
        Some(true) => Outcome::may("compaction may move them").sysctl("vm.compact_unevictable_allowed", 0, 1),
    }
}
