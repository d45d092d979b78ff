//! `punctual compare`: two cells of one run, two runs, or two imported measurements.

mod imported;

use super::arguments::{CompareArguments, Format};
use super::{Outcome, note, output};
use analysis::comparison::{self, Arm, Comparison, Question};
use analysis::cost::{CostComparison, compare_costs};
use model::Selector;
use std::error::Error;
use std::path::Path;
use store::Run;

pub(super) fn compare(arguments: &CompareArguments) -> Outcome {
    let question =
        Question { metric: arguments.metric, margin: arguments.margin, force: arguments.force, ..Question::default() };
    let comparison = match imported::compare(arguments, &question)? {
        Some(comparison) => comparison,
        None => match of_runs(arguments, question)? {
            Compared::Latency(comparison) => *comparison,
            Compared::Cost(comparison) => return costs(&comparison, arguments),
        },
    };
    if let Some(why) = comparison.why_not() {
        return Err(why.into());
    }
    let mut text = Vec::new();
    match arguments.format {
        Format::Text => report::comparison::text(&mut text, &comparison, output::style(false))?,
        Format::Json => output::json(&mut text, &report::json::of_comparison(&comparison))?,
    }
    output::write(&text)?;
    Ok(comparison.answer.exit_status())
}

/// What was compared.
enum Compared {
    Latency(Box<Comparison>),
    Cost(Box<CostComparison>),
}

/// Compares latencies, or, where both have them, costs.
fn judged(a: &Arm<'_>, b: &Arm<'_>, question: &Question<'_>, latency: impl FnOnce() -> Comparison) -> Compared {
    match compare_costs(a, b, question) {
        Some(costs) => Compared::Cost(Box::new(costs)),
        None => Compared::Latency(Box::new(latency())),
    }
}

fn costs(comparison: &CostComparison, arguments: &CompareArguments) -> Outcome {
    if arguments.metric.is_some() || arguments.margin.is_some() {
        return Err("--metric and --margin are of latencies; costs are compared operation by operation".into());
    }
    if let Some(why) = comparison.why_not() {
        return Err(why.into());
    }
    let mut text = Vec::new();
    match arguments.format {
        Format::Text => report::cost::compared(&mut text, comparison, output::style(false))?,
        Format::Json => output::json(&mut text, &report::json::of_costs(comparison))?,
    }
    output::write(&text)?;
    Ok(comparison.exit_status())
}

fn of_runs(arguments: &CompareArguments, question: Question<'_>) -> Result<Compared, Box<dyn Error>> {
    let first = read(Path::new(&arguments.run))?;
    let second = match arguments.others.first() {
        // A selector has an equals sign; a run whose name has one is found by its file.
        Some(word) if Path::new(word).exists() || !word.contains('=') => Some(read(Path::new(word))?),
        _ => None,
    };
    let selectors = arguments.others.iter().skip(usize::from(second.is_some()));
    let selectors: Vec<Selector> = selectors.map(|word| word.parse()).collect::<Result<_, _>>()?;
    // Values that are named for both are what is asked about.
    let asked = if let [a, b] = &selectors[..] { a.apart_from(b) } else { Vec::new() };
    let question = Question { asked: &asked, ..question };
    Ok(match &second {
        Some(second) => {
            let second_path = arguments.others.first().map_or("", String::as_str);
            let (a, b) = two_runs(&first, second, &selectors)?;
            let again = first.header.again_of(a).map(|again| named(&arguments.run, &first, again));
            let (a, b) = (named(&arguments.run, &first, a), named(second_path, second, b));
            judged(&a, &b, &question, || comparison::compare(&a, &b, again.as_ref(), &question))
        }
        None => {
            let (a, b) = two_cells(&first, &selectors)?;
            let (header, entries) = (&first.header, &first.entries);
            let arms = [a, b].map(|cell| comparison::arm(header, entries, cell));
            // In what the cells of one run differ is what its plan asks.
            let about = Question { asked: Selector::AXES, ..question };
            let latency = || comparison::compare_cells(header, entries, a, b, &question);
            judged(&arms[0], &arms[1], &about, latency)
        }
    })
}

fn read(dir: &Path) -> Result<Run, Box<dyn Error>> {
    let run = store::read(dir)?;
    run.damage.iter().for_each(|damage| note(format_args!("punctual: {damage}")));
    Ok(run)
}

/// Two cells of one run: those that are selected, or the only two; an only cell that was measured twice, with itself.
fn two_cells(run: &Run, selectors: &[Selector]) -> Result<(usize, usize), String> {
    let (a, b) = match (selectors, comparison::only_pair(&run.header)) {
        ([], Some(pair)) => pair,
        ([a, b], _) => (selected(run, a)?, selected(run, b)?),
        _ => {
            let cells = names(run, &run.header.first_cells());
            return Err(format!("name two cells, each like load=messaging,policy=fifo:80; the run has {cells}"));
        }
    };
    if a == b { Err(format!("both are the cell {}; name two that differ", names(run, &[a]))) } else { Ok((a, b)) }
}

/// The same cell of two runs, or a cell of each.
fn two_runs(first: &Run, second: &Run, selectors: &[Selector]) -> Result<(usize, usize), String> {
    let any = Selector::default();
    let (for_first, for_second) = match selectors {
        [] => (&any, &any),
        [both] => (both, both),
        [a, b] => (a, b),
        _ => return Err("name at most one cell of each run".to_owned()),
    };
    Ok((selected(first, for_first)?, selected(second, for_second)?))
}

/// A cell with the run it is of in its name.
fn named<'a>(path: &str, run: &'a Run, cell: usize) -> Arm<'a> {
    let arm = comparison::arm(&run.header, &run.entries, cell);
    Arm { name: format!("{} in {path}", arm.name), ..arm }
}

/// The one cell of the run that a selector means.
fn selected(run: &Run, selector: &Selector) -> Result<usize, String> {
    let all = run.header.first_cells();
    let is_meant = |cell: &usize| run.header.cells.get(*cell).is_some_and(|cell| selector.matches(cell));
    let meant: Vec<usize> = all.iter().copied().filter(is_meant).collect();
    match meant.as_slice() {
        [one] => Ok(*one),
        [] => Err(format!("no cell of the run is meant; it has {}", names(run, &all))),
        several => Err(format!("several cells are meant: {}; name more axes", names(run, several))),
    }
}

fn names(run: &Run, cells: &[usize]) -> String {
    let all = analysis::cell_names(&run.header.cells);
    cells.iter().filter_map(|cell| all.get(*cell).cloned()).collect::<Vec<_>>().join(", ")
}
