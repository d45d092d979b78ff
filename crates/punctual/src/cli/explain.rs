//! `punctual explain`: one cell, measured while the kernel is traced; each late wake-up is explained.

use super::arguments::ExplainArguments;
use super::measure::measured;
use super::output::Shown;
use super::{Outcome, output};
use model::{Explain, Plan};

pub(super) fn explain(arguments: ExplainArguments) -> Outcome {
    let ExplainArguments { above, keep, stacks, witness, cell } = arguments;
    let asked = Explain { above: above.0, keep, stacks, witness };
    asked.check()?;
    let (common, plan) = cell.ask("explain");
    let plan = Plan { explain: Some(asked), ..plan };
    let (header, entry) = measured(plan, &common, None)?;
    let shown = Shown { each_spike: true, ..common.format.into() };
    output::show(&header, &[entry], shown)
}
