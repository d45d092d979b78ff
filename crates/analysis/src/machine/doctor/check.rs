//! A check: what it looks for, and why.

use super::outcome::Outcome;
use punctual_model::Host;

/// One check.
#[derive(Debug, Clone, Copy)]
pub struct Check {
    /// Name in kebab-case.
    pub name: &'static str,
    /// Effect on latency.
    pub why: &'static str,
    /// Source of that statement: a man page, or a file of the kernel's documentation or source.
    pub source: &'static str,
    pub(super) examine: fn(&Host) -> Outcome,
}
