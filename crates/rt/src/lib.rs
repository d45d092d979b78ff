//! The code that runs inside a measured thread.
//!
//! From the barrier to its last cycle a measured thread reads the clock, makes the one system call under test, does
//! integer arithmetic and writes to memory that was allocated, touched and locked before. Nothing else: no allocation,
//! lock, log, channel or formatting. `SYSCALLS.md` lists the calls; the witness [`RtSection`] marks the functions.

#![forbid(unsafe_code)]

mod cyclic;
mod gate;
mod line;
mod link;
mod log;
mod methods;
mod section;
mod settings;
mod spike;
mod team;
mod wait;
mod wire;

pub use cyclic::LoopResult;
pub use line::{Line, LineEvent, Message};
#[cfg(target_arch = "x86_64")]
pub use link::{DmaTimer, Interrupts};
pub use link::{LinkCounts, LinkEnd, Logger, Target};
pub use log::{LogReader, LogWriter, Sample, sample_log};
pub use methods::{CobaltOutcome, NoiseOutcome};
pub use section::RtSection;
pub use settings::{SettingError, Settings};
pub use spike::{LateReader, LateWakeup, SpikeWatch, Watcher};
pub use team::{Member, Outcome, Team, TeamError, ThreadSpec, Waker};
pub use wait::{Completion, Triggered, Wait};
pub use wire::{GpioLines, Interrupt, Parport, UioDevice};
