//! All records of one cell together: what its statistics are computed from.

use model::{Cell, Entry, Header, Histogram, Span, ThreadRecord};
use std::collections::BTreeMap;

/// Episodes of misses closer than this are one, also when they are on different CPUs: one cause may stop them all.
const JOIN_NS: u64 = Span::SECOND.0;

/// The records of one cell, by block.
#[derive(Debug)]
pub(crate) struct Pool<'a> {
    pub(crate) cell: &'a Cell,
    pub(crate) entries: Vec<&'a Entry>,
}

impl<'a> Pool<'a> {
    /// The entries of each cell of the run, in the order of the plan.
    pub(crate) fn of_run(header: &'a Header, entries: &'a [Entry]) -> Vec<Pool<'a>> {
        let of_cell = |index: usize| {
            let mut of_cell: Vec<_> = entries.iter().filter(|entry| entry.planned.cell_index == index).collect();
            of_cell.sort_by_key(|entry| entry.planned);
            of_cell
        };
        header.cells.iter().enumerate().map(|(index, cell)| Pool { cell, entries: of_cell(index) }).collect()
    }

    /// Every measured thread of every block, with the entry it belongs to.
    pub(crate) fn threads(&self) -> impl Iterator<Item = (&'a Entry, &'a ThreadRecord)> + '_ {
        self.entries.iter().flat_map(|entry| entry.record.threads.iter().map(move |thread| (*entry, thread)))
    }

    /// The sum over all threads of all blocks.
    pub(crate) fn sum(&self, of: impl Fn(&ThreadRecord) -> u64) -> u64 {
        self.threads().map(|(_, thread)| of(thread)).sum()
    }

    /// Time measured: blocks add up, CPUs do not, because they went through the same time.
    pub(crate) fn measured(&self) -> Span {
        Span(self.entries.iter().map(|entry| entry.record.measured.ns()).sum())
    }

    /// All latencies.
    pub(crate) fn histogram(&self) -> Histogram {
        merged(self.threads().map(|(_, thread)| &thread.histogram))
    }

    /// The units of every interval, in the order of time: one stretch of one block, all its CPUs added up. CPUs are no
    /// repetitions of each other; what holds one up often holds up all.
    pub(crate) fn slices(&self) -> Vec<Histogram> {
        let mut slices: BTreeMap<(u32, u64), Histogram> = BTreeMap::new();
        for (entry, thread) in self.threads() {
            for slice in &thread.slices {
                slices.entry((entry.planned.block, slice.first_cycle)).or_default().merge(&slice.histogram);
            }
        }
        slices.into_values().collect()
    }

    /// When each episode of misses began, ns of measured time with the blocks laid end to end.
    ///
    /// A wait still open at the end is one too once it is later than the deadline. Episodes beyond those that a
    /// thread listed are put at the end of their block; they only count.
    pub(crate) fn episode_starts_ns(&self) -> Vec<u64> {
        let period = self.cell.period.ns();
        let deadline = self.cell.deadline().ns();
        let mut starts = Vec::new();
        let mut offset = 0;
        for entry in &self.entries {
            let end = entry.record.measured.ns();
            let mut stretches = Vec::new();
            let mut unlisted = 0;
            for thread in &entry.record.threads {
                let listed = &thread.episodes.first;
                unlisted = thread.episodes.count.saturating_sub(u64::try_from(listed.len()).unwrap_or(0)).max(unlisted);
                stretches.extend(
                    listed.iter().map(|e| (e.first_cycle.saturating_mul(period), e.last_cycle.saturating_mul(period))),
                );
                let open = thread.censored.filter(|open| open.at_least_ns > deadline);
                stretches.extend(open.map(|open| (u64::try_from(open.cycle).unwrap_or(0).saturating_mul(period), end)));
            }
            starts.extend(joined(stretches).into_iter().map(|start| offset + start.min(end)));
            starts.extend((0..unlisted).map(|_| offset + end));
            offset += end;
        }
        starts
    }
}

/// The sum of histograms.
pub(crate) fn merged<'a>(histograms: impl Iterator<Item = &'a Histogram>) -> Histogram {
    histograms.fold(Histogram::default(), |mut all, histogram| {
        all.merge(histogram);
        all
    })
}

/// Where stretches begin once those that overlap or lie closer than a second are one.
fn joined(mut stretches: Vec<(u64, u64)>) -> Vec<u64> {
    stretches.sort_unstable();
    let mut starts = Vec::new();
    let mut reached: Option<u64> = None;
    for (first, last) in stretches {
        if reached.is_none_or(|reached| first >= reached.saturating_add(JOIN_NS)) {
            starts.push(first);
        }
        reached = reached.max(Some(last));
    }
    starts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stretches_closer_than_a_second_are_one() {
        assert!(joined(vec![]).is_empty());
        assert_eq!(joined(vec![(5, 9), (0, 2)]), [0]);
        assert_eq!(joined(vec![(0, 10), (JOIN_NS + 9, JOIN_NS + 9)]), [0]);
        assert_eq!(joined(vec![(0, 10), (JOIN_NS + 10, JOIN_NS + 10)]), [0, JOIN_NS + 10]);
        assert_eq!(joined(vec![(0, 3 * JOIN_NS), (1, 2), (3 * JOIN_NS, 3 * JOIN_NS)]), [0], "one within another");
    }
}
