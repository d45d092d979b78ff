//! The phases into which marks cut the activations of a thread.

use super::activation::Activation;
use crate::events::MarkNames;
use crate::stats::quantile::quantile;
use punctual_model::{Mark, Order, PhaseKind, PhaseRecord, Span};
use std::collections::BTreeMap;

/// A phase of a thread: its kind, and its mark.
type Key = (PhaseKind, u16);
/// Phases of one activation with their lengths, ns.
pub(super) type Lengths = Vec<(Key, u64)>;

/// The phases of all activations of a thread.
#[derive(Debug, Clone)]
pub(super) struct Phases {
    all: BTreeMap<Key, PhaseRecord>,
    /// Marks that can still be told apart.
    free: usize,
}

impl Phases {
    /// Those of the marks with names have their place from the beginning on.
    pub(super) fn new(wanted: &[Mark]) -> Phases {
        let names = MarkNames::new(wanted);
        let named = names.named().map(|mark| (PhaseKind::Mark, mark));
        let all: BTreeMap<Key, PhaseRecord> = [(PhaseKind::WakeUp, 0), (PhaseKind::Start, 0)]
            .into_iter()
            .chain(named)
            .map(|key| (key, PhaseRecord::default()))
            .collect();
        Phases { free: (Mark::MOST + 2).saturating_sub(all.len()), all }
    }

    /// Counts an activation; returns the lengths of its phases.
    pub(super) fn take(&mut self, one: &Activation) -> Lengths {
        let Activation { release_ns, user_ns, end_ns, marks, .. } = one;
        let first_ns = marks.all.first().map_or(*end_ns, |first| first.first_ns);
        let wake_up = ((PhaseKind::WakeUp, 0), *release_ns, user_ns.saturating_sub(*release_ns), 1);
        let start = ((PhaseKind::Start, 0), *user_ns, first_ns.saturating_sub(*user_ns), 1);
        let mut phases = vec![wake_up, start];
        for passed in &marks.all {
            let key = self.key(passed.mark);
            match phases.iter_mut().find(|(known, ..)| *known == key) {
                Some((_, _, length_ns, n)) => (*length_ns, *n) = (*length_ns + passed.length_ns, *n + passed.n),
                None => phases.push((key, passed.first_ns, passed.length_ns, passed.n)),
            }
        }
        let ns = |ns: u64| i64::try_from(ns).unwrap_or(i64::MAX);
        for (key, from_ns, length_ns, n) in &phases {
            let phase = self.all.entry(*key).or_default();
            phase.repeated += n - 1;
            phase.since_release.record(ns(from_ns.saturating_sub(*release_ns)));
            phase.length.record(ns(*length_ns));
        }
        phases.into_iter().map(|(key, _, length_ns, _)| (key, length_ns)).collect()
    }

    fn key(&mut self, mark: u16) -> Key {
        let key = (PhaseKind::Mark, mark);
        if self.all.contains_key(&key) {
            return key;
        }
        if self.free == 0 || mark == MarkNames::OTHER {
            return (PhaseKind::OtherMark, 0);
        }
        self.free -= 1;
        key
    }

    /// Counts a late activation with these phases.
    pub(super) fn take_late(&mut self, lengths: &Lengths) {
        for (key, length_ns) in lengths {
            let phase = self.all.entry(*key).or_default();
            phase.late += 1;
            phase.late_length = Span(phase.late_length.ns() + length_ns);
        }
    }

    /// Sets what is counted of late activations to zero, for a thread without a deadline.
    pub(super) fn clear_late(&mut self) {
        self.all.values_mut().for_each(|phase| (phase.late, phase.late_length) = (0, Span(0)));
    }

    /// The phases in the order of their median beginnings; those that never did come last.
    pub(super) fn finish(self, names: &MarkNames) -> Vec<PhaseRecord> {
        let named = |((kind, mark), phase): (Key, PhaseRecord)| {
            let mark = if kind == PhaseKind::Mark { names.name(mark) } else { String::new() };
            PhaseRecord { phase: kind, mark, ..phase }
        };
        let mut all: Vec<PhaseRecord> = self.all.into_iter().map(named).collect();
        all.order_by_key(|one| {
            let median_ns = quantile(&one.since_release, 0.5);
            (one.phase > PhaseKind::Start, median_ns.is_none(), median_ns, one.phase)
        });
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn activation(release_ns: u64, passes: &[(u16, u64)], end_ns: u64) -> Activation {
        let mut one = Activation { release_ns, user_ns: release_ns + 10, end_ns, ..Activation::default() };
        passes.iter().for_each(|(mark, at_ns)| one.marks.pass(*mark, release_ns + at_ns));
        one.marks.end(end_ns);
        one
    }

    #[test]
    fn phases_add_up_and_a_mark_without_a_pass_is_not_zero() {
        let wanted = ["function:solve", "function:never", "marker:w"].map(|mark| mark.parse().unwrap());
        let mut phases = Phases::new(&wanted);
        let all = [
            activation(0, &[(0, 30), (2, 50), (0, 60), (2, 90)], 100),
            activation(1_000, &[(2, 40)], 1_045),
            activation(2_000, &[], 2_020),
        ];
        let lengths: Vec<Lengths> = all.iter().map(|one| phases.take(one)).collect();
        for (one, lengths) in all.iter().zip(&lengths) {
            assert_eq!(lengths.iter().map(|(_, ns)| ns).sum::<u64>(), one.response_ns());
        }
        phases.take_late(&lengths[0]);
        let found = phases.clone().finish(&MarkNames::new(&wanted));
        let figures: Vec<_> = found
            .iter()
            .map(|one| {
                (
                    one.mark.as_str(),
                    one.length.n,
                    one.length.sum_ns,
                    one.since_release.sum_ns,
                    one.repeated,
                    one.late_length.ns(),
                )
            })
            .collect();
        let expected = [
            ("", 3, 30, 0, 0, 10),
            ("", 3, 20 + 30 + 10, 30, 0, 20),
            ("solve", 1, 20 + 30, 30, 1, 50),
            ("w", 2, 10 + 10 + 5, 50 + 40, 1, 20),
            ("never", 0, 0, 0, 0, 0),
        ];
        assert_eq!(
            figures,
            expected.map(|(mark, n, length, since, repeated, late)| (
                mark,
                n,
                length.into(),
                since.into(),
                repeated,
                late
            ))
        );
        phases.clear_late();
        assert!(phases.finish(&MarkNames::default()).iter().all(|one| one.late == 0 && one.late_length == Span(0)));
    }

    #[test]
    fn marks_beyond_the_limit_are_one() {
        let wanted = ["function:solve".parse().unwrap(), "marker".parse().unwrap()];
        let mut phases = Phases::new(&wanted);
        let passes: Vec<(u16, u64)> = (0..100_u16).map(|n| (16 + n, 20 + u64::from(n))).collect();
        phases.take(&activation(0, &passes, 200));
        let found = phases.finish(&MarkNames::default());
        assert_eq!(found.len(), 2 + Mark::MOST + 1);
        let other = found.iter().find(|one| one.phase == PhaseKind::OtherMark).unwrap();
        assert_eq!((other.length.n, other.repeated), (1, 100 - 15 - 1));
        assert_eq!(found.iter().map(|one| one.length.sum_ns).sum::<i128>(), 200);
    }
}
