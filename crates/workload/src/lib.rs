//! What runs on a machine while it is measured: loads, the operations of the cost suite, programs in other languages, and the
//! links that triggers and answers take.
#![forbid(unsafe_code)]

pub mod cost;
pub mod link;
pub mod load;
pub mod runtime;
