//! Kernels named by plans: download, preparation for booting, and cache.

use super::{LabError, Monitor, directories, fetch, hash, image, modules, packages, regular_file};
use fetch::Fetching;
use model::{Flavour, KernelSource, LabKernel};
use std::collections::HashMap;
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
}

/// The kernel of `source`, downloaded on a cache miss. Repeated calls in one process return the same kernel.
///
/// # Errors
/// If there is none, or it cannot be downloaded or unpacked.
pub(super) fn ready(source: &KernelSource, monitor: Monitor<'_>) -> Result<BootableKernel, LabError> {
    let mut is_said = false;
    ready_observed(source, monitor, &mut |fetching| {
        if !std::mem::replace(&mut is_said, true) {
            (monitor.say)(&format!("fetching {}", fetching.package));
        }
    })
}

/// The error if the package manager knows no kernel for `source`. Kernel files are checked later, when they are read.
pub(super) fn why_none(source: &KernelSource) -> Option<String> {
    let KernelSource::Debian { version, flavour } = source else { return None };
    newest(version, *flavour).err().map(|err| err.to_string())
}

/// The newest package of a version and a flavor. The package manager is queried once for each.
fn newest(version: &str, flavour: Flavour) -> Result<String, LabError> {
    type NewestPackages = HashMap<(String, Flavour), Result<String, LabError>>;
    static CACHE: Mutex<Option<NewestPackages>> = Mutex::new(None);
    let mut found = CACHE.lock().unwrap_or_else(PoisonError::into_inner);
    let entry = found.get_or_insert_default().entry((version.to_owned(), flavour));
    entry
        .or_insert_with(|| {
            packages::newest(version, flavour.suffix(), &directories::names_in(&directories::kernel_cache()))
        })
        .clone()
}

/// Like [`ready`]; `observe` receives the progress of a download.
pub fn ready_observed(
    source: &KernelSource,
    monitor: Monitor<'_>,
    observe: &mut dyn FnMut(Fetching<'_>),
) -> Result<BootableKernel, LabError> {
    static CACHE: Mutex<Option<HashMap<KernelSource, BootableKernel>>> = Mutex::new(None);
    let mut found = CACHE.lock().unwrap_or_else(PoisonError::into_inner);
    let found = found.get_or_insert_default();
    if let Some(ready) = found.get(source) {
        return Ok(ready.clone());
    }
    let cache = directories::cache("kernels")?;
    let (name, kernel) = match source {
        KernelSource::File(path) if path.ends_with(".deb") => {
            (path.clone(), fetch::from_archive(Path::new(path), &cache, monitor)?)
        }
        KernelSource::File(path) => (path.clone(), PathBuf::from(path)),
        KernelSource::Debian { version, flavour } => {
            let package = newest(version, *flavour)?;
            let kernel = fetch::from_package(&package, &cache, monitor, observe)?;
            (package, kernel)
        }
    };
    let ready = unpacked(name, &kernel, &cache, monitor)?;
    found.insert(source.clone(), ready.clone());
    Ok(ready)
}

/// The modules with these names for `kernel`, uncompressed.
///
/// # Errors
/// If modules are missing and the plan does not provide modules either.
pub(super) fn modules(
    kernel: &LabKernel,
    names: &[&str],
    monitor: Monitor<'_>,
) -> Result<Vec<(String, Vec<u8>)>, LabError> {
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let found = match &kernel.source {
        KernelSource::File(path) if path.ends_with(".deb") => {
            let (path, cache) = (Path::new(path), directories::cache("kernels")?);
            let fetch = || fetch::from_archive(path, &cache, monitor);
            kept_modules(&fetch::dir_of_archive(path, &cache)?, names, monitor, fetch)?
        }
        KernelSource::File(path) => installed_modules(Path::new(path), names),
        KernelSource::Debian { version, flavour } => {
            let (package, cache) = (newest(version, *flavour)?, directories::cache("kernels")?);
            let fetch = || fetch::from_package(&package, &cache, monitor, &mut |_| ());
            kept_modules(&cache.join(&package), names, monitor, fetch)?
        }
    };
    if found.len() < names.len() && kernel.modules.is_none() {
        let reason =
            format!("needs its modules {}; name the directory that holds them: modules=/path", names.join(" and "));
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

/// Size limit of kernel files, bytes: a vmlinux with debug information has some hundred MiB.
const LARGEST: u64 = 2 << 30;

/// The kernel as QEMU boots it: unpacked if possible, and cached under a name derived from its content.
fn unpacked(name: String, kernel: &Path, cache: &Path, monitor: Monitor<'_>) -> Result<BootableKernel, LabError> {
    let whole = regular_file::read(kernel, LARGEST)?;
    let of_whole = hash(&whole);
    let begin = format!("vmlinux-{of_whole}-");
    for old in directories::names_in(cache) {
        let Some(content) = old.strip_prefix(&begin) else { continue };
        let file = cache.join(&old);
        let is_intact = fs::read(&file).is_ok_and(|bytes| hash(&bytes) == content);
        if is_intact {
            return Ok(BootableKernel { name, file, hash: of_whole });
        }
        (monitor.say)(&format!("{} is damaged; building it again", file.display()));
        fs::remove_file(&file).map_err(|err| LabError::file(&file, err))?;
    }
    let Some(elf) = image::uncompressed(kernel, &whole)? else {
        return Ok(BootableKernel { name, file: kernel.to_owned(), hash: of_whole });
    };
    let kept = cache.join(format!("{begin}{}", hash(&elf)));
    let unfinished = directories::in_cache(cache, &format!("vmlinux-{of_whole}"))?;
    let new = unfinished.path().join("vmlinux");
    let written = directories::write_new(&new, &elf).and_then(|()| fs::rename(&new, &kept));
    written.map_err(|err| LabError::file(&kept, format!("{err}; set XDG_CACHE_HOME to a directory with room")))?;
    Ok(BootableKernel { name, file: kept, hash: of_whole })
}
