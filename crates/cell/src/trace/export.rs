//! Export of kept spikes for other programs: a timeline as JSON for Chrome and Perfetto, the raw trace for trace-cmd.

use analysis::explain::{self, Subject, Symbols, Trace, blame, phase_name};
use ftrace::{DatHead, Layouts, Window};
use host::file;
use model::Explanation;
use serde_json::{Value, json};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Time before the due time and after the reading of the clock that a timeline covers, ns.
const BEFORE_NS: u64 = 500_000;
const AFTER_NS: u64 = 50_000;

/// Writes spikes to a directory.
#[derive(Debug)]
pub(crate) struct Export {
    dir: PathBuf,
    layouts: Layouts,
    /// The first file that could not be written, with the reason.
    failed: Option<String>,
}

impl Export {
    /// An export of traces with these layouts.
    pub(crate) fn new(dir: &Path, layouts: Layouts) -> Export {
        Export { dir: dir.to_owned(), layouts, failed: None }
    }

    /// Returns the first failed file, if any, once.
    pub(crate) fn failure(&mut self) -> Option<String> {
        self.failed.take()
    }

    /// Writes both files of a spike.
    pub(crate) fn write(
        &mut self,
        name: &str,
        explanation: &Explanation,
        subject: &Subject,
        trace: &Trace,
        window: &Window,
        symbols: Symbols<'_>,
    ) {
        let [story, raw] = self.paths(name);
        let write = |path: &Path, content: &[u8]| file::create(path).and_then(|mut file| file.write_all(content));
        let mut written = write(&story, story_of(explanation, subject, trace).to_string().as_bytes());
        if written.is_ok() {
            let functions = ftrace::functions(trace, symbols);
            let (layouts, names) = (self.layouts.clone(), trace.names.clone());
            let head = DatHead { layouts, names, functions, own: Vec::new() };
            written = write(&raw, &head.file(&[("", &window.around)]));
        }
        if let Err(err) = written {
            let what = || format!("{}: {err}; not all spikes are exported", self.dir.display());
            self.failed.get_or_insert_with(what);
        }
    }

    /// Removes the files of a spike that is no longer kept.
    pub(crate) fn remove(&mut self, name: &str) {
        for path in self.paths(name) {
            let _ = fs::remove_file(path);
        }
    }

    fn paths(&self, name: &str) -> [PathBuf; 2] {
        ["json", "dat"].map(|kind| self.dir.join(format!("{name}.{kind}")))
    }
}

/// Events in Chrome's tracing format ("Trace Event Format"), times in us: one track for each CPU, and one for the
/// phases.
fn story_of(explanation: &Explanation, subject: &Subject, trace: &Trace) -> Value {
    let us = |ns: u64| ns as f64 / 1000.0;
    // In Perfetto thread 0 is the idle thread of any process, so that CPU tracks are numbered from 1.
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
        "otherData": { "tool": model::TOOL, "latency_ns": explanation.latency.ns(), "blame": blame(explanation) },
    })
}

fn track(tid: usize, name: &str) -> Value {
    json!({ "ph": "M", "name": "thread_name", "pid": 1, "tid": tid, "args": { "name": name } })
}

#[cfg(test)]
mod tests {
    use super::super::instance::{
        TraceRequest,
        tests::{only_instance, switch},
    };
    use super::super::source::PageSource;
    use super::*;
    use analysis::explain::What;
    use std::collections::HashMap;
    use std::process::Command;

    /// The events of each CPU as trace-cmd reads them: time, ns, and name, in time order.
    fn read_by_trace_cmd(path: &Path) -> Option<HashMap<usize, Vec<(u64, String)>>> {
        let said = Command::new("trace-cmd").args(["report", "-t", "-i"]).arg(path).output().ok()?;
        assert!(said.status.success(), "{said:?}");
        let text = String::from_utf8_lossy(&said.stdout).into_owned();
        let mut events: HashMap<usize, Vec<(u64, String)>> = HashMap::new();
        // Like `   name-with-[x]-75    [000] 49052.245767836: reschedule_entry:     vector=253`.
        for line in text.lines() {
            let Some((cpu, rest)) = line.match_indices("] ").find_map(|(end, _)| {
                let cpu = line[..end].rsplit('[').next()?.parse::<usize>().ok()?;
                Some((cpu, &line[end + 2..]))
            }) else {
                continue;
            };
            let mut words = rest.split_whitespace();
            let (Some(time), Some(name)) = (words.next(), words.next()) else { continue };
            let Some((seconds, fraction)) = time.trim_end_matches(':').split_once('.') else { continue };
            let (Ok(seconds), Ok(fraction)) = (seconds.parse::<u64>(), fraction.parse::<u64>()) else { continue };
            let name = name.trim_end_matches(':').to_owned();
            events.entry(cpu).or_default().push((seconds * 1_000_000_000 + fraction, name));
        }
        Some(events)
    }

    #[test]
    #[expect(clippy::disallowed_macros, reason = "read by developers only")]
    fn root_trace_cmd_reads_the_same_events_of_the_same_pages() {
        let Some((_only, mut instance)) = only_instance() else { return };
        let pid = i32::try_from(std::process::id()).unwrap();
        let decoder = instance
            .enable(TraceRequest {
                events: crate::trace::EventSet::Explanation,
                pids: Some(&[pid]),
                stacks: false,
                idle_states: true,
            })
            .unwrap();
        let (mut marker, tracing_on) = instance.freezer().unwrap();
        instance.start().unwrap();
        switch(100);
        marker.write_all(b"here").unwrap();
        if let Some(mut tracing_on) = tracing_on {
            tracing_on.write_all(b"0").unwrap();
        }
        let mut trace = decoder.begin(instance.n_cpus());
        let mut pages = vec![Vec::new(); instance.n_cpus()];
        let mut n_events = 0;
        for (cpu, pages) in pages.iter_mut().enumerate() {
            instance.drain(cpu, decoder.page_bytes(), pages).unwrap();
            let counted = decoder.read(&mut trace, cpu, pages);
            assert_eq!(counted.damaged, 0);
            n_events += counted.events;
        }
        assert!(n_events > 20, "{n_events}");
        let path = std::env::temp_dir().join(format!("punctual-dat-{pid}"));
        let (layouts, names) = (instance.layouts().clone(), trace.names.clone());
        let head = DatHead { layouts, names, own: b"own".to_vec(), ..DatHead::default() };
        fs::write(&path, head.file(&[("", &pages)])).unwrap();
        let read = read_by_trace_cmd(&path);
        fs::remove_file(&path).unwrap();
        let Some(read) = read else {
            eprintln!("skipped: needs trace-cmd (apt-get install trace-cmd)");
            return;
        };
        assert_eq!(read.values().map(|events| events.len() as u64).sum::<u64>(), n_events);
        for (cpu, events) in trace.cpus.iter().enumerate().filter(|(_, cpu)| !cpu.events.is_empty()) {
            let theirs = &read[&cpu];
            assert!(theirs.iter().zip(&events.events).all(|((at, _), ours)| *at == ours.at_ns), "CPU {cpu}");
            let switches = events.events.iter().filter(|event| matches!(event.what, What::Switch { .. })).count();
            assert_eq!(theirs.iter().filter(|(_, name)| name == "sched_switch").count(), switches);
        }
    }

    #[test]
    fn a_story_has_a_track_for_each_cpu_and_the_phases_in_their_order() {
        use analysis::explain::{CpuEvents, Event, WaitsFor};
        use model::{Phase, PhaseLength, Span};
        let switch = What::Switch { prev: 7, prev_priority: 120, prev_state: 1, next: 8, next_priority: 19 };
        let events = vec![Event { at_ns: 5_000, pid: 7, flags: 0, what: switch }];
        let cpu = CpuEvents { events, ..CpuEvents::default() };
        let trace = Trace { cpus: vec![cpu, CpuEvents::default()], ..Trace::default() };
        let phase = |phase, ns| PhaseLength { phase, length: Span(ns) };
        let explanation = Explanation {
            cycle: 3,
            latency: Span(7_000),
            phases: vec![phase(Phase::Queue, 4_000), phase(Phase::Return, 3_000)],
            ..Explanation::default()
        };
        let subject = Subject {
            pid: 8,
            waits_for: WaitsFor::Timer,
            cpu: 0,
            priority: 19,
            due_ns: 1_000,
            woke_ns: 8_000,
            slack_ns: 0,
        };
        let story = story_of(&explanation, &subject, &trace);
        let events = story["traceEvents"].as_array().unwrap();
        let slices: Vec<_> = events.iter().filter(|event| event["ph"] == "X").collect();
        let times: Vec<_> =
            slices.iter().map(|slice| (slice["tid"].as_u64(), slice["ts"].as_f64(), slice["dur"].as_f64())).collect();
        let want = [
            (Some(3), Some(1.0), Some(4.0)),
            (Some(3), Some(5.0), Some(3.0)),
            (Some(1), Some(0.0), Some(5.0)),
            (Some(1), Some(5.0), Some(53.0)),
        ];
        assert_eq!(times, want);
        assert_valid(&story);
    }

    /// Checks the requirements of the format ("Trace Event Format", the document that the readers of Chrome and
    /// Perfetto follow): an object with `traceEvents`; a phase, a process, a thread and a name for each event; a time
    /// and a length in us for complete events (X), which do not overlap within a thread; a scope for instants (i); a
    /// name as argument for metadata (M).
    fn assert_valid(story: &Value) {
        assert!(["ns", "ms"].contains(&story["displayTimeUnit"].as_str().unwrap()));
        let events = story["traceEvents"].as_array().unwrap();
        let mut ends: HashMap<u64, f64> = HashMap::new();
        let mut named = 0;
        for event in events {
            let (pid, tid) = (event["pid"].as_u64().unwrap(), event["tid"].as_u64().unwrap());
            // Perfetto's idle thread.
            assert!(pid > 0 && tid > 0 && event["name"].is_string(), "{event}");
            let ts = || event["ts"].as_f64().filter(|ts| ts.is_finite() && *ts >= 0.0).unwrap();
            match event["ph"].as_str().unwrap() {
                "X" => {
                    let end = ends.entry(tid).or_insert(0.0);
                    assert!(ts() >= *end - 0.0005, "{event} begins before {end}");
                    *end = ts() + event["dur"].as_f64().filter(|dur| *dur >= 0.0).unwrap();
                }
                "i" => assert!(ts() >= 0.0 && ["g", "p", "t"].contains(&event["s"].as_str().unwrap())),
                "M" => {
                    assert!(event["args"]["name"].is_string(), "{event}");
                    named += u64::from(event["name"] == "thread_name");
                }
                other => panic!("no such phase of an event: {other}"),
            }
        }
        assert_eq!(named, 3, "two CPUs and the phases");
    }
}
