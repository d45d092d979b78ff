//! The channel of architectures without I/O ports: the memory of a PCI device.

use crate::protocol::{Job, SHARED_DEVICE, SHARED_MARKS, SHARED_MIB, SHARED_RESULT};
use punctual_host::HostFs;
use punctual_sys::mapping::page_bytes;
use punctual_sys::registers::Registers;
use std::io;
use std::sync::{Mutex, PoisonError};

/// Vendor and device number of the panic device (QEMU, docs/specs/pvpanic.rst), and the number of its memory.
const PANIC: ([&str; 2], usize) = (["0x1b36", "0x0011"], 0);

const SHARED_BYTES: usize = (SHARED_MIB as usize) << 20;
const WORD: usize = size_of::<u64>();

/// The channel of this guest.
struct Channel {
    memory: Registers,
    /// End of the result so far.
    at: usize,
}

/// Passes the channel to `act`; maps it at first use. That must be after the snapshot was taken: QEMU (7.2 at least)
/// resumes a guest only if such memory was never enabled (`platform::aarch64`).
fn with_channel<T>(act: impl FnOnce(&mut Channel) -> io::Result<T>) -> io::Result<T> {
    static CHANNEL: Mutex<Option<Channel>> = Mutex::new(None);
    let mut channel = CHANNEL.lock().unwrap_or_else(PoisonError::into_inner);
    if channel.is_none() {
        let (ids, bar) = SHARED_DEVICE;
        let device = punctual_host::device_memory(&HostFs::here(), ids, bar)?;
        let device = device.ok_or_else(|| io::Error::other("no shared memory: the kernel needs PCI_HOST_GENERIC"))?;
        let memory = Registers::map(&device.file, SHARED_BYTES)?;
        *channel = Some(Channel { memory, at: SHARED_RESULT });
    }
    channel.as_mut().map_or_else(|| Err(io::ErrorKind::NotConnected.into()), act)
}

/// Passes the shared memory to `act`.
pub(crate) fn with_memory<T>(act: impl FnOnce(&Registers) -> T) -> io::Result<T> {
    with_channel(|channel| Ok(act(&channel.memory)))
}

/// Signals that the guest is at rest, where a snapshot is taken: other guests lack the device.
pub(crate) fn pause() -> io::Result<()> {
    const PANICKED: u8 = 1;
    let (ids, bar) = PANIC;
    let Some(device) = punctual_host::device_memory(&HostFs::here(), ids, bar)? else { return Ok(()) };
    let at = usize::try_from(device.address).map_err(io::Error::other)? % page_bytes();
    Registers::map(&device.file, at + 1)?.write_u8(at, PANICKED);
    Ok(())
}

/// The job of this guest. It is not part of a snapshot.
pub(crate) fn read_job() -> io::Result<Job> {
    let json = with_channel(|channel| {
        let word = |at| channel.memory.read_u64(at);
        let bytes = usize::try_from(word(0).map_or(0, u64::from_le)).unwrap_or(usize::MAX);
        if bytes > SHARED_MARKS - WORD {
            return Err(io::Error::other("job too large"));
        }
        let words = (0..bytes.div_ceil(WORD)).filter_map(|n| word(WORD + n * WORD));
        let mut json: Vec<u8> = words.flat_map(u64::to_ne_bytes).collect();
        json.truncate(bytes);
        Ok(json)
    })?;
    serde_json::from_slice(&json).map_err(io::Error::other)
}

/// Writes a line of the result, filled up with line ends: device memory takes aligned words only.
pub(crate) fn write(line: &str) -> io::Result<()> {
    let mut bytes = line.as_bytes().to_vec();
    bytes.resize((bytes.len() + 1).next_multiple_of(WORD), b'\n');
    with_channel(|Channel { memory, at }| {
        if *at + bytes.len() > SHARED_BYTES {
            return Err(io::Error::other(format!("result larger than {SHARED_MIB} MiB")));
        }
        for word in bytes.chunks(WORD) {
            let mut value = [0; WORD];
            value.copy_from_slice(word);
            memory.write_u64(*at, u64::from_ne_bytes(value));
            *at += WORD;
        }
        Ok(())
    })
}

/// Ends nothing: the restart of the machine, which follows, ends QEMU.
pub(crate) fn end() {}
