//! What about a machine makes wake-ups late: one check for each cause, each a pure function of the machine's facts.

mod clock;
mod debug;
mod frequency;
mod idle;
mod interrupts;
mod isolation;
mod kernel;
mod memory;
mod outcome;
mod permission;
mod platform;
mod scheduling;
mod text;
mod virtualisation;

pub use outcome::{Outcome, Remedy, Severity};

use model::Host;
use serde::Serialize;

/// One thing to look at.
#[derive(Debug, Clone, Copy)]
pub struct Check {
    /// Its name, in kebab-case.
    pub name: &'static str,
    /// Why it matters for latency.
    pub why: &'static str,
    /// Where that is said: a man page, a file of the kernel's documentation or source.
    pub source: &'static str,
    examine: fn(&Host) -> Outcome,
}

/// What a check says of one machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Examined {
    /// The check's name.
    pub name: &'static str,
    /// What was found, and what to do about it.
    #[serde(flatten)]
    pub outcome: Outcome,
    /// Why it matters for latency.
    pub why: &'static str,
    /// Where that is said.
    pub source: &'static str,
}

/// All checks, by topic.
const TOPICS: [&[Check]; 12] = [
    kernel::CHECKS,
    debug::CHECKS,
    clock::CHECKS,
    frequency::CHECKS,
    idle::CHECKS,
    scheduling::CHECKS,
    isolation::CHECKS,
    interrupts::CHECKS,
    memory::CHECKS,
    permission::CHECKS,
    virtualisation::CHECKS,
    platform::CHECKS,
];

/// Every check, in the order of the topics.
pub fn checks() -> impl Iterator<Item = &'static Check> {
    TOPICS.iter().copied().flatten()
}

impl Check {
    /// What it says of `host`.
    #[must_use]
    pub fn examine(&self, host: &Host) -> Examined {
        let mut outcome = (self.examine)(host);
        if let (Some(container), Some(remedy)) = (&host.container, &mut outcome.remedy) {
            // Whatever a check advises, /sys and /proc/sys of a container are as a rule read-only, and boot parameters are
            // not its own.
            remedy.caution.get_or_insert_with(|| format!("to be done outside of the container ({container})"));
        }
        Examined { name: self.name, outcome, why: self.why, source: self.source }
    }
}

/// What all checks say of `host`, worst first, otherwise in the order of the topics.
#[must_use]
pub fn examine(host: &Host) -> Vec<Examined> {
    let mut examined: Vec<_> = checks().map(|check| check.examine(host)).collect();
    examined.sort_by_key(|examined| examined.outcome.severity);
    examined
}

/// One line on what will make `host` late; `None` when nothing will.
#[must_use]
pub fn in_brief(host: &Host) -> Option<String> {
    const SHOWN: usize = 4;
    let will: Vec<_> =
        examine(host).into_iter().filter(|one| one.outcome.severity == Severity::Will).map(|one| one.name).collect();
    let more = if will.len() > SHOWN { ", ..." } else { "" };
    let names = will.iter().take(SHOWN).copied().collect::<Vec<_>>().join(", ");
    let things = crate::wording::things(u64::try_from(will.len()).unwrap_or(u64::MAX), "thing");
    (!will.is_empty()).then(|| format!("doctor: {things} will make it late: {names}{more} (punctual doctor)"))
}

#[cfg(test)]
mod tests;
