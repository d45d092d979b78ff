//! Group `file`: creating and removing files, and reading a cached one.

use super::{Batch, Directory, NotReady, Operation, ReadyOperation, unknown};
use punctual_sys::calls;
use punctual_sys::mapping::Mapping;
use std::ffi::CString;
use std::fs::File;
use std::hint::black_box;
use std::io;
use std::os::unix::fs::FileExt;

/// The file to read, and its length, bytes.
pub(super) const DATA: &str = "data";
const DATA_BYTES: usize = 64 * 1024;
/// Files of a batch.
const FILES: u64 = 64;

/// Creates the file to read.
pub(super) fn fill(directory: &Directory) -> io::Result<()> {
    std::fs::write(directory.0.join(DATA), vec![1; DATA_BYTES])
}

impl Directory {
    /// Opens the file to read.
    pub(super) fn open(&self) -> io::Result<File> {
        File::open(self.0.join(DATA))
    }
}

pub(crate) fn make(name: &str, directory: &Directory) -> Result<ReadyOperation, NotReady> {
    let many = |are_made| -> Result<ReadyOperation, NotReady> {
        let names = (0..FILES).map(|n| directory.name(&format!("file{n}"))).collect::<Result<_, _>>()?;
        Ok(ReadyOperation { operation: Box::new(Files { names, are_made }), batch: Batch::Exactly(FILES) })
    };
    Ok(match name {
        "create" => many(true)?,
        "delete" => many(false)?,
        "reread" => {
            let (file, mut block) = (directory.open()?, vec![0; DATA_BYTES]);
            ReadyOperation::each(move || {
                file.read_exact_at(&mut block, 0)?;
                black_box(&block);
                Ok(())
            })
        }
        "mmap_reread" => {
            let file = directory.open()?;
            ReadyOperation::each(move || {
                black_box(Mapping::of_file(&file, DATA_BYTES)?.sum());
                Ok(())
            })
        }
        other => return Err(unknown(other)),
    })
}

/// Creates or removes empty files; the reverse is done between batches.
struct Files {
    names: Vec<CString>,
    are_made: bool,
}

impl Files {
    fn each(&self, n: u64, call: fn(&std::ffi::CStr) -> io::Result<()>) -> io::Result<()> {
        let n = usize::try_from(n).unwrap_or(usize::MAX);
        self.names.iter().take(n).try_for_each(|name| call(name))
    }
}

impl Operation for Files {
    fn prepare(&mut self, n: u64) -> io::Result<()> {
        // An earlier batch may have left them.
        self.names.iter().for_each(|name| drop(calls::unlink(name)));
        if self.are_made { Ok(()) } else { self.each(n, calls::create_and_close) }
    }

    fn run(&mut self, n: u64) -> io::Result<()> {
        self.each(n, if self.are_made { calls::create_and_close } else { calls::unlink })
    }
}
