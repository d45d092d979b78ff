//! Content of every format, for own runs and imported measurements; unknown facts are `None`.

use super::super::table::Table;
use super::Test;
use crate::sections::{Section, findings, imported, latencies, machine, noise, threads, tracers, watched};
use crate::{ImportedSet, OwnRun, Results};
use punctual_analysis::{Answer, Case, Row, Verdict};
use punctual_model::Host;

/// A run, ready for any format.
#[derive(Debug)]
pub struct Page<'a> {
    pub(super) title: &'a str,
    pub(super) tool: &'a str,
    pub(super) started_unix_ms: Option<u64>,
    pub(super) host: &'a Host,
    pub(super) rows: Vec<Row<'a>>,
    pub(super) verdict: &'a Verdict,
    pub(super) cases: &'a [Case],
    /// Tests that are no limits of cells, which stand for all others.
    pub(super) given: Option<Vec<Test<'a>>>,
    /// The answer in one sentence.
    pub(super) answer: Answer,
    /// The table of the text formats.
    pub(super) table: Table,
    /// Legend of the table.
    pub(super) legend: String,
    /// Section of threads of different periods; `None` without them.
    pub(super) threads: Option<Section>,
    /// Section of the kernel's tracers; `None` if not requested.
    pub(super) traced: Option<Section>,
    /// The findings in sentences.
    pub(super) sentences: Vec<String>,
    /// Machine and extent in one line.
    pub(super) about: String,
}

/// A host without known facts.
static UNKNOWN: std::sync::LazyLock<Host> = std::sync::LazyLock::new(Host::default);

impl<'a> Page<'a> {
    /// The page of a run or of imported measurements.
    pub fn of(results: &Results<'a>, all_findings: bool) -> Page<'a> {
        match results {
            Results::Own(run) => Page::of_run(run, results.rows(), all_findings),
            Results::Imported(run) => Page::of_imported(run, results.rows()),
        }
    }

    fn of_run(run: &OwnRun<'a>, rows: Vec<Row<'a>>, all_findings: bool) -> Page<'a> {
        let OwnRun { header, summary, .. } = *run;
        let mut facts = vec![header.tool.clone()];
        facts.extend(machine::named(&header.host));
        Page {
            // The title of a plan is optional.
            title: if header.plan.title.is_empty() { "punctual run" } else { &header.plan.title },
            tool: &header.tool,
            started_unix_ms: Some(header.started_unix_ms),
            host: &header.host,
            table: latencies::table(&rows),
            // Costs of operations appear in text, JSON and HTML only.
            rows: rows.into_iter().filter(Row::has_latencies).collect(),
            verdict: &summary.verdict,
            cases: &summary.cases,
            given: None,
            answer: summary.answer(),
            legend: format!("In {}; [95 %]: interval; when: into the run.", crate::unit(summary)),
            threads: threads::of(summary).or_else(|| watched::of(summary)).or_else(|| noise::of(summary)),
            traced: tracers::of(summary),
            sentences: if all_findings {
                findings::all(summary)
            } else {
                findings::Digest::of(summary, findings::MOST).into_sentences(run.name)
            },
            about: format!("{}; {}", facts.join(" · "), machine::measured(header, summary)),
        }
    }

    fn of_imported(run: &ImportedSet<'a>, rows: Vec<Row<'a>>) -> Page<'a> {
        let ImportedSet { header, summary, .. } = *run;
        let host = rows.first().map(|row| row.host).filter(|first| rows.iter().all(|row| row.host == *first));
        Page {
            title: if header.title.is_empty() { "imported" } else { &header.title },
            tool: &header.tool,
            started_unix_ms: rows.iter().filter_map(|row| row.started_unix_ms).min(),
            host: host.unwrap_or(&UNKNOWN),
            table: imported::table(&rows),
            rows,
            verdict: &summary.verdict,
            cases: &summary.cases,
            given: None,
            answer: summary.answer(),
            legend: "In microseconds where no unit stands; - is not known.".to_owned(),
            threads: None,
            traced: None,
            sentences: imported::sentences(summary),
            about: format!("{}; {}", header.tool, imported::machines(summary).join("; ")),
        }
    }

    /// The page of tests without cells.
    pub(crate) fn of_tests(
        title: &'a str,
        host: &'a Host,
        started_unix_ms: u64,
        answer: Answer,
        given: Vec<Test<'a>>,
    ) -> Page<'a> {
        Page {
            title,
            tool: punctual_model::TOOL,
            started_unix_ms: Some(started_unix_ms),
            host,
            rows: Vec::new(),
            verdict: &Verdict::NoneAsked,
            cases: &[],
            given: Some(given),
            answer,
            table: latencies::table(&[]),
            legend: String::new(),
            threads: None,
            traced: None,
            sentences: Vec::new(),
            about: String::new(),
        }
    }
}
