//! This machine beside a guest that measures: its load, and the scheduling of the guest's threads.
//!
//! A process of its own (`punctual cell --beside-guest`), because a load is forked from a process with one thread, and
//! ends with it. The campaign writes a [`Request`] and a line of [`Window`]s to its stdin, each a line of JSON, and
//! reads [`READY`] and an [`Answer`] from its stdout.

use crate::CellError;
use crate::trace::{EventSet, Instance, PageSource, StackRequest, TraceError, TraceRequest};
use punctual_analysis::explain::{LanePiece, LaneState, Lanes, Trace, What, has_room_for_name};
use punctual_ftrace::Decoder;
use punctual_model::{
    CpuSet, GuestTids, HostLanes, HostPiece, HostState, Load, LoadRecord, Nice, Order, OwnName, Owner, Policy,
    RtPriority, Span,
};
use punctual_workload::load::{self, LoadMonitor, Place, Running};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

/// Line that says that load and trace run.
pub const READY: &str = "ready";

/// Interval at which the trace is read: half a second of a busy machine fits its buffer.
const DRAIN_INTERVAL: Duration = Duration::from_millis(100);
/// Interval at which the load is read.
const TICK: Duration = Duration::from_secs(1);

/// What runs beside the guest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// Load of this machine.
    pub load: Load,
    /// Limit of the load, which then ends by itself.
    pub at_most: Span,
    /// Threads of the guest whose scheduling is traced.
    pub threads: Option<GuestTids>,
}

/// A wake-up of the guest, by this machine's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Window {
    /// Number of the vCPU.
    pub vcpu: u32,
    /// Due time, `CLOCK_MONOTONIC`, ns.
    pub due_ns: u64,
    /// Latency, ns.
    pub latency_ns: u64,
}

/// What happened beside the guest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// Activity of each part of the load.
    pub loads: Vec<LoadRecord>,
    /// The guest's threads in each window, in order; the reason where none was traced.
    pub lanes: Result<Vec<HostLanes>, String>,
}

/// The load and the trace of this machine. Dropping it ends both.
#[derive(Debug)]
pub struct BesideGuest {
    loads: Vec<Running>,
    monitors: Vec<LoadMonitor>,
    since: punctual_model::MonoTime,
    last: punctual_model::MonoTime,
    trace: Option<Result<Tracer, String>>,
}

impl BesideGuest {
    /// Starts what is requested. Call it while this process has one thread. Errors: when the load does not run. A trace
    /// that cannot be started is named in the answer.
    pub fn start(request: &Request) -> Result<BesideGuest, CellError> {
        let allowed: CpuSet = punctual_sys::sched::affinity(0).map_err(|err| CellError::Impossible(err.to_string()))?;
        let place = Place { cpus: &allowed, policy: Policy::OTHER, at_most: request.at_most };
        let loads = load::start(&request.load, &place)?;
        let trace = request.threads.as_ref().map(|threads| Tracer::start(threads).map_err(|err| err.to_string()));
        let now = punctual_sys::clock::monotonic();
        let monitors = loads.iter().map(|load| LoadMonitor::begin(load, None)).collect();
        Ok(BesideGuest { loads, monitors, since: now, last: now, trace })
    }

    /// Reads the load once a second until `is_over`. Errors: when the load has ended before it was read for the first
    /// time.
    pub fn watch(&mut self, is_over: &dyn Fn(Duration) -> bool) -> Result<(), CellError> {
        if let Some((load, reason)) = self.loads.iter().find_map(|load| Some((load, load.failure()?))) {
            return Err(load.error(reason).into());
        }
        loop {
            let ends = is_over(TICK);
            let now = punctual_sys::clock::monotonic();
            let (at, elapsed) = (Span(now.0 - self.since.0), Span(now.0 - self.last.0));
            self.last = now;
            self.monitors
                .iter_mut()
                .zip(&self.loads)
                .try_for_each(|(monitor, load)| monitor.read(load, at, elapsed))?;
            if ends {
                return Ok(());
            }
        }
    }

    /// Ends load and trace, and answers for each window.
    pub fn answer(mut self, windows: &[Window]) -> Answer {
        let loads = self.monitors.iter().map(LoadMonitor::record).collect();
        self.loads.clear();
        let lanes = match self.trace.take() {
            None => Err("no trace was requested".to_owned()),
            Some(Err(reason)) => Err(reason),
            Some(Ok(tracer)) => tracer.lanes(windows),
        };
        Answer { loads, lanes }
    }
}

/// The running trace of the guest's threads.
#[derive(Debug)]
struct Tracer {
    threads: GuestTids,
    is_over: Arc<AtomicBool>,
    reader: Option<JoinHandle<Result<Scheduling, String>>>,
}

/// Everything that the trace has shown.
struct Scheduling {
    lanes: Lanes,
    names: HashMap<i32, String>,
}

impl Tracer {
    fn start(threads: &GuestTids) -> Result<Tracer, TraceError> {
        if !punctual_host::is_initial_pid_namespace() {
            let reason = "threads of a container have other IDs in the trace; run it outside";
            return Err(TraceError::Process(std::io::Error::other(reason)));
        }
        let all = threads.vcpus.iter().chain([&threads.emulator]);
        let pids: Vec<i32> = all.filter_map(|tid| i32::try_from(*tid).ok()).collect();
        let mut instance = Instance::create()?;
        let request = TraceRequest {
            events: EventSet::Scheduling,
            pids: Some(&pids),
            stacks: StackRequest::Nowhere,
            idle_states: false,
        };
        let decoder = instance.enable(request)?;
        instance.start()?;
        let is_over = Arc::new(AtomicBool::new(false));
        let reader = {
            let is_over = Arc::clone(&is_over);
            let lanes = Lanes::new(&pids, instance.n_cpus());
            let reader = Reader { instance, decoder, lanes, names: HashMap::new(), early: Vec::new() };
            Builder::new().name(OwnName::Trace.to_string()).spawn(move || reader.run(&is_over))
        };
        Ok(Tracer { threads: threads.clone(), is_over, reader: Some(reader.map_err(TraceError::Process)?) })
    }

    fn lanes(mut self, windows: &[Window]) -> Result<Vec<HostLanes>, String> {
        self.is_over.store(true, Relaxed);
        let reader = self.reader.take().ok_or("the trace has ended")?;
        let seen = reader.join().map_err(|_| "the trace was not read to its end")??;
        let of = |tid: Option<&u32>, window: &Window| {
            let pid = tid.and_then(|tid| i32::try_from(*tid).ok()).unwrap_or(-1);
            let to_ns = window.due_ns.saturating_add(window.latency_ns);
            let pieces = seen.lanes.between(pid, window.due_ns, to_ns);
            pieces.iter().map(|piece| seen.piece(piece, window.due_ns)).collect()
        };
        let lanes = |window: &Window| HostLanes {
            vcpu: of(usize::try_from(window.vcpu).ok().and_then(|vcpu| self.threads.vcpus.get(vcpu)), window),
            emulator: of(Some(&self.threads.emulator), window),
        };
        Ok(windows.iter().map(lanes).collect())
    }
}

impl Drop for Tracer {
    fn drop(&mut self) {
        self.is_over.store(true, Relaxed);
        let _ = self.reader.take().map(JoinHandle::join);
    }
}

impl Scheduling {
    fn piece(&self, piece: &LanePiece, due_ns: u64) -> HostPiece {
        let owner = match piece.state {
            LaneState::Waiting { owner, .. } => Some(self.owner(owner)),
            _ => None,
        };
        let is_inferred = matches!(piece.state, LaneState::Waiting { is_inferred: true, .. });
        let state = match piece.state {
            LaneState::Running => HostState::Running,
            LaneState::Waiting { .. } => HostState::Waiting,
            LaneState::Asleep => HostState::Asleep,
            LaneState::Stopped => HostState::Stopped,
            LaneState::Unknown => HostState::Unknown,
        };
        let (at, length) = (Span(piece.from_ns - due_ns), Span(piece.to_ns - piece.from_ns));
        HostPiece { at, length, state, cpu: piece.cpu, owner, is_inferred }
    }

    fn owner(&self, pid: Option<i32>) -> Owner {
        let name = match pid {
            Some(0) => "idle".to_owned(),
            _ => pid.and_then(|pid| self.names.get(&pid)).cloned().unwrap_or_else(|| "?".to_owned()),
        };
        Owner { name, pid: pid.filter(|pid| *pid != 0) }
    }
}

/// The thread that reads the trace.
struct Reader {
    instance: Instance,
    decoder: Decoder,
    lanes: Lanes,
    names: HashMap<i32, String>,
    /// Events of one CPU that may be later than some of another CPU, not read yet.
    early: Vec<(u64, u32, Item)>,
}

/// An event, or a gap before it.
#[derive(Clone, Copy)]
enum Item {
    Event(What),
    Lost,
}

impl Reader {
    fn run(mut self, is_over: &AtomicBool) -> Result<Scheduling, String> {
        // It must not fall behind a busy machine. It reads for some milliseconds and sleeps.
        let urgent = RtPriority::new(1).map(Policy::Fifo);
        if urgent.is_none_or(|urgent| punctual_sys::sched::set_policy(0, urgent).is_err()) {
            let _ = punctual_sys::sched::set_policy(0, Policy::Other(Nice::HIGHEST));
        }
        while !is_over.load(Relaxed) {
            std::thread::sleep(DRAIN_INTERVAL);
            self.drain(punctual_sys::clock::monotonic().0)?;
        }
        self.drain(u64::MAX)?;
        Ok(Scheduling { lanes: self.lanes, names: self.names })
    }

    /// Takes all events before `until_ns`. Later ones wait: another CPU may have earlier ones that are not read yet.
    fn drain(&mut self, until_ns: u64) -> Result<(), String> {
        let n_cpus = self.instance.n_cpus();
        let mut trace: Trace = self.decoder.begin(n_cpus);
        for cpu in 0..n_cpus {
            let mut pages = Vec::new();
            let page_bytes = self.decoder.page_bytes();
            self.instance.drain(cpu, page_bytes, &mut pages).map_err(|err| format!("the trace: {err}"))?;
            self.decoder.read(&mut trace, cpu, &pages);
        }
        for (pid, name) in trace.names.drain() {
            if has_room_for_name(&self.names, pid) {
                self.names.insert(pid, name);
            }
        }
        for (cpu, seen) in (0..).zip(trace.cpus) {
            // The first page after a gap is the first of this reading, too.
            let begin = seen.events.first().map(|event| event.at_ns).filter(|_| seen.is_cut);
            let lost = seen.lost_ns.iter().copied().chain(begin);
            self.early.extend(lost.map(|at_ns| (at_ns, cpu, Item::Lost)));
            self.early.extend(seen.events.iter().map(|event| (event.at_ns, cpu, Item::Event(event.what))));
        }
        self.early.order_by_key(|(at_ns, _, item)| (*at_ns, matches!(item, Item::Event(_))));
        let ready = self.early.partition_point(|(at_ns, ..)| *at_ns < until_ns);
        for (at_ns, cpu, item) in self.early.drain(..ready) {
            match item {
                Item::Event(what) => self.lanes.take(cpu, at_ns, &what),
                Item::Lost => self.lanes.lost(cpu, at_ns),
            }
        }
        Ok(())
    }
}
