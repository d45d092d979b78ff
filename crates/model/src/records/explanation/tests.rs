//! Tests of the words and invariants of explanations, and of the ranges of their options.

use super::*;
use crate::Level;
use serde::de::DeserializeOwned;
use std::fmt::{Debug, Display};

const GLOSSARY: &str = include_str!("../../../../../GLOSSARY.md");
const DOCS: [&str; 3] = [
    include_str!("../../../../../docs/explain.md"),
    include_str!("../../../../../docs/watch.md"),
    include_str!("../../../../../docs/lab.md"),
];

/// The words in the first column of all tables of the documents with this head.
fn documented(head: &str) -> Vec<&'static str> {
    let first = |line: &'static str| line.strip_prefix("| ").and_then(|rest| rest.split(" | ").next());
    let mut words = Vec::new();
    for text in DOCS {
        let mut is_inside = false;
        for line in text.lines() {
            match first(line) {
                Some(cell) if is_inside && cell != "---" => words.extend(cell.split(", ")),
                cell => is_inside = cell.is_some_and(|cell| is_inside || cell == head),
            }
        }
    }
    words
}

/// Asserts that text and JSON have the same word, the latter in snake case, and that a word of an older version is read
/// as that of today.
#[track_caller]
fn assert_one_word<T: Copy + Debug + Display + PartialEq + Serialize + DeserializeOwned>(all: &[T], old: &str) {
    for word in all {
        let snake = word.to_string().to_lowercase().replace(['-', ' '], "_").replace('.', "");
        assert_eq!(serde_json::to_value(word).unwrap(), snake);
    }
    for (was, is) in old.split_whitespace().filter_map(|pair| pair.split_once('=')) {
        let read = |word: &str| serde_json::from_value::<T>(word.into()).unwrap();
        assert_eq!(read(was), read(is));
    }
}

#[test]
fn text_json_glossary_and_documents_have_one_word_for_one_thing() {
    let glossary = GLOSSARY.split_whitespace().collect::<Vec<_>>().join(" ");
    let in_glossary = |word: &str| [": ", ", ", "`"].iter().any(|before| glossary.contains(&format!("{before}{word}")));
    let phases = "not_asleep=not_yet_waiting slack=timer_slack expiry=expiry_to_interrupt handler=interrupt_to_wakeup \
                  queue=wakeup_to_switch return=switch_to_user undivided=whole_wake_up";
    assert_one_word(&Phase::ALL, phases);
    let causes = "steal=cpu_stalled irqs_off=interrupts_off non_preemptible=not_preemptible away=link_and_target \
                  vcpu_waiting=vcpu_off_the_cpu emulator_waiting=emulator_off_the_cpu guest=inside_the_guest \
                  long_run=ran_longer storage=disk memory=memory_allocation ordinary=usual_wake_up";
    assert_one_word(&Cause::ALL, causes);
    assert_one_word(&Evidence::ALL, "two_readings=ambiguous cannot_tell=undetermined");
    assert_one_word(&Level::ALL, "");

    let owner: Owner = serde_json::from_str(r#"{"name":"the wake-up itself","pid":null}"#).unwrap();
    assert_eq!(owner.name, Cause::UsualWakeUp.name());

    for (head, known) in [("phase", Phase::KNOWN), ("cause", Cause::KNOWN)] {
        let documented = documented(head);
        for word in known {
            assert!(documented.contains(word), "{head} {word}: expected in a table of the documents");
        }
        for word in documented {
            assert!(known.contains(&word), "unknown {head} {word} in the documents");
        }
    }
    for word in [Phase::KNOWN, Evidence::KNOWN, Level::KNOWN].concat() {
        assert!(in_glossary(word), "{word}: expected in GLOSSARY.md");
    }
    let mut named: Vec<_> = glossary.split("**").skip(1).step_by(2).flat_map(|names| names.split(", ")).collect();
    named.sort_unstable();
    assert!(named.windows(2).all(|pair| pair[0] != pair[1]), "a word twice in GLOSSARY.md: {named:?}");
    for word in Evidence::KNOWN {
        assert!(DOCS[0].contains(&format!("**{word}**")), "{word}: expected in docs/explain.md");
    }
    assert!(Level::ALL.iter().all(|level| level.name().replace('.', "") == level.key()));
}

fn share(total: u64) -> Share {
    Share {
        phase: Phase::WakeupToSwitch,
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
        phases: vec![PhaseLength { phase: Phase::WakeupToSwitch, length: Span(10) }],
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
