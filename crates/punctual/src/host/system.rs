//! A small system around the first process of a guest: its file systems and its loopback device.

use rt::sys::boot;
use std::io;

/// File systems, and where they are mounted; the places have to exist.
const MOUNTS: [(&str, &str); 5] =
    [("proc", "/proc"), ("sysfs", "/sys"), ("devtmpfs", "/dev"), ("tmpfs", "/tmp"), ("tmpfs", "/var/tmp")];

/// Where a guest has file systems of its own.
pub(crate) fn mount_points() -> impl Iterator<Item = &'static str> {
    MOUNTS.iter().map(|(_, place)| *place)
}

/// Makes what a cell and its loads expect of any system.
///
/// # Errors
/// When the kernel lacks one of the file systems.
pub(crate) fn make_system() -> io::Result<()> {
    MOUNTS.iter().try_for_each(|(kind, place)| boot::mount(kind, place))?;
    // Without a loopback device there is nothing for `tcp` and `udp`; they will say so.
    let _ = boot::bring_up_loopback();
    Ok(())
}
