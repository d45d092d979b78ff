//! Comparison of one run with all earlier runs of its series, since their last change.

use super::change::{Budget, Charts, changes, threshold};
use super::median::median;
use super::responses::{blocks, typical};
use super::series::{Point, Response};
use crate::run::RunSummary;
use crate::stats::paired::holm;
use crate::stats::special::{student_t, student_t_above};
use crate::verdict::{Gap, Kept, Verdict, Violation};
use crate::wording::{number, things};
use punctual_model::{Entry, Header};

/// Least earlier runs of a series.
pub const EARLIER_RUNS: usize = 8;

/// Significance level at which a cell counts as later, after adjustment for the number of cells.
const LEVEL: f64 = 0.05;

/// Ratio below which a difference does not matter unless told otherwise, as for tails in `compare`.
const MARGIN: f64 = 1.25;

/// What the earlier runs of a series let expect of the next one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Expectation {
    /// Earlier runs that it rests on.
    pub runs: usize,
    /// Median of their responses, ns.
    pub median_ns: f64,
    /// Standard deviation of the logarithm of a new response around it, of which the median's own error is a part.
    deviation: f64,
}

impl Expectation {
    /// The expectation from the earlier runs since the last change; `None` with too few.
    pub fn of(earlier: &[Point], response: Response) -> Option<Expectation> {
        let logs: Vec<f64> = earlier.iter().filter_map(|point| response.of(point)).map(|ns| ns.max(1.0).ln()).collect();
        let last = changes(&logs, threshold(Budget::NIGHTLY, Charts(1))).last().map_or(0, |change| change.at);
        let logs = logs.get(last..).filter(|logs| logs.len() >= EARLIER_RUNS)?;
        let center = median(logs)?;
        let n = logs.len() as f64;
        let squares: f64 = logs.iter().map(|log| (log - center).powi(2)).sum();
        // Not a robust one: an outlier in ten runs is what the next run may be, too.
        let deviation = (squares / (n - 1.0)).sqrt() * (1.0 + 1.0 / n).sqrt();
        Some(Expectation { runs: logs.len(), median_ns: center.exp(), deviation: deviation.max(1e-3) })
    }

    /// Ratio of a new response to the expected one, with its interval (95 %).
    pub fn ratio(&self, ns: f64) -> (f64, (f64, f64)) {
        let log = (ns.max(1.0) / self.median_ns).ln();
        let width = student_t(self.runs as f64 - 1.0, 0.975) * self.deviation;
        (log.exp(), ((log - width).exp(), (log + width).exp()))
    }

    /// Chance of a response as late or later, if nothing changed.
    pub fn p_later(&self, ns: f64) -> f64 {
        student_t_above(self.runs as f64 - 1.0, (ns.max(1.0) / self.median_ns).ln() / self.deviation)
    }
}

/// Adds to the summary of a run a verdict for each of its cells: later than its earlier runs, in the order of the
/// cells, or not.
pub fn check_against_history(
    summary: &mut RunSummary,
    header: &Header,
    entries: &[Entry],
    earlier: &[Vec<Point>],
    response: Response,
    margin: Option<f64>,
) {
    let margin = margin.unwrap_or(MARGIN);
    let expected: Vec<_> = earlier.iter().map(|points| Expectation::of(points, response)).collect();
    let measured: Vec<_> = (0..summary.cells.len()).map(|cell| measured(entries, cell, response)).collect();
    let both = || expected.iter().zip(&measured).map(|(expected, ns)| Some((*expected.as_ref()?, (*ns)?)));
    let chances: Vec<f64> = both().flatten().map(|(expected, ns)| expected.p_later(ns)).collect();
    let mut adjusted = holm(&chances).into_iter();
    let verdicts = (expected.iter().zip(&measured).zip(&summary.cells).zip(earlier))
        .map(|(((expected, ns), cell), earlier)| match (expected, ns) {
            (Some(expected), Some(ns)) => {
                judged(&cell.name, expected, *ns, adjusted.next().unwrap_or(1.0), response, margin)
            }
            (None, _) => untold(&cell.name, &too_few(earlier.len())),
            (_, None) => untold(&cell.name, &format!("{} of a block of this run is unknown", response.name())),
        })
        .collect();
    summary.compared(header, entries, "history", verdicts);
}

fn measured(entries: &[Entry], cell: usize, response: Response) -> Option<f64> {
    let blocks = blocks(entries, cell);
    typical(blocks.iter().map(|block| match response {
        Response::P99 => block.p99_ns,
        Response::Max => block.max_ns,
    }))
}

fn too_few(n: usize) -> String {
    let runs = things(u64::try_from(n).unwrap_or(u64::MAX), "earlier run");
    format!("the store has {runs} of it on this machine; {EARLIER_RUNS} since its last change are needed")
}

fn judged(cell: &str, expected: &Expectation, ns: f64, p: f64, response: Response, margin: f64) -> Verdict {
    let (ratio, (low, high)) = expected.ratio(ns);
    let said = format!(
        "{} is {} times that of its {} earlier runs [{}, {}]",
        response.name(),
        number(ratio),
        expected.runs,
        number(low),
        number(high)
    );
    let name = cell.to_owned();
    if p < LEVEL && ratio >= margin {
        return Verdict::Fail { violations: vec![Violation::Later { cell: name, ratio, said }] };
    }
    if high <= margin {
        return Verdict::Pass { kept: vec![Kept::NotLater { cell: name, said }] };
    }
    let why = format!("{said}; runs vary too much to exclude the margin of {} times", number(margin));
    untold(cell, &why)
}

fn untold(cell: &str, why: &str) -> Verdict {
    Verdict::Inconclusive { gaps: vec![Gap::Untold { cell: cell.to_owned(), why: why.to_owned() }] }
}
