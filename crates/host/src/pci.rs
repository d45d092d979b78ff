//! Memory of the PCI devices of a guest, accessed without a driver.

use super::HostFs;
use std::fs::{self, File};
use std::io;

const DEVICES: &str = "sys/bus/pci/devices";

/// Memory of a device, to be mapped (Documentation/PCI/sysfs-pci.rst).
#[derive(Debug)]
pub struct DeviceMemory {
    /// File of the memory; mappings of it begin at the start of a page.
    pub file: File,
    /// Address of the memory; its offset in the first page is that in the mapping.
    pub address: u64,
}

/// Memory number `bar` of the first device with these vendor and device numbers, like `0x1af4`. The device is enabled
/// and taken from its driver if it has one. `None` without such a device. Errors: if the device has no such memory, or
/// without `CAP_SYS_ADMIN`.
pub fn device_memory(fs: &HostFs, ids: [&str; 2], bar: usize) -> io::Result<Option<DeviceMemory>> {
    let is_it = |name: &String| {
        let id = |file: &str| fs.text(format!("{DEVICES}/{name}/{file}"));
        [id("vendor"), id("device")].each_ref().map(Option::as_deref) == ids.map(Some)
    };
    let Some(name) = fs.names_in(DEVICES).into_iter().find(is_it) else { return Ok(None) };
    let failed = |what: &str, err: &dyn std::fmt::Display| io::Error::other(format!("device {name}: {what}: {err}"));
    let place = fs.root.join(DEVICES).join(&name);
    if place.join("driver").exists() {
        fs::write(place.join("driver/unbind"), &name).map_err(|err| failed("unbind", &err))?;
    }
    fs::write(place.join("enable"), "1").map_err(|err| failed("enable", &err))?;
    let resource = fs.text(format!("{DEVICES}/{name}/resource")).unwrap_or_default();
    let address = address_of(&resource, bar).ok_or_else(|| failed("resource", &format!("no memory {bar}")))?;
    let path = place.join(format!("resource{bar}"));
    let file = File::options().read(true).write(true).open(path).map_err(|err| failed("memory", &err))?;
    Ok(Some(DeviceMemory { file, address }))
}

/// Address of memory `bar` in `resource`: a line for each, with its first and last address.
fn address_of(resource: &str, bar: usize) -> Option<u64> {
    let first = resource.lines().nth(bar)?.split_whitespace().next()?.strip_prefix("0x")?;
    u64::from_str_radix(first, 16).ok().filter(|address| *address != 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Scratch;

    const IDS: [&str; 2] = ["0x1af4", "0x1110"];

    #[test]
    fn the_memory_of_a_device_is_found_and_enabled() {
        let scratch = Scratch::make();
        let fs = scratch.machine();
        assert!(device_memory(&fs, IDS, 2).unwrap().is_none());
        for (name, ids) in [("0000:00:01.0", ["0x1234", "0x1110"]), ("0000:00:02.0", IDS)] {
            for (file, id) in ["vendor", "device"].iter().zip(ids) {
                scratch.file(&format!("{DEVICES}/{name}/{file}"), format!("{id}\n"));
            }
        }
        let device = format!("{DEVICES}/0000:00:02.0");
        let lines = "0x0 0x0 0x0\n0x0 0x0 0x0\n0x0000008000000000 0x0000008003ffffff 0x14220c\n";
        scratch.file(&format!("{device}/resource"), lines);
        scratch.file(&format!("{device}/resource2"), "memory");
        assert_eq!(device_memory(&fs, IDS, 2).unwrap().unwrap().address, 0x80_0000_0000);
        assert_eq!(fs::read_to_string(scratch.path(&format!("{device}/enable"))).unwrap(), "1");
        for bar in [0, 3] {
            let message = device_memory(&fs, IDS, bar).unwrap_err().to_string();
            assert_eq!(message, format!("device 0000:00:02.0: resource: no memory {bar}"));
        }
    }
}
