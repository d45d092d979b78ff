//! Loads on this machine: whether each one works in every second beside a measurement.

use crate::program::{a_cpu, cell, command, machine, record, start_cell};
use crate::real::loads::built_in;
use crate::series::{Round, series};

#[test]
#[ignore = "host: operations within a second"]
fn every_load_works_in_every_second() {
    let _machine = machine();
    // One load each round: 20 rounds are about all of them.
    let mut loads = built_in().cycle();
    series("loads work in every second", || {
        let load = loads.next().unwrap();
        let record = record(start_cell(command("cell"), &cell("other", load, &a_cpu().to_string(), "1500ms")));
        // The last reading may follow the previous one shortly.
        let works = record.loads.iter().all(|part| {
            let mut whole = part.seconds.iter().filter(|second| second.elapsed.ns() > 900_000_000).peekable();
            part.failure.is_none() && whole.peek().is_some() && whole.all(|second| second.operations > Some(0))
        });
        Round::right_if(works, || format!("{:?}", record.loads))
    });
}
