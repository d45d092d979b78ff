//! Memory of a guest as a file: shared until the guest is at rest, private to each guest that resumes from it.
//!
//! A guest at rest has used a fifth of its memory. The rest are holes, which take no space and are not read.
use punctual_sys::storage;
use std::ffi::OsString;
use std::fs::File;
use std::hash::Hasher;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use twox_hash::XxHash3_64;

pub(super) const MIB: u32 = 512;

const BYTES: u64 = (MIB as u64) << 20;
/// Read size, bytes: whole pages.
const CHUNK: u64 = 1 << 20;
const PAGE: [u8; 4096] = [0; 4096];

/// Writable memory of a guest. Processes started meanwhile inherit the file and close it when they end.
pub(super) struct Memory(File);

impl Memory {
    pub(super) fn new() -> io::Result<Memory> {
        let file = storage::bounded_memory_file("guest", BYTES)?;
        storage::pass_on(&file)?;
        Ok(Memory(file))
    }

    /// Memory with the content of file `path`.
    pub(super) fn copy_of(path: &Path) -> io::Result<Memory> {
        let memory = Memory::new()?;
        for_each_page(&File::open(path)?, |at, page| memory.0.write_all_at(page, at))?;
        Ok(memory)
    }

    /// QEMU arguments for this memory.
    pub(super) fn arguments(&self) -> [OsString; 4] {
        arguments(&punctual_host::name_of_open(&self.0), "on")
    }

    /// Writes the memory to the new file `path`, with its holes. Returns its hash, like [`hash_of`].
    pub(super) fn write_to(&self, path: &Path) -> io::Result<u64> {
        let file = File::create_new(path)?;
        file.set_len(BYTES)?;
        hash_while(&self.0, |at, page| file.write_all_at(page, at))
    }
}

/// QEMU arguments for a guest that resumes with the memory in file `path`, mapped private.
pub(super) fn of_file(path: &Path) -> [OsString; 4] {
    arguments(path, "off")
}

/// QEMU arguments for a guest that resumes with this memory, mapped private.
pub(super) fn of_open(memory: &Memory) -> [OsString; 4] {
    arguments(&punctual_host::name_of_open(&memory.0), "off")
}

fn arguments(path: &Path, share: &str) -> [OsString; 4] {
    let path = super::directories::as_value(path);
    let object = format!("memory-backend-file,id=memory,mem-path={path},size={MIB}M,share={share}");
    ["-object".into(), object.into(), "-machine".into(), "memory-backend=memory".into()]
}

/// Hash of the non-zero pages of file `path` and their offsets: equal for equal content. Errors: if it cannot be read,
/// or does not have the size of a guest's memory.
pub(super) fn hash_of(path: &Path) -> io::Result<u64> {
    let file = File::open(path)?;
    if file.metadata()?.len() != BYTES {
        return Err(io::Error::other("not the memory of a guest"));
    }
    hash_while(&file, |_, _| Ok(()))
}

fn hash_while(file: &File, mut each: impl FnMut(u64, &[u8]) -> io::Result<()>) -> io::Result<u64> {
    let mut hasher = XxHash3_64::with_seed(0);
    for_each_page(file, |at, page| {
        hasher.write_u64(at);
        hasher.write(page);
        each(at, page)
    })?;
    Ok(hasher.finish())
}

/// Calls `each` with the offset of every page that is not all zeros; the result does not depend on the holes of the
/// file system.
fn for_each_page(file: &File, mut each: impl FnMut(u64, &[u8]) -> io::Result<()>) -> io::Result<()> {
    let mut buffer = Vec::new();
    let mut at = 0;
    while let Some(data) = storage::next_data(file, at)? {
        at = data.start;
        while at < data.end {
            let n = CHUNK.min(data.end - at);
            buffer.resize(usize::try_from(n).map_err(io::Error::other)?, 0);
            file.read_exact_at(&mut buffer, at)?;
            for page in buffer.chunks(PAGE.len()) {
                if page != &PAGE[..page.len()] {
                    each(at, page)?;
                }
                at += page.len() as u64;
            }
        }
    }
    Ok(())
}
