//! HTML output: escaped text, and sections with entries in the table of contents.

use std::fmt::{self, Write};

/// A part of a page while it is written.
#[derive(Debug, Default)]
pub(super) struct Markup {
    text: String,
    contents: Vec<Entry>,
}

/// An entry of the table of contents.
#[derive(Debug)]
struct Entry {
    /// Name of the section in links.
    id: String,
    title: String,
    /// Letter of its run, on a page of several.
    letter: Option<char>,
}

impl Markup {
    /// Appends formatted markup; foreign text in it goes through [`Text`].
    pub(super) fn add(&mut self, markup: fmt::Arguments<'_>) {
        // Writing to a String never fails.
        let _ = self.text.write_fmt(markup);
    }

    /// Appends markup unchanged.
    pub(super) fn raw(&mut self, markup: &str) {
        self.text.push_str(markup);
    }

    /// Begins a section that the table of contents lists; `class` may be empty.
    pub(super) fn section(&mut self, id: &str, class: &str, title: &str, letter: Option<char>) {
        let class = if class.is_empty() { String::new() } else { format!(" class=\"{class}\"") };
        let badge = letter.map(|letter| format!(" <b class=run>{letter}</b>")).unwrap_or_default();
        self.add(format_args!("<section id={id}{class}>\n<h2>{}{badge}", Text(title)));
        self.permalink(id, title);
        self.raw("</h2>\n");
        self.contents.push(Entry { id: id.to_owned(), title: title.to_owned(), letter });
    }

    /// Writes content that is folded until the reader opens it or follows a link into it.
    pub(super) fn folded(&mut self, summary: &str, content: impl FnOnce(&mut Markup)) {
        self.add(format_args!("<details class=rest><summary>{}</summary>\n", Text(summary)));
        content(self);
        self.raw("</details>\n");
    }

    /// Appends a link to a heading, for its address.
    pub(super) fn permalink(&mut self, id: &str, title: &str) {
        self.add(format_args!(" <a class=here href=#{id} aria-label=\"Link to {}\">#</a>", Text(title)));
    }

    /// Returns the table of contents: a link to each section.
    pub(super) fn contents(&self) -> String {
        let mut list = String::new();
        for Entry { id, title, letter } in &self.contents {
            let letter = letter.map(|letter| format!(" {letter}")).unwrap_or_default();
            let _ = writeln!(list, "<a href=#{id}>{}{letter}</a>", Text(title));
        }
        list
    }

    /// Returns the markup.
    pub(super) fn into_string(self) -> String {
        self.text
    }
}

/// Foreign text, escaped for use between tags and in quoted attributes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Text<T>(pub(super) T);

impl<T: fmt::Display> fmt::Display for Text<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(Escaping(f), "{}", self.0)
    }
}

/// Characters after which a narrow column may break a name.
const BREAKS: [char; 3] = ['_', '/', '='];

/// A name as HTML: escaped text with optional line breaks.
#[derive(Debug, Clone, Copy)]
pub(super) struct Name<'a>(pub(super) &'a str);

impl fmt::Display for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for part in self.0.split_inclusive(BREAKS) {
            let wbr = if part.ends_with(BREAKS) { "<wbr>" } else { "" };
            write!(f, "{}{wbr}", Text(part))?;
        }
        Ok(())
    }
}

/// A sentence as HTML: escaped text in which options (`--unit`) are not broken across lines.
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

/// A formatter that escapes HTML.
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
                c if c != '\n' && !punctual_model::is_plain(c) => self.0.write_char('\u{fffd}')?,
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
    fn names_may_break_between_their_parts() {
        assert_eq!(Name("fifo:80").to_string(), "fifo:80");
        assert_eq!(Name("/k/<a>_b x=y").to_string(), "/<wbr>k/<wbr>&lt;a&gt;_<wbr>b x=<wbr>y");
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
