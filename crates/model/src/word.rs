//! A word that is not known, with the nearest one that is.

use std::fmt;

/// A typed word that no list knows: what it should have been, what was typed, what there is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownWord {
    /// What the word should name, in the singular: "policy", "axis".
    pub kind: &'static str,
    /// The word as typed.
    pub given: String,
    /// Every form that is understood, as help shows it.
    pub known: &'static [&'static str],
}

/// Share of letters that must agree before a word is offered; half lets `policies` find `policy`, but not `foo` `fifo`.
const SUGGEST_ABOVE: f64 = 0.5;

/// Bytes of the longest word that is compared.
const LONGEST: usize = 100;

impl UnknownWord {
    /// The error for `given`, which is none of `known`.
    #[must_use]
    pub fn new(kind: &'static str, given: &str, known: &'static [&'static str]) -> Self {
        Self { kind, given: given.to_owned(), known }
    }

    /// The known word nearest to what was typed; only the part before a `:` is compared, the rest is kept as typed.
    #[must_use]
    pub fn nearest(&self) -> Option<String> {
        let (head, rest) = self.given.split_once(':').map_or((self.given.as_str(), None), |(h, r)| (h, Some(r)));
        // Nothing that is known is half as long, and comparing takes the product of the lengths.
        if head.len() > LONGEST {
            return None;
        }
        let score = |word: &str| strsim::damerau_levenshtein(head, word) as f64 / head.len().max(word.len()) as f64;
        let word = self
            .known
            .iter()
            .map(|form| form.split([':', '[']).next().unwrap_or(form))
            .map(|word| (word, 1.0 - score(word)))
            .max_by(|a, b| a.1.total_cmp(&b.1))
            .filter(|(word, similarity)| *similarity > SUGGEST_ABOVE && *word != head)?
            .0;
        Some(rest.map_or_else(|| word.to_owned(), |rest| format!("{word}:{rest}")))
    }
}

impl fmt::Display for UnknownWord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unknown {} `{}` (", self.kind, self.given)?;
        if let Some(word) = self.nearest() {
            write!(f, "did you mean `{word}`? ")?;
        }
        write!(f, "known: {})", self.known.join(" "))
    }
}

impl std::error::Error for UnknownWord {}

/// A type that is one word wherever it is written: its `FromStr` and `Display` become its form in JSON.
macro_rules! as_text {
    ($type:ty, $error:ty) => {
        impl TryFrom<String> for $type {
            type Error = $error;

            fn try_from(text: String) -> Result<Self, $error> {
                text.parse()
            }
        }

        impl From<$type> for String {
            fn from(value: $type) -> String {
                value.to_string()
            }
        }
    };
}

pub(crate) use as_text;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_word_is_offered_only_when_it_is_near() {
        let axes: &[&str] = &["kernel", "load", "policy", "period", "method"];
        for (given, nearest) in [("laod", Some("load")), ("policies", Some("policy")), ("x", None), ("frequency", None)]
        {
            assert_eq!(UnknownWord::new("axis", given, axes).nearest().as_deref(), nearest, "{given}");
        }
        let policies: &[&str] = &["other", "fifo:PRIORITY"];
        assert_eq!(UnknownWord::new("policy", "fifoo:80", policies).nearest().as_deref(), Some("fifo:80"));
        // Not compared: that would take minutes.
        assert_eq!(UnknownWord::new("policy", &"fifo".repeat(1_000_000), policies).nearest(), None);
    }

    #[test]
    fn the_message_says_what_and_which() {
        assert_eq!(
            UnknownWord::new("axis", "laod", &["kernel", "load"]).to_string(),
            "unknown axis `laod` (did you mean `load`? known: kernel load)"
        );
    }
}
