//! Numbers of watched programs that depend on the machine: counts in a time, medians, a limit that is kept.

use crate::program::{machine_and_scratch, skip_unless};
use crate::real::explain::instances;
use crate::real::watch::{Running, a_chain, a_loop, has_python, saw_nothing, seen_and_recorded, watch, watched};
use crate::series::{Round, series};

#[test]
#[ignore = "host: medians of latencies"]
fn root_a_watched_thread_has_nearly_the_median_that_it_records() {
    skip_unless!(instances().is_some());
    let (_machine, scratch) = machine_and_scratch("watch-median");
    series("watch median", || {
        let (seen, theirs) = seen_and_recorded(&scratch);
        let (ours, theirs) = (&seen.threads[0], &theirs.threads[0]);
        // The program reads its clock after its return from the kernel, which is what we see: it is later, by the way
        // back and the reading. On the median that is less than a few microseconds on any machine.
        let p50 = |histogram| punctual_analysis::quantile(histogram, 0.5).unwrap();
        let later_ns = p50(&theirs.histogram) - p50(&ours.latency);
        if (-1_000..20_000).contains(&later_ns) { Round::Right } else { Round::Wrong(format!("{later_ns} ns")) }
    });
}

#[test]
#[ignore = "host: activations in a time"]
fn root_most_activations_of_a_running_loop_are_seen() {
    skip_unless!(instances().is_some() && has_python());
    let (_machine, scratch) = machine_and_scratch("watch-rate");
    let running = Running::start(&["python3", a_loop(&scratch).to_str().unwrap()]);
    let out = scratch.path("run");
    let arguments = format!("--pid {} --for 1500ms --no-explain --out {}", running.0.id(), out.display());
    series("watch running loop", || {
        let _ = std::fs::remove_dir_all(&out);
        watch(&arguments, &[]).expect_success();
        let thread = &watched(&out).1.threads[0];
        Round::right_if(thread.activations > 300, || format!("{} activations", thread.activations))
    });
}

#[test]
#[ignore = "host: activations in a time"]
fn root_most_activations_of_a_chain_are_followed() {
    skip_unless!(instances().is_some() && has_python());
    let (_machine, scratch) = machine_and_scratch("watch-chain-rate");
    let script = a_chain(&scratch);
    let out = scratch.path("run");
    let arguments = format!("--for 2s --no-explain --chain sensor,controller,actuator --out {}", out.display());
    series("watch chain", || {
        let _ = std::fs::remove_dir_all(&out);
        watch(&arguments, &["python3", script.to_str().unwrap()]).expect_success();
        let chain = watched(&out).1.chain.unwrap();
        // The interpreter's own lock wakes threads, too.
        Round::right_if(chain.latency.n > 50 && chain.latency.n > chain.other, || {
            format!("{} of the chain, {} others", chain.latency.n, chain.other)
        })
    });
}

#[test]
#[ignore = "host: a verdict on a running program"]
fn root_a_limit_that_is_kept_passes() {
    skip_unless!(instances().is_some() && has_python());
    let (_machine, scratch) = machine_and_scratch("watch-passes");
    let script = a_loop(&scratch);
    series("watch limit kept", || {
        let said =
            watch("--for 1s --no-keep --no-explain --require response_max=1h", &["python3", script.to_str().unwrap()]);
        match said.status {
            0 => Round::Right,
            2 => Round::Wrong(said.stdout),
            _ => Round::Nothing(if saw_nothing(&said) { said.stderr } else { said.stdout }),
        }
    });
}
