//! Answers in words.

use super::knob_answer::{ConfirmedKnob, KnobAnswer};
use super::screening::ScreenedKnob;
use crate::comparison::Metric;
use crate::wording::{duration, number};
use punctual_model::Knob;

/// The sentence of an answer, without its full stop. `beside` are the knobs on whose values the effect depends; the
/// confirmation leaves them as they are.
pub(super) fn sentence<'a>(
    knob: &Knob,
    screened: &ScreenedKnob,
    confirmed: Option<&ConfirmedKnob>,
    answer: KnobAnswer,
    metric: Metric,
    beside: impl Iterator<Item = &'a Knob>,
) -> String {
    let Knob { key, as_is, changed, between: _ } = knob;
    let ratio = confirmed.and_then(|confirmed| confirmed.ratio);
    let (value, (low, high)) = ratio.map_or((screened.ratio, screened.interval), |ratio| (ratio.value, ratio.interval));
    let beside: Vec<String> = beside.map(|knob| format!("{} = {}", knob.key, knob.as_is)).collect();
    let beside = ratio.filter(|_| !beside.is_empty()).map_or(String::new(), |_| format!(" with {}", beside.join(", ")));
    let times = format!("{} times [{}-{}]{beside}", number(value), number(low), number(high));
    match answer {
        KnobAnswer::Better => format!("{key} = {changed}: {metric} {times}. Better than {as_is}"),
        KnobAnswer::Worse => format!("{key} = {changed}: {metric} {times}. Worse than {as_is}"),
        KnobAnswer::MoreMisses => {
            format!("{key} = {changed}: {metric} {times}, but more deadlines are missed; not advised")
        }
        KnobAnswer::NoEffect { beyond } => {
            // Rounded up, but for what the division has added.
            let percent = (beyond * 100.0 - 1e-9).ceil().max(1.0);
            format!("{key} = {changed}: no effect on {metric} larger than {percent:.0} %{beside}")
        }
        KnobAnswer::Undecided { blocks_needed, seconds_needed } => {
            let option = if confirmed.is_some() { "--confirm" } else { "--blocks" };
            let time = seconds_needed.map_or(String::new(), |s| format!(", {}", duration(s as f64 * 1e9)));
            let more = match blocks_needed {
                Some(blocks) => format!("about {blocks} blocks{time} would probably decide ({option} {blocks})"),
                None if confirmed.is_none() => "the screening is too short to exclude an effect (--blocks)".to_owned(),
                None => "measure longer (--duration) or more blocks (--confirm)".to_owned(),
            };
            format!("{key} = {changed}: undecided, {metric} {times}; {more}")
        }
        KnobAnswer::Disturbed => {
            format!("{key} = {changed}: no answer, because another program changed the setting meanwhile")
        }
    }
}
