//! The activation of a thread that its next ones are behind.

use super::activation::Activation;
use std::sync::Arc;

/// The longest activation so far that was not over at the release of the next one.
#[derive(Debug, Default)]
pub(super) struct Behind {
    longest: Option<Arc<Activation>>,
    last_release_ns: u64,
    /// Shortest time between two releases, ns: shorter activations delay no other.
    least_interval_ns: Option<u64>,
}

impl Behind {
    /// The longest activation that was not over at the release of `one`. That one is kept for those after it.
    pub(super) fn take(&mut self, one: &Activation) -> Option<Arc<Activation>> {
        let interval_ns = one.release_ns.saturating_sub(self.last_release_ns);
        self.last_release_ns = one.release_ns;
        if interval_ns > 0 && interval_ns < one.release_ns {
            self.least_interval_ns = self.least_interval_ns.into_iter().chain([interval_ns]).min();
        }
        self.longest.take_if(|longest| longest.end_ns <= one.release_ns);
        let behind = self.longest.clone();
        let own_ns = |one: &Activation| one.end_ns.saturating_sub(one.start_ns);
        let may_matter = self.least_interval_ns.is_none_or(|least_ns| own_ns(one) > least_ns);
        if may_matter && behind.as_ref().is_none_or(|behind| own_ns(behind) < own_ns(one)) {
            self.longest = Some(Arc::new(one.clone()));
        }
        behind
    }
}
