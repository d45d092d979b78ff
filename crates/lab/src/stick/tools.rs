//! Programs and boot loaders from Debian's packages: those of this machine, or fetched ones, which are not installed.

use super::names::{BIOS_MODULES, BIOS_SECTOR, EFI_FILES};
use crate::packages::described;
use crate::{LabError, Monitor, apt, directories, error_line, hash};
use punctual_model::Architecture;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Packages of all files, with a library of grub-mkimage that small systems lack.
const PACKAGES: [&str; 6] =
    ["grub-common", "grub-pc-bin", "grub-efi-amd64-signed", "shim-signed", "mtools", "libdevmapper1.02.1"];

/// Directories of libraries below the root of fetched packages.
const LIBRARIES: [&str; 2] = ["lib/x86_64-linux-gnu", "usr/lib/x86_64-linux-gnu"];

/// Where the programs and boot loaders are.
#[derive(Debug)]
pub(super) struct Tools {
    root: PathBuf,
}

impl Tools {
    /// Finds them, or fetches their packages. Errors: if apt is missing or fails.
    pub(super) fn find(monitor: Monitor<'_>) -> Result<Tools, LabError> {
        let installed = Tools { root: PathBuf::from("/") };
        if installed.are_whole() {
            return Ok(installed);
        }
        let all = PACKAGES.join(" ");
        if !apt::is_here() {
            return Err(LabError::program("stick", format!("needs the packages {all} of Debian, and apt to get them")));
        }
        let known = described(&PACKAGES).into_iter().filter_map(|package| package.sha256);
        let cache = directories::cache("stick")?;
        let fetched = Tools { root: cache.join(hash(known.collect::<String>().as_bytes())) };
        if !fetched.are_whole() {
            fetch(&cache, &fetched.root, monitor)?;
        }
        let is_whole = fetched.are_whole();
        is_whole.then_some(fetched).ok_or_else(|| LabError::program("apt-get", format!("incomplete packages: {all}")))
    }

    /// The file `name` of a package.
    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    fn are_whole(&self) -> bool {
        let programs = ["usr/bin/grub-mkimage", "usr/bin/mtools"];
        let boot = EFI_FILES.map(|(_, from)| from);
        let files = programs.iter().chain(&boot).chain(&[BIOS_MODULES, BIOS_SECTOR]);
        files.into_iter().all(|name| self.file(name).exists())
    }

    /// Runs a program to its end. Errors: with its message, if it fails.
    pub(super) fn run(&self, program: &str, words: &[&str]) -> Result<(), LabError> {
        let mut command = Command::new(self.file("usr/bin").join(program));
        command.args(words).stdin(Stdio::null());
        // The images of GRUB have places of their own, and mtools checks none that it did not make.
        command.env("MTOOLS_SKIP_CHECK", "1").env("LC_ALL", "C");
        if self.root != Path::new("/") {
            let libraries = LIBRARIES.map(|name| self.file(name).display().to_string()).join(":");
            command.env("LD_LIBRARY_PATH", libraries);
        }
        let output = command.output().map_err(|err| LabError::program(program, err))?;
        if output.status.success() { Ok(()) } else { Err(LabError::program(program, error_line(&output.stderr))) }
    }
}

/// Downloads the packages, whose signatures apt verifies, and unpacks them as the directory `root` of the cache.
fn fetch(cache: &Path, root: &Path, monitor: Monitor<'_>) -> Result<(), LabError> {
    (monitor.say)(&format!("fetching {}", PACKAGES.join(" ")));
    let failed = |path: &Path, err: std::io::Error| LabError::file(path, err);
    let place = directories::in_cache(cache, "packages")?;
    let words = [&["download"], &PACKAGES[..]].concat();
    apt::get(Architecture::X86_64, &words, place.path(), monitor, &mut || ())?;
    let unpacked = place.path().join("root");
    for name in directories::names_in(place.path()) {
        let mut command = Command::new("dpkg-deb");
        let output =
            command.arg("--extract").arg(place.path().join(&name)).arg(&unpacked).stdin(Stdio::null()).output();
        let output = output.map_err(|err| LabError::program("dpkg-deb", err))?;
        if !output.status.success() {
            return Err(LabError::program("dpkg-deb", format!("{name}: {}", error_line(&output.stderr))));
        }
    }
    if root.exists() {
        fs::remove_dir_all(root).map_err(|err| failed(root, err))?;
    }
    fs::rename(&unpacked, root).map_err(|err| failed(root, err))
}
