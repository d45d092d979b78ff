//! Kernel modules that guests load before a measurement.

use super::{LabError, image, regular_file};
use punctual_sys::boot;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// Directory of modules in a guest.
pub(super) const PLACE: &str = "/modules";

/// Limit of loaded modules: a distribution has thousands, for devices that no guest has.
const MAX_MODULES: usize = 100;

/// Size limit of a module, bytes.
const LARGEST: u64 = 128 << 20;

/// The module at `path`, or all modules in the directory `path` and below, uncompressed, sorted by path. Errors: if
/// there is none, or one cannot be read.
pub(super) fn below(path: &Path) -> Result<Vec<(String, Vec<u8>)>, LabError> {
    let mut files = Vec::new();
    find(path, &mut files).map_err(|err| LabError::file(path, err))?;
    files.sort();
    match files.len() {
        0 if path.is_file() => {
            return Err(LabError::file(path, "expected a module; name a file like x.ko, or a directory of modules"));
        }
        0 => return Err(LabError::file(path, "expected a directory of modules (files like x.ko)")),
        n if n > MAX_MODULES => {
            let reason = format!(
                "has {n} modules, a guest loads at most {MAX_MODULES}; copy the required ones to another directory"
            );
            return Err(LabError::file(path, reason));
        }
        _ => {}
    }
    files.iter().map(|file| read(file)).collect()
}

/// The modules with these names in the directory `path` and below, uncompressed; missing or unreadable ones are left
/// out.
pub(super) fn named(path: &Path, names: &[&str]) -> Vec<(String, Vec<u8>)> {
    let mut files = Vec::new();
    if find(path, &mut files).is_err() {
        return Vec::new();
    }
    files.sort();
    let wanted = files.iter().filter(|file| stem(file).is_some_and(|stem| names.contains(&stem)));
    wanted.filter_map(|file| read(file).ok()).collect()
}

fn find(path: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    if !fs::metadata(path)?.is_dir() {
        files.extend(stem(path).map(|_| path.to_owned()));
        return Ok(());
    }
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        // `build` and `source` are symbolic links out of the directory.
        if !entry.file_type()?.is_symlink() {
            find(&entry.path(), files)?;
        }
    }
    Ok(())
}

/// The file name without the suffix of a compressor; `None` if it is not a module.
pub(super) fn stem(path: &Path) -> Option<&str> {
    let name = path.file_name()?.to_str()?;
    let stem = [".xz", ".zst", ".gz"].iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name);
    stem.ends_with(".ko").then_some(stem)
}

fn read(path: &Path) -> Result<(String, Vec<u8>), LabError> {
    let content = regular_file::read(path, LARGEST)?;
    let reason = "expected a module, plain or compressed by an installed program (xz, zstd, gzip)";
    uncompressed(path, content).ok_or_else(|| LabError::file(path, reason))
}

/// The name and the uncompressed content of module file `path`; `None` if it is not a module.
pub(super) fn uncompressed(path: &Path, content: Vec<u8>) -> Option<(String, Vec<u8>)> {
    let name = stem(path)?.to_owned();
    let content = image::decompressed(&content).unwrap_or(content);
    content.starts_with(super::elf::MAGIC).then_some((name, content))
}

/// Loads all modules in a guest. Errors: if the kernel rejects a module in every order.
pub(super) fn load_all() -> io::Result<()> {
    match load().first() {
        None => Ok(()),
        Some((name, err)) => Err(io::Error::other(format!("cannot load module {name}: {}", why(err)))),
    }
}

/// Loads the modules of this initramfs, in dependency order: a module with missing symbols is tried again after the
/// others. Returns those that the kernel rejects in every order.
pub(super) fn load() -> Vec<(String, io::Error)> {
    let entries = fs::read_dir(PLACE).into_iter().flatten().flatten();
    let mut waiting: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    waiting.sort();
    loop {
        let (before, mut refused) = (waiting.len(), Vec::new());
        waiting.retain(|path| match File::open(path).and_then(|file| boot::load_module(&file)) {
            Ok(()) => false,
            Err(err) if err.kind() == io::ErrorKind::AlreadyExists => false,
            Err(err) => {
                refused.push((path.file_name().unwrap_or_default().display().to_string(), err));
                true
            }
        });
        if waiting.len() == before {
            return refused;
        }
    }
}

/// The kernel's reason (init_module(2)).
pub(super) fn why(err: &io::Error) -> String {
    match err.raw_os_error() {
        Some(libc::ENOEXEC) => "built for another kernel".to_owned(),
        Some(libc::ENOENT) => "requires symbols of a module that is not in the directory".to_owned(),
        _ => err.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_host::testing::Scratch;

    #[test]
    fn modules_are_found_by_their_names_and_come_uncompressed() {
        let scratch = Scratch::make();
        let dir = scratch.dir();
        scratch.file("kernel/b.ko", b"\x7fELF b");
        scratch.file("kernel/fs/a.ko.gz", image::piped("gzip", &["-c"], b"\x7fELF a").unwrap());
        scratch.file("modules.dep", "x");
        let found = below(dir).unwrap();
        let expected = [("b.ko".to_owned(), b"\x7fELF b".to_vec()), ("a.ko".to_owned(), b"\x7fELF a".to_vec())];
        assert_eq!(found, expected);
        assert_eq!(below(&dir.join("kernel/b.ko")).unwrap(), expected[..1]);
        scratch.file("kernel/c.ko", "text");
        assert!(below(dir).unwrap_err().to_string().contains("c.ko: expected a module"));
        for n in 0..=MAX_MODULES {
            scratch.file(&format!("{n}.ko"), b"\x7fELF");
        }
        assert!(below(dir).unwrap_err().to_string().contains("at most 100"));
    }
}
