//! Progress of a campaign on stderr: a redrawn line on a terminal, otherwise plain lines.

use super::{note, sentence};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use punctual_analysis::CannotPass;
use punctual_analysis::enough::Outlook;
use punctual_analysis::wording::{duration, things};
use punctual_campaign::{Observer, expected};
use punctual_model::{Entry, Failed, Header, Planned, Progress, Task};
use std::io::{self, IsTerminal};
use std::sync::Arc;

/// The progress of a campaign: one line with the largest latency of each cell so far.
#[derive(Debug)]
pub(in crate::cli) struct Lines {
    header: Header,
    /// Names of the cells, in the order of the header.
    names: Vec<String>,
    bar: ProgressBar,
    /// Largest latency of each cell so far, ns.
    worst_ns: Vec<Option<i64>>,
    now: Option<Planned>,
    done: usize,
    all: usize,
}

impl Lines {
    /// Prints the extent and expected duration; `done` measurements are already recorded.
    pub(in crate::cli) fn new(header: &Header, done: usize) -> Self {
        let blocks = header.plan.repetitions;
        let all = header.n_measurements();
        let resumed = if done > 0 { format!(", {done} already done") } else { String::new() };
        let left = match expected(header, all.saturating_sub(done)).as_secs() {
            0 => "nothing left to measure".to_owned(),
            seconds => format!("about {}", duration(seconds as f64 * 1e9)),
        };
        let most = if header.plan.until.is_some() { "at most " } else { "" };
        let cells = things(header.cells.len() as u64, "cell");
        let blocks = things(u64::from(blocks), "block");
        let measurements = things(all as u64, "measurement");
        note(format_args!("{cells} x {most}{blocks} = {most}{measurements}{resumed}, {most}{left}"));
        outlook(header);
        let all_cells: Vec<_> =
            header.cells.iter().chain(header.skipped.iter().map(|skipped| &skipped.cell)).cloned().collect();
        let mut names = punctual_analysis::cell_names(&all_cells);
        let named = names.iter().map(String::as_str).zip(&header.cells);
        for limit in CannotPass::all(&header.plan.require, named, header.plan.repetitions) {
            note(limit);
        }
        for line in skipped(header, &names.split_off(header.cells.len())) {
            note(line);
        }
        let bar = if io::stderr().is_terminal() {
            ProgressBar::new(all as u64)
        } else {
            ProgressBar::with_draw_target(Some(all as u64), ProgressDrawTarget::hidden())
        };
        let style =
            ProgressStyle::with_template("  [{bar:12}]  {wide_msg}").unwrap_or_else(|_| ProgressStyle::default_bar());
        bar.set_style(style.progress_chars("#--"));
        bar.set_position(done as u64);
        Lines { header: header.clone(), names, bar, worst_ns: vec![None; header.cells.len()], now: None, done, all }
    }

    /// Printer for lines of other threads, above the redrawn line if there is one.
    pub(in crate::cli) fn say_above(&self) -> Arc<dyn Fn(&str) + Send + Sync> {
        let bar = self.bar.clone();
        Arc::new(move |line| bar.suspend(|| note(line)))
    }

    /// Erases the line.
    pub(in crate::cli) fn finish(&self) {
        self.bar.finish_and_clear();
    }

    fn say(&self, running_ns: Option<i64>) {
        let Some(now) = self.now else { return };
        let name = self.names.get(now.cell_index).map_or("", String::as_str);
        let worst = self.worst_ns.iter().copied().chain([running_ns]).flatten().max();
        let left = expected(&self.header, self.all.saturating_sub(self.done)).as_secs();
        self.bar.set_message(format!(
            // A terminal of 80 columns may cut the name.
            "block {}/{}  {} left  worst {}  {name}",
            now.block + 1,
            self.header.plan.repetitions,
            duration(left as f64 * 1e9),
            latency(worst),
        ));
    }
}

impl Observer for Lines {
    fn starts(&mut self, planned: &Planned, done: usize) {
        (self.now, self.done) = (Some(*planned), done);
        let is_guest = self.header.cells.get(planned.cell_index).is_some_and(|cell| !cell.kernel.is_here());
        if is_guest && self.bar.is_hidden() {
            // On a busy machine a guest may run for long without output.
            let name = self.names.get(planned.cell_index).map_or("", String::as_str);
            note(format_args!("guest {} of {}: block {}  {name}", done + 1, self.all, planned.block + 1));
        }
        self.say(None);
    }

    fn progress(&mut self, progress: &Progress) {
        self.say(progress.threads.iter().filter_map(|thread| thread.max_ns).max());
    }

    fn failed(&mut self, failed: &Failed, is_last: bool) {
        let name = self.names.get(failed.planned.cell_index).map_or("", String::as_str);
        let block = failed.planned.block + 1;
        let then = if is_last { "skipped" } else { "retried at the end" };
        self.bar.suspend(|| note(format_args!("punctual: {name}, block {block}: {}; {then}", failed.reason)));
    }

    fn recorded(&mut self, entry: &Entry) {
        let of_threads = entry.record.threads.iter().filter_map(|thread| thread.histogram.max_ns);
        let of_program = entry.record.instrument.iter().flat_map(|program| &program.result.threads);
        let max_ns = of_threads.chain(of_program.filter_map(|thread| thread.max_ns)).max();
        if let Some(worst) = self.worst_ns.get_mut(entry.planned.cell_index) {
            *worst = (*worst).max(max_ns);
        }
        self.done += 1;
        self.bar.inc(1);
        if self.bar.is_hidden() {
            let name = self.names.get(entry.planned.cell_index).map_or("", String::as_str);
            note(format_args!(
                "{:>3}/{}  block {}  {name}  max {}",
                self.done,
                self.all,
                entry.planned.block + 1,
                latency(max_ns)
            ));
        }
    }
}

/// Prints the outlook of the cell with the fewest cycles. Sleeps have neither due times nor misses.
fn outlook(header: &Header) {
    let periodic = header.cells.iter().filter(|cell| !matches!(cell.task, Task::Sleep(_)) && !cell.task.is_noise());
    let least = periodic.min_by_key(|cell| (cell.period.cycles_in(cell.duration), cell.duration));
    if let Some(cell) = least {
        sentence(format_args!("each cell: {}", Outlook::of(cell, header.plan.repetitions)));
    }
}

/// A line for each reason, with the first cell that is skipped for it.
fn skipped(header: &Header, names: &[String]) -> Vec<String> {
    let mut by_reason: Vec<(&str, &str, usize)> = Vec::new();
    for (skipped, name) in header.skipped.iter().zip(names) {
        match by_reason.iter_mut().find(|(reason, ..)| *reason == skipped.reason) {
            Some((.., more)) => *more += 1,
            None => by_reason.push((&skipped.reason, name, 0)),
        }
    }
    let line = |(reason, name, more)| match more {
        0 => format!("skipped {name}: {reason}"),
        more => format!("skipped {name} and {more} more: {reason}"),
    };
    by_reason.into_iter().map(line).collect()
}

/// A latency with its unit; `-` if unknown.
pub(in crate::cli) fn latency(ns: Option<i64>) -> String {
    ns.map_or_else(|| "-".to_owned(), |ns| duration(ns as f64))
}
