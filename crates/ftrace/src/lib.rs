//! Traces of the kernel's tracer (ftrace): pages of its ring buffer, the layouts of its events, and files of both.
//!
//! Pure: bytes in, events for `punctual_analysis::explain` out. What is read may come from anywhere.
#![forbid(unsafe_code)]

mod capture;
mod dat;
mod decode;
mod format;
#[cfg(test)]
mod fuzz;
mod layouts;
mod marks;
mod packed;
mod pages;
mod perf;
mod recorded_file;
mod recording;
mod stream;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod text;
mod timeline;
mod timer_clock;
mod window;

pub use capture::{Again, Capture, CaptureError};
pub use dat::{Buffer, DatError, DatFile, DatHead, Machine};
pub use decode::{BEGIN, Decoder, END, PROBE, ReadCounts, VECTORS};
pub use layouts::{LayoutError, Layouts};
pub use marks::{MARKS, marks};
pub use recorded_file::RecordedFile;
pub use recording::{DatRecording, RecordingError};
pub use timeline::{Spike, timeline};
pub use window::{Window, functions};
