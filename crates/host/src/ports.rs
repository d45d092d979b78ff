//! Parallel ports, serial ports and UIO devices, as their drivers show them in files.

use super::HostFs;
use std::path::Path;

/// Properties of a parallel port.
#[derive(Debug, PartialEq, Eq)]
pub struct ParallelPort {
    /// Whether it has an interrupt; `None` when the driver does not report it.
    pub has_interrupt: Option<bool>,
    /// Drivers and programs that use it.
    pub users: Vec<String>,
}

/// The parallel port `device` (Documentation/admin-guide/parport.rst: the driver's files below sysctl).
pub fn parallel_port(fs: &HostFs, device: &Path) -> ParallelPort {
    let place = name_of(device).map(|name| format!("proc/sys/dev/parport/{name}")).unwrap_or_default();
    ParallelPort {
        // -1 stands for none (PARPORT_IRQ_NONE, linux/parport.h).
        has_interrupt: fs.number::<i64>(format!("{place}/irq")).map(|irq| irq != -1),
        users: fs.directories_in(&format!("{place}/devices")),
    }
}

/// The driver's name for a UIO device; `None` for another kind of device.
pub fn uio_name(fs: &HostFs, device: &Path) -> Option<String> {
    fs.text(format!("sys/class/uio/{}/name", name_of(device)?))
}

/// The name of a device; a link to the device is resolved.
fn name_of(device: &Path) -> Option<String> {
    let device = device.canonicalize().unwrap_or_else(|_| device.to_owned());
    device.file_name()?.to_str().map(str::to_owned)
}

/// Makes the chip of the serial port `device` interrupt for each byte, where its driver supports that: by default it
/// waits for several (`rx_trig_bytes`, Documentation/ABI/testing/sysfs-tty).
pub fn disable_rx_buffering(fs: &HostFs, device: &Path) {
    if let Some(name) = device.file_name().and_then(|name| name.to_str()) {
        let file = fs.root.join("sys/class/tty").join(name).join("rx_trig_bytes");
        // Most drivers have no such file.
        let _ = std::fs::write(file, "1");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Scratch;

    #[test]
    fn a_driver_tells_of_its_port_and_silence_is_not_no() {
        let scratch = Scratch::make();
        let fs = scratch.machine();
        for directory in ["parport0/devices/lp", "parport1/devices"] {
            std::fs::create_dir_all(scratch.path("proc/sys/dev/parport").join(directory)).unwrap();
        }
        scratch.file("proc/sys/dev/parport/parport0/devices/active", "none\n");
        scratch.file("proc/sys/dev/parport/parport0/irq", "-1\n");
        scratch.file("proc/sys/dev/parport/parport1/irq", "7\n");
        scratch.file("sys/class/uio/uio0/name", "ticks\n");
        let port = |name| parallel_port(&fs, Path::new(name));
        let none = ParallelPort { has_interrupt: Some(false), users: vec!["lp".to_owned()] };
        assert_eq!(port("/dev/parport0"), none);
        assert_eq!(port("/dev/parport1"), ParallelPort { has_interrupt: Some(true), users: Vec::new() });
        assert_eq!(port("/dev/parport2"), ParallelPort { has_interrupt: None, users: Vec::new() });
        let names = ["/dev/uio0", "/dev/uio1", "/"].map(|name| uio_name(&fs, Path::new(name)));
        assert_eq!(names, [Some("ticks".to_owned()), None, None]);
    }
}
