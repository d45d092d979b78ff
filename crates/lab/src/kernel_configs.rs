//! Build configurations of kernels as plans name them.

use super::config::{self, FoundConfig};
use super::fetch::{self, CachedConfig};
use super::{LabError, Monitor, directories, kernels};
use punctual_model::KernelSource;
use std::fs;
use std::io;
use std::path::Path;

/// The configuration of a kernel, or in a file of its own (`.config`, also compressed by gzip); `None` if the kernel
/// has none. A package that was cached without it is fetched again. Errors: if a file or package cannot be read, or its
/// configuration is damaged.
pub fn config_of(source: &KernelSource, monitor: Monitor<'_>) -> Result<Option<FoundConfig>, LabError> {
    match source {
        KernelSource::File(path) if !path.ends_with(".deb") => config::of_file(Path::new(path)),
        _ => of_package(source, monitor),
    }
}

fn of_package(source: &KernelSource, monitor: Monitor<'_>) -> Result<Option<FoundConfig>, LabError> {
    kernels::ready(source, monitor)?;
    let dir = kernels::cached_dir(source, monitor)?;
    if fetch::config_in(&dir) == CachedConfig::NotKept {
        (monitor.say)(&format!("{} has no configuration; building it again", dir.display()));
        let name = dir.file_name().unwrap_or_default().to_string_lossy();
        let aside = directories::in_cache(dir.parent().unwrap_or(&dir), &name)?;
        let old = aside.path().join("old");
        let failed = |err: io::Error| LabError::file(&dir, err);
        fs::rename(&dir, &old).map_err(failed)?;
        kernels::forget(source);
        if let Err(err) = kernels::ready(source, monitor) {
            // The cached kernel comes back if the package cannot be fetched now.
            fs::rename(&old, &dir).map_err(failed)?;
            return Err(err);
        }
    }
    match fetch::config_in(&dir) {
        CachedConfig::Known(file, text) => config::parsed(&file, &text).map(Some),
        CachedConfig::Absent | CachedConfig::NotKept => Ok(None),
    }
}
