//! Reading files named by a plan: regular files only, up to a size limit.

use super::LabError;
use punctual_host::file;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

/// Opens the regular file `path` or a symbolic link to one. FIFOs and devices are not opened: that may block, or have
/// side effects. Errors: if it cannot be opened, is not a regular file, or has more than `at_most` bytes.
pub(super) fn open(path: &Path, at_most: u64) -> Result<File, LabError> {
    let check = |about: &fs::Metadata| match about.len() {
        _ if !about.is_file() => Err(io::Error::other("expected a regular file; name another file")),
        bytes if bytes > at_most => Err(too_large(at_most)),
        _ => Ok(()),
    };
    file::open_checked(path, check).map_err(|err| LabError::file(path, err))
}

/// The content of the regular file `path`. Errors: like [`open`].
pub(super) fn read(path: &Path, at_most: u64) -> Result<Vec<u8>, LabError> {
    let file = open(path, at_most)?;
    let mut content = Vec::new();
    // It may grow meanwhile, or have a size only when it is read (procfs).
    file.take(at_most + 1).read_to_end(&mut content).map_err(|err| LabError::file(path, err))?;
    if content.len() as u64 > at_most { Err(LabError::file(path, too_large(at_most))) } else { Ok(content) }
}

fn too_large(at_most: u64) -> io::Error {
    io::Error::other(format!("larger than {} MiB; name another file", at_most >> 20))
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_host::testing::Scratch;

    #[test]
    fn only_regular_files_up_to_a_size_are_read() {
        let directory = Scratch::make();
        let [file, link, fifo, sparse] = ["file", "link", "fifo", "sparse"].map(|name| directory.path(name));
        fs::write(&file, vec![1; 1 << 20]).unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        directory.fifo("fifo");
        File::create(&sparse).unwrap().set_len(1 << 40).unwrap();
        for path in [&file, &link] {
            assert_eq!(read(path, 1 << 20).unwrap().len(), 1 << 20);
        }
        for (path, expected) in [
            (fifo.as_path(), "expected a regular file"),
            (Path::new("/dev/zero"), "expected a regular file"),
            (directory.dir(), "expected a regular file"),
            (&sparse, "larger than 1 MiB"),
            // procfs reports size 0.
            (Path::new("/proc/kallsyms"), "larger than 1 MiB"),
            (Path::new("/nowhere"), "No such file or directory"),
        ] {
            let said = read(path, 1 << 20).unwrap_err().to_string();
            assert!(said.contains(expected), "{said}");
        }
    }
}
