//! What a serial port's driver has in sysfs.

use super::HostFs;
use std::path::Path;

/// Has the chip of the serial port `device` interrupt for each byte, where its driver allows to choose: it otherwise waits
/// for several (`rx_trig_bytes`, Documentation/ABI/testing/sysfs-tty).
pub(crate) fn hand_on_each_byte(fs: &HostFs, device: &Path) {
    if let Some(name) = device.file_name().and_then(|name| name.to_str()) {
        let file = fs.root.join("sys/class/tty").join(name).join("rx_trig_bytes");
        // Most drivers have no such file.
        let _ = std::fs::write(file, "1");
    }
}
