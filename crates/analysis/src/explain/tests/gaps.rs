//! Gaps of a thread that never waits, between two readings of its counter.

use super::*;
use crate::explain::is_silent;

/// A gap of CPU 0 from 1 ms until `end`, whose thread ran before.
fn gap(end: u64, happens: impl FnOnce(Story) -> Story) -> Story {
    let mut story = Story::new(ME);
    story.subject.waits_for = WaitsFor::Nothing;
    story.subject.priority = 120;
    story.subject.woke_ns = end;
    story.facts.below = Some(Below::default());
    happens(story).then(end + 50_000, What::Enter(TICK)).then(end + 51_000, What::Leave(TICK))
}

/// The shares of its length: cause, owner, ns.
fn shares(story: &Story) -> Vec<(Cause, String, u64)> {
    let explanation = story.explained();
    assert_eq!(explanation.phases.iter().map(|phase| phase.phase).collect::<Vec<_>>(), [Phase::Gap]);
    explanation.shares.iter().map(|share| (share.cause, share.owner.name.clone(), share.total.ns())).collect()
}

fn of(cause: Cause, owner: &str, ns: u64) -> (Cause, String, u64) {
    (cause, owner.to_owned(), ns)
}

const ME_NAME: &str = "measured/0";

#[test]
fn an_interrupt_and_its_softirq_have_their_time_and_the_way_there_is_the_kernels() {
    let story = gap(DUE + 9_000, |story| {
        story
            .then(DUE + 400, What::Enter(TICK))
            .then(DUE + 2_400, What::Leave(TICK))
            .then(DUE + 2_500, What::Enter(Context::Softirq(9)))
            .then(DUE + 8_500, What::Leave(Context::Softirq(9)))
    });
    let expected = [
        of(Cause::Softirq, "softirq RCU", 6_000),
        of(Cause::Interrupt, "interrupt local_timer", 2_000),
        of(Cause::KernelEntry, ME_NAME, 1_000),
    ];
    assert_eq!(shares(&story), expected);
}

#[test]
fn a_thread_that_ran_is_named_and_one_that_did_not_is_not() {
    let story = gap(DUE + 2_000_000, |story| {
        story
            .then(DUE + 300, What::Enter(TICK))
            .then(DUE + 1_300, What::Leave(TICK))
            .switch(DUE + 2_000, OTHER, 50, 0)
            // Woken, but not switched in.
            .then(DUE + 900_000, What::Waking { pid: 300 })
            .switch(DUE + 1_999_000, ME, 120, 1)
    });
    let shares = shares(&story);
    assert_eq!(shares.first(), Some(&of(Cause::HigherPriority, "other", 1_997_000)));
    assert!(shares.iter().all(|(_, owner, _)| owner != "kworker/0:1"), "{shares:?}");
}

#[test]
fn a_stop_is_no_fault_of_what_ran_meanwhile() {
    let story = gap(DUE + 10_000_000, |story| {
        let mut story = story.then(DUE + 300, What::Enter(TICK)).then(DUE + 1_300, What::Leave(TICK)).switch(
            DUE + 2_000,
            OTHER,
            120,
            state::STOPPED,
        );
        story.on(1, DUE + 9_990_000, What::Waking { pid: ME });
        story.switch(DUE + 9_998_000, ME, 120, 1)
    });
    let shares = shares(&story);
    assert_eq!(shares[0], of(Cause::Stopped, ME_NAME, 9_988_000));
    // From the signal to the switch, the other one had the CPU.
    assert_eq!(shares[1], of(Cause::FairScheduling, "other", 8_000));
}

/// A gap of 300 us in which nothing is traced.
fn silent(taker: Taker, below: Below, of_others: &[u64]) -> (Cause, Evidence, bool) {
    let mut story = gap(DUE + 300_000, |mut story| {
        for at in of_others {
            story.on(1, DUE + at, What::Waking { pid: 300 });
        }
        story
    });
    (story.facts.taker, story.facts.below) = (taker, Some(below));
    let (cause, or, evidence, owner) = story.blamed();
    assert_eq!((or, owner.as_str(), story.explained().shares.len()), (None, ME_NAME, 1));
    (cause, evidence, is_silent(&story.explained(), &story.facts))
}

#[test]
fn where_nothing_is_traced_only_counts_give_a_name() {
    let none = Below::default();
    let smis = |smis, silent| Below { smis: Some(smis), silent, ..none };
    let unknown = (Cause::Unknown, Evidence::Undetermined, true);
    let firmware = (Cause::Firmware, Evidence::Inferred, true);
    let hypervisor = (Cause::Hypervisor, Evidence::Inferred, true);
    for (taker, below, of_others, expected) in [
        (Taker::Firmware, none, &[][..], unknown),
        (Taker::Firmware, smis(0, 1), &[], unknown),
        (Taker::Firmware, smis(1, 1), &[], firmware),
        (Taker::Firmware, smis(1, 2), &[], unknown),
        (Taker::Firmware, smis(3, 2), &[], firmware),
        // An SMI stops all CPUs.
        (Taker::Firmware, smis(1, 1), &[150_000], unknown),
        (Taker::Firmware, smis(1, 1), &[0, 299_999], firmware),
        (Taker::Firmware, Below { others: 2, others_stopped: 1, ..smis(1, 1) }, &[], unknown),
        (Taker::Firmware, Below { others: 2, others_stopped: 2, ..smis(1, 1) }, &[], firmware),
        (Taker::Hypervisor, none, &[150_000], hypervisor),
        (Taker::Hypervisor, Below { stolen_ns: Some(10_000_000), ..none }, &[], hypervisor),
        (Taker::Nobody, smis(1, 1), &[], (Cause::Unknown, Evidence::Undetermined, false)),
    ] {
        assert_eq!(silent(taker, below, of_others), expected, "{taker:?} {below:?} {of_others:?}");
    }
}

#[test]
fn a_long_silence_beside_an_interrupt_is_not_the_interrupts() {
    let tick = |story: Story| story.then(DUE + 400, What::Enter(TICK)).then(DUE + 2_400, What::Leave(TICK));
    let edges = |after: u64| shares(&gap(DUE + 2_400 + after, tick));
    assert_eq!(edges(5_000).first(), Some(&of(Cause::KernelEntry, ME_NAME, 5_400)));
    assert_eq!(edges(5_001).first(), Some(&of(Cause::Unknown, ME_NAME, 5_001)));
    assert_eq!(edges(5_001)[2], of(Cause::KernelEntry, ME_NAME, 400));
}

#[test]
fn without_interrupts_in_the_trace_or_with_lost_events_nothing_is_named() {
    let mut story = gap(DUE + 300_000, |story| story).guest();
    story.facts.lacks_interrupts = true;
    assert_eq!(story.blamed().0, Cause::Unknown);
    assert!(gap(DUE + 300_000, |story| story.lost(DUE + 1)).try_explain().is_none());
    assert!(gap(DUE + 300_000, |story| story.lost(DUE - 1)).try_explain().is_some());
}

#[test]
fn a_page_fault_of_the_thread_is_its_own() {
    let story = gap(DUE + 80_000, |story| story.then(DUE + 500, What::PageFault));
    assert_eq!(story.blamed().0, Cause::PageFault);
}
