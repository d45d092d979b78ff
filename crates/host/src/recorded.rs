//! Machines for tests: one text file each below `tests/recorded/`, unpacked to a directory that stands for `/`.
//!
//! A line `== PATH` begins a file. `{LIST}` in a path stands for each number of the list, and `{}` in the text for that
//! number; `\0` is a NUL. Files whose name ends in `.gz` are compressed.

use super::{HostFs, snapshot};
use flate2::Compression;
use flate2::write::GzEncoder;
use punctual_model::{CpuSet, Host};
use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// The names of all recorded machines.
pub const MACHINES: [&str; 14] = [
    "arm64-guest", "board", "cobalt", "cobalt-guest", "cobalt-off", "container", "debug", "evl", "laptop", "old-pc",
    "riscv-board", "rt", "server", "vm",
];

/// The facts of a machine.
pub fn host(machine: &str) -> Host {
    Tree::of(machine).snapshot()
}

/// A machine unpacked; removed when dropped.
#[derive(Debug)]
pub struct Tree {
    root: PathBuf,
    /// Its files, relative to the root.
    pub files: BTreeSet<String>,
}

impl Tree {
    /// A machine without a single file.
    pub fn empty() -> Tree {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("punctual-machine-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        // Memory is faster than a disk for hundreds of small files.
        let memory = Path::new("/dev/shm");
        let root = if memory.is_dir() { memory.join(name) } else { std::env::temp_dir().join(name) };
        std::fs::create_dir_all(&root).expect("a directory for a machine");
        Tree { root, files: BTreeSet::new() }
    }

    /// Unpacks a machine of [`MACHINES`].
    pub fn of(machine: &str) -> Tree {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recorded").join(machine).with_extension("txt");
        let text = std::fs::read_to_string(&path).unwrap_or_else(|err| panic!("{}: {err}", path.display()));
        let mut tree = Tree::empty();
        let text = format!("\n{text}");
        for section in text.split("\n== ").skip(1) {
            let (path, content) = section.split_once('\n').unwrap_or((section, ""));
            // A property of the device tree is bytes, not lines.
            let ends = if content.is_empty() || path.starts_with("proc/device-tree/") { "" } else { "\n" };
            tree.unpack(path, &format!("{}{ends}", content.trim_end_matches('\n').replace("\\0", "\0")));
        }
        tree
    }

    fn unpack(&mut self, path: &str, content: &str) {
        let list = path.split_once('{').and_then(|(before, rest)| Some((before, rest.split_once('}')?)));
        let Some((before, (list, after))) = list else {
            return self.write(path, content.as_bytes());
        };
        let numbers: CpuSet = list.parse().unwrap_or_else(|err| panic!("{path}: {err}"));
        for number in numbers.iter() {
            self.write(&format!("{before}{number}{after}"), content.replace("{}", &number.to_string()).as_bytes());
        }
    }

    /// Writes a file, replacing an existing one.
    pub fn write(&mut self, path: &str, content: &[u8]) {
        let file = self.root.join(path);
        std::fs::create_dir_all(file.parent().expect("a file lies in a directory")).expect("a directory");
        let content = if path.ends_with(".gz") { compressed(content) } else { content.to_vec() };
        std::fs::write(&file, content).unwrap_or_else(|err| panic!("{path}: {err}"));
        self.files.insert(path.to_owned());
    }

    /// Removes a file.
    pub fn remove(&mut self, path: &str) {
        std::fs::remove_file(self.root.join(path)).unwrap_or_else(|err| panic!("{path}: {err}"));
        self.files.remove(path);
    }

    /// The snapshot of the machine.
    pub fn snapshot(&self) -> Host {
        snapshot(&HostFs { root: self.root.clone() })
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.root);
    }
}

fn compressed(content: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(content).and_then(|()| encoder.finish()).expect("a vector takes everything")
}
