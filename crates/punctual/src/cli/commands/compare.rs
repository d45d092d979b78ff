//! `punctual compare`: compares two cells of one run, two runs, or two imported measurements.

mod imported;

use super::cells;
use super::cells::NamedCell;
use super::read;
use crate::cli::arguments::{CompareArguments, Format};
use crate::cli::terminal::{Outcome, note, output};
use punctual_analysis::comparison::{self, Arm, Comparison, Question};
use punctual_analysis::cost::{CostComparison, compare_costs};
use punctual_model::Selector;
use punctual_store::Run;
use std::error::Error;
use std::path::{Path, PathBuf};

pub(super) fn compare(arguments: &CompareArguments) -> Outcome {
    let question =
        Question { metric: arguments.metric, margin: arguments.margin, force: arguments.force, ..Question::default() };
    let named = NamedRuns::of(&arguments.words)?;
    let comparison = match imported::compare(&named, &question)? {
        Some(comparison) => comparison,
        None => match of_runs(&named, question)? {
            ComparisonKind::Latency(comparison) => *comparison,
            ComparisonKind::Cost(comparison) => return costs(&comparison, arguments),
        },
    };
    if let Some(why) = comparison.why_not() {
        return Err(why.into());
    }
    let mut text = Vec::new();
    match arguments.format {
        Format::Text => punctual_report::comparison::text(&mut text, &comparison, output::style(false))?,
        Format::Json => output::json(&mut text, &punctual_report::json::of_comparison(&comparison))?,
    }
    output::write(&text)?;
    Ok(comparison.decision.exit_status())
}

/// Runs and cells, as the command line names them.
struct NamedRuns<'a> {
    first: PathBuf,
    second: Option<PathBuf>,
    /// The words after the runs.
    cells: &'a [String],
}

impl NamedRuns<'_> {
    /// Separates runs from cells: the first words that name a run are runs, at most two. Without any, the latest run is
    /// used.
    fn of(words: &[String]) -> Result<NamedRuns<'_>, Box<dyn Error>> {
        // A path that exists is not the name of a cell; reading it says what it is.
        let is_path = |word: &str| word.contains('/') && Path::new(word).exists();
        let is_run = |word: Option<&String>| {
            word.filter(|word| punctual_store::is_run(Path::new(word)) || is_path(word)).map(PathBuf::from)
        };
        let Some(first) = is_run(words.first()) else {
            let latest = read::named_or_latest(None).map_err(|err| match words.first() {
                Some(word) => punctual_store::read(Path::new(word)).map_or_else(Into::into, |_| err),
                None => err,
            })?;
            return Ok(NamedRuns { first: latest, second: None, cells: words });
        };
        let names = imported::names_of(&first)?;
        // An imported measurement is named like its file, which may exist here as well.
        let second = is_run(words.get(1).filter(|word| !names.contains(word)));
        let n_runs = 1 + usize::from(second.is_some());
        Ok(NamedRuns { first, second, cells: words.get(n_runs..).unwrap_or_default() })
    }
}

/// Result of a comparison.
enum ComparisonKind {
    Latency(Box<Comparison>),
    Cost(Box<CostComparison>),
}

/// Compares costs if both have them, otherwise latencies.
fn judged(a: &Arm<'_>, b: &Arm<'_>, question: &Question<'_>, latency: impl FnOnce() -> Comparison) -> ComparisonKind {
    match compare_costs(a, b, question) {
        Some(costs) => ComparisonKind::Cost(Box::new(costs)),
        None => ComparisonKind::Latency(Box::new(latency())),
    }
}

fn costs(comparison: &CostComparison, arguments: &CompareArguments) -> Outcome {
    if arguments.metric.is_some() || arguments.margin.is_some() {
        return Err("--metric and --margin apply to latencies; costs are compared by operation".into());
    }
    if let Some(why) = comparison.why_not() {
        return Err(why.into());
    }
    let mut text = Vec::new();
    match arguments.format {
        Format::Text => punctual_report::cost::compared(&mut text, comparison, output::style(false))?,
        Format::Json => output::json(&mut text, &punctual_report::json::of_costs(comparison))?,
    }
    output::write(&text)?;
    Ok(comparison.exit_status())
}

fn of_runs(named: &NamedRuns<'_>, question: Question<'_>) -> Result<ComparisonKind, Box<dyn Error>> {
    let first = run_in(&named.first)?;
    Ok(match &named.second {
        Some(second_path) => {
            let second = run_in(second_path)?;
            let (a, b) = two_runs(&first, &second, named.cells)?;
            // What the names of the two cells set apart is the question.
            let asked = if named.cells.len() > 1 { a.selector.apart_from(&b.selector) } else { Vec::new() };
            let question = Question { asked: &asked, ..question };
            let again = first.header.again_of(a.index).map(|again| arm(&named.first, &first, again));
            let (a, b) = (arm(&named.first, &first, a.index), arm(second_path, &second, b.index));
            judged(&a, &b, &question, || comparison::compare(&a, &b, again.as_ref(), &question))
        }
        None => {
            let (a, b) = cells::pair(&first, named.cells)?;
            let (header, entries) = (&first.header, &first.entries);
            let arms = [a, b].map(|cell| comparison::arm(header, entries, cell));
            // The cells of one run differ in what its plan asks.
            let about = Question { asked: Selector::AXES, ..question };
            let latency = || comparison::compare_cells(header, entries, a, b, &question);
            judged(&arms[0], &arms[1], &about, latency)
        }
    })
}

fn run_in(dir: &Path) -> Result<Run, Box<dyn Error>> {
    let run = punctual_store::read(dir)?;
    run.damage.iter().for_each(|damage| note(format_args!("punctual: {damage}")));
    Ok(run)
}

/// The same cell of two runs, or a cell of each.
fn two_runs(first: &Run, second: &Run, words: &[String]) -> Result<(NamedCell, NamedCell), Box<dyn Error>> {
    let (for_first, for_second) = match words {
        [] => {
            let any = Selector::default();
            let only = |run| Ok::<_, String>(NamedCell { index: cells::selected(run, &any)?, selector: any.clone() });
            return Ok((only(first)?, only(second)?));
        }
        [both] => (both, both),
        [a, b] => (a, b),
        _ => return Err("name at most one cell of each run".into()),
    };
    Ok((cells::named(first, for_first)?, cells::named(second, for_second)?))
}

/// A cell with its run in its name.
fn arm<'a>(path: &Path, run: &'a Run, cell: usize) -> Arm<'a> {
    let arm = comparison::arm(&run.header, &run.entries, cell);
    Arm { name: format!("{} in {}", arm.name, path.display()), ..arm }
}
