//! Writing a mark into the kernel's trace, and stopping the trace.

use super::HostFs;
use super::mounts::TRACEFS_MOUNTS;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::PathBuf;

/// The trace, open for writing. The stop is the purpose, so nothing is restored.
#[derive(Debug)]
pub struct TraceMark {
    /// Where tracefs is mounted.
    pub dir: PathBuf,
    marker: File,
    tracing_on: File,
}

impl TraceMark {
    /// Opens the trace where it is mounted. Errors: one line with the file, the reason and advice.
    pub fn open(fs: &HostFs) -> Result<TraceMark, String> {
        let open = |path: PathBuf| {
            let explain = |err: io::Error| {
                format!("cannot write to {}: {err}; run as root, with tracefs mounted", path.display())
            };
            OpenOptions::new().write(true).open(&path).map_err(explain)
        };
        let mounted =
            TRACEFS_MOUNTS.iter().map(|mount| fs.root.join(mount)).find(|dir| dir.join("trace_marker").exists());
        let dir = mounted.unwrap_or_else(|| fs.root.join(TRACEFS_MOUNTS[0]));
        let (marker, tracing_on) = (open(dir.join("trace_marker"))?, open(dir.join("tracing_on"))?);
        Ok(TraceMark { dir, marker, tracing_on })
    }

    /// Writes `text` into the trace, and stops tracing. Errors: the kernel's error; also when tracing is off
    /// (tracing_mark_write, kernel/trace/trace.c).
    pub fn stop(&mut self, text: &str) -> io::Result<()> {
        self.marker.write_all(text.as_bytes()).map_err(|err| match err.raw_os_error() {
            Some(libc::EBADF) => io::Error::other("tracing is off (tracing_on is 0)"),
            _ => err,
        })?;
        self.tracing_on.write_all(b"0")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Scratch;

    #[test]
    fn both_mounts_are_tried_and_the_trace_is_marked_before_it_is_stopped() {
        for mount in TRACEFS_MOUNTS {
            let scratch = Scratch::make();
            let files = ["trace_marker", "tracing_on"].map(|name| scratch.file(&format!("{mount}/{name}"), ""));
            TraceMark::open(&scratch.machine()).unwrap().stop("hit").unwrap();
            let texts = files.map(|file| std::fs::read_to_string(file).unwrap());
            assert_eq!(texts, ["hit", "0"]);
        }
        let message = TraceMark::open(&HostFs { root: "/nonexistent".into() }).unwrap_err();
        assert!(message.starts_with("cannot write to /nonexistent/sys/kernel/tracing/trace_marker: "), "{message}");
    }
}
