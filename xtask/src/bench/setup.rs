//! What all benchmarks need.

use punctual_model::CpuSet;
use std::path::PathBuf;

/// What all benchmarks need.
pub(super) struct Setup {
    pub(super) root: PathBuf,
    /// The program in cargo's release directory.
    pub(super) program: PathBuf,
    pub(super) cpus: CpuSet,
    /// The measured CPU, the last.
    pub(super) cpu: u32,
    pub(super) pairs: u64,
    pub(super) cycles: u64,
}
