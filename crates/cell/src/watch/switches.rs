//! Events of all CPUs beside the activity of the watched threads: switches, and packets.

use crate::trace::{EventSet, Instance, PageSource, StackRequest, TraceError, TraceRequest};
use punctual_analysis::watch::WatchedThreads;
use punctual_ftrace::Decoder;
use punctual_model::Span;

/// Events a second, of all CPUs, that are read at most: half a percent of a CPU for switches, and twice that for
/// packets, of which each has six.
const MOST_SWITCHES: u64 = 50_000;
const MOST_OF_PACKETS: u64 = 100_000;

/// The trace of such events, as long as there are not too many: the switches tell for whom threads waited, the packets
/// what woke them.
#[derive(Debug)]
pub(super) struct Switches {
    events: EventSet,
    instance: Instance,
    decoder: Decoder,
    pages: Vec<u8>,
    /// Names of network devices so far.
    devices: Vec<String>,
    /// Time of the reading before, ns.
    read_ns: u64,
    /// Events a second, once they were too many.
    too_many: Option<u64>,
}

impl Switches {
    /// Prepares the trace of the switches. Errors: where this process has none.
    pub(super) fn create() -> Result<Switches, TraceError> {
        Switches::of(EventSet::Switches, 3)
    }

    /// Starts the trace of the packets in the middle of a measurement. Errors: as [`Switches::create`].
    pub(super) fn of_packets(threads: &mut WatchedThreads) -> Result<Switches, TraceError> {
        let started = Switches::of(EventSet::Packets, 4)?.started()?;
        threads.packets_begin(started.instance.n_cpus(), started.read_ns);
        Ok(started)
    }

    fn of(events: EventSet, number: u8) -> Result<Switches, TraceError> {
        let mut instance = Instance::create_further(number)?;
        let request = TraceRequest { events, pids: None, stacks: StackRequest::Nowhere, idle_states: false };
        let decoder = instance.enable(request)?;
        let (pages, devices) = Default::default();
        Ok(Switches { events, instance, decoder, pages, devices, read_ns: 0, too_many: None })
    }

    /// Starts it. Errors: when the kernel refuses.
    pub(super) fn started(mut self) -> Result<Switches, TraceError> {
        self.instance.start()?;
        self.read_ns = punctual_sys::clock::monotonic().0;
        Ok(self)
    }

    /// Reads the events up to now, and passes them on.
    pub(super) fn read(&mut self, threads: &mut WatchedThreads) {
        if self.too_many.is_some() {
            return;
        }
        let now = punctual_sys::clock::monotonic().0;
        let mut trace = self.decoder.begin(self.instance.n_cpus());
        trace.names = std::mem::take(&mut threads.names);
        trace.devices = std::mem::take(&mut self.devices);
        let mut n = 0;
        for cpu in 0..self.instance.n_cpus() {
            self.pages.clear();
            if self.instance.drain(cpu, self.decoder.page_bytes(), &mut self.pages).is_ok() {
                n += self.decoder.read(&mut trace, cpu, &self.pages).events;
            }
        }
        threads.names = std::mem::take(&mut trace.names);
        let length = now.saturating_sub(std::mem::replace(&mut self.read_ns, now)).max(1);
        let a_second = n.saturating_mul(Span::SECOND.ns()) / length;
        let is_of_packets = self.events == EventSet::Packets;
        if a_second > if is_of_packets { MOST_OF_PACKETS } else { MOST_SWITCHES } {
            let _ = self.instance.stop();
            self.too_many = Some(a_second);
            if is_of_packets { threads.packets_end() } else { threads.occupants_unknown() }
        } else if is_of_packets {
            threads.packets(now, &mut trace);
            self.devices = trace.devices;
        } else {
            threads.occupied(&trace.cpus);
        }
    }

    /// The information that is missing since there were too many events.
    pub(super) fn missing(&self) -> Option<String> {
        let n = self.too_many?;
        Some(if self.events == EventSet::Packets {
            format!("packets that released threads: {n} events of them a second, more than {MOST_OF_PACKETS}")
        } else {
            format!("names of the threads that had the CPU meanwhile: {n} switches a second, more than {MOST_SWITCHES}")
        })
    }
}
