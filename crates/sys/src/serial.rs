//! Serial ports: raw mode, low latency, loopback, and error counters.

use crate::check;
use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Opens a port without waiting for a carrier, and not as controlling terminal. Errors: the error of open(2).
pub fn open(path: &Path) -> io::Result<File> {
    let flags = libc::O_NOCTTY | libc::O_NONBLOCK | libc::O_CLOEXEC;
    let file = File::options().read(true).write(true).custom_flags(flags).open(path)?;
    // O_NONBLOCK was for open(2) only.
    // SAFETY: the call takes integers only; the file is open.
    check(unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETFL, 0) }.into())?;
    Ok(file)
}

fn settings(file: &File) -> io::Result<libc::termios> {
    let mut settings = MaybeUninit::<libc::termios>::zeroed();
    // SAFETY: the file is open, and `settings` is memory for a termios.
    check(unsafe { libc::tcgetattr(file.as_raw_fd(), settings.as_mut_ptr()) }.into())?;
    // SAFETY: all zeroes is a valid termios, and the call has filled it in.
    Ok(unsafe { settings.assume_init() })
}

/// The termios constant of a speed; `None` for an unsupported speed.
fn speed(baud: u32) -> Option<libc::speed_t> {
    Some(match baud {
        9_600 => libc::B9600,
        19_200 => libc::B19200,
        38_400 => libc::B38400,
        57_600 => libc::B57600,
        115_200 => libc::B115200,
        230_400 => libc::B230400,
        460_800 => libc::B460800,
        921_600 => libc::B921600,
        1_000_000 => libc::B1000000,
        3_000_000 => libc::B3000000,
        _ => return None,
    })
}

/// Sets raw mode, reads it back, and discards pending input: eight bits, no parity, no flow control, each byte readable
/// on arrival (termios(3)). Errors: `ENOTTY` when the file is not a terminal, `EINVAL` when the port lacks the speed or
/// did not keep a setting.
pub fn make_raw(file: &File, baud: u32) -> io::Result<()> {
    let speed = speed(baud).ok_or(io::ErrorKind::InvalidInput)?;
    let mut asked = settings(file)?;
    // SAFETY: `asked` is a valid termios; the call only changes it.
    unsafe { libc::cfmakeraw(&raw mut asked) };
    asked.c_cflag = (asked.c_cflag | libc::CLOCAL | libc::CREAD) & !(libc::CRTSCTS | libc::CSTOPB);
    // The kernel's own field: the C library's function for it is versioned, which a static program cannot use.
    asked.c_cflag = asked.c_cflag & !libc::CBAUD | speed;
    (asked.c_ispeed, asked.c_ospeed) = (speed, speed);
    let [at_least, timeout] = [libc::VMIN, libc::VTIME];
    asked.c_cc[at_least] = 1;
    asked.c_cc[timeout] = 0;
    // SAFETY: the file is open and `asked` a valid termios that outlives the call.
    check(unsafe { libc::tcsetattr(file.as_raw_fd(), libc::TCSAFLUSH, &raw const asked) }.into())?;
    let found = settings(file)?;
    let is_kept = found.c_cflag & libc::CBAUD == speed
        && found.c_cflag & (libc::CSIZE | libc::PARENB | libc::CRTSCTS) == libc::CS8
        && found.c_lflag & (libc::ICANON | libc::ECHO | libc::ISIG) == 0
        && found.c_oflag & libc::OPOST == 0;
    if is_kept { Ok(()) } else { Err(io::Error::from_raw_os_error(libc::EINVAL)) }
}

/// `struct serial_struct` of linux/serial.h.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
struct SerialStruct {
    kind: i32,
    line: i32,
    port: u32,
    irq: i32,
    flags: i32,
    rest: [u64; 7],
}

/// ASYNC_LOW_LATENCY, linux/tty_flags.h.
const LOW_LATENCY: i32 = 1 << 13;

/// Requests low latency from the driver: received bytes are not batched. Returns whether the driver kept the flag.
/// Errors: `ENOTTY` or `EINVAL` when the driver does not support the flag.
pub fn set_low_latency(file: &File) -> io::Result<bool> {
    let mut port = MaybeUninit::<SerialStruct>::zeroed();
    // SAFETY: the file is open; TIOCGSERIAL writes a serial_struct, which is not larger than `port`.
    check(unsafe { libc::ioctl(file.as_raw_fd(), libc::TIOCGSERIAL, port.as_mut_ptr()) }.into())?;
    // SAFETY: all zeroes is a valid value, and the call has filled it in.
    let mut port = unsafe { port.assume_init() };
    port.flags |= LOW_LATENCY;
    // SAFETY: the file is open; TIOCSSERIAL reads a serial_struct, which `port` contains completely.
    check(unsafe { libc::ioctl(file.as_raw_fd(), libc::TIOCSSERIAL, &raw const port) }.into())?;
    // SAFETY: as above.
    check(unsafe { libc::ioctl(file.as_raw_fd(), libc::TIOCGSERIAL, &raw mut port) }.into())?;
    Ok(port.flags & LOW_LATENCY != 0)
}

/// `TIOCM_LOOP` (asm-generic/termios.h): internal loopback of the chip.
const LOOP: i32 = 0x8000;

/// Turns the chip's internal loopback on or off. Errors: the driver's error; `EINVAL` when it ignores the request.
pub fn set_loop(file: &File, is_on: bool) -> io::Result<()> {
    let (request, bits) = (if is_on { libc::TIOCMBIS } else { libc::TIOCMBIC }, LOOP);
    // SAFETY: the file is open; the request reads one int.
    check(unsafe { libc::ioctl(file.as_raw_fd(), request, &raw const bits) }.into()).map(drop)
}

/// `struct serial_icounter_struct` of linux/serial.h.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
struct Counters {
    lines: [i32; 4],
    received: i32,
    sent: i32,
    framing: i32,
    overrun: i32,
    parity: i32,
    breaks: i32,
    buffer_overrun: i32,
    reserved: [i32; 9],
}

/// Receive errors since the port exists: framing, overrun, parity, break, full buffer; `None` where the driver does not
/// count them (TIOCGICOUNT).
pub fn errors(file: &File) -> Option<u64> {
    let mut counters = MaybeUninit::<Counters>::zeroed();
    // SAFETY: the file is open; TIOCGICOUNT writes a serial_icounter_struct, for which `counters` is memory.
    check(unsafe { libc::ioctl(file.as_raw_fd(), TIOCGICOUNT, counters.as_mut_ptr()) }.into()).ok()?;
    // SAFETY: all zeroes is a valid value, and the call has filled it in.
    let counters = unsafe { counters.assume_init() };
    let Counters { framing, overrun, parity, breaks, buffer_overrun, .. } = counters;
    [framing, overrun, parity, breaks, buffer_overrun].into_iter().map(|count| u64::try_from(count).ok()).sum()
}

/// asm-generic/ioctls.h.
const TIOCGICOUNT: libc::Ioctl = 0x545d;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_port_is_refused() {
        let file = open(Path::new("/dev/null")).unwrap();
        assert_eq!(make_raw(&file, 9600).unwrap_err().raw_os_error(), Some(libc::ENOTTY));
        assert_eq!(make_raw(&file, 12_345).unwrap_err().kind(), io::ErrorKind::InvalidInput);
        assert!(set_low_latency(&file).is_err() && set_loop(&file, true).is_err());
        assert_eq!(errors(&file), None);
        assert!(open(Path::new("/nonexistent")).is_err());
    }

    #[test]
    fn a_terminal_hands_on_each_byte_as_it_is() {
        use std::io::{Read, Write};
        let size = crate::terminal::Size { columns: 80, rows: 24 };
        let (mut master, mut port) = crate::terminal::pair(size).unwrap();
        assert_eq!(crate::terminal::size(&port), Some(size));
        make_raw(&port, 115_200).unwrap();
        master.write_all(&[3, 13, 0]).unwrap();
        let mut bytes = [9; 3];
        port.read_exact(&mut bytes).unwrap();
        assert_eq!(bytes, [3, 13, 0], "no signal, no line ends");
    }
}
