//! Sections of a run independent of the format, one file each: the content of text, Markdown and the page.

pub mod comparison;
pub(crate) mod conclusion;
pub mod cost;
pub(crate) mod explained;
pub(crate) mod findings;
pub(crate) mod floor;
pub(crate) mod imported;
pub(crate) mod intensity;
pub(crate) mod latencies;
pub(crate) mod machine;
pub(crate) mod noise;
pub(crate) mod phases;
pub(crate) mod responses;
pub(crate) mod threads;
pub(crate) mod tracers;
pub(crate) mod watched;

use crate::lines::Lines;
use crate::table::Table;
use std::io;

/// A section with its table and sentences.
#[derive(Debug)]
pub(crate) struct Section {
    /// The heading on the page.
    pub(crate) title: &'static str,
    /// The table; `None` for sentences only.
    pub(crate) table: Option<Table>,
    /// The results in sentences.
    pub(crate) sentences: Vec<String>,
    /// Explanations of the table.
    pub(crate) notes: Vec<String>,
}

impl Section {
    /// Writes the section for a terminal, with the table's head instead of a title.
    pub(crate) fn write(self, out: &mut dyn io::Write, lines: &Lines) -> io::Result<()> {
        if let Some(table) = self.table {
            table.without_unknown().fitted(lines.width).write(out, lines)?;
        }
        self.sentences.iter().chain(&self.notes).try_for_each(|text| lines.paragraph(out, "", text))
    }
}
