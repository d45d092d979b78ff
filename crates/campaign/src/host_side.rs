//! The process beside a guest of machine time: load and trace of this machine (`punctual cell --beside-guest`).

use punctual_analysis::explain::{self, GuestClock};
use punctual_cell::host_side::{Answer, READY, Request, Window};
use punctual_lab::{Beside, BesideGuest, GuestClocks, LabError};
use punctual_model::{Cell, Explain, GuestFile, GuestTids, HostSideRecord, Kernel, Record, Runtime, Span, Watch};
use punctual_workload::instrument;
use punctual_workload::runtime::{self, ForGuests};
use serde::Serialize;
use std::collections::HashMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Mutex, PoisonError};

/// Lifetime of a load beyond its cell: the guest boots at rest and stays within its own limits.
const LOAD_MARGIN: Span = Span(3_600_000_000_000);

/// Starts a process beside each guest that needs one, and makes the programs of languages for guests, once.
#[derive(Debug, Default)]
pub(crate) struct Companions {
    languages: Mutex<HashMap<Runtime, ForGuests>>,
}

impl Beside for Companions {
    fn files(&self, cell: &Cell) -> Result<Vec<GuestFile>, LabError> {
        if let Some(instrument) = cell.task.instrument() {
            let files = instrument::for_guests(instrument);
            return files.map_err(|err| program(&instrument.name(), &err.to_string()));
        }
        if let Some(words) = cell.task.watch().and_then(Watch::words) {
            let name = words.first().map_or("", String::as_str);
            let file = instrument::program_for_guests(name).map_err(|err| program(name, &err.to_string()))?;
            return Ok(vec![file]);
        }
        let Some(runtime) = cell.task.runtime() else { return Ok(Vec::new()) };
        let mut made = self.languages.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(made) = made.get(&runtime) {
            return Ok(made.files.clone());
        }
        let new = runtime::for_guests(runtime).map_err(|err| program(runtime.name(), &err.to_string()))?;
        Ok(made.entry(runtime).or_insert(new).files.clone())
    }

    fn begin(&self, cell: &Cell, threads: Option<GuestTids>) -> Result<Option<Box<dyn BesideGuest>>, LabError> {
        let Kernel::Lab(kernel) = &cell.kernel else { return Ok(None) };
        let explain = cell.conditions.explain.clone();
        if kernel.host_load.parts().is_empty() && explain.is_none() {
            return Ok(None);
        }
        let spans = [cell.conditions.warm_up, cell.duration, LOAD_MARGIN];
        let request = Request {
            load: kernel.host_load.clone(),
            at_most: Span(spans.iter().fold(0, |sum: u64, span| sum.saturating_add(span.ns()))),
            threads: threads.filter(|_| explain.is_some()),
        };
        let started = Companion::start(&request, explain);
        started.map(|companion| Some(Box::new(companion) as _)).map_err(|reason| beside(&reason))
    }
}

/// The running process. Dropping it kills and reaps it, and its load ends with it.
#[derive(Debug)]
struct Companion {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    explain: Option<Explain>,
}

impl Companion {
    fn start(request: &Request, explain: Option<Explain>) -> Result<Companion, String> {
        let mut command = Command::new(punctual_host::THIS_PROGRAM);
        command.args(["cell", "--beside-guest", "--parent", &std::process::id().to_string()]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // The load ends before the machine may be measured by others.
        punctual_host::pass_lock(&mut command);
        let mut child = command.spawn().map_err(|err| err.to_string())?;
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().ok_or("no pipe to it")?);
        let mut companion = Companion { child, input, output, explain };
        companion.write(request).map_err(|err| companion.reason(&err))?;
        let mut line = String::new();
        let read = companion.output.read_line(&mut line);
        match read {
            Ok(_) if line.trim() == READY => Ok(companion),
            Ok(_) => Err(companion.reason(&"ended early")),
            Err(err) => Err(companion.reason(&err)),
        }
    }

    fn write(&mut self, what: &impl Serialize) -> io::Result<()> {
        let mut line = serde_json::to_vec(what)?;
        line.push(b'\n');
        self.input.as_mut().map_or(Ok(()), |input| input.write_all(&line))
    }

    fn answer(&mut self, windows: &[Window]) -> Result<Answer, String> {
        self.write(&windows).map_err(|err| self.reason(&err))?;
        self.input = None;
        let mut line = String::new();
        self.output.read_line(&mut line).map_err(|err| self.reason(&err))?;
        serde_json::from_slice(line.as_bytes()).map_err(|err| self.reason(&err))
    }

    /// Its own words on a failure, else `otherwise`.
    fn reason(&mut self, otherwise: &dyn std::fmt::Display) -> String {
        self.input = None;
        let _ = self.child.kill();
        let mut stderr = String::new();
        let _ = self.child.stderr.take().map(|mut pipe| pipe.read_to_string(&mut stderr));
        let lines: Vec<_> = stderr.lines().map(str::to_owned).collect();
        punctual_cell::child::reason(&lines).unwrap_or_else(|| otherwise.to_string())
    }

    /// Joins the explanations of the guest with this machine's part.
    fn join(&mut self, clocks: &GuestClocks, record: &mut Record) -> Result<HostSideRecord, String> {
        let stops = clocks.stops.clone();
        let tied = match (&self.explain, &record.explained) {
            (Some(explain), Some(explained)) => {
                let keep = usize::try_from(explain.keep).unwrap_or(usize::MAX);
                let [begin, end] = &clocks.marks;
                Some((keep, explain::subjects(explained, &record.cell), GuestClock::tie(begin, end, &stops)))
            }
            _ => None,
        };
        let windows: Vec<Window> = match &tied {
            Some((_, subjects, Ok(clock))) => subjects.iter().map(|one| window(clock, record, one)).collect(),
            _ => Vec::new(),
        };
        let Answer { loads, lanes } = self.answer(&windows)?;
        let mut host = HostSideRecord { loads, stops, ..HostSideRecord::default() };
        let Some(((keep, _, clock), explained)) = tied.zip(record.explained.as_mut()) else { return Ok(host) };
        match (clock, lanes) {
            (Ok(clock), Ok(lanes)) => {
                let lanes = lanes.into_iter().zip(&windows);
                let lanes =
                    lanes.map(|(lanes, window)| explain::with_stops(lanes, window.due_ns, &host.stops)).collect();
                explain::join(explained, &record.cell, lanes, clock.tie.error_ns, keep);
                host.tie = Some(clock.tie);
            }
            (Err(reason), _) | (_, Err(reason)) => {
                explained.worst.truncate(keep);
                explained.others_not_covered.clear();
                explained.missing.push(format!("the guest's threads on this machine: {reason}"));
                host.not_joined = Some(reason);
            }
        }
        Ok(host)
    }
}

impl BesideGuest for Companion {
    fn finish(mut self: Box<Self>, clocks: GuestClocks, record: &mut Record) -> Result<(), LabError> {
        let host = self.join(&clocks, record).map_err(|reason| beside(&reason))?;
        record.lab.iter_mut().for_each(|lab| lab.host = Some(host.clone()));
        Ok(())
    }
}

impl Drop for Companion {
    fn drop(&mut self) {
        // Fails if it has already exited.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The wake-up by this machine's clock.
fn window(clock: &GuestClock, record: &Record, one: &punctual_model::Explanation) -> Window {
    let due_ns = clock.host_ns(record.started.0.saturating_add_signed(one.due_ns));
    Window { vcpu: one.cpu, due_ns, latency_ns: one.latency.ns() }
}

fn beside(reason: &str) -> LabError {
    program("beside the guest", reason)
}

fn program(name: &str, reason: &str) -> LabError {
    LabError::Program { program: name.to_owned(), reason: reason.to_owned() }
}
