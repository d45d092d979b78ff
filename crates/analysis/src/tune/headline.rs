//! The answer of all knobs in one sentence.

use super::answer::{Tuned, TunedKnob};
use super::knob_answer::ConfirmedKnob;
use crate::answer::Answer;
use crate::wording::{number, things};
use punctual_model::{Knob, Order};

impl Tuned {
    /// The setting that helps most, with its price and the others that help; or that none does.
    pub fn answer(&self) -> Answer {
        let metric = self.screening.metric;
        let mut advised = self.advised();
        advised.order_by(|a, b| lowest(a).total_cmp(&lowest(b)));
        let open: Vec<&TunedKnob> = self.knobs.iter().filter(|knob| knob.answer.is_open()).collect();
        let named = |knobs: &[&TunedKnob]| {
            let names: Vec<String> =
                knobs.iter().map(|one| format!("{} = {}", one.knob.key, one.knob.changed)).collect();
            names.join(", ")
        };
        match (advised.split_first(), open.first()) {
            (Some((best, others)), _) => {
                let Knob { key, as_is, changed, .. } = &best.knob;
                let ratio = best.confirmed.as_ref().and_then(|confirmed| confirmed.ratio);
                let times = ratio.map_or_else(String::new, |ratio| format!(" to {ratio} times that with {as_is}"));
                let also = if others.is_empty() { String::new() } else { format!("; also {}", named(others)) };
                let open = if open.is_empty() { String::new() } else { format!("; undecided: {}", named(&open)) };
                let price = best.confirmed.as_ref().map_or_else(String::new, price);
                Answer::new(format!("{key} = {changed} lowers {metric}{times}{price}{also}{open}"))
            }
            (None, Some(first)) => Answer::new(format!("cannot tell whether a setting helps: {}", first.sentence)),
            (None, None) => {
                let n = things(u64::try_from(self.knobs.len()).unwrap_or(u64::MAX), "setting");
                Answer::new(format!(
                    "no setting found that lowers {metric}: none of {n} tried is better than it is now"
                ))
            }
        }
    }
}

/// The confirmed ratio of a knob; infinite without one.
fn lowest(knob: &TunedKnob) -> f64 {
    let ratio = knob.confirmed.as_ref().and_then(|confirmed| confirmed.ratio);
    ratio.map_or(f64::INFINITY, |ratio| ratio.value)
}

/// What a confirmed change costs, as far as it is known: `; price: 0.98 times the work of the load`.
fn price(confirmed: &ConfirmedKnob) -> String {
    let parts = [
        (confirmed.work(), "work of the load"),
        (confirmed.power_mw.ratio(), "power"),
        (confirmed.wake_ups.ratio(), "wake-ups"),
    ];
    let parts = parts.into_iter().filter_map(|(ratio, of)| Some(format!("{} times the {of}", number(ratio?))));
    let parts: Vec<String> = parts.collect();
    if parts.is_empty() { String::new() } else { format!("; price: {}", parts.join(", ")) }
}
