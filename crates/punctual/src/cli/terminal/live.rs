//! The live view of one cell on stderr: on a terminal a block of lines that is redrawn in place, otherwise plain lines.

mod drawing;

use super::note;
use super::output::{shows_unicode, wants_color};
use super::progress::latency;
use super::redraw::{Line, RedrawnLines};
use drawing::{Room, View};
use punctual_analysis::wording::duration;
use punctual_model::{Cell, Progress};
use punctual_report::COLORS;

/// The live view of a cell.
#[derive(Debug)]
pub(in crate::cli) struct Live {
    /// `None`: plain lines.
    redrawn: Option<RedrawnLines>,
    unicode: bool,
    view: View,
}

impl Live {
    /// Begins the view of `cell`.
    pub(in crate::cli) fn new(cell: &Cell) -> Self {
        let [period, longest, time] =
            [cell.period.span(), cell.longest_period().span(), cell.duration].map(|span| duration(span.ns() as f64));
        let period = if cell.has_several_periods() { format!("{period} to {longest}") } else { period };
        match cell.task.watch() {
            Some(watch) => note(format_args!("watching {} for {time}", watch.name())),
            None if cell.task.is_noise() => {
                note(format_args!("{}, {}, for {time} on {}", cell.label(), cell.task, cell.cpus.named()));
            }
            None => note(format_args!("{}, every {period}, for {time} on {}", cell.label(), cell.cpus.named())),
        }
        let has_due_times = !cell.task.is_noise();
        let view = View { duration: cell.duration, limit: cell.deadline, has_due_times };
        Live { redrawn: RedrawnLines::on_terminal(), unicode: shows_unicode(), view }
    }

    /// Shows the progress, which the cell sends about once a second; nothing is drawn in between.
    pub(in crate::cli) fn show(&mut self, progress: &Progress) {
        if let Some(redrawn) = &mut self.redrawn {
            let size = RedrawnLines::size();
            // The last column stays empty because terminals differ in wrapping there; the last row holds the cursor.
            let room = Room {
                width: size.columns.saturating_sub(1),
                height: size.rows.saturating_sub(1),
                unicode: self.unicode,
            };
            let mut lines: Vec<Line> = drawing::lines(progress, self.view, room).into_iter().map(Line::from).collect();
            let [_, _, green, red, _] = COLORS;
            let color = drawing::exceeded(progress, self.view).map(|over| if over.is_some() { red } else { green });
            if let Some(first) = lines.first_mut().filter(|_| wants_color()) {
                first.color = color;
            }
            redrawn.draw(&lines, size.columns);
            return;
        }
        let max_ns = progress.threads.iter().filter_map(|thread| thread.max_ns).max();
        let missed: u64 = progress.threads.iter().map(|thread| thread.missed).sum();
        let missed = if self.view.has_due_times { format!("  missed {missed}") } else { String::new() };
        note(format_args!("{:7.1} s  max {}{missed}", progress.elapsed.as_secs_f64(), latency(max_ns)));
    }

    /// Erases the view.
    pub(in crate::cli) fn finish(&mut self) {
        if let Some(redrawn) = &mut self.redrawn {
            redrawn.erase();
        }
    }
}
