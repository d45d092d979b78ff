//! Settings of threads that others may change while they are measured or watched.

use punctual_model::{CpuSet, Policy, SettingChange, Span};

/// The policy and the CPUs of a thread at the last look, and how they changed. What is `None` is not known, or not
/// looked at.
#[derive(Debug, Clone, Default)]
pub(super) struct Observed {
    pub(super) policy: Option<Policy>,
    pub(super) cpus: Option<CpuSet>,
    pub(super) changes: Vec<SettingChange>,
}

impl Observed {
    /// Notes the settings at this time after the start.
    pub(super) fn look(&mut self, policy: Option<Policy>, cpus: Option<CpuSet>, at: Span) {
        self.note(self.policy, policy, "", at);
        self.note(self.cpus.clone(), cpus.clone(), "CPUs ", at);
        (self.policy, self.cpus) = (policy.or(self.policy), cpus.or(self.cpus.take()));
    }

    fn note<T: PartialEq + ToString>(&mut self, before: Option<T>, now: Option<T>, what: &str, at: Span) {
        let (Some(before), Some(now)) = (before, now) else { return };
        if before != now && self.changes.len() < SettingChange::MOST {
            let [from, to] = [before, now].map(|value| format!("{what}{}", value.to_string()));
            self.changes.push(SettingChange { at, from, to });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_noted_once_and_what_is_not_known_is_none() {
        let (fifo, other): (Policy, Policy) = ("fifo:80".parse().unwrap(), "other".parse().unwrap());
        let cpus = |text: &str| -> CpuSet { text.parse().unwrap() };
        let mut seen = Observed { policy: Some(fifo), cpus: None, changes: Vec::new() };
        seen.look(Some(fifo), Some(cpus("1")), Span(1));
        seen.look(None, None, Span(2));
        assert_eq!(seen.changes, []);
        seen.look(Some(other), Some(cpus("0-1")), Span(3));
        seen.look(Some(other), Some(cpus("0-1")), Span(4));
        let change = |from: &str, to: &str| SettingChange { at: Span(3), from: from.to_owned(), to: to.to_owned() };
        assert_eq!(seen.changes, [change("fifo:80", "other"), change("CPUs 1", "CPUs 0-1")]);
    }
}
