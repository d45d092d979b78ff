//! The next boot of this machine: with an installed kernel, once, without a change of what it boots by default.

mod grub;
mod kexec;
mod unit;

use super::{HostFs, file};
use punctual_model::InstalledKernel;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

pub use unit::ResumeUnit;

/// Argument that is added to those of a plan: a kernel that panics restarts the machine, which then boots as always
/// (kernel-parameters.txt).
const AFTER_PANIC: &str = "panic=30";

/// A way to boot an installed kernel once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BootWay {
    /// By an entry of GRUB that counts for the next boot only: through the firmware, as any boot.
    Grub,
    /// By the running kernel (kexec(8)): the firmware is left out, and devices keep some of their state.
    Kexec,
}

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

/// The kernels that can be booted here: those with an image in `/boot` and modules, sorted.
pub fn installed_kernels(fs: &HostFs) -> Vec<String> {
    let names = fs.names_in("boot");
    let releases = names.iter().filter_map(|name| name.strip_prefix("vmlinuz-"));
    let has_modules = |release: &&str| fs.root.join("lib/modules").join(release).is_dir();
    releases.filter(has_modules).map(str::to_owned).collect()
}

/// The way to boot `kernel`: GRUB before kexec. Errors: if there is none, with the reason of each.
pub fn way_to_boot(fs: &HostFs, kernel: &InstalledKernel) -> Result<BootWay, NoBoot> {
    let Err(grub) = grub::check(fs, kernel) else { return Ok(BootWay::Grub) };
    let Err(kexec) = kexec::check(fs, kernel) else { return Ok(BootWay::Kexec) };
    Err(NoBoot::NoWay { kernel: kernel.clone(), grub, kexec })
}

/// Sets the machine to boot `kernel` next, once, `without` words that other kernels of the run have. Errors: if a file
/// cannot be written, or a program failed.
pub fn boot_next(fs: &HostFs, way: BootWay, kernel: &InstalledKernel, without: &[String]) -> Result<(), NoBoot> {
    let mut without: Vec<&str> = without.iter().map(String::as_str).collect();
    // Neither what an earlier boot of ours has added.
    without.extend(kernel.arguments.split_whitespace().chain([AFTER_PANIC]));
    match way {
        BootWay::Grub => grub::boot_next(fs, kernel, &without),
        BootWay::Kexec => kexec::boot_next(fs, kernel, &without),
    }
}

/// The words of a command line without some of them, and then those of `kernel`.
fn with_arguments<'a>(
    words: impl Iterator<Item = &'a str>,
    kernel: &'a InstalledKernel,
    without: &[&str],
) -> Vec<&'a str> {
    let kept = words.filter(|word| !without.contains(word));
    kept.chain(kernel.arguments.split_whitespace()).chain([AFTER_PANIC]).collect()
}

/// The users besides `own` with a session on this machine (systemd's `/run/systemd/sessions`), sorted.
pub fn other_users(fs: &HostFs, own: u32) -> Vec<String> {
    const SESSIONS: &str = "run/systemd/sessions";
    let files = fs.names_in(SESSIONS).into_iter().filter(|name| !name.ends_with(".ref"));
    let mut users: Vec<String> = files
        .filter_map(|name| fs.text(Path::new(SESSIONS).join(name)))
        .filter_map(|text| {
            let value = |key: &str| text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
            let is_other = value("CLASS") == Some("user") && value("UID")?.parse() != Ok(own);
            is_other.then(|| value("USER").unwrap_or("another user").to_owned())
        })
        .collect();
    users.sort_unstable();
    users.dedup();
    users
}

/// The first directory above `path`, or itself, in which another user could put something else in its place. Root goes on
/// with the run after a boot, and starts what it names.
pub fn changeable_by_others(path: &Path) -> Option<PathBuf> {
    let is_safe = |found: std::fs::Metadata| {
        let mode = found.mode();
        // A sticky directory does not let one user rename the files of another.
        found.uid() == 0 && (mode & 0o022 == 0 || mode & 0o1000 != 0)
    };
    path.ancestors().find(|part| !part.symlink_metadata().is_ok_and(is_safe)).map(Path::to_owned)
}

/// The kind of file system that holds `path`, if a boot empties it.
pub fn is_lost_by_a_boot(fs: &HostFs, path: &Path) -> Option<String> {
    let (_, kind) = mount_of(&fs.text("proc/mounts").unwrap_or_default(), path);
    ["tmpfs", "ramfs", "rootfs", "overlay"].contains(&kind.as_str()).then_some(kind)
}

/// Device and type of the file system that holds `path`.
fn mount_of(mounts: &str, path: &Path) -> (String, String) {
    let fields = mounts.lines().filter_map(|line| {
        let mut fields = line.split(' ');
        Some((fields.next()?, fields.next()?, fields.next()?))
    });
    // The last of several at one place is on top.
    let holding = fields.filter(|(_, at, _)| path.starts_with(at)).max_by_key(|(_, at, _)| at.len());
    holding.map_or_else(
        || ("an unknown device".into(), "unknown".into()),
        |(device, _, kind)| (device.into(), kind.into()),
    )
}

/// Restarts the machine as its init system does. Errors: if that cannot be started.
pub fn restart_system(way: BootWay) -> Result<(), NoBoot> {
    let verb = if way == BootWay::Kexec { "kexec" } else { "reboot" };
    run("systemctl", &[verb])
}

/// Removes what [`boot_next`] and [`ResumeUnit`] have left; returns it. Errors: the first file that cannot be removed.
pub fn forget_boots(fs: &HostFs) -> Result<Vec<PathBuf>, NoBoot> {
    let removed = unit::remove(fs)?.into_iter().chain(grub::forget(fs)?);
    Ok(removed.collect())
}

/// Runs a program of the machine. Errors: with its first line of output if it fails.
fn run(program: &str, arguments: &[&str]) -> Result<(), NoBoot> {
    const TIMEOUT: std::time::Duration = std::time::Duration::from_secs(60);
    let mut command = std::process::Command::new(program);
    let output = super::output_of(command.args(arguments), TIMEOUT)
        .map_err(|err| NoBoot::Failed(format!("{program} {}: {err}", arguments.join(" "))))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let said = said.lines().next().unwrap_or("no message").to_owned();
    Err(NoBoot::Failed(format!("{program} {}: {said}", arguments.join(" "))))
}

/// Writes a file of the machine, or removes it when `text` is empty.
fn write(path: &Path, text: &str) -> Result<(), NoBoot> {
    let written = if text.is_empty() { std::fs::remove_file(path) } else { file::replace(path, text.as_bytes()) };
    written.map_err(|err| NoBoot::Io(path.to_owned(), err))
}

#[cfg(test)]
mod tests;
