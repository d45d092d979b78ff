//! Text on its way into a page: what is foreign is escaped, and nothing else is.

use std::fmt::{self, Write};

/// A page while it is written.
#[derive(Debug, Default)]
pub(super) struct Markup(String);

impl Markup {
    /// Appends what was formatted; foreign text in it goes through [`Text`].
    pub(super) fn add(&mut self, markup: fmt::Arguments<'_>) {
        // Writing to a String never fails.
        let _ = self.0.write_fmt(markup);
    }

    /// Appends markup as it stands.
    pub(super) fn raw(&mut self, markup: &str) {
        self.0.push_str(markup);
    }

    /// The page.
    pub(super) fn into_string(self) -> String {
        self.0
    }
}

/// Foreign text as HTML shows it, between tags and in quoted attributes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Text<T>(pub(super) T);

impl<T: fmt::Display> fmt::Display for Text<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(Escaping(f), "{}", self.0)
    }
}

/// A sentence as HTML: foreign text in which no line ends within an option (`--unit`), where browsers would break it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Prose<T>(pub(super) T);

impl<T: fmt::Display> fmt::Display for Prose<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, word) in self.0.to_string().split(' ').enumerate() {
            let space = if i > 0 { " " } else { "" };
            if word.trim_start_matches(['(', '`']).starts_with("--") {
                write!(f, "{space}<span class=option>{}</span>", Text(word))?;
            } else {
                write!(f, "{space}{}", Text(word))?;
            }
        }
        Ok(())
    }
}

/// Escapes whatever is written through it.
struct Escaping<'a, 'b>(&'a mut fmt::Formatter<'b>);

impl Write for Escaping<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for c in text.chars() {
            match c {
                '&' => self.0.write_str("&amp;")?,
                '<' => self.0.write_str("&lt;")?,
                '>' => self.0.write_str("&gt;")?,
                '"' => self.0.write_str("&quot;")?,
                '\'' => self.0.write_str("&#39;")?,
                // Not allowed in HTML, and able to turn the direction of the text after them.
                c if c != '\n' && !model::is_plain(c) => self.0.write_char('\u{fffd}')?,
                c => self.0.write_char(c)?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_text_is_only_text() {
        for (text, escaped) in [
            ("", ""),
            ("fifo:80", "fifo:80"),
            ("</h1><script>alert(1)</script>", "&lt;/h1&gt;&lt;script&gt;alert(1)&lt;/script&gt;"),
            ("a & \"b\" 'c'", "a &amp; &quot;b&quot; &#39;c&#39;"),
            ("a\0b\u{1b}[1m\n", "a\u{fffd}b\u{fffd}[1m\n"),
            ("\u{202e}txt.exe\u{2067}", "\u{fffd}txt.exe\u{fffd}"),
        ] {
            assert_eq!(Text(text).to_string(), escaped);
        }
    }

    #[test]
    fn options_stay_whole() {
        for (text, markup) in [
            ("", ""),
            ("if ns: --unit ns", "if ns: <span class=option>--unit</span> ns"),
            ("measure more (--repetitions 12).", "measure more <span class=option>(--repetitions</span> 12)."),
            ("--a<b", "<span class=option>--a&lt;b</span>"),
            ("a - b -- c", "a - b <span class=option>--</span> c"),
        ] {
            assert_eq!(Prose(text).to_string(), markup);
        }
    }
}
