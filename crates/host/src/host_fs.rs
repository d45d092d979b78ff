//! The files of a machine: those of the running kernel, or of a recorded one.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Most bytes of a file: 65,530 mappings of a process (`max_map_count`) have some 10 MB of lines, the environment of a
/// program at most 6 MiB (execve(2)).
const LARGEST: u64 = 16 << 20;

/// The root below which facts are read: `/` in use, a recorded machine in tests.
#[derive(Debug, Clone)]
pub struct HostFs {
    pub(crate) root: PathBuf,
}

impl HostFs {
    /// The running machine, or the one whose `/proc` and `/sys` are below `PUNCTUAL_ROOT`, for testing changes of
    /// settings without making any.
    pub fn here() -> Self {
        HostFs { root: std::env::var_os("PUNCTUAL_ROOT").map_or_else(|| PathBuf::from("/"), PathBuf::from) }
    }

    /// The running kernel, whatever [`HostFs::here`] is: processes are always its own.
    pub(crate) fn running() -> Self {
        HostFs { root: PathBuf::from("/") }
    }

    /// Whether this is the running machine.
    pub(crate) fn is_running(&self) -> bool {
        self.root == Path::new("/")
    }

    /// The text of a file, without trailing white space; `None` when it is unreadable, empty or not UTF-8.
    pub(crate) fn text(&self, path: impl AsRef<Path>) -> Option<String> {
        let text = String::from_utf8(self.bytes(path).ok()?).ok()?;
        let text = text.trim_end_matches(['\n', '\0', ' ']);
        (!text.is_empty()).then(|| text.to_owned())
    }

    /// The content of a file of the kernel. Such files have no size, for which `std::fs::read` asks. Errors: when it
    /// cannot be read, or holds more than [`LARGEST`] bytes, as another user can make `/proc/PID/environ` do.
    pub(crate) fn bytes(&self, path: impl AsRef<Path>) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::with_capacity(4096);
        File::open(self.root.join(path))?.take(LARGEST + 1).read_to_end(&mut bytes)?;
        match bytes.len() as u64 {
            0..=LARGEST => Ok(bytes),
            _ => Err(io::ErrorKind::FileTooLarge.into()),
        }
    }

    /// The identity of the boot.
    pub(crate) fn boot_id(&self) -> Option<String> {
        self.text("proc/sys/kernel/random/boot_id")
    }

    /// The number in a file; `None` when it has none.
    pub(crate) fn number<T: std::str::FromStr>(&self, path: impl AsRef<Path>) -> Option<T> {
        self.text(path)?.trim().parse().ok()
    }

    /// The number in a property of the device tree with one cell, which is big-endian (Devicetree Specification 2.2.4).
    pub(crate) fn cell(&self, path: impl AsRef<Path>) -> Option<u32> {
        let bytes = self.bytes(path).ok()?;
        bytes.try_into().ok().map(u32::from_be_bytes)
    }

    /// The names in a directory, sorted; none when it cannot be read.
    pub(crate) fn names_in(&self, path: &str) -> Vec<String> {
        let entries = std::fs::read_dir(self.root.join(path)).into_iter().flatten().flatten();
        let mut names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort_unstable();
        names
    }

    /// The names in a directory that are numbers, in ascending order.
    pub(crate) fn numbers_in(&self, path: &str) -> Vec<u32> {
        let mut numbers: Vec<u32> = self.names_in(path).iter().filter_map(|name| name.parse().ok()).collect();
        numbers.sort_unstable();
        numbers
    }

    /// The directories in a directory, in the order of their names.
    pub(crate) fn directories_in(&self, path: &str) -> Vec<String> {
        let directory = self.root.join(path);
        self.names_in(path).into_iter().filter(|name| directory.join(name).is_dir()).collect()
    }

    /// Whether a path exists.
    pub(crate) fn exists(&self, path: impl AsRef<Path>) -> bool {
        self.root.join(path).exists()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Scratch;

    #[test]
    fn a_file_without_end_is_not_read_whole() {
        let scratch = Scratch::make();
        std::os::unix::fs::symlink("/dev/zero", scratch.path("endless")).unwrap();
        assert_eq!(scratch.machine().bytes("endless").unwrap_err().kind(), io::ErrorKind::FileTooLarge);
    }

    impl Scratch {
        /// The machine whose files are in this directory.
        pub(crate) fn machine(&self) -> HostFs {
            HostFs { root: self.dir().to_owned() }
        }
    }
}
