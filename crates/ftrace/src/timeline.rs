//! Timelines of spikes for Perfetto and Chrome: one file with all of them.
//!
//! Format: "Trace Event Format", which both read; times in us. Process 1 has a track for each CPU, process 2 one for
//! each late thread: phases, with the longest intervals and their causes inside, and its latency as a counter.

use punctual_analysis::explain::{self, Slice, Subject, Trace, blame, cause_name};
use punctual_model::{Explanation, Order, Segment};
use serde_json::{Value, json};

/// Time before the due time and after the end of a spike that a timeline covers, ns.
const BEFORE_NS: u64 = 500_000;
const AFTER_NS: u64 = 50_000;
/// The processes of the file: in Perfetto process 0 and thread 0 are those of the idle CPU.
const CPUS: u64 = 1;
const SPIKES: u64 = 2;

/// A spike with the events that it was explained by.
#[derive(Debug, Clone, Copy)]
pub struct Spike<'a> {
    /// Its explanation.
    pub explanation: &'a Explanation,
    /// The wake-up.
    pub subject: &'a Subject,
    /// The events.
    pub trace: &'a Trace,
}

impl Spike<'_> {
    /// End of what is explained, ns.
    fn end_ns(&self) -> u64 {
        self.subject.due_ns.saturating_add(self.explanation.latency.ns()).max(self.subject.woke_ns)
    }

    /// Name of its track.
    pub(crate) fn track(&self) -> String {
        match &self.explanation.thread {
            Some(thread) => thread.name.clone(),
            None => format!("wake-up of CPU {}", self.explanation.cpu),
        }
    }
}

/// The timelines of these spikes as one document.
pub fn timeline(spikes: &[Spike<'_>]) -> Value {
    let mut spikes = spikes.to_vec();
    spikes.order_by_key(|spike| spike.subject.due_ns);
    let mut tracks: Vec<String> = Vec::new();
    let mut slices = Vec::new();
    let mut events = Vec::new();
    // Windows of two spikes may overlap: each instant of a CPU is shown once.
    let mut shown_ns = 0;
    for spike in &spikes {
        let (from, to) = (spike.subject.due_ns.saturating_sub(BEFORE_NS), spike.end_ns().saturating_add(AFTER_NS));
        slices.extend(explain::slices(spike.trace, from.max(shown_ns), to));
        shown_ns = shown_ns.max(to);
        let name = spike.track();
        let index = tracks.iter().position(|known| *known == name).unwrap_or_else(|| {
            tracks.push(name);
            tracks.len() - 1
        });
        of_spike(spike, index as u64 + 1, &mut events);
    }
    let n_cpus = spikes.iter().map(|spike| spike.trace.cpus.len()).max().unwrap_or(0);
    let process = |pid: u64, name: &str| named("process_name", pid, 1, name);
    let heads = [process(CPUS, "CPUs"), process(SPIKES, "late threads")].into_iter();
    let cpus = (0..n_cpus).map(|cpu| named("thread_name", CPUS, cpu as u64 + 1, &format!("CPU {cpu}")));
    let threads = (1..).zip(&tracks).map(|(tid, name)| named("thread_name", SPIKES, tid, name));
    let said =
        |spike: &Spike<'_>| json!({ "latency_ns": spike.explanation.latency.ns(), "blame": blame(spike.explanation) });
    json!({
        "displayTimeUnit": "ns",
        "traceEvents": heads.chain(cpus).chain(threads).chain(slices.iter().map(of_cpu)).chain(events).collect::<Vec<_>>(),
        "otherData": { "tool": punctual_model::TOOL, "spikes": spikes.iter().map(said).collect::<Vec<_>>() },
    })
}

fn us(ns: u64) -> f64 {
    ns as f64 / 1000.0
}

fn named(what: &str, pid: u64, tid: u64, name: &str) -> Value {
    json!({ "ph": "M", "name": what, "pid": pid, "tid": tid, "args": { "name": name } })
}

fn of_cpu(slice: &Slice) -> Value {
    json!({
        "ph": "X", "name": slice.name, "cat": slice.kind, "pid": CPUS, "tid": slice.cpu + 1, "ts": us(slice.from_ns),
        "dur": us(slice.to_ns.saturating_sub(slice.from_ns)), "args": { "pid": slice.pid },
    })
}

/// The phases of a spike with the causes in them, its due time and end, and its latency.
fn of_spike(spike: &Spike<'_>, tid: u64, events: &mut Vec<Value>) {
    let Spike { explanation, subject, .. } = spike;
    let mut at = subject.due_ns;
    let mut segments = explanation.segments.iter().peekable();
    for phase in &explanation.phases {
        let (name, end) = (phase.phase.name(), at.saturating_add(phase.length.ns()));
        events.push(json!({
            "ph": "X", "name": name, "cat": "phase", "pid": SPIKES, "tid": tid, "ts": us(at), "dur": us(phase.length.ns()),
            "args": { "latency_ns": explanation.latency.ns(), "blame": blame(explanation) },
        }));
        let begin = |segment: &Segment| subject.due_ns.saturating_add(segment.at.ns());
        while let Some(segment) = segments.next_if(|segment| begin(segment) < end) {
            events.push(json!({
                "ph": "X", "name": cause_name(segment.cause, segment.or), "cat": "cause", "pid": SPIKES, "tid": tid,
                "ts": us(begin(segment)), "dur": us(segment.length.ns().min(end - begin(segment))),
                "args": {
                    "owner": segment.owner.name, "pid": segment.owner.pid, "place": segment.place,
                    "evidence": segment.evidence.name(),
                },
            }));
        }
        at = end;
    }
    for (name, ns) in [("due", subject.due_ns), ("woke", subject.woke_ns)] {
        events.push(json!({ "ph": "i", "s": "t", "name": name, "pid": SPIKES, "tid": tid, "ts": us(ns) }));
    }
    for (ns, latency_ns) in [(subject.due_ns, explanation.latency.ns()), (spike.end_ns(), 0)] {
        let name = format!("latency of {}", spike.track());
        events.push(json!({
            "ph": "C", "name": name, "pid": SPIKES, "tid": tid, "ts": us(ns), "args": { "us": us(latency_ns) },
        }));
    }
}

#[cfg(test)]
mod tests {
    use super::super::capture::tests::capture;
    use super::*;
    use std::collections::HashMap;

    /// Checks the requirements of the format: an object with `traceEvents`; a phase, a process, a thread and a name for
    /// each event; a time and a length in us for complete events (X), which do not overlap within a track unless one
    /// contains the other; a scope for instants (i); a name as argument for metadata (M); numbers for counters (C).
    fn assert_valid(story: &Value) -> HashMap<String, usize> {
        assert!(["ns", "ms"].contains(&story["displayTimeUnit"].as_str().unwrap()));
        let mut open: HashMap<(u64, u64), Vec<f64>> = HashMap::new();
        let mut counts = HashMap::new();
        for event in story["traceEvents"].as_array().unwrap() {
            let track = (event["pid"].as_u64().unwrap(), event["tid"].as_u64().unwrap());
            assert!(track.0 > 0 && track.1 > 0 && event["name"].is_string(), "{event}");
            let ts = || event["ts"].as_f64().filter(|ts| ts.is_finite() && *ts >= 0.0).unwrap();
            let kind = event["ph"].as_str().unwrap();
            match kind {
                "X" => {
                    let end = ts() + event["dur"].as_f64().filter(|dur| *dur >= 0.0).unwrap();
                    let ends = open.entry(track).or_default();
                    while ends.last().is_some_and(|last| *last <= ts() + 0.0005) {
                        ends.pop();
                    }
                    assert!(ends.last().is_none_or(|last| end <= last + 0.0005), "{event} ends after {ends:?}");
                    ends.push(end);
                }
                "i" => assert!(ts() >= 0.0 && ["g", "p", "t"].contains(&event["s"].as_str().unwrap())),
                "C" => assert!(ts() >= 0.0 && event["args"]["us"].is_f64()),
                "M" => assert!(event["args"]["name"].is_string(), "{event}"),
                other => panic!("no such phase of an event: {other}"),
            }
            let what = format!("{kind} {}", event["cat"].as_str().or(event["name"].as_str()).unwrap());
            *counts.entry(what).or_default() += 1;
        }
        counts
    }

    #[test]
    fn spikes_have_phases_with_causes_inside_and_each_cpu_is_shown_once() {
        let capture = capture();
        let trace = capture.trace().unwrap();
        let (case, explanation) = capture.cases().next().unwrap();
        let later = Subject { due_ns: case.subject.due_ns + 1_000, ..case.subject };
        let spike = |subject| Spike { explanation, subject, trace: &trace };
        let alone = timeline(&[spike(&case.subject)]);
        let both = timeline(&[spike(&later), spike(&case.subject)]);
        assert_eq!(alone["otherData"]["spikes"][0]["latency_ns"], explanation.latency.ns());
        let of = |counts: &HashMap<String, usize>, what: &str| counts.get(what).copied().unwrap_or(0);
        let counts = assert_valid(&alone);
        assert_eq!(of(&counts, "X phase"), explanation.phases.len());
        assert_eq!(of(&counts, "X cause"), explanation.segments.len());
        assert_eq!((of(&counts, "M thread_name"), of(&counts, "C latency of wake-up of CPU 0")), (3, 2));
        // Slices of CPUs are valid although the windows overlap; phases of one track are not looked at.
        let cpus = |story: &Value| {
            let events = story["traceEvents"].as_array().unwrap();
            let of_cpus = events.iter().filter(|event| event["pid"] == CPUS).cloned().collect::<Vec<_>>();
            json!({ "displayTimeUnit": "ns", "traceEvents": of_cpus })
        };
        assert_valid(&cpus(&both));
        assert_eq!(both["otherData"]["spikes"].as_array().unwrap().len(), 2);
        assert!(assert_valid(&timeline(&[])).len() == 1, "two processes");
    }
}
