//! What people see: messages, results, progress, and mistakes on the command line.

pub(in crate::cli) mod live;
mod message;
pub(in crate::cli) mod output;
pub(in crate::cli) mod progress;
pub(in crate::cli) mod redraw;
pub(in crate::cli) mod usage;

pub(in crate::cli) use message::{ERROR, Outcome, RUNS, note, one_line, sentence};
pub(in crate::cli) use usage::report;
