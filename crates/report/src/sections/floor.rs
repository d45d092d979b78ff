//! The floor of the machine: what each of its layers took in explained cells, and what settings change.

use super::Section;
use super::latencies::latency_or_dash;
use super::noise::limits;
use crate::table::{Column, Table, dash};
use punctual_analysis::wording::{count, duration, number};
use punctual_analysis::{CellSummary, FloorArm, LayerFloor, RunSummary, floor_setting, lost_share};
use punctual_model::LayerTotal;

/// What each layer took in each explained cell; `None` unless threads that never wait were explained.
pub(crate) fn layers(summary: &RunSummary) -> Option<Section> {
    if !summary.cells.iter().any(|cell| cell.noise.is_some() && !cell.layers.is_empty()) {
        return None;
    }
    let rows: Vec<(&CellSummary, &LayerFloor)> =
        summary.cells.iter().flat_map(|cell| cell.layers.iter().map(move |layer| (cell, layer))).collect();
    Some(Section {
        title: "Layers of the machine",
        table: Some(layer_table(&rows, summary.floor.is_some())),
        sentences: Vec::new(),
        notes: vec![
            "Firmware or host: no setting of this machine lowers it. Treatable: idle states, other threads, interrupts \
             that can be moved. Unknown: neither events nor counts tell. Rates an hour with exact 95 % limits; of late \
             wake-ups only those that were explained."
                .to_owned(),
        ],
    })
}

fn layer_table(rows: &[(&CellSummary, &LayerFloor)], is_of_floor: bool) -> Table {
    let mut columns = vec![
        Column::text("cell"),
        Column::text("layer"),
        Column::figure("lost"),
        Column::figure("gaps"),
        Column::figure("longest"),
    ];
    for (order, length) in (0_u8..).step_by(2).zip(LayerTotal::LENGTHS) {
        columns.push(Column::figure(format!(">{}/h", duration(length.ns() as f64))).spare(order + 1));
        columns.push(Column::text("[95 %]").after(1).spare(order));
    }
    let row = |(cell, layer): &(&CellSummary, &LayerFloor)| {
        let longest = Some(layer.longest_ns).filter(|ns| *ns > 0).and_then(|ns| i64::try_from(ns).ok());
        let name = match is_of_floor {
            true => format!("{}, {}", cell.cell.task, floor_setting(&cell.cell.conditions.prepare)),
            false => cell.name.clone(),
        };
        let first =
            [name, layer.layer.to_string(), lost_share(layer.lost_share), count(layer.gaps), latency_or_dash(longest)];
        let rates = layer.above.iter().flat_map(|rate| [number(rate.per_hour), limits(rate)]);
        first.into_iter().chain(rates).collect()
    };
    Table::new(columns, rows.iter().map(row).collect())
}

/// What settings change; `None` unless it is a run of `punctual floor`.
pub(crate) fn settings(summary: &RunSummary) -> Option<Section> {
    let floor = summary.floor.as_ref()?;
    let columns = vec![
        Column::text("setting"),
        Column::figure("lost"),
        Column::figure("longest gap").after(1),
        Column::figure("wake-up p99").after(1),
        Column::figure("max"),
    ];
    let row = |name: &str, arm: Option<&FloorArm>| {
        let arm = arm.copied().unwrap_or_default();
        let times = [arm.longest_gap_ns, arm.wakeup_p99_ns, arm.wakeup_max_ns].map(latency_or_dash);
        [name.to_owned(), arm.lost_share.map_or_else(dash, lost_share)].into_iter().chain(times).collect::<Vec<_>>()
    };
    let held = floor.settings.iter().map(|setting| row(setting.setting, setting.held.as_ref()));
    let why_not = |setting: &punctual_analysis::FloorSetting| {
        Some(format!("{}: cannot be switched here: {}.", setting.setting, setting.why_not.as_ref()?))
    };
    Some(Section {
        title: "What settings change",
        table: Some(Table::new(columns, [row("as it is", Some(&floor.as_is))].into_iter().chain(held).collect())),
        sentences: floor.settings.iter().filter_map(why_not).collect(),
        notes: Vec::new(),
    })
}
