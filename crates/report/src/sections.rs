//! Topics of a run before they have a form, one file each: what text, Markdown and the page show of them.

pub mod comparison;
pub(crate) mod conclusion;
pub mod cost;
pub(crate) mod explained;
pub(crate) mod findings;
pub(crate) mod imported;
pub(crate) mod intensity;
pub(crate) mod latencies;
pub(crate) mod machine;
pub(crate) mod responses;
pub(crate) mod tracers;

use crate::lines::Lines;
use crate::table::Table;
use std::io;

/// A topic with its numbers and what is said of them.
#[derive(Debug)]
pub(crate) struct Section {
    /// The heading on the page.
    pub(crate) title: &'static str,
    /// The table; `None` for a topic in sentences.
    pub(crate) table: Option<Table>,
    /// What was found, in sentences.
    pub(crate) sentences: Vec<String>,
    /// How to read it.
    pub(crate) notes: Vec<String>,
}

impl Section {
    /// Writes it for a terminal, which needs no title: the head of its table is one.
    pub(crate) fn write(self, out: &mut dyn io::Write, lines: &Lines) -> io::Result<()> {
        if let Some(table) = self.table {
            table.without_unknown().fitted(lines.width).write(out, lines)?;
        }
        self.sentences.iter().chain(&self.notes).try_for_each(|text| lines.paragraph(out, "", text))
    }
}
