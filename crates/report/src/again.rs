//! Explanations that were made again from kept events: which verdicts changed, with old and new.

use crate::Style;
use crate::lines::Lines;
use punctual_analysis::explain::{blame, share_line};
use punctual_analysis::wording::{duration, things};
use punctual_model::{Explanation, Share};
use serde::Serialize;
use std::collections::BTreeSet;
use std::io;

/// The kept spikes of a run, explained again, printed by `punctual explain RUN --again --format json`.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct AgainDocument {
    /// Version of the program that explains them now.
    pub version: &'static str,
    /// Number of spikes whose explanation is another one now.
    pub changed: u64,
    /// The spikes, in the order of the run.
    pub spikes: Vec<JudgedAgain>,
    /// Captures that cannot be read, each with the reason.
    pub unreadable: Vec<String>,
}

/// A late wake-up as it was explained when it was measured, and as it is explained now.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct JudgedAgain {
    /// File with its events, below `captures/`.
    pub capture: String,
    /// Version of the program that measured it.
    pub version: String,
    /// Whether the explanations differ.
    pub is_changed: bool,
    /// Its explanation then.
    pub then: Explanation,
    /// Its explanation now; `null` if today's rules do not accept the trace.
    pub now: Option<Explanation>,
}

impl AgainDocument {
    /// The document of these spikes and unreadable captures.
    pub fn new(version: &'static str, spikes: Vec<JudgedAgain>, unreadable: Vec<String>) -> AgainDocument {
        let changed = spikes.iter().filter(|spike| spike.is_changed).count();
        AgainDocument { version, changed: u64::try_from(changed).unwrap_or(u64::MAX), spikes, unreadable }
    }

    /// Writes it for the terminal: how many changed, and each that did.
    pub fn text(&self, out: &mut dyn io::Write, style: Style) -> io::Result<()> {
        let lines = Lines::new(style);
        let all = u64::try_from(self.spikes.len()).unwrap_or(u64::MAX);
        let versions: BTreeSet<&str> = self.spikes.iter().map(|spike| spike.version.as_str()).collect();
        let versions: Vec<&str> = versions.into_iter().collect();
        let by = format!("(version {} then, {} now)", versions.join(", "), self.version);
        lines.heading(out, &format!("{} of {} changed {by}", self.changed, things(all, "verdict")))?;
        for spike in self.spikes.iter().filter(|spike| spike.is_changed) {
            writeln!(out)?;
            one(out, spike, &lines)?;
        }
        Ok(())
    }
}

fn one(out: &mut dyn io::Write, spike: &JudgedAgain, lines: &Lines) -> io::Result<()> {
    let JudgedAgain { capture, then, now, .. } = spike;
    let thread = then.thread.as_ref().map_or_else(String::new, |thread| format!("{}   ", thread.name));
    let latency = duration(then.latency.ns() as f64);
    lines.heading(out, &format!("{thread}{latency}   CPU {}   {:.4} s", then.cpu, then.due_ns as f64 / 1e9))?;
    lines.hanging(out, "  then  ", &blame(then))?;
    match now {
        None => lines.hanging(out, "  now   ", "The trace does not cover it.")?,
        Some(now) => {
            lines.hanging(out, "  now   ", &blame(now))?;
            for (label, one, other) in [("  less  ", then, now), ("  more  ", now, then)] {
                only_in(one, other).iter().try_for_each(|line| lines.hanging(out, label, line))?;
            }
        }
    }
    writeln!(out, "  {capture}")
}

/// The shares after the first one of an explanation that another one does not have, as lines.
fn only_in(one: &Explanation, other: &Explanation) -> Vec<String> {
    let lines = |explanation: &Explanation| -> Vec<String> {
        let line = |share: &Share| format!("{} [{}]", share_line(share), share.evidence);
        explanation.shares.iter().skip(1).map(line).collect()
    };
    let known = lines(other);
    lines(one).into_iter().filter(|line| !known.contains(line)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;
    use punctual_model::{Cause, Evidence, Owner, Phase, Span};

    fn explanation(name: &str, cause: Cause, evidence: Evidence) -> Explanation {
        let share = Share {
            phase: Phase::WakeupToSwitch,
            owner: Owner { name: name.to_owned(), pid: None },
            threads: 1,
            cause,
            or: None,
            evidence,
            total: Span(400_000),
            longest: Span(400_000),
            pieces: 1,
            place: None,
            code: None,
        };
        Explanation {
            cpu: 1,
            cycle: 77,
            due_ns: 77_000_000,
            latency: Span(412_000),
            shares: vec![share],
            ..Explanation::default()
        }
    }

    #[test]
    fn what_changed_is_shown_with_old_and_new() {
        let softirq = || explanation("softirq RCU", Cause::Softirq, Evidence::Direct);
        let steal = || explanation("hackbench", Cause::CpuStalled, Evidence::Inferred);
        let spike = |then: Explanation, now: Option<Explanation>| JudgedAgain {
            capture: "b00-c00-spike-cpu1-cycle77.dat.zst".to_owned(),
            version: "0.1.0".to_owned(),
            is_changed: now.as_ref() != Some(&then),
            then,
            now,
        };
        let watched = Explanation { thread: Some(Owner { name: "servo".to_owned(), pid: Some(7) }), ..softirq() };
        let all = vec![spike(softirq(), Some(softirq())), spike(softirq(), Some(steal())), spike(watched, None)];
        let document = AgainDocument::new("0.2.0", all, Vec::new());
        let mut out = Vec::new();
        let style = Style { width: 80, colour: false, unicode: false, all_findings: false, spikes: 0, columns: None };
        document.text(&mut out, style).unwrap();
        expect![[r#"
            2 of 3 verdicts changed (version 0.1.0 then, 0.2.0 now)

            412 us   CPU 1   0.0770 s
              then  softirq RCU ran 400 us [direct].
              now   The CPU was stalled (host, SMI) for 400 us under hackbench [inferred].
              b00-c00-spike-cpu1-cycle77.dat.zst

            servo   412 us   CPU 1   0.0770 s
              then  softirq RCU ran 400 us [direct].
              now   The trace does not cover it.
              b00-c00-spike-cpu1-cycle77.dat.zst
        "#]]
        .assert_eq(&String::from_utf8(out).unwrap());
    }
}
