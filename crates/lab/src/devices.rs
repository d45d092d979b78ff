//! Devices that a machine of the lab has for a cell that measures answers, and the modules that drive them.

use model::{Cell, Link};
use std::ffi::OsString;
use std::fmt;

/// What a guest has beside the devices of every guest. It is part of what a saved state follows from, so cells that need
/// nothing have the same records whatever else is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(super) enum Devices {
    /// Nothing.
    #[default]
    None,
    /// As many PCI devices that interrupt at known times as the shortest period needs.
    Timers,
    /// A third serial port, with nothing behind it: its chip sends to itself.
    Serial,
    /// A third serial port, joined to that of another guest.
    Line,
}

/// Modules of a kernel's package that drive them, without what a compressor adds to a name.
pub(super) const MODULES: [&str; 2] = ["uio.ko", "uio_pci_generic.ko"];

impl Devices {
    /// What `cell` needs.
    pub(super) fn of(cell: &Cell) -> Devices {
        match cell.task.link() {
            Some(Link::Uio) => Devices::Timers,
            Some(Link::SerialLoop(_)) => Devices::Serial,
            Some(Link::Serial { .. }) => Devices::Line,
            _ => Devices::None,
        }
    }

    /// What QEMU is started with, unless it depends on the guest.
    pub(super) fn arguments(self) -> impl Iterator<Item = OsString> {
        let (count, words) = match self {
            Devices::None | Devices::Line => (0, ["", ""]),
            Devices::Timers => (Link::MOST_DEVICES, ["-device", "edu"]),
            Devices::Serial => (1, ["-serial", "null"]),
        };
        (0..count).flat_map(move |_| words.map(OsString::from))
    }

    /// What drives them, of the kernel's own modules.
    pub(super) fn modules(self) -> &'static [&'static str] {
        if self == Devices::Timers { &MODULES } else { &[] }
    }
}

/// As it is appended to what a machine is.
impl fmt::Display for Devices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Devices::None => Ok(()),
            Devices::Timers => write!(f, ", {} edu", Link::MOST_DEVICES),
            Devices::Serial | Devices::Line => write!(f, ", 3 serial ports"),
        }
    }
}
