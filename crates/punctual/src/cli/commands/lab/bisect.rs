//! `punctual lab bisect-step`: tests a kernel against limits, for `git bisect run`.

use super::TestCell;
use super::worst::in_search;
use crate::cli::arguments::{GUEST_LOAD, GUEST_POLICY, LabBisectArguments, LabSearchCell};
use crate::cli::terminal::{Outcome, note, one_line, output};
use punctual_campaign::{KernelLimits, LocalOrLab, TestOutcome};
use punctual_lab::{LabError, Limit};
use punctual_model::{Load, Policy, Span, Task};
use std::error::Error;
use std::str::FromStr;
use std::sync::Arc;

const GOOD: u8 = 0;
const BAD: u8 = 1;
/// This kernel cannot be judged: git skips it (git-bisect(1)).
const CANNOT_BE_TESTED: u8 = 125;
/// An error independent of the kernel: git aborts the bisection, as with every status from 128.
pub(in crate::cli) const ABORT: u8 = 128;

/// Measures, prints the answer in one line on stdout, and returns the status. Errors never have a status that judges a
/// kernel.
pub(super) fn bisect_step(arguments: LabBisectArguments) -> Outcome {
    match step(arguments) {
        Ok((status, line)) => output::write(format!("{line}\n").as_bytes()).map(|()| status),
        Err(err) => {
            note(format_args!("punctual: {}", one_line(&*err)));
            Ok(ABORT)
        }
    }
}

/// Searches delays in a function of the kernel; one longer than `max` is bad.
fn stretch(cell: LabSearchCell, budget: Span, function: &str, max: Span) -> Result<(u8, String), Box<dyn Error>> {
    let asked = format!("{}; {}, {}; virtual time", cell.kernel, cell.load, cell.policy);
    let limit = Limit { budget, top: usize::from(u16::MAX), seed: 0 };
    let found = in_search(cell, |search, monitor| {
        let symbols = search.symbols(monitor)?;
        Ok(if symbols.has(function) { Some(search.longest(limit, &symbols, None, monitor)?) } else { None })
    });
    let found = match found {
        Ok(Some(found)) => found,
        Ok(None) => return Ok((CANNOT_BE_TESTED, format!("cannot test: no function {function} ({asked})"))),
        Err(err) if matches!(err.downcast_ref(), Some(LabError::Kernel { .. } | LabError::Guest { .. })) => {
            return Ok((CANNOT_BE_TESTED, format!("cannot test: {}", one_line(&*err))));
        }
        Err(err) => return Err(err),
    };
    let longest = found.delays.iter().filter(|delay| delay.is_in(function)).max_by_key(|delay| delay.kind_instructions);
    if let Some(delay) = longest.filter(|delay| delay.kind_instructions > max.ns()) {
        let kind = delay.kind.name().replace('-', " ");
        let (instructions, witness) = (delay.kind_instructions, delay.witness);
        return Ok((
            BAD,
            format!("bad: {kind} for {instructions} ns in {function}, above {max}: witness {witness} ({asked})"),
        ));
    }
    if let Some(failed) = found.failed.first() {
        return Ok((CANNOT_BE_TESTED, format!("cannot test: {failed} ({asked})")));
    }
    let most = longest.map_or_else(|| "none".to_owned(), |delay| format!("{} ns", delay.kind_instructions));
    let of = format!("of {} sampled and {} moved wake-ups", found.sampled, found.moved);
    Ok((GOOD, format!("good: no delay above {max} in {function}, longest {most}, {of} ({asked})")))
}

fn step(arguments: LabBisectArguments) -> Result<(u8, String), Box<dyn Error>> {
    let (load, policy) = match arguments.cost {
        None => (Load::from_str(GUEST_LOAD)?, Policy::from_str(GUEST_POLICY)?),
        Some(_) => (Load::NONE, Policy::OTHER),
    };
    let (load, policy) = (arguments.load.unwrap_or(load), arguments.policy.unwrap_or(policy));
    if let Some(function) = &arguments.stretch {
        let cell = LabSearchCell { kernel: arguments.kernel, load, policy };
        return stretch(cell, arguments.budget, function, arguments.max.unwrap_or_default());
    }
    let limits = KernelLimits { max: arguments.max, p99: arguments.p99 };
    let asked = match arguments.cost {
        None => format!("{load}, {policy} every {}", arguments.period),
        Some(cost) if cost.operations().count() > 1 => {
            return Err(format!("invalid operation `{cost}`: expected one operation, like syscall/read").into());
        }
        Some(cost) => format!("{cost}, {load}, {policy}"),
    };
    let kernel = arguments.kernel.to_string();
    let test_cell = TestCell {
        kernel: arguments.kernel,
        load,
        policy,
        period: arguments.period,
        task: arguments.cost.map_or(Task::CLOCK_NANOSLEEP, Task::Cost),
        duration: arguments.duration,
        blocks: arguments.phases,
    };
    let session = test_cell.begin("lab bisect-step", true)?;
    let mut lab = LocalOrLab::new(Arc::new(|line| note(line)));
    let (status, word, line) = match limits.test(&session, &mut lab, arguments.cost.is_some())? {
        TestOutcome::Good(line) => (GOOD, "good", line),
        TestOutcome::Bad(line) => (BAD, "bad", line),
        TestOutcome::Failed(failure) => {
            return Ok((CANNOT_BE_TESTED, format!("cannot test: {}", one_line(&failure))));
        }
        TestOutcome::Unusable(why) => return Ok((CANNOT_BE_TESTED, format!("cannot test {kernel}: {why}"))),
    };
    let time = if arguments.cost.is_some() { "instructions, not time" } else { "virtual time" };
    Ok((status, format!("{word}: {line} ({kernel}; {asked}; {time})")))
}
