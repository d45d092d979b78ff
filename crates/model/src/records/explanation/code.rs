//! Places in the code of a watched program.

use serde::{Deserialize, Serialize};

/// One frame of a stack. Names come from files of the watched program and may contain anything that is printable.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema)]
pub struct CodeFrame {
    /// Function; `null` without symbols.
    pub function: Option<String>,
    /// Source file, as the compiler recorded it; `null` without debug information.
    pub file: Option<String>,
    /// Line in it; `null` without debug information.
    pub line: Option<u32>,
    /// Name of the mapped file, without its directory, like `libc.so.6`, or of another mapping, like `[vdso]`.
    pub object: String,
    /// Address of the instruction as in that file, as `objdump -d` and `addr2line` have it; `null` where no file tells.
    pub address: Option<u64>,
}

/// What made the kernel take a sample of a stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum SampledAt {
    /// The thread left the CPU.
    Switch,
    /// A page fault.
    Fault,
    /// A time on the CPU was over.
    Clock,
}

/// The place in the code of a share of a late activation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct CodePlace {
    /// The innermost frame of the program itself; of those, one with a line, if any has one.
    pub at: CodeFrame,
    /// Number of samples with this function.
    pub samples: u32,
    /// Number of samples in the share: one for each sleep, and one for a quarter of a millisecond of running.
    pub of: u32,
    /// Stack of one of these samples, innermost frame first: up to [`CodePlace::FRAMES`].
    pub stack: Vec<CodeFrame>,
}

impl CodePlace {
    /// The most frames that are kept of one stack.
    pub const FRAMES: usize = 16;
}
