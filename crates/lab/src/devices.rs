//! Additional devices of a lab machine for cells that measure response times, and their kernel modules.

use model::{Cell, Link};
use std::ffi::OsString;
use std::fmt;

/// Devices of a guest in addition to those of every guest. They are part of the key of a snapshot, so the records of
/// cells that need none do not depend on other cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(super) enum Devices {
    /// No additional device.
    #[default]
    None,
    /// PCI devices that interrupt at known times, as many as the shortest period needs.
    Timers,
    /// A third serial port without a backend: its UART loops back to itself.
    Serial,
    /// A third serial port, connected to that of another guest.
    Line,
}

/// Kernel modules of these devices, without the suffix of a compressor.
pub(super) const MODULES: [&str; 2] = ["uio.ko", "uio_pci_generic.ko"];

impl Devices {
    /// Devices that `cell` needs.
    pub(super) fn of(cell: &Cell) -> Devices {
        match cell.task.link() {
            Some(Link::Uio) => Devices::Timers,
            Some(Link::SerialLoop(_)) => Devices::Serial,
            Some(Link::Serial { .. }) => Devices::Line,
            _ => Devices::None,
        }
    }

    /// QEMU arguments that do not depend on the guest.
    pub(super) fn arguments(self) -> impl Iterator<Item = OsString> {
        let (count, words) = match self {
            Devices::None | Devices::Line => (0, ["", ""]),
            Devices::Timers => (Link::MAX_DEVICES, ["-device", "edu"]),
            Devices::Serial => (1, ["-serial", "null"]),
        };
        (0..count).flat_map(move |_| words.map(OsString::from))
    }

    /// Modules of the kernel that drive these devices.
    pub(super) fn modules(self) -> &'static [&'static str] {
        if self == Devices::Timers { &MODULES } else { &[] }
    }
}

/// Suffix of the description of a machine.
impl fmt::Display for Devices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Devices::None => Ok(()),
            Devices::Timers => write!(f, ", {} edu", Link::MAX_DEVICES),
            Devices::Serial | Devices::Line => write!(f, ", 3 serial ports"),
        }
    }
}
