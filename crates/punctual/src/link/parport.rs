//! Parallel ports, looked up and claimed.

use crate::host::{self, HostFs};
use model::Link;
use rt::{Parport, sys};
use std::fs::File;
use std::path::Path;

/// The port, for this process alone.
///
/// # Errors
/// One line: what cannot be had, and why.
pub(super) fn open(link: Link, device: &str) -> Result<Parport, String> {
    let path = Path::new(device);
    let port = File::options().read(true).write(true).open(path);
    let port = port.map_err(|err| super::unusable(link, &err, "run as root, or join the group that owns it (lp)"))?;
    sys::parport::ask_for_all(&port).map_err(|_| format!("{link}: {device} is no parallel port (ppdev)"))?;
    let about = host::parallel_port(&HostFs::here(), path);
    if about.has_interrupt == Some(false) {
        return Err(format!(
            "{link}: the port has no interrupt; load its driver with one: modprobe parport_pc io=0x378 irq=7"
        ));
    }
    sys::parport::claim(&port).map_err(|err| match about.users.as_slice() {
        [] => format!("{link}: cannot be claimed: {err}"),
        users => format!("{link}: cannot be claimed: it is used by {}; unload or end that", users.join(", ")),
    })?;
    Ok(Parport::new(port))
}
