//! Sums of stretches by owner and cause; threads of one name count together.

use punctual_model::{Cause, Evidence, Explanation, Order, Owner, Segment, Share, Span};
use std::collections::{BTreeMap, BTreeSet};

/// Stretches of one name, cause and evidence.
#[derive(Debug)]
struct Sum<'a> {
    total: u64,
    pieces: u32,
    pids: BTreeSet<Option<i32>>,
    longest: &'a Segment,
}

type Key<'a> = (&'a str, Cause, Option<Cause>, Evidence);

/// What the stretches of one share have in common.
fn key(segment: &Segment) -> Key<'_> {
    // What every wake-up costs is one share, regardless of the current thread.
    let name = if segment.cause == Cause::UsualWakeUp { segment.cause.name() } else { &segment.owner.name };
    (name, segment.cause, segment.or, segment.evidence)
}

/// Whether a stretch is a part of a share.
pub(super) fn is_part(segment: &Segment, share: &Share) -> bool {
    key(segment) == (share.owner.name.as_str(), share.cause, share.or, share.evidence)
}

/// Share of each name and cause, largest first. They add up to the sum of the stretches.
pub(super) fn roll_up(segments: &[Segment]) -> Vec<Share> {
    let mut sums: BTreeMap<Key<'_>, Sum<'_>> = BTreeMap::new();
    for segment in segments {
        let sum =
            sums.entry(key(segment)).or_insert(Sum { total: 0, pieces: 0, pids: BTreeSet::new(), longest: segment });
        sum.total += segment.length.ns();
        sum.pieces = sum.pieces.saturating_add(1);
        sum.pids.insert(segment.owner.pid);
        if segment.length > sum.longest.length {
            sum.longest = segment;
        }
    }
    let share = |((name, cause, or, evidence), sum): (Key<'_>, Sum<'_>)| Share {
        phase: sum.longest.phase,
        owner: Owner { name: name.to_owned(), pid: sum.longest.owner.pid.filter(|_| cause != Cause::UsualWakeUp) },
        threads: if cause == Cause::UsualWakeUp { 1 } else { u32::try_from(sum.pids.len()).unwrap_or(u32::MAX) },
        cause,
        or,
        evidence,
        total: Span(sum.total),
        longest: sum.longest.length,
        pieces: sum.pieces,
        place: sum.longest.place.clone(),
        code: None,
    };
    let mut shares: Vec<_> = sums.into_iter().map(share).collect();
    shares.order_by(|a, b| b.total.cmp(&a.total).then_with(|| a.owner.cmp(&b.owner)));
    shares
}

/// Keeps the longest stretches, in the order of time.
pub(super) fn keep_longest<T>(all: &mut Vec<T>, at_and_length: impl Fn(&T) -> (Span, Span)) {
    all.order_by_key(|one| std::cmp::Reverse(at_and_length(one).1));
    all.truncate(Explanation::STRETCHES);
    all.order_by_key(|one| at_and_length(one).0);
}
