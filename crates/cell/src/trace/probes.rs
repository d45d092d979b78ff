//! Probes of the kernel in files of other programs (`uprobe_events`): in a group of their own, and always removed.

use super::TraceError;
use punctual_code::ProbePlace;
use punctual_ftrace::PROBE;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

/// The file that makes and lists them (Documentation/trace/uprobetracer.rst).
const FILE: &str = "uprobe_events";

/// The probes of an instance. Dropping this removes them; until then the instance has to be gone.
#[derive(Debug)]
pub(super) struct Probes {
    root: PathBuf,
    /// Paths below `events`: the group and the name.
    pub(super) paths: Vec<String>,
    group: String,
}

impl Probes {
    /// None yet; `name` is that of the instance.
    pub(super) fn new(root: &Path, name: &str) -> Probes {
        // Names of events have no hyphens.
        Probes { root: root.to_owned(), paths: Vec::new(), group: name.replace('-', "_") }
    }

    /// Adds the probes of the mark with this number. Errors: when the kernel has or accepts none.
    pub(super) fn add(&mut self, mark: usize, file: &File, places: &[ProbePlace]) -> Result<(), TraceError> {
        for ProbePlace { offset, counter } in places {
            let path = format!("{}/{PROBE}{mark}_{}", self.group, self.paths.len());
            let counter = counter.map_or_else(String::new, |counter| format!("({counter:#x})"));
            // By its descriptor: the very file that was read, whatever its name is and whatever has that name.
            let descriptor = file.as_raw_fd();
            write(&self.root, &format!("p:{path} /proc/self/fd/{descriptor}:{offset:#x}{counter}"))?;
            self.paths.push(path);
        }
        Ok(())
    }
}

impl Drop for Probes {
    fn drop(&mut self) {
        // If this fails, the next run removes the rest.
        self.paths.iter().for_each(|path| drop(write(&self.root, &format!("-:{path}"))));
    }
}

/// Removes the probes of groups for whose instances `is_abandoned` holds; returns the groups.
pub(super) fn sweep(root: &Path, is_abandoned: impl Fn(&str) -> bool) -> Vec<String> {
    let all = fs::read_to_string(root.join(FILE)).unwrap_or_default();
    let path = |line: &str| Some(line.strip_prefix("p:")?.split(' ').next()?.to_owned());
    let is_ours = |path: &String| path.split_once('/').is_some_and(|(group, _)| is_abandoned(&group.replace('_', "-")));
    let removed = all.lines().filter_map(path).filter(is_ours);
    let removed = removed.filter(|path| write(root, &format!("-:{path}")).is_ok());
    let mut groups: Vec<String> = removed.filter_map(|path| Some(path.split_once('/')?.0.to_owned())).collect();
    groups.dedup();
    groups
}

fn write(root: &Path, command: &str) -> Result<(), TraceError> {
    let path = root.join(FILE);
    // Truncating it would remove the probes of others.
    let written = OpenOptions::new().append(true).open(&path).and_then(|mut file| file.write_all(command.as_bytes()));
    written.map_err(|err| match err.raw_os_error() {
        Some(libc::ENOENT) if !path.exists() => TraceError::NoProbes,
        _ => TraceError::file(path)(err),
    })
}
