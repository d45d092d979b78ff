//! The top of a page: title, verdict, answer, and the machine of each run.

use super::markup::{Markup, Prose, Text};
use crate::sections::{imported, machine};
use crate::{ImportedSet, OwnRun, Results, rfc3339};
use punctual_analysis::wording::{count, things};
use punctual_analysis::{Answer, RunSummary, Verdict};
use punctual_model::{Host, Requirement};

/// Longest kernel command line that is shown unfolded, characters: a line of the page.
const SHORT_COMMAND_LINE: usize = 120;

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

/// Writes the title, the verdict, the answer and the facts of a run.
pub(super) fn write(page: &mut Markup, top: &Top<'_>, letter: Option<char>) {
    let title = Text(&top.title);
    page.raw("<header>\n");
    match letter {
        None => page.add(format_args!("<h1>{title}</h1>\n")),
        Some(letter) => {
            page.add(format_args!("<h1><b class=run>{letter}</b> {title} <small>{}</small></h1>\n", Text(top.name)));
        }
    }
    verdict(page, top.verdict);
    if let Some(reason) = &top.incomplete {
        banner(page, "open", "INCOMPLETE", reason);
    }
    // With limits it is the verdict.
    if *top.verdict == Verdict::NoneAsked {
        page.add(format_args!("<p class=answer>{}</p>\n", Text(&top.answer)));
    }
    page.raw("<ul class=facts>");
    top.facts.iter().for_each(|fact| page.add(format_args!("<li>{}", Text(fact))));
    let (word, unix_ms) = top.date;
    let date = rfc3339(unix_ms);
    let utc = date.trim_end_matches('Z').replace('T', " ");
    page.add(format_args!("<li>{word}<time datetime={date}>{utc} UTC</time></ul>\n"));
    page.add(format_args!("<p class=quiet>{}.</p>\n", Text(&top.extent)));
    if let Some(line) = top.command_line {
        // A long one would push the answer off the screen.
        let open = if line.chars().count() <= SHORT_COMMAND_LINE { " open" } else { "" };
        page.add(format_args!(
            "<details class=\"quiet wide\"{open}><summary>Kernel command line</summary><code>{}</code></details>\n",
            Text(line)
        ));
    }
    page.raw("</header>\n");
}

fn verdict(page: &mut Markup, verdict: &Verdict) {
    let class = match verdict {
        Verdict::NoneAsked => return,
        Verdict::Pass { .. } => "pass",
        Verdict::Fail { .. } => "fail",
        Verdict::NotShown { .. } => "open",
    };
    let (word, sentence) = (verdict.word(), verdict.sentence());
    let reason = sentence.strip_prefix(word).unwrap_or_default().trim_start_matches([':', ' ']);
    banner(page, class, word, reason);
}

/// Writes a colored paragraph that begins with a word in capitals.
fn banner(page: &mut Markup, class: &str, word: &str, reason: &str) {
    page.add(format_args!("<p class=\"verdict {class}\"><strong>{word}</strong> {}</p>\n", Prose(reason)));
}
