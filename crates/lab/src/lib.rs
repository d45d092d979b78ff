//! The lab: cells in guests of QEMU, on kernels other than the one that runs here, in virtual time.
//!
//! A guest is a kernel and one program, this one, which is its first process ([`guest`]). QEMU counts its instructions, and
//! each is a nanosecond: what a cell measures there is the same to the nanosecond whatever else this machine does. It says which
//! kernel does how much before it lets a thread run, and nothing about how late any hardware is.
#![forbid(unsafe_code)]

mod devices;
mod directories;
mod elf;
mod fetch;
mod guest;
mod guests;
mod image;
mod initramfs;
mod kernels;
mod list;
mod machine;
mod measure;
mod memory;
mod modules;
mod one_cpu;
mod packages;
mod preemption_models;
mod protocol;
mod qemu;
mod refusal;
mod regular_file;
mod shipped;
mod snapshot;
mod tar;
mod two_guests;
mod unpack;

pub use fetch::Fetching;
pub use guest::{is_first_process, run as run_guest};
pub use guests::{Guests, Say};
pub use kernels::ready_observed;
use kernels::{BootableKernel, ready};
pub use list::list;
pub use measure::carry_out;
pub use refusal::why_not;
use twox_hash::XxHash3_64;

/// The caller of the lab: whether it has been stopped, and how it learns what takes long or is unusual.
#[derive(Clone, Copy)]
#[expect(missing_debug_implementations, reason = "a closure has nothing to show")]
pub struct Monitor<'a> {
    /// Whether the result is not wanted any more.
    pub is_stopped: &'a dyn Fn() -> bool,
    /// Takes a line for the user.
    pub say: &'a dyn Fn(&str),
}

/// Why a cell could not be carried out in the lab.
#[derive(Debug, Clone, thiserror::Error)]
pub enum LabError {
    /// A program that is needed failed or is missing.
    #[error("{program}: {reason}")]
    Program {
        /// Which.
        program: String,
        /// What it said, and what to do.
        reason: String,
    },
    /// A file cannot be read, written or understood.
    #[error("{path}: {reason}")]
    File {
        /// Which.
        path: String,
        /// Why.
        reason: String,
    },
    /// The kernel cannot be measured as asked: it does not boot, or does not do what its arguments say.
    #[error("the guest on {kernel} {reason}")]
    Kernel {
        /// The kernel as it was asked for.
        kernel: String,
        /// Why.
        reason: String,
    },
    /// The guest gave no record.
    #[error("the guest on {kernel} {reason}")]
    Guest {
        /// The kernel as it was asked for.
        kernel: String,
        /// What happened, with the last lines of its console.
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

/// What a program that failed says is wrong: its last line, of apt its first error, because warnings may follow.
fn last_words(stderr: &[u8]) -> String {
    let said = String::from_utf8_lossy(stderr);
    let mut lines = said.lines().map(str::trim).filter(|line| !line.is_empty());
    let error = lines.clone().find_map(|line| line.strip_prefix("E: "));
    error.or_else(|| lines.next_back()).unwrap_or("failed without a word").to_owned()
}

/// Stands for a content: 16 hexadecimal digits (XXH3). It says that something is the same, not that nobody meant harm.
fn hash(content: &[u8]) -> String {
    format!("{:016x}", XxHash3_64::oneshot(content))
}
