//! Conclusions of a study, judged by measurements here.
//!
//! An order is judged in parts: the values of the blocks of each member of one group against those of each of the next,
//! where all else is equal, on each kernel alone, by an exact rank-sum test. A conclusion is found again if every part
//! is shown at 5 %, which as a whole is then wrong in at most 5 % of cases (intersection-union test). One part that
//! shows the contrary, or a difference below 25 %, refutes it here; what shows neither decides nothing.

use super::measured::{StudyMeasurement, by_block, common_operations, due_times, value};
use crate::stats::rank_sum::{RankSum, Stratum, rank_sum};
use crate::stats::ranks::midranks;
use crate::wording::{count, duration, number, things};
use punctual_model::{Statistic, StudyAxis, StudyCells, StudyConclusion, StudyDefinition};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// Level of the tests.
const LEVEL: f64 = 0.05;
/// Ratio below which values count as alike where that is shown.
const ALIKE: f64 = 1.25;

/// Whether a conclusion holds here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StudyVerdict {
    /// Every part of it is shown here.
    FoundAgain,
    /// The contrary of a part is shown, or a difference below 25 %.
    NotFound,
    /// Too little was measured.
    CannotTell,
    /// No cells that could show it.
    NotTested,
}

impl StudyVerdict {
    /// In words.
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
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct StudyJudgment {
    /// The conclusion as published.
    pub says: String,
    /// Whether it holds here.
    pub verdict: StudyVerdict,
    /// The values that decide, or the reason why none do.
    pub why: String,
    /// Its parts, each of which is tested alone; empty for a limit.
    pub parts: Vec<StudyPart>,
}

/// A part of an order: a member of one group against one of the next, where all else is equal.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct StudyPart {
    /// The group that should have the larger values.
    pub larger: String,
    /// The group that should have the smaller values.
    pub smaller: String,
    /// Kernel, further axes and kind of time of both; empty if there is nothing to tell apart.
    pub place: String,
    /// Number of values of both groups: of boots where kernels of this machine are compared, else of blocks.
    pub n: (usize, usize),
    /// One-sided p value against the order, exact.
    pub p_larger: f64,
    /// One-sided p value against its contrary, exact.
    pub p_smaller: f64,
    /// What is shown.
    pub shown: StudyShown,
}

/// Judges every conclusion of a study.
pub fn judgments(definition: &StudyDefinition, measurements: &[StudyMeasurement<'_>]) -> Vec<StudyJudgment> {
    let judged = |conclusion: &StudyConclusion| {
        let Judgment { verdict, why, parts, .. } = judge(definition, conclusion, measurements);
        StudyJudgment { says: conclusion.says.clone(), verdict, why, parts }
    };
    definition.conclusions.iter().map(judged).collect()
}

/// A verdict with its reasons.
pub(super) struct Judgment {
    pub(super) verdict: StudyVerdict,
    /// The values that decide, or the reason why none do.
    why: String,
    /// What is missing to decide, without values; empty where nothing is.
    pub(super) lacks: String,
    parts: Vec<StudyPart>,
}

impl Judgment {
    /// A verdict to which nothing is missing, because of these values.
    fn by(verdict: StudyVerdict, why: String) -> Judgment {
        Judgment { verdict, why, lacks: String::new(), parts: Vec::new() }
    }

    /// None, because this is missing.
    fn without(verdict: StudyVerdict, lacks: String) -> Judgment {
        Judgment { verdict, why: lacks.clone(), lacks, parts: Vec::new() }
    }
}

pub(super) fn judge(
    definition: &StudyDefinition,
    conclusion: &StudyConclusion,
    all: &[StudyMeasurement<'_>],
) -> Judgment {
    let meant: Vec<_> = all.iter().filter(|one| one.is_meant(conclusion.method.as_deref(), &conclusion.only)).collect();
    let in_time: Vec<_> = meant.iter().copied().filter(|measurement| !measurement.is_virtual).collect();
    let reason = conclusion.needs_hardware.as_deref().or(conclusion.below.map(|_| "a limit is about real time"));
    let cells = match reason {
        Some(reason) if in_time.is_empty() && !meant.is_empty() => {
            return Judgment::without(StudyVerdict::NotTested, format!("{reason}; virtual time has no hardware"));
        }
        Some(_) => in_time,
        None => meant,
    };
    match conclusion.below {
        Some(limit) => below(conclusion, limit.ns(), &cells),
        None => {
            let (parts, absent) = parts_of(definition, conclusion, &cells);
            let judgment = by_parts(&parts, &absent, conclusion.statistic);
            Judgment { parts: parts.iter().map(Part::judged).collect(), ..judgment }
        }
    }
}

/// Judges a limit, which no wake-up may reach.
fn below(conclusion: &StudyConclusion, limit_ns: u64, cells: &[&StudyMeasurement<'_>]) -> Judgment {
    let Some(largest) = value(cells, conclusion.statistic, &BTreeSet::new()) else {
        return Judgment::without(StudyVerdict::NotTested, format!("no cell with {}", words(&conclusion.only)));
    };
    let is_later = largest.value >= limit_ns as f64;
    let is_absent = |one: &&StudyCells| !cells.iter().any(|cell| cell.is_in(one));
    if !is_later && let Some(absent) = conclusion.only.members().iter().find(is_absent) {
        return Judgment::without(StudyVerdict::NotTested, format!("no cell with {}", words(absent)));
    }
    let lacks = cells.iter().find_map(|cell| cell.lacks).filter(|_| !is_later);
    let verdict = match (is_later, largest.at_least || lacks.is_some()) {
        (true, _) => StudyVerdict::NotFound,
        (false, true) => StudyVerdict::CannotTell,
        (false, false) => StudyVerdict::FoundAgain,
    };
    let (due, blocks) = (due_times(cells), by_block(cells).len() as u64);
    let open = if largest.at_least { " at least, with a wait still open or a trigger never answered" } else { "" };
    let (largest, due) = (duration(largest.value), things(due, "due time"));
    let lacks = lacks.map_or(String::new(), |lacks| format!("; {lacks}"));
    Judgment::by(
        verdict,
        format!("{} {largest}{open}, in {due} of {}{lacks}", conclusion.statistic, things(blocks, "measurement")),
    )
}

/// A part of an order that is tested alone: two members of its groups, in one place of the axes that the conclusion
/// is about in each of their values.
struct Part {
    larger: StudyCells,
    smaller: StudyCells,
    /// The kernel, the values of the axes of which each counts, and the kind of time, in words; empty if there is
    /// nothing to tell apart.
    place: String,
    /// Kernel of the study that both groups were measured on; `None` if they differ in it.
    kernel: Option<String>,
    strata: Vec<Stratum>,
    /// The largest lower bound of the group that should be smaller; 0 without one.
    open: f64,
    test: RankSum,
    shown: StudyShown,
    /// Boots of both groups, where they are the units: of kernels of this machine, all of one boot is one measurement.
    boots: Option<(usize, usize)>,
}

/// What is shown of a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StudyShown {
    /// The order.
    Order,
    /// Its contrary.
    Contrary,
    /// A difference below 25 %.
    Alike,
    /// Nothing.
    Nothing,
}

/// The parts of an order that these cells can show, and what is missing for others.
fn parts_of(
    definition: &StudyDefinition,
    conclusion: &StudyConclusion,
    cells: &[&StudyMeasurement<'_>],
) -> (Vec<Part>, Vec<String>) {
    if cells.is_empty() && conclusion.only != StudyCells::default() {
        return (Vec::new(), vec![words(&conclusion.only)]);
    }
    let mut absent: Vec<String> = Vec::new();
    let mut parts: Vec<Part> = Vec::new();
    for group in &conclusion.falls {
        let members = group.members().into_iter();
        absent.extend(members.filter(|one| !cells.iter().any(|cell| cell.is_in(one))).map(|one| words(&one)));
    }
    let is_present = |group: &&StudyCells| cells.iter().any(|cell| cell.is_in(group));
    let present: Vec<&StudyCells> = conclusion.falls.iter().filter(is_present).collect();
    for pair in present.windows(2) {
        for larger in pair[0].members() {
            for smaller in pair[1].members() {
                parts.extend(self::parts(definition, conclusion, &larger, &smaller, cells));
            }
        }
    }
    let is_compared = conclusion.falls.iter().any(|group| !group.kernel.is_empty());
    let is_meant = |name: &&String| conclusion.only.kernel.is_empty() || conclusion.only.kernel.contains(name);
    let named = definition.kernels.iter().map(|kernel| &kernel.name).filter(|_| !is_compared).filter(is_meant);
    absent.extend(named.filter(|name| !parts.iter().any(|part| part.kernel.as_ref() == Some(name))).cloned());
    absent.dedup();
    (parts, absent)
}

/// Judges an order by its parts, and by what is missing for others.
fn by_parts(parts: &[Part], absent: &[String], statistic: Statistic) -> Judgment {
    let missing = absent.join(", ");
    if parts.is_empty() {
        let alike = "that differ in nothing else, machine and kind of time included".to_owned();
        let missing = if absent.is_empty() { alike } else { format!("with {missing}") };
        return Judgment::without(StudyVerdict::NotTested, format!("no cells {missing}"));
    }
    let those = |shown: StudyShown| parts.iter().filter(|part| part.shown == shown).collect::<Vec<_>>();
    let (contrary, alike, nothing) =
        (those(StudyShown::Contrary), those(StudyShown::Alike), those(StudyShown::Nothing));
    let against: Vec<&Part> = contrary.into_iter().chain(alike).collect();
    let listed = |of: &[&Part]| listed(of, statistic);
    let rest = |n: usize| match parts.len() - n {
        0 => String::new(),
        1 => "; 1 other part".to_owned(),
        others => format!("; {others} other parts"),
    };
    if !against.is_empty() {
        return Judgment::by(StudyVerdict::NotFound, format!("{}{}", listed(&against), rest(against.len())));
    }
    let all: Vec<&Part> = parts.iter().collect();
    if !absent.is_empty() {
        let found = if nothing.is_empty() { "; the rest is found again" } else { "" };
        let lacks = format!("no cells with {missing}");
        let why = format!("{lacks}{found}: {}", listed(&all));
        return Judgment { why, ..Judgment::without(StudyVerdict::NotTested, lacks) };
    }
    if nothing.is_empty() {
        return Judgment::by(StudyVerdict::FoundAgain, listed(&all));
    }
    let lacks = nothing.iter().map(|part| part.why_nothing()).max().unwrap_or_default().to_owned();
    let rest = match parts.len() - nothing.len() {
        0 => String::new(),
        shown => format!("; {} shown", things(shown as u64, "other part")),
    };
    let why = format!("{}{rest}; {lacks}", listed(&nothing));
    Judgment { why, ..Judgment::without(StudyVerdict::CannotTell, lacks) }
}

/// These parts in words, or the first few of them.
fn listed(parts: &[&Part], statistic: Statistic) -> String {
    const MOST: usize = 6;
    let more = match parts.len().saturating_sub(MOST) {
        0 => String::new(),
        n => format!("; {} more", count(n as u64)),
    };
    format!("{}{more}", parts.iter().take(MOST).map(|part| part.words(statistic)).collect::<Vec<_>>().join("; "))
}

/// The axes that make a stratum: cells of one stratum differ in the groups only. Cells of this machine are of one run,
/// unless kernels are compared, which is one a boot; and of one machine then.
type Place = (String, Option<String>, Option<String>, Option<u64>);

/// A value of one block.
struct Observed {
    is_larger: bool,
    /// Infinite if it is a lower bound in the group that should be smaller, of which it shows nothing.
    value: f64,
    /// The same as it was seen.
    seen: f64,
    boot: String,
}

/// Tests whether the values of one member are above those of another, alone in each place; empty without cells that
/// differ in nothing else.
fn parts(
    definition: &StudyDefinition,
    conclusion: &StudyConclusion,
    larger: &StudyCells,
    smaller: &StudyCells,
    cells: &[&StudyMeasurement<'_>],
) -> Vec<Part> {
    let compared: BTreeSet<StudyAxis> = larger.axes().into_iter().chain(smaller.axes()).collect();
    let is_other = |axis| !compared.contains(&axis);
    let counts_each = |axis: StudyAxis| is_other(axis) && conclusion.each.contains(&axis);
    let operations = common_operations(cells);
    type Key = (&'static str, bool, Option<(String, String)>, Vec<String>);
    let mut all: BTreeMap<Key, BTreeMap<Place, Vec<Observed>>> = BTreeMap::new();
    for block in by_block(cells) {
        let mut by_period: BTreeMap<Option<u64>, Vec<&StudyMeasurement<'_>>> = BTreeMap::new();
        for cell in block {
            // Threads of a cell run at the same time: they are one unit, unless periods are compared.
            by_period.entry((!is_other(StudyAxis::Period)).then(|| cell.period.ns())).or_default().push(cell);
        }
        for threads in by_period.into_values() {
            let is_one = |cell: &&&StudyMeasurement<'_>| cell.is_in(larger) || cell.is_in(smaller);
            let threads: Vec<_> = threads.iter().filter(is_one).copied().collect();
            let Some(cell) = threads.first() else { continue };
            // A kernel may stand for several of the study: the first that the conclusion allows.
            let kernel = definition.kernels.iter().map(|kernel| kernel.name.as_str()).find(|name| {
                cell.kernels.contains(name)
                    && conclusion.only.contain(name, Some(cell.load), Some(cell.policy), Some(cell.period))
            });
            let Some(found) = value(&threads, conclusion.statistic, &operations) else { continue };
            let found_value = match conclusion.statistic {
                Statistic::Missed => found.value / due_times(&threads) as f64,
                _ => found.value,
            };
            let is_by_boot = !is_other(StudyAxis::Kernel) && cell.is_here;
            let from = match (is_by_boot, cell.is_virtual) {
                (true, _) => cell.machine.clone(),
                (false, true) => String::new(),
                (false, false) => cell.measurement.0.to_string(),
            };
            let (load, policy) = (cell.load.to_string(), cell.policy.to_string());
            let each = [
                (StudyAxis::Load, load.clone()),
                (StudyAxis::Policy, policy.clone()),
                (StudyAxis::Period, cell.period.to_string()),
            ];
            let each = each.into_iter().filter(|(axis, _)| counts_each(*axis)).map(|(_, text)| text).collect();
            let of_kernel = kernel.filter(|_| is_other(StudyAxis::Kernel));
            let key = (cell.time, is_by_boot, of_kernel.map(|name| (name.to_owned(), cell.kernel.to_string())), each);
            let place = (
                from,
                is_other(StudyAxis::Load).then_some(load),
                is_other(StudyAxis::Policy).then_some(policy),
                is_other(StudyAxis::Period).then(|| cell.period.ns()),
            );
            let is_larger = cell.is_in(larger);
            let value = if found.at_least && !is_larger { f64::INFINITY } else { found_value };
            let observed = Observed { is_larger, value, seen: found_value, boot: cell.boot.clone() };
            all.entry(key).or_default().entry(place).or_default().push(observed);
        }
    }
    let times: BTreeSet<&str> = all.keys().map(|(time, ..)| *time).collect();
    let part = |((time, is_by_boot, kernel, each), strata): (Key, BTreeMap<Place, Vec<Observed>>)| {
        let has_both =
            |all: &Vec<Observed>| all.iter().any(|one| one.is_larger) && all.iter().any(|one| !one.is_larger);
        let strata: Vec<Vec<Observed>> = strata.into_values().filter(has_both).collect();
        let values = strata.iter().map(|all| Stratum::of(all.iter().map(|one| (one.is_larger, one.value))));
        let values: Vec<Stratum> = values.collect();
        let bounds = strata.iter().flatten().filter(|one| one.value.is_infinite()).map(|one| one.seen);
        let open = bounds.fold(0.0, f64::max);
        let boots = is_by_boot.then(|| by_boot(&strata));
        let tested = boots.as_ref().map_or(&values[..], std::slice::from_ref);
        let test = rank_sum(tested)?;
        let shown = match () {
            () if test.p_larger <= LEVEL => StudyShown::Order,
            () if test.p_smaller <= LEVEL => StudyShown::Contrary,
            () if boots.is_none() && are_alike(&values) => StudyShown::Alike,
            () => StudyShown::Nothing,
        };
        let kernel_name = kernel.map(|(name, _)| name);
        let time = (times.len() > 1).then(|| time.to_owned());
        let place = kernel_name.iter().cloned().chain(each).chain(time).collect::<Vec<_>>().join(", ");
        Some(Part {
            larger: larger.clone(),
            smaller: smaller.clone(),
            place,
            kernel: kernel_name,
            strata: values,
            open,
            test,
            shown,
            boots: boots.map(|boots| (boots.larger.len(), boots.smaller.len())),
        })
    };
    all.into_iter().filter_map(part).collect()
}

/// Whether the values of the first group are shown to be less than [`ALIKE`] times those of the other.
fn are_alike(strata: &[Stratum]) -> bool {
    let smaller_by_margin = |stratum: &Stratum| Stratum {
        larger: stratum.larger.iter().map(|value| value / ALIKE).collect(),
        smaller: stratum.smaller.clone(),
    };
    let test = rank_sum(&strata.iter().map(smaller_by_margin).collect::<Vec<_>>());
    test.is_some_and(|test| test.p_smaller <= LEVEL)
}

/// One value for each boot and group: the mean rank of its blocks within their strata.
fn by_boot(strata: &[Vec<Observed>]) -> Stratum {
    let mut ranks: BTreeMap<(bool, &str), Vec<f64>> = BTreeMap::new();
    for stratum in strata {
        let values: Vec<f64> = stratum.iter().map(|one| one.value).collect();
        for (one, rank) in stratum.iter().zip(midranks(&values)) {
            ranks.entry((one.is_larger, one.boot.as_str())).or_default().push(rank / values.len() as f64);
        }
    }
    let mean = |ranks: &Vec<f64>| ranks.iter().sum::<f64>() / ranks.len() as f64;
    Stratum::of(ranks.iter().map(|((is_larger, _), ranks)| (*is_larger, mean(ranks))))
}

impl Part {
    fn judged(&self) -> StudyPart {
        let blocks = |of: fn(&Stratum) -> &Vec<f64>| self.strata.iter().map(|stratum| of(stratum).len()).sum();
        StudyPart {
            larger: words(&self.larger),
            smaller: words(&self.smaller),
            place: self.place.clone(),
            n: self.boots.unwrap_or_else(|| (blocks(|stratum| &stratum.larger), blocks(|stratum| &stratum.smaller))),
            p_larger: self.test.p_larger,
            p_smaller: self.test.p_smaller,
            shown: self.shown,
        }
    }

    /// What is missing to show anything.
    fn why_nothing(&self) -> &'static str {
        match self.boots {
            Some(_) => {
                "what is measured in one boot is one measurement of its kernel: boot each at least 3 times, in turn"
            }
            None if self.test.p_least > LEVEL => "too few blocks to show a difference: --repetitions",
            None => "neither a difference nor one below 25 % is shown: --repetitions",
        }
    }

    /// Both groups with their values, and the test.
    fn words(&self, statistic: Statistic) -> String {
        let range = |of: fn(&Stratum) -> &Vec<f64>| {
            let all = || self.strata.iter().flat_map(of).copied();
            let (least, most) = (all().fold(f64::INFINITY, f64::min), all().fold(f64::NEG_INFINITY, f64::max));
            let shown = |value: f64| match value.is_finite() {
                true => shown(value, statistic),
                false => format!("more than {}", shown(self.open, statistic)),
            };
            let (least, most) = (shown(least), shown(most));
            if least == most { least } else { format!("{least} to {most}") }
        };
        let (larger, smaller) = (range(|stratum| &stratum.larger), range(|stratum| &stratum.smaller));
        let blocks: usize = self.strata.iter().map(|stratum| stratum.larger.len() + stratum.smaller.len()).sum();
        let (sign, p) = match self.shown {
            StudyShown::Order => ("above", self.test.p_larger),
            StudyShown::Contrary => ("below", self.test.p_smaller),
            StudyShown::Alike => ("by less than 25 % above", self.test.p_larger),
            StudyShown::Nothing => ("not shown to differ from", self.test.p_larger),
        };
        let strata = match self.strata.len() {
            1 => String::new(),
            n => format!(" in {n} groups"),
        };
        let boots = self.boots.map(|(larger, smaller)| {
            let (larger, smaller) = (things(larger as u64, "boot"), things(smaller as u64, "boot"));
            format!(", {larger} against {smaller}")
        });
        let place = if self.place.is_empty() { String::new() } else { format!("{}: ", self.place) };
        format!(
            "{place}{} ({larger}) {sign} {} ({smaller}), {} measurements{strata}{}, p {}",
            words(&self.larger),
            words(&self.smaller),
            count(blocks as u64),
            boots.unwrap_or_default(),
            number(p)
        )
    }
}

fn shown(value: f64, statistic: Statistic) -> String {
    match statistic {
        Statistic::Missed => format!("{} %", number(value * 100.0)),
        _ => duration(value),
    }
}

/// A group in words: `none and voluntary`, `other`.
fn words(cells: &StudyCells) -> String {
    let StudyCells { kernel, load, policy, period } = cells;
    let axes = [
        kernel.clone(),
        load.iter().map(punctual_model::Load::label).collect(),
        policy.iter().map(ToString::to_string).collect(),
        period.iter().map(ToString::to_string).collect(),
    ];
    let named: Vec<_> = axes.iter().filter(|axis| !axis.is_empty()).map(|axis| axis.join(" and ")).collect();
    named.join(", ")
}
