//! Lines of GPIO chips, through version 2 of the character device's ABI (linux/gpio.h, Linux 5.10 and later).

use crate::{check, errno_of};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// linux/gpio.h: length of names, and the maximum numbers of lines and of attributes in a request.
const NAME: usize = 32;
const LINES: usize = 64;
const ATTRIBUTES: usize = 10;

/// GPIO_V2_LINE_FLAG_*.
const USED: u64 = 1;
const INPUT: u64 = 1 << 2;
const OUTPUT: u64 = 1 << 3;
const RISING: u64 = 1 << 4;
const FALLING: u64 = 1 << 5;
/// GPIO_V2_LINE_ATTR_ID_*.
const FLAGS: u32 = 1;
const VALUES: u32 = 2;
/// GPIO_V2_LINE_EVENT_RISING_EDGE.
const RISING_EDGE: u32 = 1;

/// GPIO_GET_CHIPINFO_IOCTL, GPIO_V2_GET_LINEINFO_IOCTL, GPIO_V2_GET_LINE_IOCTL, GPIO_V2_LINE_SET_VALUES_IOCTL:
/// direction, size of the argument, type 0xB4, number.
const CHIP_INFO: libc::Ioctl = 0x8044_b401;
const LINE_INFO: libc::Ioctl = 0xc100_b405;
const GET_LINE: libc::Ioctl = 0xc250_b407;
const SET_VALUES: libc::Ioctl = 0xc010_b40f;

/// `struct gpiochip_info`.
#[repr(C)]
#[derive(Debug)]
struct ChipInfo {
    name: [u8; NAME],
    label: [u8; NAME],
    lines: u32,
}

/// `struct gpio_v2_line_attribute`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
struct Attribute {
    id: u32,
    padding: u32,
    value: u64,
}

/// `struct gpio_v2_line_config_attribute`: an attribute and the lines of the request that it applies to, one bit each.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
struct ConfigAttribute {
    attribute: Attribute,
    mask: u64,
}

/// `struct gpio_v2_line_request` with its `struct gpio_v2_line_config`.
#[repr(C)]
#[derive(Debug)]
struct LineRequest {
    offsets: [u32; LINES],
    consumer: [u8; NAME],
    flags: u64,
    attribute_count: u32,
    config_padding: [u32; 5],
    attributes: [ConfigAttribute; ATTRIBUTES],
    line_count: u32,
    event_buffer_size: u32,
    padding: [u32; 5],
    fd: i32,
}

/// `struct gpio_v2_line_info`.
#[repr(C)]
#[derive(Debug)]
struct LineInfo {
    name: [u8; NAME],
    consumer: [u8; NAME],
    offset: u32,
    attribute_count: u32,
    flags: u64,
    attributes: [Attribute; ATTRIBUTES],
    padding: [u32; 4],
}

/// `struct gpio_v2_line_values`.
#[repr(C)]
#[derive(Debug)]
struct Values {
    bits: u64,
    mask: u64,
}

const NO_ATTRIBUTE: Attribute = Attribute { id: 0, padding: 0, value: 0 };

/// Number of lines of a chip. Errors: `ENOTTY` when the file is not a GPIO chip.
pub fn lines_of(chip: &File) -> io::Result<u32> {
    let mut info = ChipInfo { name: [0; NAME], label: [0; NAME], lines: 0 };
    // SAFETY: the file is open; the request writes a gpiochip_info, which `info` is.
    check(unsafe { libc::ioctl(chip.as_raw_fd(), CHIP_INFO, &raw mut info) }.into())?;
    Ok(info.lines)
}

/// The consumer of a line, by the name that it gave; `None` for a free line. Errors: `EINVAL` for a line that the chip
/// does not have, and for every line before Linux 5.10.
pub fn user_of(chip: &File, line: u32) -> io::Result<Option<String>> {
    let mut info = LineInfo {
        name: [0; NAME],
        consumer: [0; NAME],
        offset: line,
        attribute_count: 0,
        flags: 0,
        attributes: [NO_ATTRIBUTE; ATTRIBUTES],
        padding: [0; 4],
    };
    // SAFETY: the file is open; the request reads and writes a gpio_v2_line_info, which `info` is.
    check(unsafe { libc::ioctl(chip.as_raw_fd(), LINE_INFO, &raw mut info) }.into())?;
    let name = info.consumer.split(|byte| *byte == 0).next().unwrap_or_default();
    Ok((info.flags & USED != 0).then(|| String::from_utf8_lossy(name).into_owned()))
}

/// Requests two lines of a chip: `input`, with detection of both edges, and `output`, initially low. Closing the file
/// releases them. Errors: `EBUSY` when a line is in use; the chip's error when `input` has no interrupt (`ENXIO`) or
/// `output` cannot be set.
pub fn request(chip: &File, input: u32, output: u32) -> io::Result<File> {
    let attribute = |id, value| ConfigAttribute { attribute: Attribute { id, padding: 0, value }, mask: OUTPUT_BIT };
    let mut attributes = [ConfigAttribute { attribute: NO_ATTRIBUTE, mask: 0 }; ATTRIBUTES];
    let [flags, values, ..] = &mut attributes;
    (*flags, *values) = (attribute(FLAGS, OUTPUT), attribute(VALUES, 0));
    let mut offsets = [0; LINES];
    let [first, second, ..] = &mut offsets;
    (*first, *second) = (input, output);
    let mut consumer = [0; NAME];
    for (to, byte) in consumer.iter_mut().zip(b"punctual") {
        *to = *byte;
    }
    let mut request = LineRequest {
        offsets,
        consumer,
        flags: INPUT | RISING | FALLING,
        attribute_count: 2,
        config_padding: [0; 5],
        attributes,
        line_count: 2,
        event_buffer_size: 0,
        padding: [0; 5],
        fd: -1,
    };
    // SAFETY: the file is open; the request reads and writes a gpio_v2_line_request, which `request` is.
    check(unsafe { libc::ioctl(chip.as_raw_fd(), GET_LINE, &raw mut request) }.into())?;
    // SAFETY: the call has succeeded, so this is a new file descriptor without another owner.
    Ok(unsafe { OwnedFd::from_raw_fd(request.fd) }.into())
}

/// The second line of a request, as a bit.
const OUTPUT_BIT: u64 = 1 << 1;

/// Sets the output line of a request.
#[inline]
pub fn set(lines: &File, is_high: bool) -> Result<(), i32> {
    let mut values = Values { bits: if is_high { OUTPUT_BIT } else { 0 }, mask: OUTPUT_BIT };
    // SAFETY: the file is open; the request reads a gpio_v2_line_values, which `values` is.
    errno_of(unsafe { libc::ioctl(lines.as_raw_fd(), SET_VALUES, &raw mut values) }.into())
}

/// An edge of the input line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Edge {
    /// Start of the kernel's interrupt handler, ns of `CLOCK_MONOTONIC`.
    pub at_ns: u64,
    /// Whether the line went high.
    pub is_rising: bool,
    /// Sequence number of the edge among those of this line that the kernel detected, from 1 on; it wraps.
    pub number: u32,
}

/// Waits for the next edge and consumes it. Errors: the errno, `EINTR` included; `ENODEV` when the chip is gone.
#[inline]
pub fn edge(lines: &File) -> Result<Edge, i32> {
    // struct gpio_v2_line_event: the kernel returns complete events only.
    let mut event = [0; 48];
    let len = (&mut &*lines).read(&mut event).map_err(crate::errno)?;
    if len < event.len() {
        return Err(libc::EIO);
    }
    let (words, _) = event.as_chunks::<4>();
    let word = |at: usize| words.get(at).map_or(0, |word| u32::from_ne_bytes(*word));
    let (times, _) = event.as_chunks::<8>();
    let at_ns = times.first().map_or(0, |time| u64::from_ne_bytes(*time));
    Ok(Edge { at_ns, is_rising: word(2) == RISING_EDGE, number: word(5) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_handed_over_is_as_long_as_the_kernel_says() {
        let size = |request: libc::Ioctl| usize::try_from(request >> 16 & 0x3fff).unwrap();
        assert_eq!(size(CHIP_INFO), size_of::<ChipInfo>());
        assert_eq!(size(LINE_INFO), size_of::<LineInfo>());
        assert_eq!(size(GET_LINE), size_of::<LineRequest>());
        assert_eq!(size(SET_VALUES), size_of::<Values>());
    }

    #[test]
    fn what_is_no_chip_is_refused() {
        let null = File::open("/dev/null").unwrap();
        let said = [lines_of(&null).map(drop), user_of(&null, 0).map(drop), request(&null, 0, 1).map(drop)];
        assert_eq!(said.map(|said| said.unwrap_err().raw_os_error()), [Some(libc::ENOTTY); 3]);
        assert_eq!((set(&null, true), edge(&null)), (Err(libc::ENOTTY), Err(libc::EIO)));
    }

    #[test]
    fn an_edge_is_read_as_the_kernel_writes_it() {
        let mut event = [0_u8; 48];
        event[..8].copy_from_slice(&5_000_000_007_u64.to_ne_bytes());
        // Falling, line 9, the 4th of all lines, the 3rd of this one.
        for (at, word) in [2_u32, 9, 4, 3].into_iter().enumerate() {
            event[8 + 4 * at..12 + 4 * at].copy_from_slice(&word.to_ne_bytes());
        }
        let (reader, mut writer) = std::io::pipe().unwrap();
        std::io::Write::write_all(&mut writer, &event).unwrap();
        let lines = File::from(OwnedFd::from(reader));
        assert_eq!(edge(&lines), Ok(Edge { at_ns: 5_000_000_007, is_rising: false, number: 3 }));
    }
}
