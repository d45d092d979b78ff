//! Readings of a guest's clock between two readings of this machine's, through shared memory.
//!
//! Shared memory takes neither side into its kernel.
//!
//! The guest announces an exchange by its number. The lab then writes a counter, again and again; the guest answers
//! each with its clock.

use super::protocol::{SHARED_MARKS, SHARED_RESULT};
use super::{LabError, channel};
use punctual_model::ClockMark;
use punctual_sys::registers::Registers;
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

/// Words of the shared memory: the number of the exchange, the counter, its copy, and the guest's clock.
const EXCHANGE: usize = SHARED_MARKS;
const COUNTER: usize = SHARED_MARKS + 8;
const COPY: usize = SHARED_MARKS + 16;
const CLOCK: usize = SHARED_MARKS + 24;

/// Readings of an exchange: the shortest counts.
const READINGS: u64 = 64;
/// Counter that ends an exchange.
const END: u64 = u64::MAX;
/// Limits of one reading and of an exchange: a busy machine may keep either side waiting.
const READING_LIMIT: Duration = Duration::from_millis(20);
const EXCHANGE_LIMIT: Duration = Duration::from_secs(2);
/// Interval at which the lab looks for an exchange: the guest shares the machine with it.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Pause of a guest that waits for the lab: its CPU may be the one that the lab needs.
const PAUSE: Duration = Duration::from_millis(1);
/// Time for which the guest waits for the next counter without a pause.
const SPIN: Duration = Duration::from_micros(300);

/// The readings at the start and at the end of a measurement.
pub(super) type Readings = [Vec<ClockMark>; 2];

/// Carries out an exchange in the guest. Without the lab it ends by itself. Errors: without shared memory.
pub(super) fn exchange(number: u64) -> io::Result<()> {
    channel::with_memory(|memory| {
        let word = |at| memory.read_u64(at).unwrap_or(END);
        let began = Instant::now();
        let (mut last, mut since) = (word(COUNTER), began);
        memory.write_u64(EXCHANGE, number);
        while began.elapsed() < EXCHANGE_LIMIT {
            let counter = word(COUNTER);
            if counter != last {
                if counter == END {
                    break;
                }
                memory.write_u64(CLOCK, punctual_sys::clock::monotonic().0);
                memory.write_u64(COPY, counter);
                (last, since) = (counter, Instant::now());
            } else if since.elapsed() > SPIN {
                std::thread::sleep(PAUSE);
            }
        }
    })
}

/// The lab's side: a thread that answers exchanges until it is asked for the readings, or dropped.
#[derive(Debug)]
pub(super) struct ClockMarks {
    is_over: Arc<AtomicBool>,
    reader: Option<JoinHandle<Readings>>,
}

impl ClockMarks {
    /// Starts the thread, on the shared memory in file `path`. Errors: if the file cannot be mapped, or no thread can
    /// be created.
    pub(super) fn start(path: &Path) -> Result<ClockMarks, LabError> {
        let file = File::options().read(true).write(true).open(path).map_err(|err| LabError::file(path, err))?;
        let memory = Registers::map(&file, SHARED_RESULT).map_err(|err| LabError::file(path, err))?;
        let is_over = Arc::new(AtomicBool::new(false));
        let asked = Arc::clone(&is_over);
        let reader = Builder::new().name("clock-marks".to_owned()).spawn(move || read(&memory, &asked));
        let reader = reader.map_err(|err| LabError::program("lab", punctual_host::no_thread(&err)))?;
        Ok(ClockMarks { is_over, reader: Some(reader) })
    }

    /// Ends the thread; returns the readings of both exchanges.
    pub(super) fn finish(mut self) -> Readings {
        self.is_over.store(true, Relaxed);
        self.reader.take().and_then(|reader| reader.join().ok()).unwrap_or_default()
    }
}

impl Drop for ClockMarks {
    fn drop(&mut self) {
        self.is_over.store(true, Relaxed);
    }
}

fn read(memory: &Registers, is_over: &AtomicBool) -> Readings {
    let mut readings = Readings::default();
    let mut counter = 0;
    for (number, marks) in (1..).zip(&mut readings) {
        while memory.read_u64(EXCHANGE) != Some(number) {
            if is_over.load(Relaxed) {
                return readings;
            }
            std::thread::sleep(POLL_INTERVAL);
        }
        let began = Instant::now();
        for _ in 0..READINGS {
            counter += 1;
            let before = punctual_sys::clock::monotonic();
            memory.write_u64(COUNTER, counter);
            let written = Instant::now();
            while memory.read_u64(COPY) != Some(counter) && written.elapsed() < READING_LIMIT {
                std::hint::spin_loop();
            }
            let after = punctual_sys::clock::monotonic();
            if let Some(guest_ns) = memory.read_u64(CLOCK).filter(|_| memory.read_u64(COPY) == Some(counter)) {
                marks.push(ClockMark { before_ns: before.0, after_ns: after.0, guest_ns });
            }
            if began.elapsed() > EXCHANGE_LIMIT {
                break;
            }
        }
        memory.write_u64(COUNTER, END);
        memory.write_u64(EXCHANGE, 0);
    }
    readings
}
