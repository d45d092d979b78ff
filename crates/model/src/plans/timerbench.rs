//! Xenomai's own measurement in its kernel: the contexts of the driver `timerbench`.

use crate::words::word::{as_text, words};
use crate::{Span, UnknownWord};
use serde::{Deserialize, Serialize};

words! {
    /// Context of Cobalt in which its driver `timerbench` measures.
    #[derive(Serialize, Deserialize, schemars::JsonSchema)]
    #[serde(try_from = "String", into = "String")]
    CobaltContext, "context of Cobalt" {
        /// A task of the kernel that sleeps until each due time.
        Kernel = "kernel",
        /// The handler of a timer, in the interrupt.
        Handler = "handler",
    }
}

impl CobaltContext {
    /// Name of the driver, and of its kernel task.
    pub const DRIVER: &str = "timerbench";

    /// Valid periods. The driver counts in batches of a second; and its handler, which loops while the next due time is
    /// past, never returns when a period is shorter than one turn of it.
    pub const PERIODS: std::ops::RangeInclusive<Span> = Span(20_000)..=Span::SECOND;
}

as_text!(CobaltContext, UnknownWord);
