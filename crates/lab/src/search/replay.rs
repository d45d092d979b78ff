//! The film of a wake-up of a recorded cell: the same guest again, its execution logged around the due time.
//!
//! A stop of QEMU would move virtual time. Commands to its monitor while the guest runs do so only if they come just
//! when its CPU halts. So the log is turned on before the due time and off after the wake-up, while the guest goes on
//! to its end; if its record is not the same to the byte, another guest is tried.

use super::super::qemu::{Qemu, QemuError};
use super::super::{LabError, Monitor, directories, measure, snapshot};
use super::clock::GuestTime;
use super::film::{self, Wake};
use super::{OneCpu, Search, Symbols};
use crate::machine::Files;
use crate::protocol::Job;
use punctual_model::{Film, Record, Span, Worst};
use std::time::Duration;

/// Longest time that is logged before the due time at first, ns: a clock tick of 250 Hz, at which QEMU's time is known.
const LONGEST_AHEAD_NS: u64 = 5_000_000;
/// Guests that are tried, and how many times earlier the log begins if it was turned on too late.
const ATTEMPTS: u32 = 10;
const EARLIER: u64 = 4;
/// Instructions are executed one by one so many times longer before: slowly, so that the log can be turned on in time.
const SLOW: u64 = 8;
/// Pause between looks at a guest that is far from the due time.
const LOOK_INTERVAL: Duration = Duration::from_millis(1);
/// Time after which the wake-up is over, ns.
const MARGIN_NS: u64 = 200_000;

/// What came of a guest.
enum Logged {
    Film(Film),
    /// The log began too late.
    Late(LabError),
    /// Its record is not that of the run.
    Different,
}

impl Search {
    /// Films this wake-up of a record of the cell in this block. Errors: if the guest of this program is not that of
    /// the record, or its record differs, or the wake-up is not one after a timer.
    pub fn film_again(
        &self,
        block: u32,
        record: &Record,
        worst: Worst,
        symbols: &Symbols,
        monitor: Monitor<'_>,
    ) -> Result<Film, LabError> {
        self.setup.is_of(record)?;
        let latency_ns = u64::try_from(worst.latency_ns).unwrap_or(0);
        if latency_ns > film::LONGEST_NS {
            let [late, most] = [latency_ns, film::LONGEST_NS].map(Span);
            return Err(LabError::program("lab film", format!("unsupported: a wake-up {late} late; {most} at most")));
        }
        let [monotonic_ns, elapsed_ns] = symbols.clock_ns;
        let period_ns = self.cell.period.ns();
        let due_ns = record.started.0.saturating_add(worst.cycle.saturating_mul(period_ns));
        let due_ns = (due_ns + elapsed_ns).saturating_sub(monotonic_ns);
        let mut ahead_ns = (2 * period_ns).min(LONGEST_AHEAD_NS);
        let mut failed = LabError::program("lab film", "the record of each guest differs from that of the run");
        for _ in 0..ATTEMPTS {
            let [slow_ns, from_ns] = [SLOW * ahead_ns, ahead_ns].map(|ahead_ns| due_ns.saturating_sub(ahead_ns));
            let times_ns = [slow_ns, from_ns, due_ns + latency_ns + MARGIN_NS];
            match self.logged(block, record, times_ns, latency_ns, symbols, monitor)? {
                Logged::Film(film) => return Ok(film),
                Logged::Late(err) => (ahead_ns, failed) = (ahead_ns.saturating_mul(EARLIER), err),
                Logged::Different => {}
            }
        }
        Err(failed)
    }

    /// The film, from a guest that executes instructions one by one, is logged and no longer logged from these times
    /// on, counted from its rest.
    fn logged(
        &self,
        block: u32,
        record: &Record,
        [slow_ns, from_ns, to_ns]: [u64; 3],
        latency_ns: u64,
        symbols: &Symbols,
        monitor: Monitor<'_>,
    ) -> Result<Logged, LabError> {
        let (job, limits) = (measure::job(&self.cell, self.setup.clock, block), self.limits(monitor));
        let _one_cpu = OneCpu::take();
        let saved = snapshot::ready(&self.setup, limits)?;
        let place = directories::for_guest()?;
        let files = self.setup.files_below(place.path(), Some(&job))?;
        let log = files.beside("log");
        let to_log = ["-D".into(), log.clone().into()];
        let mut qemu = self.setup.start(&files, snapshot::arguments(&saved).chain(to_log))?;
        let watch = |qemu: &mut Qemu| {
            snapshot::enter(qemu, &saved.devices(), limits)?;
            let mut time = GuestTime::begin(qemu, limits)?;
            snapshot::start(qemu, limits)?;
            let mut until = |qemu: &mut Qemu, ns: u64| {
                loop {
                    if time.elapsed_ns(qemu, limits)? >= ns {
                        return Ok::<(), QemuError>(());
                    }
                    std::thread::sleep(LOOK_INTERVAL);
                }
            };
            until(qemu, slow_ns)?;
            film::step_singly(qemu, true, limits)?;
            until(qemu, from_ns)?;
            film::log(qemu, true, limits)?;
            until(qemu, to_ns)?;
            film::log(qemu, false, limits)?;
            film::step_singly(qemu, false, limits)?;
            qemu.wait(limits)
        };
        // It may end before the log was turned on or off.
        watch(&mut qemu).or_else(QemuError::unless_ended_by_guest).map_err(|gone| self.failed(&files, gone))?;
        if !self.is_same(&files, &job, record)? {
            return Ok(Logged::Different);
        }
        Ok(film::read(&log, latency_ns, Wake::First, symbols)
            .map_or_else(|err| Logged::Late(LabError::program("lab film", err)), |footage| Logged::Film(footage.film)))
    }

    /// Whether the guest's record is this one. Errors: if it has none.
    fn is_same(&self, files: &Files, job: &Job, record: &Record) -> Result<bool, LabError> {
        let [again, before] = [&self.setup.record(files, job)?, record].map(serde_json::to_string);
        Ok(again.is_ok_and(|again| before.is_ok_and(|before| again == before)))
    }
}
