//! Other programs that are watched: which processes there are, their control groups, open files and CPU quota.

use super::HostFs;
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// All processes.
pub fn processes() -> Vec<u32> {
    HostFs::running().numbers_in("proc")
}

/// The process of thread `tid`; `None` when it has ended.
pub fn process_of(tid: u32) -> Option<u32> {
    let status = HostFs::running().text(format!("proc/{tid}/status"))?;
    status.lines().find_map(|line| line.strip_prefix("Tgid:"))?.trim().parse().ok()
}

/// The executable of process `pid`, whatever has its name now, with device and inode; `None` when it has ended.
pub fn executable_of(pid: u32) -> Option<((u64, u64), File)> {
    let file = crate::file::open(&HostFs::running().root.join(format!("proc/{pid}/exe"))).ok()?;
    let found = file.metadata().ok()?;
    Some(((found.dev(), found.ino()), file))
}

/// Whether process `pid` belongs to the control group at `path`, a path below the root of any hierarchy, or to one
/// below it.
pub fn is_in_group(pid: u32, path: &str) -> bool {
    groups_of(&HostFs::running(), pid).iter().any(|(_, group)| Path::new(group).starts_with(path))
}

/// Whether process `pid` belongs to a unit of systemd: a control group of that name, or one below it.
pub fn is_in_unit(pid: u32, unit: &str) -> bool {
    let groups = groups_of(&HostFs::running(), pid);
    groups.iter().any(|(_, group)| group.split('/').any(|part| part == unit))
}

/// Controllers and path of each control group of a process (cgroups(7)).
fn groups_of(fs: &HostFs, pid: u32) -> Vec<(String, String)> {
    let text = fs.text(format!("proc/{pid}/cgroup")).unwrap_or_default();
    let group = |line: &str| {
        let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
        Some((controllers.to_owned(), path.to_owned()))
    };
    text.lines().filter_map(group).collect()
}

/// Kinds of files, by the beginning of the name that the kernel gives an open one without a path.
const KINDS: [(&str, &str); 4] =
    [("pipe:", "pipe"), ("socket:", "socket"), ("anon_inode:[timerfd]", "timer"), ("anon_inode:[eventfd]", "eventfd")];

/// Name of the file behind a descriptor of process `pid`: its path, or its kind; `None` when it cannot be read.
pub fn open_file(pid: u32, descriptor: u64) -> Option<String> {
    let link = HostFs::running().root.join(format!("proc/{pid}/fd/{descriptor}")).read_link().ok()?;
    let name: String = link.to_string_lossy().chars().filter(|c| punctual_model::is_plain(*c)).collect();
    let kind = KINDS.iter().find(|(start, _)| name.starts_with(start)).map(|(_, kind)| (*kind).to_owned());
    Some(kind.unwrap_or(name))
}

/// The control groups that limit the CPU time of a process: its own and those above.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CpuGroups {
    /// Directories of the groups with a quota.
    limited: Vec<PathBuf>,
    /// Whether its own group is below the root and has a budget of real-time threads (version 1, `RT_GROUP_SCHED`).
    has_realtime_budget: bool,
}

impl CpuGroups {
    /// Those of process `pid` with a quota; none when it has ended.
    pub fn of(pid: u32) -> CpuGroups {
        CpuGroups::below(&HostFs::running(), pid)
    }

    fn below(fs: &HostFs, pid: u32) -> CpuGroups {
        let all = lineages(fs, pid, "cpu");
        let has_budget =
            |all: &Vec<PathBuf>| all.len() > 1 && all.iter().any(|dir| dir.join("cpu.rt_runtime_us").exists());
        let has_realtime_budget = all.iter().any(has_budget);
        CpuGroups { limited: all.into_iter().flatten().filter(|dir| has_quota(dir)).collect(), has_realtime_budget }
    }

    /// Whether there is a quota.
    pub fn have_quota(&self) -> bool {
        !self.limited.is_empty()
    }

    /// Whether its real-time threads have a budget of their own.
    pub fn have_realtime_budget(&self) -> bool {
        self.has_realtime_budget
    }

    /// Time so far, ns, in which a quota held processes back; `None` when it cannot be read.
    pub fn throttled_ns(&self) -> Option<u64> {
        let of = |dir: &PathBuf| {
            let text = std::fs::read_to_string(dir.join("cpu.stat")).ok()?;
            let number = |key: &str| text.lines().find_map(|line| line.strip_prefix(key))?.trim().parse::<u64>().ok();
            // Version 2 counts us, version 1 ns.
            number("throttled_usec ").map(|us| us * 1_000).or_else(|| number("throttled_time "))
        };
        self.limited.iter().map(of).sum()
    }
}

/// The directories of the control group of process `pid` and of those above it, nearest first, in each hierarchy that
/// has or may have the controller.
pub(crate) fn lineages(fs: &HostFs, pid: u32, controller: &str) -> Vec<Vec<PathBuf>> {
    let mounts = fs.text("proc/self/mountinfo").unwrap_or_default();
    let lineage = |(controllers, path): (String, String)| {
        let is_meant = controllers.is_empty() || controllers.split(',').any(|one| one == controller);
        let root = mounts.lines().filter(|_| is_meant).find_map(|line| mounted(line, &controllers))?;
        let root = fs.root.join(root.trim_start_matches('/'));
        let own = root.join(path.trim_start_matches('/'));
        Some(own.ancestors().take_while(|dir| dir.starts_with(&root)).map(Path::to_owned).collect())
    };
    groups_of(fs, pid).into_iter().filter_map(lineage).collect()
}

/// The mount point of the hierarchy with these controllers, from a line of `mountinfo`; version 2 has none.
fn mounted(line: &str, controllers: &str) -> Option<String> {
    // proc_pid_mountinfo(5): field 5 is the mount point; the type and the options follow " - ".
    let (fields, rest) = line.split_once(" - ")?;
    let point = fields.split(' ').nth(4)?;
    let mut rest = rest.split(' ');
    let (kind, options) = (rest.next()?, rest.nth(1)?);
    let is_meant = match controllers {
        "" => kind == "cgroup2",
        controllers => kind == "cgroup" && controllers.split(',').all(|one| options.split(',').any(|it| it == one)),
    };
    is_meant.then(|| point.to_owned())
}

/// Whether a control group of either version has a CPU quota.
fn has_quota(dir: &Path) -> bool {
    let text = |name: &str| std::fs::read_to_string(dir.join(name)).ok();
    let second = text("cpu.max").is_some_and(|text| !text.starts_with("max"));
    let first = text("cpu.cfs_quota_us").and_then(|text| text.trim().parse::<i64>().ok()).is_some_and(|us| us > 0);
    second || first
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Scratch;

    #[test]
    fn quotas_of_both_versions_are_found_with_those_above() {
        let scratch = Scratch::make();
        let fs = scratch.machine();
        scratch.file("proc/7/cgroup", "3:cpu,cpuacct:/robot/arm\n1:name=systemd:/robot.slice/arm.service\n0::/robot");
        scratch.file(
            "proc/self/mountinfo",
            "1 2 0:3 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n1 2 0:3 / /sys/fs/cgroup/unified rw - cgroup2 c rw",
        );
        assert!(!CpuGroups::below(&fs, 7).have_quota());
        scratch.file("sys/fs/cgroup/cpu/robot/arm/cpu.cfs_quota_us", "-1");
        scratch.file("sys/fs/cgroup/cpu/robot/cpu.cfs_quota_us", "50000");
        scratch.file("sys/fs/cgroup/cpu/robot/cpu.stat", "nr_periods 9\nnr_throttled 3\nthrottled_time 4000");
        scratch.file("sys/fs/cgroup/unified/robot/cpu.max", "20000 100000");
        scratch.file("sys/fs/cgroup/unified/robot/cpu.stat", "usage_usec 9\nthrottled_usec 7");
        let groups = CpuGroups::below(&fs, 7);
        assert!(groups.have_quota());
        assert_eq!((groups.throttled_ns(), groups.have_realtime_budget()), (Some(11_000), false));
        scratch.file("sys/fs/cgroup/cpu/cpu.rt_runtime_us", "950000");
        assert!(CpuGroups::below(&fs, 7).have_realtime_budget());
        assert_eq!(groups_of(&fs, 7)[1].1, "/robot.slice/arm.service");
    }

    #[test]
    fn this_process_is_found_with_its_files() {
        let pid = std::process::id();
        assert!(processes().contains(&pid));
        assert_eq!(process_of(punctual_sys::thread::id()), Some(pid));
        let (reader, _writer) = std::io::pipe().unwrap();
        let descriptor = u64::try_from(std::os::fd::AsRawFd::as_raw_fd(&reader)).unwrap();
        assert_eq!(open_file(pid, descriptor).as_deref(), Some("pipe"));
        assert!(is_in_group(pid, "/") && !is_in_group(pid, "/no/such/group") && !is_in_unit(pid, "no.service"));
    }
}
