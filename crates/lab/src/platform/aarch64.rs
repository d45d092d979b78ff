//! Guests on arm64: QEMU's `virt`.

use super::{Channel, Platform};
use punctual_model::Architecture;

pub(super) static PLATFORM: Platform = Platform {
    architecture: Architecture::Aarch64,
    qemu: "qemu-system-aarch64",
    package: "qemu-system-arm",
    machine: &["-M", "virt"],
    names: ["virt", "cortex-a72"],
    // Frequency of the generic timer (QEMU, GTIMER_SCALE in target/arm/internals.h).
    remark: ", 62.5 MHz timer (16 ns)",
    // A fixed seed of the random numbers that the device tree passes to the kernel (`rng-seed`, `kaslr-seed`). The
    // guest's init makes the kernel's generator ready.
    virtual_options: Some(&["-seed", "1"]),
    kvm_options: &["-machine", "gic-version=max"],
    arguments: "console=ttyAMA0 quiet panic=-1 nokaslr norandmaps cryptomgr.notests PUNCTUAL_GUEST=1",
    // The processor supplies no entropy. The driver virtio_pci would enable every device of this vendor to look at it,
    // the channel, too, and QEMU (7.2 at least) then cannot resume the guest: `Mismatched GPAs`.
    virtual_arguments: "random.trust_cpu=off initcall_blacklist=virtio_pci_driver_init",
    console: "ttyAMA0",
    libraries: &["/lib/aarch64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/lib", "/usr/lib"],
    channel: Channel::SharedMemory,
};
