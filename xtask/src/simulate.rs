//! `cargo xtask simulate NAME`: error rates of the statistics of punctual, counted on noise with known parameters.
//!
//! Every table of the specification of the statistics has a simulation here. Each row compares the counted number with
//! the specified one, within the standard errors of both. Seeds are fixed: a result repeats to the last digit.

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

use noise::Noise;
use punctual_model::Histogram;
use std::process::Command;

/// The specified value of a row.
#[derive(Debug, Clone, Copy)]
enum Expected {
    /// A share, counted in this number of runs.
    Share(f64, u32),
    /// At most this share.
    AtMost(f64),
    /// At least this share.
    AtLeast(f64),
    /// A value, to within this share of it.
    Value(f64, f64),
    /// No specified value: the row is for comparison only.
    Unknown,
}

/// One counted number.
#[derive(Debug, Clone)]
struct ResultRow {
    what: String,
    got: f64,
    /// Number of runs that it was counted in.
    runs: u32,
    expected: Expected,
}

/// Standard errors within which a share agrees with the specification. With a hundred rows, about one table in three
/// would have a row beyond 3 by chance; seeds are fixed, so such a row is always or never present.
const WITHIN: f64 = 3.5;

impl ResultRow {
    /// A row with a share of `runs`.
    fn share(what: impl Into<String>, count: u32, runs: u32, expected: Expected) -> ResultRow {
        ResultRow { what: what.into(), got: f64::from(count) / f64::from(runs), runs, expected }
    }

    /// Whether it agrees with the specification, within the standard errors.
    fn is_as_expected(&self) -> bool {
        let error = |p: f64, runs: f64| (p.clamp(0.01, 0.99) * (1.0 - p.clamp(0.01, 0.99)) / runs).sqrt();
        let runs = f64::from(self.runs);
        match self.expected {
            Expected::Share(p, of) => {
                let both = error(p, runs).hypot(error(p, f64::from(of)));
                (self.got - p).abs() <= WITHIN * both
            }
            Expected::AtMost(p) => self.got <= p + WITHIN * error(p, runs),
            Expected::AtLeast(p) => self.got >= p - WITHIN * error(p, runs),
            Expected::Value(value, share) => (self.got / value - 1.0).abs() <= share,
            Expected::Unknown => true,
        }
    }

    fn print(&self) {
        let expected = match self.expected {
            Expected::Share(p, _) => format!("{p:.3}"),
            Expected::AtMost(p) => format!("<= {p:.3}"),
            Expected::AtLeast(p) => format!(">= {p:.3}"),
            Expected::Value(value, share) => format!("{value:.2} +-{:.0} %", share * 100.0),
            Expected::Unknown => String::new(),
        };
        let verdict = if self.is_as_expected() { "" } else { "DIFFERS" };
        let ResultRow { what, got, runs, .. } = self;
        println!("{what:<66}{got:>9.3}{expected:>14}{runs:>7}  {verdict}");
    }
}

/// Runs `once` so often, on noise of this seed. Returns a row for each thing that it finds or not; `name` comes before
/// what it is.
fn counted<const N: usize>(
    name: &str,
    runs: u32,
    seed: u64,
    rows: [(&str, Expected); N],
    once: impl FnMut(&mut Noise) -> [bool; N],
) -> [ResultRow; N] {
    counted_on(&mut Noise::new(seed), name, runs, rows, once)
}

/// The same on noise that goes on.
fn counted_on<const N: usize>(
    noise: &mut Noise,
    name: &str,
    runs: u32,
    rows: [(&str, Expected); N],
    mut once: impl FnMut(&mut Noise) -> [bool; N],
) -> [ResultRow; N] {
    let mut counts = [0; N];
    for _ in 0..runs {
        counts.iter_mut().zip(once(noise)).for_each(|(count, is_found)| *count += u32::from(is_found));
    }
    std::array::from_fn(|n| ResultRow::share(format!("{name}{}", rows[n].0), counts[n], runs, rows[n].1))
}

/// Whether an interval holds the truth.
fn holds((low, high): (f64, f64), truth: f64) -> bool {
    low <= truth && truth <= high
}

/// Histograms as one.
fn merged<'a>(slices: impl IntoIterator<Item = &'a Histogram>) -> Histogram {
    slices.into_iter().fold(Histogram::default(), |mut all, slice| {
        all.merge(slice);
        all
    })
}

/// A simulation: its name, its subject, and the function that runs a share of its runs.
struct Simulation {
    name: &'static str,
    about: &'static str,
    run: fn(Scale) -> Vec<ResultRow>,
}

/// Share of the runs: all, or one in so many.
#[derive(Debug, Clone, Copy)]
struct Scale(u32);

impl Scale {
    fn of(self, runs: u32) -> u32 {
        (runs / self.0).max(10)
    }
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
