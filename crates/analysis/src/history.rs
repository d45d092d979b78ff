//! Histories: the responses of one cell on one machine over many runs, and whether they changed.

mod change;
mod expectation;
mod median;
mod responses;
mod series;
#[cfg(test)]
mod tests;

pub use change::{Budget, Change, Charts, FIRST_TEST, LEAST_SIDE, changes, threshold};
pub use expectation::{EARLIER_RUNS, Expectation, check_against_history};
pub use responses::{BlockLatencies, blocks, typical};
pub use series::{Direction, Mark, Point, Response, Series, SeriesChange, SeriesHistory, Standing, of_series};
