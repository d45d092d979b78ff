//! Whether the processor runs guests by itself (KVM).

use super::check;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// Makes a virtual machine and lets it go again (Documentation/virt/kvm/api.rst, `KVM_CREATE_VM`): that the device is
/// there says little.
///
/// # Errors
/// What opening `/dev/kvm` or the kernel says.
pub fn try_it() -> io::Result<()> {
    const KVM_CREATE_VM: libc::c_ulong = 0xae01;
    let device = File::options().read(true).write(true).open("/dev/kvm")?;
    // SAFETY: the descriptor is open for the length of the call, which takes an integer.
    let machine = check(unsafe { libc::ioctl(device.as_raw_fd(), KVM_CREATE_VM, 0) }.into())?;
    let machine = i32::try_from(machine).map_err(io::Error::other)?;
    // SAFETY: the descriptor is new and nobody else's.
    drop(unsafe { OwnedFd::from_raw_fd(machine) });
    Ok(())
}
