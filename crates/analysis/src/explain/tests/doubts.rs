//! Wake-ups without an explanation, doubts, and totals over wake-ups.

use super::*;

#[test]
fn a_wake_up_that_the_trace_does_not_cover_is_not_explained() {
    let mut story = Story::new(OTHER).interrupt(DUE + 1_000).runs(DUE + 200_000);
    assert!(story.try_explain().is_some());
    story.trace.cpus[0].is_cut = true;
    assert!(story.try_explain().is_some(), "the oldest event lies before");
    story.trace.cpus[0].events.retain(|event| event.at_ns > DUE);
    assert!(story.try_explain().is_none());
    let mut armed = Story::new(OTHER).interrupt(DUE + 1_000).runs(DUE + 200_000);
    armed.facts.armed_ns = DUE;
    assert!(armed.try_explain().is_some());
    armed.facts.armed_ns = DUE + 1;
    assert!(armed.try_explain().is_none());
    armed.facts = Facts { frozen_ns: DUE + 202_000, ..Facts::default() };
    assert!(armed.try_explain().is_some());
    armed.facts.frozen_ns = DUE + 201_999;
    assert!(armed.try_explain().is_none(), "it woke when the trace stood still");
}

#[test]
fn a_switch_that_left_no_event_makes_the_verdict_unsure_and_is_said() {
    let mut story = Story::new(OTHER);
    story.current[0] = 201;
    let story = story.interrupt(DUE + 300_000).runs(DUE + 303_000);
    story.expect(Cause::Unknown, None, Evidence::Undetermined, "other");
    assert_eq!(story.explained().doubts, ["1 switch of CPU 0 left no event"]);
}

#[test]
fn lost_events_are_said() {
    let story = Story::new(OTHER).interrupt(DUE + 1_000).runs(DUE + 200_000);
    assert!(story.explained().doubts.is_empty());
    assert!(story.clone().lost(DUE - 1).explained().doubts.is_empty());
    assert_eq!(story.lost(DUE).explained().doubts, ["events of CPU 0 were lost meanwhile"]);
}

#[test]
fn totals_add_up_over_wake_ups() {
    let story = Story::new(0).switch(DUE - 100_000, OTHER, 4, 0).interrupt(DUE + 1_000).runs(DUE + 405_000);
    let explanation = story.explained();
    let mut totals = Totals::default();
    totals.add(&explanation);
    totals.add(&explanation);
    let causes = totals.causes();
    assert_eq!((totals.explained, totals.late_ns), (2, 2 * 407_000));
    assert_eq!(totals.evidence_ns.iter().sum::<u64>(), totals.late_ns);
    assert_eq!(causes.iter().map(|cause| cause.total.ns()).sum::<u64>(), totals.late_ns);
    let first = &causes[0];
    let other = punctual_model::OwnerTotal { name: "other".to_owned(), total: Some(first.total), wakeups: Some(2) };
    assert_eq!(
        (first.cause, first.wakeups, first.blamed, &first.owners[..]),
        (Cause::HigherPriority, 2, 2, &[other][..])
    );
    assert!(causes[1..].iter().all(|cause| cause.blamed == 0));
}
