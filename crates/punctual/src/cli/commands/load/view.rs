//! Output of a load that runs alone: a redrawn block on a terminal, otherwise a line each second.

use super::Work;
use crate::cli::arguments::Format;
use crate::cli::terminal::redraw::{Line, RedrawnLines};
use crate::cli::terminal::{note, output};
use punctual_analysis::wording::{duration, things};
use punctual_model::{CpuSet, LoadRecord, Span};
use std::error::Error;
use std::io::{self, IsTerminal};
use std::time::Duration;

/// Output of a load.
pub(super) struct LoadView {
    mode: ViewMode,
    /// Number of CPUs over which the machine's idle time is summed.
    online: Option<usize>,
    /// Requested duration.
    ends: Option<Span>,
}

enum ViewMode {
    /// No output before the end.
    Silent,
    /// A line each second on stdout.
    Lines,
    /// A block on the terminal.
    Block(RedrawnLines),
}

impl LoadView {
    pub(super) fn begin(format: Format, online: Option<usize>, ends: Option<Span>) -> LoadView {
        let terminal = RedrawnLines::on_terminal().filter(|_| io::stdout().is_terminal());
        let mode = match (format, terminal) {
            (Format::Json, _) => ViewMode::Silent,
            (Format::Text, Some(redrawn)) => ViewMode::Block(redrawn),
            (Format::Text, None) => ViewMode::Lines,
        };
        LoadView { mode, online, ends }
    }

    /// Prints the parts that were started.
    pub(super) fn started(&self, records: &[LoadRecord], cpus: &CpuSet) -> Result<(), Box<dyn Error>> {
        if matches!(self.mode, ViewMode::Silent) {
            return Ok(());
        }
        let lines: String = records.iter().map(|record| started(record, cpus) + "\n").collect();
        output::write(lines.as_bytes())
    }

    /// Shows the last reading; returns whether stdout still has a reader.
    pub(super) fn second(&mut self, work: &Work) -> Result<bool, Box<dyn Error>> {
        let machine =
            work.machine.last().map(|row| punctual_report::machine_share(row, self.online)).unwrap_or_default();
        match &mut self.mode {
            ViewMode::Silent => Ok(true),
            ViewMode::Lines => output::write_while_read(line(work, &machine).as_bytes()),
            ViewMode::Block(redrawn) => {
                let size = RedrawnLines::size();
                // The last column stays empty because terminals differ in wrapping there.
                let fitting =
                    |line: String| line.chars().take(size.columns.saturating_sub(1)).collect::<String>().into();
                let lines: Vec<Line> = block(work, &machine, self.ends).into_iter().map(fitting).collect();
                let rows = lines.len().min(size.rows.saturating_sub(1));
                redrawn.draw(lines.get(..rows).unwrap_or_default(), size.columns);
                Ok(true)
            }
        }
    }

    /// Erases the block.
    pub(super) fn finish(&mut self) {
        if let ViewMode::Block(redrawn) = &mut self.mode {
            redrawn.erase();
        }
    }
}

/// The first line of a part.
fn started(record: &LoadRecord, cpus: &CpuSet) -> String {
    let processes = things(record.workers, "process");
    let starting = record.starting.map(|starting| duration(starting.ns() as f64));
    let program = record.program.as_ref().map(|program| {
        let version = program.version.as_ref().map(|version| format!(" ({version})")).unwrap_or_default();
        format!("{}{version}, ", program.path)
    });
    let program = program.unwrap_or_default();
    format!("{}: {program}{processes} on {}, working after {}", record.load, cpus.named(), starting.unwrap_or_default())
}

/// The record with its last reading only.
fn last(record: &LoadRecord) -> LoadRecord {
    LoadRecord { seconds: record.seconds.last().copied().into_iter().collect(), ..record.clone() }
}

/// The activity since the previous line.
fn line(work: &Work, machine: &str) -> String {
    let records = work.records();
    let name = |record: &LoadRecord| if records.len() > 1 { format!("{}: ", record.load) } else { String::new() };
    let parts: Vec<String> =
        records.iter().map(|record| format!("{}{}", name(record), punctual_report::load_rate(&last(record)))).collect();
    format!("{:7.1} s  {}  {machine}\n", work.elapsed().as_secs_f64(), parts.join("  "))
}

/// The activity as a block of lines, with the lowest rate so far.
fn block(work: &Work, machine: &str, ends: Option<Span>) -> Vec<String> {
    let until = ends.map_or_else(|| ", Ctrl-C ends it".to_owned(), |ends| format!(" of {ends}"));
    let mut lines = vec![format!("{:7.1} s{until}   {machine}", work.elapsed().as_secs_f64())];
    let records = work.records();
    let widest = records.iter().map(|record| record.load.chars().count()).max().unwrap_or(0);
    for record in &records {
        let rate = punctual_report::load_rate(&last(record));
        lines.push(format!("  {:widest$}  {rate}{}", record.load, lowest(record)));
    }
    lines
}

fn lowest(record: &LoadRecord) -> String {
    let share = |share: f64| format!(", at least {:.0} % of its rate at the start", (share * 100.0).floor());
    record.lowest_share().map(share).unwrap_or_default()
}

/// Prints the average rates and the time to stop.
pub(super) fn sum(work: &Work, stopped: Duration) -> Result<(), Box<dyn Error>> {
    for record in work.records() {
        let (rate, lowest) = (punctual_report::load_rate(&record), lowest(&record));
        output::write(format!("{}: {rate}{lowest}\n", record.load).as_bytes())?;
    }
    note(format_args!("stopped in {} ms", stopped.as_millis()));
    Ok(())
}
