//! Places in the code of a planted fault: how often its function and line are named, and whether others are.

use crate::program::{machine_and_scratch, skip_unless};
use crate::series::{Round, each, series};
use crate::servo::{by_name, compiled, explained, is_of, may_watch, watched, words};
use punctual_model::{CodePlace, ExplainRecord};

const SOURCE: &str = include_str!("../../../../../examples/servo.c");

/// A planted fault, the functions that may be named, and what the line contains.
struct Placed {
    name: &'static str,
    functions: &'static [&'static str],
    line: &'static str,
}

/// Places of the late activations that are blamed on a fault, without an alternative cause.
fn places(explained: &ExplainRecord, name: &str) -> Vec<CodePlace> {
    let faults = by_name(&[name]);
    let blames = explained.worst.iter().filter_map(|one| one.blame());
    let of_fault = blames.filter(|share| faults.iter().any(|fault| is_of(share, fault)));
    of_fault.filter_map(|share| share.code.clone()).collect()
}

/// Whether a place is that of the fault: its function, and a line of the source with the call.
fn is_right(place: &CodePlace, fault: &Placed) -> bool {
    let function = place.at.function.as_deref().unwrap_or_default();
    // The frame of fsync's function fills all that is sampled of the stack.
    let is_whole =
        fault.name == "fsync" || place.stack.iter().any(|frame| frame.function.as_deref() == Some("controller"));
    let line = place.at.line.and_then(|line| SOURCE.lines().nth(usize::try_from(line).unwrap() - 1));
    fault.functions.contains(&function)
        && place.at.file.as_deref().is_some_and(|file| file.ends_with("servo.c"))
        && line.is_some_and(|line| line.contains(fault.line))
        && is_whole
}

const PLACED: [Placed; 6] = [
    Placed { name: "nice_lock", functions: &["hit_nice_lock"], line: "pthread_mutex_lock(&plain_lock)" },
    Placed { name: "service", functions: &["hit_service"], line: "service_ends[0]" },
    Placed { name: "fsync", functions: &["hit_fsync"], line: "fsync(file)" },
    Placed { name: "sleep", functions: &["hit_sleep", "sleep_ns"], line: "sleep" },
    Placed { name: "long_run", functions: &["hit_long_run", "steps"], line: "" },
    Placed { name: "page_fault", functions: &["hit_page_fault"], line: "" },
];

/// A place in ten may be that of a sample that came late.
#[test]
#[ignore = "host: places in a watched program"]
fn root_the_place_of_each_fault_is_named() {
    skip_unless!(may_watch());
    let (_machine, scratch) = machine_and_scratch("watch-stacks");
    let servo = compiled(&scratch, &["-g"]);
    each(PLACED.iter().filter(|fault| !by_name(&[fault.name]).is_empty()), |fault| {
        series(&format!("watch place {}", fault.name), || {
            let said = watched(1500, "controller", &["--stacks"], &words(&servo, fault.name));
            let Some(explained) = explained(&said) else { return Round::Nothing("the program did nothing".to_owned()) };
            let places = places(&explained, fault.name);
            let wrong: Vec<_> = places.iter().filter(|place| !is_right(place, fault)).collect();
            if wrong.len() * 10 > places.len() {
                return Round::Wrong(format!("{wrong:#?}"));
            }
            Round::right_if(places.len() >= 2, || format!("{:#?}", explained.causes))
        });
    });
}

#[test]
#[ignore = "host: places in a watched program"]
fn root_without_symbols_the_place_is_the_program() {
    skip_unless!(may_watch());
    let (_machine, scratch) = machine_and_scratch("watch-stripped");
    let servo = compiled(&scratch, &["-s"]);
    series("watch place without symbols", || {
        let said = watched(1500, "controller", &["--stacks"], &words(&servo, "nice_lock"));
        let Some(explained) = explained(&said) else { return Round::Nothing("the program did nothing".to_owned()) };
        let places = places(&explained, "nice_lock");
        let is_right = |place: &&CodePlace| {
            (place.at.object.as_str(), &place.at.function, place.at.line) == ("servo", &None, None)
        };
        match places.iter().find(|place| !is_right(place)) {
            Some(wrong) => Round::Wrong(format!("{wrong:#?}")),
            None => Round::right_if(!places.is_empty(), || format!("{:#?}", explained.causes)),
        }
    });
}
