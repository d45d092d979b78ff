//! UIO devices and parallel ports: opening, claiming, and enabling of interrupts.

use host::HostFs;
use model::Link;
use rt::{Parport, UioDevice};
use std::fs::File;
use std::path::Path;

/// A driver that disables an interrupt, which only a program that knows the device can enable again.
const FOR_ITS_OWN_PROGRAM: &str = "uio_pci_generic";

/// Opens the device, with its interrupt enabled.
///
/// # Errors
/// One line of text: the unavailable resource, and the reason.
pub(super) fn open_uio(link: Link, device: &str) -> Result<UioDevice, String> {
    let path = Path::new(device);
    let file = File::options().read(true).write(true).open(path);
    let file =
        file.map_err(|err| super::unusable(link, &err, "run as root, or let its owner give you the right to"))?;
    match host::uio_name(&HostFs::here(), path).as_deref() {
        None => return Err(format!("{link}: {device} is no device of UIO")),
        Some(FOR_ITS_OWN_PROGRAM) => {
            return Err(format!(
                "{link}: {FOR_ITS_OWN_PROGRAM} turns each interrupt off until the program that knows the device has \
                 acknowledged it; a driver that does that itself is needed"
            ));
        }
        Some(_) => {}
    }
    UioDevice::new(file).map_err(|err| match err.raw_os_error() {
        Some(libc::EIO) => format!("{link}: the device has no interrupt"),
        _ => format!("{link}: its interrupt cannot be turned on: {err}"),
    })
}

/// Opens the port, for exclusive use by this process.
///
/// # Errors
/// One line of text: the unavailable resource, and the reason.
pub(super) fn open_parport(link: Link, device: &str) -> Result<Parport, String> {
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
