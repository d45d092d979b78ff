//! A control group (version 2) of processes that are counted together and killed together.
//!
//! It controls nothing: without the `cpu` controller its processes share the CPU with all others as if there were no
//! group, so that membership changes no latency (cgroup-v2.rst).

use super::{HostFs, state_of_thread};
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A group below that of this process. Dropping it removes it; it must be empty then.
#[derive(Debug)]
pub struct Cgroup {
    path: PathBuf,
    /// The group of this process.
    ours: PathBuf,
}

impl Cgroup {
    /// Creates a group called `name`. `None` without version 2, without permission, or where a group would have a share
    /// of CPU time of its own.
    pub fn make(fs: &HostFs, name: &str) -> Option<Cgroup> {
        let ours = our_group(fs)?;
        let controllers = std::fs::read_to_string(ours.join("cgroup.subtree_control")).ok()?;
        if controllers.split_whitespace().any(|controller| controller == "cpu") {
            return None;
        }
        let path = ours.join(name);
        std::fs::create_dir(&path).ok()?;
        let group = Cgroup { path, ours };
        punctual_sys::fail::point("group-made");
        // Permission to create a group does not imply permission to move into it.
        group.enter().and_then(|()| group.leave()).ok().map(|()| group)
    }

    /// The directory of the group.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Moves this process into the group; its later children start there.
    pub fn enter(&self) -> io::Result<()> {
        std::fs::write(self.path.join("cgroup.procs"), "0")
    }

    /// Moves this process back to its previous group.
    pub fn leave(&self) -> io::Result<()> {
        std::fs::write(self.ours.join("cgroup.procs"), "0")
    }

    /// Kills every process in the group at once, also those in creation (`cgroup.kill`, since Linux 5.14).
    pub fn kill(&self) -> io::Result<()> {
        std::fs::write(self.path.join("cgroup.kill"), "1")
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        // A killed process leaves when the kernel has ended what it does: writing to a slow disk takes a while.
        for _ in 0..10_000 {
            match std::fs::remove_dir(&self.path) {
                Err(err) if err.kind() == io::ErrorKind::ResourceBusy => std::thread::sleep(Duration::from_millis(1)),
                _ => return,
            }
        }
    }
}

/// CPU time, us, of all processes of the group at `path`, including ended ones.
pub fn cpu_us_of_group(path: &Path) -> Option<u64> {
    let text = std::fs::read_to_string(path.join("cpu.stat")).ok()?;
    text.lines().find_map(|line| line.strip_prefix("usage_usec "))?.trim().parse().ok()
}

/// Moves this process into the group at `path`, of either version. Errors: one line with the group and the reason.
pub fn enter_group(path: &Path) -> Result<(), String> {
    let failed = |err: io::Error| {
        let hint = match err.kind() {
            // cpuset(7): a group of version 1 takes processes only once both have a value.
            io::ErrorKind::StorageFull => "write CPUs and memory nodes to its cpuset.cpus and cpuset.mems first",
            _ => "the group must exist",
        };
        format!("cannot move to the control group {}: {err}; {hint}", path.display())
    };
    let mut file = OpenOptions::new().write(true).open(path.join("cgroup.procs")).map_err(failed)?;
    file.write_all(b"0").map_err(failed)
}

/// Whether process `pid` runs no more until another one continues it: stopped by a signal or a debugger, or in a frozen
/// group of version 2 (cgroup-v2.rst, `cgroup.events`).
pub fn is_stopped(pid: u32) -> bool {
    let is_frozen = || {
        let events = std::fs::read_to_string(group_of(&HostFs::running(), &pid.to_string())?.join("cgroup.events"));
        Some(events.ok()?.lines().any(|line| line == "frozen 1"))
    };
    matches!(state_of_thread(pid), Some('T' | 't')) || is_frozen() == Some(true)
}

/// The directory of the version 2 group of this process.
pub(super) fn our_group(fs: &HostFs) -> Option<PathBuf> {
    group_of(fs, "self")
}

fn group_of(fs: &HostFs, process: &str) -> Option<PathBuf> {
    let groups = fs.text(format!("proc/{process}/cgroup"))?;
    let group = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
    let mounts = fs.text("proc/self/mountinfo")?;
    mounts.lines().find_map(|line| {
        // proc_pid_mountinfo(5): fields 4 and 5 are the root of the mount and the mount point; the type follows " - ".
        let (fields, rest) = line.split_once(" - ")?;
        let mut fields = fields.split(' ').skip(3);
        let (root, point) = (fields.next()?, fields.next()?);
        let below = Path::new(group).strip_prefix(root).ok()?;
        (rest.split(' ').next() == Some("cgroup2")).then(|| fs.root.join(point.trim_start_matches('/')).join(below))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Scratch;

    #[test]
    fn a_group_without_cpus_and_a_missing_one_have_different_remedies() {
        let scratch = Scratch::make();
        let (full, missing) = (scratch.path("full"), scratch.path("missing"));
        std::fs::create_dir_all(&full).unwrap();
        std::os::unix::fs::symlink("/dev/full", full.join("cgroup.procs")).unwrap();
        let refused = enter_group(&full).unwrap_err();
        let remedy = "(os error 28); write CPUs and memory nodes to its cpuset.cpus and cpuset.mems first";
        assert!(refused.ends_with(remedy), "{refused}");
        let refused = enter_group(&missing).unwrap_err();
        assert!(refused.ends_with("(os error 2); the group must exist"), "{refused}");
    }

    #[test]
    fn our_group_is_found_below_its_mount() {
        let scratch = Scratch::make();
        let fs = scratch.machine();
        for (group, mount, found) in [
            ("0::/", "35 25 0:30 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw", Some("sys/fs/cgroup")),
            (
                "1:cpu:/a\n0::/user.slice/x",
                "1 2 0:3 / /sys/fs/cgroup/unified rw - cgroup2 c rw",
                Some("sys/fs/cgroup/unified/user.slice/x"),
            ),
            ("0::/pod/x", "1 2 0:3 /pod /mnt rw - cgroup2 c rw", Some("mnt/x")),
            ("0::/", "1 2 0:3 / /sys/fs/cgroup rw - cgroup c rw", None),
            ("1:cpu:/", "1 2 0:3 / /sys/fs/cgroup rw - cgroup2 c rw", None),
            ("0::/", "nonsense", None),
        ] {
            scratch.file("proc/self/cgroup", group);
            scratch.file("proc/self/mountinfo", mount);
            assert_eq!(our_group(&fs), found.map(|path| scratch.path(path)), "{group} {mount}");
        }
    }

    #[test]
    fn a_group_with_a_share_of_its_own_is_not_made() {
        let scratch = Scratch::make();
        let fs = scratch.machine();
        scratch.file("proc/self/cgroup", "0::/");
        scratch.file("proc/self/mountinfo", "1 2 0:3 / /sys/fs/cgroup rw - cgroup2 c rw");
        for (controllers, is_made) in [("cpuset cpu io\n", false), ("cpuset io\n", true), ("\n", true)] {
            scratch.file("sys/fs/cgroup/cgroup.subtree_control", controllers);
            let group = Cgroup::make(&fs, "load");
            assert_eq!(group.is_some(), is_made, "{controllers:?}");
            // Its files are ordinary ones here, which the kernel would remove itself.
            let _ = std::fs::remove_dir_all(scratch.path("sys/fs/cgroup/load"));
        }
    }
}
