//! Conversion of a compressed kernel to one that QEMU starts directly.
//!
//! A bzImage unpacks itself, at the cost of billions of counted instructions. Kernels with `CONFIG_PVH`, as all of
//! Debian's, can be started as plain ELF instead (Documentation/arch/x86/boot.rst: `payload_offset`, `payload_length`).
//! A kernel of arm64 or riscv64 is an `Image`, which may be compressed as a whole.

use super::{LabError, elf};
use punctual_model::Architecture;
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

/// Size limit of kernel files, bytes: a vmlinux with debug information has some hundred MiB.
pub(super) const LARGEST_KERNEL: u64 = 2 << 30;

/// Size limit of decompressed data, bytes: the memory of a guest.
const LARGEST: u64 = (super::memory::MIB as u64) << 20;

/// Magic numbers of `Image` files (Documentation/arch/arm64/booting.rst, riscv/boot-image-header.rst).
const IMAGES: [(Architecture, (usize, &[u8])); 2] =
    [(Architecture::Aarch64, (0x38, b"ARM\x64")), (Architecture::Riscv64, (0x38, b"RSC\x05"))];

/// Magic number of a compressed `Image` that EFI starts (drivers/firmware/efi/libstub/zboot-header.S).
const ZBOOT: (usize, &[u8]) = (4, b"zimg");

fn has(kernel: &[u8], (at, magic): (usize, &[u8])) -> bool {
    kernel.get(at..).is_some_and(|rest| rest.starts_with(magic))
}

/// The architecture of an uncompressed `Image`.
fn architecture_of_image(kernel: &[u8]) -> Option<Architecture> {
    IMAGES.into_iter().find(|(_, magic)| has(kernel, *magic)).map(|(architecture, _)| architecture)
}

/// The architecture of a kernel, compressed or not; `None` unless the lab has guests of it.
pub(super) fn architecture_of(kernel: &[u8]) -> Option<Architecture> {
    if kernel.starts_with(elf::MAGIC) {
        let machine = elf::read(kernel)?.machine;
        return Architecture::ALL.into_iter().find(|known| known.elf_machine() == machine);
    }
    if let Some(inside) = compressed_image(kernel) {
        return architecture_of_image(&decompressed(inside)?);
    }
    architecture_of_image(kernel).or_else(|| is_bzimage(kernel).then_some(Architecture::X86_64))
}

/// The kernel in `kernel` as QEMU starts it at once: an ELF kernel with PVH, or an `Image`. `None` if `kernel` is
/// that already, no decompressor is available or QEMU cannot start what is inside: QEMU then boots the original file.
/// Errors: if it is not a kernel for an architecture of the lab, or QEMU cannot start it.
pub(super) fn uncompressed(path: &Path, kernel: &[u8]) -> Result<Option<Vec<u8>>, LabError> {
    if kernel.starts_with(elf::MAGIC) {
        let unsupported = |what: &str| LabError::file(path, format!("unsupported: {what}"));
        return match (architecture_of(kernel), elf::read(kernel)) {
            (Some(Architecture::X86_64), Some(elf)) if elf.is_pvh => Ok(Some(kernel.to_vec())),
            (Some(Architecture::X86_64), _) => {
                Err(unsupported("vmlinux without PVH (CONFIG_PVH), which QEMU cannot boot; name its bzImage"))
            }
            (Some(Architecture::Aarch64), _) => {
                Err(unsupported("vmlinux of arm64, which QEMU cannot boot; name its Image (arch/arm64/boot/Image)"))
            }
            (Some(Architecture::Riscv64), _) => {
                Err(unsupported("vmlinux of riscv64, which QEMU cannot boot; name its Image (arch/riscv/boot/Image)"))
            }
            (None, _) => Err(foreign(path)),
        };
    }
    if let Some(inside) = compressed_image(kernel) {
        let image = decompressed(inside).filter(|image| architecture_of_image(image).is_some());
        return image.map(Some).ok_or_else(|| not_a_kernel_here(path, kernel));
    }
    if architecture_of_image(kernel).is_some() {
        return Ok(None);
    }
    let payload = payload(kernel).filter(|_| is_bzimage(kernel)).ok_or_else(|| not_a_kernel_here(path, kernel))?;
    let is_startable = |kernel: &Vec<u8>| elf::read(kernel).is_some_and(|elf| elf.is_pvh);
    Ok(decompressed(payload).filter(is_startable))
}

/// The unpacked kernel in a file, whatever QEMU can start; `None` if the file is unpacked, or cannot be unpacked here.
/// Errors: if the file does not begin like a kernel.
pub(super) fn inside(kernel: &[u8]) -> Result<Option<Vec<u8>>, ()> {
    let is_plain = kernel.starts_with(elf::MAGIC) || architecture_of_image(kernel).is_some();
    match compressed_image(kernel).or_else(|| payload(kernel)) {
        _ if is_plain => Ok(None),
        Some(packed) => Ok(decompressed(packed)),
        None => Err(()),
    }
}

fn not_a_kernel(path: &Path) -> LabError {
    LabError::file(path, "expected a bzImage or a vmlinux for x86, or an Image for arm64 or riscv64; name another file")
}

fn foreign(path: &Path) -> LabError {
    LabError::file(
        path,
        "unsupported: kernel for another architecture; the lab boots kernels for x86-64, arm64 and riscv64",
    )
}

/// The error of a file that the lab cannot boot: a kernel of another architecture, or anything else.
pub(super) fn not_a_kernel_here(path: &Path, kernel: &[u8]) -> LabError {
    let is_elf = kernel.starts_with(elf::MAGIC);
    let is_i386 = kernel.get(0x202..0x206) == Some(b"HdrS") && !is_bzimage(kernel);
    if is_elf || is_i386 { foreign(path) } else { not_a_kernel(path) }
}

/// The compressed `Image` in a file: gzip, or the payload that EFI would unpack.
fn compressed_image(kernel: &[u8]) -> Option<&[u8]> {
    if kernel.starts_with(b"\x1f\x8b") {
        return Some(kernel);
    }
    let number = |at: usize| -> Option<usize> {
        usize::try_from(u32::from_le_bytes(kernel.get(at..at + 4)?.try_into().ok()?)).ok()
    };
    let start = has(kernel, ZBOOT).then(|| number(8)).flatten()?;
    kernel.get(start..start.checked_add(number(12)?)?)
}

/// Whether it is a 64-bit bzImage (`xloadflags`, since protocol 2.12 of Documentation/arch/x86/boot.rst).
fn is_bzimage(kernel: &[u8]) -> bool {
    const IS_64_BIT: u8 = 1;
    let version = kernel.get(0x206..0x208).map(|bytes| u16::from_le_bytes([bytes[0], bytes[1]]));
    let is_64_bit = version < Some(0x020c) || kernel.get(0x236).is_some_and(|flags| flags & IS_64_BIT != 0);
    kernel.get(0x202..0x206) == Some(b"HdrS") && is_64_bit
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

    /// An `Image` with this magic number at its place.
    fn image(magic: &[u8]) -> Vec<u8> {
        let mut image = vec![0; 0x1000];
        image[..4].copy_from_slice(b"MZ\x40\xfa");
        image[0x38..][..magic.len()].copy_from_slice(magic);
        image
    }

    #[test]
    fn an_image_is_unpacked_whole() {
        let path = Path::new("/k");
        let plain = image(b"ARM\x64");
        let gzip = piped("gzip", &["-c"], &plain).unwrap();
        let mut zboot = b"MZ\0\0zimg".to_vec();
        zboot.extend([64_u32, u32::try_from(gzip.len()).unwrap()].map(u32::to_le_bytes).concat());
        zboot.resize(64, 0);
        zboot.extend_from_slice(&gzip);
        assert_eq!(uncompressed(path, &plain).unwrap(), None, "QEMU starts it as it is");
        for packed in [&gzip, &zboot] {
            assert_eq!(uncompressed(path, packed).unwrap().as_deref(), Some(&plain[..]));
        }
        for (kernel, expected) in [
            (&plain[..], Some(Architecture::Aarch64)),
            (&gzip, Some(Architecture::Aarch64)),
            (&zboot, Some(Architecture::Aarch64)),
            (&bzimage(b""), Some(Architecture::X86_64)),
            (&elf(62, PVH), Some(Architecture::X86_64)),
            (&elf(183, b""), Some(Architecture::Aarch64)),
            (&elf(243, b""), Some(Architecture::Riscv64)),
            (&image(b"RSC\x05"), Some(Architecture::Riscv64)),
            (&elf(8, b""), None),
            (&image(b"RSC\x06"), None),
            (&zboot[..70], None),
            (b"", None),
        ] {
            assert_eq!(architecture_of(kernel), expected);
        }
    }

    #[test]
    fn kernels_that_cannot_be_started_here_are_named_as_such() {
        let mut i386 = bzimage(b"");
        i386[0x236] = 0;
        let foreign =
            "/k: unsupported: kernel for another architecture; the lab boots kernels for x86-64, arm64 and riscv64";
        for (kernel, expected) in [
            (i386, foreign),
            (elf(8, PVH), foreign),
            (elf(243, PVH), "/k: unsupported: vmlinux of riscv64, which QEMU cannot boot; name its Image"),
            (b"\x7fELF\x01\x01 of 32 bits".to_vec(), foreign),
            (elf(183, b""), "/k: unsupported: vmlinux of arm64, which QEMU cannot boot; name its Image"),
            (
                elf(62, b""),
                "/k: unsupported: vmlinux without PVH (CONFIG_PVH), which QEMU cannot boot; name its bzImage",
            ),
        ] {
            let message = uncompressed(Path::new("/k"), &kernel).unwrap_err().to_string();
            assert!(message.starts_with(expected), "{message}");
            if expected == foreign {
                assert_eq!(not_a_kernel_here(Path::new("/k"), &kernel).to_string(), message);
            }
        }
    }
}
