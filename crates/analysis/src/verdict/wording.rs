//! The verdict in one line.

use super::{Gap, Kept, Verdict, Violation};
use crate::findings::unfinished;
use crate::summary::due_time::View;
use crate::wording::{count, duration, durations_apart, number, things};
use std::fmt;

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Verdict::NoneAsked => {
                f.write_str("Verdict: none (no limit given); add --require max=1ms to get PASS or FAIL.")
            }
            Verdict::Pass { kept } => write!(f, "Verdict: PASS {}", listed(kept)),
            Verdict::Fail { violations } => write!(f, "Verdict: FAIL {}", some(violations)),
            Verdict::Inconclusive { gaps } => write!(f, "Verdict: INCONCLUSIVE: {}", some(gaps)),
        }
    }
}

fn listed<T: fmt::Display>(parts: &[T]) -> String {
    parts.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

/// The first entries, and the number of the others.
fn some<T: fmt::Display>(parts: &[T]) -> String {
    const SHOWN: usize = 2;
    match parts.split_at_checked(SHOWN) {
        Some((shown, rest @ [_, ..])) => format!("{}; and {} more", listed(shown), rest.len()),
        _ => listed(parts),
    }
}

fn ns(ns: u64) -> String {
    duration(ns as f64)
}

/// A latency and its limit, with enough digits to differ when they are not equal.
fn beside(value_ns: i64, limit_ns: u64) -> (String, String) {
    durations_apart(value_ns, i64::try_from(limit_ns).unwrap_or(i64::MAX))
}

impl fmt::Display for View {
    /// The part after the quantile's name.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            View::Both => "",
            View::WakeUps => " by wake-up",
            View::DueTimes => " by due time",
        })
    }
}

impl fmt::Display for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Kept::Max { cell, limit_ns, value_ns, measured_ns, upper_per_hour } => {
                let (value, limit) = beside(*value_ns, *limit_ns);
                let (measured, upper) = (ns(*measured_ns), number(*upper_per_hour));
                write!(f, "max {value} <= {limit} (worst: {cell}); none later in {measured} of each cell: their ")?;
                write!(f, "rate is below {upper}/h (95 %), not zero")
            }
            Kept::Quantile { cell, level, view, limit_ns, upper_ns } => {
                let (upper, limit) = beside(*upper_ns, *limit_ns);
                write!(f, "{level}{view} at most {upper} <= {limit} (95 %; worst: {cell})")
            }
            Kept::Late { cell, level, view, limit_ns, late, of, at_most } => {
                let (limit, later, percent) = (ns(*limit_ns), later(*late, *of), percent(*at_most));
                write!(f, "{level}{view} <= {limit}: {later}, at most {percent} % (95 %; worst: {cell})")
            }
            Kept::NotLater { cell, said } => write!(f, "{cell}: {said}"),
            Kept::MissesPerHour { cell, limit_per_hour, upper_per_hour } => {
                let (upper, limit) = (number(*upper_per_hour), number(*limit_per_hour));
                write!(f, "misses at most {upper}/h <= {limit}/h (95 %; worst: {cell})")
            }
            Kept::Waiting { cell, thread, limit_percent, percent } => {
                let (percent, limit) = (number(*percent), number(*limit_percent));
                write!(f, "waiting for a CPU {percent} % <= {limit} % (worst: {thread} of {cell})")
            }
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Violation::Max { cell, limit_ns, value_ns, at_least } => {
                let (value, limit) = beside(*value_ns, *limit_ns);
                write!(f, "{cell}: max {}{value} > {limit}", if *at_least { "at least " } else { "" })
            }
            Violation::Quantile { cell, level, view, limit_ns, lower_ns, .. } => {
                let (lower, limit) = beside(*lower_ns, *limit_ns);
                write!(f, "{cell}: {level}{view} at least {lower} (95 %) > {limit}")
            }
            Violation::Late { cell, level, view, limit_ns, late, of, at_least } => {
                let (limit, later, percent) = (ns(*limit_ns), later(*late, *of), percent(*at_least));
                write!(f, "{cell}: {level}{view} > {limit}: {later}, at least {percent} % (95 %)")
            }
            Violation::Later { cell, said, .. } => write!(f, "{cell}: {said}"),
            Violation::MissesPerHour { cell, limit_per_hour, episodes, lower_per_hour } => {
                let (lower, limit) = (number(*lower_per_hour), number(*limit_per_hour));
                let misses = misses(*episodes);
                write!(f, "{cell}: {misses}, at least {lower}/h (95 %) > {limit}/h")
            }
            Violation::Waiting { cell, thread, limit_percent, percent } => {
                let (percent, limit) = (number(*percent), number(*limit_percent));
                write!(f, "{cell}: {thread} waited for a CPU {percent} % of its time > {limit} %")
            }
        }
    }
}

/// `none of 8 000 later`.
fn later(late: u64, of: u64) -> String {
    let late = if late == 0 { "none".to_owned() } else { count(late) };
    format!("{late} of {} later", count(of))
}

fn percent(share: f64) -> String {
    number(share * 100.0)
}

fn misses(episodes: u64) -> String {
    if episodes == 0 { "0 misses".to_owned() } else { format!("{} of misses", things(episodes, "episode")) }
}

impl Gap {
    /// The same without the name of its cell.
    pub(crate) fn without_cell(&self, cell: &str) -> String {
        let text = self.to_string();
        text.strip_prefix(&format!("{cell}: ")).unwrap_or(&text).to_owned()
    }
}

impl fmt::Display for Gap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Gap::Incomplete { planned: 0, .. } => f.write_str("no measurements"),
            Gap::Incomplete { done, planned } => {
                write!(f, "only {} of {} complete", count(*done), things(*planned, "measurement"))
            }
            Gap::Skipped { cells, why } => write!(f, "{} not measured: {why}", things(*cells, "cell")),
            Gap::Untold { cell, why } => write!(f, "{cell}: {why}"),
            Gap::NoSamples { cell } => write!(f, "{cell}: no wake-ups recorded"),
            Gap::Load { cell, load, what } => write!(f, "{cell}: load {load}: {what}"),
            Gap::NotSeen { cell, unseen, due } => {
                let (unseen, due) = (count(*unseen), count(*due));
                write!(f, "{cell}: {unseen} of {due} due times were not seen, and may be later")
            }
            Gap::Lost { cell, lost } => write!(f, "{cell}: {}, which may be later", things(*lost, "lost sample")),
            Gap::Open { cell, at_least_ns } => {
                write!(f, "{cell}: a wait was still open, {} late so far", ns(*at_least_ns))
            }
            Gap::Unfinished { cell, thread, open } => write!(f, "{cell}: {}", unfinished(thread, open)),
            Gap::Ended { cell, what } => write!(f, "{cell}: {what}, and nothing is known of the time after"),
            Gap::NeverAnswered { cell, never } => write!(f, "{cell}: {} without an answer", things(*never, "trigger")),
            Gap::Quantile { cell, level, view, limit_ns, interval_ns: Some((lower, upper)), .. } => {
                let (lower, upper) = (duration(*lower as f64), duration(*upper as f64));
                write!(f, "{cell}: {level}{view} is between {lower} and {upper} (95 %), limit {}: ", ns(*limit_ns))?;
                f.write_str("measure longer")
            }
            Gap::Quantile { cell, level, view, limit_ns, late: Some(count), .. } => {
                let (limit, later, n_eff) = (ns(*limit_ns), later(count.late, count.of), self::count(count.n_eff));
                write!(
                    f,
                    "{cell}: too few samples for {level}{view} <= {limit}: {later}, effective sample size {n_eff}; "
                )?;
                match count.more_ns {
                    // So few would be allowed, if they were known not to come in clusters.
                    Some(0) => f.write_str("measure longer"),
                    Some(more) => write!(f, "measure about {} longer", ns(more)),
                    None => f.write_str("measuring longer will not give PASS"),
                }
            }
            Gap::Quantile { cell, level, view, .. } => {
                write!(f, "{cell}: too few samples for {level}{view}: measure longer")
            }
            Gap::Unsteady { cell, level } => {
                write!(f, "{cell}: latency is not stationary, so no {level} is valid for the whole cell")
            }
            Gap::MissesPerHour { cell, limit_per_hour, episodes, hours, upper_per_hour, hours_needed } => {
                let (misses, measured) = (misses(*episodes), duration(hours * 3.6e12));
                let (upper, limit) = (number(*upper_per_hour), number(*limit_per_hour));
                write!(f, "{cell}: {misses} in {measured} allow up to {upper}/h (95 %); ")?;
                match hours_needed {
                    Some(hours) => write!(f, "{limit}/h needs {} in all", duration(hours * 3.6e12)),
                    None => write!(f, "{limit}/h cannot be shown at this rate"),
                }
            }
        }
    }
}
