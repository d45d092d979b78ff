//! The program as people and other programs see it: real runs of the real binary on this machine's kernel.
#![expect(clippy::unwrap_used, clippy::disallowed_macros, reason = "a panic in a test is its failure")]

mod bad_input;
mod browser;
mod campaign;
mod check;
mod comparability;
mod compare;
mod consent;
mod cyclictest;
mod doctor;
mod effects;
mod explain;
mod faults;
mod formats;
mod frontier;
mod import;
mod lab;
mod launch;
mod leftovers;
mod live;
mod load_alone;
mod loads;
mod measured_thread;
mod placement;
mod plans;
mod prepare;
mod program;
mod programs;
mod report;
mod samples;
mod schema;
mod sleep;
mod stalls;
mod unprivileged;
mod vm;
mod webdriver;
