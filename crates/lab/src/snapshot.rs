//! Snapshots: a guest at rest, saved once and resumed any number of times.
//!
//! The state of a resumed guest depends on the setup alone, so a run that saves it anew has bit-identical records. The
//! files themselves differ: QEMU writes more into them than guests see.

use super::machine::Setup;
use super::memory::{self, Memory};
use super::qemu::{Limits, Qemu, QemuError};
use super::{LabError, directories};
use serde_json::json;
use std::collections::HashMap;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Number of snapshots kept, 100 MB each; the least recently used ones are removed.
const MAX_SNAPSHOTS: usize = 24;
/// Interval of checking whether another process has saved a snapshot.
const LOCK_POLL_INTERVAL: Duration = Duration::from_millis(20);

/// A snapshot: a directory of the cache.
#[derive(Debug)]
pub(super) struct Snapshot(PathBuf);

impl Snapshot {
    /// File of the guest's memory; guests change private copies of it.
    pub(super) fn memory(&self) -> PathBuf {
        self.0.join("memory")
    }

    /// File of the state of vCPU and devices.
    pub(super) fn devices(&self) -> PathBuf {
        self.0.join("devices")
    }

    /// File of the kernel's functions, once they were read.
    pub(super) fn symbols(&self) -> PathBuf {
        self.0.join("symbols")
    }

    fn seal(&self) -> PathBuf {
        self.0.join("hash")
    }

    /// Whether its content matches the hash.
    fn is_whole(&self) -> bool {
        let found = || self.hash(memory::hash_of(&self.memory())?);
        fs::read_to_string(self.seal()).is_ok_and(|sealed| found().is_ok_and(|hash| hash == sealed))
    }

    fn hash(&self, of_memory: u64) -> io::Result<String> {
        Ok(format!("{of_memory:016x}-{}", super::hash(&fs::read(self.devices())?)))
    }
}

/// Returns the snapshot of this setup, created if it is missing or damaged.
pub(super) fn ready(setup: &Setup, limits: Limits<'_>) -> Result<Snapshot, LabError> {
    static CHECKED: Mutex<Option<HashMap<String, Arc<Mutex<bool>>>>> = Mutex::new(None);
    let key = setup.key();
    let is_checked = {
        let mut all = CHECKED.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(all.get_or_insert_default().entry(key.clone()).or_default())
    };
    // Concurrent guests may need the same snapshot: the second one waits for the first one to create it.
    let mut is_checked = is_checked.lock().unwrap_or_else(PoisonError::into_inner);
    let dir = directories::cache("snapshots")?;
    let saved = Snapshot(dir.join(&key));
    if !*is_checked {
        if !saved.is_whole() {
            // So does another process.
            let _saving = lock(&dir, &key, limits.monitor.is_stopped);
            if !saved.is_whole() {
                save(setup, &dir, &saved, limits)?;
                remove_oldest(&dir);
            }
        }
        *is_checked = true;
    }
    // Marks it as the most recently used.
    let _ = fs::File::open(&saved.0).and_then(|dir| dir.set_modified(std::time::SystemTime::now()));
    Ok(saved)
}

/// Waits until no other process saves a snapshot whose key begins with the same digit, and locks their file until it is
/// dropped. `None` if the snapshot is no longer wanted, or on a file system without locks: then both save it.
fn lock(dir: &Path, key: &str, is_stopped: &dyn Fn() -> bool) -> Option<fs::File> {
    let path = dir.join(format!(".lock-{}", key.get(..1)?));
    let file = fs::OpenOptions::new().write(true).create(true).truncate(false).open(path).ok()?;
    loop {
        match file.try_lock() {
            Ok(()) => return Some(file),
            Err(fs::TryLockError::WouldBlock) if !is_stopped() => std::thread::sleep(LOCK_POLL_INTERVAL),
            Err(_) => return None,
        }
    }
}

fn save(setup: &Setup, dir: &Path, saved: &Snapshot, limits: Limits<'_>) -> Result<(), LabError> {
    (limits.monitor.say)(&format!("booting {} and saving a snapshot", setup.name()));
    let place = directories::for_guest()?;
    let files = setup.files_below(place.path(), None)?;
    let unfinished = directories::in_cache(dir, &setup.key())?;
    let new = Snapshot(unfinished.path().to_owned());
    let failed = |err: io::Error| LabError::file(&saved.0, format!("cannot save the snapshot: {err}"));
    let memory = Memory::new().map_err(failed)?;
    let paused = memory.arguments().into_iter().chain(["-S".into()]);
    let mut qemu = setup.start(&files, paused)?;
    let at_rest = at_rest_into(&mut qemu, &new.devices(), limits.booting(files.console()));
    at_rest.map_err(|gone| setup.not_at_rest(&files, gone))?;
    drop(qemu);
    let sealed = memory.write_to(&new.memory()).and_then(|hash| fs::write(new.seal(), new.hash(hash)?));
    sealed.map_err(failed)?;
    // Exists if it was damaged, or if another process has just saved it as well.
    let _ = fs::remove_dir_all(&saved.0);
    fs::rename(&new.0, &saved.0).map_err(failed)
}

/// Boots the guest to rest and saves it.
fn at_rest_into(qemu: &mut Qemu, file: &Path, limits: Limits<'_>) -> Result<(), QemuError> {
    qemu.negotiate(limits)?;
    keep_memory_in_file(qemu, limits)?;
    start(qemu, limits)?;
    save_when_paused(qemu, file, limits)
}

/// Waits until the guest has paused itself, for the first time.
pub(super) fn wait_for_pause(qemu: &mut Qemu, limits: Limits<'_>) -> Result<(), QemuError> {
    qemu.wait_for("GUEST_PANICKED", limits)?;
    // The event comes before the stop.
    qemu.wait_for("STOP", limits)
}

/// Waits until the guest pauses, and saves vCPU and devices.
pub(super) fn save_when_paused(qemu: &mut Qemu, file: &Path, limits: Limits<'_>) -> Result<(), QemuError> {
    wait_for_pause(qemu, limits)?;
    qemu.execute("migrate", json!({ "uri": format!("exec:cat > {}", quoted(file)) }), limits)?;
    loop {
        let migration = qemu.execute("query-migrate", json!({}), limits)?;
        match migration["status"].as_str() {
            Some("completed") => return Ok(()),
            Some("failed") => {
                let reason = migration["error-desc"].as_str().unwrap_or("unknown error");
                return Err(QemuError::Refused(format!("cannot save the snapshot to {}: {reason}", file.display())));
            }
            _ => std::thread::sleep(Duration::from_millis(2)),
        }
    }
}

/// QEMU arguments to wait for an incoming snapshot.
pub(super) fn arguments(saved: &Snapshot) -> impl Iterator<Item = OsString> {
    incoming(memory::of_file(&saved.memory()))
}

/// QEMU arguments to wait for an incoming guest with this memory.
pub(super) fn incoming(memory: [OsString; 4]) -> impl Iterator<Item = OsString> {
    memory.into_iter().chain(["-incoming".into(), "defer".into()])
}

/// Resumes the snapshot in a new QEMU, started with [`arguments`].
pub(super) fn resume(qemu: &mut Qemu, devices: &Path, limits: Limits<'_>) -> Result<(), QemuError> {
    enter(qemu, devices, limits)?;
    start(qemu, limits)
}

/// Loads vCPU and devices from a file, and leaves the guest paused.
pub(super) fn enter(qemu: &mut Qemu, devices: &Path, limits: Limits<'_>) -> Result<(), QemuError> {
    qemu.negotiate(limits)?;
    keep_memory_in_file(qemu, limits)?;
    announce_nothing(qemu, limits)?;
    qemu.execute("migrate-incoming", json!({ "uri": format!("exec:cat {}", quoted(devices)) }), limits)?;
    while qemu.execute("query-status", json!({}), limits)?["status"] == "inmigrate" {
        std::thread::sleep(Duration::from_millis(2));
    }
    Ok(())
}

/// Starts the paused guest. All external input has been given before: only the guest wakes QEMU's main loop.
pub(super) fn start(qemu: &mut Qemu, limits: Limits<'_>) -> Result<(), QemuError> {
    qemu.raise_main_loop_priority();
    qemu.go_on(limits)
}

/// Excludes the memory, which is already a file, from QEMU's migration.
fn keep_memory_in_file(qemu: &mut Qemu, limits: Limits<'_>) -> Result<(), QemuError> {
    let capability = json!({ "capability": "x-ignore-shared", "state": true });
    qemu.execute("migrate-set-capabilities", json!({ "capabilities": [capability] }), limits).map(drop)
}

/// Keeps a resumed guest's network cards from announcing themselves, cards or none: QEMU would set timers of the host's
/// clock for it, the last one 800 ms later, and each wakes the main loop. A wake-up just when a CPU halts makes virtual
/// time jump ([`super::one_cpu`]).
fn announce_nothing(qemu: &mut Qemu, limits: Limits<'_>) -> Result<(), QemuError> {
    qemu.execute("migrate-set-parameters", json!({ "announce-rounds": 0 }), limits).map(drop)
}

/// A path as one word of sh(1).
fn quoted(path: &Path) -> String {
    format!("'{}'", path.display().to_string().replace('\'', "'\\''"))
}

/// Removes the least recently used snapshots beyond [`MAX_SNAPSHOTS`].
fn remove_oldest(dir: &Path) {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let is_saved = |entry: &fs::DirEntry| !entry.file_name().to_string_lossy().starts_with('.');
    let used = |entry: fs::DirEntry| Some((entry.metadata().ok()?.modified().ok()?, entry.path()));
    let mut saved: Vec<_> = entries.filter(is_saved).filter_map(used).collect();
    saved.sort_by(|a, b| b.cmp(a));
    for (_, path) in saved.into_iter().skip(MAX_SNAPSHOTS) {
        // Snapshots of an earlier version were files.
        let _ = fs::remove_dir_all(&path).or_else(|_| fs::remove_file(&path));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_host::testing::Scratch;
    use std::cell::Cell;

    #[test]
    fn one_process_at_a_time_saves_a_snapshot_and_others_wait_until_they_are_stopped() {
        let cache = Scratch::make();
        let (asked, never) = (Cell::new(0), || unreachable!("nobody holds it"));
        let first = lock(cache.dir(), "3f00", &never).unwrap();
        let _other = lock(cache.dir(), "4000", &never).unwrap();
        let at_third_look = || {
            asked.set(asked.get() + 1);
            asked.get() == 3
        };
        assert!(lock(cache.dir(), "3f00", &at_third_look).is_none());
        assert_eq!(asked.get(), 3);
        drop(first);
        assert!(lock(cache.dir(), "3f00", &never).is_some());
        assert!(lock(&cache.path("nowhere"), "3f00", &never).is_none(), "it is saved without a lock");
        directories::remove_abandoned(cache.dir());
        remove_oldest(cache.dir());
        assert_eq!(cache.names(), [".lock-3", ".lock-4"]);
    }
}
