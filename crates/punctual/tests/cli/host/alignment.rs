//! Begin of cells on the wall clock.
//!
//! It is exact except for the time between two readings of clocks, in which a thread may be preempted.

use crate::program::{command, machine, record, start_cell};
use crate::real::measured_thread::{aligned, itimers_apart};
use crate::series::{Round, series};

#[test]
#[ignore = "host: time between two readings of clocks"]
fn a_cell_begins_at_a_full_second_of_the_wall_clock() {
    let _machine = machine();
    series("begin at a full second", || {
        let ms = aligned("realtime").started_unix_ms % 1000;
        Round::right_if((299..=301).contains(&ms), || format!("{ms} ms"))
    });
}

#[test]
#[ignore = "host: time between two readings of clocks"]
fn processes_of_one_cell_begin_apart_as_asked() {
    let _machine = machine();
    series("processes begin apart", || {
        let record = record(start_cell(command("cell"), &itimers_apart()));
        let first = record.threads[0].offset.ns().cast_signed();
        // Processes that take long to start begin in different seconds.
        let apart = |thread: &punctual_model::ThreadRecord| {
            (thread.offset.ns().cast_signed() - first).rem_euclid(1_000_000_000)
        };
        let apart: Vec<u64> = record.threads.iter().map(|thread| apart(thread).cast_unsigned()).collect();
        let is_asked = apart.iter().zip(0..).all(|(ns, n): (_, u64)| ns.abs_diff(n * 250_000) < 100_000);
        Round::right_if(is_asked, || format!("{apart:?} ns"))
    });
}
