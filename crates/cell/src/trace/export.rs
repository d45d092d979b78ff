//! Export of kept spikes for other programs: a timeline as JSON for Chrome and Perfetto, the raw trace for trace-cmd.

use punctual_analysis::explain::{Subject, Symbols, Trace};
use punctual_ftrace::{DatHead, Layouts, MARKS, Spike, Window};
use punctual_host::file;
use punctual_model::Explanation;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

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
        let spike = Spike { explanation, subject, trace };
        let mut written = write(&story, punctual_ftrace::timeline(&[spike]).to_string().as_bytes());
        if written.is_ok() {
            let functions = punctual_ftrace::functions(trace, symbols);
            let (layouts, names) = (self.layouts.clone(), trace.names.clone());
            let head = DatHead { layouts, names, functions, ..DatHead::default() };
            let marks = punctual_ftrace::marks(&head.layouts, &spike).unwrap_or_default();
            let buffers = [("", &window.around[..]), (MARKS, &marks)];
            written = write(&raw, &head.file(buffers.get(..if marks.is_empty() { 1 } else { 2 }).unwrap_or_default()));
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

#[cfg(test)]
mod tests {
    use super::super::instance::{
        StackRequest, TraceRequest,
        tests::{only_instance, switch},
    };
    use super::super::source::PageSource;
    use super::*;
    use punctual_analysis::explain::What;
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
                stacks: StackRequest::Nowhere,
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
}
