//! The channel on x86-64: I/O ports.

use crate::protocol::{AT_REST, END, JOB_NAME, Job, RESULT, SHARED_DEVICE, SHARED_RESULT};
use punctual_host::HostFs;
use punctual_sys::port::Ports;
use punctual_sys::registers::Registers;
use std::io;

/// Signals that the guest is at rest.
pub(crate) fn pause() -> io::Result<()> {
    write_bytes(AT_REST, &[1])
}

/// The job of this guest, read from QEMU's firmware configuration device (QEMU, docs/specs/fw_cfg.rst): an item is
/// selected by a number at one port and read byte by byte at the next. It needs no driver, and its content is not part
/// of a snapshot.
pub(crate) fn read_job() -> io::Result<Job> {
    const SELECT: u16 = 0x510;
    const DATA: u16 = 0x511;
    const DIRECTORY: u16 = 0x19;
    let ports = Ports::allow(SELECT..=DATA)?;
    let number = || u32::from_be_bytes([(); 4].map(|()| ports.read_byte(DATA)));
    ports.write_word(SELECT, DIRECTORY);
    for _ in 0..number() {
        let size = number();
        let [high, low, ..] = number().to_be_bytes();
        let name = [(); 56].map(|()| ports.read_byte(DATA));
        if name.split(|byte| *byte == 0).next() == Some(JOB_NAME.as_bytes()) {
            ports.write_word(SELECT, u16::from_be_bytes([high, low]));
            let json: Vec<u8> = (0..size).map(|_| ports.read_byte(DATA)).collect();
            return serde_json::from_slice(&json).map_err(io::Error::other);
        }
    }
    Err(io::Error::other(format!("no file {JOB_NAME} from QEMU")))
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
