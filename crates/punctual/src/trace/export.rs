//! Kept spikes as files for other programs: the story as JSON of Chrome and Perfetto, the raw trace for trace-cmd.

use super::TraceError;
use super::dat::{self, Head};
use super::instance::Instance;
use analysis::explain::{self, Subject, Symbols, Trace, What, blame, phase_name};
use model::Explanation;
use serde_json::{Value, json};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Time before the due time and after the reading of the clock that a story shows, ns.
const BEFORE_NS: u64 = 500_000;
const AFTER_NS: u64 = 50_000;

/// Writes spikes into a directory.
#[derive(Debug)]
pub(crate) struct Export {
    dir: PathBuf,
    head: Head,
    /// The first file that could not be written, and why.
    failed: Option<String>,
}

impl Export {
    /// For the trace of `instance`, whose events are turned on.
    ///
    /// # Errors
    /// When the formats cannot be read.
    pub(crate) fn new(dir: &Path, instance: &Instance) -> Result<Export, TraceError> {
        Ok(Export { dir: dir.to_owned(), head: instance.dat_head()?, failed: None })
    }

    /// What could not be written, if anything.
    pub(crate) fn failure(&mut self) -> Option<String> {
        self.failed.take()
    }

    /// Writes both files of a spike.
    pub(crate) fn write(
        &mut self,
        explanation: &Explanation,
        subject: &Subject,
        trace: &Trace,
        pages: &[Vec<u8>],
        symbols: Symbols<'_>,
    ) {
        let [story, raw] = self.paths(explanation);
        let mut written = fs::write(&story, story_of(explanation, subject, trace).to_string());
        if written.is_ok() {
            let functions = functions(trace, symbols);
            written = fs::File::create(&raw).and_then(|mut file| {
                dat::write(&mut io::BufWriter::new(&mut file), &self.head, pages, &trace.names, &functions)
            });
        }
        if let Err(err) = written {
            let what = || format!("{}: {err}; not all spikes are exported", self.dir.display());
            self.failed.get_or_insert_with(what);
        }
    }

    /// Removes the files of a spike that is no longer kept.
    pub(crate) fn remove(&mut self, explanation: &Explanation) {
        for path in self.paths(explanation) {
            let _ = fs::remove_file(path);
        }
    }

    fn paths(&self, explanation: &Explanation) -> [PathBuf; 2] {
        let Explanation { cpu, cycle, .. } = explanation;
        ["json", "dat"].map(|kind| self.dir.join(format!("spike-cpu{cpu}-cycle{cycle}.{kind}")))
    }
}

/// The functions at all addresses of a trace, each by the address itself.
fn functions(trace: &Trace, symbols: Symbols<'_>) -> Vec<(u64, String)> {
    let works = trace.cpus.iter().flat_map(|cpu| &cpu.events).filter_map(|event| match event.what {
        What::Work { function } => Some(function),
        _ => None,
    });
    let mut addresses: Vec<u64> =
        trace.stacks.iter().flatten().copied().chain(works).chain(trace.timer_functions.iter().copied()).collect();
    addresses.sort_unstable();
    addresses.dedup();
    addresses.into_iter().filter_map(|address| Some((address, symbols(address)?))).collect()
}

/// Events in the format of Chrome's tracing ("Trace Event Format"), times in us: a track for each CPU, and one for the
/// phases.
fn story_of(explanation: &Explanation, subject: &Subject, trace: &Trace) -> Value {
    let us = |ns: u64| ns as f64 / 1000.0;
    // Thread 0 is the idle one to Perfetto, whatever its process: CPUs are numbered from 1 here.
    let phases_track = trace.cpus.len() + 1;
    let mut events = vec![
        json!({ "ph": "M", "name": "process_name", "pid": 1, "tid": phases_track, "args": { "name": "punctual" } }),
        track(phases_track, &format!("wake-up of CPU {}", explanation.cpu)),
    ];
    events.extend((0..trace.cpus.len()).map(|cpu| track(cpu + 1, &format!("CPU {cpu}"))));
    let mut at = subject.due_ns;
    for phase in &explanation.phases {
        let (name, length) = (phase_name(phase.phase), phase.length.ns());
        events.push(json!({
            "ph": "X", "name": name, "cat": "phase", "pid": 1, "tid": phases_track, "ts": us(at), "dur": us(length),
        }));
        at += length;
    }
    let (from, to) = (subject.due_ns.saturating_sub(BEFORE_NS), subject.woke_ns + AFTER_NS);
    for slice in explain::slices(trace, from, to) {
        events.push(json!({
            "ph": "X", "name": slice.name, "cat": slice.kind, "pid": 1, "tid": slice.cpu + 1, "ts": us(slice.from_ns),
            "dur": us(slice.to_ns - slice.from_ns), "args": { "pid": slice.pid },
        }));
    }
    for (name, ns) in [("due", subject.due_ns), ("woke", subject.woke_ns)] {
        events.push(json!({
            "ph": "i", "s": "g", "name": name, "pid": 1, "tid": phases_track, "ts": us(ns),
        }));
    }
    json!({
        "displayTimeUnit": "ns",
        "traceEvents": events,
        "otherData": { "tool": crate::TOOL, "latency_ns": explanation.latency.ns(), "blame": blame(explanation) },
    })
}

fn track(tid: usize, name: &str) -> Value {
    json!({ "ph": "M", "name": "thread_name", "pid": 1, "tid": tid, "args": { "name": name } })
}

#[cfg(test)]
mod tests;
