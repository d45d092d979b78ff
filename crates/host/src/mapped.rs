//! Files of code that another process has mapped, opened without trusting any name.

use crate::{HostFs, file};
use punctual_model::ClockId;
use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;
use std::os::linux::fs::MetadataExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

/// Most mappings of code of a process.
const MOST: usize = 2000;
/// Beginning of the types of file systems that another process provides: even opening a file there may wait for it.
const OF_PROCESSES: &str = "fuse";
/// Unit of the start times of processes, ns (`USER_HZ`, proc_pid_stat(5)); times of files are as coarse.
const TICK_NS: u64 = 10_000_000;

/// An executable mapping of a process.
#[derive(Debug, Clone)]
pub struct MappedCode {
    /// First address.
    pub start: u64,
    /// Address behind the last.
    pub end: u64,
    /// Offset of the first byte in the file.
    pub offset: u64,
    /// Name of the file without its directory, or that of the kernel, like `[vdso]`.
    pub name: String,
    /// Device and inode of the file.
    pub id: (u64, u64),
    /// The file itself, whatever has its name now; `None` where there is none, or it cannot be opened.
    pub file: Option<Arc<File>>,
}

/// The executable mappings of process `pid`; empty when it has ended. Files that `known` has are not opened again.
pub fn mapped_code(pid: u32, known: &[MappedCode]) -> Vec<MappedCode> {
    let fs = HostFs::running();
    let text = |path: String| {
        let bytes = fs.bytes(path).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    };
    let maps = text(format!("proc/{pid}/maps"));
    // Those of the process, and of what lies below the file systems of a container.
    let mounts = [text(format!("proc/{pid}/mountinfo")), text("proc/self/mountinfo".to_owned())];
    let mut all: Vec<MappedCode> = Vec::new();
    for line in maps.lines() {
        let Some((device, mut one)) = executable(line) else { continue };
        if device.is_some_and(|device| mounts.iter().find_map(|mounts| is_local(mounts, &device)).unwrap_or(false)) {
            let same = |old: &&MappedCode| (old.start, old.end, old.offset) == (one.start, one.end, one.offset);
            one.file = match known.iter().find(|old| same(old) && old.name == one.name && old.inode() == one.inode()) {
                Some(old) => old.file.clone(),
                // A link of the kernel to the mapped file itself (proc_pid_map_files(5)); `maps` pads its addresses.
                None => {
                    let link = format!("proc/{pid}/map_files/{:x}-{:x}", one.start, one.end);
                    file::open(&fs.root.join(link)).ok().map(Arc::new)
                }
            };
            if let Some(found) = one.file.as_ref().and_then(|file| file.metadata().ok()) {
                one.id = (found.st_dev(), found.st_ino());
            }
        }
        all.push(one);
        if all.len() >= MOST {
            break;
        }
    }
    all
}

impl MappedCode {
    fn inode(&self) -> u64 {
        self.id.1
    }
}

/// Whether the kernel itself provides the file system on a device, as in `mountinfo` (proc_pid_mountinfo(5)); `None`
/// when it is not mounted there.
fn is_local(mounts: &str, device: &str) -> Option<bool> {
    let mut types = mounts.lines().filter_map(|line| {
        let (before, after) = line.split_once(" - ")?;
        (before.split(' ').nth(2)? == device).then(|| after.split(' ').next().unwrap_or_default())
    });
    types.next().map(|kind| !kind.starts_with(OF_PROCESSES))
}

/// A line of `maps` (proc_pid_maps(5)): the device of its file as in `mountinfo` if it has one, and the mapping; `None`
/// unless it is code.
fn executable(line: &str) -> Option<(Option<String>, MappedCode)> {
    let mut words = line.splitn(6, ' ');
    let (range, rights, offset, device, inode) =
        (words.next()?, words.next()?, words.next()?, words.next()?, words.next()?);
    let path = words.next().unwrap_or_default().trim_start();
    let (start, end) = range.split_once('-')?;
    let hexadecimal = |text: &str| u64::from_str_radix(text, 16).ok();
    if !rights.contains('x') {
        return None;
    }
    let inode: u64 = inode.parse().ok()?;
    let path = path.strip_suffix(" (deleted)").unwrap_or(path);
    let name = path.rsplit('/').next().unwrap_or_default();
    let name: String = name.chars().filter(|c| punctual_model::is_plain(*c)).collect();
    let code = MappedCode {
        start: hexadecimal(start)?,
        end: hexadecimal(end)?,
        offset: hexadecimal(offset)?,
        name: if name.is_empty() { "[no file]".to_owned() } else { name },
        id: (0, inode),
        file: None,
    };
    // Hexadecimal here, decimal in `mountinfo`.
    let (major, minor) = device.split_once(':')?;
    let device = format!("{}:{}", hexadecimal(major)?, hexadecimal(minor)?);
    Some((Some(device).filter(|_| inode != 0 && path.starts_with('/')), code))
}

/// The separate file of debug information of a build, below `/usr/lib/debug`.
pub fn debug_file(build_id: &[u8]) -> Option<File> {
    let hexadecimal: String = build_id.iter().map(|byte| format!("{byte:02x}")).collect();
    let (first, rest) = hexadecimal.split_at_checked(2).filter(|(_, rest)| !rest.is_empty())?;
    let path = PathBuf::from(format!("usr/lib/debug/.build-id/{first}/{rest}.debug"));
    // Debian's packages have files there, Fedora's have links.
    file::open(&HostFs::running().root.join(path)).ok()
}

/// The map that process `pid` writes of the code it makes while it runs, `/tmp/perf-PID.map` with its own ID, below its
/// own root directory (tools/perf/Documentation/jit-interface.txt). `None` unless it is a regular file of the user of
/// the process or of root, without a link on the way, on a file system of the kernel, and not older than the process:
/// IDs are used again.
pub fn perf_map(pid: u32) -> Option<File> {
    let since_boot_ns = crate::started_ticks_of(pid)?.checked_mul(TICK_NS)?;
    let [wall_ns, boot_ns] = [ClockId::Realtime, ClockId::Boottime].map(crate::offset_from_monotonic_ns);
    let started_ns = since_boot_ns.checked_add_signed(wall_ns.checked_sub(boot_ns)?)?;
    perf_map_below(&HostFs::running(), pid, crate::own_id_of(pid)?, started_ns)
}

fn perf_map_below(fs: &HostFs, pid: u32, own_id: u32, started_ns: u64) -> Option<File> {
    let process = fs.root.join(format!("proc/{pid}"));
    let name = format!("perf-{own_id}.map");
    let mounts = fs.bytes(process.join("mountinfo")).ok()?;
    let mounts = String::from_utf8_lossy(&mounts);
    let is_above = |place: &str| ["/", "/tmp"].contains(&place) || place.strip_prefix("/tmp/") == Some(&name);
    let is_of_process = |line: &str| {
        let (before, after) = line.split_once(" - ")?;
        Some(is_above(before.split(' ').nth(4)?) && after.starts_with(OF_PROCESSES))
    };
    if mounts.lines().any(|line| is_of_process(line).unwrap_or(false)) {
        return None;
    }
    let directory = |path: PathBuf, more: i32| {
        OpenOptions::new().read(true).custom_flags(libc::O_PATH | libc::O_DIRECTORY | more).open(path).ok()
    };
    // Each step begins at what the one before has opened, so that no link on the way leads out of the root.
    let within =
        |directory: &File, name: &str| PathBuf::from(format!("/proc/self/fd/{}/{name}", directory.as_raw_fd()));
    let root = directory(process.join("root"), 0)?;
    let place = directory(within(&root, "tmp"), libc::O_NOFOLLOW)?;
    let map = file::open_without_link(&within(&place, &name)).ok()?;
    let (found, user) = (map.metadata().ok()?, std::fs::metadata(process).ok()?.st_uid());
    let born_ns = found.created().ok()?.duration_since(SystemTime::UNIX_EPOCH).ok()?.as_nanos();
    let is_younger = born_ns + 2 * u128::from(TICK_NS) > u128::from(started_ns);
    (is_younger && [0, user].contains(&found.st_uid())).then_some(map)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Scratch;
    use std::io::Read;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_map_of_made_code_is_opened_below_the_root_of_its_process_alone() {
        let scratch = Scratch::make();
        let fs = scratch.machine();
        let open = |pid| perf_map_below(&fs, pid, 7, 0);
        let local = "1 0 8:1 / / rw - ext4 /dev/sda rw\n2 1 0:9 / /home rw - fuse.sshfs x rw\n";
        scratch.file("proc/9/mountinfo", local);
        let map = scratch.file("proc/9/root/tmp/perf-7.map", "1000 10 name\n");
        let mut text = String::new();
        open(9).unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(text, "1000 10 name\n");
        assert!(open(8).is_none() && perf_map_below(&fs, 9, 9, 0).is_none());
        assert!(perf_map_below(&fs, 9, 7, u64::MAX).is_none(), "of an earlier process");
        for place in ["/", "/tmp", "/tmp/perf-7.map"] {
            scratch.file("proc/9/mountinfo", format!("{local}3 1 0:9 / {place} rw - fuse x rw\n"));
            assert!(open(9).is_none(), "{place}");
        }
        scratch.file("proc/9/mountinfo", local);
        let other = scratch.file("other/perf-7.map", "2000 10 secret\n");
        std::fs::remove_file(&map).unwrap();
        symlink(&other, &map).unwrap();
        assert!(open(9).is_none(), "a link");
        std::fs::remove_dir_all(scratch.path("proc/9/root/tmp")).unwrap();
        symlink(scratch.path("other"), scratch.path("proc/9/root/tmp")).unwrap();
        assert!(open(9).is_none(), "a link to its directory");
        std::fs::remove_file(scratch.path("proc/9/root/tmp")).unwrap();
        scratch.file("proc/9/root/tmp/other", "");
        scratch.fifo("proc/9/root/tmp/perf-7.map");
        assert!(open(9).is_none(), "a pipe");
    }

    #[test]
    fn mappings_of_code_have_the_name_of_their_file() {
        let found = |line| {
            let (device, one) = executable(line)?;
            Some((one.start, one.offset, one.name, device.unwrap_or_default()))
        };
        for (line, expected) in [
            (
                "55d0c0a00000-55d0c0a02000 r-xp 00001000 fe:01 1234                       /opt/a b/servo (deleted)",
                Some((0x55d0_c0a0_0000, 0x1000, "servo".to_owned(), "254:1".to_owned())),
            ),
            ("7f00-7f01 r--p 00000000 fe:01 1234 /opt/servo", None),
            ("7f00-7f01 r-xp 00000000 00:00 0    [vdso]", Some((0x7f00, 0, "[vdso]".to_owned(), String::new()))),
            ("7f00-7f01 rwxp 00000000 00:00 0 ", Some((0x7f00, 0, "[no file]".to_owned(), String::new()))),
            ("7f00-7f01 r-xp 00000000 00:00 7 /x\u{1b}[31m", Some((0x7f00, 0, "x[31m".to_owned(), "0:0".to_owned()))),
            ("", None),
            ("x-y r-xp 0 0 0", None),
        ] {
            assert_eq!(found(line), expected, "{line}");
        }
    }

    #[test]
    fn own_code_is_found_and_opened_once() {
        let own = mapped_code(std::process::id(), &[]);
        let here = own_code_is_found_and_opened_once as fn() as usize as u64;
        let of = |all: &[MappedCode]| all.iter().find(|one| (one.start..one.end).contains(&here)).cloned();
        let first = of(&own).unwrap();
        let Some(file) = first.file else {
            println!("skipped: needs root");
            return;
        };
        let again = of(&mapped_code(std::process::id(), &own)).and_then(|one| one.file).unwrap();
        assert!(Arc::ptr_eq(&file, &again));
        assert!(mapped_code(u32::MAX, &[]).is_empty());
    }
}
