//! Guests on riscv64: QEMU's `virt`.

use super::{Channel, Platform};
use punctual_model::Architecture;

pub(super) static PLATFORM: Platform = Platform {
    architecture: Architecture::Riscv64,
    qemu: "qemu-system-riscv64",
    package: "qemu-system-misc",
    // Its firmware, OpenSBI, is a package of its own in Debian, which that of QEMU recommends.
    machine: &["-M", "virt"],
    names: ["virt", "rv64"],
    // Frequency of the timer (QEMU, RISCV_ACLINT_DEFAULT_TIMEBASE_FREQ).
    remark: ", 10 MHz timer (100 ns)",
    virtual_options: None,
    kvm_options: &[],
    arguments: "console=ttyS0 quiet panic=-1 nokaslr norandmaps cryptomgr.notests PUNCTUAL_GUEST=1",
    virtual_arguments: "",
    console: "ttyS0",
    libraries: &["/lib/riscv64-linux-gnu", "/usr/lib/riscv64-linux-gnu", "/lib", "/usr/lib"],
    channel: Channel::SharedMemory,
};
