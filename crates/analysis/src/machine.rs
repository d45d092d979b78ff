//! The machine: the facts that latency depends on, and the checks that advise on them.

pub mod doctor;
pub mod facts;
mod texts;
