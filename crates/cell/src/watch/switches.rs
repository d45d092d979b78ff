//! All switches of all CPUs, beside the activity of the watched threads: they tell for whom those waited.

use crate::trace::{EventSet, Instance, PageSource, StackRequest, TraceError, TraceRequest};
use punctual_analysis::watch::WatchedThreads;
use punctual_ftrace::Decoder;
use punctual_model::Span;

/// Switches a second, of all CPUs, that are read at most: half a percent of a CPU.
const MOST: u64 = 50_000;

/// The trace of the switches, as long as there are not too many.
#[derive(Debug)]
pub(super) struct Switches {
    instance: Instance,
    decoder: Decoder,
    pages: Vec<u8>,
    /// Time of the reading before, ns.
    read_ns: u64,
    /// Switches a second, once they were too many.
    too_many: Option<u64>,
}

impl Switches {
    /// Prepares the trace. Errors: where this process has none.
    pub(super) fn create() -> Result<Switches, TraceError> {
        let mut instance = Instance::create_third()?;
        let request =
            TraceRequest { events: EventSet::Switches, pids: None, stacks: StackRequest::Nowhere, idle_states: false };
        let decoder = instance.enable(request)?;
        Ok(Switches { instance, decoder, pages: Vec::new(), read_ns: 0, too_many: None })
    }

    /// Starts it; `None` if that fails.
    pub(super) fn started(mut self) -> Option<Switches> {
        self.instance.start().ok()?;
        self.read_ns = punctual_sys::clock::monotonic().0;
        Some(self)
    }

    /// Reads the switches up to now, and passes them on.
    pub(super) fn read(&mut self, threads: &mut WatchedThreads) {
        if self.too_many.is_some() {
            return;
        }
        let mut trace = self.decoder.begin(self.instance.n_cpus());
        trace.names = std::mem::take(&mut threads.names);
        let mut n = 0;
        for cpu in 0..self.instance.n_cpus() {
            self.pages.clear();
            if self.instance.drain(cpu, self.decoder.page_bytes(), &mut self.pages).is_ok() {
                n += self.decoder.read(&mut trace, cpu, &self.pages).events;
            }
        }
        threads.names = std::mem::take(&mut trace.names);
        let now = punctual_sys::clock::monotonic().0;
        let length = now.saturating_sub(std::mem::replace(&mut self.read_ns, now)).max(1);
        let a_second = n.saturating_mul(Span::SECOND.ns()) / length;
        if a_second > MOST {
            let _ = self.instance.stop();
            self.too_many = Some(a_second);
            threads.occupants_unknown();
            return;
        }
        threads.occupied(&trace.cpus);
    }

    /// The information that is missing since there were too many switches.
    pub(super) fn missing(&self) -> Option<String> {
        let n = self.too_many?;
        Some(format!("names of the threads that had the CPU meanwhile: {n} switches a second, more than {MOST}"))
    }
}
