//! Rows of numbers: one latency a line, or a table of latency classes and frequencies.
//!
//! The OSADL QA farm publishes such tables: a latency, then a count for each CPU.

use super::column::Column;
use super::fields::{decimal, number, numbered};
use super::{ImportOptions, ParseError, Unit, samples};
use punctual_model::{Imported, ImportedThread, Source};

/// Limit of samples in a table: three years of one each 100 us. A column of times adds up to more.
const MAX_SAMPLES: u64 = 1_000_000_000_000;
/// Distance of the classes of a table from which they are times, as a number of units and in ns.
const MIN_TIMES: (u64, u64) = (1_000, 1_000_000);
/// Rows with a count above the one before; a histogram ends with small counts.
const MAX_RISING: usize = 16;

/// Parses a whole file. Fields are separated by blanks, tabs, commas or semicolons; `#` begins a comment.
pub(super) fn read(text: &str, name: &str, stated: &ImportOptions) -> Result<Imported, ParseError> {
    let rows = || numbered(text).map(|(line, text)| (line, text.split('#').next().unwrap_or_default().trim()));
    let rows = || rows().filter(|(_, text)| !text.is_empty());
    if rows().next().is_some_and(|(_, row)| fields(row).nth(1).is_none()) {
        let unit = stated.unit.ok_or_else(|| {
            ParseError::of_file("one latency a line does not state its unit: add --unit ns, us, ms or s")
        })?;
        let latency = |(line, row): (usize, &str)| {
            let is_one = fields(row).nth(1).is_none();
            if is_one { decimal(row, unit.ns(), line) } else { Err(ParseError::at(line, "expected one latency")) }
        };
        let thread = samples::thread(0, rows().count(), rows().map(latency))?;
        return Ok(Imported { threads: vec![thread], ..Imported::of(Source::of("samples", name), 1) });
    }
    let is_head = |line: &str| line.starts_with('#') && ["latenc", "histogram"].iter().any(|word| line.contains(word));
    if stated.unit.is_none() && !numbered(text).any(|(_, line)| is_head(&line.to_lowercase())) {
        return Err(ParseError::of_file(
            "a table without a head `# Latency` may be anything: if its columns are a latency and counts, add --unit us, \
             ns, ms or s",
        ));
    }
    table(rows(), name, stated)
}

fn fields(row: &str) -> impl Iterator<Item = &str> {
    row.split([' ', '\t', ',', ';']).filter(|field| !field.is_empty())
}

fn table<'a>(
    rows: impl Iterator<Item = (usize, &'a str)>,
    name: &str,
    stated: &ImportOptions,
) -> Result<Imported, ParseError> {
    let unit = stated.unit.unwrap_or(Unit::Us);
    let mut columns: Vec<Column> = Vec::new();
    for (line, row) in rows {
        let mut fields = fields(row);
        let value: u64 = number(fields.next().unwrap_or_default(), line, "latency class")?;
        let counts: Vec<u64> = fields.map(|field| number(field, line, "count")).collect::<Result<_, _>>()?;
        if counts.is_empty() {
            return Err(ParseError::at(line, "latency class without a count"));
        }
        if columns.is_empty() {
            columns.resize_with(counts.len(), Column::default);
        }
        if counts.len() != columns.len() {
            let expected = columns.len();
            return Err(ParseError::at(
                line,
                format!("expected as many counts as in the rows before ({expected}), found {}", counts.len()),
            ));
        }
        for (column, n) in columns.iter_mut().zip(counts) {
            column.add(value, n, line)?;
        }
    }
    let mut threads = Vec::new();
    for (number, column) in (0..).zip(&columns) {
        if let Some(reason) = implausible(column, unit) {
            return Err(ParseError::of_file(format!(
                "not a histogram: {reason}; import the column of latencies alone, one a line, with --unit"
            )));
        }
        let histogram = column.histogram(unit.ns())?;
        let (min_ns, max_ns) = (histogram.min_ns, histogram.max_ns);
        let samples = Some(histogram.n);
        threads.push(ImportedThread {
            number,
            samples,
            min_ns,
            max_ns,
            histogram: Some(histogram),
            ..Default::default()
        });
    }
    let mut remarks = vec!["a table does not show values beyond its range: its maximum may be too small".to_owned()];
    if stated.unit.is_none() {
        remarks.push(
            "the file does not state its unit, us or ns: taken as us; if the values are ns: --unit ns".to_owned(),
        );
    }
    Ok(Imported { threads, remarks, ..Imported::of(Source::of("table", name), unit.ns()) })
}

/// Why a column cannot be the counts of latency classes.
fn implausible(column: &Column, unit: Unit) -> Option<String> {
    if column.n > MAX_SAMPLES {
        return Some(format!("{} samples", column.n));
    }
    let counts: Vec<u64> = column.counts().collect();
    let (step, (units, ns)) = (column.step(), MIN_TIMES);
    if counts.len() > 2 && step >= units && step.saturating_mul(unit.ns()) >= ns {
        return Some(format!("its classes are {step} units apart, as times are"));
    }
    let steps = || counts.windows(2).map(|pair| pair[1].checked_sub(pair[0]).filter(|step| *step > 0));
    let is_even = counts.len() > 2 && steps().all(|step| step.is_some() && step == steps().next().flatten());
    let is_rising = is_even || counts.len() >= MAX_RISING && steps().all(|step| step.is_some());
    is_rising.then(|| "its counts rise with the class, as times do".to_owned())
}
