//! Names of the marks that watched programs pass.

use punctual_model::{Mark, is_plain};
use std::collections::HashMap;

/// Most different texts with a number of their own.
const MOST_TEXTS: u16 = 1024;

/// Marks by number: those that are wanted by their place in the list, then the texts that were written, as they come.
#[derive(Debug, Clone, Default)]
pub struct MarkNames {
    wanted: Vec<Mark>,
    texts: HashMap<String, u16>,
}

impl MarkNames {
    /// Number of all texts without one of their own.
    pub const OTHER: u16 = u16::MAX;

    /// These marks are wanted.
    pub fn new(wanted: &[Mark]) -> MarkNames {
        MarkNames { wanted: wanted.to_vec(), texts: HashMap::new() }
    }

    /// The mark of a text that a thread has written: its first line counts; `None` if it is not wanted.
    pub fn of_text(&mut self, text: &str) -> Option<u16> {
        let text = text.lines().next().unwrap_or_default().trim();
        let is_begun =
            |mark: &Mark| matches!(mark, Mark::Marker(begin) if !begin.is_empty() && text.starts_with(begin));
        if let Some(index) = self.wanted.iter().position(is_begun) {
            return u16::try_from(index).ok();
        }
        let takes_all = self.wanted.iter().any(|mark| mark.name().is_empty());
        let name: String = text.chars().filter(|c| is_plain(*c)).take(Mark::LONGEST).collect();
        if !takes_all || name.is_empty() {
            return None;
        }
        let next = u16::try_from(Mark::MOST + self.texts.len()).ok()?;
        let known = self.texts.get(&name).copied();
        Some(known.unwrap_or_else(|| match next {
            ..MOST_TEXTS => *self.texts.entry(name).or_insert(next),
            _ => MarkNames::OTHER,
        }))
    }

    /// The mark of a probe by its place in the list; `None` if there is none.
    pub fn of_probe(&self, index: u16) -> Option<u16> {
        Some(index).filter(|index| usize::from(*index) < self.wanted.len())
    }

    /// Those of the wanted marks that have a name.
    pub(crate) fn named(&self) -> impl Iterator<Item = u16> {
        (0..).zip(&self.wanted).filter(|(_, mark)| !mark.name().is_empty()).map(|(index, _)| index)
    }

    /// Name of a mark.
    pub(crate) fn name(&self, mark: u16) -> String {
        let wanted = self.wanted.get(usize::from(mark)).map(Mark::name);
        wanted.or_else(|| Some(self.texts.iter().find(|(_, known)| **known == mark)?.0.clone())).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_marks_by_their_beginning_or_as_a_whole() {
        let mut some = MarkNames::new(&["function:f", "marker:frame"].map(|mark| mark.parse().unwrap()));
        assert_eq!((some.of_text("frame 7\n"), some.of_text("a frame"), some.of_probe(0)), (Some(1), None, Some(0)));
        assert_eq!((some.of_probe(2), some.name(1)), (None, "frame".to_owned()));
        let mut all = MarkNames::new(&["marker"].map(|mark| mark.parse().unwrap()));
        assert_eq!(
            [" a\nb", "", "\u{1b}", "c", "a"].map(|text| all.of_text(text)),
            [Some(16), None, None, Some(17), Some(16)]
        );
        assert_eq!((all.name(17), all.named().count()), ("c".to_owned(), 0));
        for n in 0..2000 {
            let is_known = all.of_text(&format!("n{n}")) != Some(MarkNames::OTHER);
            assert_eq!(is_known, n < 1006, "{n}");
        }
        assert_eq!((all.texts.len(), all.of_text("c")), (1008, Some(17)));
    }
}
