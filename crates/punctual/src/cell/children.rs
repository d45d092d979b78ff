//! Measuring with a process for each CPU, where a process can wait in one thread only: a cell for each, without the load.

use super::measurers::{Measurement, Measurers, Window};
use super::{CellError, prepared::Prepared};
use crate::child;
use crate::store::{self, SampleWriter};
use model::{Cell, CpuSet, Ended, Load, Prepare, Progress, Record, Span, ThreadProgress, ThreadRecord};
use rt::sys::{self, process};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

/// The processes, and what each has said.
#[derive(Debug)]
pub(super) struct Children {
    children: Vec<CpuProcess>,
    words: Receiver<(usize, Word)>,
    cpu_dma_latency_us: Option<u32>,
}

/// The process of one CPU.
#[derive(Debug)]
struct CpuProcess {
    cell: Cell,
    process: Child,
    progress: Option<ThreadProgress>,
    /// The file of its samples, if they are to be kept.
    samples: Option<PathBuf>,
    /// What it said besides, which is why it failed.
    said: Vec<String>,
    /// What it wrote to its standard output; there when it has ended.
    output: Option<Vec<u8>>,
}

/// What a process says.
#[derive(Debug)]
enum Word {
    /// A line on standard error.
    Line(String),
    /// All of standard output.
    Output(Vec<u8>),
}

/// How much longer than the cell a process may take to start, to wait for late threads and to write its record.
const AROUND: Span = Span(1_500_000_000);
/// How long a process that was told to end may take.
const PATIENCE: Duration = Duration::from_secs(5);

impl Children {
    /// Starts the processes; they wait for their cells.
    ///
    /// # Errors
    /// When one cannot be started.
    pub(super) fn arm(prepared: &Prepared) -> Result<Children, CellError> {
        let (speaker, words) = channel();
        let mut children = Vec::new();
        for (index, cell) in cells(&prepared.cell).into_iter().enumerate() {
            let samples = prepared.samples.as_ref().map(|whole| whole.part(&cell.cpus));
            // Whoever was killed before it could tidy up may have left one.
            samples.iter().for_each(|part| store::discard_samples(part));
            let process = start(index, samples.as_deref(), &speaker)
                .map_err(|err| CellError::Child(format!("cannot start a process for CPU {}: {err}", cell.cpus)))?;
            children.push(CpuProcess { cell, process, progress: None, samples, said: Vec::new(), output: None });
        }
        let cpu_dma_latency_us = prepared.dma_latency.as_ref().map(|(_, us)| *us);
        Ok(Children { children, words, cpu_dma_latency_us })
    }

    fn all_have_ended(&self) -> bool {
        self.children.iter().all(|child| child.output.is_some())
    }

    fn take(&mut self, (index, word): (usize, Word)) {
        let Some(child) = self.children.get_mut(index) else { return };
        match word {
            Word::Output(output) => child.output = Some(output),
            Word::Line(line) => match serde_json::from_str::<Progress>(&line) {
                Ok(progress) => child.progress = progress.threads.into_iter().next(),
                Err(_) => child.said.push(line),
            },
        }
    }
}

/// The cell of each CPU. The load and the idle states are the parent's; a phase is an offset into the second.
fn cells(cell: &Cell) -> Vec<Cell> {
    let is_aligned = cell.align.or(cell.distance).is_some();
    let (align, distance) = (cell.align.unwrap_or_default().ns(), cell.distance.unwrap_or_default().ns());
    let offset = |n: u64| Span(align.saturating_add(n.saturating_mul(distance)) % Span::SECOND.ns());
    let of_cpu = |(cpu, n): (u32, u64)| Cell {
        cpus: CpuSet::from_iter([cpu]),
        load: Load::NONE,
        cpu_dma_latency_us: None,
        load_cpus: None,
        load_policy: None,
        load_must_hold: None,
        prepare: Prepare::default(),
        explain: None,
        stop_above: None,
        on_spike: None,
        tracers: false,
        align: is_aligned.then(|| offset(n)),
        distance: None,
        ..cell.clone()
    };
    cell.cpus.iter().zip(0..).map(of_cpu).collect()
}

/// Starts one process, which keeps its samples in a file if that is named; `speaker` gets what it says.
fn start(index: usize, samples: Option<&Path>, speaker: &Sender<(usize, Word)>) -> std::io::Result<Child> {
    let mut process = child::start(samples)?;
    if let Some(mut output) = process.stdout.take() {
        let speaker = speaker.clone();
        std::thread::spawn(move || {
            let mut text = Vec::new();
            // What cannot be read is no record, which is noticed then.
            let _ = output.read_to_end(&mut text);
            speaker.send((index, Word::Output(text)))
        });
    }
    if let Some(words) = process.stderr.take() {
        let speaker = speaker.clone();
        std::thread::spawn(move || {
            let mut lines = BufReader::new(words).lines().map_while(Result::ok);
            lines.try_for_each(|line| speaker.send((index, Word::Line(line))))
        });
    }
    Ok(process)
}

impl Measurers for Children {
    fn release(&mut self) -> Result<Window, CellError> {
        let mut longest = Span(0);
        for CpuProcess { cell, process, .. } in &mut self.children {
            let sent = serde_json::to_vec(cell).map_err(std::io::Error::from);
            let input = process.stdin.take().ok_or_else(|| std::io::Error::other("a pipe is missing"));
            let sent = sent.and_then(|text| input?.write_all(&text));
            sent.map_err(|err| CellError::Child(format!("CPU {}: the measuring process ended: {err}", cell.cpus)))?;
            let align = if cell.align.is_some() { Span::SECOND.ns() } else { 0 };
            longest = longest.max(Span(cell.end_cycle().saturating_mul(cell.period.ns()).saturating_add(align)));
        }
        let now = sys::clock::monotonic();
        let started = self.children.first().map_or(Span(0), |child| child.cell.warm_up);
        Ok(Window { started: now.plus(started), ends: now.plus(longest).plus(AROUND) })
    }

    fn wait(&mut self, timeout: Duration) -> bool {
        let until = Instant::now() + timeout;
        while !self.all_have_ended() {
            match self.words.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(word) => self.take(word),
                Err(_) => return false,
            }
        }
        true
    }

    fn stop(&mut self) {
        for child in self.children.iter().filter(|child| child.output.is_none()) {
            // Not reaped yet, so the id is still its own.
            let _ = process::signal(child.process.id(), libc::SIGINT);
        }
    }

    fn collect(&mut self, _: &mut Option<SampleWriter>) -> Result<(), CellError> {
        while let Ok(word) = self.words.try_recv() {
            self.take(word);
        }
        Ok(())
    }

    fn thread_ids(&self) -> Vec<u32> {
        // Those of other processes are not known; they are pinned, so that they never move.
        Vec::new()
    }

    fn progress(&self) -> Vec<ThreadProgress> {
        self.children.iter().filter_map(|child| child.progress.clone()).collect()
    }

    fn finish(&mut self, samples: &mut Option<SampleWriter>) -> Result<Measurement, CellError> {
        self.wait(PATIENCE);
        let records = self.children.iter_mut().map(record).collect::<Result<Vec<Record>, _>>()?;
        if let Some(samples) = samples {
            self.children.iter().flat_map(|child| &child.samples).try_for_each(|part| samples.append(part))?;
        }
        let started = records.iter().map(|record| record.started).min().ok_or(CellError::NothingMeasured)?;
        let interrupted = records.iter().any(|record| record.ended == Ended::Interrupted);
        let measured = records.iter().map(|record| record.measured).max().unwrap_or_default();
        let clock_steps = records.first().map(|record| record.clock_steps.clone()).unwrap_or_default();
        let thread = |record: Record| {
            let offset = Span(record.started.0 - started.0);
            let with_offset = move |thread: ThreadRecord| ThreadRecord { offset, ..thread };
            record.threads.into_iter().map(with_offset)
        };
        let mut threads: Vec<ThreadRecord> = records.into_iter().flat_map(thread).collect();
        // Held by this process for all of them.
        threads.iter_mut().for_each(|thread| thread.achieved.cpu_dma_latency_us = self.cpu_dma_latency_us);
        let ended = if interrupted { Ended::Interrupted } else { Ended::Completed };
        Ok(Measurement { clock_steps, ..Measurement::of_threads(started, measured, ended, threads) })
    }
}

/// The record of a process that has ended.
fn record(child: &mut CpuProcess) -> Result<Record, CellError> {
    let cpus = &child.cell.cpus;
    let output = child.output.take().ok_or_else(|| CellError::Child(format!("CPU {cpus}: the process did not end")))?;
    let status = child.process.wait().map_err(|err| CellError::Child(format!("CPU {cpus}: {err}")))?;
    if !status.success() {
        return Err(CellError::Child(child::reason(&child.said).unwrap_or_else(|| format!("CPU {cpus}: {status}"))));
    }
    serde_json::from_slice(&output).map_err(|err| CellError::Child(format!("CPU {cpus}: no readable record: {err}")))
}

impl Drop for Children {
    fn drop(&mut self) {
        for child in &mut self.children {
            // An error means that it has ended already.
            let _ = child.process.kill();
            let _ = child.process.wait();
            child.samples.iter().for_each(|part| store::discard_samples(part));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{Kernel, Method, Policy};

    #[test]
    fn each_cpu_is_a_cell_of_its_own_without_the_load_and_phases_become_alignments() {
        let cell = Cell {
            kernel: Kernel::Running,
            load: Load::messaging(),
            policy: Policy::OTHER,
            period: "1ms".parse().unwrap(),
            method: Method::Itimer,
            cpus: "0,2".parse().unwrap(),
            duration: Span::SECOND,
            warm_up: Span(0),
            deadline: None,
            timer_slack: None,
            align: None,
            distance: None,
            lock_memory: true,
            cpu_dma_latency_us: Some(0),
            load_cpus: Some(CpuSet::from_iter([0])),
            load_policy: None,
            load_must_hold: None,
            prepare: Prepare { timer_migration: Some(true), ..Prepare::default() },
            explain: None,
            stop_above: None,
            on_spike: None,
            tracers: false,
            roles: model::Roles::default(),
        };
        let alone = |cpu: &str, align: Option<u64>| Cell {
            cpus: cpu.parse().unwrap(),
            load: Load::NONE,
            cpu_dma_latency_us: None,
            load_cpus: None,
            prepare: Prepare::default(),
            explain: None,
            stop_above: None,
            on_spike: None,
            tracers: false,
            align: align.map(Span),
            ..cell.clone()
        };
        assert_eq!(cells(&cell), [alone("0", None), alone("2", None)]);
        let apart = Cell { distance: Some(Span(5)), align: Some(Span(999_999_999)), ..cell.clone() };
        assert_eq!(cells(&apart), [alone("0", Some(999_999_999)), alone("2", Some(4))]);
    }
}
