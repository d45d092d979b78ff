//! The head of a page: the answer, the title, and the machine, the kernel, the date and the load of each run.

use super::markup::{Markup, Prose, Text};
use crate::sections::{imported, machine};
use crate::{ImportedSet, OwnRun, Results, rfc3339};
use punctual_analysis::wording::{count, things};
use punctual_analysis::{Answer, RunSummary, Verdict};
use punctual_model::{Header, Host, Requirement};
use std::fmt;

/// Loads named in a head.
const LOADS: usize = 4;

/// The top of a page about one run.
#[derive(Debug)]
pub(super) struct Top<'a> {
    pub(super) name: &'a str,
    pub(super) title: String,
    pub(super) require: &'a Requirement,
    verdict: &'a Verdict,
    /// The reason why it is incomplete; `None` of a complete run.
    incomplete: Option<String>,
    /// The answer in a sentence.
    answer: Answer,
    /// The machine and the program.
    facts: Vec<String>,
    /// The word before the date (may be empty), and the date, ms since 1970-01-01 UTC.
    date: (&'static str, u64),
    /// Command line of the measured kernel.
    command_line: Option<&'a str>,
    /// The amount of measured time.
    extent: String,
}

impl<'a> Results<'a> {
    pub(super) fn top(&self) -> Top<'a> {
        match self {
            Results::Own(run) => of_run(run),
            Results::Imported(set) => of_imported(set),
        }
    }
}

fn of_run<'a>(run: &OwnRun<'a>) -> Top<'a> {
    let OwnRun { name, header, entries, summary } = *run;
    let is_virtual = header.is_virtual();
    let targets = targets(summary);
    let machine = if let [target] = targets[..] { target } else { &header.host };
    let host = machine.hostname.as_ref().filter(|_| !is_virtual).map_or("it", String::as_str);
    let has_latencies = summary.cells.iter().any(|cell| cell.cell.task.has_latencies());
    let question = match (targets.is_empty(), has_latencies || summary.cells.is_empty()) {
        (false, _) => format!("How soon does {host} answer?"),
        (true, true) => format!("How late can {host} be?"),
        (true, false) => "What do operations cost?".to_owned(),
    };
    let mut facts = match &targets[..] {
        [] => machine::measured_on(header),
        [target] => vec![format!("target: {}", machine::known_facts(target).join(", "))],
        several => vec![things(u64::try_from(several.len()).unwrap_or(u64::MAX), "target")],
    };
    let qemu = entries.iter().find_map(|entry| entry.record.lab.as_ref()).map(|lab| lab.qemu.clone());
    facts.extend(qemu);
    facts.extend(loads(header));
    facts.push(header.tool.clone());
    // In virtual time nothing depends on the command line of this machine.
    let command_line = machine.command_line.as_deref().filter(|line| !is_virtual && !line.is_empty());
    Top {
        name,
        title: titled(&header.plan.title, question),
        require: &header.plan.require,
        verdict: &summary.verdict,
        incomplete: incomplete(run),
        answer: summary.answer(),
        facts,
        date: ("", header.started_unix_ms),
        command_line,
        extent: machine::measured(header, summary),
    }
}

fn of_imported<'a>(set: &ImportedSet<'a>) -> Top<'a> {
    let ImportedSet { name, header, summary } = *set;
    let n = u64::try_from(summary.cells.len()).unwrap_or(u64::MAX);
    let measurements = things(n, "measurement");
    let mut facts = imported::machines(summary);
    facts.push(header.tool.clone());
    Top {
        name,
        title: titled(&header.title, "Measurements of other tools".to_owned()),
        require: &header.require,
        verdict: &summary.verdict,
        incomplete: None,
        answer: summary.answer(),
        facts,
        date: ("imported ", header.imported_unix_ms),
        command_line: None,
        extent: format!("{measurements} of other tools; facts that their files lack are not known"),
    }
}

/// Returns the title of a plan or an import; `other` where it has none.
fn titled(title: &str, other: String) -> String {
    if title.is_empty() { other } else { title.to_owned() }
}

/// Returns the machines that answered, each once; empty unless all measured cells are of answers from known machines.
fn targets(summary: &RunSummary) -> Vec<&Host> {
    let mut hosts: Vec<&Host> = Vec::new();
    for cell in summary.cells.iter().filter(|cell| cell.blocks > 0) {
        let target = cell.response.as_ref().and_then(|response| response.target.as_ref());
        let Some(host) = target.and_then(|target| target.host.as_deref()) else { return Vec::new() };
        // Counters differ between two snapshots of one machine.
        let is_same = |other: &&Host| machine::known_facts(other) == machine::known_facts(host);
        if !hosts.iter().any(is_same) {
            hosts.push(host);
        }
    }
    hosts
}

/// Returns how many measurements of a run are missing; `None` of a complete one.
fn incomplete(run: &OwnRun<'_>) -> Option<String> {
    let (done, planned) = punctual_analysis::run_progress(run.header, run.entries);
    let failed = u64::try_from(run.header.failed.len()).unwrap_or(u64::MAX);
    if done >= planned && failed == 0 {
        return None;
    }
    let failed = if failed > 0 { format!("; {} failed", count(failed)) } else { String::new() };
    let planned = things(planned, "measurement");
    Some(format!("{} of {planned}{failed}; resume with punctual run --resume --out RUN", count(done)))
}

/// Returns the loads of a run.
pub(super) fn loads(header: &Header) -> Option<String> {
    let mut names: Vec<String> = Vec::new();
    for name in header.cells.iter().map(|cell| cell.load.to_string()) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let more = names.len().saturating_sub(LOADS);
    names.truncate(LOADS);
    names.extend((more > 0).then(|| format!("{more} more")));
    (!names.is_empty()).then(|| format!("load: {}", names.join(", ")))
}

/// Writes the answer, the title and the facts of a run.
pub(super) fn write(page: &mut Markup, top: &Top<'_>, letter: Option<char>) {
    page.raw("<header>\n");
    let (class, word) = match top.verdict {
        Verdict::NoneAsked => ("", ""),
        Verdict::Pass { .. } => ("pass", top.verdict.word()),
        Verdict::Fail { .. } => ("fail", top.verdict.word()),
        Verdict::Inconclusive { .. } => ("open", top.verdict.word()),
    };
    let sentence = top.answer.to_string();
    let reason = sentence.strip_prefix(word).unwrap_or(&sentence).trim_start_matches([':', ' ']);
    match class {
        "" => answer(page, letter, &top.answer),
        // With limits the answer is the verdict.
        class => {
            page.add(format_args!("<p class=\"answer verdict {class}\">{}<strong>{word}</strong> ", Letter(letter)));
            page.add(format_args!("{}</p>\n", Prose(reason)));
        }
    }
    if let Some(reason) = &top.incomplete {
        page.add(format_args!("<p class=\"verdict open\"><strong>INCOMPLETE</strong> {}</p>\n", Prose(reason)));
    }
    let name = letter.map(|_| format!("{}: ", top.name)).unwrap_or_default();
    page.add(format_args!("<h1>{}{}{}</h1>\n", Letter(letter), Text(name), Text(&top.title)));
    facts(page, &top.facts, top.date, top.command_line);
    page.add(format_args!("<p class=quiet>{}.</p>\n</header>\n", Text(&top.extent)));
}

/// The letter of a run before its answer or title; nothing on a page of one.
struct Letter(Option<char>);

impl fmt::Display for Letter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |letter| write!(f, "<b class=run>{letter}</b> "))
    }
}

/// Writes the answer, the first element of each page.
pub(super) fn answer(page: &mut Markup, letter: Option<char>, sentence: &Answer) {
    page.add(format_args!("<p class=answer>{}{}</p>\n", Letter(letter), Prose(sentence)));
}

/// Writes the machine, the date after a word, which may be empty, and the kernel command line, folded.
pub(super) fn facts(page: &mut Markup, facts: &[String], (word, unix_ms): (&str, u64), command_line: Option<&str>) {
    page.raw("<ul class=facts>");
    facts.iter().for_each(|fact| page.add(format_args!("<li>{}", Text(fact))));
    let date = rfc3339(unix_ms);
    let utc = date.trim_end_matches('Z').replace('T', " ");
    page.add(format_args!("<li>{word}<time datetime={date}>{utc} UTC</time></ul>\n"));
    if let Some(line) = command_line {
        page.add(format_args!(
            "<details class=\"quiet wide\"><summary>Kernel command line</summary><code>{}</code></details>\n",
            Text(line)
        ));
    }
}
