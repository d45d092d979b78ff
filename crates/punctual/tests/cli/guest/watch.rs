//! Watched programs in guests: planted faults are named in virtual time, the same to the bit.

use crate::guest::vm::{kernel, run_seeded};
use crate::program::{Scratch, beside_a_load, entries, is_installed, skip_unless};
use crate::real::explain::sums_agree;
use crate::series::Round;
use crate::servo::{by_name, compiled, named};
use punctual_model::{Entry, ExplainRecord};
use std::path::Path;

/// Faults that take turns in one program; the others each have their own.
const TOGETHER: &str = "service+nice_lock+page_fault+malloc+full_pipe+long_run+sleep";

/// Runs a plan that watches the controller of the example with faults, and explains the worst 60 activations.
fn watched(scratch: &Scratch, servo: &Path, out: &str, duration: &str, faults: &[&str]) -> Vec<Entry> {
    let kernel = kernel().unwrap();
    let task = |faults: &&str| format!("'watch,thread=controller:{} --every 40 --fault {faults}'", servo.display());
    let tasks: Vec<String> = faults.iter().map(task).collect();
    let plan = format!(
        "repetitions = 1\nduration = \"{duration}\"\nwarm_up = \"200ms\"\n[explain]\nkeep = 60\n[axes]\n\
         kernel = [\"{} preempt=full\"]\nload = [\"none\"]\npolicy = [\"other\"]\nperiod = [\"2ms\"]\nmethod = [{}]\n",
        kernel.display(),
        tasks.join(", ")
    );
    let (plan, out) = (scratch.file("plan.toml", plan), scratch.path(out));
    run_seeded(&plan.display().to_string(), &out);
    entries(&out)
}

/// The explanations of an entry, checked to add up and to cover nearly everything.
#[track_caller]
fn explained(entry: &Entry) -> &ExplainRecord {
    let explained = entry.record.explained.as_ref().unwrap();
    sums_agree(explained);
    // Faults are further apart than two readings, so that none hides the next one. One may fall into the first stop,
    // when it is known what is usual.
    assert!(explained.not_covered <= 1, "{explained:#?}");
    explained
}

#[test]
fn vm_a_watched_program_is_explained_the_same_to_the_bit() {
    let Some(_) = kernel() else { return };
    skip_unless!(is_installed("cc", "gcc"));
    let scratch = Scratch::new("watch-guest");
    let servo = compiled(&scratch, &["-static"]);
    let quiet = watched(&scratch, &servo, "quiet", "2800ms", &[TOGETHER]);
    let busy = beside_a_load(|| watched(&scratch, &servo, "busy", "2800ms", &[TOGETHER]));
    assert!(quiet == busy, "virtual time does not depend on what else the machine does");
    let planted = by_name(&TOGETHER.split('+').collect::<Vec<_>>());
    // Each hits five times, some before anything is usual.
    assert_eq!(named(Some(explained(&quiet[0])), &planted, 4), Round::Right);
}

#[test]
fn vm_faults_that_need_a_thread_of_their_own_are_named_and_no_others() {
    let Some(_) = kernel() else { return };
    skip_unless!(is_installed("cc", "gcc"));
    let scratch = Scratch::new("watch-guest-alone");
    let servo = compiled(&scratch, &["-static"]);
    let faults = ["pi_lock", "equal_priority"];
    for (fault, entry) in faults.iter().zip(watched(&scratch, &servo, "run", "1200ms", &faults)) {
        assert_eq!(named(Some(explained(&entry)), &by_name(&[fault]), 10), Round::Right);
    }
}
