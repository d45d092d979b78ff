//! Group `net`: two processes that communicate through the loopback device.

use super::ipc::{blocks, round_trips};
use super::process::Partner;
use super::{NotReady, ReadyOperation, unknown};
use punctual_sys::socket;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsFd;
use std::time::Duration;

/// Any free port of this machine.
const ANY: &str = "127.0.0.1:0";

pub(crate) fn make(name: &str) -> Result<ReadyOperation, NotReady> {
    find_loopback()?;
    Ok(match name {
        "tcp" => {
            let (ours, theirs) = streams()?;
            round_trips((ours.try_clone()?, ours), (theirs.try_clone()?, theirs), &[1])?
        }
        "udp" => {
            let (ours, theirs) = (UdpSocket::bind(ANY)?, UdpSocket::bind(ANY)?);
            ours.connect(theirs.local_addr()?)?;
            theirs.connect(ours.local_addr()?)?;
            let (ours, theirs) = (Datagrams(ours), Datagrams(theirs));
            round_trips((ours.try_clone()?, ours), (theirs.try_clone()?, theirs), &[1])?
        }
        "connect" => connections()?,
        "tcp_bandwidth" => {
            let (ours, theirs) = streams()?;
            blocks(ours, theirs)?
        }
        other => return Err(unknown(other)),
    })
}

/// Timeout of a datagram to the same socket, which arrives before the call that sends it returns.
const LOOPBACK_TIMEOUT: Duration = Duration::from_secs(1);

/// Passes a datagram through the loopback device. While the device is down, it drops what is sent without an error, or
/// a route is missing, and a connection would wait for minutes.
fn find_loopback() -> Result<(), NotReady> {
    let socket = UdpSocket::bind(ANY)?;
    socket.set_read_timeout(Some(LOOPBACK_TIMEOUT))?;
    let pass = || -> io::Result<usize> {
        socket.connect(socket.local_addr()?)?;
        socket.send(&[1])?;
        socket.recv(&mut [0])
    };
    pass().map(drop).map_err(|err| NotReady::Missing(format!("cannot reach 127.0.0.1 ({err}); ip link set lo up")))
}

/// Two ends of a connection that sends every byte at once.
fn streams() -> io::Result<(TcpStream, TcpStream)> {
    let listener = TcpListener::bind(ANY)?;
    let ours = TcpStream::connect(listener.local_addr()?)?;
    let (theirs, _) = listener.accept()?;
    ours.set_nodelay(true)?;
    theirs.set_nodelay(true)?;
    Ok((ours, theirs))
}

fn connections() -> io::Result<ReadyOperation> {
    let listener = TcpListener::bind(ANY)?;
    let address = listener.local_addr()?;
    let partner = Partner::start(move || {
        loop {
            drop(listener.accept()?);
        }
    })?;
    Ok(ReadyOperation::each(move || {
        let _ = &partner;
        let mut stream = TcpStream::connect(address)?;
        // Returns when the peer has accepted and closed.
        let bytes = stream.read(&mut [0])?;
        socket::reset_when_closed(stream.as_fd())?;
        if bytes == 0 { Ok(()) } else { Err(io::ErrorKind::InvalidData.into()) }
    }))
}

/// A socket whose datagrams are read and written like a stream.
struct Datagrams(UdpSocket);

impl Datagrams {
    fn try_clone(&self) -> io::Result<Datagrams> {
        self.0.try_clone().map(Datagrams)
    }
}

impl Read for Datagrams {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        self.0.recv(to)
    }
}

impl Write for Datagrams {
    fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        self.0.send(from)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
