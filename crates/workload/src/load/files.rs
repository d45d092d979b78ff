//! Loads that work on files: `disk`, `files`, and the operations of the cost suite.

use super::workers::Workers;
use super::{count_one, count_several};
use crate::cost::{self, Times};
use punctual_model::FileLoad;
use punctual_sys::mount;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::path::Path;
use std::sync::atomic::AtomicU64;

/// Bytes of one file of `disk`, and of one write.
pub(super) const FILE_BYTES: u64 = 1 << 20;
const WRITE_BYTES: usize = 64 * 1024;
/// Files that `files` makes before it removes them.
const FILES: u32 = 100;

/// Forks a worker for each of `n_cpus` CPUs, with distinct names in the directory.
pub(super) fn start(
    workers: &mut Workers<'_>,
    work: FileLoad,
    n_cpus: usize,
    times: Option<&Times>,
) -> Result<(), String> {
    let directory = workers.directory.ok_or("no directory")?;
    (0..n_cpus).try_for_each(|counter| {
        workers.fork(Some(counter), |count| {
            let outcome = match work {
                FileLoad::Disk => disk(&directory.join(counter.to_string()), count),
                FileLoad::Files => files(directory, counter, count),
                // Its errors name the operation, and the directory where that is the reason.
                FileLoad::Cost => return operations(&directory.join(counter.to_string()), counter, count, times),
            };
            let place = directory.parent().unwrap_or(directory).display();
            outcome.map_err(|err| io::Error::other(format!("in {place}: {err}; name another directory")))
        })
    })
}

/// Runs the cost suite, with the times of its operations.
fn operations(directory: &Path, worker: usize, count: Option<&AtomicU64>, times: Option<&Times>) -> io::Result<()> {
    // Semaphores and queues then end with this process, whatever kills it. Without the permission, `recover` finds the
    // former.
    let _ = mount::unshare_ipc();
    let times = times.ok_or_else(|| io::Error::other("no memory for the times of its operations"))?;
    cost::for_ever(directory, &|n| count_several(count, n), &mut times.recorder(worker))
}

/// Writes a file, reads it, syncs it, removes it. Its name is removed at once, so that it is gone whenever this ends.
fn disk(path: &Path, count: Option<&AtomicU64>) -> io::Result<()> {
    let block = vec![1_u8; WRITE_BYTES];
    let mut contents = vec![0_u8; WRITE_BYTES];
    let blocks = FILE_BYTES / WRITE_BYTES as u64;
    loop {
        let mut file = OpenOptions::new().read(true).write(true).create_new(true).open(path)?;
        std::fs::remove_file(path)?;
        for _ in 0..blocks {
            file.write_all(&block)?;
        }
        file.rewind()?;
        for _ in 0..blocks {
            file.read_exact(&mut contents)?;
        }
        file.sync_all()?;
        drop(file);
        count_one(count);
    }
}

/// Creates empty files, stats each, removes them.
fn files(directory: &Path, worker: usize, count: Option<&AtomicU64>) -> io::Result<()> {
    let paths: Vec<_> = (0..FILES).map(|file| directory.join(format!("{worker}-{file}"))).collect();
    loop {
        for path in &paths {
            File::create_new(path)?;
        }
        for path in &paths {
            path.symlink_metadata()?;
        }
        for path in &paths {
            std::fs::remove_file(path)?;
            count_one(count);
        }
    }
}
