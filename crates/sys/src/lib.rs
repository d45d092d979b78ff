//! Every system call and every unsafe operation of punctual, wrapped once and safe above.
//!
//! Each function makes one call and returns the kernel's result. Policy, retries and meaning belong to the callers.

pub mod alloc;
pub mod boot;
pub mod calls;
pub mod clock;
pub mod cobalt;
pub mod counter;
mod errno;
pub mod fail;
pub mod futex;
pub mod gpio;
pub mod guest_ports;
pub mod handoff;
pub mod ipc;
pub mod lock;
pub mod mapping;
pub mod memory;
pub mod mount;
pub mod network;
pub mod parport;
pub mod perf;
pub mod pipe;
pub mod poll;
#[cfg(target_arch = "x86_64")]
pub mod port;
pub mod process;
pub mod pthread;
pub mod registers;
pub mod sched;
pub mod serial;
pub mod signal;
pub mod signal_handler;
pub mod socket;
pub mod spawn;
pub mod storage;
pub mod terminal;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod thread;
mod time;
pub mod timerfd;
pub mod timers;
pub mod usage;
pub mod waited;
pub mod work;

pub use errno::errno;
use errno::{check, errno_of, unsigned};
