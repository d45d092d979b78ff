//! Conclusions of a study, judged by measurements here.
//!
//! An order is judged step by step: the values of the blocks of one group against those of the next, where all else is
//! equal, by an exact rank-sum test. A conclusion is found again if every step is shown at 5 %, which as a whole is
//! then wrong in at most 5 % of cases (intersection-union test).

use super::measured::{StudyMeasurement, by_block, common_operations, due_times, value};
use crate::stats::rank_sum::{RankSum, Stratum, rank_sum};
use crate::wording::{count, duration, number, things};
use model::{Statistic, StudyAxis, StudyCells, StudyConclusion, StudyDefinition};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// Level of the tests.
const LEVEL: f64 = 0.05;

/// Whether a conclusion holds here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum StudyVerdict {
    /// Every part of it is shown here.
    FoundAgain,
    /// The contrary of a part is shown, or no difference although enough blocks were measured to show one.
    NotFound,
    /// Too little was measured.
    CannotTell,
    /// No cells that could show it.
    NotTested,
}

impl StudyVerdict {
    /// In words.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            StudyVerdict::FoundAgain => "found again",
            StudyVerdict::NotFound => "not found",
            StudyVerdict::CannotTell => "cannot tell",
            StudyVerdict::NotTested => "not tested here",
        }
    }
}

/// A judged conclusion.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StudyJudgment {
    /// The conclusion as published.
    pub says: String,
    /// Whether it holds here.
    pub verdict: StudyVerdict,
    /// The values that decide, or the reason why none do.
    pub why: String,
}

/// Judges every conclusion of a study.
#[must_use]
pub fn judgments(definition: &StudyDefinition, measurements: &[StudyMeasurement<'_>]) -> Vec<StudyJudgment> {
    let judged = |conclusion: &StudyConclusion| {
        let (verdict, why) = judge(definition, conclusion, measurements);
        StudyJudgment { says: conclusion.says.clone(), verdict, why }
    };
    definition.conclusions.iter().map(judged).collect()
}

fn judge(
    definition: &StudyDefinition,
    conclusion: &StudyConclusion,
    all: &[StudyMeasurement<'_>],
) -> (StudyVerdict, String) {
    let meant: Vec<_> = all.iter().filter(|measurement| measurement.is_in(&conclusion.only)).collect();
    let in_time: Vec<_> = meant.iter().copied().filter(|measurement| !measurement.is_virtual).collect();
    let reason = conclusion.needs_hardware.as_deref().or(conclusion.below.map(|_| "a limit is about real time"));
    let cells = match reason {
        Some(reason) if in_time.is_empty() && !meant.is_empty() => {
            return (StudyVerdict::NotTested, format!("{reason}; virtual time has no hardware"));
        }
        Some(_) => in_time,
        None => meant,
    };
    match conclusion.below {
        Some(limit) => below(conclusion, limit.ns(), &cells),
        None => order(definition, conclusion, &cells),
    }
}

/// Judges a limit, which no wake-up may reach.
fn below(conclusion: &StudyConclusion, limit_ns: u64, cells: &[&StudyMeasurement<'_>]) -> (StudyVerdict, String) {
    let Some(largest) = value(cells, conclusion.statistic, &BTreeSet::new()) else {
        return (StudyVerdict::NotTested, format!("no cell with {}", words(&conclusion.only)));
    };
    let is_later = largest.value >= limit_ns as f64;
    let verdict = match (is_later, largest.at_least) {
        (true, _) => StudyVerdict::NotFound,
        (false, true) => StudyVerdict::CannotTell,
        (false, false) => StudyVerdict::FoundAgain,
    };
    let (due, blocks) = (due_times(cells), by_block(cells).len() as u64);
    let open = if largest.at_least { " at least, with a wait still open" } else { "" };
    let (largest, due) = (duration(largest.value), things(due, "due time"));
    (verdict, format!("{} {largest}{open}, in {due} of {}", conclusion.statistic, things(blocks, "measurement")))
}

/// A step of an order: the values of two groups by stratum, and the test.
struct Step<'a> {
    larger: &'a StudyCells,
    smaller: &'a StudyCells,
    strata: Vec<Stratum>,
    test: RankSum,
}

fn order(
    definition: &StudyDefinition,
    conclusion: &StudyConclusion,
    cells: &[&StudyMeasurement<'_>],
) -> (StudyVerdict, String) {
    let (present, absent): (Vec<&StudyCells>, Vec<&StudyCells>) =
        conclusion.falls.iter().partition(|group| cells.iter().any(|cell| cell.is_in(group)));
    let missing = absent.iter().map(|group| words(group)).collect::<Vec<_>>().join(", ");
    let steps: Option<Vec<Step<'_>>> =
        present.windows(2).map(|pair| step(definition, conclusion, pair[0], pair[1], cells)).collect();
    let steps = steps.filter(|steps| !steps.is_empty());
    let Some(steps) = steps else {
        let missing = if absent.is_empty() { "that differ in nothing else".to_owned() } else { missing };
        return (StudyVerdict::NotTested, format!("no cells with {missing}"));
    };
    let shown = steps.iter().map(|step| step.words(conclusion.statistic)).collect::<Vec<_>>().join("; ");
    let is_contrary = |step: &Step<'_>| step.test.p_smaller <= LEVEL && step.test.p_larger > LEVEL;
    let verdict = if steps.iter().any(is_contrary) {
        StudyVerdict::NotFound
    } else if !absent.is_empty() {
        let rest = if steps.iter().all(|step| step.test.p_larger <= LEVEL) { "; the rest is found again" } else { "" };
        return (StudyVerdict::NotTested, format!("no cells with {missing}{rest}: {shown}"));
    } else if steps.iter().all(|step| step.test.p_larger <= LEVEL) {
        StudyVerdict::FoundAgain
    } else if steps.iter().any(|step| step.test.p_larger > LEVEL && step.test.p_least > LEVEL) {
        return (StudyVerdict::CannotTell, format!("{shown}; too few blocks to show a difference: --repetitions"));
    } else {
        StudyVerdict::NotFound
    };
    (verdict, shown)
}

/// The axes that make a stratum, with the kind of time: cells of one stratum differ in the groups only.
type Place<'a> = (&'static str, Option<(&'a str, String)>, Option<String>, Option<String>, Option<u64>);

/// Tests whether the values of one group are above those of another; `None` without cells that differ in nothing else.
fn step<'a>(
    definition: &StudyDefinition,
    conclusion: &StudyConclusion,
    larger: &'a StudyCells,
    smaller: &'a StudyCells,
    cells: &[&StudyMeasurement<'_>],
) -> Option<Step<'a>> {
    let compared: BTreeSet<StudyAxis> = larger.axes().into_iter().chain(smaller.axes()).collect();
    let is_other = |axis| !compared.contains(&axis);
    let operations = common_operations(cells);
    let mut strata: BTreeMap<Place<'_>, Stratum> = BTreeMap::new();
    for block in by_block(cells) {
        let mut by_period: BTreeMap<u64, Vec<&StudyMeasurement<'_>>> = BTreeMap::new();
        for cell in block {
            by_period.entry(cell.period.ns()).or_default().push(cell);
        }
        for threads in by_period.into_values() {
            let Some(cell) = threads.first() else { continue };
            // A kernel may stand for several of the study: the first that the conclusion allows.
            let kernel = definition.kernels.iter().map(|kernel| kernel.name.as_str()).find(|name| {
                cell.kernels.contains(name)
                    && conclusion.only.contain(name, Some(cell.load), Some(cell.policy), Some(cell.period))
            });
            let place = (
                cell.time,
                kernel.filter(|_| is_other(StudyAxis::Kernel)).map(|name| (name, cell.kernel.to_string())),
                is_other(StudyAxis::Load).then(|| cell.load.to_string()),
                is_other(StudyAxis::Policy).then(|| cell.policy.to_string()),
                is_other(StudyAxis::Period).then(|| cell.period.ns()),
            );
            let Some(found) = value(&threads, conclusion.statistic, &operations) else { continue };
            let found_value = match conclusion.statistic {
                Statistic::Missed => found.value / due_times(&threads) as f64,
                _ => found.value,
            };
            let stratum = strata.entry(place).or_default();
            if cell.is_in(larger) {
                stratum.larger.push(found_value);
            } else if cell.is_in(smaller) {
                // A lower bound shows nothing about a group that should be smaller.
                stratum.smaller.push(if found.at_least { f64::INFINITY } else { found_value });
            }
        }
    }
    let strata: Vec<Stratum> =
        strata.into_values().filter(|stratum| !stratum.larger.is_empty() && !stratum.smaller.is_empty()).collect();
    let test = rank_sum(&strata)?;
    Some(Step { larger, smaller, strata, test })
}

impl Step<'_> {
    /// Both groups with their values, and the test.
    fn words(&self, statistic: Statistic) -> String {
        let range = |of: fn(&Stratum) -> &Vec<f64>| {
            let all = || self.strata.iter().flat_map(of).copied();
            let (least, most) = (all().fold(f64::INFINITY, f64::min), all().fold(f64::NEG_INFINITY, f64::max));
            let (least, most) = (shown(least, statistic), shown(most, statistic));
            if least == most { least } else { format!("{least} to {most}") }
        };
        let (larger, smaller) = (range(|stratum| &stratum.larger), range(|stratum| &stratum.smaller));
        let blocks: usize = self.strata.iter().map(|stratum| stratum.larger.len() + stratum.smaller.len()).sum();
        let (sign, p) = match (self.test.p_larger <= LEVEL, self.test.p_smaller <= LEVEL) {
            (true, _) => ("above", self.test.p_larger),
            (false, true) => ("below", self.test.p_smaller),
            (false, false) => ("not shown to differ from", self.test.p_larger),
        };
        let strata = match self.strata.len() {
            1 => String::new(),
            n => format!(" in {n} groups"),
        };
        format!(
            "{} ({larger}) {sign} {} ({smaller}), {} measurements{strata}, p {}",
            words(self.larger),
            words(self.smaller),
            count(blocks as u64),
            number(p)
        )
    }
}

fn shown(value: f64, statistic: Statistic) -> String {
    match statistic {
        _ if !value.is_finite() => "never woke".to_owned(),
        Statistic::Missed => format!("{} %", number(value * 100.0)),
        _ => duration(value),
    }
}

/// A group in words: `none and voluntary`, `other`.
fn words(cells: &StudyCells) -> String {
    let StudyCells { kernel, load, policy, period } = cells;
    let axes = [
        kernel.clone(),
        load.iter().map(model::Load::label).collect(),
        policy.iter().map(ToString::to_string).collect(),
        period.iter().map(ToString::to_string).collect(),
    ];
    let named: Vec<_> = axes.iter().filter(|axis| !axis.is_empty()).map(|axis| axis.join(" and ")).collect();
    named.join(", ")
}
