//! Measuring with an outside program: its own result is that of the cell.

use super::measurers::{Measurement, Measurers, Window};
use super::{CellError, prepared::Prepared};
use punctual_model::{
    Achieved, Cell, Ended, Histogram, ImportedThread, Instrument, InstrumentRecord, InstrumentThread, MonoTime, Policy,
    Slice, Span, ThreadProgress, ThreadRecord,
};
use punctual_rt::Settings;
use punctual_store::SampleWriter;
use punctual_workload::instrument::{self, InstrumentError, RunningProgram, SeenThread};
use punctual_workload::runtime::Launch;
use std::collections::BTreeSet;
use std::time::Duration;

/// The program of one cell.
#[derive(Debug)]
pub(super) struct OutsideProgram {
    cell: Cell,
    instrument: Instrument,
    words: Vec<String>,
    cpu_dma_latency_us: Option<u32>,
    running: Option<RunningProgram>,
    started: MonoTime,
    ended: Option<MonoTime>,
    /// Whether it was asked to end, by this cell or by the user.
    is_interrupted: bool,
    is_stopped: bool,
    threads: BTreeSet<SeenThread>,
    /// The error of a failed wait; returned by the next `collect`.
    failed: Option<InstrumentError>,
}

/// Time that it has to write its result after SIGINT.
const LINGERS: Span = Span(5_000_000_000);

impl OutsideProgram {
    /// Looks for the program; it starts with the measurement. Errors: when it is not installed.
    pub(super) fn arm(prepared: &Prepared, instrument: &Instrument) -> Result<OutsideProgram, CellError> {
        let cell = prepared.cell.clone();
        let words = cell.words_of(instrument);
        instrument::find(words.first().map_or("", String::as_str))?;
        Ok(OutsideProgram {
            instrument: instrument.clone(),
            words,
            cpu_dma_latency_us: prepared.dma_latency.as_ref().map(|(_, us)| *us),
            running: None,
            started: MonoTime(0),
            ended: None,
            is_interrupted: false,
            is_stopped: false,
            threads: BTreeSet::new(),
            failed: None,
            cell,
        })
    }

    /// The time left until SIGINT; `None` if it ends by itself, or was asked already.
    fn left(&self) -> Option<Duration> {
        let is_due = self.instrument.is_interrupted && !self.is_interrupted;
        let end = self.started.plus(self.cell.duration);
        is_due.then(|| Duration::from_nanos(end.0.saturating_sub(punctual_sys::clock::monotonic().0)))
    }

    fn interrupt(&mut self) {
        self.is_interrupted = true;
        self.running.iter().for_each(RunningProgram::interrupt);
    }
}

impl Measurers for OutsideProgram {
    fn release(&mut self) -> Result<Window, CellError> {
        let Cell { cpus, policy, conditions, .. } = &self.cell;
        let timer_slack = conditions.timer_slack.unwrap_or(Settings::KERNEL_SLACK);
        let settings = Launch { cpus: cpus.clone(), policy: *policy, timer_slack };
        self.started = punctual_sys::clock::monotonic();
        self.running = Some(RunningProgram::start(&self.words, &settings)?);
        Ok(Window { started: self.started, ends: self.started.plus(self.cell.timeout_of(&self.instrument)) })
    }

    fn wait(&mut self, timeout: Duration) -> bool {
        if self.left().is_some_and(|left| left.is_zero()) {
            self.interrupt();
        }
        let timeout = self.left().map_or(timeout, |left| left.min(timeout));
        let Some(running) = &mut self.running else { return true };
        match running.wait(timeout) {
            Ok(has_ended) => {
                if has_ended {
                    self.ended.get_or_insert_with(punctual_sys::clock::monotonic);
                }
                has_ended
            }
            Err(err) => {
                self.failed = Some(err);
                false
            }
        }
    }

    fn lingers(&self) -> Span {
        LINGERS
    }

    fn stop(&mut self) {
        self.is_stopped = true;
        self.interrupt();
    }

    fn collect(&mut self, _: &mut Option<SampleWriter>) -> Result<(), CellError> {
        if let Some(running) = &mut self.running {
            running.read()?;
            self.threads.extend(running.threads());
        }
        self.failed.take().map_or(Ok(()), |err| Err(err.into()))
    }

    fn thread_ids(&self) -> Vec<u32> {
        self.running.iter().flat_map(|running| punctual_host::threads_of(running.pid())).collect()
    }

    fn progress(&self) -> Vec<ThreadProgress> {
        Vec::new()
    }

    fn finish(&mut self, _: &mut Option<SampleWriter>) -> Result<Measurement, CellError> {
        let Some(mut running) = self.running.take() else { return Err(CellError::NothingMeasured) };
        let limit = self.cell.timeout_of(&self.instrument);
        let bytes = running.result(self.instrument.output.as_deref(), self.is_interrupted, limit);
        let program = self.instrument.name();
        let parsed = bytes.and_then(|bytes| {
            let result = punctual_import::result(&bytes, &self.instrument.read, &self.instrument.command);
            let failed = |reason| InstrumentError::Result { program, reason, said: running.quoted() };
            result.map(|result| (bytes, result)).map_err(failed)
        });
        let (bytes, result) = match parsed {
            // A program that is stopped before its end need not have a result.
            Err(_) if self.is_stopped => return Err(CellError::NothingMeasured),
            parsed => parsed?,
        };
        let wall = Span(self.ended.unwrap_or_else(punctual_sys::clock::monotonic).0.saturating_sub(self.started.0));
        let seen = |thread: &SeenThread| InstrumentThread {
            name: thread.name.clone(),
            policy: thread.policy,
            cpus: thread.cpus.clone(),
        };
        let record = InstrumentRecord {
            program: instrument::path_of(self.words.first().map_or("", String::as_str)),
            command_line: self.words.clone(),
            status: running.status().map_or_else(String::new, |status| status.to_string()),
            wall,
            result_sha256: punctual_host::sha256(&bytes[..]).unwrap_or_default(),
            threads: self.threads.iter().map(seen).collect(),
            result,
        };
        let threads = record.result.threads.iter().filter_map(|thread| self.thread(thread, &record)).collect();
        let measured = record.result.measured.unwrap_or(wall);
        let plain = Measurement::of_threads(self.started, measured, Ended::Completed, threads);
        Ok(Measurement { instrument: Some(record), ..plain })
    }
}

impl OutsideProgram {
    /// The distribution of one thread of the result; `None` if the result has none.
    fn thread(&self, thread: &ImportedThread, record: &InstrumentRecord) -> Option<ThreadRecord> {
        let cpu = thread.cpu.or_else(|| self.cell.cpus.iter().nth(usize::try_from(thread.number).ok()?));
        let cpu = cpu.or_else(|| self.cell.cpus.iter().next()).unwrap_or(0);
        of_reported(thread, cpu, self.achieved(cpu, record))
    }

    /// Settings of the thread that most likely measured on `cpu`: the one of the highest priority there.
    fn achieved(&self, cpu: u32, record: &InstrumentRecord) -> Achieved {
        let on_cpu = record.threads.iter().filter(|thread| thread.cpus.contains(cpu));
        // Deadline threads run before all priorities.
        let deadline = |policy: Policy| matches!(policy, Policy::Deadline(_)).then_some(u32::MAX);
        let priority = |thread: &&InstrumentThread| deadline(thread.policy).or(thread.policy.priority());
        let found = on_cpu.max_by_key(priority);
        Achieved {
            policy: found.map_or(self.cell.policy, |thread| thread.policy),
            cpus: found.map_or_else(|| self.cell.cpus.clone(), |thread| thread.cpus.clone()),
            cpu_dma_latency_us: self.cpu_dma_latency_us,
            ..Achieved::default()
        }
    }
}

/// The record of a thread that something else measured on `cpu`; `None` if its result has no distribution.
pub(super) fn of_reported(thread: &ImportedThread, cpu: u32, achieved: Achieved) -> Option<ThreadRecord> {
    let mut histogram = thread.histogram.clone()?;
    // Their values are known only to lie between these two; the larger one never flatters the machine.
    if let Some(beyond) = &thread.beyond {
        let largest = thread.max_ns.map_or(beyond.at_least_ns, |max_ns| max_ns.max(beyond.at_least_ns));
        histogram.record_n(largest, beyond.samples.unwrap_or(0));
    }
    let missed = thread.missed.unwrap_or(0);
    Some(ThreadRecord {
        cpu,
        achieved,
        cycles_due: histogram.n.saturating_add(missed),
        recorded: histogram.n,
        missed,
        slices: slices(thread, &histogram),
        histogram,
        ..ThreadRecord::default()
    })
}

/// The stretches of the result, or all of it as one.
fn slices(thread: &ImportedThread, histogram: &Histogram) -> Vec<Slice> {
    let is_whole = thread.beyond.is_none() && !thread.slices.is_empty();
    if is_whole {
        thread.slices.clone()
    } else {
        vec![Slice { first_cycle: 0, cycles: histogram.n, histogram: histogram.clone() }]
    }
}
