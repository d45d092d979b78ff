//! Experiments of `punctual tune` that are refused before anything is measured.

use crate::program::{Scratch, a_cpu, punctual};

#[test]
fn what_cannot_be_tried_is_one_line_and_nothing_is_measured() {
    let scratch = Scratch::new("tune-bad");
    let no_knobs = scratch.file("no-knobs.toml", "[axes]\nload = [\"none\"]\n");
    let two_cells = scratch.file(
        "two-cells.toml",
        "[knobs]\ntimer_slack = [\"1us\", \"2us\"]\n[axes]\nload = [\"none\", \"cpu\"]\npolicy = [\"other\"]\n",
    );
    for (arguments, words) in [
        ("--knob policy=other".to_owned(), "expected KEY=A,B"),
        ("--knob policy=other,other".to_owned(), "twice"),
        ("--knob policy=other,batch,other".to_owned(), "twice"),
        ("--knob boot.preempt=leave,full".to_owned(), "boot words are tried in the lab only"),
        ("--knob polcy=other,batch".to_owned(), "unknown knob `polcy`"),
        ("--knob policy=other,fifo:200".to_owned(), "fifo:200"),
        ("--knob warm_up=1s,2s --knob warm_up=1s,3s".to_owned(), "duplicate knob"),
        ("--knob prepare.sysctl:no.such=leave,1".to_owned(), "no /proc/sys/no/such"),
        ("--knob prepare./etc/passwd=leave,1".to_owned(), "below /sys or /proc/sys"),
        ("--response p77".to_owned(), "expected p50, p99"),
        (
            format!("--knob warm_up=1s,2s --duration 1s --period 1ms --cpus {}", a_cpu()),
            "wake-ups, but p99 needs 2 000; measure at least 2s (--duration)",
        ),
        (no_knobs.display().to_string(), "has no knobs"),
        (two_cells.display().to_string(), "give 2 cells"),
    ] {
        let said = punctual(&format!("tune {arguments} --out {}", scratch.path("x").display()));
        assert!(said.status == 1 && said.stdout.is_empty(), "{arguments}: {said:?}");
        assert!(said.last_line().contains(words), "{words}: {said:?}");
    }
}
