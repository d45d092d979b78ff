//! Run directories and sample files: the only module that defines their file formats.
//!
//! `run.jsonl` holds a header line and one line for each measurement. Lines are only appended, each with one `write`
//! and synced to disk before the next measurement starts; a truncated line, or one with a wrong checksum, is skipped
//! and reported by the reader. `samples/` holds the raw samples of each measurement, if requested.
#![forbid(unsafe_code)]

mod boots;
mod captures;
mod directory;
mod failed;
mod films;
mod foreign;
mod imported;
mod lines;
mod list;
mod merge;
mod monitor;
mod reader;
mod samples;
mod seal;
mod writer;

pub use captures::{MOST_CAPTURE_BYTES, captures, read_capture};
use directory::{FILE, IMPORTED_FILE, imported_file_in, line, own_directory};
pub use directory::{StoreError, file_of, is_run, report_path, samples_dir};
pub use films::keep_film;
pub use imported::{ImportedRun, keep as keep_imported, read as read_imported};
pub use list::{below, latest};
pub use merge::{MergeError, Merged, Part, ShardProgress, merge};
pub use monitor::{MonitorHistory, MonitorLines, read_monitor};
pub use reader::{Hosts, Run, read};
pub use samples::{ActivationRow, ActivationWriter, SampleWriter, check_samples, discard as discard_samples};
pub use writer::{Writer, append, create, write_page};

#[cfg(test)]
mod tests;
