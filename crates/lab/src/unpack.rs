//! Extraction of the kernel from a package, with its configuration and the modules that the lab needs.

use super::devices;
use super::tar::{self, TarError};
use super::{LabError, Monitor, modules};
use punctual_model::{Architecture, LARGEST_CONFIG};
use std::io::{self, Read};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// Content of a package. Packages are untrusted and may be read as root, so nothing is unpacked on disk.
#[derive(Debug)]
pub(super) struct PackageContents {
    pub(super) kernel: Vec<u8>,
    pub(super) config: Option<String>,
    /// Uncompressed modules, by name.
    pub(super) modules: Vec<(String, Vec<u8>)>,
}

const PROGRAM: &str = "dpkg-deb";
/// Beginnings of the name of the kernel; it is `vmlinux` on riscv64.
const KERNELS: [&str; 2] = ["boot/vmlinuz-", "boot/vmlinux-"];
const CONFIG: &str = "boot/config-";
/// Size limit of all that is needed, bytes, and of all modules uncompressed.
const MOST_BYTES: u64 = 512 << 20;

/// Size limit of a file with this name, bytes; `None` when it is not needed.
fn at_most(name: &str) -> Option<u64> {
    let is_in_boot = |begin| name.strip_prefix(begin).is_some_and(|rest: &str| !rest.contains('/'));
    let is_module = || {
        let below = ["lib/modules/", "usr/lib/modules/"].iter().any(|begin| name.starts_with(begin));
        below
            && modules::stem(Path::new(name)).is_some_and(|stem| devices::all_modules().any(|known| known == stem))
            && !name.ends_with('/')
    };
    match () {
        () if KERNELS.into_iter().any(is_in_boot) => Some(256 << 20),
        () if is_in_boot(CONFIG) => Some(LARGEST_CONFIG),
        () if is_module() => Some(32 << 20),
        () => None,
    }
}

/// Reads the package `archive`; stops early on request of `monitor`. Errors: if the package is incomplete, holds no
/// kernel, or has special files in place of regular ones.
pub(super) fn unpack(archive: &Path, monitor: Monitor<'_>) -> Result<PackageContents, LabError> {
    let failed = |err: io::Error| match err.kind() {
        io::ErrorKind::NotFound => {
            LabError::program(PROGRAM, "is not installed; unpack the package elsewhere and name the vmlinuz in it")
        }
        _ => LabError::program(PROGRAM, err),
    };
    let mut command = Command::new(PROGRAM);
    let command = command.arg("--fsys-tarfile").arg(archive).stdin(Stdio::null());
    let mut unpacker = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().map_err(failed)?;
    let stdout = unpacker.stdout.take().ok_or_else(|| failed(io::Error::other("no pipe to it")))?;
    let files = tar::read(&mut UntilStopped { stream: stdout, monitor }, &at_most, MOST_BYTES);
    if (monitor.is_stopped)() {
        let _ = unpacker.kill();
    }
    let output = unpacker.wait_with_output().map_err(failed)?;
    let in_package = |name: &str, what: String| LabError::file(archive, format!("{name} in the package: {what}"));
    let files = match files {
        Err(TarError::NotRegular(name)) => return Err(in_package(&name, "expected a regular file".to_owned())),
        Err(TarError::TooLarge(name, most)) => {
            return Err(in_package(&name, format!("larger than {} MiB", most >> 20)));
        }
        _ if (monitor.is_stopped)() || output.status.signal() == Some(libc::SIGTERM) => {
            return Err(LabError::program(PROGRAM, "interrupted"));
        }
        _ if !output.status.success() => {
            let message = super::error_line(&output.stderr);
            let message = message.trim_start_matches("dpkg-deb: error: ").trim_start_matches("dpkg-deb (subprocess): ");
            return Err(LabError::file(archive, format!("damaged package ({PROGRAM}: {message}); fetch it again")));
        }
        Err(TarError::Io(err)) => {
            return Err(LabError::file(archive, format!("damaged package ({err}); fetch it again")));
        }
        Ok(files) => files,
    };
    let (mut kernel, mut config, mut found, mut bytes) = (None, None, Vec::new(), 0);
    for (name, content) in files {
        match () {
            () if KERNELS.iter().any(|begin| name.starts_with(begin)) => kernel = kernel.or(Some(content)),
            () if name.starts_with(CONFIG) => config = config.or(String::from_utf8(content).ok()),
            // A module that cannot be decompressed is reported as missing later, where it is needed.
            () => {
                let module = modules::uncompressed(Path::new(&name), content);
                bytes += module.as_ref().map_or(0, |(_, content)| content.len() as u64);
                if bytes > MOST_BYTES {
                    return Err(in_package("what is needed", format!("larger than {} MiB", MOST_BYTES >> 20)));
                }
                found.extend(module);
            }
        }
    }
    let none = || LabError::file(archive, "no kernel in the package; name another, like linux-image-*.deb");
    Ok(PackageContents { kernel: kernel.ok_or_else(none)?, config, modules: found })
}

/// The architecture that a package declares; `None` unless the lab has guests of it.
pub(super) fn architecture_of(archive: &Path) -> Option<Architecture> {
    let mut command = Command::new(PROGRAM);
    let output = command.arg("--field").arg(archive).arg("Architecture").stdin(Stdio::null()).output().ok()?;
    let name = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    Architecture::ALL.into_iter().find(|known| known.debian() == name)
}

/// A stream that fails after a stop request.
struct UntilStopped<'a, R> {
    stream: R,
    monitor: Monitor<'a>,
}

impl<R: Read> Read for UntilStopped<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if (self.monitor.is_stopped)() {
            return Err(io::Error::other("stopped"));
        }
        self.stream.read(buffer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_kernel_its_configuration_and_modules_of_the_lab_are_wanted() {
        for (name, is_wanted) in [
            ("boot/vmlinuz-6.1.0-9-amd64", true),
            ("boot/vmlinux-6.12.9-riscv64", true),
            ("boot/config-6.1.0-9-amd64", true),
            ("boot/System.map-6.1.0-9-amd64", false),
            ("boot/vmlinuz-x/y", false),
            ("boot/vmlinuz-x/", false),
            ("usr/boot/vmlinuz-x", false),
            ("lib/modules/6.1.0-9-amd64/kernel/drivers/uio/uio.ko", true),
            ("usr/lib/modules/6.12.94/kernel/drivers/uio/uio_pci_generic.ko.xz", true),
            ("lib/modules/6.1.0-9-amd64/kernel/drivers/uio/uio.ko/", false),
            ("lib/modules/6.1.0-9-amd64/kernel/drivers/uio/uio_cif.ko", false),
            ("etc/uio.ko", false),
        ] {
            assert_eq!(at_most(name).is_some(), is_wanted, "{name}");
        }
    }
}
