//! Reading the CPU limits of this process's control groups.

use crate::HostFs;
use punctual_model::Scheduling;
use std::path::{Path, PathBuf};

/// Mount points of the cpu controller (v1) and of the one hierarchy (v2), in the order in which they are looked for.
const V1: [&str; 2] = ["sys/fs/cgroup/cpu", "sys/fs/cgroup/cpu,cpuacct"];
const V2: [&str; 2] = ["sys/fs/cgroup", "sys/fs/cgroup/unified"];

/// The settings of the scheduler that follow from these groups.
pub(super) fn read(fs: &HostFs) -> Scheduling {
    let groups = fs.text("proc/self/cgroup").unwrap_or_default();
    let path_of = |wanted: &str| {
        groups.lines().find_map(|line| {
            let (_, rest) = line.split_once(':')?;
            let (controllers, path) = rest.split_once(':')?;
            controllers.split(',').any(|controller| controller == wanted).then(|| path.to_owned())
        })
    };
    let (v1, v2) = (path_of("cpu"), path_of(""));
    let mut limits = Scheduling { cgroup: v1.clone().or_else(|| v2.clone()), ..Scheduling::default() };
    if let Some(groups) = v1.and_then(|path| lineage(fs, &V1, "cpu.shares", &path)) {
        let own = &groups[0];
        limits.cgroup_rt_runtime_us = fs.number(own.join("cpu.rt_runtime_us"));
        limits.cgroup_rt_period_us = fs.number(own.join("cpu.rt_period_us"));
        take_tightest(&mut limits, groups.iter().filter_map(|group| quota_v1(fs, group)));
    }
    if let Some(groups) = v2.and_then(|path| lineage(fs, &V2, "cgroup.controllers", &path)) {
        limits.cpuset_partition = fs.text(groups[0].join("cpuset.cpus.partition"));
        if limits.cpu_quota_us.is_none() {
            // The root has no cpu.max: nothing limits it.
            take_tightest(&mut limits, groups.iter().map(|group| quota_v2(fs, group).unwrap_or((-1, 0))));
        }
    }
    limits
}

/// The group `path` and all above it, nearest first. Where the path is one of the machine around a container, the
/// mounted group. `None` without such a hierarchy.
fn lineage(fs: &HostFs, mounts: &[&str], mark: &str, path: &str) -> Option<Vec<PathBuf>> {
    let mount = mounts.iter().find(|mount| fs.exists(Path::new(mount).join(mark)))?;
    let relative = Path::new(path.trim_start_matches('/'));
    let inside = relative.components().all(|part| matches!(part, std::path::Component::Normal(_)));
    let groups: Vec<_> = relative.ancestors().map(|path| Path::new(mount).join(path)).collect();
    let is_seen = inside && fs.exists(groups.first()?);
    Some(if is_seen { groups } else { vec![PathBuf::from(mount)] })
}

fn quota_v1(fs: &HostFs, group: &Path) -> Option<(i64, u64)> {
    Some((fs.number(group.join("cpu.cfs_quota_us"))?, fs.number(group.join("cpu.cfs_period_us"))?))
}

/// `max 100000` or `50000 100000`.
fn quota_v2(fs: &HostFs, group: &Path) -> Option<(i64, u64)> {
    let text = fs.text(group.join("cpu.max"))?;
    let (quota, period) = text.split_once(' ')?;
    Some((if quota == "max" { -1 } else { quota.parse().ok()? }, period.trim().parse().ok()?))
}

/// The limit with the smallest share, which may be that there is none.
fn take_tightest(limits: &mut Scheduling, quotas: impl Iterator<Item = (i64, u64)>) {
    let share = |(quota, period): &(i64, u64)| match u64::try_from(*quota) {
        Ok(quota) => quota as f64 / (*period).max(1) as f64,
        Err(_) => f64::INFINITY,
    };
    if let Some((quota, period)) = quotas.min_by(|a, b| share(a).total_cmp(&share(b))) {
        (limits.cpu_quota_us, limits.cpu_quota_period_us) = (Some(quota.max(-1)), (period > 0).then_some(period));
    }
}
