//! Lines on stderr that are redrawn in place.

use punctual_model::plain;
use punctual_report::COLORS;
use punctual_sys::terminal::{self, Size};
use std::fmt::Write as _;
use std::io::{self, IsTerminal, Write as _};

/// Size of a terminal that does not report one.
const DEFAULT_SIZE: Size = Size { columns: 80, rows: 24 };

/// A line of a frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::cli) struct Line {
    /// Its text, which is made plain where it is drawn.
    pub(in crate::cli) text: String,
    /// The escape sequence of its color; `None` for that of the terminal.
    pub(in crate::cli) color: Option<&'static str>,
}

impl From<String> for Line {
    fn from(text: String) -> Line {
        Line { text, color: None }
    }
}

/// The last frame on the terminal.
#[derive(Debug, Default)]
pub(in crate::cli) struct RedrawnLines {
    /// Width of each line of the last frame; the cursor is below them.
    drawn: Vec<usize>,
}

impl RedrawnLines {
    /// A terminal without a frame; `None` if stderr is not a terminal that can move its cursor.
    pub(in crate::cli) fn on_terminal() -> Option<RedrawnLines> {
        let is_dumb = std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb");
        (io::stderr().is_terminal() && !is_dumb).then(RedrawnLines::default)
    }

    /// The current size of the terminal.
    pub(in crate::cli) fn size() -> Size {
        terminal::size(&io::stderr()).unwrap_or(DEFAULT_SIZE)
    }

    /// Replaces the last frame by `lines`, on a terminal with `columns` now.
    pub(in crate::cli) fn draw(&mut self, lines: &[Line], columns: usize) {
        // A single write avoids flicker; a failure is ignored.
        let _ = io::stderr().write_all(frame(&self.drawn, lines, columns).as_bytes());
        self.drawn = lines.iter().map(|line| line.text.chars().count()).collect();
    }

    /// Erases the last frame.
    pub(in crate::cli) fn erase(&mut self) {
        if !self.drawn.is_empty() {
            self.draw(&[], RedrawnLines::size().columns);
        }
    }
}

/// The text that replaces the last frame by `lines`, on a terminal with `columns` now.
///
/// A terminal that became narrower has wrapped the old lines, which take more rows.
fn frame(drawn: &[usize], lines: &[Line], columns: usize) -> String {
    let rows: usize = drawn.iter().map(|width| width.div_ceil(columns.max(1)).max(1)).sum();
    let mut text = String::new();
    if rows > 0 {
        // CUU, then ED from the cursor on (ECMA-48, 8.3.22 and 8.3.39).
        let _ = write!(text, "\x1b[{rows}A");
    }
    text.push_str("\r\x1b[J");
    for line in lines {
        let [_, reset, ..] = COLORS;
        let (color, reset) = line.color.map_or(("", ""), |color| (color, reset));
        let _ = writeln!(text, "{color}{}{reset}", plain(&line.text));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_replaces_the_last_one_on_a_narrower_terminal() {
        let lines = ["one", "two"].map(|text| Line::from(text.to_owned()));
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
        let red = Line { text: "x\x1b[2J".to_owned(), color: Some("\x1b[1;31m") };
        assert_eq!(frame(&[], &[red], 80), "\r\x1b[J\x1b[1;31mx\u{fffd}[2J\x1b[0m\n", "no other escape sequence");
        assert_eq!(frame(&[1, 1], &[], 80), "\x1b[2A\r\x1b[J", "an empty one leaves nothing");
    }
}
