//! The answer of a command: one sentence.

use crate::verdict::Verdict;
use crate::wording::duration;
use serde::Serialize;
use std::fmt;

/// The answer of a command: one sentence, as a headline without its full stop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(transparent)]
pub struct Answer(String);

impl Answer {
    /// An answer in words, with or without a full stop.
    pub fn new(sentence: impl Into<String>) -> Answer {
        let mut sentence = sentence.into();
        // An ellipsis stays.
        if sentence.ends_with('.') && !sentence.ends_with("..") {
            sentence.truncate(sentence.len() - 1);
        }
        Answer(sentence)
    }

    /// The verdict on limits; without any, the other one.
    pub(crate) fn of(verdict: &Verdict, without_limits: &Answer) -> Answer {
        match verdict {
            Verdict::NoneAsked => without_limits.clone(),
            verdict => Answer::new(verdict.sentence()),
        }
    }

    /// The same with a mark of its kind of time, unless it has one.
    pub(crate) fn marked(self, time: &str) -> Answer {
        if self.0.contains("virtual time") { self } else { Answer(format!("{} ({time})", self.0)) }
    }

    /// The answer where nothing was measured, with the time, ns, that was to be.
    pub(crate) fn nothing(more_ns: u64) -> Answer {
        Answer::cannot_tell("how late", "nothing was measured", more_ns)
    }

    /// No answer: what is missing, and the time, ns, that may bring it if measured; 0 where none would.
    pub fn cannot_tell(question: &str, missing: &str, more_ns: u64) -> Answer {
        let more = if more_ns > 0 { format!("; measure {} more", duration(more_ns as f64)) } else { String::new() };
        let question = if question.is_empty() { String::new() } else { format!(" {question}") };
        Answer(format!("cannot tell{question}: {missing}{more}"))
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
