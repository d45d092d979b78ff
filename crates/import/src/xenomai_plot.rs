//! The histogram of Xenomai's `latency -g FILE` for gnuplot: `#` lines that describe the measurement, then rows.
//!
//! `dump_histo_gnuplot`, testsuite/latency/latency.c of Xenomai 3: a row has the middle of its class and its count plus
//! one, for a logarithmic axis; the first and the last row are the outer edges of the classes, with count 1. The class
//! width is that of `-B`, 1 us by default, and no class between the first and the last is omitted.

use super::ParseError;
use super::column::Column;
use super::fields::{clock, number, numbered, us};
use super::xenomai::{FOLDED_REMARK, Title, beyond};
use punctual_model::{Host, Imported, ImportedThread, Source, Span};

#[derive(Debug, Default)]
struct Parsed {
    title: Title,
    measured: Option<Span>,
    figures: Option<Figures>,
    version: Option<String>,
    host: Host,
    /// Line number, latency in us, and count of each row.
    rows: Vec<(usize, f64, u64)>,
}

/// Figures such as `-0.978|     -0.147|     43.436|       0|     0|`.
#[derive(Debug, Clone, Copy)]
struct Figures {
    min_ns: i64,
    mean_ns: i64,
    max_ns: i64,
    overruns: u64,
}

/// Parses a whole file.
pub(super) fn read(text: &str, name: &str) -> Result<Imported, ParseError> {
    let mut parsed = Parsed::default();
    for (line, text) in numbered(text) {
        match text.strip_prefix('#') {
            Some(rest) => parsed.fact(rest.trim(), line)?,
            None if text.is_empty() => {}
            None => parsed.row(text, line)?,
        }
    }
    let Figures { min_ns, mean_ns, max_ns, overruns } =
        parsed.figures.ok_or_else(|| ParseError::of_file("no line of figures below `# ----lat min|`"))?;
    let (mut column, class_ns) = classes(&parsed.rows)?;
    let samples = column.n;
    let mut remarks = vec![FOLDED_REMARK.to_owned()];
    let beyond = beyond(&mut column, class_ns, max_ns, &mut remarks)?;
    Ok(Imported {
        conditions: parsed.title.conditions(),
        measured: parsed.measured,
        host: parsed.host,
        threads: vec![ImportedThread {
            samples: Some(samples),
            histogram: Some(column.histogram(class_ns)?),
            beyond,
            min_ns: Some(min_ns),
            max_ns: Some(max_ns),
            mean_ns: Some(mean_ns as f64),
            missed: Some(overruns),
            ..ImportedThread::default()
        }],
        remarks,
        ..Imported::of(Source { version: parsed.version, ..Source::of("latency", name) }, class_ns)
    })
}

impl Parsed {
    fn fact(&mut self, text: &str, line: usize) -> Result<(), ParseError> {
        if let Some(uname) = text.strip_prefix("Linux ") {
            self.machine(uname);
        } else if let Some(version) = text.strip_prefix("Xenomai version:") {
            self.version = Some(version.trim().to_owned()).filter(|version| !version.is_empty());
        } else if let Some(parameters) = text.strip_prefix("Kernel parameters:") {
            self.host.command_line = Some(parameters.trim().to_owned()).filter(|parameters| !parameters.is_empty());
        } else if text.contains(" us period") {
            self.measured = text.split_whitespace().next().and_then(clock);
            self.title.take(text);
        } else if !text.starts_with("----") && text.contains('|') {
            let fields: Vec<_> = text.split('|').map(str::trim).collect();
            let [min, avg, max, overruns, ..] = fields[..] else {
                return Err(ParseError::at(line, "figures with fewer than four columns"));
            };
            self.figures = Some(Figures {
                min_ns: us(min, line)?,
                mean_ns: us(avg, line)?,
                max_ns: us(max, line)?,
                overruns: number(overruns, line, "number of overruns")?,
            });
        }
        Ok(())
    }

    /// Parses `HOST RELEASE VERSION... MACHINE [PROCESSOR PLATFORM] GNU/Linux`, the output of `uname -a` without its
    /// first word.
    fn machine(&mut self, uname: &str) {
        let mut words: Vec<_> = uname.split_whitespace().collect();
        if words.pop_if(|last| *last == "GNU/Linux").is_none() || words.len() < 4 {
            return;
        }
        let machine = words.last().copied();
        while words.len() > 3 && words.last().copied() == machine {
            words.pop();
        }
        self.host.hostname = words.first().map(|word| (*word).to_owned());
        self.host.kernel_release = words.get(1).map(|word| (*word).to_owned());
        self.host.kernel_version = words.get(2..).map(|words| words.join(" "));
        self.host.architecture = machine.map(str::to_owned);
    }

    fn row(&mut self, text: &str, line: usize) -> Result<(), ParseError> {
        let wrong = || ParseError::at(line, "invalid row of latency -g: expected a latency in us and a number");
        let (value, n) = text.split_once(char::is_whitespace).ok_or_else(wrong)?;
        let value: f64 = number(value, line, "latency in us")?;
        // A histogram has at most 2^31 classes (-H), each below a second (-B).
        if !(0.0..1e12).contains(&value) {
            return Err(wrong());
        }
        self.rows.push((line, value, number(n, line, "number")?));
        Ok(())
    }
}

/// Counts of the classes, and the width of a class, ns.
fn classes(rows: &[(usize, f64, u64)]) -> Result<(Column, u64), ParseError> {
    let [(line, edge_us, 1), within @ .., (last, end_us, 1)] = rows else {
        return Err(ParseError::of_file(
            "no rows between the outer edges of its classes: truncated, or nothing was measured",
        ));
    };
    let Some((_, middle_us, _)) = within.first() else {
        return Err(ParseError::at(*line, "no class between two edges: nothing was measured"));
    };
    let class_ns = ((middle_us - edge_us) * 2e3).round();
    // `-B` is an int.
    if !(1.0..=f64::from(i32::MAX)).contains(&class_ns) {
        return Err(ParseError::at(*line, "rows that are not the middles of their classes"));
    }
    let first = edge_us * 1e3 / class_ns;
    // Latencies are printed with six significant digits (%g).
    let is = |us: f64, expected_us: f64| (us - expected_us).abs() <= 1e-5 * expected_us.abs() + 1e-9;
    let mut column = Column::default();
    let mut index = first.round();
    for (line, middle_us, n) in within {
        if !is(*middle_us, (index + 0.5) * class_ns / 1e3) {
            return Err(ParseError::at(*line, "class that does not follow the one before"));
        }
        let samples = n
            .checked_sub(1)
            .ok_or_else(|| ParseError::at(*line, "a class with 0, where each has its samples and one"))?;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "whole, from 0 to 1e15")]
        let class = index as u64;
        column.add(class, samples, *line)?;
        index += 1.0;
    }
    if !is(*end_us, index * class_ns / 1e3) {
        return Err(ParseError::at(*last, "an end that is not the edge of the last class"));
    }
    if column.n == 0 {
        return Err(ParseError::at(*line, "all classes are empty: nothing was measured"));
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "whole, from 1 to 2^31")]
    Ok((column, class_ns as u64))
}
