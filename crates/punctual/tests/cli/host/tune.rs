//! `punctual tune` on a knob whose effect is known: how often it is found.

use crate::program::{machine_and_scratch, punctual};
use crate::real::tune::{answers, small};
use crate::series::{Round, series};

#[test]
#[ignore = "host: effects on latencies"]
fn a_large_slack_is_found_and_a_longer_warm_up_is_not() {
    let (_machine, scratch) = machine_and_scratch("tune-found");
    // A slack of 2 ms cannot be missed; a longer warm-up of a cell does nothing.
    let knobs = "--knob timer_slack=2ms,1ns --knob warm_up=200ms,210ms --period 5ms --format json";
    series("tune slack", || {
        let _ = std::fs::remove_dir_all(scratch.path("t"));
        let said = punctual(&small(&scratch, knobs));
        let json = said.json();
        match answers(&json)[..] {
            [_, (_, _, "better" | "worse")] | [(_, _, "worse"), _] => Round::Wrong(json["knobs"].to_string()),
            [(_, _, "better"), _] => {
                let most = json["knobs"][0]["confirmed"]["ratio"]["interval"][1].as_f64();
                Round::right_if(most.is_some_and(|most| most < 0.5), || json["knobs"][0].to_string())
            }
            _ => Round::Nothing(json["knobs"].to_string()),
        }
    });
}

#[test]
#[ignore = "host: effects on latencies"]
fn every_value_of_a_large_slack_is_found_at_the_first_look_or_the_second() {
    let (_machine, scratch) = machine_and_scratch("tune-all-values");
    let keep = scratch.path("keep");
    let arguments = "--knob timer_slack=4ms,100us,1ns --period 5ms --at-most 1h --format json --keep";
    series("tune values of a slack", || {
        for dir in ["t", "keep"] {
            let _ = std::fs::remove_dir_all(scratch.path(dir));
        }
        let said = punctual(&small(&scratch, &format!("{arguments} {}", keep.display())));
        let json = said.json();
        let answers = answers(&json);
        if answers.iter().any(|(_, _, answer)| *answer == "worse") {
            return Round::Wrong(json["knobs"].to_string());
        }
        let is_found = answers.iter().all(|(_, _, answer)| *answer == "better");
        let is_soon = json["confirmation_blocks"].as_u64() <= Some(16);
        // The best of them.
        let plan = std::fs::read_to_string(keep.join("plan.toml")).unwrap_or_default();
        Round::right_if(is_found && is_soon && plan.contains("timer_slack = \"1ns\""), || json["knobs"].to_string())
    });
}
