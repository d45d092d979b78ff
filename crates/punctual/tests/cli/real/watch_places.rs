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
