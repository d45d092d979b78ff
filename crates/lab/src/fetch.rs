//! Kernels out of packages: fetched without being installed, checked, and kept in the cache.

use super::packages::{self, Package};
use super::unpack::unpack;
use super::{LabError, Monitor, directories, hash, last_words, preemption_models, regular_file};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// How far fetching a package is.
#[derive(Debug, Clone, Copy)]
pub struct Fetching<'a> {
    /// Which.
    pub package: &'a str,
    /// What is here, bytes.
    pub bytes: u64,
    /// What will be, bytes; `None` when the package manager does not say.
    pub of_bytes: Option<u64>,
}

/// What is kept beside a kernel of the cache.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct CachedKernel {
    /// The package, or its file.
    pub(super) package: String,
    /// Its version; `None` when only the file is known.
    pub(super) version: Option<String>,
    /// SHA-256 of the package, which was checked when it was fetched.
    pub(super) package_sha256: String,
    /// Its size, bytes.
    pub(super) package_bytes: u64,
    /// SHA-256 of the kernel in it, which is checked whenever it is used.
    pub(super) kernel_sha256: String,
    /// Whether it is PREEMPT_RT; `None` when the package does not say.
    pub(super) preempt_rt: Option<bool>,
    /// What its argument `preempt=` takes; empty when it takes none.
    pub(super) preempt: Vec<String>,
    /// Of the modules for devices of the lab those that the package has, each with the hash of its content; `None` when it
    /// was kept without.
    #[serde(default)]
    pub(super) modules: Option<BTreeMap<String, String>>,
}

const KERNEL: &str = "vmlinuz";
const KEPT: &str = "kept.json";
/// Where modules are kept beside their kernel.
const KEPT_MODULES: &str = "modules";

/// What the cache keeps in directory `dir`; `None` when that is no kernel.
pub(super) fn kept_in(dir: &Path) -> Option<CachedKernel> {
    serde_json::from_slice(&fs::read(dir.join(KEPT)).ok()?).ok().filter(|_| dir.join(KERNEL).is_file())
}

/// The kernel of directory `dir`.
pub(super) fn kernel_in(dir: &Path) -> PathBuf {
    dir.join(KERNEL)
}

/// The kernel of directory `dir`, if it is the one that was put there; `monitor` is told if it is not.
fn intact_in(dir: &Path, monitor: Monitor<'_>) -> Result<Option<PathBuf>, LabError> {
    let kernel = kernel_in(dir);
    let found = kept_in(dir).map(|kept| Ok(sha256(&kernel)? == kept.kernel_sha256)).transpose()?;
    if found == Some(true) {
        return Ok(Some(kernel));
    }
    if dir.exists() {
        (monitor.say)(&format!("{} is damaged, or was kept without a checksum; it is made again", dir.display()));
        fs::remove_dir_all(dir).map_err(|err| LabError::file(dir, err))?;
    }
    Ok(None)
}

/// The kernel of a package, fetched by the package manager, which checks its signature, if the cache does not hold it.
pub(super) fn from_package(
    package: &str,
    cache: &Path,
    monitor: Monitor<'_>,
    observe: &mut dyn FnMut(Fetching<'_>),
) -> Result<PathBuf, LabError> {
    let dir = cache.join(package);
    if let Some(kernel) = intact_in(&dir, monitor)? {
        return Ok(kernel);
    }
    let about = packages::described(&[package]).into_iter().find(|about| about.name == package);
    let about = about.unwrap_or_else(|| Package { name: package.to_owned(), ..Package::default() });
    let place = directories::in_cache(cache, package)?;
    download(&about, place.path(), monitor, observe)?;
    let archive = entry_that(place.path(), |name| name.ends_with(".deb"))?;
    let found = sha256(&archive)?;
    if let Some(promised) = about.sha256.as_ref().filter(|promised| **promised != found) {
        let reason = format!("what was fetched has the checksum {found}, and {promised} was promised; try again");
        return Err(LabError::program("apt-get", format!("{package}: {reason}")));
    }
    keep(&about, &archive, found, &dir, monitor)
}

/// The modules with these names that the kernel in `dir` of the cache has; `None` when they were not kept with it, or are
/// no more what they were: then it has to be made again.
pub(super) fn modules_in(dir: &Path, names: &[&str]) -> Option<Vec<(String, Vec<u8>)>> {
    let kept = kept_in(dir)?.modules?;
    let read = |(name, sum): (&String, &String)| {
        let content = fs::read(dir.join(KEPT_MODULES).join(name)).ok()?;
        (hash(&content) == *sum).then(|| (name.clone(), content))
    };
    kept.iter().filter(|(name, _)| names.contains(&name.as_str())).map(read).collect()
}

/// Where the kernel of a package that is a file is kept.
pub(super) fn dir_of_archive(archive: &Path, cache: &Path) -> Result<PathBuf, LabError> {
    Ok(cache.join(format!("deb-{}", &sha256(archive)?[..16])))
}

/// The kernel in a package that is a file, unpacked if the cache does not hold it.
pub(super) fn from_archive(archive: &Path, cache: &Path, monitor: Monitor<'_>) -> Result<PathBuf, LabError> {
    let sum = sha256(archive)?;
    let dir = cache.join(format!("deb-{}", &sum[..16]));
    if let Some(kernel) = intact_in(&dir, monitor)? {
        return Ok(kernel);
    }
    let about = Package { name: archive.display().to_string(), ..Package::default() };
    keep(&about, archive, sum, &dir, monitor)
}

/// Takes the kernel out of a package and puts it into the cache as `dir`. Another process may do the same: each works in
/// a directory of its own, and the first to be done gives it its name.
fn keep(about: &Package, archive: &Path, sum: String, dir: &Path, monitor: Monitor<'_>) -> Result<PathBuf, LabError> {
    let unpacked = unpack(archive, monitor)?;
    let failed = |err: io::Error| LabError::file(dir, err);
    let (cache, name) = (dir.parent().unwrap_or(dir), dir.file_name().unwrap_or_default().to_string_lossy());
    let place = directories::in_cache(cache, &name)?;
    let kept = place.path().join("kept");
    fs::create_dir_all(kept.join(KEPT_MODULES)).map_err(failed)?;
    directories::write_new(&kernel_in(&kept), &unpacked.kernel).map_err(failed)?;
    let mut kept_modules = BTreeMap::new();
    for (name, content) in unpacked.modules {
        // A package has one of each name; of another one the first counts.
        if kept_modules.contains_key(&name) {
            continue;
        }
        directories::write_new(&kept.join(KEPT_MODULES).join(&name), &content).map_err(failed)?;
        kept_modules.insert(name, hash(&content));
    }
    let modes = unpacked.config.as_deref().map(preemption_models::of_config);
    let note = CachedKernel {
        package: about.name.clone(),
        version: about.version.clone(),
        package_sha256: sum,
        package_bytes: fs::metadata(archive).map_err(|err| LabError::file(archive, err))?.len(),
        kernel_sha256: sha256(&kernel_in(&kept))?,
        preempt_rt: modes.as_ref().map(|modes| modes.is_rt),
        preempt: modes.map(|modes| modes.arguments).unwrap_or_default(),
        modules: Some(kept_modules),
    };
    let note = serde_json::to_vec_pretty(&note).map_err(io::Error::from).map_err(failed)?;
    directories::write_new(&kept.join(KEPT), &note).map_err(failed)?;
    match fs::rename(&kept, dir) {
        Err(err) if kept_in(dir).is_none() => Err(failed(err)),
        _ => Ok(kernel_in(dir)),
    }
}

/// Has the package manager fetch a package into `dir`.
fn download(
    about: &Package,
    dir: &Path,
    monitor: Monitor<'_>,
    observe: &mut dyn FnMut(Fetching<'_>),
) -> Result<(), LabError> {
    const POLL_INTERVAL: Duration = Duration::from_millis(100);
    const PROGRAM: &str = "apt-get";
    let failed = |err: io::Error| LabError::program(PROGRAM, err);
    let said = dir.join("said");
    let stderr = fs::File::create(&said).map_err(|err| LabError::file(&said, err))?;
    let mut command = Command::new(host::THIS_PROGRAM);
    command.args(["launch", "--parent", &std::process::id().to_string(), "--", PROGRAM, "-q", "download", &about.name]);
    command.current_dir(dir).stdin(Stdio::null()).stdout(Stdio::null()).stderr(stderr);
    let mut child = command.spawn().map_err(failed)?;
    let status = loop {
        let entries = fs::read_dir(dir).into_iter().flatten().flatten();
        let packages = entries.filter(|entry| entry.path().extension().is_some_and(|end| end == "deb"));
        let bytes = packages.filter_map(|entry| Some(entry.metadata().ok()?.len())).sum();
        observe(Fetching { package: &about.name, bytes, of_bytes: about.bytes });
        if let Some(status) = child.try_wait().map_err(failed)? {
            break status;
        }
        if (monitor.is_stopped)() {
            child.kill().and_then(|()| child.wait()).map_err(failed)?;
            return Err(LabError::program(PROGRAM, "was stopped"));
        }
        std::thread::sleep(POLL_INTERVAL);
    };
    let said = fs::read(&said).unwrap_or_default();
    if status.success() { Ok(()) } else { Err(LabError::program(PROGRAM, last_words(&said))) }
}

/// The largest package that is looked at, bytes. Debian's with debug information have 1 GB.
const LARGEST_PACKAGE: u64 = 4 << 30;

/// SHA-256 of a regular file, 64 hexadecimal digits.
fn sha256(path: &Path) -> Result<String, LabError> {
    const PROGRAM: &str = "sha256sum";
    let file = regular_file::open(path, LARGEST_PACKAGE)?;
    let output = Command::new(PROGRAM).stdin(file).output().map_err(|err| LabError::program(PROGRAM, err))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let sum = text.get(..64).filter(|sum| sum.bytes().all(|byte| byte.is_ascii_hexdigit()));
    sum.map(str::to_owned).ok_or_else(|| LabError::file(path, last_words(&output.stderr)))
}

fn entry_that(dir: &Path, is_it: impl Fn(&str) -> bool) -> Result<PathBuf, LabError> {
    let entries = fs::read_dir(dir).map_err(|err| LabError::file(dir, err))?;
    let found = entries.flatten().find(|entry| entry.file_name().to_str().is_some_and(&is_it));
    found.map(|entry| entry.path()).ok_or_else(|| LabError::file(dir, "holds no such file"))
}
