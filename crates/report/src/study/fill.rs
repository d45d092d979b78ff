//! Values of runs in the rows and columns of a study's table.

use super::axes::{self, Axis, Key};
use super::{FilledField, FilledLine, FilledRow, FilledTable};
use crate::published::{self, Row};
use punctual_analysis::study::{self, StudyField, StudyMeasurement};
use punctual_model::{Statistic, Study, StudyAxis, StudyDefinition, StudyTable};
use std::collections::BTreeSet;

/// Fills a table with the published values and with ours; `names` are those of the runs.
pub(super) fn filled(
    study: Study,
    definition: &StudyDefinition,
    table: &StudyTable,
    all: &[StudyMeasurement<'_>],
    names: &[String],
) -> FilledTable {
    let published = published_in(study, table);
    let ours: Vec<&StudyMeasurement<'_>> =
        all.iter().filter(|one| one.is_meant(table.method.as_deref(), &table.only)).collect();
    let operations = study::common_operations(&ours);
    let ours: Vec<_> =
        ours.into_iter().filter(|one| study::value(&[*one], table.statistics[0], &operations).is_some()).collect();
    let axes = |wanted: &[_]| wanted.iter().map(|axis| Axis::of(*axis, definition, &published, &ours)).collect();
    let (rows, columns): (Vec<Axis>, Vec<Axis>) = (axes(&table.rows), axes(&table.columns));
    let mut row_keys: BTreeSet<Vec<Key>> = axes::of_rows(&rows, &published);
    row_keys.extend(axes::of_measurements(&rows, &ours));
    let mut column_keys: BTreeSet<Vec<Key>> = axes::of_rows(&columns, &published);
    column_keys.extend(axes::of_measurements(&columns, &ours));
    let fields: Vec<(&Vec<Key>, Statistic)> =
        column_keys.iter().flat_map(|key| table.statistics.iter().map(move |statistic| (key, *statistic))).collect();
    let head = |(key, statistic): &(&Vec<Key>, Statistic)| {
        let place = axes::labels(&columns, key).join(" ");
        let unit = if statistic.unit().is_empty() { String::new() } else { format!(", {}", statistic.unit()) };
        if place.is_empty() { format!("{statistic}{unit}") } else { format!("{place}{unit}") }
    };
    let find = |row: &Vec<Key>, column: &Vec<Key>| {
        let is_there = |at: &&Row| axes::has_row(&rows, row, at) && axes::has_row(&columns, column, at);
        published.iter().find(is_there)
    };
    // Cells that differ in a value outside the axes of the table have separate lines.
    let is_axis = |axis| table.rows.contains(&axis) || table.columns.contains(&axis);
    let variant = |one: &StudyMeasurement<'_>| -> Variant {
        let mut words: Vec<String> = one.kernel.to_string().split(' ').map(str::to_owned).collect();
        words.extend((!is_axis(StudyAxis::Load)).then(|| one.load.label()));
        words.extend((!is_axis(StudyAxis::Policy)).then(|| one.policy.to_string()));
        words.extend((!is_axis(StudyAxis::Period)).then(|| one.period.to_string()));
        (one.measurement.0, words, one.is_virtual)
    };
    let value = |row: &Vec<Key>, column: &Vec<Key>, statistic, of_variant: &Variant| {
        let of = |row: &Vec<Key>, is_meant: &dyn Fn(&StudyMeasurement<'_>) -> bool| {
            let is_there = |one: &&&StudyMeasurement<'_>| {
                axes::has(&rows, row, one) && axes::has(&columns, column, one) && is_meant(one)
            };
            let there: Vec<_> = ours.iter().filter(is_there).copied().collect();
            study::field(&there, statistic, &operations)
        };
        let field = of(row, &|one| variant(one) == *of_variant)?;
        if statistic != Statistic::Cost {
            return Some(field_of(&field, statistic));
        }
        // The first kernel of the study, in the same run: without it the change is unknown.
        let baseline = of(row_keys.first()?, &|one| one.measurement.0 == of_variant.0)?;
        Some(change(&field, &baseline))
    };
    let has_both = ours.iter().any(|one| one.is_virtual) && !ours.iter().all(|one| one.is_virtual);
    // The loads of a line are one, unless they are in columns.
    let own_load = |key: &Vec<Key>, of: &Variant| {
        let is_there = |one: &&&StudyMeasurement<'_>| axes::has(&rows, key, one) && variant(one) == *of;
        let loads: BTreeSet<String> = ours.iter().filter(is_there).map(|one| one.load.label()).collect();
        let [load] = loads.iter().collect::<Vec<_>>()[..] else { return None };
        let is_named = axes::labels(&rows, key).contains(load);
        Some(load.clone()).filter(|_| !is_named && published.iter().all(|row| row.text("load") != load))
    };
    let row = |key: &Vec<Key>| FilledRow {
        keys: axes::labels(&rows, key),
        published: fields.iter().map(|(column, statistic)| theirs(find(key, column)?, *statistic)).collect(),
        published_loops: fields.iter().map(|(column, _)| loops_of(find(key, column)?)).collect(),
        published_per_million: fields
            .iter()
            .map(|(column, statistic)| overruns_of(find(key, column)?, *statistic))
            .collect(),
        runs: {
            let variants: BTreeSet<Variant> =
                ours.iter().filter(|one| axes::has(&rows, key, one)).map(|one| variant(one)).collect();
            let line = |of: &Variant| FilledLine {
                run: source(names, &variants, has_both, of),
                load: own_load(key, of),
                fields: fields.iter().map(|(column, statistic)| value(key, column, *statistic, of)).collect(),
            };
            variants.iter().map(line).filter(|line| line.fields.iter().any(Option::is_some)).collect()
        },
    };
    FilledTable {
        title: table.title.clone(),
        axes: table.rows.iter().map(|axis| axis.name()).collect(),
        columns: fields.iter().map(head).collect(),
        decimals: fields.iter().map(|(_, statistic)| decimals(*statistic, table.decimals)).collect(),
        rows: row_keys.iter().map(row).collect(),
    }
}

/// The published rows of a table.
pub(super) fn published_in(study: Study, table: &StudyTable) -> Vec<Row> {
    let is_cost = table.statistics == [Statistic::Cost];
    let mut rows = if is_cost { published::throughput(study) } else { published::rows(study) };
    rows.retain(|row| table.method.as_deref().zip(row.get("method")).is_none_or(|(asked, method)| asked == method));
    rows
}

/// The run, the words of the kernel and of the axes that the table does not have, and whether in virtual time.
type Variant = (usize, Vec<String>, bool);

/// Name of a line: that of the run, with the words that only some lines of the run have; `has_both`: the table has both
/// kinds of time.
fn source(names: &[String], variants: &BTreeSet<Variant>, has_both: bool, of: &Variant) -> String {
    let (run, words, is_virtual) = of;
    let of_run = || variants.iter().filter(|(other, ..)| other == run).map(|(_, words, _)| words);
    let own = words.iter().filter(|word| !of_run().all(|words| words.contains(word)));
    let name = names.get(*run).map_or("", String::as_str);
    let time = (has_both && *is_virtual).then_some("in virtual time");
    [name].into_iter().chain(own.map(String::as_str)).chain(time).collect::<Vec<_>>().join(" ")
}

/// The column of a statistic in the published rows.
pub(super) fn column(statistic: Statistic) -> &'static str {
    match statistic {
        Statistic::Min => "min_us",
        Statistic::Mean => "mean_us",
        Statistic::Max => "max_us",
        Statistic::Deviation => "stddev_us",
        Statistic::Missed => "overruns",
        Statistic::Cost => "lmbench_seconds",
    }
}

/// The published value of a statistic; of a cost also its change against the baseline.
pub(super) fn theirs(row: &Row, statistic: Statistic) -> Option<String> {
    let value = row.get(column(statistic))?;
    Some(match (statistic, row.get("change_percent")) {
        (Statistic::Cost, Some(change)) => format!("{change} ({value} s)"),
        (Statistic::Cost, None) => format!("base ({value} s)"),
        _ => value.to_owned(),
    })
}

/// The published number of loops.
fn loops_of(row: &Row) -> Option<String> {
    let loops = row.get("samples").or_else(|| row.get("interrupts"))?;
    Some(loops.to_owned()).filter(|loops| !loops.is_empty())
}

/// Published overruns per million loops.
fn overruns_of(row: &Row, statistic: Statistic) -> Option<f64> {
    let number = |text: &str| text.parse::<f64>().ok();
    let (overruns, loops) = (number(row.get(column(statistic))?)?, number(&loops_of(row)?)?);
    (statistic == Statistic::Missed && loops > 0.0).then(|| overruns / loops * 1e6)
}

/// Digits after the decimal point of a statistic; overruns are counted.
fn decimals(statistic: Statistic, of_table: usize) -> usize {
    if statistic == Statistic::Missed { 0 } else { of_table }
}

/// Smallest and largest value of several blocks, in the unit of their column.
fn ends(field: &StudyField, unit: impl Fn(f64) -> f64) -> Option<(f64, f64)> {
    let (low, high) = field.blocks.first().zip(field.blocks.last()).filter(|_| field.blocks.len() > 1)?;
    Some((unit(*low), unit(*high)))
}

/// A value of ours in the unit of its column.
fn field_of(field: &StudyField, statistic: Statistic) -> FilledField {
    let is_count = statistic == Statistic::Missed;
    let unit = |value: f64| if is_count { value } else { value / 1e3 };
    FilledField {
        value: Some(unit(field.value.value)).filter(|_| !field.is_never()),
        is_at_least: field.value.at_least,
        is_baseline: false,
        blocks: ends(field, unit),
        singles: match statistic {
            Statistic::Mean => field.singles.iter().map(|ns| unit(*ns as f64)).collect(),
            _ => Vec::new(),
        },
        loops: Some(field.due),
        per_million: Some(field.value.value / field.due as f64 * 1e6).filter(|_| is_count && field.due > 0),
    }
}

/// A cost as the change against the baseline, percent.
fn change(field: &StudyField, baseline: &StudyField) -> FilledField {
    let unit = |value: f64| (value / baseline.value.value - 1.0) * 100.0;
    FilledField {
        value: Some(unit(field.value.value)),
        is_at_least: false,
        is_baseline: field == baseline,
        blocks: ends(field, unit),
        singles: Vec::new(),
        loops: None,
        per_million: None,
    }
}
