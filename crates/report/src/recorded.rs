//! A recorded trace: its threads, and why they were late.

use crate::Style;
use crate::lines::Lines;
use crate::sections::{explained, phases, watched};
use punctual_analysis::findings::of_watched_threads;
use punctual_analysis::recorded::Judged;
use punctual_analysis::wording::{count, duration, things};
use punctual_analysis::{Answer, CONFIDENCE, ChainSummary, Finding, WatchedSummary, answer};
use punctual_model::{ExplainRecord, Span, WatchSample};
use serde::Serialize;
use std::io;

/// What a recorded trace tells, printed by `punctual watch --from FILE --format json`.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct RecordedDocument {
    /// The answer in one sentence.
    pub answer: Answer,
    /// Version of the program that judges it.
    pub version: &'static str,
    /// The file.
    pub file: String,
    /// Clock of its events, as the kernel names it.
    pub clock: String,
    /// Number of CPUs.
    pub cpus: usize,
    /// Time of which the events of all CPUs are there, ns.
    pub length_ns: u64,
    /// Number of events that tell something.
    pub events: u64,
    /// Gaps: events were lost.
    pub gaps: u64,
    /// What is not in the trace, and what is unknown without it.
    pub missing: Vec<String>,
    /// The threads that were asked for, or all that look periodic.
    pub threads: Vec<WatchedSummary>,
    /// Number of other threads.
    pub others: u64,
    /// Names of those of them with most activations.
    pub most_active: Vec<String>,
    /// What to know of them, most important first.
    pub findings: Vec<Finding>,
    /// The chain; `null` if none was requested.
    pub chain: Option<ChainSummary>,
    /// The late activations.
    pub explained: ExplainRecord,
}

impl RecordedDocument {
    /// The document of a trace in this file, with its clock and number of CPUs.
    pub fn new(
        version: &'static str,
        (file, clock, cpus): (String, String, usize),
        judged: Judged,
        sample: WatchSample,
    ) -> RecordedDocument {
        let Judged { times_ns, events, gaps, seen, left_out, threads, others, most_active, refused, chain, explained } =
            judged;
        let left_out = left_out.map(|n| format!("{}, which no list had room for", things(n, "thread")));
        let missing = (gaps > 0).then(|| format!("{} in the trace", things(gaps, "gap")));
        let is_sampled = sample == WatchSample::Response;
        let threads: Vec<WatchedSummary> = (threads.iter())
            .filter_map(|one| WatchedSummary::of(&one.thread, &one.slices, is_sampled, CONFIDENCE))
            .collect();
        RecordedDocument {
            answer: answer::of_threads(&threads, Some(&explained), missing, Span(0)),
            version,
            file,
            clock,
            cpus,
            length_ns: times_ns.end.saturating_sub(times_ns.start),
            events,
            gaps,
            missing: seen.missing().into_iter().chain(left_out).collect(),
            findings: of_watched_threads(&threads, &refused),
            threads,
            others,
            most_active,
            chain: chain.as_ref().and_then(ChainSummary::of),
            explained,
        }
    }

    /// Writes it for the terminal, with up to `style.spikes` of the latest activations one by one.
    pub fn text(&self, out: &mut dyn io::Write, style: Style) -> io::Result<()> {
        let lines = Lines::new(style);
        lines.framed(out, &self.answer, |out| {
            let (length, cpus) = (duration(self.length_ns as f64), things(self.cpus as u64, "CPU"));
            let gaps = if self.gaps == 0 { String::new() } else { format!(", {}", things(self.gaps, "gap")) };
            let head = format!("{}: {length} of {cpus}, {} events{gaps}", self.file, count(self.events));
            lines.paragraph(out, "", &head)?;
            self.missing.iter().try_for_each(|what| lines.paragraph(out, "", &format!("Not in the trace: {what}.")))?;
            writeln!(out)?;
            explained::of_recorded(out, &self.explained, &lines, style.spikes)?;
            writeln!(out)?;
            watched::of_threads(&self.threads).write(out, &lines)?;
            let threads = std::iter::once(("", &*self.threads));
            if let Some(phases) = phases::of_cells(threads, false, "us unless marked") {
                writeln!(out)?;
                phases.write(out, &lines)?;
            }
            if let Some(chain) = &self.chain {
                writeln!(out)?;
                let chains = [(String::new(), chain.clone())];
                watched::of_chains(&chains, false, "us unless marked").write(out, &lines)?;
            }
            if self.others > 0 {
                let said =
                    format!("{} not listed: --thread shows those of a name.", things(self.others, "other thread"));
                lines.paragraph(out, "", &said)?;
            }
            if !self.findings.is_empty() {
                writeln!(out, "\nFindings")?;
            }
            self.findings.iter().try_for_each(|finding| lines.paragraph(out, "  ", &finding.to_string()))?;
            Ok(())
        })
    }
}
