//! A recording of the whole machine: the events of all threads as raw pages, moved into files while they come.
//!
//! Nothing is decoded here, so that a small board can do it. Events that the kernel has overwritten are marked in the
//! pages.

use crate::CellError;
use crate::trace::{EventSet, Instance, PageSource, StackRequest, TraceRequest};
use punctual_ftrace::{DatHead, Decoder, Machine};
use punctual_host::{HostFs, KernelSymbols, file};
use punctual_model::{Nice, OwnName, Policy, plain};
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Seek, Write};
use std::path::{Path, PathBuf};

/// Name of the thread that moves the pages.
const NAME: &str = OwnName::Record.name();

/// A recording. Dropping it removes the trace, and with it everything that was recorded.
#[derive(Debug)]
pub struct Recording {
    instance: Instance,
    decoder: Decoder,
    directory: PathBuf,
    /// The pages of each CPU with their length, bytes, in files without a name.
    files: Vec<(u64, File)>,
    /// Buffer of the pages that are being moved.
    pages: Vec<u8>,
    /// Pages before which events were lost.
    pub gaps: u64,
    /// Lost events, as far as the kernel has counted them.
    pub lost: u64,
    names: HashMap<i32, String>,
    machine: Machine,
}

impl Recording {
    /// Starts a recording, which the calling thread has to move into files in `directory`, and renames this thread.
    /// Errors: when the kernel cannot be traced, or no file can be created in `directory`.
    pub fn begin(directory: &Path) -> Result<Recording, CellError> {
        punctual_sys::thread::set_name(NAME).map_err(|err| CellError::setting("name a thread", err))?;
        // If permitted: a late reader loses events.
        let _ = punctual_sys::sched::set_policy(0, Policy::Other(Nice::HIGHEST));
        let mut instance = Instance::create()?;
        let host = punctual_host::snapshot(&HostFs::here());
        let idle_states = !host.power.idle_states.is_empty();
        let request =
            TraceRequest { events: EventSet::Everything, pids: None, stacks: StackRequest::Sleeps, idle_states };
        let decoder = instance.enable(request)?;
        instance.without_calls_of(NAME)?;
        let new = |_| file::without_name(directory).map(|file| (0, file)).map_err(unwritten(directory));
        let mut recording = Recording {
            files: (0..instance.n_cpus()).map(new).collect::<Result<_, _>>()?,
            instance,
            decoder,
            directory: directory.to_owned(),
            pages: Vec::new(),
            gaps: 0,
            lost: 0,
            names: HashMap::new(),
            machine: Machine {
                version: env!("CARGO_PKG_VERSION").to_owned(),
                architecture: std::env::consts::ARCH.to_owned(),
                kernel: host.kernel_release.unwrap_or_default(),
                hypervisor: host.hypervisor,
                idle_states,
            },
        };
        recording.add_names();
        recording.instance.start()?;
        Ok(recording)
    }

    /// The number of CPUs, by the highest CPU number.
    pub fn n_cpus(&self) -> usize {
        self.files.len()
    }

    /// Moves the pages that were recorded meanwhile; returns the bytes of all pages so far. Errors: when they cannot be
    /// read or kept.
    pub fn drain(&mut self) -> Result<u64, CellError> {
        for (cpu, (length, file)) in self.files.iter_mut().enumerate() {
            self.pages.clear();
            let read = self.instance.drain(cpu, self.decoder.page_bytes(), &mut self.pages);
            read.map_err(|err| CellError::setting(&format!("read the trace of CPU {cpu}"), err))?;
            let (gaps, lost) = self.decoder.lost(&self.pages);
            (self.gaps, self.lost) = (self.gaps + gaps, self.lost + lost);
            file.write_all(&self.pages).map_err(unwritten(&self.directory))?;
            *length += self.pages.len() as u64;
        }
        Ok(self.files.iter().map(|(length, _)| length).sum())
    }

    /// Stops the recording; returns the bytes of all pages. Errors: as [`Recording::drain`].
    pub fn stop(&mut self) -> Result<u64, CellError> {
        self.instance.stop()?;
        let bytes = self.drain()?;
        self.add_names();
        Ok(bytes)
    }

    /// Writes it as a file of trace-cmd, after [`Recording::stop`]. The space of the pages of a CPU is free again once
    /// they are written. Errors: when it cannot be written, or the pages cannot be read.
    pub fn write(mut self, out: &mut impl Write) -> io::Result<()> {
        self.files.iter_mut().try_for_each(|(_, file)| file.rewind())?;
        let head = DatHead {
            layouts: self.instance.layouts().clone(),
            names: self.names,
            functions: KernelSymbols::read().all(),
            machine: Some(self.machine),
            ..DatHead::default()
        };
        drop(self.instance);
        head.write(out, vec![("", self.files)])
    }

    /// Adds the names of all threads, and of those that the kernel remembers.
    fn add_names(&mut self) {
        let clean = |name: String| plain(name.trim_end()).into_owned();
        self.names.extend(self.instance.kept_names().into_iter().map(|(pid, name)| (pid, clean(name))));
        // Threads have other numbers in a container.
        for pid in if punctual_host::is_initial_pid_namespace() { punctual_host::processes() } else { Vec::new() } {
            let named = |tid: u32| Some((i32::try_from(tid).ok()?, clean(punctual_host::name_of_thread(pid, tid)?)));
            self.names.extend(punctual_host::threads_of(pid).into_iter().filter_map(named));
        }
    }
}

/// The error for a directory in which the pages cannot be kept.
fn unwritten(directory: &Path) -> impl Fn(io::Error) -> CellError {
    move |err| CellError::Setting(format!("cannot write to {}: {err}", directory.display()))
}
