//! Sockets: reset of a connection, and kernel time stamps of datagrams.
//!
//! The kernel takes a time stamp when it sends or receives one (Documentation/networking/timestamping.rst).

use crate::check;
use std::io;
use std::mem::{MaybeUninit, zeroed};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsRawFd, BorrowedFd};

/// Makes closing the socket reset its connection instead of shutting it down, so that its port is free at once:
/// `SO_LINGER` with a time of 0 (socket(7)).
#[inline]
pub fn reset_when_closed(socket: BorrowedFd<'_>) -> io::Result<()> {
    let linger = libc::linger { l_onoff: 1, l_linger: 0 };
    let bytes = libc::socklen_t::try_from(size_of::<libc::linger>()).map_err(io::Error::other)?;
    let (level, option) = (libc::SOL_SOCKET, libc::SO_LINGER);
    // SAFETY: `linger` has the length given and outlives the call.
    check(unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, (&raw const linger).cast(), bytes) }.into())
        .map(drop)
}

/// SOF_TIMESTAMPING_* of linux/net_tstamp.h: software time stamps when a datagram is passed to the driver and when it
/// comes from it; for sent datagrams only the time is returned, not the datagram.
const TX_SOFTWARE: libc::c_int = 1 << 1;
const RX_SOFTWARE: libc::c_int = 1 << 3;
const REPORT_SOFTWARE: libc::c_int = 1 << 4;
const TIMES_ONLY: libc::c_int = 1 << 11;

/// Enables kernel time stamps of sent and received datagrams of `socket`. Errors: `EINVAL` when the kernel is too old.
pub fn enable_timestamps(socket: &UdpSocket) -> io::Result<()> {
    let flags = TX_SOFTWARE | RX_SOFTWARE | REPORT_SOFTWARE | TIMES_ONLY;
    let size = libc::socklen_t::try_from(size_of::<libc::c_int>()).map_err(io::Error::other)?;
    let (level, name) = (libc::SOL_SOCKET, libc::SO_TIMESTAMPING);
    // SAFETY: the socket is open, and the option is an int that outlives the call.
    check(unsafe { libc::setsockopt(socket.as_raw_fd(), level, name, (&raw const flags).cast(), size) }.into())
        .map(drop)
}

/// Buffer for the control messages of a datagram: a time stamp (64 bytes with its header) and, for a sent datagram, an
/// extended error with an address.
#[repr(align(8))]
struct Control([u8; 256]);

/// The result of `recvmsg(2)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Received {
    /// Bytes of the datagram, up to the size of the buffer.
    pub len: usize,
    /// The sender; `None` for the time stamp of a sent datagram.
    pub from: Option<SocketAddr>,
    /// Time at which the kernel received or sent it, ns of `CLOCK_REALTIME`; `None` without a time stamp.
    pub at_ns: Option<u64>,
}

/// Receives a datagram or, with `is_sent`, the time stamp of a sent one, which never blocks. Errors: the errno:
/// `EAGAIN` when there is no time stamp (yet), `EINTR` included.
#[inline]
pub fn receive(socket: &UdpSocket, bytes: &mut [u8], is_sent: bool) -> Result<Received, i32> {
    let mut control = Control([0; 256]);
    let mut from = MaybeUninit::<libc::sockaddr_storage>::zeroed();
    let mut part = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    // SAFETY: all zeroes is a valid msghdr without buffers.
    let mut message: libc::msghdr = unsafe { zeroed() };
    message.msg_name = from.as_mut_ptr().cast();
    message.msg_namelen = u32::try_from(size_of::<libc::sockaddr_storage>()).unwrap_or(0);
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    message.msg_control = (&raw mut control.0).cast();
    message.msg_controllen = control.0.len();
    let flags = if is_sent { libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT } else { 0 };
    // SAFETY: every pointer in `message` is to memory of the size given with it, all of which outlives the call.
    let len = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut message, flags) };
    let len = usize::try_from(len).map_err(|_| io::Error::last_os_error().raw_os_error().unwrap_or(0))?;
    // SAFETY: all zeroes is a valid sockaddr_storage, and the kernel has written one or nothing.
    let from = address(&unsafe { from.assume_init() });
    Ok(Received { len, from, at_ns: time_in(&control.0, message.msg_controllen, size_of::<usize>()) })
}

/// The first of the three times of SCM_TIMESTAMPING, the software time stamp. Messages are parsed as bytes: a header of
/// length, level and kind, then the content, each message at a multiple of `word`, the size of a length (cmsg(3)).
fn time_in(control: &[u8], len: usize, word: usize) -> Option<u64> {
    let long = |bytes: &[u8]| match bytes.len() {
        4 => Some(u32::from_ne_bytes(bytes.try_into().ok()?).into()),
        _ => Some(u64::from_ne_bytes(bytes.try_into().ok()?)),
    };
    let header = word + 2 * size_of::<i32>();
    let mut rest = control.get(..len)?;
    while let Some((head, content)) = rest.split_at_checked(header) {
        let (length, kind) = head.split_at_checked(word)?;
        let length = usize::try_from(long(length)?).ok()?;
        let (level, kind) = kind.split_at_checked(4)?;
        let number = |bytes: &[u8]| Some(i32::from_ne_bytes(bytes.try_into().ok()?));
        if (number(level)?, number(kind)?) == (libc::SOL_SOCKET, libc::SO_TIMESTAMPING) {
            // Three times of two numbers: of 4 bytes each where times of 32-bit programs are so.
            let size = length.checked_sub(header)? / 6;
            let ns = long(content.get(..size)?)?.checked_mul(1_000_000_000)?;
            let ns = ns.checked_add(long(content.get(size..2 * size)?)?)?;
            return Some(ns).filter(|ns| *ns > 0);
        }
        rest = rest.get(length.max(header).checked_next_multiple_of(word)?..)?;
    }
    None
}

/// An address as the kernel writes it (ip(7), ipv6(7)).
fn address(found: &libc::sockaddr_storage) -> Option<SocketAddr> {
    let place: *const libc::sockaddr_storage = found;
    match i32::from(found.ss_family) {
        libc::AF_INET => {
            // SAFETY: the family determines the type; a sockaddr_storage is larger than it, and suitably aligned.
            let found = unsafe { place.cast::<libc::sockaddr_in>().read() };
            Some((Ipv4Addr::from(found.sin_addr.s_addr.to_ne_bytes()), u16::from_be(found.sin_port)).into())
        }
        libc::AF_INET6 => {
            // SAFETY: as above.
            let found = unsafe { place.cast::<libc::sockaddr_in6>().read() };
            let ip = Ipv6Addr::from(found.sin6_addr.s6_addr);
            let port = u16::from_be(found.sin6_port);
            Some(std::net::SocketAddrV6::new(ip, port, found.sin6_flowinfo, found.sin6_scope_id).into())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_notes_when_it_sends_and_receives() {
        for place in ["127.0.0.1:0", "[::1]:0"] {
            // A machine may have no IPv6.
            let Ok(socket) = UdpSocket::bind(place) else { continue };
            enable_timestamps(&socket).unwrap();
            let mut bytes = [0; 8];
            assert_eq!(receive(&socket, &mut bytes, true), Err(libc::EAGAIN), "nothing was sent yet");
            let itself = socket.local_addr().unwrap();
            // The kernel starts to take receive time stamps some time after they were enabled.
            let is_noted = (0..10_000_000).any(|_| {
                socket.send_to(b"hello", itself).unwrap();
                let sent = receive(&socket, &mut bytes, true).unwrap();
                let came = receive(&socket, &mut bytes, false).unwrap();
                assert_eq!((came.len, came.from, &bytes[..5]), (5, Some(itself), &b"hello"[..]));
                assert!(sent.at_ns > Some(0), "{sent:?}");
                came.at_ns.is_some_and(|at| Some(at) >= sent.at_ns)
            });
            assert!(is_noted, "{place}");
        }
    }

    #[test]
    fn control_messages_without_a_time_have_none() {
        let mut other = [0_u8; 64];
        other[0] = 20;
        other[8] = 41;
        let endless = [u8::MAX; 32];
        for (control, len) in
            [(&other[..], 64), (&other[..], 10), (&other[..], 0), (&[0; 32][..], 32), (&endless[..], 32)]
        {
            assert_eq!([time_in(control, len, 8), time_in(control, len, 4)], [None; 2]);
        }
        let mut stamp = [0_u8; 64 + 24];
        stamp[..24].copy_from_slice(&other[..24]);
        stamp[24] = 64;
        stamp[32..36].copy_from_slice(&libc::SOL_SOCKET.to_ne_bytes());
        stamp[36..40].copy_from_slice(&libc::SO_TIMESTAMPING.to_ne_bytes());
        stamp[40..48].copy_from_slice(&3_u64.to_ne_bytes());
        stamp[48..56].copy_from_slice(&7_u64.to_ne_bytes());
        assert_eq!(time_in(&stamp, 88, 8), Some(3_000_000_007));
    }

    #[test]
    fn times_of_32_bits_have_numbers_of_either_size() {
        let short = [3_u32, 7, 0, 0, 0, 0].map(u32::to_ne_bytes).concat();
        let long = [3_u64, 7, 0, 0, 0, 0].map(u64::to_ne_bytes).concat();
        for (numbers, length) in [(short, 36), (long, 60)] {
            // Another message of 13 bytes before it: the next begins at a multiple of 4.
            let heads = [13, 0, 41, 0, length, libc::SOL_SOCKET, libc::SO_TIMESTAMPING].map(i32::to_ne_bytes);
            let bytes = [heads.concat(), numbers].concat();
            assert_eq!(time_in(&bytes, bytes.len(), 4), Some(3_000_000_007), "{length}");
        }
    }
}
