//! The choice of a way to boot a kernel, and what has to be true before.

use super::common::{AFTER_PANIC, NoBoot, mount_of, run};
use super::{grub, kexec, unit};
use crate::HostFs;
use punctual_model::InstalledKernel;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A way to boot an installed kernel once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BootWay {
    /// By an entry of GRUB that counts for the next boot only: through the firmware, as any boot.
    Grub,
    /// By the running kernel (kexec(8)): the firmware is left out, and devices keep some of their state.
    Kexec,
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

/// The first directory above `path`, or itself, in which another user could put something else in its place: after a
/// boot root goes on with the run there, and starts what it names.
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
    let [_, _, kind, _] = mount_of(fs, path);
    ["tmpfs", "ramfs", "rootfs", "overlay"].contains(&kind.as_str()).then_some(kind)
}

/// Restarts the machine as its init system does. Errors: if that cannot be started.
pub fn restart_system(way: BootWay) -> Result<(), NoBoot> {
    let verb = if way == BootWay::Kexec { "kexec" } else { "reboot" };
    run("systemctl", &[verb])
}

/// Removes what [`boot_next`] and [`unit::ResumeUnit`] have left; returns it. Errors: the first file that cannot be
/// removed.
pub fn forget_boots(fs: &HostFs) -> Result<Vec<PathBuf>, NoBoot> {
    // The unit last: while it is there, the machine goes on, and removes the rest.
    let entry = grub::forget(fs)?;
    punctual_sys::fail::point("boot-entry-removed");
    let loaded = kexec::forget(fs)?;
    Ok(entry.into_iter().chain(loaded).chain(unit::remove(fs)?).collect())
}
