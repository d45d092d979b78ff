//! Places in the code of a planted fault: how often its function and line are named, and whether others are.

use crate::program::{is_installed, machine_and_scratch, run, skip_unless};
use crate::series::{Round, each, series};
use crate::servo::{by_name, compiled, explained, is_of, may_watch, watched, words};
use punctual_model::{CodePlace, ExplainRecord};
use std::process::Command;

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

/// A loop whose late turns compute in the function with the given name.
const LATE_PY: &str = "\
import sys, time
def solve_ik(n):
    for i in range(n): i * i
def plan_path(n):
    for i in range(n): i * i
late = globals()[sys.argv[1]]
for k in range(1000000):
    time.sleep(0.005)
    if k % 20 == 0: late(200000)
";

#[test]
#[ignore = "host: places in a watched program"]
fn root_py_spy_names_the_same_function() {
    skip_unless!(may_watch() && is_installed("python3", "python3") && is_installed("py-spy", "py-spy, of PyPI"));
    let (_machine, scratch) = machine_and_scratch("watch-py-spy");
    let (script, raw) = (scratch.file("control.py", LATE_PY), scratch.path("raw").display().to_string());
    let mut functions = ["solve_ik", "plan_path"].into_iter().cycle();
    series("watch the function of py-spy", || {
        let function = functions.next().expect("endless");
        let program = ["python3", script.to_str().unwrap(), function].map(str::to_owned);
        let spy = ["record", "--gil", "--rate", "200", "--duration", "3", "--format", "raw", "--output", &raw, "--"];
        run(Command::new("py-spy").args(spy).args(&program)).expect_success();
        // A line: frames, the innermost last, and their number.
        let text = std::fs::read_to_string(&raw).unwrap_or_default();
        let most = text.lines().max_by_key(|line| line.rsplit(' ').next().and_then(|n| n.parse::<u64>().ok()));
        if !most.is_some_and(|line| line.contains(&format!(";{function} (control.py"))) {
            return Round::Nothing(format!("py-spy: {most:?}"));
        }
        // At a real-time priority, so that what the thread executes is read while others run, too.
        let said = watched(3000, "python*", &["--stacks", "--deadline", "3ms", "--policy", "fifo:80"], &program);
        let Some(explained) = explained(&said) else { return Round::Nothing("the program did nothing".to_owned()) };
        let places = explained.worst.iter().flat_map(|one| &one.shares).filter_map(|share| share.code.as_ref());
        let is_script = |place: &&CodePlace| place.at.file.as_deref().is_some_and(|file| file.ends_with("control.py"));
        let ours: Vec<&str> = places.filter(is_script).filter_map(|place| place.at.function.as_deref()).collect();
        match ours.iter().find(|ours| ![function, "<module>"].contains(ours)) {
            Some(wrong) => Round::Wrong(format!("{wrong} instead of {function}")),
            None => Round::right_if(ours.contains(&function), || format!("{ours:?}")),
        }
    });
}
