//! The package manager of Debian: queries and downloads, for this machine's architecture and for others.
//!
//! Packages of another architecture are looked up in lists of their own, in the cache of the lab, from the sources of
//! this machine: neither dpkg's configuration nor apt's lists change.

use super::{LabError, Monitor, directories, error_line};
use punctual_model::Architecture;
use punctual_sys::storage::bounded_memory_file;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

pub(super) const QUERY: &str = "apt-cache";
const GET: &str = "apt-get";

/// Age at which lists of another architecture are fetched again.
const LARGEST_AGE: Duration = Duration::from_secs(24 * 3600);
/// Limit of its stderr, bytes.
const STDERR_BYTES: u64 = 1 << 20;
/// Interval of checking for a stop request and of reporting progress.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// Directory of the lists, and the file whose age is theirs.
const LISTS: &str = "lists";
const UPDATED: &str = "updated";

/// Directory of the lists of another architecture; `None` for that of this machine, which apt keeps itself.
fn place(architecture: Architecture) -> Result<Option<PathBuf>, LabError> {
    let is_own = Architecture::OWN == Some(architecture);
    if is_own { Ok(None) } else { directories::cache(&format!("apt-{}", architecture.debian())).map(Some) }
}

/// Options of apt's programs for packages of another architecture, whose lists are in `place` (apt.conf(5)).
fn options(architecture: Architecture, place: &Path) -> Vec<String> {
    let (name, place) = (architecture.debian(), place.display());
    let options = [
        format!("APT::Architecture={name}"),
        format!("APT::Architectures={name}"),
        format!("Dir::State::lists={place}/{LISTS}/"),
        "Dir::State::status=/dev/null".to_owned(),
        format!("Dir::Cache={place}/"),
        "Acquire::Languages=none".to_owned(),
        "Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false".to_owned(),
    ];
    options.into_iter().flat_map(|option| ["-o".to_owned(), option]).collect()
}

/// The output of apt-cache. Where apt keeps no index (as in container images), each query takes half a second; an
/// index in the cache of the lab avoids that, and apt keeps it up to date.
pub(super) fn query<'a>(
    architecture: Architecture,
    question: impl IntoIterator<Item = &'a str>,
) -> Result<Output, LabError> {
    let mut command = Command::new(QUERY);
    command.args(question);
    if let Some(place) = place(architecture)? {
        command.args(options(architecture, &place));
    } else if let Some(place) =
        directories::cache("apt").ok().filter(|_| !Path::new("/var/cache/apt/pkgcache.bin").exists())
    {
        let place = format!("Dir::Cache={}/", place.display());
        command.args(["-o", &place, "-o", "Dir::Cache::pkgcache=pkgcache.bin", "-o", "Dir::Cache::srcpkgcache="]);
    }
    command.output().map_err(|err| LabError::program(QUERY, err))
}

/// Whether apt is installed.
pub(super) fn is_here() -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|directory| directory.join(QUERY).is_file())
}

/// Whether the lists of an architecture are up to date; those of this machine are the user's own matter.
pub(super) fn has_lists(architecture: Architecture) -> bool {
    let age = |place: &Path| fs::metadata(place.join(UPDATED)).ok()?.modified().ok()?.elapsed().ok();
    match place(architecture) {
        Ok(Some(place)) => age(&place).is_some_and(|age| age < LARGEST_AGE),
        Ok(None) => true,
        Err(_) => false,
    }
}

/// Fetches the lists of another architecture where they are missing or old. Old ones are good enough without network.
/// Errors: if there are none and they cannot be fetched.
pub(super) fn refresh(architecture: Architecture, monitor: Monitor<'_>) -> Result<(), LabError> {
    let Some(place) = place(architecture)?.filter(|_| !has_lists(architecture) && is_here()) else { return Ok(()) };
    let failed = |err: io::Error| LabError::file(&place, err);
    for directory in [LISTS, "archives"] {
        fs::create_dir_all(place.join(directory).join("partial")).map_err(failed)?;
    }
    (monitor.say)(&format!("fetching Debian's package lists of {}", architecture.debian()));
    match get(architecture, &["update"], &place, monitor, &mut || ()) {
        Ok(()) => fs::write(place.join(UPDATED), "").map_err(failed),
        Err(_) if place.join(UPDATED).exists() => {
            (monitor.say)("cannot fetch them; using those of an earlier time");
            Ok(())
        }
        Err(err) => Err(err),
    }
}

/// Runs apt-get in directory `dir`; `poll` is called meanwhile. Errors: with its message if it fails, or on a stop
/// request.
pub(super) fn get(
    architecture: Architecture,
    arguments: &[&str],
    dir: &Path,
    monitor: Monitor<'_>,
    poll: &mut dyn FnMut(),
) -> Result<(), LabError> {
    let failed = |err: io::Error| LabError::program(GET, err);
    // Not in `dir`, whose disk may be full.
    let stderr = bounded_memory_file("apt-get", STDERR_BYTES).map_err(failed)?;
    let mut command = Command::new(punctual_host::THIS_PROGRAM);
    command.args(["launch", "--parent", &std::process::id().to_string(), "--", GET, "-q"]).args(arguments);
    command.args(place(architecture)?.map(|place| options(architecture, &place)).unwrap_or_default());
    command.current_dir(dir).stdin(Stdio::null()).stdout(Stdio::null()).stderr(stderr.try_clone().map_err(failed)?);
    let mut child = command.spawn().map_err(failed)?;
    let status = loop {
        poll();
        if let Some(status) = child.try_wait().map_err(failed)? {
            break status;
        }
        if (monitor.is_stopped)() {
            child.kill().and_then(|()| child.wait()).map_err(failed)?;
            return Err(LabError::program(GET, "interrupted"));
        }
        std::thread::sleep(POLL_INTERVAL);
    };
    let message = punctual_host::written(&stderr).map_err(failed)?;
    if status.success() { Ok(()) } else { Err(LabError::program(GET, error_line(&message))) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_another_architecture_are_apart_from_those_of_this_machine() {
        let words = options(Architecture::Aarch64, Path::new("/c/apt-arm64"));
        for expected in [
            "APT::Architecture=arm64",
            "Dir::State::lists=/c/apt-arm64/lists/",
            "Dir::State::status=/dev/null",
            "Dir::Cache=/c/apt-arm64/",
        ] {
            assert!(words.iter().any(|word| word == expected), "{expected}: {words:?}");
        }
        if let Some(own) = Architecture::OWN {
            assert_eq!(place(own).unwrap(), None);
            assert!(has_lists(own));
        }
    }
}
