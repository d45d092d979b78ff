//! Marking a place in the kernel's trace, and stopping there.

use super::HostFs;
use rt::sys::boot;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::PathBuf;

/// The two places that tracefs is mounted at (Documentation/trace/ftrace.rst).
pub(super) const MOUNTS: [&str; 2] = ["sys/kernel/tracing", "sys/kernel/debug/tracing"];

/// Where tracefs is mounted, with room for private instances; `None` when it is nowhere. Looking mounts it, where the
/// kernel does so by itself (`debug/tracing`).
pub(crate) fn tracing_dir() -> Option<PathBuf> {
    let root = HostFs::running().root;
    MOUNTS.iter().map(|mount| root.join(mount)).find(|dir| dir.join("instances").is_dir())
}

/// Mounts tracefs, in a system that we have made: one that others use keeps what it has.
///
/// # Errors
/// When the kernel has none.
pub(crate) fn mount_tracing() -> io::Result<()> {
    boot::mount("tracefs", &format!("/{}", MOUNTS[0]))
}

/// The trace, open for writing. Stopping it is what was asked for, so nothing is put back.
#[derive(Debug)]
pub(crate) struct TraceMark {
    marker: File,
    tracing_on: File,
}

impl TraceMark {
    /// Opens the trace where it is mounted.
    ///
    /// # Errors
    /// One line: the file, the reason and what to do.
    pub(crate) fn open(fs: &HostFs) -> Result<TraceMark, String> {
        let open = |path: PathBuf| {
            let explain = |err: io::Error| {
                format!("cannot write to {}: {err}; run as root, with tracefs mounted", path.display())
            };
            OpenOptions::new().write(true).open(&path).map_err(explain)
        };
        let mounted = MOUNTS.iter().map(|mount| fs.root.join(mount)).find(|dir| dir.join("trace_marker").exists());
        let dir = mounted.unwrap_or_else(|| fs.root.join(MOUNTS[0]));
        Ok(TraceMark { marker: open(dir.join("trace_marker"))?, tracing_on: open(dir.join("tracing_on"))? })
    }

    /// Writes `text` into the trace, and stops tracing.
    ///
    /// # Errors
    /// The kernel's reason; that nothing is being traced, if so (tracing_mark_write, kernel/trace/trace.c).
    pub(crate) fn stop(&mut self, text: &str) -> io::Result<()> {
        self.marker.write_all(text.as_bytes()).map_err(|err| match err.raw_os_error() {
            Some(libc::EBADF) => io::Error::other("nothing is being traced (tracing_on is 0)"),
            _ => err,
        })?;
        self.tracing_on.write_all(b"0")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_mounts_are_tried_and_the_trace_is_marked_before_it_is_stopped() {
        for mount in MOUNTS {
            let root = std::env::temp_dir().join(format!("punctual-trace-{}", std::process::id()));
            let dir = root.join(mount);
            std::fs::create_dir_all(&dir).unwrap();
            for name in ["trace_marker", "tracing_on"] {
                std::fs::write(dir.join(name), "").unwrap();
            }
            TraceMark::open(&HostFs { root: root.clone() }).unwrap().stop("hit").unwrap();
            let text = |name: &str| std::fs::read_to_string(dir.join(name)).unwrap();
            assert_eq!((text("trace_marker").as_str(), text("tracing_on").as_str()), ("hit", "0"));
            std::fs::remove_dir_all(&root).unwrap();
        }
        let message = TraceMark::open(&HostFs { root: "/nonexistent".into() }).unwrap_err();
        assert!(message.starts_with("cannot write to /nonexistent/sys/kernel/tracing/trace_marker: "), "{message}");
    }
}
