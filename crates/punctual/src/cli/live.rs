//! The live view of one cell: on a terminal a block of lines that is redrawn in place, elsewhere plain lines; on stderr.

mod drawing;

use super::note;
use super::output::shows_unicode;
use super::progress::latency;
use drawing::Room;
use model::{Cell, Progress, Span};
use rt::sys::terminal::{self, Size};
use std::fmt::Write as _;
use std::io::{self, IsTerminal, Write as _};

/// What the last frame left on the terminal.
#[derive(Debug)]
pub(super) struct Live {
    /// Whether stderr is a terminal that can move its cursor.
    can_redraw: bool,
    unicode: bool,
    duration: Span,
    /// How wide each line of the last frame is; the cursor stands below them.
    drawn: Vec<usize>,
}

/// Where the terminal does not say how large it is.
const USUAL: Size = Size { columns: 80, rows: 24 };

impl Live {
    /// Begins the view of `cell`.
    pub(super) fn new(cell: &Cell) -> Self {
        note(format_args!("{}, every {}, for {} on CPU {}", cell.label(), cell.period, cell.duration, cell.cpus));
        let is_dumb = std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb");
        let can_redraw = io::stderr().is_terminal() && !is_dumb;
        Live { can_redraw, unicode: shows_unicode(), duration: cell.duration, drawn: Vec::new() }
    }

    /// Shows where it stands. The cell says so about once a second; nothing is drawn in between.
    pub(super) fn show(&mut self, progress: &Progress) {
        if self.can_redraw {
            let size = terminal::size(&io::stderr()).unwrap_or(USUAL);
            // The last column stays free, because not all terminals wrap alike there, and the last row is the cursor's.
            let room = Room {
                width: size.columns.saturating_sub(1),
                height: size.rows.saturating_sub(1),
                unicode: self.unicode,
            };
            self.draw(&drawing::lines(progress, self.duration, room), size.columns);
            return;
        }
        let max_ns = progress.threads.iter().filter_map(|thread| thread.max_ns).max();
        let missed: u64 = progress.threads.iter().map(|thread| thread.missed).sum();
        note(format_args!("{:7.1} s  max {}  missed {missed}", progress.elapsed.as_secs_f64(), latency(max_ns)));
    }

    /// Leaves the terminal as it was.
    pub(super) fn finish(&mut self) {
        let columns = terminal::size(&io::stderr()).unwrap_or(USUAL).columns;
        if !self.drawn.is_empty() {
            self.draw(&[], columns);
        }
    }

    fn draw(&mut self, lines: &[String], columns: usize) {
        // One write, so that nothing is seen half drawn. Nobody looking is no reason to stop.
        let _ = io::stderr().write_all(frame(&self.drawn, lines, columns).as_bytes());
        self.drawn = lines.iter().map(|line| line.chars().count()).collect();
    }
}

/// The text that puts `lines` in the place of those drawn before, on a terminal that has `columns` now.
///
/// A terminal made narrower since has wrapped the old lines, and they take more rows.
fn frame(drawn: &[usize], lines: &[String], columns: usize) -> String {
    let rows: usize = drawn.iter().map(|width| width.div_ceil(columns.max(1)).max(1)).sum();
    let mut text = String::new();
    if rows > 0 {
        // CUU, then ED from the cursor on (ECMA-48, 8.3.22 and 8.3.39).
        let _ = write!(text, "\x1b[{rows}A");
    }
    text.push_str("\r\x1b[J");
    for line in lines {
        text.push_str(line);
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_replaces_the_one_before_even_when_the_terminal_was_made_narrower() {
        let lines = ["one".to_owned(), "two".to_owned()];
        for (drawn, columns, expected) in [
            (&[][..], 80, "\r\x1b[Jone\ntwo\n"),
            (&[79, 0], 80, "\x1b[2A\r\x1b[Jone\ntwo\n"),
            (&[79, 0], 40, "\x1b[3A\r\x1b[Jone\ntwo\n"),
            (&[80], 40, "\x1b[2A\r\x1b[Jone\ntwo\n"),
            (&[81], 40, "\x1b[3A\r\x1b[Jone\ntwo\n"),
            (&[1], 0, "\x1b[1A\r\x1b[Jone\ntwo\n"),
        ] {
            assert_eq!(frame(drawn, &lines, columns), expected, "{drawn:?} {columns}");
        }
        assert_eq!(frame(&[1, 1], &[], 80), "\x1b[2A\r\x1b[J", "an empty one leaves nothing");
    }
}
