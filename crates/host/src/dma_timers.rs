//! PCI devices of a guest that interrupt at known times, bound to a driver that passes interrupts to user space.

use super::HostFs;
use punctual_model::Link;
use punctual_rt::{DmaTimer, Interrupts};
use std::ffi::CString;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

const DEVICES: &str = "sys/bus/pci/devices";
const DRIVERS: &str = "sys/bus/pci/drivers";
const UIO: &str = "uio_pci_generic";
/// The driver in `module/punctual_oob`.
const OOB: &str = "punctual_oob";
/// Vendor and device number of `edu` (QEMU, docs/specs/edu.rst).
const EDU: [&str; 2] = ["0x1234", "0x11e8"];
/// Configuration register of a PCI device with the address of its first memory.
const FIRST_MEMORY: u64 = 0x10;

/// The first `count` devices, bound to the driver of `link` and ready to be started. Errors: one line with the missing
/// part and the reason.
pub fn dma_timers(fs: &HostFs, link: Link, count: u64) -> Result<Vec<DmaTimer>, String> {
    let (driver, advice) = match link {
        Link::Oob if !fs.exists("proc/xenomai") => {
            return Err("response:oob: this kernel has no Cobalt; boot one of Xenomai 3.1 to 3.3".to_owned());
        }
        Link::Oob => (OOB, "build module/punctual_oob for it and name the file: modules=/path/of/punctual_oob.ko"),
        _ => (UIO, "give its guests the modules uio.ko and uio_pci_generic.ko (modules=)"),
    };
    if !fs.exists(format!("{DRIVERS}/{driver}")) {
        return Err(format!("response:{link}: unsupported: this kernel has no {driver}; {advice}"));
    }
    let is_one = |name: &String| {
        let number = |file: &str| fs.text(format!("{DEVICES}/{name}/{file}"));
        number("vendor").as_deref() == Some(EDU[0]) && number("device").as_deref() == Some(EDU[1])
    };
    let names: Vec<_> = fs.names_in(DEVICES).into_iter().filter(is_one).collect();
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    if names.len() < count {
        return Err(format!("response:{link}: needs {count} devices, this machine has {}", names.len()));
    }
    let at = |name: &String| {
        let name = name.clone();
        move |err| format!("response:{link}: device {name}: {err}")
    };
    // All of them first: devices share interrupt lines, which a driver of RTDM shares with no other driver.
    for name in &names {
        free(fs, name, driver).map_err(at(name))?;
    }
    names.iter().take(count).map(|name| ready(fs, name, driver).map_err(at(name))).collect()
}

fn open(path: &Path) -> io::Result<File> {
    let file = File::options().read(true).write(true).open(path);
    file.map_err(|err| io::Error::other(format!("{}: {err}", path.display())))
}

/// Whether the device has this driver; `None` when it has none.
fn is_bound(fs: &HostFs, name: &str, driver: &str) -> Option<bool> {
    let bound = fs::read_link(fs.root.join(DEVICES).join(name).join("driver")).ok()?;
    Some(bound.file_name() == Some(driver.as_ref()))
}

/// Ends what an earlier user of the device has left, and takes it from any other driver.
fn free(fs: &HostFs, name: &str, driver: &str) -> io::Result<()> {
    let place = fs.root.join(DEVICES).join(name);
    let config = open(&place.join("config"))?;
    // QEMU does not save the state of such a device: after a save, the address of its memory has to be written again.
    let memory = fs.text(format!("{DEVICES}/{name}/resource")).and_then(|text| first_address(&text));
    let memory = memory.ok_or_else(|| io::Error::other("no memory"))?;
    config.write_all_at(&memory.to_le_bytes(), FIRST_MEMORY)?;
    DmaTimer::drain(&open(&place.join("resource0"))?, &config)?;
    if is_bound(fs, name, driver) == Some(false) { fs::write(place.join("driver/unbind"), name) } else { Ok(()) }
}

fn ready(fs: &HostFs, name: &str, driver: &str) -> io::Result<DmaTimer> {
    let place = fs.root.join(DEVICES).join(name);
    if is_bound(fs, name, driver).is_none() {
        fs::write(place.join("driver_override"), driver)?;
        fs::write(fs.root.join(DRIVERS).join(driver).join("bind"), name)?;
    }
    let interrupts = if driver == OOB {
        Interrupts::Cobalt(CString::new(format!("/dev/rtdm/punctual-{name}"))?)
    } else {
        let number = fs.names_in(&format!("{DEVICES}/{name}/uio")).into_iter().next();
        Interrupts::Linux(open(&Path::new("/dev").join(number.ok_or_else(|| io::Error::other("no uio file"))?))?)
    };
    DmaTimer::new(&open(&place.join("resource0"))?, interrupts, open(&place.join("config"))?)
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
        let refused = |link, count| dma_timers(&fs, link, count).unwrap_err();
        assert!(refused(Link::Uio, 1).contains("this kernel has no uio_pci_generic; give its guests"));
        assert!(refused(Link::Oob, 1).contains("this kernel has no Cobalt; boot one"));
        std::fs::create_dir_all(scratch.path("proc/xenomai")).unwrap();
        assert!(refused(Link::Oob, 1).contains("this kernel has no punctual_oob; build module/punctual_oob"));
        for (link, driver) in [(Link::Uio, UIO), (Link::Oob, OOB)] {
            std::fs::create_dir_all(scratch.path(DRIVERS).join(driver)).unwrap();
            assert_eq!(refused(link, 2), format!("response:{link}: needs 2 devices, this machine has 0"));
        }
    }
}
