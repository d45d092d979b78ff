//! Devices of a guest that only some cells need, and their kernel modules.

use super::stick_modules::STICK_MODULES;
use punctual_model::{Cell, FileLoad, GuestThreadSettings, Kernel, Link, Load, LoadPart};
use std::ffi::OsString;
use std::fmt;

/// Devices of a guest in addition to those of every guest. They are part of the key of a snapshot, so the records of
/// cells that need none do not depend on other cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(super) struct Devices {
    /// Devices of a measured response time.
    pub(super) link: LinkDevices,
    /// A disk that an I/O thread serves, mounted at `/var/tmp`; never in virtual time.
    pub(super) has_disk: bool,
}

/// Devices of cells that measure response times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(super) enum LinkDevices {
    /// No additional device.
    #[default]
    None,
    /// PCI devices that interrupt at known times, as many as the shortest period needs.
    Timers,
    /// The same devices, for a driver that only a plan can provide.
    OobTimers,
    /// A third serial port without a backend: its UART loops back to itself.
    Serial,
    /// A third serial port, connected to that of another guest.
    Line,
    /// A network device, connected to that of another guest.
    Network,
}

/// Kernel modules of the timers, without the suffix of a compressor.
const TIMER_MODULES: [&str; 2] = ["uio.ko", "uio_pci_generic.ko"];

/// Kernel modules of all virtio devices. A kernel may have each of them built in.
const VIRTIO_MODULES: [&str; 5] =
    ["virtio.ko", "virtio_ring.ko", "virtio_pci.ko", "virtio_pci_legacy_dev.ko", "virtio_pci_modern_dev.ko"];

/// Further ones of the disk and of its file system.
const DISK_MODULES: [&str; 6] = ["virtio_blk.ko", "crc16.ko", "crc32c_generic.ko", "mbcache.ko", "jbd2.ko", "ext4.ko"];

/// Further ones of the network device.
const NETWORK_MODULES: [&str; 3] = ["failover.ko", "net_failover.ko", "virtio_net.ko"];

/// Names of the modules of all devices, and of sticks.
pub(super) fn all_modules() -> impl Iterator<Item = &'static str> {
    let of_guests = TIMER_MODULES.into_iter().chain(VIRTIO_MODULES).chain(DISK_MODULES).chain(NETWORK_MODULES);
    of_guests.chain(STICK_MODULES)
}

/// Whether a guest with the device of module `name` cannot start without that module.
pub(super) fn is_required(name: &str) -> bool {
    TIMER_MODULES.contains(&name)
}

/// Whether a guest on `kernel` under `load` has a disk: one that is written, or whose thread has settings.
fn has_disk(kernel: &Kernel, load: &Load) -> bool {
    let is_written = |part: &LoadPart| matches!(part, LoadPart::Files { work: FileLoad::Disk, .. });
    match kernel {
        Kernel::Lab(guest) if !kernel.is_virtual() => {
            guest.threads.io != GuestThreadSettings::default() || load.parts().iter().any(is_written)
        }
        _ => false,
    }
}

impl Devices {
    /// Devices that `cell` needs.
    pub(super) fn of(cell: &Cell) -> Devices {
        let link = match cell.task.link() {
            Some(Link::Uio) => LinkDevices::Timers,
            Some(Link::Oob) => LinkDevices::OobTimers,
            Some(Link::SerialLoop(_)) => LinkDevices::Serial,
            Some(Link::Serial { .. }) => LinkDevices::Line,
            Some(Link::Udp(_)) => LinkDevices::Network,
            _ => LinkDevices::None,
        };
        Devices { link, has_disk: has_disk(&cell.kernel, &cell.load) }
    }

    /// QEMU arguments that do not depend on the guest.
    pub(super) fn arguments(self) -> impl Iterator<Item = OsString> {
        let (count, words) = match self.link {
            LinkDevices::None | LinkDevices::Line | LinkDevices::Network => (0, ["", ""]),
            LinkDevices::Timers | LinkDevices::OobTimers => (Link::MAX_DEVICES, ["-device", "edu"]),
            LinkDevices::Serial => (1, ["-serial", "null"]),
        };
        (0..count).flat_map(move |_| words.map(OsString::from))
    }

    /// Modules of the kernel that drive these devices.
    pub(super) fn modules(self) -> Vec<&'static str> {
        let has_network = self.link == LinkDevices::Network;
        let needed: [(bool, &[&str]); 4] = [
            (self.link == LinkDevices::Timers, &TIMER_MODULES),
            (self.has_disk || has_network, &VIRTIO_MODULES),
            (self.has_disk, &DISK_MODULES),
            (has_network, &NETWORK_MODULES),
        ];
        needed.into_iter().filter(|(is_needed, _)| *is_needed).flat_map(|(_, names)| names).copied().collect()
    }
}

/// Suffix of the description of a machine.
impl fmt::Display for Devices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.link {
            LinkDevices::None => {}
            LinkDevices::Timers | LinkDevices::OobTimers => write!(f, ", {} edu", Link::MAX_DEVICES)?,
            LinkDevices::Serial | LinkDevices::Line => write!(f, ", 3 serial ports")?,
            LinkDevices::Network => write!(f, ", virtio network")?,
        }
        if self.has_disk { write!(f, ", virtio disk") } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_cells_that_need_a_disk_have_one_and_none_in_virtual_time() {
        for (kernel, load, has_disk) in [
            ("", "disk", false),
            ("clock=emulated", "cpu", false),
            ("clock=emulated", "files", false),
            ("clock=emulated", "cpu+disk", true),
            ("clock=emulated", "high", true),
            ("clock=kvm", "disk:/var/tmp", true),
            ("clock=emulated io_policy=other", "none", true),
            ("clock=emulated io_cpus=0", "cpu", true),
            ("clock=emulated vcpu_cpus=0", "cpu", false),
        ] {
            let kernel = format!("/k {kernel}").parse().unwrap();
            let devices =
                Devices { link: LinkDevices::None, has_disk: super::has_disk(&kernel, &load.parse().unwrap()) };
            assert_eq!(devices.has_disk, has_disk, "{kernel} {load}");
            assert_eq!(devices.to_string(), if has_disk { ", virtio disk" } else { "" });
            assert_eq!(devices.modules().is_empty(), !has_disk);
        }
    }
}
