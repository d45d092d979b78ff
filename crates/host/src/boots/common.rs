//! What the ways to boot a kernel share: errors, programs, files, command lines.

use crate::{HostFs, file};
use punctual_model::InstalledKernel;
use std::io;
use std::path::{Path, PathBuf};

/// Argument that is added to those of a plan: a kernel that panics restarts the machine, which then boots as always
/// (kernel-parameters.txt).
pub(super) const AFTER_PANIC: &str = "panic=30";

/// Why an installed kernel cannot be booted, one line for each kind.
#[derive(Debug, thiserror::Error)]
pub enum NoBoot {
    /// There is neither a known boot loader nor kexec.
    #[error("neither GRUB nor kexec can boot {kernel} here: {grub}; {kexec}")]
    NoWay {
        /// The kernel.
        kernel: InstalledKernel,
        /// Why not by GRUB.
        grub: String,
        /// Why not by kexec.
        kexec: String,
    },
    /// A file cannot be written, or a program failed.
    #[error("{0}: {1}")]
    Io(PathBuf, io::Error),
    /// A program failed.
    #[error("{0}")]
    Failed(String),
}

/// The words of a command line without some of them, and then those of `kernel`.
pub(super) fn with_arguments<'a>(
    words: impl Iterator<Item = &'a str>,
    kernel: &'a InstalledKernel,
    without: &[&str],
) -> Vec<&'a str> {
    let kept = words.filter(|word| !without.contains(word));
    kept.chain(kernel.arguments.split_whitespace()).chain([AFTER_PANIC]).collect()
}

/// The line of `/proc/mounts` of the file system that holds `path`: device, place, type, options (proc_pid_mounts(5)).
pub(super) fn mount_of(fs: &HostFs, path: &Path) -> [String; 4] {
    let mounts = fs.text("proc/mounts").unwrap_or_default();
    let lines = mounts.lines().map(|line| line.split(' ').map(str::to_owned));
    let fields = lines.filter_map(|mut fields| Some([fields.next()?, fields.next()?, fields.next()?, fields.next()?]));
    // The last of several at one place is on top.
    let holding = fields.filter(|[_, at, ..]| path.starts_with(at)).max_by_key(|[_, at, ..]| at.len());
    holding.unwrap_or_else(|| ["an unknown device", "/", "unknown", ""].map(str::to_owned))
}

/// Runs a program of the machine. Errors: with its first line of output if it fails.
pub(super) fn run(program: &str, arguments: &[&str]) -> Result<(), NoBoot> {
    const TIMEOUT: std::time::Duration = std::time::Duration::from_secs(60);
    let mut command = std::process::Command::new(program);
    let output = crate::output_of(command.args(arguments), TIMEOUT)
        .map_err(|err| NoBoot::Failed(format!("{program} {}: {err}", arguments.join(" "))))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let said = said.lines().next().unwrap_or("no message").to_owned();
    Err(NoBoot::Failed(format!("{program} {}: {said}", arguments.join(" "))))
}

/// Writes a file of the machine, or removes it when `content` is empty.
pub(super) fn write(path: &Path, content: &[u8]) -> Result<(), NoBoot> {
    let written = if content.is_empty() { std::fs::remove_file(path) } else { file::replace_content(path, content) };
    written.map_err(|err| NoBoot::Io(path.to_owned(), err))
}
