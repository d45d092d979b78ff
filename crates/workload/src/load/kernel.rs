//! Loads that keep one part of the kernel busy: the same few calls on each CPU, repeated forever.

use super::count_one;
use super::workers::Workers;
use punctual_model::{ClockId, ClockTime, KernelLoad, Span};
use punctual_sys::signal::{self, SignalSet};
use punctual_sys::timers::PosixTimer;
use punctual_sys::work;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicU64;
use std::time::Duration;

/// The endless work of a worker.
type Work = fn(&dyn Fn()) -> io::Result<()>;

/// The name of one operation of a load, in the singular.
pub(super) fn operation(load: KernelLoad) -> &'static str {
    match load {
        KernelLoad::Pipe => "round trip",
        KernelLoad::Mmap => "mapping",
        KernelLoad::Fork | KernelLoad::Exec => "process",
        KernelLoad::Tcp => "block",
        KernelLoad::Udp => "datagram",
        KernelLoad::Sync => "sync",
        // Of 1024 writes; of 1000 timers.
        KernelLoad::Memory | KernelLoad::Timers => "round",
        KernelLoad::Signals => "signal",
        KernelLoad::Proc | KernelLoad::Light => "look",
        KernelLoad::Interrupts => "interrupt",
    }
}

/// Whether two processes do the work together.
fn is_pair(load: KernelLoad) -> bool {
    matches!(load, KernelLoad::Pipe | KernelLoad::Tcp | KernelLoad::Udp)
}

/// Processes that do the work of one CPU.
pub(super) fn workers_of_each(load: KernelLoad) -> usize {
    if is_pair(load) { 2 } else { 1 }
}

/// Memory that the work of one CPU fills, bytes.
pub(super) fn memory_bytes(load: KernelLoad) -> u64 {
    match load {
        KernelLoad::Memory => MEMORY_BYTES as u64,
        KernelLoad::Mmap => MAPPING_BYTES as u64,
        _ => 0,
    }
}

/// Forks the workers of `n_cpus` CPUs.
pub(super) fn start(workers: &mut Workers<'_>, what: KernelLoad, n_cpus: usize) -> Result<(), String> {
    let work: Work = match what {
        KernelLoad::Pipe => return (0..n_cpus).try_for_each(|counter| pipe(workers, counter)),
        KernelLoad::Tcp => return (0..n_cpus).try_for_each(|counter| tcp(workers, counter)),
        KernelLoad::Udp => return (0..n_cpus).try_for_each(|counter| udp(workers, counter)),
        KernelLoad::Mmap => mmap,
        KernelLoad::Fork => fork,
        KernelLoad::Exec => exec,
        KernelLoad::Sync => sync,
        KernelLoad::Memory => memory,
        KernelLoad::Timers => timers,
        KernelLoad::Signals => signals,
        KernelLoad::Proc => proc,
        KernelLoad::Interrupts => interrupts,
        KernelLoad::Light => light,
    };
    (0..n_cpus).try_for_each(|counter| workers.fork(Some(counter), |count| work(&|| count_one(count))))
}

/// Forks two workers that talk to each other; the first counts.
fn pair(
    workers: &mut Workers<'_>,
    counter: usize,
    first: impl FnOnce(Option<&AtomicU64>) -> io::Result<()>,
    second: impl FnOnce() -> io::Result<()>,
) -> Result<(), String> {
    workers.fork(Some(counter), first)?;
    workers.fork(None, |_| second())
}

fn pipe(workers: &mut Workers<'_>, counter: usize) -> Result<(), String> {
    let failed = |workers: &Workers<'_>, err: io::Error| workers.start_error(&err);
    let (mut there_out, mut there_in) = io::pipe().map_err(|err| failed(workers, err))?;
    let (mut back_out, mut back_in) = io::pipe().map_err(|err| failed(workers, err))?;
    let mut byte = [0];
    let asks = |count: Option<&AtomicU64>| {
        loop {
            there_in.write_all(&[1])?;
            back_out.read_exact(&mut byte)?;
            count_one(count);
        }
    };
    let answers = || {
        let mut byte = [0];
        loop {
            there_out.read_exact(&mut byte)?;
            back_in.write_all(&byte)?;
        }
    };
    pair(workers, counter, asks, answers)
}

/// Bytes of one block: what a file server sends at a time.
const BLOCK_BYTES: usize = 64 * 1024;

fn tcp(workers: &mut Workers<'_>, counter: usize) -> Result<(), String> {
    let listener = TcpListener::bind("127.0.0.1:0").map_err(|err| workers.start_error(&err))?;
    let address = listener.local_addr().map_err(|err| workers.start_error(&err))?;
    let receives = move |count: Option<&AtomicU64>| {
        let (mut stream, _) = listener.accept()?;
        let mut block = [0; BLOCK_BYTES];
        loop {
            stream.read_exact(&mut block)?;
            count_one(count);
        }
    };
    let sends = move || {
        let mut stream = TcpStream::connect(address)?;
        loop {
            stream.write_all(&[0; BLOCK_BYTES])?;
        }
    };
    pair(workers, counter, receives, sends)
}

/// Bytes of one datagram: what fits into an Ethernet frame.
const DATAGRAM_BYTES: usize = 1400;

fn udp(workers: &mut Workers<'_>, counter: usize) -> Result<(), String> {
    let receiver = UdpSocket::bind("127.0.0.1:0").map_err(|err| workers.start_error(&err))?;
    let sender = UdpSocket::bind("127.0.0.1:0").map_err(|err| workers.start_error(&err))?;
    let address = receiver.local_addr().map_err(|err| workers.start_error(&err))?;
    sender.connect(address).map_err(|err| workers.start_error(&err))?;
    let receives = move |count: Option<&AtomicU64>| {
        let mut datagram = [0; DATAGRAM_BYTES];
        loop {
            receiver.recv(&mut datagram)?;
            count_one(count);
        }
    };
    let sends = move || {
        loop {
            // Sending before the receiver is ready is not a failure.
            let _ = sender.send(&[0; DATAGRAM_BYTES]);
        }
    };
    pair(workers, counter, receives, sends)
}

/// Bytes of one mapping: 1024 pages.
const MAPPING_BYTES: usize = 4 << 20;

fn mmap(count: &dyn Fn()) -> io::Result<()> {
    loop {
        work::map_and_touch(MAPPING_BYTES)?;
        count();
    }
}

fn fork(count: &dyn Fn()) -> io::Result<()> {
    loop {
        work::fork_and_wait().map_err(at_a_limit)?;
        count();
    }
}

fn exec(count: &dyn Fn()) -> io::Result<()> {
    loop {
        // This program itself: it exists in any guest, and ends at once.
        Command::new(punctual_host::THIS_PROGRAM)
            .arg("--version")
            .stdout(Stdio::null())
            .status()
            .map_err(at_a_limit)?;
        count();
    }
}

/// Advice for when no more processes can be created.
fn at_a_limit(err: io::Error) -> io::Error {
    if err.kind() == io::ErrorKind::WouldBlock { io::Error::other(format!("{err}; raise `ulimit -u`")) } else { err }
}

fn sync(count: &dyn Fn()) -> io::Result<()> {
    loop {
        work::sync();
        count();
        // With nothing to write, sync is no more than a call; files of other processes need time to become dirty again.
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Bytes of the written memory: more than any cache holds, and than the TLB covers.
const MEMORY_BYTES: usize = 64 << 20;
/// Writes in one round.
const WRITES: usize = 1024;

fn memory(count: &dyn Fn()) -> io::Result<()> {
    let mut memory = vec![0_u64; MEMORY_BYTES / size_of::<u64>()];
    let mut random = 1_u64;
    let mask = memory.len() - 1;
    loop {
        for _ in 0..WRITES {
            // Marsaglia's xorshift64: cheap, and visits every place.
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            #[expect(clippy::cast_possible_truncation, reason = "masked to the number of places, which is a usize")]
            if let Some(place) = memory.get_mut(random as usize & mask) {
                *place = place.wrapping_add(random);
            }
        }
        count();
    }
}

/// Timers that expire together, and the interval between expiries.
const TIMERS: usize = 1000;
const EXPIRY_INTERVAL: Span = Span(10_000_000);

/// Timers that expire together. Their signals stay pending: the cost is that all expire in one interrupt.
fn timers(count: &dyn Fn()) -> io::Result<()> {
    SignalSet::new(signal::of_timers()).block()?;
    let timers: Vec<_> =
        (0..TIMERS).map(|_| PosixTimer::for_this_thread(ClockId::Monotonic)).collect::<Result<_, _>>()?;
    let mut due: ClockTime = punctual_sys::clock::now(ClockId::Monotonic);
    loop {
        due = punctual_sys::clock::now(ClockId::Monotonic).max(due).plus(EXPIRY_INTERVAL);
        for timer in &timers {
            timer.arm(due, Span(0)).map_err(io::Error::from_raw_os_error)?;
        }
        while punctual_sys::clock::sleep_until(ClockId::Monotonic, due) == Err(libc::EINTR) {}
        count();
    }
}

fn signals(count: &dyn Fn()) -> io::Result<()> {
    work::handle_signal()?;
    loop {
        work::signal_oneself()?;
        count();
    }
}

fn proc(count: &dyn Fn()) -> io::Result<()> {
    loop {
        punctual_host::look_at_all_processes()?;
        count();
    }
}

/// Two scans in every second, whenever it begins.
const SCAN_INTERVAL: Duration = Duration::from_millis(400);
/// Interval of the first scans, which is shorter, so that a cell of some hundred milliseconds in a guest has several of
/// them.
const FIRST_SCAN_INTERVAL: Duration = Duration::from_millis(100);
const N_FIRST_SCANS: u32 = 20;

fn light(count: &dyn Fn()) -> io::Result<()> {
    let mut scans = 0_u32;
    loop {
        punctual_host::look_at_all_processes()?;
        count();
        scans = scans.saturating_add(1);
        std::thread::sleep(if scans < N_FIRST_SCANS { FIRST_SCAN_INTERVAL } else { SCAN_INTERVAL });
    }
}

fn interrupts(count: &dyn Fn()) -> io::Result<()> {
    // As soon as possible: a sleep of 1 ns is over at the next interrupt of the timer.
    punctual_sys::thread::set_timer_slack(Span(1))?;
    loop {
        punctual_sys::clock::sleep_for(ClockId::Monotonic, Span(1)).map_err(io::Error::from_raw_os_error)?;
        count();
    }
}
