//! Verdicts on promises of man pages and kernel documents about scheduling.
//!
//! A case that did not hold is counted against the share of cases that a disturbance may break, and cases that held
//! against a promise that is broken in a share of them: both give the chance that the verdict is wrong.

mod claims;

use crate::answer::Answer;
use crate::stats::order_interval::binomial_cdf;
use crate::wording::duration;
use claims::Claimed;
use punctual_model::{ClaimCases, Promise, PromiseVerdict};
use serde::Serialize;

/// Largest chance of a wrong answer with which a promise is called kept.
const KEPT: f64 = 0.01;
/// The same for a broken one, so that many runs on disturbed machines do not call one broken by chance.
const BROKEN: f64 = 1e-6;
/// Share of disturbed cases from which some of them may break without making the answer uncertain.
const DISTURBED: f64 = 0.05;

/// A claim with its verdict.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct JudgedClaim {
    /// The verdict.
    pub verdict: PromiseVerdict,
    /// What is promised.
    pub asked: &'static str,
    /// What was seen; `null` where nothing was tried.
    pub seen: Option<String>,
    /// The documents that promise it.
    pub document: &'static str,
    /// Chance that the verdict is wrong; `null` where it cannot be told. Of a kept claim: the chance that one broken in
    /// the share `detects` of cases shows no more broken ones.
    pub chance_wrong: Option<f64>,
    /// That share.
    pub detects: f64,
    /// Reason that it cannot be told.
    pub why: Option<String>,
    /// The cases.
    #[serde(flatten)]
    pub cases: ClaimCases,
}

/// A promise with the verdict on all of its claims.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct JudgedPromise {
    /// The promise.
    pub promise: Promise,
    /// Broken if one of its claims is, kept if all are.
    pub verdict: PromiseVerdict,
    /// Its claims.
    pub claims: Vec<JudgedClaim>,
    /// Time of its experiments, which its claims share, s.
    pub seconds: f64,
}

impl JudgedPromise {
    /// Judges what was seen of a promise in so many seconds.
    pub fn new(promise: Promise, cases: Vec<ClaimCases>, seconds: f64) -> JudgedPromise {
        let claims: Vec<_> = cases.into_iter().map(JudgedClaim::new).collect();
        let is_any = |verdict| claims.iter().any(|claim| claim.verdict == verdict);
        let verdict = match () {
            () if is_any(PromiseVerdict::Broken) => PromiseVerdict::Broken,
            () if is_any(PromiseVerdict::CannotTell) || claims.is_empty() => PromiseVerdict::CannotTell,
            () => PromiseVerdict::Kept,
        };
        JudgedPromise { promise, verdict, claims, seconds }
    }

    /// Largest chance of a wrong answer among its claims with this verdict; `None` where it cannot be told.
    pub fn chance_wrong(&self) -> Option<f64> {
        let alike = self.claims.iter().filter(|claim| claim.verdict == self.verdict);
        alike.filter_map(|claim| claim.chance_wrong).reduce(f64::max)
    }

    /// The promise and those of its claims that decide the verdict, unless all do; and the reason, without its remedy.
    fn named(&self) -> (String, &str) {
        let deciding = || self.claims.iter().filter(|claim| claim.verdict == self.verdict);
        let claims = deciding().map(|claim| claim.cases.claim.name()).collect::<Vec<_>>().join(", ");
        let name = self.promise.name();
        let named = if deciding().count() == self.claims.len() { name.to_owned() } else { format!("{name}, {claims}") };
        let why = deciding().find_map(|claim| claim.why.as_deref()).unwrap_or_default();
        (named, why.split(": ").next().unwrap_or_default())
    }
}

impl JudgedClaim {
    fn new(cases: ClaimCases) -> JudgedClaim {
        let claimed = claims::about(cases.claim);
        let ClaimCases { cases: n, broken, .. } = cases;
        let (kept, wrong) = (at_most(broken, n, claimed.detects), at_least(broken, n, claimed.disturbed));
        let is_clean = broken == 0 || claimed.disturbed >= DISTURBED && broken as f64 <= claimed.disturbed * n as f64;
        let why = match (&cases.unknown, cases.control) {
            (Some(reason), _) => Some(reason.clone()),
            (_, Some(control)) if control.shown < control.cases || control.cases == 0 => {
                let of = format!("{} of {}", control.shown, control.cases);
                Some(format!("the experiment has no power here: {} in {of} cases", claimed.control))
            }
            _ if broken > 0 && wrong <= BROKEN || is_clean && kept <= KEPT => None,
            _ if broken == 0 => Some(format!("{n} cases are too few")),
            _ => Some(format!("{broken} of {n} cases: a disturbance may explain them; run it again")),
        };
        let (verdict, chance_wrong) = match () {
            () if why.is_some() => (PromiseVerdict::CannotTell, None),
            () if broken > 0 && wrong <= BROKEN => (PromiseVerdict::Broken, Some(wrong)),
            () => (PromiseVerdict::Kept, Some(kept)),
        };
        let (asked, document, detects) = (claimed.asked, claimed.document, claimed.detects);
        JudgedClaim { verdict, asked, seen: seen(&cases, claimed), document, chance_wrong, detects, why, cases }
    }
}

/// Chance of at most `k` of `n` cases of chance `p` each.
fn at_most(k: u64, n: u64, p: f64) -> f64 {
    if n == 0 { 1.0 } else { binomial_cdf(k, n, p) }
}

/// Chance of at least `k` of `n` cases of chance `p` each.
fn at_least(k: u64, n: u64, p: f64) -> f64 {
    if k == 0 { 1.0 } else { binomial_cdf(n.saturating_sub(k), n, 1.0 - p) }
}

/// What was seen, in words.
fn seen(cases: &ClaimCases, claimed: &Claimed) -> Option<String> {
    if cases.cases == 0 {
        return None;
    }
    let mut parts = vec![format!("{}: {} of {}", claimed.broken, cases.broken, cases.cases)];
    if let Some(control) = cases.control {
        parts.push(format!("{}: {} of {}", claimed.control, control.shown, control.cases));
    }
    if let (Some(quantity), Some([least, most])) = (claimed.quantity, cases.seen_ns) {
        let (least, most) = (duration(least as f64), duration(most as f64));
        let range = if least == most { least } else { format!("{least} to {most}") };
        let asked =
            cases.asked_ns.map(|ns| format!(" ({} {})", claimed.limit, duration(ns as f64))).unwrap_or_default();
        parts.push(format!("{quantity} {range}{asked}"));
    }
    Some(parts.join("; "))
}

/// The answer about all of them.
pub fn answer(promises: &[JudgedPromise]) -> Answer {
    let of = |verdict| promises.iter().filter(move |one| one.verdict == verdict);
    let all = promises.len();
    let kept = of(PromiseVerdict::Kept).count();
    let mut answer = match kept {
        _ if kept == all && all == 1 => format!("the promise is kept: {}", promises[0].promise),
        _ if kept == all => format!("all {all} promises are kept"),
        _ => format!("{kept} of {all} {} kept", if all == 1 { "promise is" } else { "promises are" }),
    };
    for (verdict, is, are) in [
        (PromiseVerdict::Broken, "is broken", "are broken"),
        (PromiseVerdict::CannotTell, "cannot be told", "cannot be told"),
    ] {
        let mut by_reason: Vec<(Vec<String>, &str)> = Vec::new();
        for (name, why) in of(verdict).map(JudgedPromise::named) {
            match by_reason.iter_mut().find(|(_, known)| *known == why) {
                Some((names, _)) => names.push(name),
                None => by_reason.push((vec![name], why)),
            }
        }
        let n = of(verdict).count();
        let named = by_reason.iter().map(|(names, why)| {
            let names = names.join(", ");
            if why.is_empty() { names } else { format!("{names} ({why})") }
        });
        if n > 0 {
            let named = named.collect::<Vec<_>>().join(", ");
            answer += &format!("; {n} {}: {named}", if n == 1 { is } else { are });
        }
    }
    Answer::new(answer)
}

/// The exit status of the program: 0 all are kept, 2 one is broken, 3 one cannot be told.
pub fn exit_status(promises: &[JudgedPromise]) -> u8 {
    let is_any = |verdict| promises.iter().any(|one| one.verdict == verdict);
    match () {
        () if is_any(PromiseVerdict::Broken) => 2,
        () if is_any(PromiseVerdict::CannotTell) => 3,
        () => 0,
    }
}

#[cfg(test)]
mod tests;
