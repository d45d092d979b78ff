//! Watched threads without activations.

use super::reader::{Reader, Times};
use punctual_analysis::watch::ThreadResult;
use punctual_model::{Order, OtherThread, Span, ThreadState, Watch};
use std::cmp::Reverse;
use std::collections::HashMap;

/// The threads without activations that ran or did not sleep at the end, those that ran longest first.
pub(super) fn others(
    reader: &Reader,
    names: &HashMap<i32, String>,
    watch: &Watch,
    with_activations: &[ThreadResult],
    empty_polls: &HashMap<i32, u64>,
) -> Vec<OtherThread> {
    let one = |(tid, [first, latest]): (&u32, &[Times; 2])| {
        let name = names.get(&tid.cast_signed()).filter(|name| watch.is_meant(name))?.clone();
        // One that is not watched any more may live on.
        let left = || punctual_host::state_of_thread(*tid).map_or(ThreadState::Ended, |_| ThreadState::Asleep);
        let state = reader.states.get(tid).copied().unwrap_or_else(left);
        let between = |of: fn(&Times) -> u64| Span(of(latest).saturating_sub(of(first)));
        let (ran, counted) = (between(|times| times.ran_ns), between(|times| times.at_ns));
        // A wait is counted at its end, and may have begun before the first look.
        let waited = between(|times| times.waited_ns).min(Span(counted.ns().saturating_sub(ran.ns())));
        let policy = punctual_sys::sched::known_policy(*tid);
        let is_known = with_activations.iter().any(|one| one.thread.tid == *tid);
        let is_listed = !is_known && (ran > Span(0) || state.is_awake());
        let empty_polls = empty_polls.get(&tid.cast_signed()).copied();
        is_listed.then_some(OtherThread { tid: *tid, name, policy, state, ran, waited, counted, empty_polls })
    };
    let mut all: Vec<OtherThread> = reader.times.iter().filter_map(one).collect();
    all.order_by_key(|one| Reverse(one.ran));
    all
}

/// Why no thread has activations.
pub(super) fn nothing(watch: &Watch, inactive: u64, duration: Span) -> String {
    match (inactive, &watch.thread) {
        (0, Some(name)) => format!("nothing to report: no thread named `{name}` ran in {duration}; see --thread"),
        (0, None) => format!("nothing to report: no watched thread ran in {duration}; measure longer"),
        (1.., _) => {
            let threads =
                if inactive == 1 { "1 watched thread".to_owned() } else { format!("{inactive} watched threads") };
            format!(
                "nothing to report: {threads} waited fewer than twice in one call in {duration}; measure longer, or name \
                 the call (--wait-in)"
            )
        }
    }
}
