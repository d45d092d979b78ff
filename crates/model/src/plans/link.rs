//! The link that carries a trigger to the thread that answers it.

use crate::words::word::as_text;
use crate::{Period, Span, UnknownWord};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// The name of a device or of another machine, 1 to 63 bytes without white space. Stored inline, so that a [`Link`] is
/// `Copy`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    bytes: [u8; Place::MOST],
    len: u8,
}

impl Place {
    /// The longest name, bytes.
    pub const MOST: usize = 63;

    /// `None` for a text that is too long, empty, or holds white space.
    pub fn new(text: &str) -> Option<Place> {
        let mut bytes = [0; Place::MOST];
        bytes.get_mut(..text.len())?.copy_from_slice(text.as_bytes());
        let len = u8::try_from(text.len()).ok()?;
        (len > 0 && !text.contains(char::is_whitespace)).then_some(Place { bytes, len })
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        let text = self.bytes.get(..usize::from(self.len)).and_then(|bytes| std::str::from_utf8(bytes).ok());
        text.unwrap_or_default()
    }
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

/// Two lines of a GPIO chip.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pins {
    /// The name of its device in `/dev`, like `gpiochip0`.
    pub chip: Place,
    /// The line that interrupts, by its number on the chip.
    pub input: u32,
    /// The line that is set; differs from `input`.
    pub output: u32,
}

impl Pins {
    /// Parses `CHIP/IN,OUT`.
    fn new(text: &str) -> Option<Pins> {
        let (chip, lines) = text.split_once('/')?;
        let (input, output) = lines.split_once(',')?;
        let number = |text: &str| text.parse().ok().filter(|_| text.bytes().all(|byte| byte.is_ascii_digit()));
        let pins = Pins { chip: Place::new(chip)?, input: number(input)?, output: number(output)? };
        (pins.input != pins.output).then_some(pins)
    }
}

impl fmt::Display for Pins {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{},{}", self.chip.as_str(), self.input, self.output)
    }
}

/// The carrier of a trigger and of its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(try_from = "String", into = "String")]
pub enum Link {
    /// Interrupts of PCI devices in a guest of the lab, at times known to the nanosecond, read from `/dev/uioN`.
    Uio,
    /// Interrupts of the same devices, handled out of band (`module/punctual_oob`) and read by a thread of Cobalt.
    Oob,
    /// A serial port whose chip sends to itself (the loop-back bit of a 16550): trigger and answer are the same byte.
    SerialLoop(Place),
    /// A serial port wired to a responder.
    Serial {
        /// The port's device, like `/dev/ttyS0`.
        device: Place,
        /// Bits a second.
        baud: u32,
    },
    /// UDP to the responder at this `HOST:PORT`.
    Udp(Place),
    /// Lines of a GPIO chip, wired to those of a responder.
    Gpio(Pins),
    /// Lines of a GPIO chip, wired to each other: trigger and answer are the same edge.
    GpioLoop(Pins),
    /// A parallel port wired to that of a responder.
    Parport(Place),
    /// A UIO device that interrupts by itself: its interrupts can be answered, but not triggered.
    UioDevice(Place),
}

/// The default speed, bits a second.
const BAUD: u32 = 115_200;
/// Speeds with a constant of their own in termios(3).
const BAUDS: [u32; 10] = [9_600, 19_200, 38_400, 57_600, 115_200, 230_400, 460_800, 921_600, 1_000_000, 3_000_000];

impl Link {
    /// Every link in its typed form.
    pub const KNOWN: &[&str] = &[
        "uio",
        "oob",
        "serial-loop[:/dev/ttyX]",
        "serial:/dev/ttyX[,BAUD]",
        "udp:HOST:PORT",
        "gpio:CHIP/IN,OUT",
        "gpio-loop:CHIP/IN,OUT",
        "parport:/dev/parportN",
        "uio:/dev/uioN",
    ];

    /// The port of `serial-loop` in guests of the lab. The ports before it carry the console and the results.
    pub const LOOP_PORT: &str = "/dev/ttyS2";

    /// Delay from the start of a device to its interrupt ([`Link::is_timers`]): the 100 ms of QEMU's `edu`, from the
    /// last whole millisecond on (hw/misc/edu.c).
    pub const DEVICE_DELAY: Span = Span(100_000_000);

    /// Whether its triggers are interrupts of a guest's devices, whose due times are known.
    pub fn is_timers(self) -> bool {
        matches!(self, Link::Uio | Link::Oob)
    }

    /// The most devices of a guest: its PCI bus has 32 slots, some of them taken.
    pub const MAX_DEVICES: u64 = 20;

    /// The number of devices that together interrupt once a `period`, each once in [`Link::DEVICE_DELAY`]; `None` when
    /// no number of them does.
    pub fn devices(period: Period) -> Option<u64> {
        let (delay, period) = (Link::DEVICE_DELAY.ns(), period.ns());
        let is_exact = delay.is_multiple_of(period) && period.is_multiple_of(1_000_000);
        Some(delay / period).filter(|count| is_exact && *count <= Link::MAX_DEVICES)
    }
}

/// Parse error of a link.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LinkError {
    /// Unknown link.
    #[error(transparent)]
    Unknown(#[from] UnknownWord),
    /// A missing or malformed part.
    #[error("invalid link `{given}`: expected {form}")]
    Form {
        /// The link as typed.
        given: String,
        /// The expected form.
        form: &'static str,
    },
    /// Not a speed of a serial port.
    #[error(
        "invalid baud rate `{0}`: expected one of 9600 19200 38400 57600 115200 230400 460800 921600 1000000 3000000"
    )]
    Baud(String),
}

/// A device in `/dev`.
fn device(text: &str) -> Option<Place> {
    Place::new(text).filter(|_| text.starts_with("/dev/") && text.len() > "/dev/".len())
}

/// `HOST:PORT`, with an IPv6 address in brackets.
fn endpoint(text: &str) -> Option<Place> {
    let (host, port) = text.rsplit_once(':')?;
    let is_whole = host.starts_with('[') == host.ends_with(']') && (host.starts_with('[') || !host.contains(':'));
    let is_port = port.parse::<u16>().is_ok_and(|port| port > 0);
    Place::new(text).filter(|_| is_whole && !host.is_empty() && is_port)
}

impl FromStr for Link {
    type Err = LinkError;

    fn from_str(text: &str) -> Result<Self, LinkError> {
        let (word, rest) = text.split_once(':').map_or((text, None), |(word, rest)| (word, Some(rest)));
        let wrong = |form| LinkError::Form { given: text.to_owned(), form };
        match (word, rest) {
            ("uio", None) => Ok(Link::Uio),
            ("uio", Some(rest)) => {
                device(rest).map(Link::UioDevice).ok_or_else(|| wrong("uio:/dev/uioN, or uio alone in the lab"))
            }
            ("oob", None) => Ok(Link::Oob),
            ("oob", Some(_)) => Err(wrong("oob alone, in the lab")),
            ("serial-loop", rest) => {
                let port = device(rest.unwrap_or(Link::LOOP_PORT));
                port.map(Link::SerialLoop)
                    .ok_or_else(|| wrong("serial-loop:/dev/ttyX, or serial-loop alone in the lab"))
            }
            ("serial", Some(rest)) => {
                let (path, baud) = rest.split_once(',').map_or((rest, None), |(path, baud)| (path, Some(baud)));
                let known = |given: &str| given.parse().ok().filter(|baud| BAUDS.contains(baud));
                let baud =
                    baud.map_or(Ok(BAUD), |given| known(given).ok_or_else(|| LinkError::Baud(given.to_owned())))?;
                let device = device(path).ok_or_else(|| wrong("serial:/dev/ttyX or serial:/dev/ttyX,BAUD"))?;
                Ok(Link::Serial { device, baud })
            }
            ("serial", None) => Err(wrong("serial:/dev/ttyX or serial:/dev/ttyX,BAUD")),
            ("udp", Some(rest)) => endpoint(rest).map(Link::Udp).ok_or_else(|| wrong("udp:HOST:PORT")),
            ("udp", None) => Err(wrong("udp:HOST:PORT")),
            ("gpio", rest) => rest
                .and_then(Pins::new)
                .map(Link::Gpio)
                .ok_or_else(|| wrong("gpio:CHIP/IN,OUT, like gpio:gpiochip0/23,24")),
            ("gpio-loop", rest) => rest
                .and_then(Pins::new)
                .map(Link::GpioLoop)
                .ok_or_else(|| wrong("gpio-loop:CHIP/IN,OUT, like gpio-loop:gpiochip0/23,24")),
            ("parport", rest) => rest.and_then(device).map(Link::Parport).ok_or_else(|| wrong("parport:/dev/parportN")),
            _ => Err(UnknownWord::new("link", text, Link::KNOWN).into()),
        }
    }
}

impl fmt::Display for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Link::Uio => f.pad("uio"),
            Link::Oob => f.pad("oob"),
            Link::SerialLoop(port) if port.as_str() == Link::LOOP_PORT => f.pad("serial-loop"),
            Link::SerialLoop(port) => f.pad(&format!("serial-loop:{}", port.as_str())),
            Link::Serial { device, baud: BAUD } => f.pad(&format!("serial:{}", device.as_str())),
            Link::Serial { device, baud } => f.pad(&format!("serial:{},{baud}", device.as_str())),
            Link::Udp(place) => f.pad(&format!("udp:{}", place.as_str())),
            Link::Gpio(pins) => f.pad(&format!("gpio:{pins}")),
            Link::GpioLoop(pins) => f.pad(&format!("gpio-loop:{pins}")),
            Link::Parport(port) => f.pad(&format!("parport:{}", port.as_str())),
            Link::UioDevice(device) => f.pad(&format!("uio:{}", device.as_str())),
        }
    }
}

as_text!(Link, LinkError);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plans::cell::tests::refusals;

    #[test]
    fn links_print_as_they_are_typed() {
        for text in [
            "uio",
            "oob",
            "serial-loop",
            "serial-loop:/dev/ttyS0",
            "serial:/dev/ttyUSB0",
            "serial:/dev/ttyS1,9600",
            "udp:192.0.2.7:4000",
            "udp:[2001:db8::7]:4000",
            "udp:target:65535",
            "gpio:gpiochip0/23,24",
            "gpio-loop:gpiochip4/4294967295,0",
            "parport:/dev/parport0",
            "uio:/dev/uio0",
        ] {
            assert_eq!(text.parse::<Link>().map(|link| link.to_string()), Ok(text.to_owned()));
        }
        assert_eq!("serial:/dev/ttyS0,115200".parse::<Link>().unwrap().to_string(), "serial:/dev/ttyS0");
    }

    #[test]
    fn a_wrong_link_is_one_line() {
        let long = format!("udp:{}:1", "h".repeat(62));
        let too_long = format!("invalid link `{long}`: expected udp:HOST:PORT");
        assert_eq!(long.parse::<Link>().map_err(|err| err.to_string()), Err(too_long));
        for (text, message) in refusals(include_str!("../../tests/refusals/links.txt")) {
            assert_eq!(text.parse::<Link>().map_err(|err| err.to_string()), Err(message.to_owned()));
        }
        for (period, devices) in [
            ("5ms", Some(20)),
            ("10ms", Some(10)),
            ("100ms", Some(1)),
            ("4ms", None),
            ("12500us", None),
            ("200ms", None),
        ] {
            assert_eq!(Link::devices(period.parse().unwrap()), devices, "{period}");
        }
        assert_eq!(Place::new(&"x".repeat(63)).unwrap().as_str().len(), 63);
        for text in ["", "a b", &"x".repeat(64)] {
            assert_eq!(Place::new(text), None);
        }
    }
}
