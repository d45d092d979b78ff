//! Everything about guests that depends on their architecture.

mod aarch64;
mod riscv64;
mod x86_64;

use super::devices::{Devices, LinkDevices};
use super::directories;
use super::protocol::{SHARED_MIB, SHARED_RESULT};
use punctual_model::{Architecture, Cell, LabClock, Link};
use std::ffi::OsString;
use std::path::Path;

/// The machine of guests of one architecture.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Platform {
    pub(super) architecture: Architecture,
    /// QEMU's program.
    pub(super) qemu: &'static str,
    /// Debian's package of it.
    pub(super) package: &'static str,
    /// QEMU options of every guest: its machine.
    pub(super) machine: &'static [&'static str],
    /// Names of the machine and of its translated processor, as QEMU has them.
    pub(super) names: [&'static str; 2],
    /// Further properties of the machine that limit what times mean; may be empty.
    pub(super) remark: &'static str,
    /// QEMU options in virtual time, in addition to those of every architecture; `None` where it is unsupported.
    virtual_options: Option<&'static [&'static str]>,
    /// QEMU options with KVM, in addition to those of every architecture.
    kvm_options: &'static [&'static str],
    /// Kernel command line: no waits for devices that a guest does not have.
    pub(super) arguments: &'static str,
    /// Additional arguments in virtual time.
    pub(super) virtual_arguments: &'static str,
    /// Serial port of the console.
    pub(super) console: &'static str,
    /// Default library directories of the dynamic loader (ld.so(8), as Debian builds it).
    pub(super) libraries: &'static [&'static str],
    /// The files that carry the job to the guest and its result back.
    pub(super) channel: Channel,
}

/// Way of the job to a guest and of its result back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Channel {
    /// I/O ports of x86: the job from QEMU's firmware configuration, the result byte by byte into a file.
    Ports,
    /// Memory of a PCI device (ivshmem-plain), which is a file of this machine.
    SharedMemory,
}

/// QEMU options of virtual time: a clock that counts instructions and starts at a fixed date. `sleep=off` lets idle
/// time pass at once.
const VIRTUAL_TIME: &[&str] =
    &["-accel", "tcg,thread=single", "-icount", "shift=0,sleep=off", "-rtc", "base=2026-01-01,clock=vm"];

impl Platform {
    pub(super) fn of(architecture: Architecture) -> &'static Platform {
        match architecture {
            Architecture::X86_64 => &x86_64::PLATFORM,
            Architecture::Aarch64 => &aarch64::PLATFORM,
            Architecture::Riscv64 => &riscv64::PLATFORM,
        }
    }

    /// QEMU options for a clock.
    pub(super) fn processor(&self, clock: LabClock) -> Vec<&'static str> {
        let [_, processor] = self.names;
        match clock {
            LabClock::Virtual => {
                [VIRTUAL_TIME, &["-cpu", processor], self.virtual_options.unwrap_or_default()].concat()
            }
            LabClock::Emulated => vec!["-accel", "tcg,thread=multi", "-cpu", processor],
            LabClock::Kvm => [&["-accel", "kvm", "-cpu", "host"], self.kvm_options].concat(),
        }
    }

    /// QEMU options of the devices through which a guest gets its job and gives its result.
    pub(super) fn channel(&self, job: &Path, result: &Path) -> Vec<OsString> {
        match self.channel {
            Channel::Ports => x86_64::channel(job, result),
            Channel::SharedMemory => shared_memory(result, &format!("{SHARED_MIB}M")),
        }
    }

    /// QEMU options of the memory for clock marks, in this file, where the channel has none.
    pub(super) fn marks(&self, file: &Path) -> Vec<OsString> {
        match self.channel {
            Channel::Ports => shared_memory(file, &SHARED_RESULT.to_string()),
            Channel::SharedMemory => Vec::new(),
        }
    }

    /// QEMU options of the device at which a guest signals that it is at rest: QEMU's panic device, set to pause the
    /// guest, which stops it between two instructions.
    pub(super) fn pause(&self) -> [OsString; 4] {
        let device = match self.channel {
            Channel::Ports => x86_64::pause(),
            Channel::SharedMemory => "pvpanic-pci".into(),
        };
        ["-action".into(), "panic=pause".into(), "-device".into(), device]
    }

    /// Reason why guests of this architecture cannot carry out a cell that others can.
    pub(super) fn why_not(&self, cell: &Cell, clock: LabClock) -> Option<String> {
        if clock == LabClock::Virtual && self.virtual_options.is_none() {
            return Some(format!(
                "unsupported: virtual time in a guest of {}; add clock=emulated",
                self.architecture.name()
            ));
        }
        if self.architecture == Architecture::X86_64 || Devices::of(cell).link == LinkDevices::None {
            return None;
        }
        let link = cell.task.link().map(|link: Link| link.to_string()).unwrap_or_default();
        Some(format!(
            "unsupported: response:{link} in a guest of {}; choose an x86-64 kernel",
            self.architecture.name()
        ))
    }
}

/// QEMU options of the channel by shared memory. The device is the owner of its memory (`master`), otherwise QEMU
/// refuses to save it.
fn shared_memory(file: &Path, size: &str) -> Vec<OsString> {
    let path = directories::as_value(file);
    let object = format!("memory-backend-file,id=channel,mem-path={path},size={size},share=on");
    ["-object", &object, "-device", "ivshmem-plain,memdev=channel,master=on"].map(OsString::from).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_host::GUEST_VARIABLE;

    #[test]
    fn every_architecture_has_its_platform() {
        for architecture in Architecture::ALL {
            let platform = Platform::of(architecture);
            assert_eq!(platform.architecture, architecture);
            assert!(platform.qemu.ends_with(architecture.name()));
            let of_virtual = platform.processor(LabClock::Virtual);
            for needed in ["shift=0,sleep=off", "base=2026-01-01,clock=vm", "tcg,thread=single"] {
                assert!(of_virtual.contains(&needed), "{architecture:?} {needed}");
            }
            assert!(platform.arguments.starts_with(&format!("console={} ", platform.console)));
            assert!(platform.arguments.ends_with(&format!(" {GUEST_VARIABLE}=1")));
            assert!(platform.libraries[0].starts_with("/lib/") && platform.libraries.contains(&"/usr/lib"));
            assert!(!of_virtual.contains(&"host"), "the processor of this machine has random numbers");
        }
    }
}
