//! `punctual`: the laboratory for Linux real-time performance.
#![forbid(unsafe_code)]

mod campaign;
mod cell;
mod child;
mod cli;
mod cost;
mod cyclictest;
mod host;
mod import;
mod lab;
mod link;
mod load;
mod report;
mod role;
mod runtime;
mod store;
mod trace;

use rt::sys::alloc::CountingAllocator;
use std::process::ExitCode;

/// Counts what a measured thread allocates, so that every record can say that it was nothing.
#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// Name and version, as records keep them.
const TOOL: &str = concat!("punctual ", env!("CARGO_PKG_VERSION"));

fn main() -> ExitCode {
    match () {
        () if lab::is_first_process() => lab::run_guest(),
        () if cost::is_nothing() => ExitCode::SUCCESS,
        () => cli::main(),
    }
}
