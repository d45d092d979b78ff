//! Event layouts: the `format` files of tracefs, parsed at run time, because they differ from kernel to kernel.

use super::pages::PageLayout;
use std::collections::HashMap;

/// A field of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Field {
    /// Its offset, bytes.
    pub(super) at: usize,
    /// Its size, bytes; 0 for a field up to the end of the event.
    pub(super) bytes: usize,
}

/// The layout of one kind of event.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Format {
    /// The ID at the start of its events.
    pub(super) id: u16,
    fields: HashMap<String, Field>,
}

impl Format {
    /// Parses a `format` file; `None` when it is malformed.
    pub(super) fn parse(text: &str) -> Option<Format> {
        let id = text.lines().find_map(|line| line.strip_prefix("ID:"))?.trim().parse().ok()?;
        Some(Format { id, fields: text.lines().filter_map(field).collect() })
    }

    /// The field `name`.
    pub(super) fn field(&self, name: &str) -> Option<Field> {
        self.fields.get(name).copied()
    }
}

/// Parses a line like `field:char prev_comm[16]; offset:8; size:16; signed:0;`.
fn field(line: &str) -> Option<(String, Field)> {
    let line = line.trim();
    let mut parts = line.strip_prefix("field:")?.split(';').map(str::trim);
    let declaration = parts.next()?;
    let mut number = |key: &str| -> Option<usize> { parts.next()?.strip_prefix(key)?.parse().ok() };
    let (at, bytes) = (number("offset:")?, number("size:")?);
    // The name is the last word, without the length of an array.
    let name = declaration.rsplit([' ', '*', '\t']).next()?;
    let name = name.split('[').next()?;
    Some((name.to_owned(), Field { at, bytes }))
}

/// Parses `events/header_page`; `None` when it is malformed.
pub(super) fn page_layout(text: &str) -> Option<PageLayout> {
    let fields: HashMap<String, Field> = text.lines().filter_map(field).collect();
    let (commit, data) = (fields.get("commit")?, fields.get("data")?);
    let is_known = matches!(commit.bytes, 4 | 8) && commit.at + commit.bytes <= data.at;
    is_known.then_some(PageLayout {
        commit_at: commit.at,
        commit_bytes: commit.bytes,
        data_at: data.at,
        page_bytes: data.at.checked_add(data.bytes)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_by_name_whatever_their_type() {
        let text = "name: irq_handler_entry\nID: 225\nformat:\n\
                    \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n\
                    \tfield:int irq;\toffset:8;\tsize:4;\tsigned:1;\n\
                    \tfield:__data_loc char[] name;\toffset:12;\tsize:4;\tsigned:0;\n\
                    \tfield:void * handler;\toffset:16;\tsize:8;\tsigned:0;\n\
                    \tfield:char comm[16];\toffset:24;\tsize:16;\tsigned:0;\n\
                    \tfield:char buf[];\toffset:40;\tsize:0;\tsigned:0;\n\n\
                    print fmt: \"field: x; offset:1; size:2;\"\n";
        let format = Format::parse(text).unwrap();
        assert_eq!(format.id, 225);
        for (name, at, bytes) in [("irq", 8, 4), ("name", 12, 4), ("handler", 16, 8), ("comm", 24, 16), ("buf", 40, 0)]
        {
            assert_eq!(format.field(name), Some(Field { at, bytes }), "{name}");
        }
        assert_eq!(format.field("ret"), None);
        assert_eq!(Format::parse("name: x\n"), None);
        assert_eq!(Format::parse("ID: 70000\n"), None);
    }

    #[test]
    fn the_head_of_a_page_has_8_bytes_of_length_or_4() {
        let page = |commit: usize, data: usize| {
            format!(
                "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
                 \tfield: local_t commit;\toffset:8;\tsize:{commit};\tsigned:1;\n\
                 \tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n\
                 \tfield: char data;\toffset:{data};\tsize:4080;\tsigned:0;\n"
            )
        };
        let layout =
            |commit_bytes, data_at| PageLayout { commit_at: 8, commit_bytes, data_at, page_bytes: data_at + 4080 };
        assert_eq!(page_layout(&page(8, 16)), Some(layout(8, 16)));
        assert_eq!(page_layout(&page(4, 12)), Some(layout(4, 12)));
        assert_eq!(page_layout(&page(8, 12)), None);
        assert_eq!(page_layout(&page(2, 12)), None);
        assert_eq!(page_layout(""), None);
    }
}
