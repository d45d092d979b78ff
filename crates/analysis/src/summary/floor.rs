//! The floor of a machine: what takes its CPUs with all settings held, and what each setting changes.

use crate::summary::cell::CellSummary;
use crate::summary::layers::{observed, totals};
use punctual_model::{Entry, Floor, Header, Host, Layer, LayerTotal, Level, Order, Prepare};
use serde::Serialize;

/// What settings change, one by one and together; of a run of `punctual floor` only.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct FloorSummary {
    /// Without any of them.
    pub as_is: FloorArm,
    /// Each of them.
    pub settings: Vec<FloorSetting>,
}

/// Numbers with some settings.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, schemars::JsonSchema)]
pub struct FloorArm {
    /// Time that the loop lost to gaps, as a share, 0 to 1; `null` without a measurement.
    pub lost_share: Option<f64>,
    /// Its longest gap, ns.
    pub longest_gap_ns: Option<i64>,
    /// 99 % of the wake-ups were at most this late, ns.
    pub wakeup_p99_ns: Option<i64>,
    /// The latest wake-up, ns.
    pub wakeup_max_ns: Option<i64>,
}

/// A setting, and the numbers while it was held.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct FloorSetting {
    /// The setting, in words.
    pub setting: &'static str,
    /// `null`: it cannot be switched on this machine.
    pub held: Option<FloorArm>,
    /// The reason for that; `null` if it was held.
    pub why_not: Option<String>,
}

/// Title of a run of `punctual floor`.
pub const FLOOR: &str = "floor";

/// The settings of `punctual floor`, one by one and together: name, and `KEY=VALUE` of each.
pub const FLOOR_SETTINGS: [(&str, &[(&str, &str)]); 3] = [
    ("idle states off", &[("idle_latency", "0us")]),
    ("governor performance", &[("governor", "performance")]),
    ("interrupts moved away", &[("irqbalance", "pause"), ("irq_cpus", "others")]),
];

/// Name of all settings together.
const ALL: &str = "all of them";

/// The floor of the machine by this run: of the loop that never waits, with the most settings held. `None`: this run
/// has none.
pub fn floor_of(header: &Header, entries: &[Entry]) -> Option<Floor> {
    let is_meant = |entry: &&Entry| entry.record.cell.task.is_noise() && entry.record.explained.is_some();
    let mut held: Vec<&Entry> = entries.iter().filter(is_meant).collect();
    held.order_by_key(|entry| std::cmp::Reverse(entry.record.cell.conditions.prepare.words().len()));
    let cell = &held.first()?.record.cell;
    let of_it = || held.iter().copied().filter(|entry| entry.record.cell == *cell);
    let below = totals(of_it()).into_iter().find(|total| total.layer == Layer::FirmwareOrHost);
    Some(Floor {
        boot_id: header.host.boot_id.clone(),
        started_unix_ms: header.started_unix_ms,
        cpus: cell.cpus.clone(),
        observed: observed(of_it()),
        below: below.unwrap_or(LayerTotal::none(Layer::FirmwareOrHost)),
    })
}

/// What the settings of a run of `punctual floor` change; `None` for other runs.
pub(crate) fn of(header: &Header, cells: &[CellSummary]) -> Option<FloorSummary> {
    if header.plan.title != FLOOR {
        return None;
    }
    let arm = |prepare: &Prepare| arm(cells.iter().filter(|cell| cell.cell.conditions.prepare == *prepare));
    let as_is = arm(&Prepare::default())?;
    let mut all = Prepare::default();
    let mut settings: Vec<FloorSetting> = Vec::new();
    for (setting, changes) in FLOOR_SETTINGS {
        let prepare = floor_prepare(changes);
        let held = arm(&prepare);
        if held.is_some() {
            changes.iter().for_each(|(key, value)| drop(all.set(key, value)));
        }
        let why_not = held.is_none().then(|| why_not(setting, &header.host));
        settings.push(FloorSetting { setting, held, why_not });
    }
    if settings.iter().filter(|setting| setting.held.is_some()).count() > 1 {
        settings.push(FloorSetting { setting: ALL, held: arm(&all), why_not: None });
    }
    Some(FloorSummary { as_is, settings })
}

/// The name of these settings in a run of `punctual floor`.
pub fn floor_setting(prepare: &Prepare) -> &'static str {
    let is_it = |(_, changes): &&(&str, &[(&str, &str)])| floor_prepare(changes) == *prepare;
    match FLOOR_SETTINGS.iter().find(is_it) {
        _ if prepare.is_empty() => "as it is",
        Some((name, _)) => name,
        None => ALL,
    }
}

/// The settings of a row of [`FLOOR_SETTINGS`].
pub fn floor_prepare(changes: &[(&str, &str)]) -> Prepare {
    let mut prepare = Prepare::default();
    changes.iter().for_each(|(key, value)| drop(prepare.set(key, value)));
    prepare
}

fn arm<'a>(cells: impl Iterator<Item = &'a CellSummary>) -> Option<FloorArm> {
    let mut arm = None;
    for cell in cells {
        let numbers: &mut FloorArm = arm.get_or_insert_default();
        let max_ns = cell.max.map(|max| max.latency_ns);
        match &cell.noise {
            Some(noise) => {
                numbers.lost_share = noise.cpus.first().map(|cpu| cpu.lost_share);
                numbers.longest_gap_ns = max_ns;
            }
            None => (numbers.wakeup_p99_ns, numbers.wakeup_max_ns) = (cell.quantiles.at(Level::P99).value_ns(), max_ns),
        }
    }
    arm
}

/// Why a setting was not held.
fn why_not(setting: &str, host: &Host) -> String {
    let has_one_cpu = host.cpus_online.as_ref().is_some_and(|cpus| cpus.len() <= 1);
    let [idle, governor, _] = FLOOR_SETTINGS.map(|(name, _)| name);
    match setting {
        _ if setting == idle && host.power.idle_states.is_empty() => "the kernel has no idle states here",
        _ if setting == governor && host.governors.is_empty() => "the kernel scales no frequency here",
        _ if setting != idle && setting != governor && has_one_cpu => "there is one CPU only",
        _ => "it is so already, or nothing can be changed",
    }
    .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summarise;
    use crate::testing::RunBuilder;
    use punctual_model::{ExplainRecord, Method, NoiseRecord, Span, Task};

    /// A run of `punctual floor` in which interrupts could be moved, and nothing else be switched.
    fn run() -> RunBuilder {
        let mut run = RunBuilder::new();
        run.header.plan.title = FLOOR.to_owned();
        run.header.host.governors.clear();
        run.header.host.power.idle_states.clear();
        for (index, (task, held)) in
            [("noise", 0), ("noise", 2), ("timerfd", 0), ("timerfd", 2)].into_iter().enumerate()
        {
            run.cell("none", "other");
            run.measure(0, index, |_, _| 5_000);
            let task: Task = task.parse().unwrap();
            let prepare = floor_prepare(if held == 2 { FLOOR_SETTINGS[2].1 } else { &[] });
            let record = &mut run.entries[index].record;
            record.cell.conditions.prepare = prepare.clone();
            record.cell.task = task.clone();
            run.header.cells[index].conditions.prepare = prepare;
            run.header.cells[index].task = task.clone();
            if task == Task::Cyclic(Method::Noise { threshold: None }) {
                let hour = Span(3_600_000_000_000);
                record.threads.truncate(1);
                record.threads[0].noise =
                    Some(NoiseRecord { observed: hour, lost: Span(hour.ns() / 100), ..NoiseRecord::default() });
                let mut below = LayerTotal::none(Layer::FirmwareOrHost);
                (0..=index).for_each(|_| below.add(Span(150_000)));
                record.explained = Some(ExplainRecord { layers: vec![below], ..ExplainRecord::default() });
            }
        }
        run
    }

    #[test]
    fn layers_have_rates_and_a_layer_that_took_nothing_an_upper_limit() {
        let run = run();
        let summary = summarise(&run.header, &run.entries);
        let layers = &summary.cells[1].layers;
        assert_eq!(layers.iter().map(|one| one.layer).collect::<Vec<_>>(), Layer::ALL);
        assert_eq!((layers[0].gaps, layers[0].longest_ns, layers[0].above[1].gaps), (2, 150_000, 2));
        assert!((layers[0].above[1].lower_per_hour - 0.2422).abs() < 1e-3, "{layers:?}");
        assert!(layers[1].gaps == 0 && (layers[1].above[0].upper_per_hour - 2.9957).abs() < 1e-3, "{layers:?}");
        assert!(summary.cells[2].layers.is_empty());
    }

    #[test]
    fn what_cannot_be_switched_is_null_with_its_reason() {
        let mut run = run();
        let floor = summarise(&run.header, &run.entries).floor.unwrap();
        let names = run.header.cells.iter().map(|cell| floor_setting(&cell.conditions.prepare));
        assert_eq!(
            names.collect::<Vec<_>>(),
            ["as it is", "interrupts moved away", "as it is", "interrupts moved away"]
        );
        let answer = summarise(&run.header, &run.entries).without_limits.to_string();
        assert!(answer.starts_with("CPU ") && answer.contains("with all settings held: firmware or host"), "{answer}");
        assert_eq!((floor.as_is.lost_share, floor.as_is.wakeup_max_ns), (Some(0.01), Some(5_000)));
        let rows: Vec<_> =
            floor.settings.iter().map(|row| (row.setting, row.held.is_some(), row.why_not.as_deref())).collect();
        assert_eq!(
            rows,
            [
                ("idle states off", false, Some("the kernel has no idle states here")),
                ("governor performance", false, Some("the kernel scales no frequency here")),
                ("interrupts moved away", true, None),
            ]
        );
        run.header.plan.title = "other".to_owned();
        assert_eq!(summarise(&run.header, &run.entries).floor, None);
    }

    #[test]
    fn the_floor_is_that_with_most_settings_held() {
        let run = run();
        let floor = floor_of(&run.header, &run.entries).unwrap();
        assert_eq!((floor.below.gaps, floor.observed), (2, Span(3_600_000_000_000)));
        assert_eq!(floor_of(&run.header, &run.entries[2..]), None);
    }
}
