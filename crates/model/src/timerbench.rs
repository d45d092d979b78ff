//! Xenomai's own measurement in its kernel: the contexts of the driver `timerbench`.

use crate::word::as_text;
use crate::{Span, UnknownWord};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Context of Cobalt in which its driver `timerbench` measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(try_from = "String", into = "String")]
pub enum CobaltContext {
    /// A task of the kernel that sleeps until each due time.
    Kernel,
    /// The handler of a timer, in the interrupt.
    Handler,
}

impl CobaltContext {
    /// Name of the driver, and of its kernel task.
    pub const DRIVER: &str = "timerbench";

    /// Every context in its typed form.
    pub const KNOWN: &[&str] = &["kernel", "handler"];
    const ALL: [CobaltContext; 2] = [CobaltContext::Kernel, CobaltContext::Handler];

    /// Valid periods. The driver counts in batches of a second; and its handler, which loops while the next due time is
    /// past, never returns when a period is shorter than one turn of it.
    pub const PERIODS: std::ops::RangeInclusive<Span> = Span(20_000)..=Span::SECOND;

    /// The word as typed.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            CobaltContext::Kernel => "kernel",
            CobaltContext::Handler => "handler",
        }
    }
}

impl FromStr for CobaltContext {
    type Err = UnknownWord;

    fn from_str(text: &str) -> Result<Self, UnknownWord> {
        let known = CobaltContext::ALL.into_iter().find(|context| context.name() == text);
        known.ok_or_else(|| UnknownWord::new("context of Cobalt", text, CobaltContext::KNOWN))
    }
}

impl fmt::Display for CobaltContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

as_text!(CobaltContext, UnknownWord);
