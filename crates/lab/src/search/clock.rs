//! Virtual time of a guest that runs, by its ACPI timer: a command of QEMU's monitor reads it and changes nothing.

use super::super::qemu::{Limits, Qemu, QemuError};

/// Port of the timer on QEMU's `pc` (hw/acpi/piix4.c), as its firmware (SeaBIOS) places it.
const READ: &str = "i /wx 0x608";
/// Its rate, Hz, and the number of its values (ACPI 6.5, 4.8.3.3).
const HZ: u64 = 3_579_545;
const VALUES: u64 = 1 << 24;

/// The time since a guest went on from its rest.
#[derive(Debug)]
pub(super) struct GuestTime {
    last: u64,
    elapsed: u64,
}

impl GuestTime {
    /// Begins at the present time of a paused guest. Errors: if it cannot be read.
    pub(super) fn begin(qemu: &mut Qemu, limits: Limits<'_>) -> Result<GuestTime, QemuError> {
        Ok(GuestTime { last: value(qemu, limits)?, elapsed: 0 })
    }

    /// Reads the elapsed time, ns: that of the last interrupt of a timer of QEMU if the guest runs. To be called more
    /// often than every 4.6 s. Errors: if the guest has ended.
    pub(super) fn elapsed_ns(&mut self, qemu: &mut Qemu, limits: Limits<'_>) -> Result<u64, QemuError> {
        let value = value(qemu, limits)?;
        self.elapsed += value.wrapping_sub(self.last) % VALUES;
        self.last = value;
        Ok(u64::try_from(u128::from(self.elapsed) * 1_000_000_000 / u128::from(HZ)).unwrap_or(u64::MAX))
    }
}

fn value(qemu: &mut Qemu, limits: Limits<'_>) -> Result<u64, QemuError> {
    let said = qemu.monitor(READ, limits)?;
    let value = said.rsplit_once("0x").and_then(|(_, digits)| u64::from_str_radix(digits.trim(), 16).ok());
    value.filter(|value| *value < VALUES).ok_or_else(|| QemuError::Refused(format!("no time of the guest: {said}")))
}
