//! The lab: cells in QEMU guests, on kernels other than the running one, in virtual time.
//!
//! A guest is a kernel and one program, this one, as PID 1 ([`guest`]). QEMU counts its instructions, one nanosecond
//! each: results in a guest are the same to the nanosecond, whatever the load of the host. They show how much a kernel
//! does before it lets a thread run, and nothing about the latency of hardware.
#![forbid(unsafe_code)]

mod apt;
mod channel;
mod clock_marks;
mod config;
mod devices;
mod directories;
mod disk;
mod elf;
mod fetch;
mod guest;
mod guest_files;
mod guest_threads;
mod guests;
mod host_side;
mod image;
mod initramfs;
mod kernel_configs;
mod kernels;
mod left_out;
mod list;
mod machine;
mod measure;
mod memory;
mod modules;
mod network;
mod one_cpu;
mod packages;
mod platform;
mod preemption_models;
mod protocol;
mod qemu;
mod refusal;
mod regular_file;
mod search;
mod shared_memory;
mod snapshot;
mod stick;
mod stick_modules;
mod tar;
mod two_guests;
mod unpack;

pub use config::FoundConfig;
pub use elf::without_sections;
pub use fetch::Fetching;
pub use guest::{is_first_process, run as run_guest};
pub use guests::{Guests, MessageSink};
pub use host_side::{Beside, BesideGuest, GuestClocks};
pub use kernel_configs::config_of;
pub use kernels::ready_observed;
use kernels::{BootableKernel, ready};
pub use left_out::{STARTS_GUESTS, left_out};
pub use list::list;
pub use measure::carry_out;
pub use refusal::why_not;
pub use search::{Approach, Limit, Search, Symbols, Woken};
pub use stick::{is_stick, make_stick, run_stick};
use twox_hash::XxHash3_64;

/// The caller of the lab: a stop flag, and a callback for messages about slow or unusual operations.
#[derive(Clone, Copy)]
#[expect(missing_debug_implementations, reason = "a closure has nothing to show")]
pub struct Monitor<'a> {
    /// Whether the result is no longer wanted.
    pub is_stopped: &'a dyn Fn() -> bool,
    /// Callback for messages to the user.
    pub say: &'a dyn Fn(&str),
}

/// Reason why a cell could not be carried out in the lab.
#[derive(Debug, Clone, thiserror::Error)]
pub enum LabError {
    /// A required program failed or is missing.
    #[error("{program}: {reason}")]
    Program {
        /// Name of the program.
        program: String,
        /// Its error message, and advice.
        reason: String,
    },
    /// A file cannot be read, written or parsed.
    #[error("{path}: {reason}")]
    File {
        /// Path of the file.
        path: String,
        /// Reason, with advice.
        reason: String,
    },
    /// The kernel cannot be measured as requested: it does not boot, or its arguments have no effect.
    #[error("guest on {kernel}: {reason}")]
    Kernel {
        /// The kernel as named in the plan.
        kernel: String,
        /// Reason.
        reason: String,
    },
    /// The guest gave no record.
    #[error("guest on {kernel}: {reason}")]
    Guest {
        /// The kernel as named in the plan.
        kernel: String,
        /// Reason, with the last lines of its console.
        reason: String,
    },
}

impl LabError {
    fn file(path: &std::path::Path, reason: impl ToString) -> LabError {
        LabError::File { path: path.display().to_string(), reason: reason.to_string() }
    }

    fn program(program: &str, reason: impl ToString) -> LabError {
        LabError::Program { program: program.to_owned(), reason: reason.to_string() }
    }
}

/// The error message of a failed program: its last line, but apt's first error line, because warnings may follow.
fn error_line(stderr: &[u8]) -> String {
    let text = String::from_utf8_lossy(stderr);
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let error = lines.clone().find_map(|line| line.strip_prefix("E: "));
    error.or_else(|| lines.next_back()).unwrap_or("failed without a message").to_owned()
}

/// Hash of content: 16 hexadecimal digits (XXH3). It detects accidental changes, not malicious ones.
fn hash(content: &[u8]) -> String {
    format!("{:016x}", XxHash3_64::oneshot(content))
}
