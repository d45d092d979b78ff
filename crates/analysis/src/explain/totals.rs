//! Totals of a cell: the causes of all its explained wake-ups together.

use super::layers::layers_of;
use punctual_model::{
    Cause, CauseTotal, Evidence, ExplainRecord, Explanation, Layer, LayerTotal, Order, OwnerTotal, Span,
};
use std::collections::{BTreeMap, BTreeSet};

/// Sums over explained wake-ups, including those that are not kept.
#[derive(Debug, Clone, Default)]
pub struct Totals {
    causes: BTreeMap<(Cause, Option<Cause>), Total>,
    layers: BTreeMap<Layer, LayerTotal>,
    /// Number of wake-ups added.
    pub explained: u64,
    /// Sum of their latencies, ns.
    pub late_ns: u64,
    /// Sum of their time by evidence, ns.
    pub evidence_ns: [u64; 4],
}

#[derive(Debug, Clone, Default)]
struct Total {
    total_ns: u64,
    worst_ns: u64,
    wakeups: u64,
    blamed: u64,
    /// Time of each owner, ns, and the number of wake-ups with it.
    owners: BTreeMap<String, (u64, u64)>,
}

/// Largest number of owners kept for each cause.
const MAX_OWNERS: usize = 5;

impl Totals {
    /// Adds an explained wake-up.
    pub fn add(&mut self, explanation: &Explanation) {
        self.explained += 1;
        self.late_ns += explanation.latency.ns();
        for evidence in Evidence::ALL {
            if let Some(sum) = self.evidence_ns.get_mut(evidence.index()) {
                *sum += explanation.time_with(evidence).ns();
            }
        }
        for (layer, took) in layers_of(explanation) {
            self.layers.entry(layer).or_insert(LayerTotal::none(layer)).add(took);
        }
        let mut own: BTreeMap<_, u64> = BTreeMap::new();
        let mut seen = BTreeSet::new();
        for share in &explanation.shares {
            let (key, name) = ((share.cause, share.or), &share.owner.name);
            *own.entry(key).or_default() += share.total.ns();
            let (ns, n) = self.causes.entry(key).or_default().owners.entry(name.clone()).or_default();
            *ns += share.total.ns();
            *n += u64::from(seen.insert((key, name)));
        }
        let blamed = own.iter().max_by_key(|(_, ns)| **ns).map(|(key, _)| *key);
        for (key, ns) in own {
            let total = self.causes.entry(key).or_default();
            total.total_ns += ns;
            total.worst_ns = total.worst_ns.max(ns);
            total.wakeups += 1;
            total.blamed += u64::from(blamed == Some(key));
        }
    }

    /// What each layer took, in their order.
    pub fn layers(&self) -> Vec<LayerTotal> {
        self.layers.values().copied().collect()
    }

    /// Causes by total time, largest first.
    pub fn causes(&self) -> Vec<CauseTotal> {
        let total = |(&(cause, or), total): (&(Cause, Option<Cause>), &Total)| {
            let mut owners: Vec<_> = total.owners.iter().collect();
            owners.order_by_key(|(_, (ns, _))| std::cmp::Reverse(*ns));
            CauseTotal {
                cause,
                or,
                total: Span(total.total_ns),
                worst: Span(total.worst_ns),
                wakeups: total.wakeups,
                blamed: total.blamed,
                owners: owners
                    .into_iter()
                    .take(MAX_OWNERS)
                    .map(|(name, (ns, n))| OwnerTotal { name: name.clone(), total: Some(Span(*ns)), wakeups: Some(*n) })
                    .collect(),
            }
        };
        let mut causes: Vec<_> = self.causes.iter().map(total).collect();
        causes.order_by_key(|cause| std::cmp::Reverse(cause.total));
        causes
    }
}

/// Merges the records of several measurements of one cell; `None` without any. Keeps as many of the worst wake-ups as
/// the record with most of them.
pub fn merged<'a>(records: impl Iterator<Item = &'a ExplainRecord>) -> Option<ExplainRecord> {
    let mut all = ExplainRecord::default();
    let (mut found, mut most) = (false, 0);
    let mut causes: BTreeMap<(Cause, Option<Cause>), CauseTotal> = BTreeMap::new();
    for record in records {
        found = true;
        most = most.max(record.worst.len());
        all.above = [all.above, record.above].into_iter().flatten().min();
        all.above_at_end = all.above_at_end.max(record.above_at_end);
        all.spikes += record.spikes;
        all.explained += record.explained;
        all.not_covered += record.not_covered;
        let latest = [all.latest_not_covered, record.latest_not_covered].into_iter().flatten();
        all.latest_not_covered = latest.max_by_key(|one| one.latency);
        all.stood_still =
            [all.stood_still, record.stood_still].into_iter().flatten().reduce(|a, b| Span(a.ns() + b.ns()));
        all.overwritten = [all.overwritten, record.overwritten].into_iter().flatten().reduce(|a, b| a + b);
        all.longest_freeze = all.longest_freeze.max(record.longest_freeze);
        all.events += record.events;
        all.host_error_ns = all.host_error_ns.max(record.host_error_ns);
        all.explaining_us = [all.explaining_us, record.explaining_us].into_iter().flatten().reduce(|a, b| a + b);
        all.late = Span(all.late.ns() + record.late.ns());
        for (sum, ns) in all.evidence_ns.iter_mut().zip(record.evidence_ns) {
            *sum += ns;
        }
        for lost in record.missing.iter().filter(|lost| !all.missing.contains(lost)).cloned().collect::<Vec<_>>() {
            all.missing.push(lost);
        }
        for seen in &record.irq {
            match all.irq.iter_mut().find(|known| known.cpu == seen.cpu) {
                Some(known) => known.histogram.merge(&seen.histogram),
                None => all.irq.push(seen.clone()),
            }
        }
        for seen in &record.answers {
            match all.answers.iter_mut().find(|known| known.cpu == seen.cpu) {
                Some(known) => {
                    known.interrupt_to_wakeup.merge(&seen.interrupt_to_wakeup);
                    known.wakeup_to_switch.merge(&seen.wakeup_to_switch);
                }
                None => all.answers.push(seen.clone()),
            }
        }
        for layer in &record.layers {
            match all.layers.iter_mut().find(|known| known.layer == layer.layer) {
                Some(known) => known.merge(layer),
                None => all.layers.push(*layer),
            }
        }
        for cause in &record.causes {
            let Some(sum) = causes.get_mut(&(cause.cause, cause.or)) else {
                causes.insert((cause.cause, cause.or), cause.clone());
                continue;
            };
            sum.total = Span(sum.total.ns() + cause.total.ns());
            sum.worst = sum.worst.max(cause.worst);
            sum.wakeups += cause.wakeups;
            sum.blamed += cause.blamed;
            for owner in &cause.owners {
                match sum.owners.iter_mut().find(|known| known.name == owner.name) {
                    Some(known) => {
                        known.total = known.total.zip(owner.total).map(|(a, b)| Span(a.ns() + b.ns()));
                        known.wakeups = known.wakeups.zip(owner.wakeups).map(|(a, b)| a + b);
                    }
                    None => sum.owners.push(owner.clone()),
                }
            }
            sum.owners.order_by_key(|owner| std::cmp::Reverse(owner.total));
            sum.owners.truncate(MAX_OWNERS);
        }
        all.worst.extend(record.worst.iter().cloned());
    }
    all.worst.order_by_key(|one| std::cmp::Reverse(one.latency));
    all.worst.truncate(most);
    all.layers.order_by_key(|total| total.layer);
    all.causes = causes.into_values().collect();
    all.causes.order_by_key(|cause| std::cmp::Reverse(cause.total));
    found.then_some(all)
}
