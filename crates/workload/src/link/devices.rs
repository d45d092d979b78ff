//! UIO devices and parallel ports: opening, claiming, and enabling of interrupts.

use punctual_host::HostFs;
use punctual_model::Link;
use punctual_rt::{Parport, UioDevice};
use std::fs::File;
use std::path::Path;

/// A driver that disables an interrupt, which only a program that knows the device can enable again.
const FOR_ITS_OWN_PROGRAM: &str = "uio_pci_generic";

/// Opens the device, with its interrupt enabled. Errors: one line of text: the unavailable resource, and the reason.
pub(super) fn open_uio(link: Link, device: &str) -> Result<UioDevice, String> {
    let path = Path::new(device);
    let file = File::options().read(true).write(true).open(path);
    let file = file.map_err(|err| super::unusable(link, &err, "run as root, or get permission from its owner"))?;
    match punctual_host::uio_name(&HostFs::here(), path).as_deref() {
        None => return Err(format!("{link}: {device} is not a UIO device")),
        Some(FOR_ITS_OWN_PROGRAM) => {
            return Err(format!(
                "{link}: unsupported: {FOR_ITS_OWN_PROGRAM} masks each interrupt until a program for the device has \
                 acknowledged it; use a driver that acknowledges interrupts itself"
            ));
        }
        Some(_) => {}
    }
    UioDevice::new(file).map_err(|err| match err.raw_os_error() {
        Some(libc::EIO) => format!("{link}: the device has no interrupt"),
        _ => format!("{link}: cannot enable its interrupt: {err}"),
    })
}

/// Opens the port, for exclusive use by this process. Errors: one line of text: the unavailable resource, and the
/// reason.
pub(super) fn open_parport(link: Link, device: &str) -> Result<Parport, String> {
    let path = Path::new(device);
    let port = File::options().read(true).write(true).open(path);
    let port = port.map_err(|err| super::unusable(link, &err, "run as root, or join the group that owns it (lp)"))?;
    punctual_sys::parport::ask_for_all(&port)
        .map_err(|_| format!("{link}: {device} is not a parallel port (ppdev)"))?;
    let about = punctual_host::parallel_port(&HostFs::here(), path);
    if about.has_interrupt == Some(false) {
        return Err(format!(
            "{link}: the port has no interrupt; load its driver with one: modprobe parport_pc io=0x378 irq=7"
        ));
    }
    punctual_sys::parport::claim(&port).map_err(|err| match about.users.as_slice() {
        [] => format!("{link}: cannot claim it: {err}"),
        users => format!("{link}: cannot claim it: used by {}; unload or stop the user", users.join(", ")),
    })?;
    Ok(Parport::new(port))
}
