//! Headings of the options that few need.

pub(super) const EXTENT: &str = "Amount of measuring";
pub(super) const BASELINE: &str = "Comparison with the baseline";
pub(super) const LOAD: &str = "Load";
pub(super) const TIMING: &str = "Timing";
pub(super) const SPIKES: &str = "Spikes";
pub(super) const MACHINE: &str = "Machine";
pub(super) const OUTPUT: &str = "Output";
