//! PCI devices of a guest that interrupt at known times, bound to the driver that passes interrupts to user space.

use super::HostFs;
use rt::DmaTimer;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

const DEVICES: &str = "sys/bus/pci/devices";
const DRIVER: &str = "sys/bus/pci/drivers/uio_pci_generic";
/// Vendor and device number of `edu` (QEMU, docs/specs/edu.rst).
const EDU: [&str; 2] = ["0x1234", "0x11e8"];
/// Configuration register of a PCI device with the address of its first memory.
const FIRST_MEMORY: u64 = 0x10;

/// The first `count` devices, bound to their driver and ready to be started.
///
/// # Errors
/// One line with the missing part and the reason.
pub fn dma_timers(fs: &HostFs, count: u64) -> Result<Vec<DmaTimer>, String> {
    if !fs.exists(DRIVER) {
        return Err(
            "response:uio: unsupported: this kernel has no uio_pci_generic; give its guests the modules uio.ko and \
             uio_pci_generic.ko (modules=)"
                .to_owned(),
        );
    }
    let is_one = |name: &String| {
        let number = |file: &str| fs.text(format!("{DEVICES}/{name}/{file}"));
        number("vendor").as_deref() == Some(EDU[0]) && number("device").as_deref() == Some(EDU[1])
    };
    let names: Vec<_> = fs.names_in(DEVICES).into_iter().filter(is_one).collect();
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    if names.len() < count {
        return Err(format!("response:uio: needs {count} devices, this machine has {}", names.len()));
    }
    names
        .iter()
        .take(count)
        .map(|name| ready(fs, name).map_err(|err| format!("response:uio: device {name}: {err}")))
        .collect()
}

fn ready(fs: &HostFs, name: &str) -> io::Result<DmaTimer> {
    let none = |what: &str| io::Error::other(format!("no {what}"));
    let place = fs.root.join(DEVICES).join(name);
    let open = |path: PathBuf| {
        let file = File::options().read(true).write(true).open(&path);
        file.map_err(|err| io::Error::other(format!("{}: {err}", path.display())))
    };
    let config = open(place.join("config"))?;
    // QEMU does not save the state of such a device: after a save, the address of its memory has to be written again.
    let memory = fs.text(format!("{DEVICES}/{name}/resource")).and_then(|text| first_address(&text));
    config.write_all_at(&memory.ok_or_else(|| none("memory"))?.to_le_bytes(), FIRST_MEMORY)?;
    if !place.join("driver").exists() {
        fs::write(place.join("driver_override"), "uio_pci_generic")?;
        fs::write(fs.root.join(DRIVER).join("bind"), name)?;
    }
    let number = fs.names_in(&format!("{DEVICES}/{name}/uio")).into_iter().next().ok_or_else(|| none("uio file"))?;
    DmaTimer::new(&open(place.join("resource0"))?, open(Path::new("/dev").join(number))?, config)
}

/// Address of the first memory, from `resource`: one line for each, with its first and last address.
fn first_address(resource: &str) -> Option<u32> {
    let first = resource.split_whitespace().next()?.strip_prefix("0x")?;
    u32::from_str_radix(first.trim_start_matches('0'), 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Scratch;

    #[test]
    fn the_first_memory_is_where_resource_says() {
        let text = "0x00000000fea00000 0x00000000feafffff 0x0000000000040200\n0x0 0x0 0x0\n";
        assert_eq!(first_address(text), Some(0xfea0_0000));
        for text in ["", "0x0000000000000000 0x0 0x0", "0x0000000100000000 0x1 0x2", "fea00000"] {
            assert_eq!(first_address(text), None, "{text}");
        }
    }

    #[test]
    fn a_machine_without_driver_or_devices_says_which() {
        let scratch = Scratch::make();
        let fs = scratch.machine();
        assert!(dma_timers(&fs, 1).unwrap_err().contains("no uio_pci_generic"));
        std::fs::create_dir_all(scratch.path(DRIVER)).unwrap();
        assert!(dma_timers(&fs, 2).unwrap_err().ends_with("needs 2 devices, this machine has 0"));
    }
}
