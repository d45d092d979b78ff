//! A guest saved just before one of its waits, from where it goes on with the due time moved.

use super::super::memory::{self, Memory};
use super::super::qemu::QemuError;
use super::super::{LabError, Monitor, directories, snapshot};
use super::film::{self, Footage, Wake};
use super::{NO_CYCLE, OneCpu, Search, Symbols};
use crate::protocol::Job;
use punctual_host::PrivateDirectory;
use punctual_model::Film;
use punctual_sys::guest_ports::MOVED;
use std::path::PathBuf;

/// A guest saved before the wait of one cycle.
#[expect(missing_debug_implementations, reason = "its memory has nothing to show")]
pub struct Approach<'a> {
    search: &'a Search,
    job: Job,
    memory: Memory,
    /// Has the state of its devices.
    place: PrivateDirectory,
}

/// A wake-up of a moved due time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Woken {
    /// Due time of the schedule, which was not moved, `CLOCK_MONOTONIC`, ns.
    pub due_ns: u64,
    /// The clock reading after it.
    pub woke_ns: u64,
    /// The clock reading before its wait.
    pub waits_ns: u64,
}

impl Search {
    /// Runs the cell up to the wait of this cycle, counted from the first of the warm-up, and saves the guest in
    /// memory. Errors: as for a record, and if the cycle is missed.
    pub fn approach(&self, block: u32, cycle: u64, monitor: Monitor<'_>) -> Result<Approach<'_>, LabError> {
        let (job, limits) = (self.job(block, cycle.min(NO_CYCLE - 1)), self.limits(monitor));
        let _one_cpu = OneCpu::take();
        let saved = snapshot::ready(&self.setup, limits)?;
        let place = directories::for_guest()?;
        let guest = directories::for_guest()?;
        let files = self.setup.files_below(guest.path(), Some(&job))?;
        let failed = |err| LabError::file(&saved.memory(), err);
        let memory = Memory::copy_of(&saved.memory()).map_err(failed)?;
        let incoming = snapshot::incoming(memory.arguments());
        let mut qemu = self.setup.start(&files, files.moving(0, true)?.into_iter().chain(incoming))?;
        let devices = place.path().join("devices");
        let resumed = snapshot::resume(&mut qemu, &saved.devices(), limits);
        let paused = resumed.and_then(|()| snapshot::save_when_paused(&mut qemu, &devices, limits));
        paused.map_err(|gone| match gone {
            QemuError::Exited { .. } => self.setup.not_reached(cycle),
            gone => self.setup.failed(&files, gone),
        })?;
        Ok(Approach { search: self, job, memory, place })
    }
}

impl Approach<'_> {
    fn devices(&self) -> PathBuf {
        self.place.path().join("devices")
    }

    /// Lets a copy of the guest go on, its due time moved earlier by so much, until it has woken.
    pub fn wake(&self, earlier_ns: u64, monitor: Monitor<'_>) -> Result<Woken, LabError> {
        self.go_on(earlier_ns, None, monitor).map(|(woken, _)| woken)
    }

    /// As [`Approach::wake`], with the execution from the due time on.
    pub fn film(&self, earlier_ns: u64, symbols: &Symbols, monitor: Monitor<'_>) -> Result<(Woken, Film), LabError> {
        self.footage(earlier_ns, symbols, monitor).map(|(woken, footage)| (woken, footage.film))
    }

    /// As [`Approach::film`], with a guess where the delay begins.
    pub(super) fn footage(
        &self,
        earlier_ns: u64,
        symbols: &Symbols,
        monitor: Monitor<'_>,
    ) -> Result<(Woken, Footage), LabError> {
        let (woken, footage) = self.go_on(earlier_ns, Some(symbols), monitor)?;
        footage.map(|footage| (woken, footage)).ok_or_else(|| LabError::program("lab", "no execution log"))
    }

    fn go_on(
        &self,
        earlier_ns: u64,
        symbols: Option<&Symbols>,
        monitor: Monitor<'_>,
    ) -> Result<(Woken, Option<Footage>), LabError> {
        let (setup, limits) = (&self.search.setup, self.search.limits(monitor));
        let _one_cpu = OneCpu::take();
        let guest = directories::for_guest()?;
        let files = setup.files_below(guest.path(), Some(&self.job))?;
        let log = files.beside("log");
        let logged = symbols.map(|_| ["-D".into(), log.clone().into()]).into_iter().flatten();
        let more = files.moving(earlier_ns, true)?.into_iter().chain(logged);
        let more = more.chain(snapshot::incoming(memory::of_open(&self.memory)));
        let mut qemu = setup.start(&files, more)?;
        let ended = snapshot::enter(&mut qemu, &self.devices(), limits).and_then(|()| {
            if symbols.is_some() {
                film::step_singly(&mut qemu, true, limits)?;
                film::log(&mut qemu, true, limits)?;
            }
            snapshot::start(&mut qemu, limits)?;
            qemu.wait(limits)
        });
        ended.map_err(|gone| self.search.failed(&files, gone))?;
        let woken = setup.result(&files, MOVED)?;
        let mut numbers = woken.split(' ').map_while(|text| u64::from_str_radix(text, 16).ok());
        let woken = (|| Some(Woken { due_ns: numbers.next()?, woke_ns: numbers.next()?, waits_ns: numbers.next()? }))();
        let woken = woken.ok_or_else(|| LabError::program("lab", "the guest reported no wake-up"))?;
        let latency_ns = woken.woke_ns.saturating_sub(woken.due_ns.saturating_sub(earlier_ns));
        let film = symbols.map(|symbols| film::read(&log, latency_ns, Wake::Last, symbols)).transpose();
        Ok((woken, film.map_err(|reason| setup.error(reason))?))
    }
}
