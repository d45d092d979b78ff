//! Traces of the kernel's tracer (ftrace): pages of its ring buffer, the layouts of its events, and files of both.
//!
//! Pure: bytes in, events for `analysis::explain` out. What is read may come from anywhere.
#![forbid(unsafe_code)]

mod capture;
mod dat;
mod decode;
mod format;
#[cfg(test)]
mod fuzz;
mod layouts;
mod marks;
mod pages;
mod recording;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod timeline;
mod window;

pub use capture::{Again, Capture, CaptureError};
pub use dat::{Buffer, DatError, DatFile, DatHead, Machine};
pub use decode::{BEGIN, Decoder, END, ReadCounts, VECTORS};
pub use layouts::{LayoutError, Layouts};
pub use marks::{MARKS, marks};
pub use recording::{DatRecording, RecordingError};
pub use timeline::{Spike, timeline};
pub use window::{Window, functions};
