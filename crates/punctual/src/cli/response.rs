//! `punctual measure response`: how soon another thread answers, over a link.

use super::Outcome;
use super::arguments::{OneCell, ResponseArguments};
use super::measure::one;
use model::{CpuSet, Method};
use rt::sys::sched;

/// One cell, measured on one CPU: the last that may be used, unless one is named.
pub(super) fn response(arguments: ResponseArguments) -> Outcome {
    let ResponseArguments { to, cell } = arguments;
    let OneCell { mut common, .. } = cell;
    if common.cpus.is_none() {
        let last = sched::affinity(0)?.iter().last();
        common.cpus = Some(CpuSet::from_iter(last));
    }
    let (common, plan) = OneCell { common, ..cell }.ask("measure", Method::Response(to));
    one(plan, &common, None)
}
