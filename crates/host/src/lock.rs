//! The machine lock: one measurement at a time.

mod monitor;

pub use monitor::MonitorMark;

use super::HostFs;
use super::process::{is_gone, name_of_thread};
use punctual_model::plain;
use punctual_sys::waited::Waited;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicI32, Ordering::Relaxed};
use std::time::Duration;

/// The lock held while measuring. The kernel releases it when this process and the cells that it started have ended,
/// for any reason (`flock(2)`: a lock belongs to the open file, which [`pass_lock`] leaves open in them).
#[derive(Debug)]
pub struct MachineLock {
    /// The open locked files, in the order of locking. The first is passed to cells: the object of the kernel, or the
    /// directory of the lock file, which cannot be removed as a file in it can. While the directory is locked,
    /// systemd-tmpfiles does not clean it (tmpfiles.d(5)). Of a file that the user named, only that file: others in its
    /// directory are locks of their own.
    locked: Vec<File>,
    /// The lock file with the description of the holder, if there is a place for it.
    file: Option<File>,
    /// The part of the machine that the lock does not reach, as a sentence for users; `None` if it reaches all.
    pub limit: Option<String>,
}

/// An error in taking the machine lock.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another process measures.
    #[error("this machine is being measured by {holder}; wait for it with --wait")]
    Held {
        /// The holder's description of itself.
        holder: String,
    },
    /// A monitor measures and does not pause.
    #[error("a monitor measures this machine and does not pause; end it, or continue it if it was stopped")]
    Monitored,
    /// The lock file cannot be used.
    #[error("cannot lock {path}: {source}; {remedy}", path = path.display(), remedy = remedy(*is_named))]
    File {
        /// The lock file.
        path: PathBuf,
        /// Whether the user named it.
        is_named: bool,
        /// The kernel's reason.
        source: io::Error,
    },
}

/// Environment variable: the only file to lock. Measurements in containers that have disjoint CPUs, each with a file of
/// its own, do not exclude each other then, unless they change settings of the machine: these belong to all.
const VARIABLE: &str = "PUNCTUAL_LOCK";
/// The lock files, in directories that every user can write to (hier(7), shm_overview(7)): the first one whose
/// directory exists and is not read-only. Images without a distribution often have the last one only.
const PATHS: [&str; 3] = ["/tmp/punctual.lock", "/run/lock/punctual.lock", "/dev/shm/punctual.lock"];
/// An object of the kernel that processes share across mount, network, PID and user namespaces: container engines and
/// systemd leave everything in the initial time namespace (time_namespaces(7), Linux 5.6). Unlike files, it is the same
/// in all containers of a machine.
const SHARED_OBJECT: &str = "/proc/self/ns/time";
/// Holder that has described itself in a file which this process does not see.
const IN_ANOTHER_CONTAINER: &str = "a process in another container or mount namespace";
/// Maximum number of bytes read of a holder's description.
const HOLDER_BYTES: u64 = 200;
/// Timeout of the end of the cell and the loads of a killed holder.
const CHILDREN_EXIT_TIMEOUT: Duration = Duration::from_secs(15);
/// Timeout of the end of a process that was sent SIGKILL: until then it looks like any other.
const KILL_TIMEOUT: Duration = Duration::from_secs(1);
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// The descriptor of the lock that this process holds, its own or its parent's; -1: none.
static HELD: AtomicI32 = AtomicI32::new(-1);

/// What is locked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    /// Guests in virtual time only. They depend on no setting of the machine, but would disturb its measurement.
    Guests,
    /// This machine.
    Machine,
    /// This machine, whose settings are changed.
    Settings,
}

/// Files to lock.
#[derive(Debug, Clone)]
struct Places {
    /// The object of the kernel.
    shared: Option<PathBuf>,
    /// Candidates for the lock file.
    files: Vec<PathBuf>,
    /// Whether the user named the file.
    is_named: bool,
}

impl Places {
    fn here(subject: Subject) -> Places {
        let named = std::env::var_os(VARIABLE).filter(|path| !path.is_empty());
        let is_whole = named.is_none() || subject == Subject::Settings && HostFs::here().is_running();
        let files = named.as_ref().map_or_else(|| PATHS.map(PathBuf::from).to_vec(), |path| vec![path.into()]);
        Places { shared: is_whole.then(|| SHARED_OBJECT.into()), files, is_named: named.is_some() }
    }

    /// Opens the lock file and its directory; the path is that of the file. `None` if no directory can hold it.
    fn open(&self) -> Result<Option<(File, File, &Path)>, LockError> {
        for path in &self.files {
            let directory = || File::open(path.parent().filter(|dir| *dir != Path::new("")).unwrap_or(Path::new(".")));
            match directory().and_then(|directory| Ok((directory, open(path)?))) {
                Ok((directory, file)) => return Ok(Some((directory, file, path))),
                Err(err) if !self.is_named && is_no_place(&err) => {}
                Err(source) => {
                    return Err(LockError::File { path: path.clone(), is_named: self.is_named, source });
                }
            }
        }
        Ok(None)
    }
}

/// Whether a directory does not exist or is read-only, for every user.
fn is_no_place(err: &io::Error) -> bool {
    matches!(err.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory | io::ErrorKind::ReadOnlyFilesystem)
}

fn remedy(is_named: bool) -> &'static str {
    if is_named { "name another file: PUNCTUAL_LOCK=/run/punctual.lock" } else { "remove it, as its owner or as root" }
}

impl MachineLock {
    /// Takes the lock. With `wait` it waits for any holder; without, only until the processes started by a killed
    /// holder have ended.
    ///
    /// A monitor pauses meanwhile: it is waited for. Errors: when another process holds it and `wait` is false, a
    /// monitor does not pause, or the file cannot be used.
    pub fn take(subject: Subject, wait: bool) -> Result<MachineLock, LockError> {
        let lock = MachineLock::take_at(&Places::here(subject), wait, CHILDREN_EXIT_TIMEOUT)?;
        HELD.store(lock.descriptor(), Relaxed);
        punctual_sys::fail::point("lock-taken");
        lock.say(&format!("pid {}", std::process::id()));
        lock.wait_for_monitor(monitor::PAUSE_TIMEOUT)?;
        Ok(lock)
    }

    fn take_at(places: &Places, wait: bool, ending: Duration) -> Result<MachineLock, LockError> {
        let mut waited = Waited::begin();
        loop {
            // Opened again each time: the file may have been removed and recreated since.
            let opened = places.open()?;
            let shared = places.shared.as_ref().and_then(|path| File::open(path).ok());
            let is_shared = shared.is_some();
            let (directory, file, path) = opened.map_or((None, None, None), |(a, b, c)| (Some(a), Some(b), Some(c)));
            let directory = directory.filter(|_| !places.is_named);
            let failed = |source| LockError::File {
                path: path.unwrap_or(Path::new(SHARED_OBJECT)).to_owned(),
                is_named: places.is_named,
                source,
            };
            let mut all_locked = true;
            for object in shared.iter().chain(&directory).chain(&file) {
                all_locked = all_locked && is_locked(object, wait).map_err(failed)?;
            }
            if all_locked {
                // Removed before it was locked: the next holder would write its description to another file.
                if file.as_ref().zip(path).is_none_or(|(file, path)| is_at(file, path)) {
                    let limit = limit(is_shared, path, places.is_named);
                    let mut locked: Vec<File> = shared.into_iter().chain(directory).collect();
                    if let Some(file) = file.as_ref().filter(|_| locked.is_empty() || places.is_named) {
                        locked.insert(0, file.try_clone().map_err(failed)?);
                    }
                    return Ok(MachineLock { locked, file, limit });
                }
                continue;
            }
            let owner = || shared.iter().chain(&directory).chain(&file).find_map(owner_of);
            let (description, has_ended) = file.as_ref().map_or((None, false), holder);
            let holder = description.or_else(owner).unwrap_or_else(|| IN_ANOTHER_CONTAINER.to_owned());
            let timeout = if has_ended { ending } else { ending.min(KILL_TIMEOUT) };
            if waited.look() >= timeout {
                let more = if has_ended { ", which has exited; one of its child processes may still run" } else { "" };
                return Err(LockError::Held { holder: format!("{holder}{more}") });
            }
            drop((shared, directory, file));
            std::thread::sleep(POLL_INTERVAL);
        }
    }

    /// Writes a description of the holder, for users only: nothing depends on it.
    pub fn say(&self, holder: &str) {
        let write = |file: &File| file.set_len(0).and_then(|()| file.write_all_at(holder.as_bytes(), 0));
        let _ = self.file.as_ref().map(write);
    }

    /// The descriptor to pass to cells; -1: none.
    fn descriptor(&self) -> i32 {
        self.locked.first().map_or(-1, AsRawFd::as_raw_fd)
    }
}

impl Drop for MachineLock {
    fn drop(&mut self) {
        // A description that is left belongs to a killed holder.
        self.say("");
        let _ = HELD.compare_exchange(self.descriptor(), -1, Relaxed, Relaxed);
    }
}

/// The part of the machine that a lock does not reach.
fn limit(is_shared: bool, path: Option<&Path>, is_named: bool) -> Option<String> {
    match path {
        _ if is_shared || is_named => None,
        Some(path) => Some(format!(
            "the lock {} does not reach other containers, which may measure at the same time (no {SHARED_OBJECT})",
            path.display()
        )),
        None => Some(format!(
            "measuring without a lock: another measurement may run at the same time; mount /tmp, or name a file: \
             {VARIABLE}=PATH"
        )),
    }
}

/// Passes the lock that this process holds to the program that `command` starts. The program gets the descriptor as
/// `--lock` and passes it to [`keep_lock`].
pub fn pass_lock(command: &mut Command) {
    let descriptor = HELD.load(Relaxed);
    if descriptor >= 0 {
        command.args(["--lock", &descriptor.to_string()]);
        punctual_sys::process::inherit(command, descriptor);
    }
}

/// Holds the lock that the parent left open as `descriptor` until this process ends; children do not inherit it.
/// Errors: when the descriptor is invalid.
pub fn keep_lock(descriptor: i32) -> io::Result<()> {
    punctual_sys::process::close_on_exec(descriptor)?;
    HELD.store(descriptor, Relaxed);
    Ok(())
}

/// Locks `file`; `false` when another process holds the lock and `wait` is not set.
fn is_locked(file: &File, wait: bool) -> io::Result<bool> {
    match file.try_lock() {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) if wait => file.lock().map(|()| true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(source)) => Err(source),
    }
}

/// Whether `path` refers to this open file.
fn is_at(file: &File, path: &Path) -> bool {
    let identity = |metadata: std::fs::Metadata| (metadata.dev(), metadata.ino());
    let (opened, named) = (file.metadata().map(identity), path.symlink_metadata().map(identity));
    opened.is_ok() && opened.ok() == named.ok()
}

/// The process that holds the lock of a file, with its name (`/proc/locks`, proc_locks(5)); `None` where this process
/// does not see it.
fn owner_of(file: &File) -> Option<String> {
    let metadata = file.metadata().ok()?;
    let (device, inode) = (metadata.dev(), metadata.ino());
    let object = format!(" {:02x}:{:02x}:{inode} ", libc::major(device), libc::minor(device));
    let locks = std::fs::read_to_string("/proc/locks").ok()?;
    let held = locks.lines().find(|line| line.contains(" FLOCK ") && !line.contains("->") && line.contains(&object))?;
    let pid = held.split_whitespace().nth(4)?.parse().ok().filter(|pid| *pid > 0)?;
    let name = name_of_thread(pid, pid).unwrap_or_default();
    Some(format!("process {pid} ({})", plain(&name)))
}

/// The holder's description of itself, restricted to printable characters because any user may write to the file; and
/// whether the process that it names has ended.
fn holder(file: &File) -> (Option<String>, bool) {
    let mut bytes = Vec::new();
    let _ = file.take(HOLDER_BYTES).read_to_end(&mut bytes);
    let text: String =
        bytes.iter().map(|byte| char::from(*byte)).filter(|c| c.is_ascii_graphic() || *c == ' ').collect();
    let text = text.trim();
    let pid = text.strip_prefix("pid ").and_then(|rest| rest.split(' ').next()?.parse().ok());
    (Some(text.to_owned()).filter(|text| !text.is_empty()), pid.is_some_and(is_gone))
}

/// Opens the lock file, which may belong to another user.
///
/// An existing file is opened without O_CREAT, because the kernel refuses that for other users' files in shared
/// directories (`fs.protected_regular`, proc_sys_fs(5)); never through a link, which any user could have put there.
fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
    let file = match options.open(path) {
        Err(err) if err.kind() == io::ErrorKind::NotFound => match options.create_new(true).mode(0o666).open(path) {
            // Another process was faster.
            Err(err) if err.kind() == io::ErrorKind::AlreadyExists => options.create_new(false).open(path)?,
            file => {
                let file = file?;
                // Regardless of the umask, so that every user can take the lock and write a description.
                file.set_permissions(PermissionsExt::from_mode(0o666))?;
                file
            }
        },
        Err(err) if err.raw_os_error() == Some(libc::ELOOP) => {
            return Err(io::Error::other("expected a regular file, found a symbolic link"));
        }
        file => file?,
    };
    let is_file = file.metadata()?.is_file();
    if is_file { Ok(file) } else { Err(io::Error::other("expected a regular file")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Scratch;

    /// A directory of its own with no lock file in it yet.
    struct Place(Scratch);

    impl Place {
        fn new() -> Place {
            Place(Scratch::make())
        }

        fn path(&self) -> PathBuf {
            self.0.path("punctual.lock")
        }

        fn places(&self) -> Places {
            Places { shared: None, files: vec![self.path()], is_named: false }
        }

        fn take(&self) -> Result<MachineLock, LockError> {
            MachineLock::take_at(&self.places(), false, Duration::ZERO)
        }
    }

    #[test]
    fn a_second_holder_is_refused_with_the_text_of_the_first_until_it_exits() {
        let place = Place::new();
        let first = place.take().unwrap();
        let own = owner_of(first.file.as_ref().unwrap()).unwrap();
        assert!(own.starts_with(&format!("process {} (", std::process::id())), "{own}");
        for (words, shown) in [
            ("", own.as_str()),
            ("a holder with a long name", "a holder with a long name"),
            ("pid 1 (started 14:32)", "pid 1 (started 14:32)"),
            ("\u{1b}]0;x\u{7}\u{1b}[2J\r\n\u{9b}\u{202e}pid 1", "]0;x[2Jpid 1"),
        ] {
            first.say(words);
            let refused = place.take().unwrap_err().to_string();
            assert_eq!(refused, format!("this machine is being measured by {shown}; wait for it with --wait"));
        }
        drop(first);
        MachineLock::take_at(&place.places(), true, Duration::ZERO).unwrap();
    }

    #[test]
    fn a_lock_file_that_is_removed_excludes_all_the_same() {
        if !punctual_sys::testing::runs_alone() {
            return;
        }
        let place = Place::new();
        let first = place.take().unwrap();
        std::fs::remove_file(place.path()).unwrap();
        assert!(matches!(place.take(), Err(LockError::Held { .. })));
        // An earlier version locks the file only.
        drop(first);
        let earlier = open(&place.path()).unwrap();
        earlier.try_lock().unwrap();
        assert!(matches!(place.take(), Err(LockError::Held { .. })));
        drop(earlier);
        assert!(place.take().is_ok());
    }

    #[test]
    fn files_that_users_name_in_one_directory_are_separate_locks() {
        if !punctual_sys::testing::runs_alone() {
            return;
        }
        let place = Place::new();
        let take = |name: &str| {
            let places = Places { shared: None, files: vec![place.0.path(name)], is_named: true };
            MachineLock::take_at(&places, false, Duration::ZERO)
        };
        let first = take("first").unwrap();
        assert!(matches!(take("first"), Err(LockError::Held { .. })));
        let second = take("second").unwrap();
        // A cell that survives its killed parent holds the lock.
        let passed = first.locked[0].try_clone().unwrap();
        assert!(first.descriptor() >= 0);
        drop((first, second));
        assert!(matches!(take("first"), Err(LockError::Held { .. })));
        drop(passed);
        assert!(take("first").is_ok());
    }

    #[test]
    fn what_a_killed_holder_started_is_waited_for() {
        let place = Place::new();
        let first = place.take().unwrap();
        // Above the highest id that there can be (proc_sys_kernel(5), pid_max).
        first.say(&format!("pid {} (started 14:32)", (1 << 22) + 1));
        let refused = place.take().unwrap_err().to_string();
        assert!(refused.contains(", which has exited; one of its child processes may still run;"), "{refused}");
        let places = place.places();
        let (told, tid) = std::sync::mpsc::channel();
        let second = std::thread::spawn(move || {
            told.send(punctual_sys::thread::id()).unwrap();
            MachineLock::take_at(&places, false, Duration::MAX)
        });
        let tid = tid.recv().unwrap();
        // It sleeps between two looks.
        assert!(punctual_sys::testing::comes_true(|| crate::process::state_of_thread(tid) == Some('S')));
        assert!(!second.is_finished());
        drop(first);
        assert!(second.join().unwrap().is_ok());
    }

    #[test]
    fn the_first_directory_that_can_hold_a_file_is_used() {
        let place = Place::new();
        let missing = place.0.path("none/punctual.lock");
        let below_a_file = place.0.file("file", "").join("punctual.lock");
        let places = |files: &[&PathBuf]| Places {
            shared: None,
            files: files.iter().map(|path| (*path).clone()).collect(),
            is_named: false,
        };
        let take = |places: &Places| MachineLock::take_at(places, false, Duration::ZERO);
        let lock = take(&places(&[&missing, &below_a_file, &place.path()])).unwrap();
        let limit = lock.limit.clone().unwrap();
        let expected = format!("the lock {} does not reach other containers", place.path().display());
        assert!(limit.starts_with(&expected), "{limit}");
        assert!(matches!(place.take(), Err(LockError::Held { .. })), "the file that both can use");
        drop(lock);
        let lock = take(&places(&[&missing])).unwrap();
        assert!(lock.limit.as_ref().is_some_and(|limit| limit.contains("without a lock")), "{lock:?}");
        assert_eq!(lock.descriptor(), -1);
        let named = take(&Places { is_named: true, ..places(&[&missing]) }).unwrap_err().to_string();
        assert!(named.ends_with("; name another file: PUNCTUAL_LOCK=/run/punctual.lock"), "{named}");
    }

    #[test]
    fn a_shared_object_excludes_holders_with_other_files() {
        if !punctual_sys::testing::runs_alone() {
            return;
        }
        let place = Place::new();
        let object = place.0.file("object", "");
        let of = |name: &str| Places { shared: Some(object.clone()), files: vec![place.0.path(name)], is_named: false };
        let take = |name: &str| MachineLock::take_at(&of(name), false, Duration::ZERO);
        std::fs::create_dir(place.0.path("there")).unwrap();
        let first = take("there/punctual.lock").unwrap();
        assert_eq!(first.limit, None);
        first.say("pid 1");
        let refused = take("punctual.lock").unwrap_err().to_string();
        assert!(refused.contains(&format!(" measured by process {} (", std::process::id())), "{refused}");
        let nowhere = Places { files: Vec::new(), ..of("") };
        assert!(MachineLock::take_at(&nowhere, false, Duration::ZERO).is_err());
        drop(first);
        assert_eq!(std::fs::read_to_string(place.0.path("there/punctual.lock")).unwrap(), "");
        assert_eq!(MachineLock::take_at(&nowhere, false, Duration::ZERO).unwrap().limit, None);
        assert!(File::open(SHARED_OBJECT).is_ok(), "Linux 5.6 and /proc");
    }

    #[test]
    fn what_is_no_lock_file_is_one_line() {
        let place = Place::new();
        let target = place.0.file("target", "precious");
        let refused = |reason: &str| {
            let line = place.take().unwrap_err().to_string();
            let begin = format!("cannot lock {}: {reason}", place.path().display());
            assert!(line.starts_with(&begin) && line.ends_with("; remove it, as its owner or as root"), "{line}");
        };
        std::os::unix::fs::symlink(&target, place.path()).unwrap();
        refused("expected a regular file, found a symbolic link");
        assert_eq!(std::fs::read_to_string(&target).unwrap(), "precious");
        std::fs::remove_file(place.path()).unwrap();
        std::fs::create_dir(place.path()).unwrap();
        refused("Is a directory");
        std::fs::remove_dir(place.path()).unwrap();
        place.0.fifo("punctual.lock");
        refused("expected a regular file");
    }
}
