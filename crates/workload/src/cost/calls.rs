//! Groups `syscall` and `signal`: operations of a single process.

use super::{Batch, Directory, NotReady, Operation, ReadyOperation, file, open_device, unknown};
use punctual_sys::calls::{self, FileSet};
use punctual_sys::signal_handler::{CallingThread, Faults, Handler};
use std::fs::File;
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::AsFd;

pub(crate) fn make(name: &str, directory: &Directory) -> Result<ReadyOperation, NotReady> {
    let data = directory.name(file::DATA)?;
    Ok(match name {
        "syscall/null" => ReadyOperation::each(|| {
            calls::null();
            Ok(())
        }),
        "syscall/read" => {
            let (mut zero, mut byte) = (open_device(File::options().read(true), "/dev/zero")?, [0]);
            ReadyOperation::each(move || zero.read_exact(&mut byte))
        }
        "syscall/write" => {
            let mut null = open_device(File::options().write(true), "/dev/null")?;
            ReadyOperation::each(move || null.write_all(&[1]))
        }
        "syscall/stat" => ReadyOperation::each(move || calls::stat(&data)),
        "syscall/fstat" => {
            let file = directory.open()?;
            ReadyOperation::each(move || calls::fstat(file.as_fd()))
        }
        "syscall/open_close" => ReadyOperation::each(move || calls::open_and_close(&data)),
        "syscall/select_10" => select(10)?,
        "syscall/select_100" => select(100)?,
        "syscall/poll_10" => poll(10)?,
        "syscall/poll_100" => poll(100)?,
        "signal/install" => {
            let handler = Handler::counting()?;
            ReadyOperation::each(move || handler.install())
        }
        "signal/deliver" => {
            let (handler, me) = (Handler::counting()?, CallingThread::now());
            ReadyOperation::each(move || handler.send(&me))
        }
        "signal/fault" => {
            ReadyOperation { operation: Box::new(WrongWrites(Faults::new()?)), batch: Batch::Exactly(FAULTS) }
        }
        other => return Err(unknown(other)),
    })
}

/// Faults between two calls that protect the page.
const FAULTS: u64 = 64;

struct WrongWrites(Faults);

impl Operation for WrongWrites {
    fn run(&mut self, n: u64) -> io::Result<()> {
        self.0.take(n)
    }
}

/// Pipes that stay empty: both ends of each are kept, because a pipe without a writer is readable at its end.
fn pipes(n: usize) -> io::Result<(Vec<PipeWriter>, FileSet<PipeReader>)> {
    let pipes = (0..n).map(|_| io::pipe()).collect::<Result<Vec<_>, _>>()?;
    let (readers, writers) = pipes.into_iter().unzip();
    Ok((writers, FileSet::new(readers)?))
}

fn select(n: usize) -> io::Result<ReadyOperation> {
    let (writers, watched) = pipes(n)?;
    Ok(ReadyOperation::each(move || none_of(&writers, watched.select()?)))
}

fn poll(n: usize) -> io::Result<ReadyOperation> {
    let (writers, mut watched) = pipes(n)?;
    Ok(ReadyOperation::each(move || none_of(&writers, watched.poll()?)))
}

/// Checks that no pipe is ready: empty pipes are not readable.
fn none_of(_: &[PipeWriter], ready: usize) -> io::Result<()> {
    if ready == 0 { Ok(()) } else { Err(io::Error::other("an empty pipe was reported readable")) }
}
