//! A published study, repeated on this machine.

use crate::program::{entries, inconclusive, is_root, machine_and_scratch, punctual, skip_unless};
use crate::pure::schema::assert_conforms;

/// The running kernel has one preemption model, so orders of kernels are not tested; those of policies are.
#[test]
fn root_a_study_is_repeated_on_the_running_kernel() {
    skip_unless!(is_root());
    let (_machine, scratch) = machine_and_scratch("study-run");
    let out = scratch.path("study");
    let words = format!(
        "study run debian10-stock-vs-rt-2020 --way here --quick --repetitions 3 --wait --out {}",
        out.display()
    );
    let said = punctual(&format!("{words} --format json")).expect_success();
    let shown = said.json();
    assert_conforms("study", &shown);
    let judged = |says: &str| {
        let conclusions = shown["conclusions"].as_array().unwrap();
        let found = conclusions.iter().find(|one| one["says"].as_str().unwrap().starts_with(says));
        found.unwrap_or_else(|| panic!("{says}: {conclusions:?}")).clone()
    };
    assert_eq!(judged("As SCHED_FIFO, the largest latency of PREEMPT_RT is below")["verdict"], "not_tested");
    // What was said before the run is what could not be decided after it.
    let before: Vec<_> = said.stderr.lines().filter_map(|line| line.trim_start().strip_prefix("not: ")).collect();
    assert!(said.stderr.contains(" of its 4 conclusions can be judged by these ways"), "{}", said.stderr);
    for one in shown["conclusions"].as_array().unwrap() {
        let is_out_of_reach = before.iter().any(|said| said.starts_with(one["says"].as_str().unwrap()));
        let is_judged = ["found_again", "not_found"].contains(&one["verdict"].as_str().unwrap());
        assert!(
            !(is_out_of_reach && is_judged) && (is_out_of_reach || one["verdict"] != "not_tested"),
            "{one} {before:?}"
        );
    }
    // Tested on this kernel, and the other is named.
    let both = judged("On both kernels the largest latency as SCHED_FIFO");
    let why = both["why"].as_str().unwrap();
    assert!(both["verdict"] != "found_again", "{both}");
    // A cell without a single wake-up has no largest latency.
    match entries(&out.join("here")).iter().flat_map(|entry| &entry.record.threads).all(|thread| thread.recorded > 0) {
        true => assert!(why.contains(": other (") && why.contains(" fifo:49 ("), "{both}"),
        false => inconclusive("a thread has not woken up"),
    }
    let rows = shown["tables"][0]["rows"].as_array().unwrap();
    let filled: Vec<_> = rows.iter().filter(|row| !row["runs"].as_array().unwrap().is_empty()).collect();
    assert_eq!(filled.len(), 8, "two loads, policies and threads of one kernel: {filled:?}");
    assert_eq!(entries(&out.join("here")).len(), 12);
    assert!(out.join("report.html").exists());
    // Nothing is left to measure; the same tables come from the run by its name.
    let again = format!("study run debian10-stock-vs-rt-2020 --way here --resume --out {}", out.display());
    punctual(&again).expect_success();
    let by_name = format!("study show debian10-stock-vs-rt-2020 {} --format json", out.join("here").display());
    let by_name = punctual(&by_name).expect_success().json();
    assert_eq!((&by_name["tables"], &by_name["conclusions"]), (&shown["tables"], &shown["conclusions"]));
}
