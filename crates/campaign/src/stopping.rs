//! Stopping rules of a run before all of its blocks: decided, enough data, or out of time.

use super::carry_out::begun_blocks;
use super::estimate::expected;
use punctual_analysis::Level;
use punctual_analysis::comparison::{Comparison, Decision, MIN_OF_EACH, Question, compare_cells};
use punctual_analysis::wording::{count, duration, things};
use punctual_model::{Cell, Entry, Header, Span, Until};
use std::time::{Duration, Instant};

/// Minimum of blocks for a decision: this many in one direction are the least evidence.
const MIN_BLOCKS: u32 = 8;

/// Sets the number of blocks of a header to as many as fit into the time.
pub(super) fn bounded(mut header: Header, at_most: Span) -> Result<Header, String> {
    let block = expected(&header, header.cells.len());
    let blocks = at_most.ns() / u64::try_from(block.as_nanos()).unwrap_or(u64::MAX).max(1);
    let needed = match header.plan.until {
        Some(Until::Decided) => {
            let cells = header.first_cells();
            if cells.len() != 2 {
                let cells = things(u64::try_from(cells.len()).unwrap_or(u64::MAX), "cell");
                return Err(format!("--until decided compares two cells, this plan has {cells}"));
            }
            header.cells.iter().try_for_each(can_be_decided)?;
            MIN_BLOCKS
        }
        _ => 1,
    };
    header.plan.repetitions = u32::try_from(blocks).unwrap_or(u32::MAX).min(*punctual_model::Plan::REPETITIONS.end());
    if header.plan.repetitions < needed {
        let time = duration(block.saturating_mul(needed).as_nanos() as f64);
        return Err(format!(
            "invalid --at-most {at_most}: expected about {time} for {}",
            things(u64::from(needed), "block")
        ));
    }
    Ok(header)
}

/// Rejects a cell whose measurements are too short for a decision, whatever their number.
fn can_be_decided(cell: &Cell) -> Result<(), String> {
    let cpus = u64::try_from(cell.cpus.len()).unwrap_or(u64::MAX);
    let have = cell.cycles_of_all();
    // A tail of 1 - p lies above the lowest percentile that decides.
    let need = MIN_OF_EACH * 100;
    if have >= need {
        return Ok(());
    }
    let each = Span(need.div_ceil(cpus.max(1)).saturating_mul(cell.period.ns()));
    Err(format!(
        "--until decided compares {}: a measurement has {}, but needs {}; use --duration {each}",
        Level::P99,
        things(have, "wake-up"),
        count(need)
    ))
}

/// Limits of a session besides its plan.
#[derive(Debug, Clone, Copy, Default)]
pub struct Limits {
    /// Time limit.
    pub at_most: Option<Span>,
    /// Limit of blocks begun in this session.
    pub blocks: Option<u32>,
}

/// The stopping rule of a session.
#[derive(Debug)]
pub(super) struct Stopping {
    begun: Instant,
    limits: Limits,
    /// Blocks begun in earlier sessions.
    blocks_before: u32,
}

impl Stopping {
    /// The rule of a session that begins now; `done` are the earlier measurements.
    pub(super) fn new(limits: Limits, done: &[Entry]) -> Stopping {
        let blocks_before = begun_blocks(done.iter().map(|entry| entry.planned));
        Stopping { begun: Instant::now(), limits, blocks_before }
    }

    /// Whether the run with these complete blocks is over; only a rule about them needs their records.
    pub(super) fn is_reached(&self, header: &Header, blocks: u32, entries: &[Entry]) -> bool {
        let now = blocks.saturating_sub(self.blocks_before);
        let elapsed = self.begun.elapsed();
        let for_one = elapsed / now.max(1);
        // The next block would exceed the time limit.
        let is_late =
            now > 0 && self.limits.at_most.is_some_and(|most| elapsed + for_one > Duration::from_nanos(most.ns()));
        self.limits.blocks.is_some_and(|most| now >= most) || is_late || is_answered(header, blocks, entries)
    }
}

fn is_answered(header: &Header, blocks: u32, entries: &[Entry]) -> bool {
    match header.plan.until {
        Some(Until::Decided) => comparison(header, entries).is_some_and(|comparison| is_decided(&comparison)),
        Some(Until::Enough) => {
            let looks = punctual_analysis::enough::looks(header);
            let is_look = looks.is_some_and(|looks| looks.blocks().any(|look| look == blocks));
            let lacks = || punctual_analysis::summarise(header, entries).shortfalls;
            is_look && lacks().is_some_and(|lacks| lacks.is_empty())
        }
        None => false,
    }
}

/// Comparison of the two cells of the run so far.
fn comparison(header: &Header, entries: &[Entry]) -> Option<Comparison> {
    let cells = header.first_cells();
    let (a, b) = cells.first().zip(cells.get(1))?;
    Some(compare_cells(header, entries, *a, *b, &Question::default()))
}

/// The result in words of a run with the rule `decided`.
pub fn decision(header: &Header, entries: &[Entry]) -> Option<String> {
    let decided = header.plan.until == Some(Until::Decided);
    comparison(header, entries).filter(|_| decided).map(|comparison| comparison.sentence())
}

fn is_decided(comparison: &Comparison) -> bool {
    matches!(comparison.decision, Decision::Different | Decision::Equivalent)
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_analysis::testing::RunBuilder;

    /// A run of two cells at 1 ms on 2 CPUs; latencies of the second are `late` times as large.
    fn run(blocks: u32, late: i64, until: Until) -> RunBuilder {
        let mut run = RunBuilder::new();
        run.cell("none", "other").cell("none", "fifo:80");
        (run.header.plan.until, run.header.plan.repetitions) = (Some(until), 40);
        for block in 0..blocks {
            for (cell, late) in [(0, 1), (1, late)] {
                run.measure(block, cell, |_, cycle| {
                    late * (10_000 + 100 * i64::from(block % 7) + i64::try_from(cycle % 997).unwrap())
                });
            }
        }
        run
    }

    fn ends_after(run: &RunBuilder) -> Option<usize> {
        let rule = Stopping::new(Limits::default(), &[]);
        (1..=run.entries.len() / 2).find(|blocks| is_reached(&rule, run, blocks * 2))
    }

    /// Whether a run with its first `n` measurements is over.
    fn is_reached(rule: &Stopping, run: &RunBuilder, n: usize) -> bool {
        let entries = &run.entries[..n];
        rule.is_reached(&run.header, begun_blocks(entries.iter().map(|entry| entry.planned)), entries)
    }

    #[test]
    fn a_run_ends_when_it_is_decided() {
        let different = run(12, 3, Until::Decided);
        assert_eq!(ends_after(&different), Some(8), "8 of 8 in one direction");
        let said = decision(&different.header, &different.entries[..16]).unwrap();
        assert!(said.starts_with("DIFFERENT: none/fifo:80 is later than none/other: p99 is 3 times higher"), "{said}");
        let again = run(12, 1, Until::Decided);
        assert_eq!(ends_after(&again), Some(8), "8 blocks without any difference are equivalent");
        assert_eq!(ends_after(&run(12, 3, Until::Enough)), None, "24 s are too short to tell whether it is steady");
    }

    #[test]
    fn a_run_ends_when_it_is_enough() {
        let mut run = RunBuilder::new();
        run.cell("none", "fifo:80");
        (run.header.plan.until, run.header.plan.repetitions) = (Some(Until::Enough), 40);
        (run.header.cells[0].duration, run.header.cells[0].period) = (Span(10_000_000_000), "10ms".parse().unwrap());
        for block in 0..10 {
            run.measure(block, 0, |cpu, cycle| {
                let mut random = punctual_model::SplitMix64::new(u64::from(block) << 40 | cycle << 1 | u64::from(cpu));
                5_000 + i64::try_from(random.below(1_000)).unwrap()
            });
        }
        let rule = Stopping::new(Limits::default(), &[]);
        // The rule is checked after 2, 4 and 8 blocks; 30 s are the minimum for a statement about drift of the latency.
        let over: Vec<usize> = (1..=10).filter(|blocks| is_reached(&rule, &run, *blocks)).collect();
        assert_eq!(over, [4, 8]);
        assert_eq!(decision(&run.header, &run.entries), None, "the report says what is missing");
    }

    #[test]
    fn only_so_many_blocks_are_measured_now() {
        let run = run(6, 3, Until::Decided);
        let is_reached = |rule: &Stopping, n: usize| is_reached(rule, &run, n);
        let rule = Stopping::new(Limits { blocks: Some(2), ..Limits::default() }, &run.entries[..4]);
        assert!(!is_reached(&rule, 4) && !is_reached(&rule, 6) && is_reached(&rule, 8));
        let late = Stopping::new(Limits { at_most: Some(Span(1)), ..Limits::default() }, &[]);
        assert!(!is_reached(&late, 0) && is_reached(&late, 2));
    }

    #[test]
    fn the_time_decides_how_many_blocks_there_can_be() {
        let run = run(0, 1, Until::Decided);
        // 2 cells of 2 s, each with an overhead of 0.6 s.
        let hour = bounded(run.header.clone(), Span(3_600_000_000_000)).unwrap();
        assert_eq!(hour.plan.repetitions, 692);
        let error = bounded(run.header.clone(), Span(10_000_000_000)).unwrap_err();
        assert_eq!(error, "invalid --at-most 10s: expected about 41.6 s for 8 blocks");
        let mut short = run.clone();
        short.header.cells[1].duration = Span(999_000_000);
        let error = bounded(short.header, Span(3_600_000_000_000)).unwrap_err();
        assert_eq!(
            error,
            "--until decided compares p99: a measurement has 1 998 wake-ups, but needs 2 000; use --duration 1s"
        );
        let mut three = run.clone();
        three.cell("messaging", "other");
        assert!(bounded(three.header, Span(3_600_000_000_000)).unwrap_err().ends_with("this plan has 3 cells"));
    }
}
