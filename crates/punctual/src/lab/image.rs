//! From a compressed kernel to the one that QEMU starts directly.
//!
//! A bzImage unpacks itself, at the cost of billions of counted instructions. Kernels with `CONFIG_PVH`, which all of Debian's
//! are, can be started as plain ELF instead (Documentation/arch/x86/boot.rst: `payload_offset`, `payload_length`).

use super::LabError;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// How a payload begins, and the program that unpacks it, with its package.
const COMPRESSORS: [(&[u8], &str, &[&str]); 4] = [
    (b"\xfd7zXZ\x00", "xz", &["--decompress", "--stdout", "--single-stream", "--quiet"]),
    (b"\x28\xb5\x2f\xfd", "zstd", &["--decompress", "--stdout", "--quiet"]),
    (b"\x1f\x8b", "gzip", &["--decompress", "--stdout", "--quiet"]),
    (b"\x02\x21\x4c\x18", "lz4", &["-d", "-c", "-q"]),
];

/// The ELF kernel inside of `kernel`; itself if it is one. `None` where nothing here unpacks it: QEMU then starts it as
/// it is.
///
/// # Errors
/// When it is no kernel for x86.
pub(super) fn uncompressed(path: &Path, kernel: &[u8]) -> Result<Option<Vec<u8>>, LabError> {
    const ELF: &[u8] = b"\x7fELF";
    if kernel.starts_with(ELF) {
        return Ok(Some(kernel.to_vec()));
    }
    let payload =
        payload(kernel).ok_or_else(|| LabError::file(path, "no bzImage and no vmlinux of x86; name another file"))?;
    let known = COMPRESSORS.iter().find(|(magic, ..)| payload.starts_with(magic));
    let Some((_, program, arguments)) = known else { return Ok(None) };
    let unpacked = piped(program, arguments, payload).ok();
    Ok(unpacked.filter(|unpacked| unpacked.starts_with(ELF)))
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

/// What `program` makes of `input`. Some end with an error because of what follows the compressed data, so only their
/// output counts.
fn piped(program: &str, arguments: &[&str], input: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut command = Command::new(program);
    let command = command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn()?;
    let stdin = child.stdin.take();
    let output = std::thread::scope(|scope| {
        scope.spawn(move || stdin.map(|mut stdin| stdin.write_all(input)));
        child.wait_with_output()
    })?;
    Ok(output.stdout)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_payload_of_a_kernel_is_unpacked() {
        let inside = b"\x7fELF and the rest of a kernel";
        let gzip = piped("gzip", &["-c"], inside).unwrap();
        let mut kernel = vec![0; 4096];
        kernel[0x1f1] = 2;
        kernel[0x202..0x206].copy_from_slice(b"HdrS");
        kernel[0x248..0x24c].copy_from_slice(&64_u32.to_le_bytes());
        kernel[0x24c..0x250].copy_from_slice(&u32::try_from(gzip.len()).unwrap().to_le_bytes());
        kernel[3 * 512 + 64..][..gzip.len()].copy_from_slice(&gzip);
        let path = Path::new("/k");
        assert_eq!(uncompressed(path, &kernel).unwrap().as_deref(), Some(&inside[..]));
        assert_eq!(uncompressed(path, inside).unwrap().as_deref(), Some(&inside[..]));
        kernel[3 * 512 + 64] = 0;
        assert_eq!(uncompressed(path, &kernel).unwrap(), None, "an unknown compression is QEMU's to start");
        for broken in [&kernel[..0x300], b"", b"#!/bin/sh"] {
            assert!(uncompressed(path, broken).unwrap_err().to_string().starts_with("/k: no bzImage"));
        }
    }
}
