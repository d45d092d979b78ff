//! A guest at rest, saved once and gone on from any number of times.
//!
//! What a guest finds there follows from the setup alone, so that a run that saves it anew has the same records, to the
//! bit, as one that finds it. The file itself does not: QEMU writes more into it than guests see.

use super::machine::Setup;
use super::qemu::{Gone, Limits, Qemu};
use super::scratch::Scratch;
use super::{LabError, cache, hash};
use serde_json::json;
use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// How many are kept, 70 MB each; the one that was not used for the longest time goes first.
const KEPT: usize = 24;

/// The file with the saved state of this setup, made first if it is not there or not what was written.
pub(super) fn ready(setup: &Setup, limits: Limits<'_>) -> Result<PathBuf, LabError> {
    static CHECKED: Mutex<Option<HashMap<String, Arc<Mutex<bool>>>>> = Mutex::new(None);
    let key = setup.key();
    let is_checked = {
        let mut all = CHECKED.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(all.get_or_insert_default().entry(key.clone()).or_default())
    };
    // Two guests may want the same: the second waits for the first to make it.
    let mut is_checked = is_checked.lock().unwrap_or_else(PoisonError::into_inner);
    let dir = cache("snapshots")?;
    let file = dir.join(&key);
    if !*is_checked {
        if !is_whole(&file) {
            save(setup, &file, limits)?;
            forget_oldest(&dir);
        }
        *is_checked = true;
    }
    // Read last now.
    let _ = fs::File::open(&file).and_then(|file| file.set_modified(std::time::SystemTime::now()));
    Ok(file)
}

/// Where the hash of a saved state stands.
fn seal(file: &Path) -> PathBuf {
    file.with_extension("fnv1a")
}

/// Whether a file is there and what was written.
fn is_whole(file: &Path) -> bool {
    let sealed = fs::read_to_string(seal(file));
    fs::read(file).is_ok_and(|bytes| sealed.is_ok_and(|sealed| sealed == hash(&bytes)))
}

fn save(setup: &Setup, file: &Path, limits: Limits<'_>) -> Result<(), LabError> {
    let scratch = Scratch::new()?;
    let files = setup.files_below(&scratch.0, None)?;
    // A name that is cleared away when this process is gone.
    let new = file.with_file_name(format!(".{}.{}", setup.key(), std::process::id()));
    let _new = Removed(&new);
    let mut qemu = Qemu::start(setup.arguments(&files))?;
    let saved = at_rest_into(&mut qemu, &new, limits);
    saved.map_err(|gone| setup.failed(&files, gone))?;
    let bytes = fs::read(&new).map_err(|err| LabError::file(&new, err))?;
    let sealed = fs::write(seal(file), hash(&bytes));
    sealed.and_then(|()| fs::rename(&new, file)).map_err(|err| LabError::file(file, err))
}

/// Lets the guest come to rest, and saves it.
fn at_rest_into(qemu: &mut Qemu, file: &Path, limits: Limits<'_>) -> Result<(), Gone> {
    qemu.greet(limits)?;
    qemu.wait_for("GUEST_PANICKED", limits)?;
    qemu.ask("migrate-set-parameters", json!({ "max-bandwidth": 1_u64 << 40 }), limits)?;
    qemu.ask("migrate", json!({ "uri": format!("exec:cat > {}", quoted(file)) }), limits)?;
    loop {
        let told = qemu.ask("query-migrate", json!({}), limits)?;
        match told["status"].as_str() {
            Some("completed") => return Ok(()),
            Some("failed") => {
                let reason = told["error-desc"].as_str().unwrap_or("no reason");
                return Err(Gone::Refused(format!(
                    "the guest at rest cannot be saved to {}: {reason}",
                    file.display()
                )));
            }
            _ => std::thread::sleep(std::time::Duration::from_millis(10)),
        }
    }
}

/// A path as one word of sh(1).
pub(super) fn quoted(path: &Path) -> String {
    format!("'{}'", path.display().to_string().replace('\'', "'\\''"))
}

/// Removes what was not used for longest, beyond [`KEPT`].
fn forget_oldest(dir: &Path) {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let is_state = |entry: &fs::DirEntry| !entry.file_name().to_string_lossy().contains('.');
    let states = entries.filter(is_state);
    let mut states: Vec<_> =
        states.filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path()))).collect();
    states.sort();
    states.reverse();
    for (_, path) in states.into_iter().skip(KEPT) {
        let _ = fs::remove_file(seal(&path));
        let _ = fs::remove_file(path);
    }
}

/// A file that does not outlive this value.
struct Removed<'a>(&'a Path);

impl Drop for Removed<'_> {
    fn drop(&mut self) {
        let _ = fs::remove_file(self.0);
    }
}
