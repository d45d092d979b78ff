//! Verdicts on promises about scheduling: text, JSON, and the tests of other formats.

use super::formats::{Outcome, Page, Test};
use super::lines::Lines;
use super::{Style, json};
use crate::sections::machine::named;
use punctual_analysis::Answer;
use punctual_analysis::promises::{JudgedClaim, JudgedPromise, answer};
use punctual_model::{Host, PromiseVerdict};
use serde::Serialize;
use serde_json::Value;
use std::io;

/// Width of a promise and of a claim in the text; the longest have 21 and 16 letters.
const PROMISE: usize = 23;
const CLAIM: usize = 18;

/// The promises that were tested on a machine.
#[derive(Debug)]
pub struct Verification<'a> {
    /// The machine.
    pub host: &'a Host,
    /// CPUs of the experiments.
    pub cpus: Vec<u32>,
    /// Time of all experiments, s.
    pub seconds: f64,
    /// The verdicts.
    pub promises: Vec<JudgedPromise>,
}

/// The JSON document.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct VerifyDocument<'a> {
    /// Format version.
    format: u32,
    /// The answer in one sentence.
    answer: Answer,
    /// Name and version of this program.
    tool: &'a str,
    /// CPUs of the experiments.
    cpus: &'a [u32],
    /// Time of all experiments, s.
    seconds: f64,
    promises: &'a [JudgedPromise],
    host: &'a Host,
}

impl Verification<'_> {
    /// Writes the answer and a line for each claim; what is asked and promised where it is not kept, or with
    /// `style.all_findings`.
    pub fn text(&self, out: &mut dyn io::Write, style: Style) -> io::Result<()> {
        let lines = Lines::new(style);
        lines.framed(out, &answer(&self.promises), |out| {
            let mut facts = vec![punctual_model::TOOL.to_owned()];
            facts.extend(named(self.host));
            lines.facts(out, &facts)?;
            let cpus = self.cpus.iter().map(u32::to_string).collect::<Vec<_>>().join(" and ");
            writeln!(out, "CPU {cpus}, {:.1} s", self.seconds)?;
            for promise in &self.promises {
                let chance = promise.chance_wrong().map(|chance| format!("; chance of a wrong answer {}", percent(chance)));
                writeln!(out, "\n{:<PROMISE$}{}{}", promise.promise.name(), promise.verdict, chance.unwrap_or_default())?;
                promise.claims.iter().try_for_each(|claim| listed(out, claim, &lines, style.all_findings))?;
            }
            if !style.all_findings {
                writeln!(out)?;
                lines.paragraph(out, "", "--all shows what was asked and the documents that promise it.")?;
            }
            Ok(())
        })
    }

    /// A JSON document.
    pub fn json(&self) -> Value {
        json::value(&VerifyDocument {
            format: 1,
            answer: answer(&self.promises),
            tool: punctual_model::TOOL,
            cpus: &self.cpus,
            seconds: self.seconds,
            promises: &self.promises,
            host: self.host,
        })
    }

    /// The claims as tests of other formats.
    pub fn page(&self) -> Page<'_> {
        fn of(promise: &JudgedPromise) -> impl Iterator<Item = Test<'_>> {
            let name = promise.promise.name();
            promise.claims.iter().map(move |claim| test(name, claim))
        }
        Page::of_tests("verify", self.host, answer(&self.promises), self.promises.iter().flat_map(of).collect())
    }
}

/// Writes a claim.
fn listed(out: &mut dyn io::Write, claim: &JudgedClaim, lines: &Lines, all: bool) -> io::Result<()> {
    let label = format!("  {:<CLAIM$}  ", claim.cases.claim.name());
    let indent = " ".repeat(CLAIM + 4);
    let texts = [claim.seen.clone(), claim.why.as_ref().map(|why| format!("cannot tell: {why}"))];
    let text = texts.into_iter().flatten().collect::<Vec<_>>().join("; ");
    let mark = if claim.verdict == PromiseVerdict::Broken { "BROKEN: " } else { "" };
    lines.hanging(out, &label, &format!("{mark}{text}"))?;
    if all || claim.verdict == PromiseVerdict::Broken {
        lines.hanging(out, &format!("{indent}asked   "), claim.asked)?;
        lines.hanging(out, &format!("{indent}source  "), claim.document)?;
        if let Some(chance) = claim.chance_wrong.filter(|_| claim.verdict == PromiseVerdict::Kept) {
            let text = format!("{} if broken in {} of cases", percent(chance), percent(claim.detects));
            lines.hanging(out, &format!("{indent}chance  "), &text)?;
        }
    }
    Ok(())
}

fn test<'a>(name: &'a str, claim: &'a JudgedClaim) -> Test<'a> {
    let outcome = match claim.verdict {
        PromiseVerdict::Kept => Outcome::Passed,
        PromiseVerdict::Broken => Outcome::Failed,
        PromiseVerdict::CannotTell => Outcome::Inconclusive,
    };
    let texts = [
        Some(format!("{}: {}", claim.verdict, claim.asked)),
        claim.seen.clone(),
        claim.why.clone(),
        claim.chance_wrong.map(|chance| format!("chance of a wrong answer {}", percent(chance))),
        Some(claim.document.to_owned()),
    ];
    let why = texts.into_iter().flatten().collect::<Vec<_>>().join("; ");
    Test { of: name, limit: claim.cases.claim.name(), outcome, why, seconds: 0.0 }
}

/// A chance with two digits; those below one in a million are not told apart.
fn percent(chance: f64) -> String {
    let percent = chance * 100.0;
    match percent {
        _ if percent < 0.000_1 => "< 0.0001 %".to_owned(),
        _ if percent < 0.01 => format!("{percent:.4} %"),
        _ if percent < 9.5 => format!("{percent:.2} %"),
        _ => format!("{percent:.0} %"),
    }
}
