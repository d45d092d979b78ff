//! What each layer of the machine took from the threads of explained cells.

use crate::summary::noise::GapRate;
use crate::summary::pool::Pool;
use punctual_model::{Entry, Layer, LayerTotal, Span};
use serde::Serialize;

/// What one layer took from the threads of a cell.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct LayerFloor {
    /// The layer.
    pub layer: Layer,
    /// Number of gaps or late wake-ups that it took time from.
    pub gaps: u64,
    /// The time as a share of that of the threads, 0 to 1.
    pub lost_share: f64,
    /// The longest time in one of them, ns.
    pub longest_ns: u64,
    /// Rates of those in which it took more than some lengths.
    pub above: Vec<GapRate>,
}

/// The layers of a cell whose gaps or wake-ups were explained; empty without an explanation.
pub(super) fn of(pool: &Pool<'_>) -> Vec<LayerFloor> {
    let totals = totals(pool.entries.iter().copied());
    let observed = observed(pool.entries.iter().copied());
    let of_layer = |total: LayerTotal| {
        let rate = |(length, n): (Span, u64)| GapRate::of(length.ns(), n, observed);
        LayerFloor {
            layer: total.layer,
            gaps: total.gaps,
            lost_share: total.total.ns() as f64 / observed.ns().max(1) as f64,
            longest_ns: total.longest.ns(),
            above: LayerTotal::LENGTHS.into_iter().zip(total.longer).map(rate).collect(),
        }
    };
    totals.into_iter().map(of_layer).collect()
}

/// What each layer took, all of them where any is known.
pub(super) fn totals<'a>(entries: impl Iterator<Item = &'a Entry>) -> Vec<LayerTotal> {
    let mut known = Layer::ALL.map(LayerTotal::none);
    let mut is_any = false;
    for explained in entries.filter_map(|entry| entry.record.explained.as_ref()) {
        is_any |= !explained.layers.is_empty();
        for total in &explained.layers {
            known.iter_mut().filter(|one| one.layer == total.layer).for_each(|one| one.merge(total));
        }
    }
    if is_any { known.to_vec() } else { Vec::new() }
}

/// Time of all threads together.
pub(super) fn observed<'a>(entries: impl Iterator<Item = &'a Entry>) -> Span {
    let of_thread = |entry: &Entry, noise: Option<Span>| noise.unwrap_or(entry.record.measured).ns();
    let of_entry = |entry: &Entry| -> u64 {
        let threads = entry.record.threads.iter();
        threads.map(|thread| of_thread(entry, thread.noise.as_ref().map(|noise| noise.observed))).sum()
    };
    Span(entries.map(of_entry).sum())
}
