//! `punctual`: the laboratory for Linux real-time performance.
#![forbid(unsafe_code)]

mod cli;

use std::process::ExitCode;
use sys::alloc::CountingAllocator;

/// Counts allocations of measured threads, so that every record shows there were none.
#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

fn main() -> ExitCode {
    match () {
        () if lab::is_first_process() => lab::run_guest(),
        () if workload::cost::is_nothing() => ExitCode::SUCCESS,
        () => cli::main(),
    }
}
