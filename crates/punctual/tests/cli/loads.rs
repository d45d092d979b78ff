//! Every built-in load: it works in every second, and nothing of it stays.

use crate::program::{a_cpu, cell, comes_true, command, machine, record, running, start_cell};
use model::Load;

#[test]
fn every_load_works_beside_a_measurement_and_nothing_of_it_stays() {
    let _machine = machine();
    let words = Load::KNOWN.iter().map(|form| form.split('[').next().unwrap_or(form));
    for load in words.chain(["cpu:50"]).filter(|load| *load != "none") {
        let record = record(start_cell(command("cell"), &cell("other", load, &a_cpu().to_string(), "1500ms")));
        let done = record.load.unwrap_or_else(|| panic!("{load}: no record of it"));
        assert!(done.workers > 0 && !done.seconds.is_empty(), "{load}: {done:?}");
        // The last reading may come a moment after the one before.
        let whole = done.seconds.iter().filter(|second| second.elapsed.ns() > 900_000_000);
        assert!(whole.clone().count() > 0 && whole.clone().all(|second| second.operations > 0), "{load}: {done:?}");
        assert!(comes_true(|| running().is_empty()), "{load}: processes stay");
    }
}
