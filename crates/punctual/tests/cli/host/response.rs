//! Responses over links: how many come, and how many late ones are divided.

use crate::life::roles::{can_flood, plan, records, three};
use crate::program::{PROGRAM, Scratch, due_times, is_installed, machine, run, skip_unless};
use crate::real::explain::instances;
use crate::real::response::{ANSWERS, LOGGER, Network, answered_under_flood, explained_answers, over_a_serial_line};
use crate::series::{Round, series};
use punctual_model::{Explanation, Phase};

#[test]
#[ignore = "host: how many answers come"]
fn root_a_flooded_target_answers_most_triggers() {
    skip_unless!(can_flood());
    let Some(network) = Network::new("flooded") else { return };
    let _machine = machine();
    series("answers of a flooded target", || {
        let (samples, parts) = answered_under_flood(&network);
        let are_enough = samples > 1500 && parts.len() == 3 && parts.iter().all(|n| *n > 500);
        Round::right_if(are_enough, || format!("{samples} of 3000, parts {parts:?}"))
    });
}

#[test]
#[ignore = "host: how many answers come"]
fn root_the_loads_of_target_and_host_work_and_most_triggers_are_answered() {
    skip_unless!(can_flood());
    let Some(network) = Network::new("roles") else { return };
    let _machine = machine();
    let axes = format!("load = [\"pipe+ping:10.213.7.2\"]\npolicy = [\"fifo:80\"]\nmethod = [\"response:{ANSWERS}\"]");
    series("answers between machines", || {
        let scratch = Scratch::new("roles-series");
        let (plan, out) = (plan(&scratch, &three(&network), &axes, "1500ms"), scratch.path("run"));
        let asked = format!("run {} --yes --wait --out {}", plan.display(), out.display());
        run(&mut network.on(LOGGER, PROGRAM, &asked)).expect_success();
        let record = records(&out).remove(0);
        let target = record.response.as_ref().and_then(|response| response.target.as_ref()).unwrap();
        let (recorded, answered) = (record.threads[0].recorded, target.answered);
        let do_work = record.loads.iter().all(|load| !load.did_nothing());
        Round::right_if(recorded > 500 && answered > 1000 && do_work, || {
            format!("{recorded} recorded, {answered} answered, {:?}", record.loads)
        })
    });
}

#[test]
#[ignore = "host: how many answers come"]
fn bytes_of_a_serial_line_are_answered_in_time() {
    skip_unless!(is_installed("python3", "python3-minimal"));
    let _machine = machine();
    series("answers over a serial line", || {
        let (seen, record) = over_a_serial_line();
        let samples = seen["samples"].as_u64().unwrap();
        Round::right_if(samples > 50 && record.triggers >= 110, || format!("{samples}, {record:?}"))
    });
}

#[test]
#[ignore = "host: causes on the real machine"]
fn root_the_way_of_late_answers_is_told_from_this_machine() {
    skip_unless!(instances().is_some());
    let _machine = machine();
    series("late answers divided", || {
        let (seen, explained, _) = explained_answers();
        // Most triggers are sent and answered by a softirq of the responder on this machine, before the logger, which
        // precedes it on their CPU, sleeps.
        let has = |one: &&Explanation, phase| one.phases.iter().any(|length| length.phase == phase);
        let whole = explained.worst.iter().filter(|one| has(one, Phase::Sending) && has(one, Phase::Away)).count();
        let n = due_times(&seen);
        // A snapshot of the trace sees no events. Late answers have stages as well.
        let staged = explained.answers.first().map_or(0, |stages| stages.interrupt_to_wakeup.n);
        let is_right = explained.explained >= 20 && whole * 10 >= explained.worst.len() * 8 && staged * 2 > n;
        Round::right_if(is_right, || {
            format!(
                "{} explained, {whole} of {} whole, {staged} of {n} staged",
                explained.explained,
                explained.worst.len()
            )
        })
    });
}
