//! The checks of a machine as text and JSON.

use super::lines::Lines;
use super::{Style, json};
use crate::sections::machine::named;
use punctual_analysis::Answer;
use punctual_analysis::doctor::{Examined, Outcome, Severity};
use punctual_analysis::facts::{self, Fingerprint};
use punctual_model::Host;
use serde_json::Value;
use std::io;

/// Width of a name; the longest has 22 letters.
const NAME: usize = 22;

/// The checks of a machine.
#[derive(Debug)]
pub struct Examination<'a> {
    /// Name and version of this program.
    pub tool: &'a str,
    /// The machine.
    pub host: &'a Host,
    /// Results of the checks, worst first.
    pub checks: Vec<Examined>,
}

impl Examination<'_> {
    /// Whether any check reports a certain cause of latency.
    pub fn will_be_late(&self) -> bool {
        self.count(Severity::Will) > 0
    }

    /// The answer: the settings that cause latency.
    pub fn answer(&self) -> Answer {
        let will = self.names(Severity::Will);
        let mut answer = match will.len() {
            0 => "no setting found that causes latency".to_owned(),
            1 => format!("1 setting causes latency: {}", will.join(", ")),
            n => format!("{n} settings cause latency: {}", will.join(", ")),
        };
        let others = [(self.count(Severity::May), "may"), (self.count(Severity::Unknown), "unknown")];
        for (n, what) in others.into_iter().filter(|(n, _)| *n > 0) {
            answer += &format!("; {n} {what}");
        }
        Answer::new(answer)
    }

    fn names(&self, severity: Severity) -> Vec<&str> {
        self.checks.iter().filter(|check| check.outcome.severity == severity).map(|check| check.name).collect()
    }

    fn count(&self, severity: Severity) -> usize {
        self.names(severity).len()
    }

    /// Writes the answer and an overview: certain and possible causes and the names of unknown ones; all checks with
    /// `style.all_findings`.
    pub fn text(&self, out: &mut dyn io::Write, style: Style) -> io::Result<()> {
        let lines = Lines::new(style);
        lines.framed(out, &self.answer(), |out| {
            let mut machine = vec![self.tool.to_owned()];
            machine.extend(named(self.host));
            lines.facts(out, &machine)?;
            let cokernel: Vec<_> =
                facts::of_cokernel(self.host).map(|(name, text)| format!("{name}: {text}")).collect();
            if !cokernel.is_empty() {
                lines.facts(out, &cokernel)?;
            }
            lines.facts(out, &self.totals())?;
            writeln!(out)?;
            let is_shown = |severity| style.all_findings || matches!(severity, Severity::Will | Severity::May);
            for check in self.checks.iter().filter(|check| is_shown(check.outcome.severity)) {
                listed(out, check, &lines)?;
            }
            let unknown = self.names(Severity::Unknown);
            if !style.all_findings && !unknown.is_empty() {
                lines.paragraph(out, "", &format!(" ? unknown: {}", unknown.join(", ")))?;
            }
            lines.paragraph(out, "", "punctual doctor NAME explains a check; --all shows every one.")
        })
    }

    /// Writes the checks in full.
    pub fn explained(&self, out: &mut dyn io::Write, style: Style) -> io::Result<()> {
        let lines = Lines::new(style);
        for (i, check) in self.checks.iter().enumerate() {
            if i > 0 {
                writeln!(out)?;
            }
            let Outcome { severity, found, remedy } = &check.outcome;
            lines.heading(out, &format!("{}: {}", check.name, spelled(*severity).1))?;
            lines.hanging(out, "  found   ", found)?;
            lines.hanging(out, "  why     ", check.why)?;
            lines.hanging(out, "  source  ", check.source)?;
            if let Some(remedy) = remedy {
                // Commands are not wrapped, so that they can be copied.
                writeln!(out, "  change  {}", remedy.change)?;
                writeln!(out, "  undo    {}", remedy.undo)?;
                remedy.caution.as_ref().map_or(Ok(()), |caution| lines.hanging(out, "  but     ", caution))?;
            }
        }
        Ok(())
    }

    /// A JSON document with every requested check.
    pub fn json(&self) -> Value {
        json::of_checks(self.answer(), self.tool, self.host, &self.checks)
    }

    fn totals(&self) -> Vec<String> {
        let totals = SEVERITIES.map(|severity| (self.count(severity), spelled(severity).1));
        let words = totals.into_iter().filter(|(count, _)| *count > 0).map(|(count, words)| format!("{count} {words}"));
        words.chain([format!("fingerprint {}", Fingerprint::of(self.host))]).collect()
    }
}

const SEVERITIES: [Severity; 5] =
    [Severity::Will, Severity::May, Severity::Unknown, Severity::Ok, Severity::NotApplicable];

/// Mark and name of a severity.
fn spelled(severity: Severity) -> (&'static str, &'static str) {
    match severity {
        Severity::Will => ("!!", "will cause latency"),
        Severity::May => (" !", "may"),
        Severity::Unknown => (" ?", "unknown"),
        Severity::Ok => ("ok", "ok"),
        Severity::NotApplicable => (" -", "not applicable"),
    }
}

/// Writes a check as a row with mark, name and result, and the remedy below.
fn listed(out: &mut dyn io::Write, check: &Examined, lines: &Lines) -> io::Result<()> {
    let Outcome { severity, found, remedy } = &check.outcome;
    lines.hanging(out, &format!("{} {:<NAME$}  ", spelled(*severity).0, check.name), found)?;
    if let Some(remedy) = remedy {
        let indent = " ".repeat(NAME + 5);
        writeln!(out, "{indent}{}", remedy.change)?;
        remedy.caution.as_ref().map_or(Ok(()), |caution| lines.hanging(out, &indent, &format!("({caution})")))?;
        writeln!(out, "{indent}undo: {}", remedy.undo)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_names_the_settings_that_cause_latency_and_counts_what_is_unknown() {
        let check = |name, severity| Examined {
            name,
            outcome: Outcome { severity, found: String::new(), remedy: None },
            why: "",
            source: "",
        };
        let (will, may) = (Severity::Will, Severity::May);
        for (checks, answer) in [
            (vec![], "no setting found that causes latency"),
            (vec![("smt", Severity::Ok), ("swap", Severity::NotApplicable)], "no setting found that causes latency"),
            (vec![("smt", Severity::Unknown)], "no setting found that causes latency; 1 unknown"),
            (vec![("smt", may), ("swap", may)], "no setting found that causes latency; 2 may"),
            (vec![("smt", will)], "1 setting causes latency: smt"),
            (
                vec![("smt", will), ("swap", will), ("smi", may), ("tracer", Severity::Unknown)],
                "2 settings cause latency: smt, swap; 1 may; 1 unknown",
            ),
        ] {
            let checks = checks.into_iter().map(|(name, severity)| check(name, severity)).collect();
            let examination = Examination { tool: "punctual 0.1.0", host: &Host::default(), checks };
            assert_eq!(examination.answer().to_string(), answer);
        }
    }
}
