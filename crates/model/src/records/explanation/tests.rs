//! Tests of the invariants of explanations, and of the ranges of their options.

use super::*;

fn share(total: u64) -> Share {
    Share {
        phase: Phase::Queue,
        owner: Owner { name: "busy".to_owned(), pid: Some(7) },
        threads: 1,
        cause: Cause::HigherPriority,
        or: None,
        evidence: Evidence::Direct,
        total: Span(total),
        longest: Span(total),
        pieces: 1,
        place: None,
        code: None,
    }
}

#[test]
fn phases_and_shares_have_to_add_up() {
    let mut explanation = Explanation {
        cpu: 1,
        cycle: 3,
        due_ns: 3_000_000,
        latency: Span(10),
        phases: vec![PhaseLength { phase: Phase::Queue, length: Span(10) }],
        shares: vec![share(7), share(3)],
        ..Explanation::default()
    };
    assert!(explanation.is_complete());
    assert_eq!(explanation.time_with(Evidence::Direct), Span(10));
    assert_eq!(explanation.blame().map(|share| share.total), Some(Span(7)));
    explanation.shares.pop();
    assert!(!explanation.is_complete());
}

#[test]
fn what_is_asked_has_limits() {
    let asked = || Explain::default();
    assert_eq!((asked().check(), asked().to_string()), (Ok(()), "above auto keep 20".to_owned()));
    assert!(Explain { keep: 0, ..asked() }.check().is_err());
    assert!(Explain { keep: 1000, ..asked() }.check().is_ok());
    assert!(Explain { keep: 1001, ..asked() }.check().is_err());
    for (witness, is_possible) in [(19_999, false), (20_000, true), (100_000_000, true), (100_000_001, false)] {
        assert_eq!(Explain { witness: Some(Span(witness)), ..asked() }.check().is_ok(), is_possible, "{witness}");
    }
    let all = Explain {
        above: Some(Span(100_000)),
        keep: 3,
        stacks: true,
        witness: Some(Span(100_000)),
        export: Some("/tmp".into()),
        for_host: true,
        captures: Captures::All,
    };
    assert_eq!(all.to_string(), "above 100us keep 3 stacks witness 100us");
}
