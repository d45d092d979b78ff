//! Conversion of a compressed kernel to one that QEMU starts directly.
//!
//! A bzImage unpacks itself, at the cost of billions of counted instructions. Kernels with `CONFIG_PVH`, as all of
//! Debian's, can be started as plain ELF instead (Documentation/arch/x86/boot.rst: `payload_offset`, `payload_length`).

use super::{LabError, elf};
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};

/// Magic numbers of compressed payloads, with the decompressor and its arguments.
const COMPRESSORS: [(&[u8], &str, &[&str]); 4] = [
    (b"\xfd7zXZ\x00", "xz", &["--decompress", "--stdout", "--single-stream", "--quiet"]),
    (b"\x28\xb5\x2f\xfd", "zstd", &["--decompress", "--stdout", "--quiet"]),
    (b"\x1f\x8b", "gzip", &["--decompress", "--stdout", "--quiet"]),
    (b"\x02\x21\x4c\x18", "lz4", &["-d", "-c", "-q"]),
];

/// Size limit of decompressed data, bytes: the memory of a guest.
const LARGEST: u64 = (super::memory::MIB as u64) << 20;

/// The ELF kernel in `kernel`, or `kernel` itself if it is ELF. `None` if no decompressor is available or QEMU cannot
/// start the ELF kernel directly: QEMU then boots the original file.
///
/// # Errors
/// If it is not a kernel for x86-64, or QEMU cannot start it.
pub(super) fn uncompressed(path: &Path, kernel: &[u8]) -> Result<Option<Vec<u8>>, LabError> {
    if kernel.starts_with(elf::MAGIC) {
        return match elf::read(kernel) {
            Some(elf) if elf.machine != elf::X86_64 => Err(foreign(path)),
            Some(elf) if elf.is_pvh => Ok(Some(kernel.to_vec())),
            Some(_) => Err(LabError::file(
                path,
                "unsupported: vmlinux without PVH (CONFIG_PVH), which QEMU cannot boot; name its bzImage",
            )),
            None => Err(foreign(path)),
        };
    }
    if is_foreign(kernel) {
        return Err(foreign(path));
    }
    let payload = payload(kernel)
        .ok_or_else(|| LabError::file(path, "expected a bzImage or a vmlinux for x86; name another file"))?;
    let is_startable = |kernel: &Vec<u8>| elf::read(kernel).is_some_and(|elf| elf.is_pvh);
    Ok(decompressed(payload).filter(is_startable))
}

fn foreign(path: &Path) -> LabError {
    LabError::file(path, "unsupported: kernel for another architecture; the lab boots kernels for x86-64")
}

/// Whether it is an `Image` of arm64 or riscv (Documentation/arch/arm64/booting.rst, .../riscv/boot-image-header.rst),
/// plain or gzip-compressed, or a 32-bit bzImage (`xloadflags`, since protocol 2.12 of
/// Documentation/arch/x86/boot.rst).
fn is_foreign(kernel: &[u8]) -> bool {
    const MAGIC_AT: usize = 0x38;
    const IS_64_BIT: u8 = 1;
    if kernel.starts_with(b"\x1f\x8b") {
        return decompressed(kernel).is_some_and(|kernel| is_foreign(&kernel));
    }
    let magic = kernel.get(MAGIC_AT..MAGIC_AT + 4);
    if [b"ARM\x64", b"RSC\x05"].iter().any(|other| magic == Some(&other[..])) {
        return true;
    }
    let version = kernel.get(0x206..0x208).map(|bytes| u16::from_le_bytes([bytes[0], bytes[1]]));
    let is_bzimage = kernel.get(0x202..0x206) == Some(b"HdrS") && version >= Some(0x020c);
    is_bzimage && kernel.get(0x236).is_some_and(|flags| flags & IS_64_BIT == 0)
}

/// Decompressed data; `None` if the format is unknown or its decompressor is missing.
pub(super) fn decompressed(content: &[u8]) -> Option<Vec<u8>> {
    let (_, program, arguments) = COMPRESSORS.iter().find(|(magic, ..)| content.starts_with(magic))?;
    piped(program, arguments, content).ok().filter(|content| !content.is_empty())
}

/// The compressed kernel in a bzImage.
fn payload(kernel: &[u8]) -> Option<&[u8]> {
    const SECTOR: usize = 512;
    if kernel.get(0x202..0x206)? != b"HdrS" {
        return None;
    }
    let number = |at: usize| -> Option<usize> {
        usize::try_from(u32::from_le_bytes(kernel.get(at..at + 4)?.try_into().ok()?)).ok()
    };
    let sectors = match usize::from(*kernel.get(0x1f1)?) {
        0 => 4,
        sectors => sectors,
    };
    let start = ((sectors + 1) * SECTOR).checked_add(number(0x248)?)?;
    kernel.get(start..start.checked_add(number(0x24c)?)?)
}

/// The output of `program` for `input`. The exit status is ignored: some decompressors fail on data after the
/// compressed stream.
pub(super) fn piped(program: &str, arguments: &[&str], input: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut command = Command::new(program);
    let command = command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn()?;
    let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
    let output = std::thread::scope(|scope| {
        std::thread::Builder::new().spawn_scoped(scope, move || stdin.map(|mut stdin| stdin.write_all(input)))?;
        let mut output = Vec::new();
        let read = stdout.map_or(Ok(0), |stdout| stdout.take(LARGEST + 1).read_to_end(&mut output));
        read.map(|_| output)
    });
    // The process ends by itself: its input has ended, or its output pipe is closed.
    child.wait()?;
    let output = output?;
    if output.len() as u64 > LARGEST { Err(std::io::ErrorKind::FileTooLarge.into()) } else { Ok(output) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A minimal ELF file with one note segment, for tests of header parsing.
    fn elf(machine: u8, note: &[u8]) -> Vec<u8> {
        let mut file = vec![0; 0x40 + 0x38];
        file[..6].copy_from_slice(b"\x7fELF\x02\x01");
        file[0x12] = machine;
        (file[0x20], file[0x36], file[0x38]) = (0x40, 0x38, 1);
        (file[0x40], file[0x48]) = (4, 0x78);
        file[0x60] = u8::try_from(note.len()).unwrap();
        file.extend_from_slice(note);
        file
    }

    const PVH: &[u8] = b"\x04\0\0\0\x04\0\0\0\x12\0\0\0Xen\0\0\0\0\0";

    fn bzimage(payload: &[u8]) -> Vec<u8> {
        let mut kernel = vec![0; 4096];
        kernel[0x1f1] = 2;
        kernel[0x202..0x206].copy_from_slice(b"HdrS");
        kernel[0x206..0x208].copy_from_slice(&[0x0f, 0x02]);
        kernel[0x236] = 1;
        kernel[0x248..0x24c].copy_from_slice(&64_u32.to_le_bytes());
        kernel[0x24c..0x250].copy_from_slice(&u32::try_from(payload.len()).unwrap().to_le_bytes());
        kernel[3 * 512 + 64..][..payload.len()].copy_from_slice(payload);
        kernel
    }

    #[test]
    fn the_payload_of_a_kernel_is_unpacked() {
        let inside = elf(62, PVH);
        let gzip = |inside: &[u8]| piped("gzip", &["-c"], inside).unwrap();
        let mut kernel = bzimage(&gzip(&inside));
        let path = Path::new("/k");
        assert_eq!(uncompressed(path, &kernel).unwrap().as_deref(), Some(&inside[..]));
        assert_eq!(uncompressed(path, &inside).unwrap().as_deref(), Some(&inside[..]));
        let without = bzimage(&gzip(&elf(62, b"")));
        assert_eq!(uncompressed(path, &without).unwrap(), None, "QEMU starts a bzImage without PVH as it is");
        kernel[3 * 512 + 64] = 0;
        assert_eq!(uncompressed(path, &kernel).unwrap(), None, "an unknown compression is QEMU's to start");
        for broken in [&kernel[..0x300], b"", b"#!/bin/sh"] {
            assert!(uncompressed(path, broken).unwrap_err().to_string().starts_with("/k: expected a bzImage"));
        }
    }

    #[test]
    fn kernels_that_cannot_be_started_here_are_named_as_such() {
        let mut arm = vec![0; 0x1000];
        arm[0x38..0x3c].copy_from_slice(b"ARM\x64");
        let packed = piped("gzip", &["-c"], &arm).unwrap();
        let mut i386 = bzimage(b"");
        i386[0x236] = 0;
        for (kernel, expected) in [
            (arm, "/k: unsupported: kernel for another architecture"),
            (packed, "/k: unsupported: kernel for another architecture"),
            (i386, "/k: unsupported: kernel for another architecture"),
            (elf(183, PVH), "/k: unsupported: kernel for another architecture"),
            (b"\x7fELF\x01\x01 of 32 bits".to_vec(), "/k: unsupported: kernel for another architecture"),
            (
                elf(62, b""),
                "/k: unsupported: vmlinux without PVH (CONFIG_PVH), which QEMU cannot boot; name its bzImage",
            ),
        ] {
            let said = uncompressed(Path::new("/k"), &kernel).unwrap_err().to_string();
            assert!(said.starts_with(expected), "{said}");
        }
    }
}
