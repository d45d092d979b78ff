//! Verdicts on counts of cases: the boundaries of kept, broken and cannot tell.

use super::*;
use punctual_model::{Claim, ControlCases};

fn cases(claim: Claim, n: u64, broken: u64) -> ClaimCases {
    ClaimCases { cases: n, broken, ..ClaimCases::new(claim) }
}

#[test]
fn every_claim_has_its_own_row() {
    for promise in Promise::ALL {
        for claim in promise.claims() {
            let about = claims::about(*claim);
            assert!(!about.document.is_empty() && !about.asked.is_empty() && !about.broken.is_empty(), "{claim}");
        }
    }
    let all: Vec<_> = Promise::ALL.iter().flat_map(|promise| promise.claims()).collect();
    assert_eq!(all, Claim::ALL.iter().collect::<Vec<_>>());
}

#[test]
fn a_promise_is_broken_only_beyond_disturbance_and_kept_only_with_enough_cases() {
    use PromiseVerdict::{Broken, CannotTell, Kept};
    let powerful = Some(ControlCases { cases: 10, shown: 10 });
    for (claim, n, broken, control, verdict) in [
        (Claim::OneHolder, 50, 0, powerful, Kept),
        (Claim::OneHolder, 43, 0, powerful, CannotTell),
        (Claim::OneHolder, 50, 1, powerful, CannotTell),
        (Claim::OneHolder, 50, 6, powerful, CannotTell),
        (Claim::OneHolder, 50, 8, powerful, Broken),
        (Claim::OneHolder, 50, 50, powerful, Broken),
        // A plain mutex that the hog did not delay.
        (Claim::OneHolder, 50, 0, Some(ControlCases { cases: 10, shown: 9 }), CannotTell),
        (Claim::OneHolder, 50, 50, Some(ControlCases { cases: 10, shown: 9 }), CannotTell),
        (Claim::OneHolder, 50, 0, Some(ControlCases::default()), CannotTell),
        (Claim::Semaphore, 50, 49, None, Broken),
        (Claim::NeverEarly, 600, 0, None, Kept),
        (Claim::NeverEarly, 600, 1, None, Broken),
        (Claim::Push, 40, 1, None, Kept),
        (Claim::Push, 40, 12, None, CannotTell),
        (Claim::Push, 40, 40, None, Broken),
        (Claim::Push, 6, 0, None, CannotTell),
        (Claim::Turn, 3, 0, None, Kept),
        (Claim::Turn, 2, 0, None, CannotTell),
        (Claim::Turn, 6, 4, None, Broken),
        (Claim::Starvation, 2, 0, None, Kept),
        (Claim::Starvation, 2, 1, None, CannotTell),
        (Claim::Starvation, 2, 2, None, Broken),
        (Claim::Stay, 0, 0, None, CannotTell),
    ] {
        let judged = JudgedClaim::new(ClaimCases { control, ..cases(claim, n, broken) });
        assert_eq!(judged.verdict, verdict, "{claim}: {broken} of {n}: {judged:?}");
        assert_eq!(judged.why.is_some(), verdict == CannotTell);
        assert_eq!(judged.chance_wrong.is_none(), verdict == CannotTell);
        assert!(judged.chance_wrong.unwrap_or(0.0) <= if verdict == Broken { BROKEN } else { KEPT });
    }
}

#[test]
fn the_answer_counts_promises_and_names_what_decides() {
    let of = |promise: Promise, broken: &[Claim], unknown: Option<&str>| {
        let all = promise.claims().iter().map(|claim| ClaimCases {
            control: (*claim == Claim::SameCpu).then_some(ControlCases { cases: 9, shown: 9 }),
            unknown: unknown.map(str::to_owned),
            ..cases(*claim, 60, if broken.contains(claim) { 60 } else { 0 })
        });
        JudgedPromise::new(promise, all.collect(), 1.0)
    };
    let (order, preemption, robust) = (Promise::WakeOrder, Promise::Preemption, Promise::RobustMutex);
    for (promises, text, status) in [
        (vec![of(robust, &[], None)], "the promise is kept: robust-mutex", 0),
        (vec![of(order, &[], None), of(robust, &[], None)], "all 2 promises are kept", 0),
        (
            vec![of(order, &[Claim::Signal], None), of(preemption, &[], Some("needs two CPUs")), of(robust, &[], None)],
            "1 of 3 promises are kept; 1 is broken: wake-order, signal; 1 cannot be told: preemption (needs two CPUs)",
            2,
        ),
        (
            vec![of(order, &[], Some("needs root")), of(preemption, &[], Some("needs root"))],
            "0 of 2 promises are kept; 2 cannot be told: wake-order, preemption (needs root)",
            3,
        ),
    ] {
        assert_eq!(answer(&promises).to_string(), text);
        assert_eq!(exit_status(&promises), status, "{text}");
    }
}

#[test]
fn numbers_stand_beside_what_was_asked() {
    let turns = ClaimCases {
        asked_ns: Some(100_000_000),
        seen_ns: Some([99_000_000, 101_000_000]),
        ..cases(Claim::Turn, 6, 0)
    };
    assert_eq!(
        JudgedClaim::new(turns).seen.as_deref(),
        Some("shorter than half or longer than twice: 0 of 6; turns 99 ms to 101 ms (quantum 100 ms)")
    );
    assert_eq!(JudgedClaim::new(ClaimCases::unknown(Claim::Turn, "x")).seen, None);
}
