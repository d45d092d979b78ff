//! Kernels named by plans: download, preparation for booting, and cache.

use super::image::LARGEST_KERNEL;
use super::packages::{self, Kind};
use super::{LabError, Monitor, apt, config, devices, directories, fetch, hash, image, modules, regular_file, unpack};
use fetch::Fetching;
use punctual_model::{Architecture, ConfigSummary, KernelSource, LabKernel};
use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// A bootable kernel.
#[derive(Debug, Clone)]
pub struct BootableKernel {
    /// Name of its package, or its file.
    pub name: String,
    /// The file that QEMU boots.
    pub file: PathBuf,
    /// Hash of the kernel before it is unpacked: 16 hexadecimal digits (XXH3).
    pub(crate) hash: String,
    /// The architecture of its guests.
    pub(crate) architecture: Architecture,
    /// Its build configuration; `None` if unknown.
    pub(crate) config: Option<ConfigSummary>,
}

/// The kernel of `source`, downloaded on a cache miss. Repeated calls in one process return the same kernel. Errors: if
/// there is none, or it cannot be downloaded or unpacked.
pub(super) fn ready(source: &KernelSource, monitor: Monitor<'_>) -> Result<BootableKernel, LabError> {
    let mut is_said = false;
    ready_observed(source, monitor, &mut |fetching| {
        if !std::mem::replace(&mut is_said, true) {
            (monitor.say)(&format!("fetching {}", fetching.package));
        }
    })
}

/// The error if the package manager knows no kernel for `source`. Kernel files are checked later, when they are read,
/// packages of another architecture when their lists have been fetched.
pub(super) fn why_none(source: &KernelSource) -> Option<String> {
    let kind = kind_of(source)?.ok().filter(|kind| apt::has_lists(kind.architecture))?;
    newest(&kind).err().map(|err| err.to_string())
}

/// The architecture of `source`; `None` for a file that is neither kernel nor package; reading it fails.
pub(super) fn architecture_of(source: &KernelSource) -> Option<Architecture> {
    static CACHE: Mutex<BTreeMap<String, Option<Architecture>>> = Mutex::new(BTreeMap::new());
    match source {
        KernelSource::Debian { architecture, .. } => architecture.or(Architecture::OWN),
        KernelSource::File(path) => {
            let mut found = CACHE.lock().unwrap_or_else(PoisonError::into_inner);
            *found.entry(path.clone()).or_insert_with(|| match path.ends_with(".deb") {
                true => unpack::architecture_of(Path::new(path)),
                false => image::architecture_of(&regular_file::read(Path::new(path), LARGEST_KERNEL).ok()?),
            })
        }
    }
}

/// The kind of a package; `None` for a file.
fn kind_of(source: &KernelSource) -> Option<Result<Kind, LabError>> {
    let KernelSource::Debian { version, flavour, architecture } = source else { return None };
    let none = || LabError::program(&source.to_string(), "name its architecture, like debian:6.1-arm64");
    let architecture = architecture.or(Architecture::OWN).ok_or_else(none);
    Some(architecture.map(|architecture| Kind { series: version.clone(), flavour: *flavour, architecture }))
}

/// The newest package of a kind. The package manager is queried once for each.
fn newest(kind: &Kind) -> Result<String, LabError> {
    static CACHE: Mutex<BTreeMap<Kind, Result<String, LabError>>> = Mutex::new(BTreeMap::new());
    let mut found = CACHE.lock().unwrap_or_else(PoisonError::into_inner);
    let query = || packages::newest(kind, &directories::names_in(&directories::kernel_cache()));
    found.entry(kind.clone()).or_insert_with(query).clone()
}

/// The newest package of a Debian kernel, after its lists were fetched where necessary; `None` for a file.
fn package_of(source: &KernelSource, monitor: Monitor<'_>) -> Result<Option<String>, LabError> {
    let Some(kind) = kind_of(source).transpose()? else { return Ok(None) };
    // Without lists a cached kernel will do.
    match (apt::refresh(kind.architecture, monitor), newest(&kind)) {
        (_, Ok(package)) => Ok(Some(package)),
        (Err(err), _) | (Ok(()), Err(err)) => Err(err),
    }
}

/// The kernels that are ready.
static READY: Mutex<Option<HashMap<KernelSource, BootableKernel>>> = Mutex::new(None);

/// Lets the next call look for a kernel again.
pub(super) fn forget(source: &KernelSource) {
    let mut found = READY.lock().unwrap_or_else(PoisonError::into_inner);
    found.iter_mut().for_each(|found| drop(found.remove(source)));
}

/// The cache directory of a kernel from a package that is ready.
pub(super) fn cached_dir(source: &KernelSource, monitor: Monitor<'_>) -> Result<PathBuf, LabError> {
    let cache = directories::cache("kernels")?;
    match package_of(source, monitor)? {
        Some(package) => Ok(cache.join(package)),
        None => fetch::dir_of_archive(Path::new(&source.to_string()), &cache),
    }
}

/// Like [`ready`]; `observe` receives the progress of a download.
pub fn ready_observed(
    source: &KernelSource,
    monitor: Monitor<'_>,
    observe: &mut dyn FnMut(Fetching<'_>),
) -> Result<BootableKernel, LabError> {
    let mut found = READY.lock().unwrap_or_else(PoisonError::into_inner);
    let found = found.get_or_insert_default();
    if let Some(ready) = found.get(source) {
        return Ok(ready.clone());
    }
    let cache = directories::cache("kernels")?;
    let (name, kernel) = as_packaged(source, monitor, observe)?;
    let mut ready = unpacked(name, &kernel, &cache, monitor)?;
    let dir = kernel.parent().filter(|dir| dir.parent() == Some(&cache));
    ready.config = config::summary(&ready.name, dir, &kernel, &ready.file);
    found.insert(source.clone(), ready.clone());
    Ok(ready)
}

/// The name of a kernel's package or file, and the kernel as it is in there; it is downloaded on a cache miss.
pub(super) fn as_packaged(
    source: &KernelSource,
    monitor: Monitor<'_>,
    observe: &mut dyn FnMut(Fetching<'_>),
) -> Result<(String, PathBuf), LabError> {
    let cache = directories::cache("kernels")?;
    Ok(match (source, package_of(source, monitor)?) {
        (_, Some(package)) => {
            let kernel = fetch::from_package(&package, &cache, monitor, observe)?;
            (package, kernel)
        }
        (KernelSource::File(path), None) if path.ends_with(".deb") => {
            (path.clone(), fetch::from_archive(Path::new(path), &cache, monitor)?)
        }
        (_, None) => (source.to_string(), PathBuf::from(source.to_string())),
    })
}

/// The modules with these names for `kernel`, uncompressed. Errors: if modules are missing that cannot be built in, and
/// the plan does not provide modules either.
pub(super) fn modules(
    kernel: &LabKernel,
    names: &[&str],
    monitor: Monitor<'_>,
) -> Result<Vec<(String, Vec<u8>)>, LabError> {
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let found = match (&kernel.source, package_of(&kernel.source, monitor)?) {
        (_, Some(package)) => {
            let cache = directories::cache("kernels")?;
            let fetch = || fetch::from_package(&package, &cache, monitor, &mut |_| ());
            kept_modules(&cache.join(&package), names, monitor, fetch)?
        }
        (KernelSource::File(path), None) if path.ends_with(".deb") => {
            let (path, cache) = (Path::new(path), directories::cache("kernels")?);
            let fetch = || fetch::from_archive(path, &cache, monitor);
            kept_modules(&fetch::dir_of_archive(path, &cache)?, names, monitor, fetch)?
        }
        (source, None) => installed_modules(Path::new(&source.to_string()), names),
    };
    let is_missing = |name: &&&str| devices::is_required(name) && !found.iter().any(|(known, _)| known == **name);
    let missing: Vec<&str> = names.iter().filter(is_missing).copied().collect();
    if !missing.is_empty() && kernel.modules.is_none() {
        let reason =
            format!("needs its modules {}; name the directory that holds them: modules=/path", missing.join(" and "));
        return Err(LabError::program(&kernel.source.to_string(), reason));
    }
    Ok(found)
}

/// The modules cached with the kernel in `dir`; if they are missing, `fetch` builds the entry again.
fn kept_modules(
    dir: &Path,
    names: &[&str],
    monitor: Monitor<'_>,
    fetch: impl Fn() -> Result<PathBuf, LabError>,
) -> Result<Vec<(String, Vec<u8>)>, LabError> {
    // Serialized: another guest may need the same modules.
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(modules) = fetch::modules_in(dir, names) {
        return Ok(modules);
    }
    if dir.exists() {
        (monitor.say)(&format!("{} has no modules, or damaged ones; building it again", dir.display()));
        fs::remove_dir_all(dir).map_err(|err| LabError::file(dir, err))?;
    }
    fetch()?;
    Ok(fetch::modules_in(dir, names).unwrap_or_default())
}

/// The modules of an installed kernel `boot/vmlinuz-RELEASE`, found in `lib/modules/RELEASE` below the same root.
fn installed_modules(kernel: &Path, names: &[&str]) -> Vec<(String, Vec<u8>)> {
    let release = kernel.file_name().and_then(|name| name.to_str()).and_then(|name| name.strip_prefix("vmlinuz-"));
    let root = kernel.parent().and_then(Path::parent);
    let Some((root, release)) = root.zip(release) else { return Vec::new() };
    modules::named(&root.join("lib/modules").join(release), names)
}

/// The kernel as QEMU boots it: unpacked if possible, and cached under a name derived from its content.
fn unpacked(name: String, kernel: &Path, cache: &Path, monitor: Monitor<'_>) -> Result<BootableKernel, LabError> {
    let whole = regular_file::read(kernel, LARGEST_KERNEL)?;
    let (of_whole, no_kernel) = (hash(&whole), || image::not_a_kernel_here(kernel, &whole));
    let architecture = image::architecture_of(&whole).ok_or_else(no_kernel)?;
    let begin = format!("vmlinux-{of_whole}-");
    for old in directories::names_in(cache) {
        let Some(content) = old.strip_prefix(&begin) else { continue };
        let file = cache.join(&old);
        let is_intact = fs::read(&file).is_ok_and(|bytes| hash(&bytes) == content);
        if is_intact {
            return Ok(BootableKernel { name, file, hash: of_whole, architecture, config: None });
        }
        (monitor.say)(&format!("{} is damaged; building it again", file.display()));
        fs::remove_file(&file).map_err(|err| LabError::file(&file, err))?;
    }
    let Some(image) = image::uncompressed(kernel, &whole)? else {
        return Ok(BootableKernel { name, file: kernel.to_owned(), hash: of_whole, architecture, config: None });
    };
    let kept = cache.join(format!("{begin}{}", hash(&image)));
    let unfinished = directories::in_cache(cache, &format!("vmlinux-{of_whole}"))?;
    let new = unfinished.path().join("vmlinux");
    let written = directories::write_new(&new, &image).and_then(|()| fs::rename(&new, &kept));
    written.map_err(|err| LabError::file(&kept, format!("{err}; set XDG_CACHE_HOME to a directory with room")))?;
    Ok(BootableKernel { name, file: kept, hash: of_whole, architecture, config: None })
}
