//! Stalls of known length, in virtual time.
//!
//! The record of a thread that was stopped, that never ran, that was throttled, and that got too little CPU time.

use crate::guest::vm::{kernel, run_seeded};
use crate::program::{Scratch, entries};
use crate::real::stalls::{assert_missed_follow, missed_by};
use punctual_model::{Ended, Entry, ThreadRecord};
use std::path::Path;

/// Measures 1 ms under these loads and policies, in the order of the plan.
fn measured(scratch: &Scratch, kernel: &Path, conditions: &str, loads: &[&str], policies: &[&str]) -> Vec<Entry> {
    let plan = format!(
        "repetitions = 1\nwarm_up = \"0ms\"\n{conditions}\n[axes]\nkernel = [\"{} preempt=full\"]\nload = {loads:?}\n\
         policy = {policies:?}\nperiod = [\"1ms\"]\n",
        kernel.display()
    );
    let (plan, out) = (scratch.file("plan.toml", plan).display().to_string(), scratch.path("run"));
    run_seeded(&format!("{plan} --yes"), &out);
    let entries = entries(&out);
    for entry in &entries {
        assert_eq!(entry.record.ended, Ended::Completed);
        let [thread] = &entry.record.threads[..] else { panic!("one CPU") };
        assert!(thread.is_consistent() && thread.lost == 0, "{thread:?}");
        assert_missed_follow(thread);
    }
    entries
}

fn thread(entry: &Entry) -> &ThreadRecord {
    &entry.record.threads[0]
}

#[test]
fn vm_a_stop_of_200_ms_is_one_late_wake_up_and_its_missed_cycles() {
    let Some(kernel) = kernel() else { return };
    let scratch = Scratch::new("stop");
    // The cell is the parent of the load's supervisor.
    let stop = "cmd:read pid name state cell rest </proc/$PPID/stat; sleep 0.5; kill -STOP $cell; sleep 0.2; \
                kill -CONT $cell; while :; do sleep 1; done";
    let files = "duration = \"1500ms\"\nfiles = [\"/bin/busybox:/bin/sh\", \"/bin/busybox:/bin/sleep\"]";
    let entries = measured(&scratch, &kernel, files, &[stop], &["fifo:90"]);
    let thread = thread(&entries[0]);
    let max_ns = thread.histogram.max_ns.unwrap();
    // The load itself takes some of the time.
    assert!((199_000_000..202_000_000).contains(&max_ns), "{max_ns}");
    let missed = missed_by(u64::try_from(max_ns).unwrap());
    assert_eq!((thread.missed, thread.recorded, thread.cycles_due), (missed, 1500 - missed, 1500));
    assert_eq!((thread.censored, thread.worst[0].latency_ns), (None, max_ns));
    let [episode] = thread.episodes.first[..] else { panic!("{:?}", thread.episodes) };
    assert_eq!((episode.worst_ns, episode.count, episode.first_cycle), (max_ns, 1, thread.worst[0].cycle));
    assert!(thread.worst[1].latency_ns < 1_000_000, "no other is late: {:?}", thread.worst[1]);
}

/// A real-time load takes the whole CPU but for the 50 ms of each second that throttling leaves to normal threads: a
/// real-time thread below it never runs, a normal one does in these 50 ms.
#[test]
fn vm_a_starved_thread_ends_in_time_and_its_open_wait_is_recorded() {
    let Some(kernel) = kernel() else { return };
    let scratch = Scratch::new("starved");
    let conditions = "duration = \"2500ms\"\nload_policy = \"fifo:99\"";
    let entries = measured(&scratch, &kernel, conditions, &["cpu"], &["fifo:50", "other"]);
    let [starved, throttled] = [0, 1].map(|cell| thread(&entries[cell]));

    let censored = starved.censored.expect("the wait was still open at the end");
    // The cell waits for 250 ms after its end, and for its turn.
    assert!(censored.cycle == 0 && (2_750_000_000..3_750_000_000).contains(&censored.at_least_ns), "{censored:?}");
    assert_eq!((starved.recorded, starved.missed, starved.cycles_due), (0, 2499, 2500));
    assert_eq!(starved.usage, None, "it did not come to its end");

    // It wakes in each of the two or three times of normal threads, which are 950 ms apart.
    assert!((50..400).contains(&throttled.recorded), "{} recorded", throttled.recorded);
    let max_ns = throttled.histogram.max_ns.unwrap();
    assert!((900_000_000..1_000_000_000).contains(&max_ns), "{max_ns}");
    assert!(throttled.missed > 2000, "{} missed", throttled.missed);
    for entry in &entries {
        let [load] = &entry.record.loads[..] else { panic!("one load") };
        assert!(load.seconds.iter().all(|second| second.operations > Some(0)), "{load:?}");
    }
}

#[test]
fn vm_a_thread_that_gets_little_cpu_time_misses_cycles_beside_a_load_that_works() {
    let Some(kernel) = kernel() else { return };
    let scratch = Scratch::new("little");
    let (loads, policies) = (["cpu", "messaging:groups=1"], ["idle", "other:nice=19"]);
    for entry in measured(&scratch, &kernel, "duration = \"600ms\"", &loads, &policies) {
        let (thread, name) = (thread(&entry), format!("{}/{}", entry.record.cell.load, entry.record.cell.policy));
        assert_eq!((thread.cycles_due, thread.achieved.policy), (600, entry.record.cell.policy), "{name}");
        assert!(thread.recorded > 0 && thread.missed > 300, "{name}: {} missed", thread.missed);
        let [load] = &entry.record.loads[..] else { panic!("one load") };
        // The load keeps the reader of its counts waiting, too: a row may cover only a few milliseconds, possibly
        // without an operation.
        let longest = load.seconds.iter().max_by_key(|second| second.elapsed).expect("a row");
        assert!(longest.operations > Some(0), "{name}: {load:?}");
        assert_eq!(load.failure, None, "{name}");
    }
}
