//! Files and groups of processes that were killed together with whoever cleans up after them.

use super::HostFs;
use super::cgroup::our_group;
use super::process::is_gone;
use std::path::{Path, PathBuf};

/// What such names begin with; the id of the process follows: a load's keeper, a cell that measures a language or
/// what operations cost, whoever started a guest.
const NAMES: [&str; 4] = ["punctual-load-", "punctual-sleep-", "punctual-cost-", "punctual-guest-"];

/// Removes what processes that are gone have left in the directories for temporary files and among the control groups.
/// Returns what was removed.
pub(crate) fn remove_leftovers() -> Vec<PathBuf> {
    let mut removed = Vec::new();
    for directory in [std::env::temp_dir(), PathBuf::from("/var/tmp")] {
        let abandoned = abandoned_in(&directory).into_iter();
        removed.extend(abandoned.filter(|path| std::fs::remove_dir_all(path).is_ok()));
    }
    let groups = our_group(&HostFs::running()).map(|group| abandoned_in(&group)).unwrap_or_default();
    for group in groups {
        // What is still in it has nobody to answer for it.
        let _ = std::fs::write(group.join("cgroup.kill"), "1");
        removed.extend(std::fs::remove_dir(&group).is_ok().then_some(group));
    }
    removed
}

fn abandoned_in(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let is_ours = |entry: &std::fs::DirEntry| {
        let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
        is_directory && entry.file_name().to_str().and_then(owner).is_some_and(is_gone)
    };
    entries.filter(is_ours).map(|entry| entry.path()).collect()
}

/// The process that a name belongs to.
fn owner(name: &str) -> Option<u32> {
    let rest = NAMES.iter().find_map(|begin| name.strip_prefix(begin))?;
    rest.split('-').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_dead_processes_left_is_abandoned() {
        let directory = std::env::temp_dir().join(format!("punctual-leftovers-{}", std::process::id()));
        // Above the highest id that there can be (proc_sys_kernel(5), pid_max).
        let dead = (1 << 22) + 1;
        let living = std::process::id();
        for name in [
            format!("punctual-load-{dead}"),
            format!("punctual-load-{living}"),
            format!("punctual-sleep-{dead}-0"),
            format!("punctual-sleep-{living}-0"),
            format!("punctual-guest-{dead}"),
            format!("punctual-guest-{living}"),
            "punctual-load-".to_owned(),
            format!("other-{dead}"),
        ] {
            std::fs::create_dir_all(directory.join(name)).unwrap();
        }
        std::fs::write(directory.join(format!("punctual-load-{}", dead + 1)), "a file").unwrap();
        let mut abandoned = abandoned_in(&directory);
        abandoned.sort();
        let names = ["guest", "load", "sleep"].map(|what| format!("punctual-{what}-{dead}"));
        let names = [names[0].clone(), names[1].clone(), format!("{}-0", names[2])];
        assert_eq!(abandoned, names.map(|name| directory.join(name)));
        std::fs::remove_dir_all(directory).unwrap();
    }
}
