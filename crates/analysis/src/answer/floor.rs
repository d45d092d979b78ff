//! The layers that take a CPU: the answer of a run of `punctual floor`.

use super::noise::share;
use super::sentence::Answer;
use crate::summary::cell::CellSummary;
use crate::summary::layers::LayerFloor;
use crate::wording::duration;
use punctual_model::Layer;

/// What each layer takes from the loop that never waits, with the most settings held; `None` unless it was explained.
pub(crate) fn of_floor(cells: &[CellSummary]) -> Option<Answer> {
    let is_meant = |cell: &&CellSummary| cell.noise.is_some() && !cell.layers.is_empty();
    let held = cells.iter().filter(is_meant).max_by_key(|cell| cell.cell.conditions.prepare.words().len())?;
    let one = |layer: &LayerFloor| match layer.longest_ns {
        0 => format!("{} nothing", layer.layer),
        ns => format!("{} {} (longest {})", layer.layer, share(layer.lost_share), duration(ns as f64)),
    };
    let is_told = |layer: &&LayerFloor| layer.layer != Layer::Unknown || layer.gaps > 0;
    let layers: Vec<String> = held.layers.iter().filter(is_told).map(one).collect();
    let with = if held.cell.conditions.prepare.is_empty() { "as it is" } else { "with all settings held" };
    Some(Answer::new(format!("CPU {}, {with}: {}", held.cell.cpus, layers.join(", "))))
}
