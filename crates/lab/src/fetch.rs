//! Kernels from packages: downloaded without being installed, verified, and cached.

use super::packages::{self, Package};
use super::unpack::unpack;
use super::{LabError, Monitor, apt, devices, directories, hash, preemption_models, regular_file};
use punctual_model::LARGEST_CONFIG;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Progress of downloading a package.
#[derive(Debug, Clone, Copy)]
pub struct Fetching<'a> {
    /// Name of the package.
    pub package: &'a str,
    /// Downloaded bytes.
    pub bytes: u64,
    /// Total bytes; `None` when the package manager does not report them.
    pub of_bytes: Option<u64>,
}

/// Metadata of a cached kernel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct CachedKernel {
    /// The package, or its file.
    pub(super) package: String,
    /// Its version; `None` when only the file is known.
    pub(super) version: Option<String>,
    /// SHA-256 of the package, verified when it was downloaded.
    pub(super) package_sha256: String,
    /// Size of the package, bytes.
    pub(super) package_bytes: u64,
    /// SHA-256 of the kernel, verified before each use.
    pub(super) kernel_sha256: String,
    /// Whether it is PREEMPT_RT; `None` when the package has no configuration.
    pub(super) preempt_rt: Option<bool>,
    /// Values of its argument `preempt=`; empty when it has none.
    pub(super) preempt: Vec<String>,
    /// Modules for devices of the lab that the package contains, each with the hash of its content; `None` when it was
    /// cached without modules.
    #[serde(default)]
    pub(super) modules: Option<BTreeMap<String, String>>,
    /// Modules for devices of the lab that the package does not contain.
    #[serde(default)]
    pub(super) absent_modules: Vec<String>,
    /// Hash of its configuration, empty when the package has none; `None` when it was cached without looking.
    #[serde(default)]
    pub(super) config: Option<String>,
}

const KERNEL: &str = "vmlinuz";
const METADATA: &str = "kept.json";
const CONFIG: &str = "config";
/// Subdirectory of the modules of a cached kernel.
const MODULES_DIRECTORY: &str = "modules";

/// The metadata of the cached kernel in directory `dir`; `None` when there is no kernel.
pub(super) fn kept_in(dir: &Path) -> Option<CachedKernel> {
    serde_json::from_slice(&fs::read(dir.join(METADATA)).ok()?).ok().filter(|_| dir.join(KERNEL).is_file())
}

/// The kernel of directory `dir`.
pub(super) fn kernel_in(dir: &Path) -> PathBuf {
    dir.join(KERNEL)
}

/// The kernel of directory `dir` if its checksum matches; a damaged one is removed and reported to `monitor`.
fn intact_in(dir: &Path, monitor: Monitor<'_>) -> Result<Option<PathBuf>, LabError> {
    let kernel = kernel_in(dir);
    let found = kept_in(dir).map(|kept| Ok(sha256(&kernel)? == kept.kernel_sha256)).transpose()?;
    if found == Some(true) {
        return Ok(Some(kernel));
    }
    if dir.exists() {
        (monitor.say)(&format!("{} is damaged or has no checksum; building it again", dir.display()));
        fs::remove_dir_all(dir).map_err(|err| LabError::file(dir, err))?;
    }
    Ok(None)
}

/// The kernel of a package; on a cache miss the package manager downloads it and verifies its signature.
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
        let reason = format!("checksum mismatch: expected {promised}, got {found}; try again");
        return Err(LabError::program("apt-get", format!("{package}: {reason}")));
    }
    keep(&about, &archive, found, &dir, monitor)
}

/// The modules with these names that were cached with the kernel in `dir`; `None` when they are missing or damaged, and
/// the entry has to be built again.
pub(super) fn modules_in(dir: &Path, names: &[&str]) -> Option<Vec<(String, Vec<u8>)>> {
    let CachedKernel { modules, absent_modules, .. } = kept_in(dir)?;
    let kept = modules?;
    // Cached before the lab had this device.
    if !names.iter().all(|name| kept.contains_key(*name) || absent_modules.iter().any(|absent| absent == name)) {
        return None;
    }
    let read = |(name, sum): (&String, &String)| {
        let content = fs::read(dir.join(MODULES_DIRECTORY).join(name)).ok()?;
        (hash(&content) == *sum).then(|| (name.clone(), content))
    };
    kept.iter().filter(|(name, _)| names.contains(&name.as_str())).map(read).collect()
}

/// Configuration that was cached with a kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum CachedConfig {
    /// Its file and its text.
    Known(PathBuf, String),
    /// The package has none.
    Absent,
    /// It was not looked for, or is damaged: the entry has to be built again.
    NotKept,
}

/// The configuration of the cached kernel in directory `dir`.
pub(super) fn config_in(dir: &Path) -> CachedConfig {
    let Some(sum) = kept_in(dir).and_then(|kept| kept.config) else { return CachedConfig::NotKept };
    if sum.is_empty() {
        return CachedConfig::Absent;
    }
    let file = dir.join(CONFIG);
    match regular_file::read(&file, LARGEST_CONFIG).ok().filter(|bytes| hash(bytes) == sum).map(String::from_utf8) {
        Some(Ok(text)) => CachedConfig::Known(file, text),
        _ => CachedConfig::NotKept,
    }
}

/// The cache directory for the kernel of a package file.
pub(super) fn dir_of_archive(archive: &Path, cache: &Path) -> Result<PathBuf, LabError> {
    Ok(cache.join(format!("deb-{}", &sha256(archive)?[..16])))
}

/// The kernel of a package file, unpacked on a cache miss.
pub(super) fn from_archive(archive: &Path, cache: &Path, monitor: Monitor<'_>) -> Result<PathBuf, LabError> {
    let sum = sha256(archive)?;
    let dir = cache.join(format!("deb-{}", &sum[..16]));
    if let Some(kernel) = intact_in(&dir, monitor)? {
        return Ok(kernel);
    }
    let about = Package { name: archive.display().to_string(), ..Package::default() };
    keep(&about, archive, sum, &dir, monitor)
}

/// Extracts the kernel of a package into the cache as `dir`. Another process may do the same concurrently: each works
/// in its own directory, and the first one to finish renames it.
fn keep(about: &Package, archive: &Path, sum: String, dir: &Path, monitor: Monitor<'_>) -> Result<PathBuf, LabError> {
    let unpacked = unpack(archive, monitor)?;
    let failed = |err: io::Error| LabError::file(dir, err);
    let (cache, name) = (dir.parent().unwrap_or(dir), dir.file_name().unwrap_or_default().to_string_lossy());
    let place = directories::in_cache(cache, &name)?;
    let kept = place.path().join("kept");
    fs::create_dir_all(kept.join(MODULES_DIRECTORY)).map_err(failed)?;
    directories::write_new(&kernel_in(&kept), &unpacked.kernel).map_err(failed)?;
    let mut kept_modules = BTreeMap::new();
    for (name, content) in unpacked.modules {
        // A package has one module of each name; of duplicates the first one is used.
        if kept_modules.contains_key(&name) {
            continue;
        }
        directories::write_new(&kept.join(MODULES_DIRECTORY).join(&name), &content).map_err(failed)?;
        kept_modules.insert(name, hash(&content));
    }
    if let Some(config) = &unpacked.config {
        directories::write_new(&kept.join(CONFIG), config.as_bytes()).map_err(failed)?;
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
        absent_modules: devices::all_modules()
            .filter(|name| !kept_modules.contains_key(*name))
            .map(str::to_owned)
            .collect(),
        modules: Some(kept_modules),
        config: Some(unpacked.config.as_ref().map(|config| hash(config.as_bytes())).unwrap_or_default()),
    };
    let note = serde_json::to_vec_pretty(&note).map_err(io::Error::from).map_err(failed)?;
    directories::write_new(&kept.join(METADATA), &note).map_err(failed)?;
    match fs::rename(&kept, dir) {
        Err(err) if kept_in(dir).is_none() => Err(failed(err)),
        _ => Ok(kernel_in(dir)),
    }
}

/// Downloads a package into `dir` with the package manager.
fn download(
    about: &Package,
    dir: &Path,
    monitor: Monitor<'_>,
    observe: &mut dyn FnMut(Fetching<'_>),
) -> Result<(), LabError> {
    let architecture = packages::architecture_of(&about.name);
    apt::get(architecture, &["download", &about.name], dir, monitor, &mut || {
        let entries = fs::read_dir(dir).into_iter().flatten().flatten();
        let packages = entries.filter(|entry| entry.path().extension().is_some_and(|end| end == "deb"));
        let bytes = packages.filter_map(|entry| Some(entry.metadata().ok()?.len())).sum();
        observe(Fetching { package: &about.name, bytes, of_bytes: about.bytes });
    })
}

/// Size limit of packages, bytes. Debian's packages with debug information have 1 GB.
const LARGEST_PACKAGE: u64 = 4 << 30;

/// SHA-256 of a regular file, 64 hexadecimal digits.
fn sha256(path: &Path) -> Result<String, LabError> {
    let file = regular_file::open(path, LARGEST_PACKAGE)?;
    punctual_host::sha256(file).map_err(|err| LabError::file(path, err))
}

fn entry_that(dir: &Path, is_it: impl Fn(&str) -> bool) -> Result<PathBuf, LabError> {
    let entries = fs::read_dir(dir).map_err(|err| LabError::file(dir, err))?;
    let found = entries.flatten().find(|entry| entry.file_name().to_str().is_some_and(&is_it));
    found.map(|entry| entry.path()).ok_or_else(|| LabError::file(dir, "missing file"))
}
