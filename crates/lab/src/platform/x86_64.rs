//! Guests on x86-64: QEMU's `pc`.

use super::{Channel, Platform};
use crate::directories::as_value;
use crate::protocol::JOB_NAME;
use punctual_model::Architecture;
use punctual_sys::guest_ports::{PAUSE, RESULT};
use std::ffi::OsString;
use std::path::Path;

pub(super) static PLATFORM: Platform = Platform {
    architecture: Architecture::X86_64,
    qemu: "qemu-system-x86_64",
    package: "qemu-system-x86",
    // The device ends QEMU (`guest_ports::END`).
    machine: &["-M", "pc", "-device", "isa-debug-exit,iobase=0x501,iosize=1"],
    names: ["pc", "qemu64"],
    remark: "",
    // The processor has no random numbers.
    virtual_options: Some(&[]),
    kvm_options: &[],
    arguments: "console=ttyS0 quiet panic=-1 nokaslr norandmaps no_timer_check cryptomgr.notests i8042.noaux \
                i8042.nokbd i8042.nopnp PUNCTUAL_GUEST=1",
    // Clock rates are given and not calibrated, and the processor supplies no entropy.
    virtual_arguments: "random.trust_cpu=off tsc=reliable tsc_early_khz=1000000 lpj=4000000",
    console: "ttyS0",
    libraries: &["/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib64", "/lib", "/usr/lib"],
    channel: Channel::Ports,
};

/// QEMU options of the channel.
pub(super) fn channel(job: &Path, result: &Path) -> Vec<OsString> {
    let result = format!("file,id=result,path={}", as_value(result));
    let at_port = format!("isa-debugcon,iobase={RESULT},chardev=result");
    let job = format!("name={JOB_NAME},file={}", as_value(job));
    // The second serial port was formerly that of the result. It stays because the devices of a machine affect each
    // number.
    let words = ["-serial", "null", "-chardev", &result, "-device", &at_port, "-fw_cfg", &job];
    words.map(OsString::from).into()
}

/// The device at which a guest signals that it is at rest.
pub(super) fn pause() -> OsString {
    format!("pvpanic,ioport={PAUSE}").into()
}
