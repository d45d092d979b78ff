//! Places in the code of watched programs: none without symbols or samples, and no harm by a damaged file.

use crate::program::{Scratch, inconclusive, is_installed, machine_and_scratch, run, skip_unless};
use crate::servo::{compiled, explained, may_watch, watched, words};
use punctual_model::{CodePlace, ExplainRecord};
use std::process::Command;

/// All places of an explained program.
fn places(explained: &ExplainRecord) -> Vec<&CodePlace> {
    explained.worst.iter().flat_map(|one| &one.shares).filter_map(|share| share.code.as_ref()).collect()
}

#[test]
fn root_places_have_no_more_samples_and_frames_than_there_are() {
    skip_unless!(may_watch());
    let (_machine, scratch) = machine_and_scratch("watch-places");
    let servo = compiled(&scratch, &["-g"]);
    let said = watched(1500, "controller", &["--stacks"], &words(&servo, "nice_lock+long_run+page_fault"));
    let Some(explained) = explained(&said) else { return inconclusive("the program did nothing") };
    let places = places(&explained);
    for place in &places {
        assert!(place.samples > 0 && place.samples <= place.of, "{place:#?}");
        assert!(place.stack.len() <= CodePlace::FRAMES, "{place:#?}");
    }
    if places.is_empty() {
        inconclusive("nothing late was sampled");
    }
}

#[test]
fn root_a_program_without_symbols_is_said_to_have_none() {
    skip_unless!(may_watch());
    let (_machine, scratch) = machine_and_scratch("watch-stripped");
    let servo = compiled(&scratch, &["-s"]);
    let said = watched(1500, "controller", &["--stacks"], &words(&servo, "nice_lock"));
    let Some(explained) = explained(&said) else { return inconclusive("the program did nothing") };
    let places: Vec<_> = places(&explained).into_iter().filter(|place| place.at.object == "servo").collect();
    for place in &places {
        assert_eq!((&place.at.function, place.at.line), (&None, None), "{place:#?}");
    }
    if places.is_empty() {
        inconclusive("nothing late was sampled");
    }
}

#[test]
fn root_without_stacks_no_place_is_named() {
    skip_unless!(may_watch());
    let (_machine, scratch) = machine_and_scratch("watch-no-stacks");
    let servo = compiled(&scratch, &["-g"]);
    let said = watched(1000, "controller", &[], &words(&servo, "sleep"));
    let Some(explained) = explained(&said) else { return inconclusive("the program did nothing") };
    assert_eq!(places(&explained), Vec::<&CodePlace>::new());
    if explained.explained == 0 {
        inconclusive("nothing was late and covered by the trace");
    }
}

#[test]
fn root_a_program_that_damages_its_own_file_is_watched_to_the_end() {
    skip_unless!(may_watch() && is_installed("objcopy", "binutils"));
    let (_machine, scratch) = machine_and_scratch("watch-damaged");
    let servo = compiled(&scratch, &["-g"]);
    damage(&scratch, &servo);
    let said = watched(1000, "controller", &["--stacks"], &words(&servo, "sleep"));
    let Some(explained) = explained(&said) else { return inconclusive("the program did nothing") };
    if explained.explained == 0 {
        inconclusive("nothing was late and covered by the trace");
    }
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

/// Loops whose late steps compute in `solve`, and wait in `fetch`.
const CONTROL_PY: &str = "\
import time
def solve(n):
    return sum(i ** 0.5 for i in range(n))
def fetch():
    time.sleep(0.003)
def step(k):
    solve(60000 if k % 20 == 0 else 300)
    if k % 20 == 10: fetch()
for k in range(100000):
    time.sleep(0.005)
    step(k)
";
const CONTROL_JS: &str = "\
function solve(n) { let s = 0; for (let i = 0; i < n; i++) s += Math.sqrt(i) * Math.sin(i); return s; }
let k = 0, sum = 0;
setInterval(function step() { sum += solve(++k % 20 === 0 ? 100000 : 300); }, 5);
";

#[test]
fn root_what_python_executes_is_named_with_its_own_lines() {
    skip_unless!(may_watch() && is_installed("python3", "python3"));
    let (_machine, scratch) = machine_and_scratch("watch-python");
    let script = scratch.file("control.py", CONTROL_PY);
    let program = ["python3".to_owned(), script.display().to_string()];
    let said = watched(2500, "python*", &["--stacks"], &program);
    let Some(explained) = explained(&said) else { return inconclusive("the program did nothing") };
    let stacks = places(&explained).into_iter().flat_map(|place| place.stack.iter().chain([&place.at]));
    let is_script = |file: &str| script.to_string_lossy().ends_with(file);
    let of_script: Vec<_> = stacks.filter(|frame| frame.file.as_deref().is_some_and(is_script)).collect();
    for frame in &of_script {
        let lines = match frame.function.as_deref() {
            Some("solve" | "<genexpr>") => 2..=3,
            Some("fetch") => 4..=5,
            Some("step") => 6..=8,
            Some("<module>") => 1..=11,
            _ => panic!("{frame:#?}"),
        };
        assert!(frame.line.is_none_or(|line| lines.contains(&line)), "{frame:#?}");
    }
    if of_script.is_empty() {
        inconclusive("nothing late was read in time");
    }
}

#[test]
fn root_what_node_compiles_is_named_by_its_map() {
    skip_unless!(may_watch() && is_installed("node", "nodejs"));
    let (_machine, scratch) = machine_and_scratch("watch-node");
    let script = scratch.file("control.js", CONTROL_JS);
    let program = ["node", "--perf-basic-prof", &script.display().to_string()].map(str::to_owned);
    let said = watched(2500, "node*", &["--stacks"], &program);
    let Some(explained) = explained(&said) else { return inconclusive("the program did nothing") };
    let frames = places(&explained).into_iter().flat_map(|place| &place.stack);
    let of_map: Vec<_> = frames.filter(|frame| frame.object.starts_with("perf-")).collect();
    let names = of_map.iter().filter_map(|frame| frame.function.as_deref());
    for name in names.filter(|name| name.contains("control.js")) {
        // The script itself has none.
        assert!(["solve ", "step ", ":~ ", ":^ ", ":* "].iter().any(|own| name.contains(own)), "{name}");
    }
    if of_map.is_empty() {
        inconclusive("nothing late was sampled in compiled code");
    }
}
