//! Checks for properties of a machine that make wake-ups late. Each is a pure function of the machine's facts.

mod check;
mod clock;
mod cokernel;
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

pub use check::Check;
pub use outcome::{Outcome, Remedy, Severity};

use punctual_model::{Host, Order};
use serde::Serialize;

/// Result of a check on one machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Examined {
    /// Name of the check.
    pub name: &'static str,
    /// Finding and remedy.
    #[serde(flatten)]
    pub outcome: Outcome,
    /// Effect on latency.
    pub why: &'static str,
    /// Source of that statement.
    pub source: &'static str,
}

/// All checks, by topic.
const TOPICS: [&[Check]; 13] = [
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
    cokernel::CHECKS,
];

/// All checks, in the order of the topics.
pub fn checks() -> impl Iterator<Item = &'static Check> {
    TOPICS.iter().copied().flatten()
}

impl Check {
    /// Runs the check on `host`.
    pub fn examine(&self, host: &Host) -> Examined {
        let mut outcome = (self.examine)(host);
        if let (Some(container), Some(remedy)) = (&host.container, &mut outcome.remedy) {
            // In a container, /sys and /proc/sys are usually read-only, and boot parameters belong to the machine.
            remedy.caution.get_or_insert_with(|| format!("to be done outside of the container ({container})"));
        }
        if let Some(remedy) = outcome.remedy.as_mut().filter(|_| virtualisation::is_booted_by_host(host)) {
            // An image that is installed or named in the guest would not be booted.
            let begins = ["kernel parameter ", "boot "].iter().any(|begin| remedy.change.starts_with(begin));
            if begins || remedy.change.ends_with("then boot it") {
                for text in [&mut remedy.change, &mut remedy.undo] {
                    *text = format!("on the host: {text}");
                }
            }
        }
        Examined { name: self.name, outcome, why: self.why, source: self.source }
    }
}

/// Results of all checks on `host`, worst first, otherwise in the order of the topics.
pub fn examine(host: &Host) -> Vec<Examined> {
    let mut examined: Vec<_> = checks().map(|check| check.examine(host)).collect();
    examined.order_by_key(|examined| examined.outcome.severity);
    examined
}

/// The check of one network device; `None` if it is none of hardware.
pub(crate) fn of_network_device(host: &Host, name: &str) -> Option<Outcome> {
    let device = host.network.iter().find(|device| device.name == name)?;
    Some(interrupts::of_devices(host, std::slice::from_ref(device)))
}

/// One line that names the checks with [`Severity::Will`]; `None` if there are none.
pub fn in_brief(host: &Host) -> Option<String> {
    const SHOWN: usize = 4;
    let will: Vec<_> =
        examine(host).into_iter().filter(|one| one.outcome.severity == Severity::Will).map(|one| one.name).collect();
    let more = if will.len() > SHOWN { ", ..." } else { "" };
    let names = will.iter().take(SHOWN).copied().collect::<Vec<_>>().join(", ");
    let causes = crate::wording::things(u64::try_from(will.len()).unwrap_or(u64::MAX), "cause");
    (!will.is_empty()).then(|| format!("doctor: {causes} of latency: {names}{more} (punctual doctor)"))
}

#[cfg(test)]
mod tests;
