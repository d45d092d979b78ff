//! The live view of one cell on stderr: on a terminal a block of lines that is redrawn in place, otherwise plain lines.

mod drawing;

use super::note;
use super::output::shows_unicode;
use super::progress::latency;
use super::redraw::RedrawnLines;
use drawing::Room;
use model::{Cell, Progress, Span};

/// The live view of a cell.
#[derive(Debug)]
pub(super) struct Live {
    /// `None`: plain lines.
    redrawn: Option<RedrawnLines>,
    unicode: bool,
    duration: Span,
}

impl Live {
    /// Begins the view of `cell`.
    pub(super) fn new(cell: &Cell) -> Self {
        note(format_args!("{}, every {}, for {} on CPU {}", cell.label(), cell.period, cell.duration, cell.cpus));
        Live { redrawn: RedrawnLines::on_terminal(), unicode: shows_unicode(), duration: cell.duration }
    }

    /// Shows the progress, which the cell reports about once a second.
    pub(super) fn show(&mut self, progress: &Progress) {
        if let Some(redrawn) = &mut self.redrawn {
            let size = RedrawnLines::size();
            // The last column stays empty because terminals differ in wrapping there; the last row holds the cursor.
            let room = Room {
                width: size.columns.saturating_sub(1),
                height: size.rows.saturating_sub(1),
                unicode: self.unicode,
            };
            redrawn.draw(&drawing::lines(progress, self.duration, room), size.columns);
            return;
        }
        let max_ns = progress.threads.iter().filter_map(|thread| thread.max_ns).max();
        let missed: u64 = progress.threads.iter().map(|thread| thread.missed).sum();
        note(format_args!("{:7.1} s  max {}  missed {missed}", progress.elapsed.as_secs_f64(), latency(max_ns)));
    }

    /// Erases the view.
    pub(super) fn finish(&mut self) {
        if let Some(redrawn) = &mut self.redrawn {
            redrawn.erase();
        }
    }
}
