//! `punctual`: the laboratory for Linux real-time performance.
#![forbid(unsafe_code)]

mod cli;

use punctual_sys::alloc::CountingAllocator;
use std::process::ExitCode;

/// Counts allocations of measured threads, so that every record shows there were none.
#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

fn main() -> ExitCode {
    match () {
        () if punctual_lab::is_first_process() => punctual_lab::run_guest(),
        () if punctual_lab::is_stick() => punctual_lab::run_stick(),
        () if punctual_workload::cost::is_nothing() => ExitCode::SUCCESS,
        () => cli::main(),
    }
}
