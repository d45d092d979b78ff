//! The mark of a monitor beside the machine lock: a monitor measures for weeks and pauses for every other measurement.
//!
//! A monitor cannot hold the lock, which would exclude campaigns, and may not measure while another process holds it.
//! The mark is a read lock of another kind (`punctual_sys::lock`) on the same object: it does not exclude the lock, and
//! the holder of the lock sees it and waits until it is gone.

use super::{LockError, MachineLock, POLL_INTERVAL, Places, SHARED_OBJECT, Subject};
use punctual_sys::waited::Waited;
use std::fs::{File, TryLockError};
use std::io;
use std::os::fd::AsRawFd;
use std::time::Duration;

/// Timeout of a monitor's pause: it looks for the lock once a second, and then removes its trace.
pub(super) const PAUSE_TIMEOUT: Duration = Duration::from_secs(10);

/// The mark of this process as a monitor.
#[derive(Debug)]
pub struct MonitorMark {
    /// The objects of the machine lock, opened again: a lock belongs to the open file.
    objects: Vec<File>,
    /// The first one once more, while it carries the mark.
    mark: Option<File>,
}

impl MachineLock {
    fn failed(&self, source: io::Error) -> LockError {
        LockError::File { path: SHARED_OBJECT.into(), is_named: self.locked.len() == 1, source }
    }

    /// Waits until no monitor measures.
    pub(super) fn wait_for_monitor(&self, timeout: Duration) -> Result<(), LockError> {
        let Some(object) = self.locked.first() else { return Ok(()) };
        let mut waited = Waited::begin();
        // A kernel without such locks (before Linux 3.15) has no monitor, either.
        while punctual_sys::lock::is_held(object).unwrap_or(false) {
            if waited.look() >= timeout {
                return Err(LockError::Monitored);
            }
            std::thread::sleep(POLL_INTERVAL);
        }
        Ok(())
    }
}

impl MonitorMark {
    /// Marks this process as the monitor that measures. Errors: when a measurement holds the lock, another monitor
    /// measures, or the lock cannot be used.
    pub fn set() -> Result<MonitorMark, LockError> {
        MonitorMark::set_at(&Places::here(Subject::Machine))
    }

    fn set_at(places: &Places) -> Result<MonitorMark, LockError> {
        let lock = MachineLock::take_at(places, false, Duration::ZERO)?;
        let failed = |source| lock.failed(source);
        let objects = lock.locked.iter().map(open_again).collect::<io::Result<Vec<_>>>().map_err(failed)?;
        let mut mark = MonitorMark { objects, mark: None };
        mark.set_under(&lock)?;
        Ok(mark)
    }

    /// Sets the mark again after a pause. Errors: as [`MonitorMark::set`].
    pub fn set_again(&mut self) -> Result<(), LockError> {
        let lock = MachineLock::take_at(&Places::here(Subject::Machine), false, Duration::ZERO)?;
        self.set_under(&lock)
    }

    /// The holder of the lock alone sets a mark: neither a campaign nor another monitor begins meanwhile.
    fn set_under(&mut self, lock: &MachineLock) -> Result<(), LockError> {
        lock.wait_for_monitor(Duration::ZERO)?;
        let hold = |object: &File| {
            let again = open_again(object)?;
            punctual_sys::lock::hold_shared(&again)?;
            Ok(again)
        };
        self.mark = lock.locked.first().map(hold).transpose().map_err(|source| lock.failed(source))?;
        Ok(())
    }

    /// Removes the mark: this process does not measure any more.
    pub fn clear(&mut self) {
        self.mark = None;
    }

    /// Whether another process has taken the machine lock, or is taking it. The lock is held for a microsecond to find
    /// out; a process that takes it then tries again.
    pub fn is_machine_taken(&self) -> bool {
        self.objects.iter().any(|object| match object.try_lock_shared() {
            Ok(()) => {
                let _ = object.unlock();
                false
            }
            Err(TryLockError::WouldBlock) => true,
            Err(TryLockError::Error(_)) => false,
        })
    }
}

/// The same object with locks of its own.
fn open_again(file: &File) -> io::Result<File> {
    File::open(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

#[cfg(test)]
mod tests {
    use super::super::Places;
    use super::*;
    use crate::testing::Scratch;

    #[test]
    fn a_monitor_excludes_nothing_sees_the_lock_and_is_waited_for() {
        if !punctual_sys::testing::runs_alone() {
            return;
        }
        let scratch = Scratch::make();
        let (object, place) = (scratch.file("object", ""), scratch.path("punctual.lock"));
        for shared in [Some(object), None] {
            let places = Places { shared, files: vec![place.clone()], is_named: false };
            let take = || MachineLock::take_at(&places, false, Duration::ZERO).unwrap();
            let mut mark = MonitorMark::set_at(&places).unwrap();
            assert!(!mark.is_machine_taken());
            assert!(matches!(MonitorMark::set_at(&places), Err(LockError::Monitored)), "one monitor");
            let lock = take();
            assert!(matches!(lock.wait_for_monitor(Duration::ZERO), Err(LockError::Monitored)));
            assert!(matches!(MonitorMark::set_at(&places), Err(LockError::Held { .. })));
            let pausing = std::thread::spawn(move || {
                while !mark.is_machine_taken() {
                    std::thread::yield_now();
                }
                mark.clear();
                mark
            });
            lock.wait_for_monitor(Duration::MAX).unwrap();
            let mut mark = pausing.join().unwrap();
            mark.set_under(&lock).unwrap();
            assert!(lock.wait_for_monitor(Duration::ZERO).is_err());
            drop(mark);
            lock.wait_for_monitor(Duration::ZERO).unwrap();
        }
    }
}
