//! Lines of text within the width of the terminal.

use super::Style;
use punctual_analysis::{Answer, Verdict};
use std::io;

/// Rows of the smallest usual terminal.
pub(super) const SCREEN_ROWS: usize = 24;

/// Width for narrower terminals as well: shorter lines are unreadable.
const NARROWEST: usize = 60;

const BOLD: &str = "\x1b[1m";
const RESET: &str = "\x1b[0m";
const GREEN: &str = "\x1b[1;32m";
const RED: &str = "\x1b[1;31m";
const YELLOW: &str = "\x1b[1;33m";

/// All escape sequences of reports (ECMA-48, SGR).
pub const COLORS: [&str; 5] = [BOLD, RESET, GREEN, RED, YELLOW];

/// Writer of wrapped text for a terminal.
#[derive(Debug)]
pub(super) struct Lines {
    pub(super) width: usize,
    colour: bool,
    /// Separator of the facts in one line.
    pub(super) separator: &'static str,
}

impl Lines {
    pub(super) fn new(style: Style) -> Lines {
        let separator = if style.unicode { "  \u{b7}  " } else { "  |  " };
        Lines { width: style.width.max(NARROWEST), colour: style.colour, separator }
    }

    /// Writes a line in bold.
    pub(super) fn heading(&self, out: &mut dyn io::Write, text: &str) -> io::Result<()> {
        if self.colour { writeln!(out, "{BOLD}{text}{RESET}") } else { writeln!(out, "{text}") }
    }

    /// Writes the answer, wrapped and in bold.
    pub(super) fn answer(&self, out: &mut dyn io::Write, answer: &Answer) -> io::Result<()> {
        self.wrapped("", &answer.to_string(), " ").iter().try_for_each(|line| self.heading(out, line))
    }

    /// Writes the answer and the text of `write`; the answer again at the end if that fills a screen.
    pub(super) fn framed(
        &self,
        out: &mut dyn io::Write,
        answer: &Answer,
        write: impl FnOnce(&mut dyn io::Write) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut text = Vec::new();
        self.answer(&mut text, answer)?;
        write(&mut text)?;
        out.write_all(&text)?;
        if rows(&text) < SCREEN_ROWS {
            return Ok(());
        }
        writeln!(out)?;
        self.answer(out, answer)
    }

    /// Writes wrapped text; lines after the first are indented by two more columns.
    pub(super) fn paragraph(&self, out: &mut dyn io::Write, indent: &str, text: &str) -> io::Result<()> {
        self.wrapped(indent, text, " ").iter().try_for_each(|line| writeln!(out, "{line}"))
    }

    /// Number of lines that [`Lines::paragraph`] writes.
    pub(super) fn rows(&self, indent: &str, text: &str) -> usize {
        self.wrapped(indent, text, " ").len()
    }

    /// Writes wrapped text after a label; lines after the first align with its begin.
    pub(super) fn hanging(&self, out: &mut dyn io::Write, label: &str, text: &str) -> io::Result<()> {
        // Wrapping indents the following lines by two more columns.
        let indent = " ".repeat(label.chars().count().saturating_sub(2));
        let wrapped = self.wrapped(&indent, &format!("  {text}"), " ");
        wrapped.iter().enumerate().try_for_each(|(i, line)| {
            let line = if i == 0 { format!("{label}{}", line.trim_start()) } else { line.clone() };
            writeln!(out, "{}", line.trim_end())
        })
    }

    /// Writes facts side by side, wrapped at the separators.
    pub(super) fn facts(&self, out: &mut dyn io::Write, facts: &[String]) -> io::Result<()> {
        self.wrapped("", &facts.join(self.separator), self.separator)
            .iter()
            .try_for_each(|line| writeln!(out, "{line}"))
    }

    /// The findings below their heading.
    pub(super) fn findings(
        &self,
        out: &mut dyn io::Write,
        heading: &str,
        sentences: impl IntoIterator<Item = String>,
    ) -> io::Result<()> {
        self.heading(out, heading)?;
        sentences.into_iter().try_for_each(|sentence| self.paragraph(out, "  ", &sentence))?;
        writeln!(out)
    }

    /// Writes the verdict with its word in color.
    pub(super) fn verdict(&self, out: &mut dyn io::Write, verdict: &Verdict) -> io::Result<()> {
        let colour = match verdict {
            Verdict::NoneAsked => "",
            Verdict::Pass { .. } => GREEN,
            Verdict::Fail { .. } => RED,
            Verdict::Inconclusive { .. } => YELLOW,
        };
        let word = verdict.word();
        let text = self.wrapped("", &verdict.to_string(), " ").join("\n");
        match text.split_once(word).filter(|_| self.colour && !word.is_empty()) {
            Some((before, after)) => writeln!(out, "{before}{colour}{word}{RESET}{after}"),
            None => writeln!(out, "{text}"),
        }
    }

    /// Wraps `text` at `separator` only.
    fn wrapped(&self, indent: &str, text: &str, separator: &str) -> Vec<String> {
        let mut lines = Vec::new();
        let mut line = indent.to_owned();
        let mut is_first = true;
        for part in whole_numbers(text, separator) {
            let length = line.chars().count() + separator.chars().count() + part.chars().count();
            if !is_first && length > self.width {
                lines.push(std::mem::replace(&mut line, format!("{indent}  ")));
            } else if !is_first {
                line.push_str(separator);
            }
            line.push_str(&part);
            is_first = false;
        }
        lines.push(line);
        lines
    }
}

/// Number of lines.
pub(super) fn rows(text: &[u8]) -> usize {
    text.iter().filter(|byte| **byte == b'\n').count()
}

/// The text, cut to `most` characters.
pub(super) fn shortened(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    text.chars().take(most.saturating_sub(3)).chain("...".chars()).collect()
}

/// The parts between separators; a number stays with the next part, possibly its unit.
fn whole_numbers(text: &str, separator: &str) -> Vec<String> {
    let mut parts: Vec<String> = Vec::new();
    for part in text.split(separator) {
        match parts.last_mut().filter(|last| separator == " " && last.ends_with(|c: char| c.is_ascii_digit())) {
            Some(number) => {
                number.push_str(separator);
                number.push_str(part);
            }
            None => parts.push(part.to_owned()),
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_break_between_words_and_never_beyond_the_width() {
        let lines = Lines::new(Style::plain(60));
        let word = "ten-letter";
        let text = [word; 11].join(" ");
        let wrapped = lines.wrapped("  ", &text, " ");
        assert_eq!(wrapped.iter().map(String::len).collect::<Vec<_>>(), [56, 58, 14]);
        assert_eq!(wrapped.join(" ").split_whitespace().count(), 11);
        assert_eq!(lines.wrapped("", &"x".repeat(99), " "), ["x".repeat(99)], "a long word stays whole");
        let unit = lines.wrapped("", &format!("{} 64 000 ms after", "x".repeat(55)), " ");
        assert_eq!(unit, ["x".repeat(55), "  64 000 ms after".to_owned()]);
    }
}
