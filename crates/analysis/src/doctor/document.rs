//! One JSON document for what the checks say: what `punctual doctor --format json` prints.

use super::{Examined, Severity};
use crate::facts::Fingerprint;
use model::Host;
use serde::Serialize;

/// The version of the document.
const FORMAT: u32 = 1;

/// The checks of a machine that were asked for.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DoctorDocument<'a> {
    format: u32,
    tool: &'a str,
    fingerprint: Fingerprint,
    totals: Totals,
    checks: &'a [Examined],
    host: &'a Host,
}

/// How many checks said so.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Totals {
    will: usize,
    may: usize,
    unknown: usize,
    ok: usize,
    does_not_apply: usize,
}

/// What `checks` say of `host`, by the program of this name and version.
#[must_use]
pub fn document<'a>(tool: &'a str, host: &'a Host, checks: &'a [Examined]) -> DoctorDocument<'a> {
    let count = |severity| checks.iter().filter(|check| check.outcome.severity == severity).count();
    let totals = Totals {
        will: count(Severity::Will),
        may: count(Severity::May),
        unknown: count(Severity::Unknown),
        ok: count(Severity::Ok),
        does_not_apply: count(Severity::DoesNotApply),
    };
    DoctorDocument { format: FORMAT, tool, fingerprint: Fingerprint::of(host), totals, checks, host }
}
