//! The vocabulary and plain data of punctual: units, policy, CPU set, plan, cell, record.
//!
//! Everything here is a value: no I/O, no clock, and no host facts but those passed in. The same words are used in
//! code, on the command line, in JSON and in reports (GLOSSARY.md).
#![forbid(unsafe_code)]

mod facts;
pub mod json;
mod plans;
mod records;
mod words;

pub use facts::*;
pub use plans::*;
pub use records::*;
pub use words::*;

/// Name and version of the program, as records keep them.
pub const TOOL: &str = concat!("punctual ", env!("CARGO_PKG_VERSION"));

/// Reason that a part of the program cannot be used: programs for boards are built without some of its cargo features.
pub fn left_out(part: &str, feature: &str) -> String {
    format!("unsupported: this program is built without {part} (cargo feature `{feature}`); use a full one")
}
