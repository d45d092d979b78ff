//! Outside programs as instruments of cells in guests.

use crate::guest::vm::{kernel, run_seeded};
use crate::program::{Scratch, entries, is_installed, skip_unless};

#[test]
fn vm_cyclictest_in_virtual_time_is_the_same_to_the_bit_and_agrees_with_a_cell_of_ours() {
    let Some(kernel) = kernel() else { return };
    skip_unless!(is_installed("cyclictest", "rt-tests"));
    let scratch = Scratch::new("instrument-guest");
    let command = "cyclictest -q -m -t1 -a{cpus} -p{priority} -i{period_us} -l{cycles} -h 2000";
    let text = format!(
        "repetitions = 1\nduration = \"200ms\"\n[axes]\nkernel = [\"{} preempt=full\"]\nload = [\"none\", \"mmap\"]\n\
         policy = [\"fifo:80\"]\nperiod = [\"1ms\"]\n\
         method = [\"clock_nanosleep\", {{ program = \"{command}\", read = \"cyclictest\" }}]\n",
        kernel.display()
    );
    let plan = scratch.file("plan.toml", text).display().to_string();
    let [first, second] = ["first", "second"].map(|name| {
        let out = scratch.path(name);
        run_seeded(&plan, &out);
        entries(&out)
    });
    let results = |run: &[punctual_model::Entry]| {
        let of_program = |entry: &punctual_model::Entry| {
            Some((entry.planned, entry.record.instrument.as_ref()?.result_sha256.clone()))
        };
        let mut all: Vec<_> = run.iter().filter_map(of_program).collect();
        all.sort();
        all
    };
    assert_eq!(results(&first).len(), 2);
    assert_eq!(results(&first), results(&second));
    // cyclictest truncates to microseconds and reads the clock later by some instructions.
    let median =
        |entry: &&punctual_model::Entry| punctual_analysis::quantile(&entry.record.threads[0].histogram, 0.5).unwrap();
    for load in ["none", "mmap"] {
        let of_load = || first.iter().filter(|entry| entry.record.cell.load.to_string() == load);
        let (ours, theirs): (Vec<_>, Vec<_>) = of_load().partition(|entry| entry.record.instrument.is_none());
        let [ours, theirs] = [ours, theirs].map(|entries| entries.iter().map(median).max().unwrap());
        assert!((theirs - ours).abs() <= 1_100, "{load}: {theirs} ns beside {ours} ns");
    }
}
