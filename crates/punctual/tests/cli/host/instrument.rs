//! Outside programs beside cells of ours: whether both find the same.

use crate::program::{a_cpu, entries, is_installed, machine_and_scratch, run_seeded, skip_unless};
use crate::real::instrument::{plan, shown};
use crate::series::{Round, series};

#[test]
#[ignore = "host: medians of latencies"]
fn root_cyclictest_has_the_median_of_a_cell_of_ours() {
    skip_unless!(is_installed("cyclictest", "rt-tests"));
    let (_machine, scratch) = machine_and_scratch("instrument-agrees");
    let command = "cyclictest -q -m -t1 -a{cpu} -p{priority} -i{period_us} -D{duration_s} -h 2000";
    let text = format!(
        "repetitions = 10\nduration = \"1s\"\ncpus = \"{}\"\n[axes]\nload = [\"none\"]\npolicy = [\"fifo:80\"]\n\
         period = [\"1ms\"]\nmethod = [\"clock_nanosleep\", {{ program = \"{command}\", read = \"cyclictest\" }}]\n",
        a_cpu()
    );
    let plan = scratch.file("plan.toml", text).display().to_string();
    let out = scratch.path("run");
    // A machine that changes while it is measured has other medians a second later.
    series("instrument median of cyclictest", || {
        let _ = std::fs::remove_dir_all(&out);
        run_seeded(&plan, &out);
        let shown = shown(&out);
        let [ours, theirs] = [0, 1].map(|index| &shown["cells"][index]["summary"]);
        assert!(ours["instrument"].is_null() && theirs["instrument"]["program"] == "cyclictest");
        let bounds = [0, 1].map(|end| ours["p50_interval_ns"][end].as_i64());
        let [Some(low), Some(high)] = bounds else { return Round::Nothing(ours.to_string()) };
        let median = theirs["p50_ns"].as_i64().or_else(|| theirs["p50_refused"]["estimate_ns"].as_i64()).unwrap();
        // It truncates to microseconds.
        if (low - 1_000..=high).contains(&median) {
            return Round::Right;
        }
        Round::Wrong(format!("median of cyclictest {median} ns, interval of ours {low} to {high} ns"))
    });
}

#[test]
#[ignore = "host: wake-ups in a time"]
fn a_program_that_ends_by_ctrl_c_ends_soon_and_has_measured() {
    skip_unless!(is_installed("cyclictest", "rt-tests"));
    let (_machine, scratch) = machine_and_scratch("instrument-soon");
    let program = "program = \"cyclictest -q -t1 -a{cpu} -i500 -h400\", read = \"cyclictest\", stop = \"SIGINT\"";
    let plan = scratch.file("plan.toml", plan("1s", "", &[program])).display().to_string();
    let out = scratch.path("run");
    series("instrument ends by SIGINT", || {
        let _ = std::fs::remove_dir_all(&out);
        run_seeded(&plan, &out);
        let record = entries(&out).remove(0).record;
        let wall = record.instrument.unwrap().wall.as_secs_f64();
        let n = record.threads[0].recorded;
        Round::right_if(n > 100 && wall < 20.0, || format!("{n} wake-ups in {wall} s"))
    });
}
