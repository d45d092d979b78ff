//! The machine: facts that affect latency, and checks that give advice on them.

pub mod doctor;
pub mod facts;
mod texts;
