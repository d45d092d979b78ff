//! An unknown word, with the nearest known one.

use std::fmt;

/// An unknown word: the kind of word expected, the word as typed, and the known words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownWord {
    /// The kind of thing the word names, in the singular: "policy", "axis".
    pub kind: &'static str,
    /// The word as typed.
    pub given: String,
    /// Every known form, as help shows it.
    pub known: &'static [&'static str],
}

/// Share of equal letters above which a word is suggested; half lets `policies` find `policy`, but not `foo` `fifo`.
const SUGGEST_ABOVE: f64 = 0.5;

/// The longest word that is compared, bytes.
const LONGEST: usize = 100;

impl UnknownWord {
    /// The error for `given`, which is not in `known`.
    pub fn new(kind: &'static str, given: &str, known: &'static [&'static str]) -> Self {
        Self { kind, given: given.to_owned(), known }
    }

    /// The known word nearest to the typed one. Only the part before a `:` is compared; the rest is kept as typed.
    pub fn nearest(&self) -> Option<String> {
        let (head, rest) = self.given.split_once(':').map_or((self.given.as_str(), None), |(h, r)| (h, Some(r)));
        let word = nearest(head, self.known.iter().map(|form| form.split([':', '[']).next().unwrap_or(form)))?;
        Some(rest.map_or_else(|| word.to_owned(), |rest| format!("{word}:{rest}")))
    }
}

/// Returns the word of `known` nearest to `given`, in any case of its letters; `None` when none is near, or `given` is
/// known itself.
pub fn nearest<'a>(given: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // Nothing that is known is half as long, and comparing takes the product of the lengths.
    if given.len() > LONGEST {
        return None;
    }
    let lower = given.to_ascii_lowercase();
    let score = |word: &str| strsim::damerau_levenshtein(&lower, word) as f64 / lower.len().max(word.len()) as f64;
    known
        .into_iter()
        .map(|word| (word, 1.0 - score(word)))
        .max_by(|a, b| a.1.total_cmp(&b.1))
        .filter(|(word, similarity)| *similarity > SUGGEST_ABOVE && *word != given)
        .map(|(word, _)| word)
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

/// Whether two spellings are one word: letters and digits count, in any case.
pub(crate) const fn is_one_word(a: &str, b: &str) -> bool {
    let [a, b] = [a.as_bytes(), b.as_bytes()];
    let [mut i, mut j] = [0; 2];
    loop {
        while i < a.len() && !a[i].is_ascii_alphanumeric() {
            i += 1;
        }
        while j < b.len() && !b[j].is_ascii_alphanumeric() {
            j += 1;
        }
        if i == a.len() || j == b.len() {
            return i == a.len() && j == b.len();
        }
        if !a[i].eq_ignore_ascii_case(&b[j]) {
            return false;
        }
        (i, j) = (i + 1, j + 1);
    }
}

/// Defines an enum of words, each variant with its text; with the kind of word they are also read from text. With
/// `json` the variant in snake case is the word of JSON, and it cannot be compiled unless that is the text's word, too;
/// what older versions wrote is an alias.
macro_rules! words {
    ($(#[$meta:meta])* json $name:ident $(, $kind:literal)? { $($(#[$doc:meta])* $variant:ident = $word:literal,)+ }) => {
        crate::words::word::words! {
            $(#[$meta])*
            #[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
            #[serde(rename_all = "snake_case")]
            $name $(, $kind)? { $($(#[$doc])* $variant = $word,)+ }
        }

        $(const _: () = assert!(
            crate::words::word::is_one_word(stringify!($variant), $word),
            concat!("one word in JSON, text and code: ", stringify!($variant), ", ", $word),
        );)+
    };
    ($(#[$meta:meta])* $name:ident $(, $kind:literal)? { $($(#[$doc:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $($(#[$doc])* $variant,)+
        }

        impl $name {
            /// All, in the order of lists.
            pub const ALL: [$name; $name::KNOWN.len()] = [$($name::$variant),+];
            /// The words of all, in the same order.
            pub const KNOWN: &[&str] = &[$($word),+];

            /// Its word.
            pub const fn name(self) -> &'static str {
                match self {
                    $($name::$variant => $word,)+
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.name())
            }
        }

        $(impl std::str::FromStr for $name {
            type Err = crate::UnknownWord;

            fn from_str(text: &str) -> Result<Self, crate::UnknownWord> {
                let known = $name::ALL.into_iter().find(|one| one.name() == text);
                known.ok_or_else(|| crate::UnknownWord::new($kind, text, $name::KNOWN))
            }
        })?
    };
}

/// Implements the JSON form of a type by its `FromStr` and `Display`: one word everywhere.
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

pub(crate) use {as_text, words};

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
        assert_eq!(UnknownWord::new("policy", "FIFOO:80", policies).nearest().as_deref(), Some("fifo:80"));
        // Not compared: the comparison would take minutes.
        assert_eq!(UnknownWord::new("policy", &"fifo".repeat(1_000_000), policies).nearest(), None);
    }

    #[test]
    fn one_word_has_many_spellings() {
        for (a, b, is_one) in [
            ("", "", true),
            ("P999", "p99.9", true),
            ("WholeWakeUp", "whole wake-up", true),
            ("Queue", "wakeup to switch", false),
            ("Lock", "locks", false),
            ("locks", "Lock", false),
            ("-", "a", false),
        ] {
            assert_eq!(is_one_word(a, b), is_one, "{a} {b}");
        }
    }

    #[test]
    fn the_message_says_what_and_which() {
        assert_eq!(
            UnknownWord::new("axis", "laod", &["kernel", "load"]).to_string(),
            "unknown axis `laod` (did you mean `load`? known: kernel load)"
        );
    }
}
