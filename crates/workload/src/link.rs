//! The ends of a link: sockets, ports and devices are opened, set up, and tested before anything is measured.

mod devices;
mod gpio;

use punctual_host::HostFs;
use punctual_model::{AnswerParts, Histogram, Link, Order, OwnExchange, Period, Pins, ResponseRecord, Span};
use punctual_rt::{Line, LineEvent, LinkCounts, LogReader, Logger, Message, Sample, Target};
use std::fs::File;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs, UdpSocket};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed};
use std::time::{Duration, Instant};

/// Timeout for the peer, before the cell and within it.
const PEER_TIMEOUT: Span = Span(3_000_000_000);
/// Timeout of one try to reach the peer.
const RETRY_INTERVAL: Span = Span(100_000_000);
/// Room for parts of answers until they are collected: all of a second at the shortest period.
const MAX_PARTS: usize = 1 << 17;
/// Fewest and most remembered triggers; the latter are all of [`PEER_TIMEOUT`] at periods from 46 us on.
const HISTORY_RANGE: (u64, u64) = (64, 1 << 16);
/// The shortest interval between two answers in the long run, ns: that of the shortest period.
const MIN_ANSWER_INTERVAL_NS: u64 = 10_000;

/// Monitor of a link, apart from its end, which a measured thread has.
#[derive(Debug)]
pub struct LinkMonitor {
    link: Link,
    counts: Arc<LinkCounts>,
    /// Logs and histograms of the parts of answers; where the kernel timestamps datagrams.
    parts: Option<[(LogReader, Histogram); 3]>,
    /// Triggers that a logger has given up, and fates that wait for an earlier one.
    unanswered: Option<LogReader>,
    waiting: Vec<Fate>,
    /// Times from triggers to the wake-up of a target's thread, likewise; where the kernel timestamps triggers.
    waking: Option<(LogReader, Histogram)>,
    /// The serial port, and its error count at the start.
    port: Option<(File, Option<u64>)>,
}

/// The fate of a trigger.
#[derive(Debug, Clone, Copy)]
pub enum Fate {
    /// It was answered, with this latency.
    Answered(Sample),
    /// It was never answered, after this wait.
    Never(Sample),
}

impl Fate {
    fn cycle(&self) -> u64 {
        let (Fate::Answered(sample) | Fate::Never(sample)) = self;
        sample.cycle
    }
}

/// Creates a responder for `link`, which answers `peer` only, or the first sender of a trigger. Errors: one line of
/// text: the unavailable resource, and the reason.
pub fn target(link: Link, peer: Option<&str>) -> Result<(Target, LinkMonitor), String> {
    let line = match link {
        Link::Udp(place) => {
            let address = resolve(place.as_str())?;
            let socket = UdpSocket::bind(address).map_err(|err| format!("{link}: cannot listen: {err}"))?;
            // Only the host counts, not the port.
            Line::Udp { socket, peer: peer.map(|peer| resolve(&with_port(peer))).transpose()? }
        }
        Link::Uio | Link::Oob | Link::SerialLoop(_) | Link::GpioLoop(_) => {
            return Err(format!("{link} needs no responder; measure it with: punctual measure response --to {link}"));
        }
        Link::Serial { .. } if peer.is_some() => {
            return Err(format!("{link}: a serial line has one peer; leave --peer out"));
        }
        Link::Gpio(_) | Link::Parport(_) | Link::UioDevice(_) if peer.is_some() => {
            return Err(format!("{link}: a wire has one peer; leave --peer out"));
        }
        Link::Serial { device, baud } => Line::Serial(port(link, device.as_str(), baud)?),
        Link::Gpio(pins) => Line::Gpio(gpio::open(link, &pins)?),
        Link::Parport(device) => Line::Parport(devices::open_parport(link, device.as_str())?),
        Link::UioDevice(device) => Line::Uio(devices::open_uio(link, device.as_str())?),
    };
    let mut watch = LinkMonitor::of(link, &line)?;
    let mut waking = None;
    if let Line::Gpio(_) = line {
        let (log, reader) = punctual_rt::sample_log(MAX_PARTS);
        waking = Some(log);
        watch.waking = Some((reader, Histogram::default()));
    }
    Ok((Target { line, min_interval_ns: MIN_ANSWER_INTERVAL_NS, waking, counts: Arc::clone(&watch.counts) }, watch))
}

/// Creates a logger, which sends triggers over `link`, once a `period`; those before trigger `first` do not count. The
/// peer has answered when this returns. Errors: one line of text: the unavailable resource, or that the peer does not
/// answer.
pub fn logger(link: Link, period: Period, first: u64) -> Result<(Logger, LinkMonitor), String> {
    let line = match link {
        Link::Udp(place) => {
            let peer = resolve(place.as_str())?;
            let own: SocketAddr =
                if peer.is_ipv4() { (Ipv4Addr::UNSPECIFIED, 0).into() } else { (Ipv6Addr::UNSPECIFIED, 0).into() };
            let socket = UdpSocket::bind(own).map_err(|err| format!("{link}: cannot create a socket: {err}"))?;
            Line::Udp { socket, peer: Some(peer) }
        }
        Link::Serial { device, baud } => Line::Serial(port(link, device.as_str(), baud)?),
        Link::SerialLoop(device) => {
            let port = port(link, device.as_str(), LOOP_BAUD)?;
            punctual_sys::serial::set_loop(&port, true)
                .map_err(|err| format!("{link}: cannot set loop-back mode: {err}"))?;
            Line::Serial(port)
        }
        Link::Gpio(pins) | Link::GpioLoop(pins) => Line::Gpio(gpio::open(link, &pins)?),
        Link::Parport(device) => Line::Parport(devices::open_parport(link, device.as_str())?),
        Link::Uio | Link::Oob | Link::UioDevice(_) => return Err(format!("invalid line `{link}`")),
    };
    // The low bit distinguishes the tries to reach the peer from triggers.
    let session = (punctual_sys::clock::monotonic().0.rotate_left(20) ^ u64::from(std::process::id())) & !1;
    let tries = try_to_reach(&line, link, session | 1)?;
    let mut watch = LinkMonitor::of(link, &line)?;
    let has_times = match &line {
        Line::Udp { socket, .. } => punctual_sys::socket::enable_timestamps(socket).is_ok(),
        Line::Gpio(_) => true,
        _ => false,
    };
    let mut parts = None;
    if has_times {
        let logs = [(); 3].map(|()| punctual_rt::sample_log(MAX_PARTS));
        let [(sending, a), (away, b), (waking, c)] = logs;
        parts = Some([sending, away, waking]);
        watch.parts = Some([a, b, c].map(|reader| (reader, Histogram::default())));
    }
    let (log, reader) = punctual_rt::sample_log(MAX_PARTS);
    watch.unanswered = Some(reader);
    let (fewest, most) = HISTORY_RANGE;
    let remembered = usize::try_from((PEER_TIMEOUT.ns() / period.ns()).clamp(fewest, most)).unwrap_or(usize::MAX);
    let counts = Arc::clone(&watch.counts);
    let peer_timeout = peer_timeout(link, period);
    let logger = Logger { line, session, first, tries, peer_timeout, remembered, parts, unanswered: Some(log), counts };
    Ok((logger, watch))
}

/// The speed of a port in loop-back mode, baud.
const LOOP_BAUD: u32 = 115_200;

impl LinkMonitor {
    fn of(link: Link, line: &Line) -> Result<LinkMonitor, String> {
        let port = if let Line::Serial(file) = line { Some(file.try_clone()) } else { None };
        let port = port.transpose().map_err(|err| format!("{link}: {err}"))?;
        let port = port.map(|file| {
            let before = punctual_sys::serial::errors(&file);
            (file, before)
        });
        let (parts, unanswered, waiting, waking) = (None, None, Vec::new(), None);
        Ok(LinkMonitor { link, counts: Arc::default(), parts, unanswered, waiting, waking, port })
    }

    /// Collects the entries since the last call. Called about once a second.
    pub fn collect(&mut self) {
        for (log, histogram) in self.parts.iter_mut().flatten().chain(&mut self.waking) {
            log.drain(|sample| histogram.record(sample.latency.0));
        }
    }

    /// Passes the fates of a logger's triggers to `take`; the logger's samples are in `log`. The order is that of the
    /// cycles: each once the fates of all earlier ones are known, or all when `is_over`.
    pub fn fates(&mut self, log: &mut LogReader, is_over: bool, take: impl FnMut(Fate)) {
        // Read before the logs, which then contain everything settled.
        let settled = if is_over { u64::MAX } else { self.counts.settled.load(Acquire) };
        log.drain(|sample| self.waiting.push(Fate::Answered(sample)));
        if let Some(unanswered) = &mut self.unanswered {
            unanswered.drain(|sample| self.waiting.push(Fate::Never(sample)));
        }
        self.waiting.order_by_key(Fate::cycle);
        let known = self.waiting.partition_point(|fate| fate.cycle() < settled);
        self.waiting.drain(..known).for_each(take);
    }

    /// The counts so far.
    pub fn counts(&self) -> &LinkCounts {
        &self.counts
    }

    /// The times from triggers to the thread of a target, as far as they were collected.
    pub fn waking(&self) -> Option<&Histogram> {
        self.waking.as_ref().map(|(_, histogram)| histogram)
    }

    /// Bytes received with errors since the port was opened.
    pub fn line_errors(&self) -> Option<u64> {
        let (file, before) = self.port.as_ref()?;
        Some(punctual_sys::serial::errors(file)?.saturating_sub((*before)?))
    }

    /// The record of a logger.
    pub fn record(&self) -> ResponseRecord {
        let LinkCounts { triggers, late, duplicate, foreign, own_exchanges, own_ns, .. } = &*self.counts;
        let [min_ns, p50_ns, max_ns] = own_ns.each_ref().map(|ns| ns.load(Relaxed));
        let exchanges = own_exchanges.load(Relaxed);
        ResponseRecord {
            triggers: triggers.load(Relaxed),
            late: late.load(Relaxed),
            duplicate: duplicate.load(Relaxed),
            foreign: foreign.load(Relaxed),
            line_errors: self.line_errors(),
            own: (exchanges > 0).then_some(OwnExchange { exchanges, min_ns, p50_ns, max_ns }),
            parts: self.parts.as_ref().filter(|[.., (_, waking)]| waking.n > 0).map(|parts| {
                let [sending, away, waking] = parts.each_ref().map(|(_, histogram)| histogram.clone());
                AnswerParts { sending, away, waking }
            }),
            target: None,
        }
    }

    /// The error message when the measured thread has given up.
    pub fn fell_silent(&self, period: Period) -> String {
        format!(
            "{} has stopped answering: no answer to any trigger of the last {}",
            self.link,
            peer_timeout(self.link, period)
        )
    }
}

impl Drop for LinkMonitor {
    fn drop(&mut self) {
        if let (Link::SerialLoop(_), Some((port, _))) = (self.link, &self.port) {
            let _ = punctual_sys::serial::set_loop(port, false);
        }
    }
}

/// Timeout without any answer after which the peer counts as gone: at least the time of the fewest triggers that show
/// it.
fn peer_timeout(link: Link, period: Period) -> Span {
    let is_wire = matches!(link, Link::Gpio(_) | Link::GpioLoop(_) | Link::Parport(_));
    let apart = if is_wire { period.span().max(Logger::ANSWER_TIMEOUT) } else { period.span() };
    PEER_TIMEOUT.max(Span(apart.ns().saturating_mul(Logger::MIN_CONSECUTIVE_TIMEOUTS)))
}

/// The error for a device that cannot be opened; `how` is advice for missing permission.
fn unusable(link: Link, err: &std::io::Error, how: &str) -> String {
    match err.raw_os_error() {
        Some(libc::EACCES | libc::EPERM) => format!("{link}: cannot open it: {err}; {how}"),
        _ => format!("{link}: cannot open it: {err}"),
    }
}

/// An address with an arbitrary port: only the host counts.
fn with_port(host: &str) -> String {
    if host.contains(':') && !host.starts_with('[') { format!("[{host}]:0") } else { format!("{host}:0") }
}

fn resolve(place: &str) -> Result<SocketAddr, String> {
    let unknown = |why: String| format!("cannot resolve udp:{place}: {why}");
    let mut found = place.to_socket_addrs().map_err(|err| unknown(err.to_string()))?;
    found.next().ok_or_else(|| unknown("no address found".to_owned()))
}

/// Opens a serial port, set up to pass on every byte at once.
fn port(link: Link, device: &str, baud: u32) -> Result<File, String> {
    let path = Path::new(device);
    let advice = |err: &std::io::Error| match err.raw_os_error() {
        Some(libc::EACCES | libc::EPERM) => "; run as root, or join the group that owns it (dialout)",
        Some(libc::ENXIO | libc::ENODEV | libc::EIO) => "; no serial controller",
        _ => "",
    };
    let file =
        punctual_sys::serial::open(path).map_err(|err| format!("{link}: cannot open it: {err}{}", advice(&err)))?;
    let set = punctual_sys::serial::make_raw(&file, baud);
    set.map_err(|err| format!("{link}: expected a serial port that supports the speed: {err}{}", advice(&err)))?;
    // Only some drivers support these: they otherwise collect bytes for a while (16550: up to 14, or 4 characters'
    // time).
    let _ = punctual_sys::serial::set_low_latency(&file);
    punctual_host::disable_rx_buffering(&HostFs::here(), path);
    Ok(file)
}

/// Sends triggers until one is answered, and then drains the line; returns the number of triggers sent. Tries are
/// counted, because a machine that stands still gives the peer no time.
fn try_to_reach(line: &Line, link: Link, session: u64) -> Result<u64, String> {
    let failed = |errno| format!("{link}: {}", std::io::Error::from_raw_os_error(errno));
    for number in 1..=PEER_TIMEOUT.ns() / RETRY_INTERVAL.ns() {
        let trigger = Message { is_answer: false, session, number };
        line.send(&trigger, None).map_err(failed)?;
        let tried = Instant::now();
        // At least once: on a busy machine the time may be over before the first check.
        for n in 0.. {
            let left = Duration::from_nanos(RETRY_INTERVAL.ns()).saturating_sub(tried.elapsed());
            if n > 0 && left.is_zero() {
                break;
            }
            let left = Span(u64::try_from(left.as_nanos()).unwrap_or(0));
            match line.wait(left).and_then(|is_there| if is_there { line.receive().map(Some) } else { Ok(None) }) {
                Ok(Some(LineEvent::Message(message, ..))) if message.is_answer && message.session == session => {
                    return drain(line).map(|()| number).map_err(failed);
                }
                Ok(Some(LineEvent::Byte(byte))) if u64::from(byte) == number => {
                    return drain(line).map(|()| number).map_err(failed);
                }
                Ok(Some(LineEvent::Interrupt(came))) if came.level.is_none_or(|level| level == trigger.level()) => {
                    return drain(line).map(|()| number).map_err(failed);
                }
                Ok(_) | Err(libc::EINTR) => {}
                Err(errno) => return Err(failed(errno)),
            }
        }
    }
    let advice = match link {
        Link::SerialLoop(_) => "its controller is missing or has no loop-back mode".to_owned(),
        Link::GpioLoop(Pins { input, output, .. }) => format!("is line {output} wired to line {input}?"),
        Link::Gpio(_) => {
            "is `punctual respond --on gpio:CHIP/IN,OUT` running on the peer, and OUT of each end wired to \
                          IN of the other?"
                .to_owned()
        }
        Link::Parport(_) => "is `punctual respond --on parport:/dev/parportN` running on the peer, and pin 2 of each \
                             wired to pin 10 of the other?"
            .to_owned(),
        _ => format!("is `punctual respond --on {link}` running on the peer?"),
    };
    Err(format!("{link}: timeout: no answer within {PEER_TIMEOUT}; {advice}"))
}

/// Drains the answers to earlier tries. An endless stream is drained for at most the timeout of the peer.
fn drain(line: &Line) -> Result<(), i32> {
    let began = Instant::now();
    while began.elapsed() < Duration::from_nanos(PEER_TIMEOUT.ns()) && line.wait(Span(20_000_000))? {
        line.receive()?;
    }
    Ok(())
}
