//! The machine: facts that affect latency, and checks that give advice on them.

pub mod config;
pub mod doctor;
pub mod facts;
mod texts;
