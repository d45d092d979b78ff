//! Settings of all watched threads.

use model::{Period, Span, WatchSample};

/// Settings of all watched threads.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// The period, if given.
    pub period: Option<Period>,
    /// The deadline, if given.
    pub deadline: Option<Span>,
    /// Name of the call that they wait in, if given.
    pub wait: Option<String>,
    /// The time that is the sample.
    pub sample: WatchSample,
    /// Start of the measured time, `CLOCK_MONOTONIC`, ns: releases before it do not count.
    pub since_ns: u64,
    /// Its end, ns: releases from then on do not count.
    pub until_ns: u64,
}
