//! Kernels out of packages: fetched without being installed, checked, and kept in the cache.

use super::devices::MODULES;
use super::packages::{self, Package};
use super::scratch::Scratch;
use super::{LabError, hash, modes, modules};
use crate::host;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// How far fetching a package is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fetching<'a> {
    /// Which.
    pub(crate) package: &'a str,
    /// What is here, bytes.
    pub(crate) bytes: u64,
    /// What will be, bytes; `None` when the package manager does not say.
    pub(crate) of_bytes: Option<u64>,
}

/// What is kept beside a kernel of the cache.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Kept {
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
pub(super) fn kept_in(dir: &Path) -> Option<Kept> {
    serde_json::from_slice(&fs::read(dir.join(KEPT)).ok()?).ok().filter(|_| dir.join(KERNEL).is_file())
}

/// The kernel of directory `dir`.
pub(super) fn kernel_in(dir: &Path) -> PathBuf {
    dir.join(KERNEL)
}

/// The kernel of directory `dir`, if it is the one that was put there. Says so on stderr if it is not.
fn intact_in(dir: &Path) -> Result<Option<PathBuf>, LabError> {
    let kernel = kernel_in(dir);
    let found = kept_in(dir).map(|kept| Ok(sha256(&kernel)? == kept.kernel_sha256)).transpose()?;
    if found == Some(true) {
        return Ok(Some(kernel));
    }
    if dir.exists() {
        note(&format!("{} is damaged, or was kept without a checksum; it is made again", dir.display()));
        fs::remove_dir_all(dir).map_err(|err| LabError::file(dir, err))?;
    }
    Ok(None)
}

/// The kernel of a package, fetched by the package manager, which checks its signature, if the cache does not hold it.
pub(super) fn from_package(
    package: &str,
    cache: &Path,
    observe: &mut dyn FnMut(Fetching<'_>),
) -> Result<PathBuf, LabError> {
    let dir = cache.join(package);
    if let Some(kernel) = intact_in(&dir)? {
        return Ok(kernel);
    }
    let about = packages::described(&[package]).into_iter().find(|about| about.name == package);
    let about = about.unwrap_or_else(|| Package { name: package.to_owned(), ..Package::default() });
    let scratch = Scratch::in_cache(cache, package)?;
    download(&about, &scratch.0, observe)?;
    let archive = entry_that(&scratch.0, |name| name.ends_with(".deb"))?;
    let found = sha256(&archive)?;
    if let Some(promised) = about.sha256.as_ref().filter(|promised| **promised != found) {
        let reason = format!("what was fetched has the checksum {found}, and {promised} was promised; try again");
        return Err(LabError::program("apt-get", format!("{package}: {reason}")));
    }
    keep(&about, &archive, found, &scratch.0, &dir)
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
pub(super) fn from_archive(archive: &Path, cache: &Path) -> Result<PathBuf, LabError> {
    let sum = sha256(archive)?;
    let dir = cache.join(format!("deb-{}", &sum[..16]));
    if let Some(kernel) = intact_in(&dir)? {
        return Ok(kernel);
    }
    let about = Package { name: archive.display().to_string(), ..Package::default() };
    let scratch = Scratch::in_cache(cache, &format!("deb-{}", &sum[..16]))?;
    keep(&about, archive, sum, &scratch.0, &dir)
}

/// Takes the kernel out of a package and puts it into the cache as `dir`. Another process may do the same: each works in
/// a directory of its own, and the first to be done gives it its name.
fn keep(about: &Package, archive: &Path, sum: String, scratch: &Path, dir: &Path) -> Result<PathBuf, LabError> {
    let kept = scratch.join("kept");
    fs::create_dir_all(&kept).map_err(|err| LabError::file(&kept, err))?;
    unpack(archive, scratch)?;
    let boot = scratch.join("boot");
    let none = |_| LabError::file(archive, "the package holds no kernel; name another, like linux-image-*.deb");
    let kernel = entry_that(&boot, |name| name.starts_with("vmlinuz-")).map_err(none)?;
    let config =
        entry_that(&boot, |name| name.starts_with("config-")).ok().and_then(|path| fs::read_to_string(path).ok());
    let kept_modules = keep_modules(&scratch.join("lib"), &kept.join(KEPT_MODULES))?;
    let bytes = fs::metadata(archive).map_err(|err| LabError::file(archive, err))?.len();
    let modes = config.as_deref().map(modes::of_config);
    let note = Kept {
        package: about.name.clone(),
        version: about.version.clone(),
        package_sha256: sum,
        package_bytes: bytes,
        kernel_sha256: sha256(&kernel)?,
        preempt_rt: modes.as_ref().map(|modes| modes.is_rt),
        preempt: modes.map(|modes| modes.arguments).unwrap_or_default(),
        modules: Some(kept_modules),
    };
    let failed = |err: io::Error| LabError::file(dir, err);
    fs::write(kept.join(KEPT), serde_json::to_vec_pretty(&note).map_err(io::Error::from).map_err(failed)?)
        .map_err(failed)?;
    fs::rename(kernel, kept.join(KERNEL)).map_err(failed)?;
    match fs::rename(&kept, dir) {
        Err(err) if kept_in(dir).is_none() => Err(failed(err)),
        _ => Ok(kernel_in(dir)),
    }
}

/// Puts the modules below `tree` into `dir`; returns their sums.
fn keep_modules(tree: &Path, dir: &Path) -> Result<BTreeMap<String, String>, LabError> {
    fs::create_dir_all(dir).map_err(|err| LabError::file(dir, err))?;
    let found = if tree.exists() { modules::below(tree).unwrap_or_default() } else { Vec::new() };
    let keep = |(name, content): (String, Vec<u8>)| {
        let path = dir.join(&name);
        fs::write(&path, &content).map_err(|err| LabError::file(&path, err))?;
        Ok((name, hash(&content)))
    };
    found.into_iter().map(keep).collect()
}

/// Has the package manager fetch a package into `dir`.
fn download(about: &Package, dir: &Path, observe: &mut dyn FnMut(Fetching<'_>)) -> Result<(), LabError> {
    const LOOK: Duration = Duration::from_millis(100);
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
        std::thread::sleep(LOOK);
    };
    let said = fs::read(&said).unwrap_or_default();
    if status.success() { Ok(()) } else { Err(LabError::program(PROGRAM, last_words(&said))) }
}

/// Unpacks what a package has in `/boot` into `dir`, and the modules that devices of the lab need: of hundreds of megabytes
/// the rest is other modules.
fn unpack(archive: &Path, dir: &Path) -> Result<(), LabError> {
    const UNPACKER: &str = "dpkg-deb";
    let failed = |program: &str, err: &io::Error| match err.kind() {
        io::ErrorKind::NotFound => {
            LabError::program(program, "is not installed; unpack the package elsewhere and name the vmlinuz in it")
        }
        _ => LabError::program(program, err),
    };
    let mut unpacker = Command::new(UNPACKER);
    let unpacker = unpacker.arg("--fsys-tarfile").arg(archive).stdin(Stdio::null());
    let mut unpacker =
        unpacker.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().map_err(|err| failed(UNPACKER, &err))?;
    let mut tar = Command::new("tar");
    tar.args(["-x", "--no-same-owner", "--wildcards", "-C"]).arg(dir).args(["./boot/vmlinuz-*", "./boot/config-*"]);
    tar.args(MODULES.map(|name| format!("./lib/modules/*/{name}*")));
    let tar = tar.stdin(unpacker.stdout.take().map_or_else(Stdio::null, Stdio::from)).output();
    let output = unpacker.wait_with_output().map_err(|err| failed(UNPACKER, &err))?;
    let tar = tar.map_err(|err| failed("tar", &err))?;
    // tar also fails for a pattern that fits nothing; what is missing is seen afterwards.
    let words = String::from_utf8_lossy(&tar.stderr).into_owned();
    if let Some(line) = words.lines().find(|line| line.contains("Cannot")) {
        let place = dir.display();
        return Err(LabError::program("tar", format!("{} ({place})", line.trim_start_matches("tar: "))));
    }
    if !output.status.success() {
        let said = last_words(&output.stderr);
        let said = said.trim_start_matches("dpkg-deb: error: ").trim_start_matches("dpkg-deb (subprocess): ");
        return Err(LabError::file(archive, format!("no whole package; fetch it again ({UNPACKER}: {said})")));
    }
    Ok(())
}

/// SHA-256 of a file, 64 hexadecimal digits.
fn sha256(path: &Path) -> Result<String, LabError> {
    const PROGRAM: &str = "sha256sum";
    fs::File::open(path).map_err(|err| LabError::file(path, err))?;
    let output = Command::new(PROGRAM).arg("--").arg(path).stdin(Stdio::null()).output();
    let output = output.map_err(|err| LabError::program(PROGRAM, err))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    // A name with a backslash makes the line begin with one.
    let sum = text.trim_start_matches('\\').get(..64).filter(|sum| sum.bytes().all(|byte| byte.is_ascii_hexdigit()));
    sum.map(str::to_owned).ok_or_else(|| LabError::file(path, last_words(&output.stderr)))
}

fn last_words(stderr: &[u8]) -> String {
    let said = String::from_utf8_lossy(stderr);
    let mut lines = said.lines().map(str::trim).filter(|line| !line.is_empty());
    // apt's first error is the cause; its warnings may follow.
    let error = lines.clone().find_map(|line| line.strip_prefix("E: "));
    error.or_else(|| lines.next_back()).unwrap_or("failed without a word").to_owned()
}

fn entry_that(dir: &Path, is_it: impl Fn(&str) -> bool) -> Result<PathBuf, LabError> {
    let entries = fs::read_dir(dir).map_err(|err| LabError::file(dir, err))?;
    let found = entries.flatten().find(|entry| entry.file_name().to_str().is_some_and(&is_it));
    found.map(|entry| entry.path()).ok_or_else(|| LabError::file(dir, "holds no such file"))
}

/// Something worth knowing that is no error.
pub(super) fn note(text: &str) {
    let _ = writeln!(io::stderr(), "punctual: {text}");
}
