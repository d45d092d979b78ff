//! Numbers of watched programs that depend on the machine: counts in a time, medians, stamps of packets.

use crate::program::{machine_and_scratch, skip_unless};
use crate::real::explain::instances;
use crate::real::response::{HOST, Network, TARGET};
use crate::real::watch::{a_chain, has_python, seen_and_recorded, watch, watched};
use crate::real::watch_packets::{measured, releases};
use crate::series::{Round, series};
use crate::servo::{compiled_from, may_watch};

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

/// Time, ns, between the stamp of the kernel and the release by the same packet.
const STAMP_NS: u64 = 5_000;

#[test]
#[ignore = "host: times beside those of a receiver"]
fn root_releases_by_packets_are_the_stamps_of_the_kernel() {
    skip_unless!(may_watch());
    let (_machine, scratch) = machine_and_scratch("watch-stamps");
    let Some(network) = Network::new("stamps") else { return };
    let program = compiled_from(&scratch, "packets", include_str!("../../watched/packets.c"), &[]);
    let space = |machine: usize| format!("/run/netns/{}", network.names[machine]);
    let arguments = format!("recv 1500 {} {} 10.213.7.2", space(HOST), space(TARGET));
    series("watch packets beside SO_TIMESTAMPING", || {
        let Some((record, seen, (log, _))) = measured(&scratch, &program, &arguments, "--thread receiver") else {
            return Round::Nothing("the program did nothing, or events were lost".to_owned());
        };
        let all = releases(&scratch, &record, seen.threads[0].tid, &log);
        let differ = all.iter().filter(|(at, [_, stamp, _])| at.abs_diff(*stamp) > STAMP_NS).count();
        if all.len() < 100 {
            return Round::Nothing(format!("{} packets", all.len()));
        }
        // An interrupt may come between the two.
        match differ * 10 <= all.len() {
            true => Round::Right,
            false => Round::Wrong(format!("{differ} of {} differ", all.len())),
        }
    });
}
