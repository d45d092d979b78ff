//! Disk of a guest: an image with an ext4 file system, which an I/O thread of QEMU serves.

use super::{LabError, directories};
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Size of the image, bytes: a file with holes; more than ten times what `disk` writes on the most CPUs.
const BYTES: u64 = 4 << 30;

/// Options of mke2fs(8). Everything is initialized now: no kernel thread of the guest does it while the guest measures.
const OPTIONS: [&str; 11] = [
    "-q",
    "-F",
    "-t",
    "ext4",
    "-b",
    "4096",
    "-N",
    "16384",
    "-J",
    "size=16",
    "-Elazy_itable_init=0,lazy_journal_init=0",
];

/// Mount point in the guest: the directory of loads that work on files.
const PLACE: &str = "/var/tmp";
const DEVICE: &str = "/dev/vda";
const KIND: &str = "ext4";

/// Timeout for the device to appear after its driver was loaded.
const DEVICE_TIMEOUT: Duration = Duration::from_secs(10);
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Reason why disks cannot be made; `None` when they can.
pub(super) fn why_not() -> Option<String> {
    program().is_none().then(|| "a guest's disk needs mke2fs; apt-get install e2fsprogs".to_owned())
}

/// mke2fs; ordinary users may not have its directory in their search path.
fn program() -> Option<&'static str> {
    static FOUND: OnceLock<Option<&str>> = OnceLock::new();
    *FOUND.get_or_init(|| {
        ["mke2fs", "/usr/sbin/mke2fs", "/sbin/mke2fs"].into_iter().find(|name| {
            let mut command = Command::new(name);
            command.arg("-V").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            command.status().is_ok_and(|status| status.success())
        })
    })
}

/// Makes the image `path`, which must not exist. Errors: if it exists, the file system here is full, or mke2fs fails or
/// is missing.
pub(super) fn make(path: &Path) -> Result<(), LabError> {
    File::create_new(path).and_then(|file| file.set_len(BYTES)).map_err(|err| LabError::file(path, err))?;
    let program =
        program().ok_or_else(|| LabError::program("mke2fs", "is not installed; apt-get install e2fsprogs"))?;
    let mut command = Command::new(program);
    let made = command.args(OPTIONS).arg(path).stdin(Stdio::null()).output();
    let made = made.map_err(|err| LabError::program(program, err))?;
    if made.status.success() { Ok(()) } else { Err(LabError::program(program, super::error_line(&made.stderr))) }
}

/// QEMU arguments of the disk with the image `path`.
pub(super) fn arguments(path: &Path) -> [OsString; 6] {
    let path = directories::as_value(path);
    let drive = format!("if=none,id=disk,format=raw,file={path}");
    ["-object", "iothread,id=io", "-drive", &drive, "-device", "virtio-blk-pci,drive=disk,iothread=io"]
        .map(OsString::from)
}

/// Mounts the disk, in the guest. Errors: if the kernel has no driver for it or for its file system.
pub(super) fn mount() -> io::Result<()> {
    let began = Instant::now();
    while !Path::new(DEVICE).exists() {
        if began.elapsed() > DEVICE_TIMEOUT {
            let reason = "no disk: the kernel needs virtio_pci and virtio_blk, built in or as modules";
            return Err(io::Error::other(reason));
        }
        std::thread::sleep(POLL_INTERVAL);
    }
    let failed = |err| io::Error::other(format!("cannot mount the disk: {err}; the kernel needs ext4"));
    punctual_sys::mount::device(DEVICE, KIND, PLACE).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_host::testing::Scratch;
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn an_image_has_a_file_system_and_takes_little_room() {
        if let Some(reason) = why_not() {
            println!("skipped: {reason}");
            return;
        }
        let scratch = Scratch::make();
        let path = scratch.path("disk");
        make(&path).unwrap();
        let about = path.metadata().unwrap();
        assert!(about.len() == BYTES && about.blocks() * 512 < 64 << 20, "{} blocks", about.blocks());
        let mut magic = [0; 2];
        // s_magic of the superblock, which begins at 1024 (fs/ext4/ext4.h).
        std::os::unix::fs::FileExt::read_exact_at(&File::open(&path).unwrap(), &mut magic, 1024 + 0x38).unwrap();
        assert_eq!(u16::from_le_bytes(magic), 0xef53);
        assert!(make(&path).unwrap_err().to_string().contains("exists"));
    }

    #[test]
    fn a_comma_in_a_path_is_part_of_it() {
        let words = arguments(Path::new("/tmp/a,b"));
        assert_eq!(words[3], "if=none,id=disk,format=raw,file=/tmp/a,,b");
    }
}
