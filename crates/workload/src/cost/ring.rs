//! Groups `switch` and `sched`: processes that run one after the other.

use super::process::Partner;
use super::{Batch, NotReady, Operation, ReadyOperation, unknown};
use punctual_sys::ipc::SharedWords;
use punctual_sys::sched;
use std::hint::black_box;
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::rc::Rc;

const KIB: usize = 1024;

/// Creates a ring from a name: `8p_16k` is 8 processes, 16 KiB each.
pub(super) fn switches(name: &str) -> Result<ReadyOperation, NotReady> {
    let parts = name.split_once("p_").and_then(|(processes, size)| {
        Some((processes.parse::<usize>().ok()?, size.strip_suffix('k')?.parse::<usize>().ok()?))
    });
    let Some((processes @ 2.., kib)) = parts else { return Err(unknown(name)) };
    let (mut reader, writer) = io::pipe()?;
    let mut partners = Vec::new();
    for _ in 1..processes {
        let (next_reader, next_writer) = io::pipe()?;
        let mut station = Station::new(reader, next_writer, kib * KIB);
        partners.push(Partner::start(move || {
            loop {
                station.pass()?;
            }
        })?);
        reader = next_reader;
    }
    let ring = Ring { partners, reader, writer, work: Work::new(kib * KIB), trip: processes as u64 };
    Ok(ReadyOperation { batch: Batch::Of(ring.trip), operation: Box::new(ring) })
}

/// Memory that a process of a ring sums up at each turn.
struct Work(Vec<u64>);

impl Work {
    fn new(bytes: usize) -> Work {
        Work(vec![1; bytes / size_of::<u64>()])
    }

    fn add_up(&self) {
        black_box(black_box(&self.0).iter().sum::<u64>());
    }
}

/// One process of the ring.
struct Station {
    reader: PipeReader,
    writer: PipeWriter,
    work: Work,
}

impl Station {
    fn new(reader: PipeReader, writer: PipeWriter, bytes: usize) -> Station {
        Station { reader, writer, work: Work::new(bytes) }
    }

    fn pass(&mut self) -> io::Result<()> {
        let mut byte = [0];
        self.reader.read_exact(&mut byte)?;
        self.work.add_up();
        self.writer.write_all(&byte)
    }
}

/// The measured process, and the other processes of its ring.
struct Ring {
    #[expect(dead_code, reason = "they end when it is dropped")]
    partners: Vec<Partner>,
    reader: PipeReader,
    writer: PipeWriter,
    work: Work,
    /// Switches in one round trip of the ring.
    trip: u64,
}

impl Operation for Ring {
    fn run(&mut self, n: u64) -> io::Result<()> {
        let mut byte = [0];
        for _ in 0..n / self.trip {
            self.writer.write_all(&byte)?;
            self.reader.read_exact(&mut byte)?;
            self.work.add_up();
        }
        Ok(())
    }
}

/// Processes of the chain of wake-ups.
const CHAIN: usize = 8;

pub(super) fn scheduler(name: &str) -> Result<ReadyOperation, NotReady> {
    match name {
        "yield" => Ok(ReadyOperation::each(|| sched::yield_now().map_err(io::Error::from_raw_os_error))),
        "wake_chain" => {
            let chain = Chain::new()?;
            Ok(ReadyOperation { operation: Box::new(chain), batch: Batch::Of(CHAIN as u64) })
        }
        other => Err(unknown(other)),
    }
}

/// A chain of processes, each of which waits on its word and then wakes the next; this one has word 0.
struct Chain {
    words: Rc<SharedWords>,
    #[expect(dead_code, reason = "they end when it is dropped")]
    partners: Vec<Partner>,
}

impl Chain {
    fn new() -> io::Result<Chain> {
        let words = Rc::new(SharedWords::new(CHAIN)?);
        let link = |place: usize| {
            let words = Rc::clone(&words);
            Partner::start(move || {
                loop {
                    words.take(place)?;
                    words.post((place + 1) % CHAIN)?;
                }
            })
        };
        let partners = (1..CHAIN).map(link).collect::<Result<_, _>>()?;
        Ok(Chain { words, partners })
    }
}

impl Operation for Chain {
    fn run(&mut self, n: u64) -> io::Result<()> {
        for _ in 0..n / CHAIN as u64 {
            self.words.post(1)?;
            self.words.take(0)?;
        }
        Ok(())
    }
}
