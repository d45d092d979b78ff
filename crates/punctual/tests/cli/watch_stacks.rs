//! Places in the code: the function and the line of a planted fault are named, and plainly none without symbols.

use crate::program::{Scratch, machine_and_scratch, run, skip_unless};
use crate::watch_faults::{compiled, explained, is_of_fault, may_watch, watched, words};
use model::{CodePlace, ExplainRecord};
use std::process::Command;

const SOURCE: &str = include_str!("../../../../examples/servo.c");

/// A planted fault, the functions that may be named, and what the line contains.
struct Fault {
    name: &'static str,
    functions: &'static [&'static str],
    line: &'static str,
}

static FAULTS: [Fault; 6] = [
    Fault { name: "nice_lock", functions: &["hit_nice_lock"], line: "pthread_mutex_lock(&plain_lock)" },
    Fault { name: "service", functions: &["hit_service"], line: "service_ends[0]" },
    Fault { name: "fsync", functions: &["hit_fsync"], line: "fsync(file)" },
    Fault { name: "sleep", functions: &["hit_sleep", "sleep_ns"], line: "sleep" },
    Fault { name: "long_run", functions: &["hit_long_run", "steps"], line: "" },
    Fault { name: "page_fault", functions: &["hit_page_fault"], line: "" },
];

/// Places of the late activations that are blamed on a fault, without an alternative cause.
fn places(explained: &ExplainRecord, fault: &Fault) -> Vec<CodePlace> {
    let blames = explained.worst.iter().filter_map(|one| one.blame());
    blames.filter(|share| is_of_fault(share, fault.name)).filter_map(|share| share.code.clone()).collect()
}

/// Whether a place is that of the fault: its function, and a line of the source with the call.
fn is_right(place: &CodePlace, fault: &Fault) -> bool {
    let function = place.at.function.as_deref().unwrap_or_default();
    // The frame of fsync's function fills all that is sampled of the stack.
    let is_whole =
        fault.name == "fsync" || place.stack.iter().any(|frame| frame.function.as_deref() == Some("controller"));
    let line = place.at.line.and_then(|line| SOURCE.lines().nth(usize::try_from(line).unwrap() - 1));
    fault.functions.contains(&function)
        && place.at.file.as_deref().is_some_and(|file| file.ends_with("servo.c"))
        && line.is_some_and(|line| line.contains(fault.line))
        && place.samples <= place.of
        && is_whole
        && place.stack.len() <= CodePlace::FRAMES
}

#[test]
fn root_the_function_and_the_line_of_each_planted_fault_are_named() {
    skip_unless!(may_watch());
    let (_machine, scratch) = machine_and_scratch("watch-stacks");
    let servo = compiled(&scratch, &["-g"]);
    for fault in &FAULTS {
        // A busy machine may hide one round.
        let rounds = (0..3).map(|_| {
            let explained = explained(&watched(1.5, "controller", &["--stacks"], &words(&servo, fault.name)));
            (places(&explained, fault), explained)
        });
        let mut failed = Vec::new();
        let found = rounds.take(3).find_map(|(places, explained)| {
            // Never a wrong one, whatever the machine does.
            let wrong: Vec<_> = places.iter().filter(|place| !is_right(place, fault)).collect();
            assert!(wrong.len() * 10 <= places.len(), "{}: {wrong:#?}", fault.name);
            if places.len() >= 2 {
                return Some(places);
            }
            failed.push(format!("{:#?}", explained.causes));
            None
        });
        assert!(found.is_some(), "{}: {failed:#?}", fault.name);
    }
}

#[test]
fn root_a_program_without_symbols_is_said_to_have_none() {
    skip_unless!(may_watch());
    let (_machine, scratch) = machine_and_scratch("watch-stripped");
    let servo = compiled(&scratch, &["-s"]);
    let fault = &FAULTS[0];
    let explained = explained(&watched(1.5, "controller", &["--stacks"], &words(&servo, fault.name)));
    let places = places(&explained, fault);
    assert!(!places.is_empty(), "{:#?}", explained.causes);
    for place in &places {
        assert_eq!((place.at.object.as_str(), &place.at.function, place.at.line), ("servo", &None, None), "{place:#?}");
    }
}

#[test]
fn root_without_stacks_no_place_is_named() {
    skip_unless!(may_watch());
    let (_machine, scratch) = machine_and_scratch("watch-no-stacks");
    let servo = compiled(&scratch, &["-g"]);
    let explained = explained(&watched(1.0, "controller", &[], &words(&servo, "sleep")));
    let mut shares = explained.worst.iter().flat_map(|one| &one.shares);
    assert!(shares.all(|share| share.code.is_none()));
}

#[test]
fn root_a_program_that_damages_its_own_file_is_watched_to_the_end() {
    skip_unless!(may_watch());
    let (_machine, scratch) = machine_and_scratch("watch-damaged");
    let servo = compiled(&scratch, &["-g"]);
    damage(&scratch, &servo);
    let explained = explained(&watched(1.0, "controller", &["--stacks"], &words(&servo, "sleep")));
    assert!(explained.explained > 0, "{:#?}", explained.causes);
}

/// Overwrites the debug information of a program, which still runs.
fn damage(scratch: &Scratch, program: &std::path::Path) {
    let noise = scratch.file("noise", "\u{7f}\u{1b}[31mELF\u{1}".repeat(2000));
    for section in [".debug_info", ".debug_line", ".debug_abbrev", ".debug_str"] {
        let update = format!("{section}={}", noise.display());
        let said = run(Command::new("objcopy").args(["--update-section", &update]).arg(program));
        assert_eq!(said.status, 0, "{said:?}");
    }
}
