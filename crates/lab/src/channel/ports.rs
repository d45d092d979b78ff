//! The channel on x86-64: I/O ports.

use crate::protocol::{JOB_NAME, Job, SHARED_DEVICE, SHARED_RESULT};
use punctual_host::HostFs;
use punctual_sys::guest_ports::{END, PAUSE, RESULT};
use punctual_sys::port::{FIRMWARE, Ports};
use punctual_sys::registers::Registers;
use std::io;

/// Signals that the guest is at rest.
pub(crate) fn pause() -> io::Result<()> {
    write_bytes(PAUSE, &[1])
}

/// The job of this guest, from QEMU's firmware configuration.
pub(crate) fn read_job() -> io::Result<Job> {
    let ports = Ports::allow(FIRMWARE)?;
    let file = ports.firmware_file(JOB_NAME);
    let (selector, size) = file.ok_or_else(|| io::Error::other(format!("no file {JOB_NAME} from QEMU")))?;
    ports.select_firmware_file(selector);
    let json: Vec<u8> = (0..size).map(|_| ports.next_firmware_byte()).collect();
    serde_json::from_slice(&json).map_err(io::Error::other)
}

/// Passes the memory that the lab shares for clock marks to `act`.
pub(crate) fn with_memory<T>(act: impl FnOnce(&Registers) -> T) -> io::Result<T> {
    let (ids, bar) = SHARED_DEVICE;
    let device = punctual_host::device_memory(&HostFs::here(), ids, bar)?;
    let device = device.ok_or_else(|| io::Error::other("no shared memory for clock marks"))?;
    Ok(act(&Registers::map(&device.file, SHARED_RESULT)?))
}

/// Writes a line of the result.
pub(crate) fn write(line: &str) -> io::Result<()> {
    write_bytes(RESULT, format!("{line}\n").as_bytes())
}

/// Ends QEMU at once.
pub(crate) fn end() {
    let _ = write_bytes(END, &[0]);
}

fn write_bytes(port: u16, bytes: &[u8]) -> io::Result<()> {
    let ports = Ports::allow(port..=port)?;
    bytes.iter().for_each(|byte| ports.write_byte(port, *byte));
    Ok(())
}
