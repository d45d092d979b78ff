//! Sentences for the answer of a comparison.

use super::layout::times_as_long;
use super::{ChangedAccount, ComparedStage, Comparison, Decision, MIN_BLOCKS, Measured, Metric, Ratio, Refusal};
use crate::answer::{Answer, share as lost_share};
use crate::comparison::comparability::{self, Difference, Role};
use crate::machine::config::Likeness;
use crate::wording::{count, different_work, duration, number, things};
use std::fmt;

impl Comparison {
    /// The answer in one sentence.
    pub fn answer(&self) -> Answer {
        Answer::new(self.sentence())
    }

    /// The answer: a word in capitals, and a sentence that explains it.
    pub fn sentence(&self) -> String {
        let Comparison { a, b, blocks, margin, primary, decision, .. } = self;
        let (metric, blocks) = (primary.metric, things(*blocks, "block"));
        match (decision, primary.ratio) {
            (Decision::Different, Some(ratio)) => {
                let (is, way) = match (ratio.value > 1.0, metric) {
                    (true, Metric::Lost) => ("noisier", "higher"),
                    (true, _) => ("later", "higher"),
                    (false, Metric::Lost) => ("quieter", "lower"),
                    (false, _) => ("earlier", "lower"),
                };
                let (times, low, high) = times(&ratio);
                format!(
                    "DIFFERENT: {b} is {is} than {a}: {metric} is {times} times {way} \
                     ({low} to {high} times, 95 %, {blocks})."
                )
            }
            (Decision::Equivalent, Some(ratio)) => {
                let within = number((margin - 1.0) * 100.0);
                let small =
                    if ratio.excludes_one() { " The difference is significant, but smaller than that." } else { "" };
                format!(
                    "EQUIVALENT: {metric} of {b} and of {a} differ by less than {within} % (95 %, {blocks}).{small}"
                )
            }
            // Reported as an error, with its own sentence.
            (Decision::Refused { why: Refusal::Incomparable }, _) => self.why_not().unwrap_or_default(),
            (Decision::Refused { why }, _) => format!("UNDECIDED: {}", why.in_words(metric)),
            (decision, ratio) => {
                let between = ratio.map_or_else(
                    || format!("no ratio is excluded after {blocks}"),
                    |Ratio { interval: (low, high), .. }| {
                        let (low, high) = (digits(low), digits(high));
                        format!("{metric} of {b} is {low} to {high} times that of {a} (95 %, {blocks})")
                    },
                );
                let needed = match decision {
                    Decision::Undecided { blocks_needed: Some(needed) } => {
                        let (needed, margin) = (things(*needed, "block"), number(*margin));
                        format!(" About {needed} would detect a ratio of {margin}.")
                    }
                    _ => String::new(),
                };
                format!("UNDECIDED: {between}. This does not mean that they are equal.{needed}")
            }
        }
    }

    /// Reason for which the two cannot be compared, in one line; `None` if they can, or if the comparison was forced.
    pub fn why_not(&self) -> Option<String> {
        let is_refused = self.decision == Decision::Refused { why: Refusal::Incomparable };
        let why = comparability::why_not(&self.differences).filter(|_| is_refused)?;
        Some(format!("{why}; --force compares anyway"))
    }

    /// Remarks on the answer, one sentence each.
    pub fn remarks(&self) -> Vec<String> {
        let Comparison {
            a,
            b,
            blocks,
            a_first,
            noise_floor,
            differences,
            causes,
            accounts,
            stages,
            margin,
            loads,
            kernels,
            decision,
            is_again,
            ..
        } = self;
        let mut remarks = Vec::new();
        if let Some((low, high)) = noise_floor {
            let (low, high) = (digits(*low), digits(*high));
            remarks.push(format!("Noise floor: two measurements of {a} differ by {low} to {high} times (95 %)."));
        }
        if *is_again && *decision == Decision::Different {
            remarks.push(
                "Both are the same configuration: this is the noise of the machine, and a similar ratio between two \
                 others is not significant."
                    .to_owned(),
            );
        }
        let is_one_sided = *a_first == 0 || a_first == blocks;
        if is_one_sided && *blocks >= 6 && !matches!(decision, Decision::Refused { why: Refusal::Separate }) {
            let first = if *a_first == 0 { "second" } else { "first" };
            remarks.push(format!(
                "{a} was always measured {first}: carry-over from one to the other is part of the ratio."
            ));
        }
        for load in loads.iter().filter(|load| load.differs) {
            let (Some(of_a), Some(of_b)) = (load.a_per_second, load.b_per_second) else { continue };
            let Some(factor) = load.factor() else { continue };
            let [a, b] = [(a.as_str(), of_a), (b.as_str(), of_b)];
            let (more, less) = if of_a > of_b { (a, b) } else { (b, a) };
            let work = different_work((&load.load, &load.operation), factor, more, less, "in");
            remarks.push(format!("Different work: {work}."));
        }
        if let Some(Likeness::NotLikeForLike { reasons }) = kernels {
            remarks.push(format!("Kernels not like for like: {}.", reasons.join(", ")));
        }
        for cause in causes {
            let (name, with, without, ns) = match (cause.a_ns, cause.b_ns) {
                (Some(ns), _) => (cause.name(), a, b, ns),
                (None, ns) => (cause.name(), b, a, ns.unwrap_or(0)),
            };
            let took = crate::wording::duration(ns as f64);
            remarks.push(format!("Delay by {name}: {took} in {with}, none in {without}."));
        }
        for ChangedAccount { thread, ran_percent: ran, waited_percent: waited } in accounts {
            let [(waited_a, waited_b), (ran_a, ran_b)] = [waited, ran].map(|(a, b)| (number(*a), number(*b)));
            remarks.push(format!(
                "Time of {thread}: waited for a CPU {waited_a} % in {a}, {waited_b} % in {b}; ran {ran_a} % and {ran_b} %."
            ));
        }
        remarks.extend(stage_remarks(stages, *margin));
        let asked: Vec<_> = differences.iter().filter(|one| one.role == Role::Asked).map(|one| one.fact).collect();
        if asked.len() > 1 {
            remarks.push(format!("They differ in {}: the ratio is their combined effect.", asked.join(" and ")));
        }
        // The names of cells contain the load and the policy; the name of an imported file need not.
        let is_imported = matches!(decision, Decision::Refused { why: Refusal::NoBlocks { .. } });
        let is_in_name = |one: &Difference| !is_imported && ["load", "policy"].contains(&one.fact);
        let is_told = |one: &&Difference| one.role == Role::Asked || is_in_name(one);
        remarks.extend(comparability::remarks(differences.iter().filter(|one| !is_told(one))));
        remarks
    }
}

/// What is said of the phases and packet stages of watched threads.
fn stage_remarks(stages: &[ComparedStage], margin: f64) -> Vec<String> {
    let mut of_threads: Vec<(&str, bool, Vec<&ComparedStage>)> = Vec::new();
    for one in stages {
        match of_threads.iter_mut().find(|(thread, of, _)| (*thread, *of) == (&one.thread, one.is_of_packets)) {
            Some((.., all)) => all.push(one),
            None => of_threads.push((&one.thread, one.is_of_packets, vec![one])),
        }
    }
    let length = |ns: Option<i64>| ns.map_or_else(|| "-".to_owned(), |ns| crate::wording::duration(ns as f64));
    let said = |(thread, is_of_packets, all): (&str, bool, Vec<&ComparedStage>)| {
        let what = if is_of_packets { "Packet stages" } else { "Phases" };
        let one = |one: &&ComparedStage| {
            let [a, b] = [one.a, one.b].map(|spread| format!("{} / {}", length(spread.p50_ns), length(spread.p99_ns)));
            format!("{} {a}, then {b}", one.stage)
        };
        let changed: Vec<String> = all.iter().filter(|one| one.differs(margin)).map(one).collect();
        match changed.is_empty() {
            true => format!("{what} of {thread}: none differs by more than {} times.", number(margin)),
            false => format!("{what} of {thread} that differ (p50 / p99): {}.", changed.join("; ")),
        }
    };
    of_threads.into_iter().map(said).collect()
}

/// The factor and its interval, inverted if the ratio is below 1.
fn times(ratio: &Ratio) -> (String, String, String) {
    let Ratio { value, interval: (low, high), .. } = *ratio;
    let (value, low, high) = if value > 1.0 { (value, low, high) } else { (1.0 / value, 1.0 / high, 1.0 / low) };
    (number(value), number(low), number(high))
}

impl Refusal {
    pub(crate) fn in_words(&self, metric: Metric) -> String {
        match self {
            Refusal::Incomparable => String::new(),
            Refusal::FewBlocks { blocks } => format!(
                "{} with both, {MIN_BLOCKS} are needed to show any difference: measure more (--repetitions 12).",
                things(*blocks, "block")
            ),
            Refusal::Separate => {
                "confounded with drift: one was measured before the other. Measure both in one run, or in alternation \
                 (punctual help guide compare); --force compares anyway."
                    .to_owned()
            }
            Refusal::NoBlocks { forced } => {
                let force = if *forced { "--force does not help: ratios need blocks. " } else { "" };
                format!(
                    "confounded with drift: imported measurements have no blocks, each is one run. {force}\
                     Measure both again in one run (punctual help guide compare)."
                )
            }
            Refusal::FewBoots { boots } => format!(
                "confounded with the boot: no boot has both, and one has only {} of the {} needed. --force compares anyway.",
                things(*boots, "boot"),
                super::MIN_BOOTS
            ),
            Refusal::FewExceedances { have, need } => {
                let longer = times_as_long(*have, *need).map(|times| {
                    format!(
                        ": measure {} times as long in each block, or use a lower quantile (--metric)",
                        number(times)
                    )
                });
                format!(
                    "a measurement has only {} above {metric}, {} are needed{}.",
                    things(*have, "wake-up"),
                    count(*need),
                    longer.unwrap_or_default()
                )
            }
            Refusal::OfGaps => {
                format!("{metric} of gaps rises when short gaps disappear: compare what is lost (without --metric).")
            }
            Refusal::Thresholds { a_ns, b_ns } => format!(
                "gaps count above {} in one and {} in the other: measure both with one threshold, like noise:5us.",
                duration(*a_ns as f64),
                duration(*b_ns as f64)
            ),
            Refusal::NotEnded => "a thread that never waits did not end, so what it lost is unknown.".to_owned(),
            Refusal::NotSeen { unseen } => {
                format!(
                    "{} of a measurement were not seen, and may be later: measure again.",
                    things(*unseen, "due time")
                )
            }
            Refusal::NotPositive if metric == Metric::Lost => {
                "a measurement has no gap above the threshold, so no ratio exists: measure longer, or lower the threshold."
                    .to_owned()
            }
            Refusal::NotPositive => {
                format!("{metric} is not above 0 in every measurement (early wake-ups), so no ratio exists.")
            }
        }
    }
}

impl Measured {
    /// A value of this metric with its unit.
    pub fn value(&self, value: Option<f64>) -> String {
        match (value, self.metric) {
            (None, _) => "-".to_owned(),
            (Some(value), Metric::Misses) => number(value),
            (Some(share), Metric::Lost) => lost_share(share),
            (Some(ns), _) => duration(ns),
        }
    }
}

impl fmt::Display for Ratio {
    /// `0.16 [0.12-0.21]`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Ratio { value, interval: (low, high), .. } = *self;
        f.pad(&format!("{} [{}-{}]", digits(value), digits(low), digits(high)))
    }
}

/// A ratio with three significant digits, also below 1, without trailing zeros: 0.00289, 0.86.
fn digits(ratio: f64) -> String {
    let zeros = (0..9u8).find(|zeros| ratio >= 10f64.powi(-i32::from(*zeros))).unwrap_or(0);
    if zeros == 0 {
        return number(ratio);
    }
    format!("{ratio:.*}", usize::from(zeros) + 2).trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_ratios_keep_their_digits() {
        for (ratio, text) in
            [(212.0, "212"), (1.0, "1"), (0.9134, "0.913"), (0.00289, "0.00289"), (0.86, "0.86"), (0.0, "0")]
        {
            assert_eq!(digits(ratio), text);
        }
    }
}
