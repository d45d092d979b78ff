//! The live view on this machine: how often it is drawn.

use crate::program::{a_cpu, command, is_installed, machine, run, skip_unless};
use crate::real::live::{frames, lines, on_a_terminal};
use crate::series::{Round, series};

#[test]
#[ignore = "host: frames within a time"]
fn the_view_is_drawn_each_second() {
    skip_unless!(is_installed("script", "bsdutils"));
    let _machine = machine();
    series("live view each second", || {
        // In 2.5 s the first frame, one per second, the last one, and the final erasure.
        let drawn = frames(&on_a_terminal(&[])).len();
        Round::right_if(drawn >= 4, || format!("{drawn} frames"))
    });
}

#[test]
#[ignore = "host: lines within a time"]
fn without_a_terminal_there_is_a_line_each_second() {
    skip_unless!(is_installed("script", "bsdutils"));
    let _machine = machine();
    series("progress line each second", || {
        let dumb = lines(&on_a_terminal(&[("TERM", "dumb"), ("NO_COLOR", "1")]));
        let plain = lines(&run(&mut command(&format!("measure --wait --duration 2500ms --cpus {}", a_cpu()))).stderr);
        Round::right_if(dumb >= 3 && plain >= 3, || format!("{dumb} and {plain} lines"))
    });
}
