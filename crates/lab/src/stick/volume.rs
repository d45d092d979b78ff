//! The second partition of the stick that the machine runs from: found by the identity of its disk, never by a name.

use super::layout::identity_of;
use punctual_host::file;
use punctual_sys::mount;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Its mount point: the only one of a disk.
pub(super) const PLACE: &str = "/results";

/// Timeout for the stick to appear: a USB hub may take seconds.
const TIMEOUT: Duration = Duration::from_secs(20);
const POLL_INTERVAL: Duration = Duration::from_millis(200);
/// Time in which another stick of the same image would appear, too.
const SETTLE_TIME: Duration = Duration::from_secs(2);

/// Mounts the second partition of the disk with this identity. Errors: one line, if there is no such disk or more than
/// one, or it cannot be written.
pub(super) fn mount(identity: &str) -> Result<(), String> {
    let began = Instant::now();
    while partitions_of(Path::new("/dev"), identity).is_empty() {
        if began.elapsed() > TIMEOUT {
            return Err(
                "the stick is not found: it was pulled out, or this kernel has no driver for its port".to_owned()
            );
        }
        std::thread::sleep(POLL_INTERVAL);
    }
    std::thread::sleep(SETTLE_TIME);
    let partition = the_one(&partitions_of(Path::new("/dev"), identity))?;
    let name = partition.display().to_string();
    mount::device(&name, "vfat", PLACE).map_err(|err| match err.raw_os_error() {
        Some(libc::EACCES | libc::EROFS) => format!("the stick ({name}) is write-protected; unlock it, and restart"),
        _ => format!("cannot mount the stick ({name}): {err}"),
    })?;
    probe().map_err(|err| {
        // What is measured then stays in memory.
        let _ = mount::leave(PLACE);
        format!("cannot write to the stick ({name}): {err}")
    })
}

/// Writes to the stick. Errors: if it was pulled out, is full, or is write-protected.
pub(super) fn probe() -> io::Result<()> {
    let path = Path::new(PLACE).join(".probe");
    file::replace(&path, b"").and_then(|()| fs::remove_file(&path))
}

/// The only partition. Errors: if there are several: written to the wrong one, results would be lost.
fn the_one(found: &[PathBuf]) -> Result<PathBuf, String> {
    match found {
        [one] => Ok(one.clone()),
        [] => Err("the stick was pulled out".to_owned()),
        several => {
            let names: Vec<_> = several.iter().map(|path| path.display().to_string()).collect();
            Err(format!("disks with the same identity: {}; pull out all but one, and restart", names.join(" and ")))
        }
    }
}

/// The second partitions of disks with this identity. Disks are opened for reading only.
fn partitions_of(dev: &Path, identity: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(dev).into_iter().flatten().flatten();
    let disks = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_block_device() || kind.is_file()));
    let mut found: Vec<PathBuf> = disks
        .filter_map(|disk| {
            let second = dev.join(second_partition(disk.file_name().to_str()?));
            let mut sector = [0; 512];
            let is_read = second.exists() && File::open(disk.path()).ok()?.read_exact(&mut sector).is_ok();
            (is_read && identity_of(&sector).as_deref() == Some(identity)).then_some(second)
        })
        .collect();
    found.sort();
    found
}

/// The kernel's name of the second partition of a disk (disk_name, block/partitions/core.c).
fn second_partition(disk: &str) -> String {
    let between = if disk.ends_with(|last: char| last.is_ascii_digit()) { "p" } else { "" };
    format!("{disk}{between}2")
}

#[cfg(test)]
mod tests {
    use super::super::layout::{add_table, partitions};
    use super::*;
    use punctual_host::testing::Scratch;

    #[test]
    fn a_stick_is_told_from_other_disks_by_its_identity() {
        let dev = Scratch::make();
        let disk = |name: &str, identity: u32| {
            let mut sector = vec![0; 512];
            add_table(&mut sector, identity, partitions(0));
            dev.file(name, sector);
            dev.file(&second_partition(name), "");
        };
        disk("sda", 1);
        disk("nvme0n1", 7);
        dev.file("sr0", "");
        assert_eq!(partitions_of(dev.dir(), "00000007"), [dev.path("nvme0n1p2")]);
        assert!(partitions_of(dev.dir(), "00000002").is_empty());
        disk("sdb", 7);
        let both = partitions_of(dev.dir(), "00000007");
        let reason = the_one(&both).unwrap_err();
        assert!(reason.starts_with("disks with the same identity: ") && reason.contains("/sdb2"), "{reason}");
        assert_eq!(the_one(&both[..1]).unwrap(), both[0]);
        assert!(the_one(&[]).is_err());
    }
}
