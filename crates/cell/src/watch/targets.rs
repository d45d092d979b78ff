//! The threads that a cell watches: found at its start, and again while it lasts.

use punctual_model::{Watch, WatchTarget};

/// Threads to follow, by process.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Targets {
    /// IDs of the threads, ascending.
    pub(super) tids: Vec<u32>,
}

impl Targets {
    /// The running threads that are meant. The threads of a program that the cell itself starts follow from its
    /// process.
    pub(super) fn find(watch: &Watch) -> Targets {
        let pids = match &watch.target {
            WatchTarget::Command(_) => Vec::new(),
            WatchTarget::Pid(pid) => vec![*pid],
            WatchTarget::Cgroup(path) => having(|pid| punctual_host::is_in_group(pid, path)),
            WatchTarget::Unit(unit) => having(|pid| punctual_host::is_in_unit(pid, unit)),
            WatchTarget::Everywhere => having(|_| true),
        };
        let own = std::process::id();
        let of_process = |pid: u32| {
            let is_meant = move |tid: &u32| {
                watch.thread.is_none()
                    || punctual_host::name_of_thread(pid, *tid).is_some_and(|name| watch.is_meant(name.trim()))
            };
            punctual_host::threads_of(pid).into_iter().filter(is_meant).collect::<Vec<u32>>()
        };
        let mut tids: Vec<u32> = pids.into_iter().filter(|pid| *pid != own).flat_map(of_process).collect();
        tids.sort_unstable();
        tids.dedup();
        Targets { tids }
    }

    /// The threads that `before` has not, as the kernel numbers them.
    pub(super) fn new_since(&self, before: &Targets) -> Vec<i32> {
        let new = self.tids.iter().filter(|tid| before.tids.binary_search(tid).is_err());
        new.filter_map(|tid| i32::try_from(*tid).ok()).collect()
    }

    /// The error where there is nothing to watch, in one line.
    pub(super) fn none(watch: &Watch) -> String {
        let (whole, remedy) = match &watch.target {
            WatchTarget::Command(command) => (format!("`{command}`"), "run it by hand".to_owned()),
            WatchTarget::Pid(pid) => (format!("process {pid}"), format!("see `ps -T -p {pid}`")),
            WatchTarget::Cgroup(path) => (format!("control group {path}"), "see `systemd-cgls`".to_owned()),
            WatchTarget::Unit(unit) => (format!("unit {unit}"), format!("see `systemctl status {unit}`")),
            WatchTarget::Everywhere => ("this machine".to_owned(), "see `ps -eT`".to_owned()),
        };
        match &watch.thread {
            Some(thread) => format!("cannot watch: {whole} has no thread named `{thread}`; {remedy}"),
            None => format!("cannot watch: {whole} has no running thread; {remedy}"),
        }
    }
}

/// Processes for which `is_meant` holds.
fn having(is_meant: impl Fn(u32) -> bool) -> Vec<u32> {
    punctual_host::processes().into_iter().filter(|pid| is_meant(*pid)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_threads_are_those_that_were_not_there() {
        let targets = |tids: &[u32]| Targets { tids: tids.to_vec() };
        for (now, before, new) in
            [(&[][..], &[1][..], &[][..]), (&[1], &[1], &[]), (&[1, 2, 9], &[2, 5], &[1, 9]), (&[7], &[], &[7])]
        {
            assert_eq!(targets(now).new_since(&targets(before)), new, "{now:?} {before:?}");
        }
    }
}
