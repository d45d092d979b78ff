//! Checks of cells that the lab cannot carry out, made before anything is started.

use super::devices::Devices;
use super::left_out::{STARTS_GUESTS, left_out};
use super::platform::Platform;
use super::{disk, guest_files, guest_threads, kernels, network, qemu};
use punctual_model::{Architecture, Cell, Kernel, LabClock, Link, LoadPart, Task};

/// The oldest tested QEMU: older ones count instructions in another way.
const OLDEST: (u32, u32) = (7, 0);

/// Reason why a cell cannot be carried out in the lab; `None` when it can.
pub fn why_not(cell: &Cell) -> Option<String> {
    let Kernel::Lab(kernel) = &cell.kernel else { return None };
    if !STARTS_GUESTS {
        return Some(left_out());
    }
    let programs = cell.load.parts().iter().filter_map(|part| match part {
        LoadPart::Program(program) => Some(program.tool.command()),
        _ => None,
    });
    if let Some(missing) = programs.into_iter().find(|name| !guest_files::has_program(kernel, name)) {
        let example = if missing == "sh" { "/usr/bin/dash:/bin/sh".to_owned() } else { format!("/usr/bin/{missing}") };
        return Some(format!("guests do not contain {missing}; add it, like files = [\"{example}\"]"));
    }
    if cell.conditions.on_spike.is_some() {
        return Some("unsupported: on_spike in a guest, which has no CPU and no shell for it; leave it out".to_owned());
    }
    match cell.task.link() {
        Some(link @ (Link::Gpio(_) | Link::Parport(_))) => {
            return Some(format!(
                "unsupported: response:{link} in a guest, which lacks the device; name a serial line, \
                 like response:serial:/dev/ttyS2"
            ));
        }
        Some(Link::Serial { .. } | Link::Udp(_)) if kernel.clock == LabClock::Virtual => {
            return Some(
                "unsupported: two guests in virtual time, whose clocks differ; add clock=emulated, \
                 or name another link"
                    .to_owned(),
            );
        }
        link => {
            if let Some(reason) = link.and_then(network::why_not) {
                return Some(reason);
            }
        }
    }
    if let Some(reason) = guest_threads::why_not(kernel, &cell.load) {
        return Some(reason);
    }
    if Devices::of(cell).has_disk
        && let Some(reason) = disk::why_not()
    {
        return Some(reason);
    }
    let asked = cell.cpus.len();
    if kernel.clock == LabClock::Virtual && asked > 1 {
        return Some(
            "unsupported: several CPUs in virtual time, whose clock counts instructions: CPUs would take turns at \
             whole time slices; leave `cpus` out, or name one"
                .to_owned(),
        );
    }
    if asked > usize::try_from(kernel.cpus).unwrap_or(usize::MAX) {
        return Some(format!("cannot measure {asked} CPUs: the guest has {}; add cpus={asked}", kernel.cpus));
    }
    let Some(architecture) = kernels::architecture_of(&kernel.source).or(Architecture::OWN) else {
        return Some(
            "unsupported: guests of this machine's architecture; name another, like debian:6.1-arm64".to_owned(),
        );
    };
    let platform = Platform::of(architecture);
    if let Task::Sleep(runtime) = cell.task
        && Architecture::OWN != Some(architecture)
    {
        return Some(format!("unsupported: the {runtime} of this machine in a guest of {}", architecture.name()));
    }
    platform.why_not(cell, kernel.clock).or_else(|| why_no_qemu(platform)).or_else(|| {
        let kvm = (kernel.clock == LabClock::Kvm).then(|| why_no_kvm(platform)).flatten();
        let kvm = kvm.map(|why| format!("cannot use KVM: {why}; clock=virtual does not need it"));
        let program = || punctual_host::program_of(architecture).err();
        kvm.or_else(program).or_else(|| kernels::why_none(&kernel.source))
    })
}

fn why_no_qemu(platform: &Platform) -> Option<String> {
    let Some(version) = qemu::version(platform.qemu) else {
        return Some(format!("{} is not installed; apt-get install {}", platform.qemu, platform.package));
    };
    let (major, minor) = OLDEST;
    match numbers(&version) {
        Some(numbers) if numbers < OLDEST => {
            Some(format!("unsupported: {version}, too old for virtual time; install {major}.{minor} or newer"))
        }
        Some(_) => None,
        None => Some(format!(
            "unsupported: unknown version of {}: {version}; install {major}.{minor} or newer",
            platform.qemu
        )),
    }
}

fn why_no_kvm(platform: &Platform) -> Option<String> {
    if Architecture::OWN == Some(platform.architecture) {
        return qemu::why_no_kvm(platform).map(str::to_owned);
    }
    Some(format!("the guest is {}, this machine is not", platform.architecture.name()))
}

/// The first two numbers of `QEMU emulator version 7.2.22 (Debian ...)`.
fn numbers(version: &str) -> Option<(u32, u32)> {
    let text = version.split_once("version ")?.1;
    let mut numbers = text.split(|c: char| !c.is_ascii_digit()).map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_of_qemu_is_read() {
        for (said, expected) in [
            ("QEMU emulator version 7.2.22 (Debian 1:7.2+dfsg-7+deb12u18+b3)", Some((7, 2))),
            ("QEMU emulator version 10.0.2", Some((10, 0))),
            ("QEMU emulator version 6.2", Some((6, 2))),
            ("QEMU emulator version ", None),
            ("", None),
        ] {
            assert_eq!(numbers(said), expected, "{said}");
        }
        assert!((6, 99) < OLDEST && (7, 0) >= OLDEST && (10, 0) >= OLDEST);
    }
}
