//! Measuring by watching: activations of threads of another program, from the kernel's trace. Nothing is changed there.

mod handover;
mod interpreted;
mod late;
mod marks;
mod others;
mod reader;
mod refused;
mod stacks;
mod switches;
mod targets;

use super::explainer;
use super::measurers::{Measurement, Measurers, Window};
use super::on_spike::OnSpike;
use super::trace::{EventSet, Instance, PageSource, StackRequest, TraceRequest};
use super::worst_spikes::WorstSpikes;
use super::{CellError, prepared::Prepared};
use handover::Handover;
use late::Explaining;
use others::{nothing, others};
use punctual_analysis::explain::Facts;
use punctual_analysis::watch::{Settings as WatchSettings, WAKING_TIMERS, WatchedThreads};
use punctual_ftrace::Decoder;
use punctual_host::KernelSymbols;
use punctual_model::{
    Achieved, Cell, Ended, ExplainRecord, MonoTime, Nice, NotCovered, OnSpikeRecord, Order, OwnName, Policy,
    SettingChange, Span, ThreadProgress, Watch, WatchRecord, WatchedThread,
};
use punctual_rt::Settings;
use punctual_store::{ActivationWriter, SampleWriter};
use punctual_workload::instrument;
use punctual_workload::runtime::Launch;
use punctual_workload::watched::WatchedProgram;
use reader::{Reader, Shared, Surroundings};
use stacks::Stacks;
use std::cell::OnceCell;
use std::sync::atomic::Ordering::{Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU32};
use std::sync::mpsc::{channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;
use switches::Switches;
use targets::Targets;

/// Traces that wait to be explained: each has some MiB, as have the one being explained and the one being read.
const MOST_WAITING: usize = 1;
/// Interval at which the end of the program is noticed.
const POLL: Duration = Duration::from_millis(20);

/// The record of all explanations, and that of the command that runs at late activations.
type Explained = (ExplainRecord, Option<OnSpikeRecord>);

type ExplainingThread = JoinHandle<(Explaining, Option<OnSpikeRecord>, Option<u64>)>;

/// The watched threads of one cell.
#[derive(Debug)]
pub(super) struct Watcher {
    cell: Cell,
    watch: Watch,
    words: Vec<String>,
    cpu_dma_latency_us: Option<u32>,
    facts: Facts,
    targets: Targets,
    shared: Arc<Shared>,
    /// The traces, until they start.
    ready: Option<Traces>,
    started: MonoTime,
    ends: MonoTime,
    is_stopped: Arc<AtomicBool>,
    missing: Vec<String>,
    reader: Option<JoinHandle<Reader>>,
    explaining: Option<ExplainingThread>,
    explaining_tid: Arc<AtomicU32>,
    ended_by_itself: bool,
    /// The file of activations, if they are kept.
    file: Option<ActivationWriter>,
    /// The last field: its end is not part of what is watched.
    program: Option<WatchedProgram>,
}

/// The traces with their decoders.
#[derive(Debug)]
struct Traces {
    own: (Instance, Decoder),
    /// That of the surroundings; its decoder knows the events of both.
    around: Option<(Instance, Arc<Decoder>, WorstSpikes)>,
    switches: Option<Switches>,
}

impl Watcher {
    /// Finds the threads and prepares the traces; a program starts with the measurement. Errors: when there is nothing
    /// to watch, or the kernel cannot be traced.
    pub(super) fn arm(prepared: &Prepared, watch: &Watch) -> Result<Watcher, CellError> {
        let cell = prepared.cell.clone();
        if !punctual_host::is_initial_pid_namespace() {
            return Err(CellError::Impossible(
                "cannot watch from a PID namespace of its own, where the kernel's thread IDs are unknown; run on the host, \
                 or with --pid=host"
                    .to_owned(),
            ));
        }
        let words = watch.words().unwrap_or_default();
        let targets = Targets::find(watch);
        match words.first() {
            Some(program) => drop(instrument::find(program)?),
            None if targets.tids.is_empty() => return Err(CellError::Impossible(Targets::none(watch))),
            None => {}
        }
        let idle_states = !prepared.host.power.idle_states.is_empty();
        let prepare = |mut instance: Instance, events, stacks| {
            let request = TraceRequest { events, pids: None, stacks, idle_states };
            let decoder = instance.enable(request)?;
            Ok::<_, CellError>((instance, decoder))
        };
        if cell.conditions.explain.as_ref().is_some_and(|explain| explain.stacks) {
            Stacks::check()?;
        }
        let sleeps = match cell.conditions.explain {
            Some(_) => StackRequest::Sleeps,
            None => StackRequest::Nowhere,
        };
        let mut own = Instance::create()?;
        marks::add(&mut own, &cell.conditions.marks, words.first().map(String::as_str), &targets)?;
        let mut own = prepare(own, EventSet::Activity, sleeps)?;
        let timers = KernelSymbols::read().addresses(&WAKING_TIMERS);
        own.1.only_timers_of(timers.clone());
        let mut missing = std::mem::take(&mut own.0.missing);
        let around = cell.conditions.explain.as_ref().map(|asked| {
            let (instance, _) = prepare(Instance::create_second()?, EventSet::Surroundings, StackRequest::Nowhere)?;
            let layouts = instance.layouts().clone().with(own.0.layouts());
            let mut decoder = layouts.decoder().map_err(|err| CellError::Impossible(err.to_string()))?;
            decoder.only_timers_of(timers.clone());
            Ok::<_, CellError>((instance, Arc::new(decoder), WorstSpikes::new(asked, layouts, timers)))
        });
        let around = around.transpose()?;
        missing.extend(around.iter().flat_map(|(instance, ..)| instance.missing.iter().cloned()));
        Ok(Watcher {
            watch: watch.clone(),
            words,
            cpu_dma_latency_us: prepared.dma_latency.as_ref().map(|(_, us)| *us),
            facts: Facts {
                taker: explainer::taker(&cell.kernel, &prepared.host),
                sees_page_faults: own.1.sees_page_faults(),
                counts_stolen: late::counts_stolen(prepared.host.platform.steal_ms),
                ..Facts::default()
            },
            targets,
            shared: Arc::new(Shared {
                rows: prepared.activations.as_ref().map(|_| Mutex::default()),
                ..Shared::default()
            }),
            file: prepared.activations.as_deref().map(ActivationWriter::create).transpose()?,
            ready: Some(Traces { own, around, switches: Switches::create().ok() }),
            started: MonoTime(0),
            ends: MonoTime(0),
            is_stopped: Arc::default(),
            missing,
            reader: None,
            explaining: None,
            explaining_tid: Arc::default(),
            ended_by_itself: false,
            program: None,
            cell,
        })
    }

    /// Starts both traces, and the threads that read them.
    fn start(&mut self, pids: &[i32]) -> Result<(), CellError> {
        let Some(Traces { own: (mut instance, decoder), around, switches }) = self.ready.take() else { return Ok(()) };
        instance.follow(pids)?;
        let asked = self.cell.conditions.explain.clone().unwrap_or_default();
        let surroundings = match around {
            None => None,
            Some((mut around, decoder, kept)) => {
                around.start()?;
                let floor_ns = Arc::default();
                let (explaining, taken) = sync_channel(MOST_WAITING);
                let (explained, used) = channel();
                let state = Explaining {
                    tid: Arc::clone(&self.explaining_tid),
                    used: explained,
                    is_stopped: Arc::clone(&self.is_stopped),
                    facts: self.facts,
                    started: self.started,
                    symbols: OnceCell::new(),
                    on_spike: self.on_spike(),
                    floor_ns: Arc::clone(&floor_ns),
                    kept,
                    events: 0,
                };
                self.explaining = Some(spawn(OwnName::Explain, move || state.run(&taken))?);
                let armed_ns = punctual_sys::clock::monotonic().0;
                Some(Surroundings {
                    instance: around,
                    decoder,
                    armed_ns,
                    above: asked.above,
                    floor_ns,
                    explaining: Handover::new(explaining),
                    used,
                    pause_until_ns: 0,
                    latest_ns: 0,
                })
            }
        };
        let switches = switches.and_then(|switches| switches.started().ok());
        instance.start()?;
        let settings = WatchSettings {
            period: self.watch.period,
            deadline: self.watch.deadline.or(self.cell.deadline),
            wait: self.watch.wait.clone(),
            sample: self.watch.sample,
            since_ns: self.started.0,
            until_ns: self.ends.0,
            marks: self.cell.conditions.marks.clone(),
        };
        let threads = WatchedThreads::new(settings, &self.watch.chain);
        let shared = Arc::clone(&self.shared);
        let targets = (self.targets.clone(), self.program.as_ref().map(WatchedProgram::pid));
        let traces = (instance, decoder);
        let stacks = asked.stacks.then(Stacks::default).filter(|_| surroundings.is_some());
        let mut reader = Reader::new(self.watch.clone(), traces, threads, shared, surroundings, targets, self.started);
        reader.stacks = stacks;
        reader.switches = switches;
        self.reader = Some(spawn(OwnName::Watch, move || reader.run())?);
        Ok(())
    }

    fn on_spike(&self) -> Option<OnSpike> {
        let command = self.cell.conditions.on_spike.clone()?;
        OnSpike::new(command, &self.cell.cpus)
    }

    /// Stops reading, after the activations that are not over if `is_finishing`; returns what was read, and what was
    /// explained.
    fn collected(&mut self, is_finishing: bool) -> Option<(Reader, Option<Explained>)> {
        self.shared.until_ns.store(self.ends.0, Relaxed);
        self.shared.is_finishing.store(is_finishing, Relaxed);
        self.shared.is_over.store(true, Release);
        let mut reader = self.reader.take()?.join().ok()?;
        // Nothing is measured any more: it need not give way.
        if let tid @ 1.. = self.explaining_tid.load(Relaxed) {
            let _ = punctual_sys::sched::set_policy(tid, Policy::Other(Nice::HIGHEST));
        }
        if let Some(surroundings) = reader.surroundings.take() {
            surroundings.explaining.end();
        }
        let explained = self.explaining.take().and_then(|thread| thread.join().ok());
        let explained = explained.map(|(mut state, ran, used_us)| {
            if let Some((cpu, release_ns, response_ns)) = reader.results.latest_not_taken {
                let due_ns = release_ns.cast_signed().wrapping_sub_unsigned(self.started.0);
                state.kept.take_not_covered(NotCovered { cpu, due_ns, latency: Span(response_ns) });
            }
            state.kept.not_covered += reader.results.not_taken.saturating_sub(1);
            let given = self.cell.conditions.explain.as_ref().and_then(|asked| asked.above);
            let above = given.or(reader.results.first_above_ns.map(Span));
            let mut missing = self.missing.clone();
            missing.extend(reader.stacks.iter().flat_map(Stacks::missing));
            (state.record(above, missing, used_us), ran)
        });
        Some((reader, explained))
    }
}

fn spawn<T: Send + 'static>(
    name: OwnName,
    run: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>, CellError> {
    let spawned = Builder::new().name(name.to_string()).spawn(run);
    spawned.map_err(|err| CellError::Setting(punctual_host::no_thread(&err).to_string()))
}

impl Measurers for Watcher {
    fn release(&mut self) -> Result<Window, CellError> {
        let warm_up = self.cell.conditions.warm_up;
        self.started = punctual_sys::clock::monotonic().plus(warm_up);
        self.ends = self.started.plus(self.cell.duration);
        let pids: Vec<i32> = if self.words.is_empty() {
            self.targets.tids.iter().filter_map(|tid| i32::try_from(*tid).ok()).collect()
        } else {
            let Cell { cpus, policy, conditions, .. } = &self.cell;
            let timer_slack = conditions.timer_slack.unwrap_or(Settings::KERNEL_SLACK);
            let settings = Launch { cpus: cpus.clone(), policy: *policy, timer_slack };
            let program = WatchedProgram::start(&self.words, &settings)?;
            let pid = program.pid();
            self.program = Some(program);
            i32::try_from(pid).into_iter().collect()
        };
        self.start(&pids)?;
        self.program.iter().for_each(WatchedProgram::proceed);
        Ok(Window { started: self.started, ends: self.ends })
    }

    fn wait(&mut self, timeout: Duration) -> bool {
        let until = punctual_sys::clock::monotonic().plus(Span(u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX)));
        loop {
            let now = punctual_sys::clock::monotonic();
            // Not reaped yet: the limits of a refused call are read of it.
            let is_gone = |program: &WatchedProgram| punctual_host::is_gone(program.pid());
            let has_ended = self.program.as_ref().is_some_and(is_gone) || self.shared.has_ended.load(Relaxed);
            if has_ended {
                self.ended_by_itself = true;
                self.ends = self.ends.min(now);
            }
            if self.is_stopped.load(Relaxed) || now >= self.ends {
                return true;
            }
            if now >= until {
                return false;
            }
            let left = Duration::from_nanos(until.min(self.ends).0.saturating_sub(now.0));
            std::thread::sleep(left.min(POLL));
        }
    }

    fn stop(&mut self) {
        self.is_stopped.store(true, Relaxed);
        self.ends = self.ends.min(punctual_sys::clock::monotonic());
    }

    fn collect(&mut self, _: &mut Option<SampleWriter>) -> Result<(), CellError> {
        let (Some(file), Some(rows)) = (&mut self.file, &self.shared.rows) else { return Ok(()) };
        let rows = std::mem::take(&mut *rows.lock().unwrap_or_else(PoisonError::into_inner));
        Ok(file.add(&rows)?)
    }

    fn thread_ids(&self) -> Vec<u32> {
        self.shared.tids.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn progress(&self) -> Vec<ThreadProgress> {
        self.shared.progress.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn finish(&mut self, samples: &mut Option<SampleWriter>) -> Result<Measurement, CellError> {
        let is_finishing = !self.is_stopped.load(Relaxed) && !self.ended_by_itself;
        let Some((mut reader, explained)) = self.collected(is_finishing) else {
            return Err(CellError::NothingMeasured);
        };
        self.collect(samples)?;
        let status = self.program.as_mut().filter(|_| self.ended_by_itself).and_then(|program| {
            program.has_ended();
            program.status()
        });
        let watch = self.watch.clone();
        let mut threads = std::mem::replace(&mut reader.threads, WatchedThreads::new(WatchSettings::default(), &[]));
        let last_known = |tid| reader.facts(tid).map(|facts| (facts.policy, facts.observed.cpus.clone()));
        let refused = refused::at_end(&mut threads, |tid| last_known(tid).unwrap_or_default());
        let (names, polls, left_out) = (threads.names.clone(), threads.empty_polls(), threads.left_out());
        let is_awake = |pid: i32| reader.states.get(&pid.cast_unsigned()).is_some_and(|state| state.is_awake());
        let (results, inactive, chain) = threads.finish(reader.read_ns, |name| watch.is_meant(name), is_awake);
        let others = others(&reader, &names, &watch, &results, &polls);
        let ended = self.program.as_ref().filter(|_| self.ended_by_itself);
        if results.is_empty() && (others.is_empty() || ended.is_some()) {
            return Err(match ended {
                Some(program) => refused::ended_early(program, refused),
                _ if self.is_stopped.load(Relaxed) => CellError::NothingMeasured,
                _ => CellError::Impossible(nothing(&watch, inactive, self.cell.duration)),
            });
        }
        if let Some(file) = self.file.take() {
            file.finish(&self.cell, self.started)?;
        }
        let measured = Span(self.ends.0.saturating_sub(self.started.0));
        let mut threads = Vec::new();
        let mut watched = Vec::new();
        for result in results {
            let facts = reader.facts(result.thread.tid);
            let mut one = result.thread.clone();
            one.process = facts.map(|facts| facts.process);
            one.policy = facts.and_then(|facts| facts.policy);
            one.cpus = facts.and_then(|facts| facts.observed.cpus.clone());
            if let Some(account) = &mut one.account {
                account.throttled =
                    facts.and_then(|facts| facts.throttled(account.waiting_for_cpu, result.held_ns, result.limited));
            }
            one.changes.extend(facts.into_iter().flat_map(|facts| facts.observed.changes.iter().cloned()));
            one.changes.order_by_key(|change| change.at);
            one.changes.truncate(SettingChange::MOST);
            one.memory_locked_bytes = one.process.and_then(punctual_host::memory_locked_bytes_of);
            one.blocked_in.iter_mut().for_each(|call| describe(&mut call.name, one.process));
            describe(&mut one.wait, one.process);
            one.open.iter_mut().for_each(|open| describe(&mut open.doing, one.process));
            threads.push(result.record(self.started, self.watch.sample, self.achieved(&one)));
            watched.push(one);
        }
        let record = WatchRecord {
            command_line: self.words.clone(),
            status,
            inactive,
            unseen: Vec::new(),
            others,
            threads: watched,
            refused,
            left_out,
            chain,
            gaps: reader.results.gaps,
            events: reader.results.events,
            watching_us: reader.results.used_us,
            missing: self.missing.iter().cloned().chain(reader.missing()).collect(),
        };
        drop(reader);
        let mut plain = Measurement::of_threads(self.started, measured, Ended::Completed, threads);
        plain.watch = Some(record);
        if let Some((explained, ran)) = explained {
            (plain.explained, plain.on_spike) = (Some(explained), ran);
        }
        Ok(plain)
    }
}

impl Watcher {
    /// The settings of a thread, as far as they are known.
    fn achieved(&self, one: &WatchedThread) -> Achieved {
        Achieved {
            policy: one.policy.unwrap_or(self.cell.policy),
            cpus: one.cpus.clone().unwrap_or_else(|| self.cell.cpus.clone()),
            memory_locked_bytes: one.process.and_then(punctual_host::memory_locked_bytes_of).unwrap_or(0),
            cpu_dma_latency_us: self.cpu_dma_latency_us,
            ..Achieved::default()
        }
    }
}

/// Adds the kind of file to a call with a descriptor, like `read(5)`.
fn describe(call: &mut String, process: Option<u32>) {
    let descriptor = call.strip_suffix(')').and_then(|text| text.rsplit_once('(')).and_then(|(_, fd)| fd.parse().ok());
    if let Some(file) = process.zip(descriptor).and_then(|(pid, descriptor)| punctual_host::open_file(pid, descriptor))
    {
        *call = format!("{call} {file}");
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        let _ = self.collected(false);
    }
}
