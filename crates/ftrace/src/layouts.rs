//! The layouts of a kernel's pages and events, as the texts that describe them.

use super::decode::Decoder;
use super::format::{Format, page_layout};

/// The texts of `events/` that tell how to read the pages of a kernel.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Layouts {
    /// `header_page`.
    pub page: String,
    /// `header_event`.
    pub event: String,
    /// Bytes of a page; those of `page` where that is more.
    pub page_bytes: usize,
    /// Each `format` with the path of its event, `system/event`.
    pub formats: Vec<(String, String)>,
}

/// A text that this program cannot read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LayoutError {
    /// The layout of pages.
    #[error("unknown page layout")]
    Page,
    /// The format of an event.
    #[error("invalid format of event {0}")]
    Event(String),
}

/// Largest page, bytes: the kernel's own limit for `buffer_subbuf_size_kb` is less.
const MOST_PAGE_BYTES: usize = 1 << 24;

impl Layouts {
    /// The decoder of these events. Errors: when a text is malformed.
    pub fn decoder(&self) -> Result<Decoder, LayoutError> {
        let mut layout = page_layout(&self.page).ok_or(LayoutError::Page)?;
        layout.page_bytes = layout.page_bytes.max(self.page_bytes);
        if layout.page_bytes > MOST_PAGE_BYTES {
            return Err(LayoutError::Page);
        }
        let parsed = |(path, text): &(String, String)| {
            let format =
                Format::parse(text).ok_or_else(|| LayoutError::Event(punctual_model::plain(path).into_owned()))?;
            Ok((path.clone(), format))
        };
        let formats = self.formats.iter().map(parsed).collect::<Result<Vec<_>, _>>()?;
        Ok(Decoder::new(layout, &formats))
    }

    /// These layouts with the events of another trace of the same kernel.
    pub fn with(mut self, other: &Layouts) -> Layouts {
        let new = other.formats.iter().filter(|(path, _)| self.formats.iter().all(|(known, _)| known != path));
        let new: Vec<_> = new.cloned().collect();
        self.formats.extend(new);
        self
    }
}
