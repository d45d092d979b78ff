//! `GET /metrics` for this machine's Prometheus: one page, with limits on everything that a client decides.
//!
//! Only loopback addresses: there is neither encryption nor a password. For other machines there is the node exporter,
//! which has both, and reads the text file.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::Builder;
use std::time::{Duration, Instant};

/// Connections that are served at a time. For a further one, that whose request has been incomplete for longest is
/// closed: slow clients do not lock out the one that sends its request at once.
const MOST_CONNECTIONS: usize = 16;
/// Size of a request, bytes: Prometheus sends about 300.
const MOST_REQUEST_BYTES: usize = 4096;
/// Number of header lines.
const MOST_HEADERS: usize = 32;
/// Timeout of a request, from the connection to its last byte; and of the answer.
const TIMEOUT: Duration = Duration::from_secs(2);
/// Stack of a thread: it is locked into memory with the rest.
const STACK_BYTES: usize = 128 * 1024;
/// Time after a connection that could not be accepted, as without free file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);

/// An open port.
#[derive(Debug)]
pub struct Listener(TcpListener);

/// Reason for which a port is not opened.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// The address belongs to a network.
    #[error("unsupported: listening on {0}: expected a loopback address like 127.0.0.1:{port}; use --textfile with the node exporter for other machines", port = .0.port())]
    NotLoopback(SocketAddr),
    /// The kernel refuses.
    #[error("cannot listen on {0}: {1}")]
    Refused(SocketAddr, io::Error),
}

impl Listener {
    /// Opens the port; connections wait until [`Listener::serve`]. Errors: for an address other than a loopback one,
    /// and when the port cannot be used.
    pub fn open(address: SocketAddr) -> Result<Listener, ListenError> {
        if !address.ip().is_loopback() {
            return Err(ListenError::NotLoopback(address));
        }
        TcpListener::bind(address).map(Listener).map_err(|err| ListenError::Refused(address, err))
    }

    /// The address: its port is the kernel's choice where 0 was given. Errors: when the kernel does not return it.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()
    }

    /// Answers requests with `page` in threads of their own, until this process ends. Errors: when no thread can be
    /// created.
    pub fn serve(self, page: impl Fn() -> String + Send + Sync + 'static) -> io::Result<()> {
        let (page, open, incomplete) = (Arc::new(page), Arc::new(AtomicUsize::new(0)), Arc::new(Incomplete::default()));
        let accept = move || {
            for number in 0.. {
                let accepted = self.0.accept().and_then(|(stream, _)| Ok((stream.try_clone()?, stream)));
                let Ok((again, stream)) = accepted else {
                    std::thread::sleep(ACCEPT_PAUSE);
                    continue;
                };
                // A closed one needs its thread a little longer.
                let n_open = open.load(Relaxed);
                if n_open >= 2 * MOST_CONNECTIONS || n_open >= MOST_CONNECTIONS && !incomplete.close_oldest() {
                    continue;
                }
                open.fetch_add(1, Relaxed);
                incomplete.add(number, again);
                let (page, closed, incomplete) = (Arc::clone(&page), Arc::clone(&open), Arc::clone(&incomplete));
                let serve = move || {
                    let _ = answer(stream, &*page, || incomplete.remove(number));
                    closed.fetch_sub(1, Relaxed);
                };
                if Builder::new().name("metrics".to_owned()).stack_size(STACK_BYTES).spawn(serve).is_err() {
                    open.fetch_sub(1, Relaxed);
                }
            }
        };
        Builder::new().name("listener".to_owned()).stack_size(STACK_BYTES).spawn(accept).map(drop)
    }
}

/// Connections without a complete request, oldest first, by their numbers.
#[derive(Debug, Default)]
struct Incomplete(Mutex<VecDeque<(u64, TcpStream)>>);

impl Incomplete {
    fn all(&self) -> MutexGuard<'_, VecDeque<(u64, TcpStream)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, number: u64, stream: TcpStream) {
        self.all().push_back((number, stream));
    }

    fn remove(&self, number: u64) {
        self.all().retain(|(one, _)| *one != number);
    }

    /// Closes the oldest one, which ends its thread; `false` if there is none.
    fn close_oldest(&self) -> bool {
        self.all().pop_front().is_some_and(|(_, stream)| stream.shutdown(Shutdown::Both).is_ok())
    }
}

/// A status line, and whether the page follows.
type Status = (&'static str, bool);

/// Reads one request, reports that with `is_read`, and answers it.
fn answer(mut stream: TcpStream, page: &dyn Fn() -> String, is_read: impl FnOnce()) -> io::Result<()> {
    let request = stream.set_write_timeout(Some(TIMEOUT)).map(|()| read(&mut stream));
    is_read();
    let (status, has_body) = request?;
    let body = if status == OK { page() } else { format!("{status}\n") };
    let allow = if status == NOT_ALLOWED { "Allow: GET, HEAD\r\n" } else { "" };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\nContent-Length: {}\r\n\
         {allow}Connection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes())?;
    if has_body {
        stream.write_all(body.as_bytes())?;
    }
    stream.shutdown(Shutdown::Write)
}

const OK: &str = "200 OK";
const BAD: &str = "400 Bad Request";
const NOT_FOUND: &str = "404 Not Found";
const NOT_ALLOWED: &str = "405 Method Not Allowed";
const TIMED_OUT: &str = "408 Request Timeout";
const TOO_LARGE: &str = "431 Request Header Fields Too Large";

/// Reads a request to the end of its head. A body is neither read nor waited for.
fn read(stream: &mut TcpStream) -> Status {
    let (mut bytes, mut length) = ([0; MOST_REQUEST_BYTES], 0);
    let ends = Instant::now() + TIMEOUT;
    loop {
        let left = ends.saturating_duration_since(Instant::now());
        let free = bytes.get_mut(length..).unwrap_or_default();
        if free.is_empty() {
            return (TOO_LARGE, true);
        }
        if left.is_zero() || stream.set_read_timeout(Some(left)).is_err() {
            return (TIMED_OUT, true);
        }
        match stream.read(free) {
            Ok(0) => return (BAD, true),
            Ok(n) => length += n,
            Err(err) if err.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) => return (TIMED_OUT, true),
        }
        if let Some(status) = status_of(bytes.get(..length).unwrap_or_default()) {
            return status;
        }
    }
}

/// The answer to a request; `None` while it is incomplete.
fn status_of(bytes: &[u8]) -> Option<Status> {
    let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
    let mut request = httparse::Request::new(&mut headers);
    match request.parse(bytes) {
        Ok(httparse::Status::Partial) => return None,
        Err(httparse::Error::TooManyHeaders) => return Some((TOO_LARGE, true)),
        Err(_) => return Some((BAD, true)),
        Ok(httparse::Status::Complete(_)) => {}
    }
    let has_body = request.method != Some("HEAD");
    let path = request.path.unwrap_or_default().split('?').next();
    Some(match request.method {
        Some("GET" | "HEAD") if path == Some("/metrics") => (OK, has_body),
        Some("GET" | "HEAD") => (NOT_FOUND, has_body),
        _ => (NOT_ALLOWED, has_body),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_sys::testing::comes_true;

    #[test]
    fn one_page_and_nothing_else() {
        let many = |n: usize| format!("GET /metrics HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(n));
        for (request, expected) in [
            (String::new(), None),
            ("GET /metrics HTTP/1.1\r\nHost: x\r\n".to_owned(), None),
            ("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n".to_owned(), Some((OK, true))),
            ("GET /metrics?a=b HTTP/1.0\r\n\r\n".to_owned(), Some((OK, true))),
            ("HEAD /metrics HTTP/1.1\r\n\r\n".to_owned(), Some((OK, false))),
            ("POST /metrics HTTP/1.1\r\nContent-Length: 9\r\n\r\n".to_owned(), Some((NOT_ALLOWED, true))),
            ("GET / HTTP/1.1\r\n\r\n".to_owned(), Some((NOT_FOUND, true))),
            ("GET /metrics/../etc/passwd HTTP/1.1\r\n\r\n".to_owned(), Some((NOT_FOUND, true))),
            ("GET http://x/metrics HTTP/1.1\r\n\r\n".to_owned(), Some((NOT_FOUND, true))),
            (many(MOST_HEADERS), Some((OK, true))),
            (many(MOST_HEADERS + 1), Some((TOO_LARGE, true))),
            ("\u{16}\u{3}\u{1}".to_owned(), Some((BAD, true))),
            ("GET /metrics HTTP/9\r\n\r\n".to_owned(), Some((BAD, true))),
        ] {
            assert_eq!(status_of(request.as_bytes()), expected, "{request:?}");
        }
    }

    /// The answer to these bytes.
    fn ask(address: SocketAddr, request: &[u8]) -> String {
        let mut stream = TcpStream::connect(address).unwrap();
        let _ = stream.write_all(request);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        String::from_utf8(answer).unwrap()
    }

    #[test]
    fn a_client_cannot_take_more_than_its_share() {
        let listener = Listener::open("127.0.0.1:0".parse().unwrap()).unwrap();
        let address = listener.address().unwrap();
        assert!(matches!(Listener::open(address), Err(ListenError::Refused(..))), "in use");
        listener.serve(|| "a 1\n".to_owned()).unwrap();
        // A request of a machine that stands still times out, and is sent again.
        let is_answered = |request: &[u8], begin: &str, end: &str| {
            comes_true(|| {
                let answer = ask(address, request);
                answer.starts_with(begin) && answer.ends_with(end)
            })
        };
        let request = b"GET /metrics HTTP/1.1\r\n\r\n";
        assert!(is_answered(request, "HTTP/1.1 200 OK\r\n", "\r\n\r\na 1\n"));
        let long = [&b"GET /metrics HTTP/1.1\r\na: "[..], &[b'x'; MOST_REQUEST_BYTES]].concat();
        assert!(is_answered(long.get(..MOST_REQUEST_BYTES).unwrap(), "HTTP/1.1 431 ", ""));
        // Slow clients take all places, and lose the oldest one to the next.
        let slow: Vec<_> = (0..100).map(|_| TcpStream::connect(address).unwrap()).collect();
        slow.iter().for_each(|mut client| drop(client.write_all(b"G")));
        assert!(is_answered(request, "HTTP/1.1 200 OK\r\n", "a 1\n"));
        drop(slow);
    }

    #[test]
    fn the_oldest_incomplete_request_is_closed() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let incomplete = Incomplete::default();
        let mut clients: Vec<_> = (0..3)
            .map(|number| {
                let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
                incomplete.add(number, listener.accept().unwrap().0);
                client
            })
            .collect();
        incomplete.remove(0);
        assert!(incomplete.close_oldest());
        assert_eq!(clients[1].read(&mut [0]).unwrap(), 0);
        assert_eq!(incomplete.all().front().map(|(number, _)| *number), Some(2));
        assert!(incomplete.close_oldest() && !incomplete.close_oldest());
    }

    #[test]
    fn no_other_machine_can_connect() {
        for address in ["0.0.0.0:9", "[::]:9", "192.0.2.1:9"] {
            let said = Listener::open(address.parse().unwrap()).unwrap_err().to_string();
            assert!(said.starts_with(&format!("unsupported: listening on {address}: ")), "{said}");
            assert!(said.contains("127.0.0.1:9; use --textfile"), "{said}");
        }
    }
}
