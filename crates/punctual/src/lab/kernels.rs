//! Kernels by name: found among Debian's packages, fetched without being installed, kept in a cache.

use super::{LabError, cache, image};
use model::{KernelSource, fnv1a_bytes};
use std::cmp::Ordering;
use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};

/// A kernel that can be booted.
#[derive(Debug, Clone)]
pub(crate) struct Ready {
    /// What it is: the name of its package, or its file.
    pub(crate) name: String,
    /// What QEMU starts.
    pub(crate) file: PathBuf,
    /// Stands for the content of that file: 16 hexadecimal digits (FNV-1a).
    pub(crate) hash: String,
}

/// The packages of this architecture end like this.
const ARCHITECTURE: &str = "amd64";

/// The kernel of `source`, fetched if it is not here yet. Asked for once more in this process, it is the same one.
///
/// # Errors
/// When there is none, or it cannot be fetched or unpacked.
pub(crate) fn ready(source: &KernelSource) -> Result<Ready, LabError> {
    static FOUND: Mutex<Option<HashMap<KernelSource, Ready>>> = Mutex::new(None);
    let mut found = FOUND.lock().unwrap_or_else(PoisonError::into_inner);
    let found = found.get_or_insert_default();
    if let Some(ready) = found.get(source) {
        return Ok(ready.clone());
    }
    let cache = cache("kernels")?;
    let (name, kernel) = match source {
        KernelSource::File(path) => (path.clone(), PathBuf::from(path)),
        KernelSource::Debian { version, flavour } => {
            let package = newest(version, flavour.suffix(), &cache)?;
            let kernel = fetched(&package, &cache)?;
            (package, kernel)
        }
    };
    let ready = unpacked(name, &kernel, &cache)?;
    found.insert(source.clone(), ready.clone());
    Ok(ready)
}

/// The newest package of a version and a flavour: of those the package manager knows, else of those in the cache.
fn newest(version: &str, flavour: &str, cache: &Path) -> Result<String, LabError> {
    let pattern = format!("^linux-image-{}\\.", version.replace('.', "\\."));
    let known = Command::new("apt-cache").args(["search", "--names-only", &pattern]).stderr(Stdio::null()).output();
    let known = known.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    let known: Vec<String> =
        known.lines().filter_map(|line| Some(line.split_whitespace().next()?.to_owned())).collect();
    let cached = || {
        let entries = fs::read_dir(cache).into_iter().flatten().flatten();
        entries.filter_map(|entry| entry.file_name().into_string().ok()).collect::<Vec<_>>()
    };
    let newest = newest_of(&known, version, flavour).or_else(|| newest_of(&cached(), version, flavour));
    newest.ok_or_else(|| {
        LabError::program(
            "apt-cache",
            format!(
                "knows no package of debian:{version}{flavour}; apt-get update, add the release that has it (6.12 is in \
                 bookworm-backports), or name a kernel's file"
            ),
        )
    })
}

/// The newest of `packages` with this version and flavour.
fn newest_of(packages: &[String], version: &str, flavour: &str) -> Option<String> {
    let release = |name: &str| -> Option<String> {
        let rest = name.strip_prefix("linux-image-")?.strip_suffix(&format!("{flavour}-{ARCHITECTURE}"))?;
        let is_other = ["-rt", "-cloud", "-unsigned", "-dbg"].iter().any(|end| rest.ends_with(end));
        (rest.starts_with(&format!("{version}.")) && !is_other).then(|| rest.to_owned())
    };
    let of_kind = packages.iter().filter_map(|name| Some((release(name)?, name)));
    of_kind.max_by(|(a, _), (b, _)| by_numbers(a, b)).map(|(_, name)| name.clone())
}

/// Compares texts by the numbers in them: `6.1.0-9` comes before `6.1.0-56`.
fn by_numbers(a: &str, b: &str) -> Ordering {
    let numbers = |text: &str| -> Vec<u64> {
        text.split(|c: char| !c.is_ascii_digit()).filter_map(|number| number.parse().ok()).collect()
    };
    numbers(a).cmp(&numbers(b)).then_with(|| a.cmp(b))
}

/// The kernel file of a package, fetched by the package manager, which checks its signature, and unpacked beside.
fn fetched(package: &str, cache: &Path) -> Result<PathBuf, LabError> {
    let dir = cache.join(package);
    let kernel = dir.join("vmlinuz");
    if kernel.is_file() {
        return Ok(kernel);
    }
    // Another process may fetch the same: each in a directory of its own, and the first to be done gives it its name.
    let scratch = cache.join(format!(".{package}.{}", std::process::id()));
    let _scratch = Removed(&scratch);
    fs::create_dir_all(&scratch).map_err(|err| LabError::file(&scratch, err))?;
    said_nothing("apt-get", &["-q", "download", package], &scratch)?;
    let archive = entry_that(&scratch, |name| name.ends_with(".deb"))?;
    let unpacked = scratch.join("unpacked");
    let [from, to] = [&archive, &unpacked].map(|path| path.display().to_string());
    said_nothing("dpkg-deb", &["--extract", &from, &to], &scratch)?;
    let found = entry_that(&unpacked.join("boot"), |name| name.starts_with("vmlinuz-"))?;
    let kept = scratch.join("kept");
    let failed = |err: std::io::Error| LabError::file(&dir, err);
    fs::create_dir_all(&kept).map_err(failed)?;
    fs::rename(found, kept.join("vmlinuz")).map_err(failed)?;
    match fs::rename(&kept, &dir) {
        Err(err) if !kernel.is_file() => Err(failed(err)),
        _ => Ok(kernel),
    }
}

/// The kernel as QEMU starts it: unpacked where that is possible, and kept by its content.
fn unpacked(name: String, kernel: &Path, cache: &Path) -> Result<Ready, LabError> {
    let whole = fs::read(kernel).map_err(|err| LabError::file(kernel, err))?;
    let hash = format!("{:016x}", fnv1a_bytes(&whole));
    let kept = cache.join(format!("vmlinux-{hash}"));
    if kept.is_file() {
        return Ok(Ready { name, file: kept, hash });
    }
    let Some(elf) = image::uncompressed(kernel, &whole)? else {
        return Ok(Ready { name, file: kernel.to_owned(), hash });
    };
    let new = cache.join(format!(".vmlinux-{hash}.{}", std::process::id()));
    let written = fs::write(&new, elf).and_then(|()| fs::rename(&new, &kept));
    written.map_err(|err| LabError::file(&kept, err))?;
    Ok(Ready { name, file: kept, hash })
}

/// Runs a program that is expected to end well.
fn said_nothing(program: &str, arguments: &[&str], dir: &Path) -> Result<(), LabError> {
    let output = Command::new(program).args(arguments).current_dir(dir).stdin(Stdio::null()).output();
    let output = output.map_err(|err| LabError::program(program, err))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(LabError::program(program, said.lines().last().unwrap_or("failed without a word")))
}

fn entry_that(dir: &Path, is_it: impl Fn(&str) -> bool) -> Result<PathBuf, LabError> {
    let entries = fs::read_dir(dir).map_err(|err| LabError::file(dir, err))?;
    let found = entries.flatten().find(|entry| entry.file_name().to_str().is_some_and(&is_it));
    found.map(|entry| entry.path()).ok_or_else(|| LabError::file(dir, "the package holds no kernel"))
}

/// A directory that is gone in the end.
struct Removed<'a>(&'a Path);

impl Drop for Removed<'_> {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_package_of_a_kind_is_chosen() {
        let packages = [
            "linux-image-6.1.0-9-amd64",
            "linux-image-6.1.0-56-amd64",
            "linux-image-6.1.0-56-amd64-dbg",
            "linux-image-6.1.0-57-amd64-unsigned",
            "linux-image-6.1.0-58-rt-amd64",
            "linux-image-6.1.0-59-cloud-amd64",
            "linux-image-6.12.117+deb12-amd64",
            "linux-image-6.12.9+deb12-amd64",
            "linux-image-amd64",
            "linux-image-6.1.0-60-arm64",
        ]
        .map(str::to_owned);
        for (version, flavour, package) in [
            ("6.1", "", Some("linux-image-6.1.0-56-amd64")),
            ("6.1", "-rt", Some("linux-image-6.1.0-58-rt-amd64")),
            ("6.1", "-cloud", Some("linux-image-6.1.0-59-cloud-amd64")),
            ("6.12", "", Some("linux-image-6.12.117+deb12-amd64")),
            ("6.12", "-rt", None),
            ("6.11", "", None),
        ] {
            assert_eq!(newest_of(&packages, version, flavour).as_deref(), package, "{version}{flavour}");
        }
    }
}
