//! Work that runs during a measurement: loads, the cost suite's operations, outside programs, other languages, links.
#![forbid(unsafe_code)]

pub mod cost;
pub mod instrument;
pub mod link;
pub mod load;
pub mod promises;
pub mod runtime;
pub mod watched;
