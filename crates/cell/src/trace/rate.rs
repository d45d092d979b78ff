//! Rate at which the kernel's trace is read, for `cargo xtask bench --only explain`.

use super::instance::{TraceRequest, tests::only_instance};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// Duration of the traffic between both ends.
const TRAFFIC: Duration = Duration::from_millis(500);
/// Repetitions of reading the same pages.
const TIMES: u64 = 10;

fn exchange(mut end: UnixStream) {
    let start = Instant::now();
    while start.elapsed() < TRAFFIC && end.write_all(b"x").is_ok() && end.read_exact(&mut [0]).is_ok() {}
}

#[test]
#[ignore = "a measurement, for cargo xtask bench --only explain"]
fn root_events_of_the_kernel_are_read() {
    let (_only, mut instance) = only_instance().unwrap();
    let pid = i32::try_from(std::process::id()).unwrap();
    let decoder = instance
        .enable(TraceRequest {
            events: crate::trace::EventSet::Explanation,
            pids: Some(&[pid]),
            stacks: false,
            idle_states: true,
        })
        .unwrap();
    instance.start().unwrap();
    let (here, there) = UnixStream::pair().unwrap();
    let other = std::thread::spawn(|| exchange(there));
    exchange(here);
    other.join().unwrap();
    let mut pages = vec![Vec::new(); instance.n_cpus()];
    for (cpu, pages) in pages.iter_mut().enumerate() {
        instance.drain(cpu, decoder.page_bytes(), pages).unwrap();
    }
    let (mut n_events, before) = (0, sys::usage::thread().unwrap());
    for _ in 0..TIMES {
        let mut trace = decoder.begin(pages.len());
        n_events +=
            pages.iter().enumerate().map(|(cpu, pages)| decoder.read(&mut trace, cpu, pages).events).sum::<u64>();
    }
    let used = sys::usage::since(&before, &sys::usage::thread().unwrap());
    let us = used.user_us + used.system_us;
    println!("events {n_events} us {us}");
    assert!(n_events > 100_000, "{n_events}");
}
