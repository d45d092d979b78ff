//! A trace of the kernel that is read again and again, at a rate that `cargo xtask bench --only explain` shows.

use super::instance::{StackRequest, TraceRequest, tests::only_instance};
use super::source::PageSource;
use punctual_sys::testing::cpu_us;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

/// Bytes that both ends send to each other unless `PUNCTUAL_TRACE_EXCHANGES` says otherwise.
const EXCHANGES: u64 = 1000;
/// Repetitions of reading the same pages.
const TIMES: usize = 10;

fn exchange(n: u64, mut end: UnixStream) {
    for _ in 0..n {
        end.write_all(b"x").unwrap();
        end.read_exact(&mut [0]).unwrap();
    }
}

#[test]
fn root_events_of_the_kernel_are_read() {
    let Some((_only, mut instance)) = only_instance() else { return };
    let pid = i32::try_from(std::process::id()).unwrap();
    let decoder = instance
        .enable(TraceRequest {
            events: crate::trace::EventSet::Explanation,
            pids: Some(&[pid]),
            stacks: StackRequest::Nowhere,
            idle_states: true,
        })
        .unwrap();
    let n = std::env::var("PUNCTUAL_TRACE_EXCHANGES").map_or(EXCHANGES, |n| n.parse().unwrap());
    instance.start().unwrap();
    let (here, there) = UnixStream::pair().unwrap();
    let other = std::thread::spawn(move || exchange(n, there));
    exchange(n, here);
    other.join().unwrap();
    let mut pages = vec![Vec::new(); instance.n_cpus()];
    for (cpu, pages) in pages.iter_mut().enumerate() {
        instance.drain(cpu, decoder.page_bytes(), pages).unwrap();
    }
    let began = cpu_us();
    let events = [(); TIMES].map(|()| {
        let mut trace = decoder.begin(pages.len());
        pages.iter().enumerate().map(|(cpu, pages)| decoder.read(&mut trace, cpu, pages).events).sum::<u64>()
    });
    println!("events {} us {}", events.iter().sum::<u64>(), cpu_us() - began);
    assert!(events[0] > 0 && events.iter().all(|n| *n == events[0]), "{events:?}");
}
