//! Programs of other languages when the cell that measures their sleeps is killed, or the run of it is interrupted.

use crate::places::{Places, names};
use crate::program::{
    Start, command, finish, is_installed, is_stopped, machine, machine_and_scratch, running, skip_unless,
};
use crate::real::sleep::{LANGUAGES, sleeps};
use punctual_sys::process;
use punctual_sys::testing::comes_true;

#[test]
fn a_cell_killed_at_any_place_takes_its_language_along() {
    let (_machine, scratch) = machine_and_scratch("killed");
    let places = Places::new();
    for (language, program, package) in LANGUAGES {
        if !is_installed(program, package) {
            continue;
        }
        let cell = sleeps(language, "1ms", "other", "20ms");
        let start = |action: &str| {
            let mut command = command("cell");
            places.act(command.env("TMPDIR", scratch.dir()), action);
            places.start_cell(command, &cell)
        };
        let mut whole = start("");
        assert!(whole.wait().unwrap().success(), "{language}");
        let own = ["sleep-made", "sleep-started", "sleep-ready", "sleep-released"];
        // The other places are the same for each language.
        let is_to_visit = |place: &String| language == "python3" || own.contains(&place.as_str());
        for place in names(places.all(Some(whole.id()), &own)).into_iter().filter(is_to_visit) {
            places.killed(&mut start(&format!("kill:{place}")), &place);
            assert!(comes_true(|| running().is_empty()), "{language} at {place}: {:?} left", running());
        }
    }
}

#[test]
fn ctrl_c_between_targets_shows_what_was_measured() {
    skip_unless!(is_installed("python3", "python3"));
    let _machine = machine();
    let arguments = "measure sleep --wait --runtime python3 --targets 1ms,2ms,3ms,4ms --duration 100ms";
    // It stops itself when the first target is kept.
    let child = command(arguments).env("PUNCTUAL_FAIL_AT", "stop:record-kept").start_piped();
    assert!(comes_true(|| is_stopped(child.id())), "a target was measured");
    process::signal(child.id(), libc::SIGINT).unwrap();
    process::signal(child.id(), libc::SIGCONT).unwrap();
    let said = finish(child);
    assert_eq!(said.status, 130);
    assert!(said.stderr.contains("punctual: interrupted after 1 of 4 measurements"), "{said:?}");
    assert!(said.stdout.contains("\n  python3  other "), "{said:?}");
    assert!(running().is_empty(), "{:?} left", running());
}
