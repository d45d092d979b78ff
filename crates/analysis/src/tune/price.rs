//! The price of a setting besides the work of the load: electrical power and wake-ups.

use punctual_model::{Entry, MachineSecond};
use serde::Serialize;

/// A number of the machine as it is, and with the change.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, schemars::JsonSchema)]
pub struct Number {
    /// As it is; `null`: unknown.
    pub as_is: Option<f64>,
    /// With the change; `null`: unknown.
    pub changed: Option<f64>,
}

impl Number {
    /// The second divided by the first; `None` if one is unknown or the first is 0.
    pub fn ratio(&self) -> Option<f64> {
        let (as_is, changed) = (self.as_is?, self.changed?);
        (as_is > 0.0).then(|| changed / as_is)
    }
}

/// Mean electrical power, mW.
pub(super) fn power_mw(as_is: &[&Entry], changed: &[&Entry]) -> Number {
    // A reading of power, held over the time since the reading before.
    let of = |entries: &[&Entry]| mean(entries, |row| Some(row.power_mw? as f64 * row.elapsed.ns() as f64 / 1e9));
    Number { as_is: of(as_is), changed: of(changed) }
}

/// Interrupts and context switches a second.
pub(super) fn wake_ups(as_is: &[&Entry], changed: &[&Entry]) -> Number {
    let of =
        |entries: &[&Entry]| mean(entries, |row| Some(row.interrupts?.saturating_add(row.context_switches?) as f64));
    Number { as_is: of(as_is), changed: of(changed) }
}

/// The sum of an amount over all rows that have it, divided by their time, s.
fn mean(entries: &[&Entry], amount: impl Fn(&MachineSecond) -> Option<f64>) -> Option<f64> {
    let (mut sum, mut ns) = (0.0, 0.0);
    for row in entries.iter().flat_map(|entry| &entry.record.machine) {
        let Some(amount) = amount(row) else { continue };
        sum += amount;
        ns += row.elapsed.ns() as f64;
    }
    (ns > 0.0).then(|| sum / ns * 1e9)
}
