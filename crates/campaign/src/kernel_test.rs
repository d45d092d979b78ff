//! A test of one kernel against limits: the same cell in several phases, until the result is known.

use super::executor::{Executor, Failure};
use super::session::Session;
use punctual_analysis::cost::cost_of;
use punctual_analysis::wording::{duration, things};
use punctual_analysis::{lacks, record_by_due_time};
use punctual_model::{Histogram, Record, Span};
use std::time::Duration;

/// Result of a test.
#[derive(Debug)]
pub enum TestOutcome {
    /// All limits are kept, with a description.
    Good(String),
    /// A limit is exceeded, with a description.
    Bad(String),
    /// A phase was not measured.
    Failed(Failure),
    /// A phase was measured but is unusable, with the reason.
    Unusable(String),
}

/// The limits of a cell; at least one of them is given.
#[derive(Debug, Clone, Copy)]
pub struct KernelLimits {
    /// Limit of the largest latency.
    pub max: Option<Span>,
    /// Limit of the 99th percentile.
    pub p99: Option<Span>,
}

const INTERRUPTED: &str = "interrupted; no verdict on this kernel";

/// Accumulated results of the phases.
#[derive(Debug, Default)]
struct PhaseTotals {
    phases: u32,
    /// Latencies by due time, ns.
    all: Histogram,
    /// The longest wait that was still open when its cell ended, ns.
    open_ns: u64,
    /// Whether the cell measures the cost of an operation.
    is_cost: bool,
    /// Cost of the operation in each phase, ns.
    costs_ns: Vec<f64>,
}

impl PhaseTotals {
    /// Adds a phase. Returns the reason if it cannot show that limits are kept.
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
        let of_phase = record_by_due_time(record);
        let is_silent = !self.is_cost && of_phase.n == 0;
        self.all.merge(&of_phase);
        let open = record.threads.iter().filter_map(|thread| thread.censored);
        self.open_ns = open.map(|open| open.at_least_ns).fold(self.open_ns, u64::max);
        self.phases += 1;
        lacks(record).or_else(|| is_silent.then_some("no wake-up was recorded")).map(str::to_owned)
    }

    fn max_ns(&self) -> i64 {
        if self.is_cost {
            // Fractions of a nanosecond are rounded up.
            let largest = Duration::from_secs_f64(self.costs_ns.iter().copied().fold(0.0, f64::max).ceil() / 1e9);
            return i64::try_from(largest.as_nanos()).unwrap_or(i64::MAX);
        }
        let open = i64::try_from(self.open_ns).unwrap_or(i64::MAX);
        self.all.max_ns.unwrap_or(0).max(open)
    }
}

impl KernelLimits {
    /// Measures the cell of `session` once per phase, until a limit is exceeded; `is_cost`: the cell measures an
    /// operation. Errors: if it is interrupted.
    pub fn test(
        &self,
        session: &Session,
        executor: &mut impl Executor,
        is_cost: bool,
    ) -> Result<TestOutcome, &'static str> {
        let (cell, stop, phases) = (session.cell(), session.stop(), session.header.plan.repetitions);
        let mut measured = PhaseTotals { is_cost, ..PhaseTotals::default() };
        for phase in 0..phases {
            executor.expect(&mut (phase..phases).map(|phase| (cell, phase)), stop);
            let record = match executor.execute(cell, phase, None, stop, &mut |_| ()) {
                Ok(record) => record,
                Err(_) if stop.is_requested() => return Err(INTERRUPTED),
                Err(failure) => return Ok(TestOutcome::Failed(failure)),
            };
            let lacks = measured.add(&record);
            // A single wake-up above the limit suffices; a percentile needs all phases.
            if self.is_max_exceeded(&measured) {
                break;
            }
            if stop.is_requested() {
                return Err(INTERRUPTED);
            }
            if let Some(why) = lacks {
                return Ok(TestOutcome::Unusable(why));
            }
        }
        let (is_good, line) = self.judge(&measured, phases);
        Ok(if is_good { TestOutcome::Good(line) } else { TestOutcome::Bad(line) })
    }

    fn is_max_exceeded(&self, measured: &PhaseTotals) -> bool {
        self.max.is_some_and(|limit| is_above(measured.max_ns(), limit))
    }

    /// Whether all limits are kept, with the reason in words.
    fn judge(&self, measured: &PhaseTotals, phases: u32) -> (bool, String) {
        let p99 = punctual_analysis::quantile(&measured.all, 0.99).map_or(i64::MAX, |ns| ns.max(0));
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
    use punctual_analysis::testing::RunBuilder;
    use punctual_model::Ended;

    #[test]
    fn a_phase_without_evidence_shows_nothing() {
        let lacks = |edit: fn(&mut Record)| {
            let mut run = RunBuilder::new();
            run.cell("none", "fifo:49").measure(0, 0, |_, cycle| if cycle == 100 { 900_000_000 } else { 5_000 });
            edit(&mut run.entries[0].record);
            let mut totals = PhaseTotals { all: Histogram::of(&[1]), ..PhaseTotals::default() };
            (totals.add(&run.entries[0].record), punctual_analysis::quantile(&totals.all, 0.99) > Some(800_000_000))
        };
        assert_eq!(lacks(|_| ()), (None, true), "the due times that a stall missed count");
        for (edit, why) in [
            ((|record| record.threads.clear()) as fn(&mut Record), "no wake-up was recorded"),
            (|record| record.threads[0].lost = 1, "wake-ups were lost or not seen"),
            (|record| record.ended = Ended::Interrupted, "a measurement did not run to its end"),
        ] {
            assert_eq!(lacks(edit).0.as_deref(), Some(why));
        }
    }

    #[test]
    fn maxima_are_limited_to_the_nanosecond_and_quantiles_to_the_bucket() {
        let us = |us: u64| Some(Span(us * 1000));
        let measured = |phases, latencies: &[i64], open_ns| PhaseTotals {
            phases,
            all: Histogram::of(latencies),
            open_ns,
            ..PhaseTotals::default()
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
            assert_eq!(KernelLimits { max, p99 }.judge(&measured, 8), (is_good, line.to_owned()));
        }
    }
}
