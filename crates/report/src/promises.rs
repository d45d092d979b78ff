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
    /// Start, ms since 1970.
    pub started_unix_ms: u64,
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
    /// Start, ms since 1970.
    started_unix_ms: u64,
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
            let mut last = &None;
            for promise in &self.promises {
                let chance =
                    promise.chance_wrong().map(|chance| format!("; chance of a wrong answer {}", percent(chance)));
                writeln!(
                    out,
                    "\n{:<PROMISE$}{}{}",
                    promise.promise.name(),
                    promise.verdict,
                    chance.unwrap_or_default()
                )?;
                for claim in &promise.claims {
                    // A reason that claims share is given once.
                    let is_known = claim.why.is_some() && std::mem::replace(&mut last, &claim.why) == &claim.why;
                    listed(out, claim, &lines, (style.all_findings, is_known))?;
                }
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
            started_unix_ms: self.started_unix_ms,
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
            // Claims are tried together: each takes an equal part.
            let seconds = promise.seconds / promise.claims.len() as f64;
            promise.claims.iter().map(move |claim| test(name, claim, seconds))
        }
        let tests = self.promises.iter().flat_map(of).collect();
        Page::of_tests("verify", self.host, self.started_unix_ms, answer(&self.promises), tests)
    }
}

/// Writes a claim.
fn listed(
    out: &mut dyn io::Write,
    claim: &JudgedClaim,
    lines: &Lines,
    (all, is_known): (bool, bool),
) -> io::Result<()> {
    let label = format!("  {:<CLAIM$}  ", claim.cases.claim.name());
    let indent = " ".repeat(CLAIM + 4);
    let why = |why: &String| if is_known { "cannot tell either".to_owned() } else { format!("cannot tell: {why}") };
    let texts = [claim.seen.clone(), claim.why.as_ref().map(why)];
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

fn test<'a>(name: &'a str, claim: &'a JudgedClaim, seconds: f64) -> Test<'a> {
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
    Test { of: name, limit: claim.cases.claim.name(), outcome, why, seconds }
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

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;
    use punctual_model::{Claim, ClaimCases, Promise};

    /// A promise that is kept, one that is broken, and one that cannot be told.
    fn verification(host: &Host) -> Verification<'_> {
        let cases = |claim, broken| ClaimCases { cases: 50, broken, ..ClaimCases::new(claim) };
        let promises = vec![
            JudgedPromise::new(
                Promise::RobustMutex,
                vec![cases(Claim::ThreadEnded, 0), cases(Claim::ProcessKilled, 0)],
                0.5,
            ),
            JudgedPromise::new(Promise::WakeOrder, vec![cases(Claim::Semaphore, 0), cases(Claim::Signal, 49)], 0.25),
            JudgedPromise::new(
                Promise::Affinity,
                Promise::Affinity.claims().iter().map(|claim| ClaimCases::unknown(*claim, "needs two CPUs")).collect(),
                4.0,
            ),
        ];
        Verification { host, started_unix_ms: 0, cpus: vec![1, 0], seconds: 4.75, promises }
    }

    #[test]
    fn the_text_has_what_was_asked_of_what_is_broken() {
        let (mut text, host) = (Vec::new(), Host::default());
        let style = Style { width: 80, colour: false, unicode: false, all_findings: false, spikes: 0, columns: None };
        verification(&host).text(&mut text, style).unwrap();
        expect![[r#"
            1 of 3 promises are kept; 1 is broken: wake-order, signal; 1 cannot be told:
              affinity (needs two CPUs)
            punctual 0.1.0  |  no hypervisor seen
            CPU 1 and 0, 4.8 s

            robust-mutex           kept; chance of a wrong answer 0.52 %
              thread ended        otherwise: 0 of 50
              process killed      otherwise: 0 of 50

            wake-order             broken; chance of a wrong answer < 0.0001 %
              semaphore           out of order: 0 of 50
              signal              BROKEN: out of order: 49 of 50
                                  asked   pthread_cond_signal wakes waiters by priority, if
                                          all wait before the first signal
                                  source  pthread_cond_signal(3p)

            affinity               cannot tell
              move                cannot tell: needs two CPUs
              stay                cannot tell either

            --all shows what was asked and the documents that promise it.
        "#]]
        .assert_eq(&String::from_utf8(text).unwrap());
    }

    #[test]
    fn every_claim_is_a_test_of_other_formats() {
        let host = Host::default();
        let verification = verification(&host);
        let page = verification.page();
        let junit = crate::junit(&page);
        assert!(junit.contains("tests=\"6\" failures=\"1\" errors=\"2\" skipped=\"0\" time=\"4.750\""), "{junit}");
        assert!(junit.contains("classname=\"punctual.wake-order\" name=\"signal\" time=\"0.125\""), "{junit}");
        let tap = crate::tap(&page);
        assert!(tap.starts_with("TAP version 13\n1..6\nok 1 - robust-mutex thread ended\n"), "{tap}");
        assert_eq!(tap.matches("\nnot ok ").count(), 3);
        let lava = crate::lava(&page);
        assert!(lava.contains("TEST_CASE_ID=wake-order-signal RESULT=fail>\n"), "{lava}");
        assert_eq!(lava.matches("RESULT=unknown").count(), 2);
        let kcidb = crate::kcidb(&page);
        let words = ["PASS", "FAIL", "ERROR"].map(|word| kcidb.matches(&format!("\"status\": \"{word}\"")).count());
        assert_eq!(words, [3, 1, 2], "{kcidb}");
    }
}
