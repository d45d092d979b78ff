//! Recorded traces: events a second and memory of `watch --from`, against `trace-cmd report` of the same file.

use super::import::{Scratch, at_least, memory, timed};
use std::path::Path;
use std::process::Command;

/// Time that is recorded beside hackbench, s, and that of a short file.
const LONG_S: u64 = 3;
const SHORT_MS: u64 = 300;
/// Promises: events a second of CPU time, and the factor over trace-cmd.
const EVENTS_PER_SECOND: f64 = 1.5e6;
const TIMES_AS_FAST: f64 = 10.0;
/// A thread with a period, and those of hackbench: each of their events is one of an activation.
const THREADS: [&str; 2] = ["python*", "hackbench"];
const PERIODIC: &str = "/usr/bin/python3 -c 'import time\nwhile True: time.sleep(0.002)'";

/// Records both files, runs the pairs and prints a table for each name of threads.
pub(super) fn report(program: &Path, pairs: u64) -> Result<(), String> {
    let scratch = Scratch::new()?;
    let (long, short) = (scratch.path("long.dat"), scratch.path("short.dat"));
    let record = |time: String, file: &Path| {
        let ends = LONG_S + 3;
        let load = format!(
            "timeout {ends} hackbench -l 1000000 -g 2 >/dev/null & timeout {ends} {PERIODIC} & sleep 1; exec \"$0\" \"$@\""
        );
        let capture = ["capture", "--for", &time, "--most", "8GB", "--output"];
        timed(Command::new("sh").args(["-c", &load]).arg(program).args(capture).arg(file))
    };
    record(format!("{LONG_S}s"), &long)?;
    record(format!("{SHORT_MS}ms"), &short)?;
    // Its text is a gigabyte.
    let theirs = || timed(Command::new("sh").args(["-c", "exec trace-cmd report -i \"$0\" >/dev/null"]).arg(&long));
    for thread in THREADS {
        let asked = ["watch", "--thread", thread, "--format", "json", "--from"];
        let judge = |file: &Path| timed(Command::new(program).args(asked).arg(file));
        let said = Command::new(program).args(asked).arg(&long).output().map_err(|err| err.to_string())?;
        let document: serde_json::Value = serde_json::from_slice(&said.stdout).map_err(|err| err.to_string())?;
        let events = document["events"].as_f64().ok_or("no events")?;
        let (mut rates, mut ratios, mut growth, mut rss_mb) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for pair in 0..pairs {
            let (ours, trace_cmd) = if pair % 2 == 0 {
                let ours = judge(&long)?;
                (ours, theirs()?)
            } else {
                let trace_cmd = theirs()?;
                (judge(&long)?, trace_cmd)
            };
            // Without the events around late activations.
            let reading = |file: &Path| timed(Command::new(program).args(asked).arg(file).args(["--above", "1h"]));
            rates.push(events / ours.cpu_s);
            ratios.push(trace_cmd.cpu_s / ours.cpu_s);
            growth.push(reading(&long)?.rss_kib / reading(&short)?.rss_kib);
            rss_mb.push(ours.rss_kib / 1024.0);
        }
        println!("\nwatch --from a trace of {events} events, threads {thread}, {pairs} times");
        println!("{:<46}{:>10}  {:<20}promise", "", "median", "[95 %]");
        at_least("events a second of CPU time", &rates, EVENTS_PER_SECOND);
        at_least("CPU time of trace-cmd report / ours", &ratios, TIMES_AS_FAST);
        memory(growth, rss_mb);
    }
    Ok(())
}
