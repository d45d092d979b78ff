//! A guest's side of its channel to the lab, without drivers: their work would be part of what is measured.

#[cfg(target_arch = "x86_64")]
#[path = "channel/ports.rs"]
mod way;
#[cfg(not(target_arch = "x86_64"))]
#[path = "channel/shared.rs"]
mod way;

pub(super) use way::{end, pause, read_job, with_memory, write};
