//! Properties of explanations of arbitrary events.

use super::*;
use proptest::prelude::*;

fn context() -> impl Strategy<Value = Context> {
    prop_oneof![Just(TICK), Just(Context::Interrupt(36)), (0_u8..10).prop_map(Context::Softirq)]
}

fn pid() -> impl Strategy<Value = i32> {
    prop_oneof![Just(0), Just(ME), Just(OTHER), Just(201)]
}

fn what() -> impl Strategy<Value = What> {
    let time = -10_i64..3_000_000;
    prop_oneof![
        3 => (pid(), pid(), -1_i32..140, prop_oneof![Just(0_u32), Just(1), Just(2), Just(4)]).prop_map(
            |(prev, next, next_priority, prev_state)| What::Switch { prev, prev_priority: 120, prev_state, next, next_priority }
        ),
        1 => pid().prop_map(|pid| What::Waking { pid }),
        1 => (time.clone(), time).prop_map(|(expires_ns, soft_ns)| What::TimerStart { timer: TIMER, expires_ns, soft_ns }),
        1 => (0_u64..3).prop_map(|n| What::TimerExpire { timer: TIMER + n, function: Some(CLEAR_PAGE).filter(|_| n > 0) }),
        1 => Just(What::WheelExpire { function: CLEAR_PAGE }),
        1 => (pid(), -1_i32..140).prop_map(|(pid, priority)| What::Inherit { pid, priority }),
        2 => context().prop_map(What::Enter),
        2 => context().prop_map(What::Leave),
        1 => (0_u64..2_000_000).prop_map(|length_ns| What::Nmi { length_ns }),
        1 => prop::option::of(0_u32..4).prop_map(|state| What::Idle { state }),
        1 => Just(What::PageFault),
        1 => (0_u32..3).prop_map(What::Stack),
    ]
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    prop::collection::vec((0_u64..40_000, pid(), any::<u8>(), what()), 0..120).prop_map(|steps| {
        let mut at_ns = 0;
        let event = |(step, pid, flags, what)| {
            at_ns += step;
            Event { at_ns, pid, flags, what }
        };
        steps.into_iter().map(event).collect()
    })
}

proptest! {
    /// For any events, phases and shares add up to the latency.
    #[test]
    fn phases_and_shares_are_the_latency_to_the_nanosecond(
        first in events(), second in events(), due in 0_u64..2_000_000, latency in 0_u64..3_000_000,
        taker in prop_oneof![Just(Taker::Firmware), Just(Taker::Hypervisor), Just(Taker::Nobody)], priority in -1_i32..140, cpu in 0_u32..2,
        waits_for in prop_oneof![Just(WaitsFor::Timer), Just(WaitsFor::Device), Just(WaitsFor::Answer), Just(WaitsFor::Nothing)],
    ) {
        let trace = Trace {
            cpus: [first, second].map(|events| CpuEvents { events, ..CpuEvents::default() }).to_vec(),
            vectors: vec!["local_timer".to_owned()],
            names: [(OTHER, "irq/36-eth0".to_owned())].into(),
            stacks: vec![vec![ENTRY, UNLOCK], vec![ENTRY], vec![]],
            ..Trace::default()
        };
        let subject = Subject { pid: ME, waits_for, cpu, priority, due_ns: due, woke_ns: due + latency, slack_ns: 0 };
        let facts = Facts { taker, frozen_ns: u64::MAX, ..Facts::default() };
        if let Some(explanation) = explain(&trace, &subject, &facts, &symbols) {
            prop_assert!(explanation.is_complete(), "{explanation:#?}");
            prop_assert_eq!(explanation.latency.ns(), latency);
            let with_evidence: u64 = Evidence::ALL.iter().map(|kind| explanation.time_with(*kind).ns()).sum();
            prop_assert_eq!(with_evidence, latency);
            let is_steal = |share: &punctual_model::Share| [Some(share.cause), share.or].contains(&Some(Cause::CpuStalled));
            prop_assert!(taker != Taker::Nobody || !explanation.shares.iter().any(is_steal), "{explanation:#?}");
            prop_assert!(!blame(&explanation).is_empty());
        }
        let mut answers = Answers::new([Answered { pid: ME, measured_ns: 0..u64::MAX }].into_iter());
        answers.take(&trace);
        prop_assert!(answers.histograms().all(|[handler, queue]| handler.n == queue.n && handler.min_ns >= Some(0).filter(|_| handler.n > 0)));
    }
}
