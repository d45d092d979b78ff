//! `punctual lab bisect-step`: whether a kernel keeps a limit, as `git bisect run` wants to hear it.

use super::super::arguments::LabBisectArguments;
use super::super::recover::take_machine;
use super::super::start::holder;
use super::super::{Outcome, note, one_line, output};
use super::Asked;
use crate::campaign::{Executor, HereOrLab, Stop};
use analysis::cost::cost_of;
use analysis::wording::{duration, things};
use model::{Histogram, Load, Method, Policy, Record, Span};
use std::error::Error;
use std::str::FromStr;
use std::time::Duration;

const GOOD: u8 = 0;
const BAD: u8 = 1;
/// This kernel says nothing: git leaves it out and goes on with another (git-bisect(1)).
const CANNOT_BE_TESTED: u8 = 125;
/// It is no matter of this kernel: git ends the bisection. Everything from 128 on does that.
pub(in super::super) const ABORT: u8 = 128;

/// Measures, says the answer in one line on stdout, and returns the status. A mistake is never a status of git's that
/// says something about a kernel.
pub(super) fn bisect_step(arguments: LabBisectArguments) -> Outcome {
    match step(arguments) {
        Ok((status, line)) => output::write(format!("{line}\n").as_bytes()).map(|()| status),
        Err(err) => {
            note(format_args!("punctual: {}", one_line(&*err)));
            Ok(ABORT)
        }
    }
}

fn step(arguments: LabBisectArguments) -> Result<(u8, String), Box<dyn Error>> {
    let stop = Stop::on_signals()?;
    let limits = Limits { max: arguments.max, p99: arguments.p99 };
    let (load, policy) = match arguments.cost {
        None => (Load::from_str("exec")?, Policy::from_str("fifo:90")?),
        Some(_) => (Load::NONE, Policy::OTHER),
    };
    let (load, policy) = (arguments.load.unwrap_or(load), arguments.policy.unwrap_or(policy));
    let asked = match arguments.cost {
        None => format!("{load}, {policy} every {}", arguments.period),
        Some(cost) if cost.operations().count() > 1 => {
            return Err(format!("{cost} is several operations; name one, like syscall/read").into());
        }
        Some(cost) => format!("{cost}, {load}, {policy}"),
    };
    let kernel = arguments.kernel.to_string();
    let phases = arguments.phases;
    let header = Asked {
        kernel: arguments.kernel,
        load,
        policy,
        period: arguments.period,
        method: arguments.cost.map_or(Method::CLOCK_NANOSLEEP, Method::Cost),
        duration: arguments.duration,
        blocks: phases,
    };
    let header = header.header("lab bisect-step")?;
    let cell = header.cells.first().ok_or("nothing to measure")?;
    let lock = take_machine(true)?;
    lock.say(&holder(&header, header.n_measurements()));
    let mut measured = Measured { is_cost: arguments.cost.is_some(), ..Measured::default() };
    let mut lab = HereOrLab::default();
    for phase in 0..phases {
        lab.expect(&mut (phase..phases).map(|phase| (cell, phase)), &stop);
        let record = match lab.execute(cell, phase, None, &stop, &mut |_| ()) {
            Ok(record) => record,
            Err(_) if stop.is_asked() => return Err("interrupted; nothing is said of this kernel".into()),
            Err(err) => return Ok((CANNOT_BE_TESTED, format!("cannot be tested: {}", one_line(&err)))),
        };
        if let Some(why) = measured.add(&record) {
            return Ok((CANNOT_BE_TESTED, format!("cannot be tested: {kernel}: {why}")));
        }
        // One later wake-up than allowed is enough; a quantile is one of all phases.
        if limits.is_max_exceeded(&measured) {
            break;
        }
    }
    let (is_good, line) = limits.judge(&measured, phases);
    let status = if is_good { GOOD } else { BAD };
    let time = if measured.is_cost { "instructions, not time" } else { "virtual time" };
    Ok((status, format!("{}: {line} ({kernel}; {asked}; {time})", if is_good { "good" } else { "bad" })))
}

/// What has to be kept; at least one of them is given.
#[derive(Debug, Clone, Copy)]
struct Limits {
    max: Option<Span>,
    p99: Option<Span>,
}

/// All phases so far.
#[derive(Debug, Default)]
struct Measured {
    phases: u32,
    all: Histogram,
    /// The longest wait that had not ended when its cell did, ns.
    open_ns: u64,
    /// Whether an operation is looked at.
    is_cost: bool,
    /// What the operation cost in each phase, ns.
    costs_ns: Vec<f64>,
}

impl Measured {
    /// Adds a phase. Why it says nothing, if it does not.
    fn add(&mut self, record: &Record) -> Option<String> {
        if let Some(load) = record.loads.iter().find(|load| load.failure.is_some()) {
            let reason = load.failure.as_ref().map(|failure| failure.reason.clone()).unwrap_or_default();
            return Some(format!("load {} failed: {reason}", load.load));
        }
        if self.is_cost {
            let cost = record.cost.as_ref();
            let found = cost.and_then(|cost| cost_of(cost.operations.first()?, cost.clock_ns));
            let Some(found) = found else {
                let skipped = cost.and_then(|cost| cost.skipped.first()).map(|skipped| skipped.reason.as_str());
                return Some(skipped.unwrap_or("the operation was not measured").to_owned());
            };
            self.costs_ns.push(found);
        }
        for thread in &record.threads {
            self.all.merge(&thread.histogram);
            self.open_ns = self.open_ns.max(thread.censored.map_or(0, |open| open.at_least_ns));
        }
        self.phases += 1;
        None
    }

    fn max_ns(&self) -> i64 {
        if self.is_cost {
            // A part of an instruction more is more.
            let largest = Duration::from_secs_f64(self.costs_ns.iter().copied().fold(0.0, f64::max).ceil() / 1e9);
            return i64::try_from(largest.as_nanos()).unwrap_or(i64::MAX);
        }
        let open = i64::try_from(self.open_ns).unwrap_or(i64::MAX);
        self.all.max_ns.unwrap_or(0).max(open)
    }
}

impl Limits {
    fn is_max_exceeded(&self, measured: &Measured) -> bool {
        self.max.is_some_and(|limit| is_above(measured.max_ns(), limit))
    }

    /// Whether all limits are kept, and the reason in words.
    fn judge(&self, measured: &Measured, phases: u32) -> (bool, String) {
        let p99 = analysis::quantile(&measured.all, 0.99).map_or(0, |ns| ns.max(0));
        let max = if measured.is_cost { "median cost" } else { "max" };
        let asked = [(max, self.max, measured.max_ns()), ("p99", self.p99, p99)];
        let said = |(name, limit, ns): (&'static str, Option<Span>, i64)| Some((name, limit?, ns));
        let asked: Vec<_> = asked.into_iter().filter_map(said).collect();
        let exceeded = asked.iter().find(|(_, limit, ns)| is_above(*ns, *limit));
        let of = if measured.phases == phases {
            things(u64::from(phases), "phase")
        } else {
            format!("phase {}", measured.phases)
        };
        if let Some((name, limit, ns)) = exceeded {
            return (false, format!("{name} {} in {of} is above {limit}", duration(*ns as f64)));
        }
        let kept = asked.iter().map(|(name, limit, ns)| format!("{name} {} within {limit}", duration(*ns as f64)));
        (true, format!("{} in {of}", kept.collect::<Vec<_>>().join(", ")))
    }
}

fn is_above(ns: i64, limit: Span) -> bool {
    u64::try_from(ns).is_ok_and(|ns| ns > limit.ns())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_maximum_is_kept_up_to_its_last_nanosecond_and_a_quantile_to_its_bucket() {
        let us = |us: u64| Some(Span(us * 1000));
        let measured = |phases, latencies: &[i64], open_ns| Measured {
            phases,
            all: Histogram::of(latencies),
            open_ns,
            ..Measured::default()
        };
        let mut many = vec![5_000; 99];
        many.push(30_000);
        for (max, p99, measured, is_good, line) in [
            (us(30), None, measured(8, &many, 0), true, "max 30 us within 30us in 8 phases"),
            (us(29), None, measured(3, &many, 0), false, "max 30 us in phase 3 is above 29us"),
            (us(30), us(6), measured(8, &many, 0), true, "max 30 us within 30us, p99 5.02 us within 6us in 8 phases"),
            (None, us(4), measured(8, &many, 0), false, "p99 5.02 us in 8 phases is above 4us"),
            (us(30), None, measured(8, &many, 50_000), false, "max 50 us in 8 phases is above 30us"),
        ] {
            assert_eq!(Limits { max, p99 }.judge(&measured, 8), (is_good, line.to_owned()));
        }
    }
}
