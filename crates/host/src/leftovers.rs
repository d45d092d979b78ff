//! Files and process groups left by processes that were killed together with their cleanup processes.

use super::HostFs;
use super::cgroup::our_group;
use super::process::{is_gone, pid_namespace};
use super::semaphores;
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Prefixes of such names; the process follows, as in [`named`]: the supervisor of a load, a cell that measures a
/// language, the cost of operations or with an outside program, the starter of a guest.
const NAMES: [&str; 5] =
    ["punctual-load-", "punctual-sleep-", "punctual-cost-", "punctual-guest-", "punctual-program-"];

/// The one of the files of a guest.
const OF_GUEST: &[u8] = b"punctual-guest-";

/// Directory in which every user can leave a link to a directory elsewhere.
const NOTES: &str = "/var/tmp";

/// `NAME-PID.NAMESPACE`: the name of an object made by process `pid` of this PID namespace. Another container that
/// shares the directory may have a process with the same id.
pub fn named(name: &str, pid: u32) -> String {
    let namespace = pid_namespace().map_or_else(String::new, |namespace| format!(".{namespace}"));
    format!("{name}-{pid}{namespace}")
}

/// Environment variable of the outside programs of a load and of their descendants: the name of their supervisor's
/// objects, as [`named`].
pub const MARK: &str = "PUNCTUAL_LOAD";

/// Kills the processes for whose [`MARK`] `is_over` holds, also those that they create meanwhile, and returns them.
/// Processes of other users, and those with a cleared environment, are not found.
pub fn kill_marked(is_over: impl Fn(&str) -> bool) -> Vec<u32> {
    let mut killed = Vec::new();
    for _ in 0..ROUNDS {
        let found = marked(&HostFs::running(), &is_over);
        if found.is_empty() {
            break;
        }
        found.iter().for_each(|pid| drop(punctual_sys::process::signal(*pid, libc::SIGKILL)));
        killed.extend(found);
        std::thread::sleep(Duration::from_millis(1));
    }
    killed.sort_unstable();
    killed.dedup();
    killed
}

/// Maximum number of searches for processes created since the previous one.
const ROUNDS: u32 = 1000;

fn marked(fs: &HostFs, is_over: &impl Fn(&str) -> bool) -> Vec<u32> {
    let mark = |pid: &u32| {
        // An ended process has no environment any more (proc_pid_environ(5)).
        let environment = fs.bytes(format!("proc/{pid}/environ")).unwrap_or_default();
        let mut variables =
            environment.split(|byte| *byte == 0).filter_map(|variable| std::str::from_utf8(variable).ok());
        variables.find_map(|variable| variable.strip_prefix(MARK)?.strip_prefix('=').map(is_over)).unwrap_or(false)
    };
    fs.numbers_in("proc").into_iter().filter(mark).collect()
}

/// A directory owned by one process, removed with its contents. Where [`remove_leftovers`] does not search, a link in a
/// searched directory points to it.
#[derive(Debug)]
pub struct OwnDirectory {
    path: PathBuf,
    note: Option<PathBuf>,
}

impl OwnDirectory {
    /// Creates the directory `name` in `parent`.
    pub fn make(parent: &Path, name: &str) -> io::Result<OwnDirectory> {
        let own = OwnDirectory::of(parent, name)?;
        // The link comes first, so that no directory is without one. A failure to create the link is ignored.
        own.note.iter().for_each(|note| drop(std::os::unix::fs::symlink(&own.path, note)));
        punctual_sys::fail::point("directory-noted");
        match std::fs::create_dir(&own.path) {
            Ok(()) => {
                punctual_sys::fail::point("directory-made");
                Ok(own)
            }
            Err(err) => {
                own.note.iter().for_each(|note| drop(std::fs::remove_file(note)));
                std::mem::forget(own);
                Err(err)
            }
        }
    }

    /// The directory `name` in `parent` that a killed process may have left; dropping this value removes it.
    pub fn of(parent: &Path, name: &str) -> io::Result<OwnDirectory> {
        let parent = parent.canonicalize()?;
        let is_searched = searched().iter().any(|directory| directory.canonicalize().is_ok_and(|path| path == parent));
        let note = (!is_searched).then(|| Path::new(NOTES).join(name));
        Ok(OwnDirectory { path: parent.join(name), note })
    }

    /// The path of the directory.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for OwnDirectory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.path);
        punctual_sys::fail::point("directory-removed");
        self.note.iter().for_each(|note| drop(std::fs::remove_file(note)));
    }
}

/// The directories for temporary files.
fn searched() -> [PathBuf; 2] {
    [std::env::temp_dir(), PathBuf::from(NOTES)]
}

/// Removes the leftovers of ended processes in the directories for temporary files and among the control groups.
/// Returns the removed paths, and as `/proc/PID` the programs of loads that still ran.
pub fn remove_leftovers() -> Vec<PathBuf> {
    // First, so that none of them creates a file again.
    let killed = kill_marked(is_abandoned).into_iter();
    let mut removed: Vec<PathBuf> = killed.map(|pid| PathBuf::from(format!("/proc/{pid}"))).collect();
    for directory in searched() {
        removed.extend(abandoned_in(&directory).into_iter().filter(|path| remove(path)));
        for note in notes_in(&directory) {
            let target = noted(&note);
            // A link without its target is useless.
            let is_done = target.as_ref().is_none_or(|target| remove(target));
            punctual_sys::fail::point("leftover-noted");
            let is_removed = is_done && std::fs::remove_file(&note).is_ok();
            removed.extend(target.filter(|_| is_removed));
        }
    }
    let groups = our_group(&HostFs::running()).map(|group| abandoned_in(&group)).unwrap_or_default();
    removed.extend(groups.into_iter().filter(|group| remove_group(group)));
    removed.extend(semaphores::remove_abandoned());
    removed
}

/// Removes the files that killed processes have left of guests, and nothing else.
pub fn remove_leftovers_of_guests() {
    for path in of_guests_in(&std::env::temp_dir()) {
        let _ = remove(&path);
    }
}

fn of_guests_in(directory: &Path) -> Vec<PathBuf> {
    let is_of_guest =
        |path: &PathBuf| path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(OF_GUEST));
    abandoned_in(directory).into_iter().filter(is_of_guest).collect()
}

/// Whether `path` is that of a process among the results of [`remove_leftovers`].
pub fn is_process(path: &Path) -> bool {
    path.strip_prefix("/proc").is_ok_and(|rest| rest.to_str().is_some_and(|name| name.parse::<u32>().is_ok()))
}

/// Kills the processes left in control group `name` of a killed process, and removes the group.
pub fn end_group(name: &str) {
    let group = our_group(&HostFs::running()).map(|group| group.join(name)).filter(|group| group.exists());
    let _ = group.is_some_and(|group| remove_group(&group));
}

fn remove_group(group: &Path) -> bool {
    // No supervisor is left for these processes.
    let _ = std::fs::write(group.join("cgroup.kill"), "1");
    // Killed processes take a moment to end.
    (0..1000).any(|_| match std::fs::remove_dir(group) {
        Err(err) if err.kind() == io::ErrorKind::ResourceBusy => {
            std::thread::sleep(Duration::from_millis(1));
            false
        }
        result => result.is_ok(),
    })
}

/// Removes a directory with its contents, but not with a mounted file system, which is not the process's own.
fn remove(path: &Path) -> bool {
    if let Some(mount) = mount_below(&HostFs::running(), path) {
        let (path, mount) = (path.display(), mount.display());
        let _ = writeln!(
            io::stderr(),
            "punctual: cannot remove {path}: {mount} is mounted there; umount {mount}, then: punctual recover"
        );
        return false;
    }
    punctual_sys::fail::point("leftover-found");
    std::fs::remove_dir_all(path).is_ok()
}

/// A mount point at or below `path` (proc_pid_mountinfo(5), field 5, with blanks as `\040`).
fn mount_below(fs: &HostFs, path: &Path) -> Option<PathBuf> {
    let path = path.canonicalize().ok()?;
    let mounts = fs.text("proc/self/mountinfo")?;
    let mut points = mounts.lines().filter_map(|line| line.split(' ').nth(4));
    points.find(|point| Path::new(&point.replace("\\040", " ")).starts_with(&path)).map(PathBuf::from)
}

fn abandoned_in(directory: &Path) -> Vec<PathBuf> {
    entries_in(directory, std::fs::FileType::is_dir)
}

/// Links that point to directories elsewhere.
fn notes_in(directory: &Path) -> Vec<PathBuf> {
    entries_in(directory, std::fs::FileType::is_symlink)
}

/// Entries of one type that were named by an ended process.
fn entries_in(directory: &Path, is_kind: impl Fn(&std::fs::FileType) -> bool) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let is_ours = |entry: &std::fs::DirEntry| {
        let is_kind = entry.file_type().is_ok_and(|kind| is_kind(&kind));
        is_kind && entry.file_name().to_str().is_some_and(is_abandoned)
    };
    entries.filter(is_ours).map(|entry| entry.path()).collect()
}

/// The directory that `note` points to, if it belongs to the same user: any user may create a link there.
fn noted(note: &Path) -> Option<PathBuf> {
    let target = std::fs::read_link(note).ok()?;
    let (of_note, of_target) = (note.symlink_metadata().ok()?, target.symlink_metadata().ok()?);
    let is_same = target.is_absolute() && target.file_name() == note.file_name() && of_note.uid() == of_target.uid();
    (is_same && of_target.is_dir()).then_some(target)
}

/// Whether the process in a name has ended; false for a process of another PID namespace.
fn is_abandoned(name: &str) -> bool {
    let Some(rest) = NAMES.iter().find_map(|begin| name.strip_prefix(begin)) else { return false };
    let process = rest.split('-').next().unwrap_or_default();
    // Names of guests and of earlier versions contain no namespace.
    let (pid, namespace) = process.split_once('.').map_or((process, None), |(pid, namespace)| (pid, Some(namespace)));
    let is_known = namespace.is_none_or(|text| text.parse::<u64>().is_ok_and(|number| Some(number) == pid_namespace()));
    is_known && pid.parse().is_ok_and(is_gone)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Scratch;

    /// Above the highest id that there can be (proc_sys_kernel(5), pid_max).
    const DEAD: u32 = (1 << 22) + 1;

    #[test]
    fn only_what_dead_processes_left_is_abandoned() {
        let scratch = Scratch::make();
        let directory = scratch.dir();
        let living = std::process::id();
        for name in [
            format!("punctual-load-{DEAD}"),
            named("punctual-load", DEAD),
            format!("punctual-load-{living}"),
            named("punctual-load", living),
            format!("{}-0", named("punctual-sleep", DEAD)),
            format!("punctual-sleep-{DEAD}-0"),
            format!("punctual-sleep-{living}-0"),
            format!("punctual-guest-{DEAD}"),
            format!("punctual-guest-{living}"),
            // Of another container, or of none.
            format!("punctual-load-{DEAD}.1"),
            format!("punctual-load-{DEAD}."),
            "punctual-load-".to_owned(),
            format!("other-{DEAD}"),
        ] {
            std::fs::create_dir_all(directory.join(name)).unwrap();
        }
        scratch.file(&format!("punctual-load-{}", DEAD + 1), "a file");
        let mut abandoned = abandoned_in(directory);
        abandoned.sort();
        let mut expected = [
            format!("punctual-guest-{DEAD}"),
            format!("punctual-load-{DEAD}"),
            named("punctual-load", DEAD),
            format!("punctual-sleep-{DEAD}-0"),
            format!("{}-0", named("punctual-sleep", DEAD)),
        ];
        expected.sort();
        assert_eq!(abandoned, expected.map(|name| directory.join(name)));
        assert_eq!(of_guests_in(directory), [directory.join(format!("punctual-guest-{DEAD}"))]);
    }

    #[test]
    fn a_note_is_followed_to_what_has_its_name_and_owner_only() {
        let (notes, elsewhere) = (Scratch::make(), Scratch::make());
        let name = named("punctual-load", DEAD);
        let (note, target) = (notes.path(&name), elsewhere.path(&name));
        std::os::unix::fs::symlink(&target, &note).unwrap();
        assert_eq!((notes_in(notes.dir()), noted(&note)), (vec![note.clone()], None), "nothing is there");
        std::fs::create_dir(&target).unwrap();
        assert_eq!(noted(&note).as_ref(), Some(&target));
        if punctual_sys::process::effective_user_id() == 0 {
            std::os::unix::fs::chown(&target, Some(65534), None).unwrap();
            assert_eq!(noted(&note), None, "of another user");
        }
        for other in [elsewhere.dir().to_owned(), PathBuf::from("/etc"), PathBuf::from(&name)] {
            std::fs::remove_file(&note).unwrap();
            std::os::unix::fs::symlink(&other, &note).unwrap();
            assert_eq!(noted(&note), None, "{}", other.display());
        }
    }

    #[test]
    fn a_program_of_a_load_is_known_by_its_environment() {
        let scratch = Scratch::make();
        let fs = scratch.machine();
        let dead = named("punctual-load", DEAD);
        for (pid, environment) in [
            (1, format!("A=b\0{MARK}={dead}\0C=d\0")),
            (2, format!("{MARK}={}\0", named("punctual-load", std::process::id()))),
            (3, format!("{MARK}X={dead}\0X{MARK}={dead}\0")),
            (4, String::new()),
        ] {
            scratch.file(&format!("proc/{pid}/environ"), environment);
        }
        assert_eq!(marked(&fs, &is_abandoned), [1]);
    }

    #[test]
    fn what_is_mounted_in_a_directory_is_seen() {
        let scratch = Scratch::make();
        let fs = scratch.machine();
        let tree = scratch.path("a b");
        std::fs::create_dir_all(tree.join("c")).unwrap();
        let shown = tree.display().to_string().replace(' ', "\\040");
        for (point, is_below) in
            [(shown.clone(), true), (format!("{shown}/c"), true), (format!("{shown}c"), false), ("/".to_owned(), false)]
        {
            let line = format!("1 2 0:3 / {point} rw - tmpfs t rw\n");
            scratch.file("proc/self/mountinfo", line);
            assert_eq!(mount_below(&fs, &tree).is_some(), is_below, "{point}");
        }
    }
}
