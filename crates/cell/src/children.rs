//! Measuring with one process for each CPU, for methods that can wait in one thread only: a cell each, without load.

use super::measurers::{Measurement, Measurers, Window};
use super::{CellError, prepared::Prepared};
use crate::child::{self, CellFailure, CellProcess};
use punctual_model::{Cell, Conditions, CpuSet, Ended, Load, Record, Span, ThreadProgress, ThreadRecord};
use punctual_store::SampleWriter;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::Builder;
use std::time::{Duration, Instant};

/// The measuring processes, and the channel of their output.
#[derive(Debug)]
pub(super) struct Children {
    children: Vec<CpuProcess>,
    words: Receiver<(usize, ChildOutput)>,
    cpu_dma_latency_us: Option<u32>,
}

#[derive(Debug)]
struct CpuProcess {
    cell: Cell,
    process: CellProcess,
    progress: Option<ThreadProgress>,
    /// The file of its samples, if samples are kept.
    samples: Option<PathBuf>,
    /// The output on stdout; `Some` when the process has ended.
    output: Option<io::Result<Vec<u8>>>,
}

/// Output of a process.
#[derive(Debug)]
enum ChildOutput {
    /// A line of stderr.
    Line(String),
    /// All of stdout.
    Output(io::Result<Vec<u8>>),
}

/// Extra time of a process beyond its cell, to start, to wait for late threads and to write its record.
const PROCESS_OVERHEAD: Span = Span(1_500_000_000);
/// Timeout for the processes to write their records and to end, since the last of them did.
const EXIT_TIMEOUT: Duration = Duration::from_secs(60);

impl Children {
    /// Starts the processes; they wait for their cells. Errors: when one cannot be started.
    pub(super) fn arm(prepared: &Prepared) -> Result<Children, CellError> {
        let (speaker, words) = channel();
        let mut children = Vec::new();
        for (index, cell) in cells(&prepared.cell).into_iter().enumerate() {
            let samples = prepared.samples.as_ref().map(|whole| whole.part(&cell.cpus));
            // A killed process may have left one behind.
            samples.iter().for_each(|part| punctual_store::discard_samples(part));
            let process = start(index, samples.as_deref(), &speaker)
                .map_err(|err| CellError::Child(format!("cannot start a process for CPU {}: {err}", cell.cpus)))?;
            children.push(CpuProcess { cell, process, progress: None, samples, output: None });
        }
        let cpu_dma_latency_us = prepared.dma_latency.as_ref().map(|(_, us)| *us);
        Ok(Children { children, words, cpu_dma_latency_us })
    }

    fn all_have_ended(&self) -> bool {
        self.children.iter().all(|child| child.output.is_some())
    }

    fn take(&mut self, (index, word): (usize, ChildOutput)) {
        let Some(child) = self.children.get_mut(index) else { return };
        match word {
            ChildOutput::Output(output) => child.output = Some(output),
            ChildOutput::Line(line) => {
                if let Some(progress) = child.process.take(line) {
                    child.progress = progress.threads.into_iter().next();
                }
            }
        }
    }
}

/// The cell of each CPU, with the period of its thread. Load and idle states belong to the parent; a phase becomes an
/// offset into the second.
fn cells(cell: &Cell) -> Vec<Cell> {
    let is_aligned = cell.conditions.align.or(cell.conditions.distance).is_some();
    let (align, distance) =
        (cell.conditions.align.unwrap_or_default().ns(), cell.conditions.distance.unwrap_or_default().ns());
    let offset = |n: u64| Span(align.saturating_add(n.saturating_mul(distance)) % Span::SECOND.ns());
    let of_cpu = |(cpu, n): (u32, u64)| Cell {
        cpus: CpuSet::from_iter([cpu]),
        period: cell.period_on(cpu),
        load: Load::NONE,
        load_cpus: None,
        conditions: Conditions {
            warm_up: cell.conditions.warm_up,
            timer_slack: cell.conditions.timer_slack,
            align: is_aligned.then(|| offset(n)),
            ..Conditions::default()
        },
        ..cell.clone()
    };
    cell.cpus.iter().zip(0..).map(of_cpu).collect()
}

/// Starts one process, with a file for its samples if `samples` is given; `speaker` gets its output.
fn start(index: usize, samples: Option<&Path>, speaker: &Sender<(usize, ChildOutput)>) -> io::Result<CellProcess> {
    let mut process = CellProcess::start(samples)?;
    let (output, mut lines) = process.streams()?;
    let of_output = speaker.clone();
    Builder::new().spawn(move || of_output.send((index, ChildOutput::Output(output.read()))))?;
    let of_lines = speaker.clone();
    Builder::new().spawn(move || lines.try_for_each(|line| of_lines.send((index, ChildOutput::Line(line)))))?;
    Ok(process)
}

impl Measurers for Children {
    fn release(&mut self) -> Result<Window, CellError> {
        let mut longest = Span(0);
        for CpuProcess { cell, process, .. } in &mut self.children {
            process
                .give(cell)
                .map_err(|err| CellError::Child(format!("CPU {}: the measuring process exited: {err}", cell.cpus)))?;
            let align = if cell.conditions.align.is_some() { Span::SECOND.ns() } else { 0 };
            longest = longest.max(Span(cell.end_cycle().saturating_mul(cell.period.ns()).saturating_add(align)));
        }
        let now = punctual_sys::clock::monotonic();
        let started = self.children.first().map_or(Span(0), |child| child.cell.conditions.warm_up);
        Ok(Window { started: now.plus(started), ends: now.plus(longest).plus(PROCESS_OVERHEAD) })
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
            child::interrupt(child.process.id());
        }
    }

    fn collect(&mut self, _: &mut Option<SampleWriter>) -> Result<(), CellError> {
        while let Ok(word) = self.words.try_recv() {
            self.take(word);
        }
        Ok(())
    }

    fn thread_ids(&self) -> Vec<u32> {
        // Thread IDs of other processes are not known; they are pinned and never migrate.
        Vec::new()
    }

    fn progress(&self) -> Vec<ThreadProgress> {
        self.children.iter().filter_map(|child| child.progress.clone()).collect()
    }

    fn finish(&mut self, samples: &mut Option<SampleWriter>) -> Result<Measurement, CellError> {
        while !self.all_have_ended()
            && let Ok(word) = self.words.recv_timeout(EXIT_TIMEOUT)
        {
            self.take(word);
        }
        let records = self.children.iter_mut().map(record).collect::<Result<Vec<Record>, _>>()?;
        if let Some(samples) = samples {
            self.children.iter().flat_map(|child| &child.samples).try_for_each(|part| samples.append(part))?;
        }
        let started = records.iter().map(|record| record.started).min().ok_or(CellError::NothingMeasured)?;
        let interrupted = records.iter().any(|record| record.ended == Ended::Interrupted);
        let measured = records.iter().map(|record| record.measured).max().unwrap_or_default();
        let clock_steps = records.first().map(|record| record.clock_steps.clone()).unwrap_or_default();
        let first_period = records[0].cell.period;
        let thread = |record: Record| {
            let offset = Span(record.started.0 - started.0);
            let period = Some(record.cell.period).filter(|period| *period != first_period);
            let with_offset = move |thread: ThreadRecord| ThreadRecord { offset, period, ..thread };
            record.threads.into_iter().map(with_offset)
        };
        let mut threads: Vec<ThreadRecord> = records.into_iter().flat_map(thread).collect();
        // The parent holds the CPU DMA latency for all of them.
        threads.iter_mut().for_each(|thread| thread.achieved.cpu_dma_latency_us = self.cpu_dma_latency_us);
        let ended = if interrupted { Ended::Interrupted } else { Ended::Completed };
        Ok(Measurement { clock_steps, ..Measurement::of_threads(started, measured, ended, threads) })
    }
}

/// The record of a process that has ended.
fn record(child: &mut CpuProcess) -> Result<Record, CellError> {
    let cpus = &child.cell.cpus;
    let output = child
        .output
        .take()
        .ok_or_else(|| CellError::Child(format!("CPU {cpus}: the measuring process has not exited")))?;
    child.process.record(output).map_err(|failure| {
        CellError::Child(match failure {
            CellFailure::Io(err) => format!("CPU {cpus}: {err}"),
            CellFailure::Exit(status, reason) => reason.unwrap_or_else(|| format!("CPU {cpus}: {status}")),
            CellFailure::NoRecord(err) => format!("CPU {cpus}: invalid record: {err}"),
        })
    })
}

impl Drop for Children {
    fn drop(&mut self) {
        for child in &mut self.children {
            child.process.kill();
            child.samples.iter().for_each(|part| punctual_store::discard_samples(part));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_model::{Method, Task};

    #[test]
    fn each_cpu_becomes_a_cell_without_load_and_phases_become_alignments() {
        let cell = Cell {
            load: Load::messaging(),
            task: Task::Cyclic(Method::Itimer),
            cpus: "0,2".parse().unwrap(),
            duration: Span::SECOND,
            load_cpus: Some(CpuSet::from_iter([0])),
            conditions: Conditions {
                prepare: punctual_model::Prepare { timer_migration: Some(true), ..punctual_model::Prepare::default() },
                ..Conditions::default()
            },
            ..punctual_analysis::testing::cell("none", "other")
        };
        let alone = |cpu: &str, align: Option<u64>| Cell {
            cpus: cpu.parse().unwrap(),
            load: Load::NONE,
            load_cpus: None,
            conditions: Conditions { align: align.map(Span), ..Conditions::default() },
            ..cell.clone()
        };
        assert_eq!(cells(&cell), [alone("0", None), alone("2", None)]);
        let apart = Cell {
            conditions: Conditions {
                distance: Some(Span(5)),
                align: Some(Span(999_999_999)),
                ..cell.clone().conditions
            },
            ..cell.clone()
        };
        assert_eq!(cells(&apart), [alone("0", Some(999_999_999)), alone("2", Some(4))]);
        let step = Conditions { period_step: Some(Span(500_000)), ..cell.clone().conditions };
        let of_cells = cells(&Cell { conditions: step, ..cell.clone() });
        assert_eq!(of_cells.iter().map(|cell| cell.period.ns()).collect::<Vec<_>>(), [1_000_000, 1_500_000]);
        assert!(of_cells.iter().all(|cell| cell.check() == Ok(())));
    }
}
