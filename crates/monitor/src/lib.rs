//! A measurement without an end: maxima and explained late wake-ups of each window of some minutes.
//!
//! Threads wake at a low rate. Memory, files and CPU time have limits that do not depend on how long it runs.
//!
//! A monitor pauses while another punctual measures (`punctual_host::MonitorMark`).
#![forbid(unsafe_code)]

mod hooks;
mod http;
mod run;
mod session;
mod settings;
mod threshold;
mod window;

pub use hooks::{Hooks, MonitorError};
pub use http::{ListenError, Listener};
pub use run::Monitor;
pub use settings::Settings;
