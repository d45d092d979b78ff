//! `cargo xtask simulate NAME`: error rates of the statistics of punctual, counted on noise with known parameters.
//!
//! Every table of the specification of the statistics has a simulation here. Each row compares the counted number with
//! the specified one, within the standard errors of both. Seeds are fixed: a result repeats to the last digit.

mod counted;
mod courses;
mod fitness;
mod histories;
mod knobs;
mod known;
mod limits;
mod misses;
mod noise;
mod pairs;
mod quantiles;
mod recorded;
mod relabelled;
mod scaled;
mod stationarity;
mod tail;
mod tuned;

use counted::{Expected, ResultRow, Scale, counted, counted_on, holds, merged};
use std::process::Command;

/// A simulation: its name, its subject, and the function that runs a share of its runs.
struct Simulation {
    name: &'static str,
    about: &'static str,
    run: fn(Scale) -> Vec<ResultRow>,
}

const SIMULATIONS: [Simulation; 15] = [
    Simulation {
        name: "quantiles",
        about: "S1: does the interval of a quantile hold the true one?",
        run: quantiles::run,
    },
    Simulation { name: "misses", about: "S3: does the interval of a rate hold the true one?", run: misses::run },
    Simulation { name: "stationarity", about: "S5: what does the gate refuse?", run: stationarity::run },
    Simulation {
        name: "shares",
        about: "S5: what orders of stretches are taken for a change, and when nothing changed",
        run: courses::alarms,
    },
    Simulation { name: "courses", about: "S5: which changes of p50 and p99 are found", run: courses::found },
    Simulation {
        name: "held",
        about: "S1 and S5: where latency comes in bursts or wanders, does an interval that is shown hold?",
        run: courses::held,
    },
    Simulation {
        name: "limits",
        about: "S1: how often is a limit on p99 said to be kept that is not, and the other way round?",
        run: limits::run,
    },
    Simulation {
        name: "maximum",
        about: "S4: how often does a longer run exceed the maximum?",
        run: stationarity::maximum,
    },
    Simulation { name: "tail", about: "S6 without gates: does the limit hold?", run: tail::without_gates },
    Simulation {
        name: "tail-gates",
        about: "S6 with gates: how often is there a limit, and does it hold?",
        run: tail::gated,
    },
    Simulation {
        name: "tail-tests",
        about: "S6: what each test finds by itself, and how fine buckets have to be",
        run: fitness::run,
    },
    Simulation { name: "pairs", about: "S7: false alarms, power and intervals of paired comparisons", run: pairs::run },
    Simulation {
        name: "knobs",
        about: "S8: are knobs that act found, and those that do not left alone?",
        run: knobs::run,
    },
    Simulation {
        name: "histories",
        about: "S9: false alarms of histories, and how soon steps and drifts are found",
        run: histories::run,
    },
    Simulation {
        name: "tune",
        about: "S10: does tune name knobs without effect, and find those with one?",
        run: tuned::run,
    },
];

/// Runs the simulation of this name, or `all`.
pub(crate) fn run(arguments: &[&str]) -> Result<(), String> {
    let names = SIMULATIONS.map(|simulation| simulation.name).join(", ");
    let name = match arguments {
        ["recorded", dirs @ ..] if !dirs.is_empty() => return printed(recorded::run(dirs)?),
        ["known", dirs @ ..] if !dirs.is_empty() => return printed(known::run(dirs)?),
        [name] => name,
        _ => return Err(format!("simulate needs one name: {names}, or all; or `recorded` or `known` and recordings")),
    };
    let chosen: Vec<_> = SIMULATIONS.iter().filter(|simulation| *name == "all" || simulation.name == *name).collect();
    if chosen.is_empty() {
        return Err(format!("simulation `{name}` is unknown; there are {names}, and all"));
    }
    if cfg!(debug_assertions) {
        // Without optimization it would take an hour.
        let words = ["run", "--quiet", "--release", "-p", "xtask", "--", "simulate", name];
        let status = Command::new("cargo").args(words).status().map_err(|err| format!("cargo: {err}"))?;
        return if status.success() { Ok(()) } else { Err(format!("the simulation ended with {status}")) };
    }
    let mut all = Ok(());
    for Simulation { name, about, run } in chosen {
        println!("{name}: {about}");
        all = all.and(printed(run(Scale(1))));
        println!();
    }
    all
}

fn printed(rows: Vec<ResultRow>) -> Result<(), String> {
    println!("{:<66}{:>9}{:>14}{:>7}", "", "counted", "specified", "runs");
    rows.iter().for_each(ResultRow::print);
    match rows.iter().filter(|row| !row.is_as_expected()).count() {
        0 => Ok(()),
        differ => Err(format!("{differ} rows differ from the specification by more than chance")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs the reduced form, which takes seconds; `cargo xtask simulate all` is the full form.
    fn check(name: &str, scale: u32) {
        let simulation = SIMULATIONS.iter().find(|simulation| simulation.name == name).unwrap();
        let wrong: Vec<_> = (simulation.run)(Scale(scale)).into_iter().filter(|row| !row.is_as_expected()).collect();
        assert!(wrong.is_empty(), "{wrong:#?}");
    }

    #[test]
    fn quantiles_as_specified() {
        check("quantiles", 40);
    }

    #[test]
    fn misses_as_specified() {
        check("misses", 10);
    }

    #[test]
    fn stationarity_as_specified() {
        check("stationarity", 30);
    }

    #[test]
    fn alarms_as_specified() {
        check("shares", 20);
    }

    #[test]
    fn courses_as_specified() {
        check("courses", 10);
    }

    #[test]
    fn intervals_of_unsteady_cells_as_specified() {
        check("held", 10);
    }

    #[test]
    fn limits_as_specified() {
        check("limits", 20);
    }

    #[test]
    fn maxima_as_specified() {
        check("maximum", 10);
    }

    #[test]
    fn tails_as_specified() {
        check("tail", 30);
    }

    #[test]
    fn gates_as_specified() {
        check("tail-gates", 15);
    }

    #[test]
    fn tests_of_tails_as_specified() {
        check("tail-tests", 10);
    }

    #[test]
    fn pairs_as_specified() {
        check("pairs", 20);
    }

    #[test]
    fn knobs_as_specified() {
        check("knobs", 10);
    }

    #[test]
    fn experiments_of_tune_as_specified() {
        check("tune", 20);
    }
}
