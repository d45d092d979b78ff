//! Group `ipc`: two processes that wake each other in turn, or move blocks.

use super::process::Partner;
use super::{NotReady, Operation, ReadyOperation, unknown};
use punctual_sys::ipc::{MessageQueue, Semaphores, SharedWords, event_file};
use std::ffi::CString;
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::unix::net::UnixStream;
use std::rc::Rc;

pub(crate) fn make(name: &str) -> Result<ReadyOperation, NotReady> {
    Ok(match name {
        "pipe" => {
            let ((there, to), (from, back)) = (io::pipe()?, io::pipe()?);
            round_trips((from, to), (there, back), &[1])?
        }
        "unix" => {
            let (ours, theirs) = UnixStream::pair()?;
            round_trips((ours.try_clone()?, ours), (theirs.try_clone()?, theirs), &[1])?
        }
        "eventfd" => {
            let (there, back) = (event_file()?, event_file()?);
            let theirs = (there.try_clone()?, back.try_clone()?);
            round_trips((back, there), theirs, &1_u64.to_ne_bytes())?
        }
        "futex" => {
            let words = SharedWords::new(2)?;
            turns(words, |words, place| words.post(place), |words, place| words.take(place))?
        }
        "mqueue" => {
            let name = |n: u32| CString::new(format!("/punctual-{}-{n}", std::process::id())).map_err(io::Error::from);
            let queues = [MessageQueue::new(&name(0)?)?, MessageQueue::new(&name(1)?)?];
            turns(
                queues,
                |queues, place| queues.get(place).map_or(Ok(()), MessageQueue::send),
                |queues, place| queues.get(place).map_or(Ok(()), MessageQueue::receive),
            )?
        }
        "semaphore" => {
            let which = |place: usize| u16::try_from(place).map_err(io::Error::other);
            let semaphores = Semaphores::new()?;
            punctual_sys::fail::point("semaphores-made");
            turns(
                semaphores,
                move |semaphores, place| semaphores.post(which(place)?),
                move |semaphores, place| semaphores.take(which(place)?),
            )?
        }
        "pipe_bandwidth" => {
            let (there, to) = io::pipe()?;
            blocks(to, there)?
        }
        "unix_bandwidth" => {
            let (ours, theirs) = UnixStream::pair()?;
            blocks(ours, theirs)?
        }
        other => return Err(unknown(other)),
    })
}

/// A message to another process, which sends it back: `ours` are the reader and writer of this process, `theirs` those
/// of the other.
pub(super) fn round_trips<R: Read + 'static, W: Write + 'static>(
    (mut from, mut to): (R, W),
    (mut their_from, mut their_to): (impl Read, impl Write),
    message: &[u8],
) -> io::Result<ReadyOperation> {
    let (message, mut received) = (message.to_owned(), vec![0; message.len()]);
    let mut their_message = message.clone();
    let partner = Partner::start(move || {
        loop {
            their_from.read_exact(&mut their_message)?;
            their_to.write_all(&their_message)?;
        }
    })?;
    Ok(ReadyOperation::each(move || {
        let _ = &partner;
        to.write_all(&message)?;
        from.read_exact(&mut received)
    }))
}

/// Two processes that take turns: each posts at the place of the other and takes at its own; this process has place 0.
fn turns<T: 'static>(
    shared: T,
    post: impl Fn(&T, usize) -> io::Result<()> + Clone + 'static,
    take: impl Fn(&T, usize) -> io::Result<()> + Clone + 'static,
) -> io::Result<ReadyOperation> {
    let shared = Rc::new(shared);
    let (theirs, their_post, their_take) = (Rc::clone(&shared), post.clone(), take.clone());
    let partner = Partner::start(move || {
        loop {
            their_take(&theirs, 1)?;
            their_post(&theirs, 0)?;
        }
    })?;
    Ok(ReadyOperation::each(move || {
        let _ = &partner;
        post(&shared, 1)?;
        take(&shared, 0)
    }))
}

const BLOCK_BYTES: usize = 64 * 1024;

/// Blocks to another process. It receives their number first and answers after the last one, so that all have been
/// moved when a batch ends.
pub(super) fn blocks(to: impl Write + 'static, mut from: impl Read) -> io::Result<ReadyOperation> {
    let (mut told, teller) = io::pipe()?;
    let (answer, mut answers) = io::pipe()?;
    let partner = Partner::start(move || {
        let (mut number, mut block) = ([0; 8], vec![0; BLOCK_BYTES]);
        loop {
            told.read_exact(&mut number)?;
            let mut left = u64::from_ne_bytes(number).saturating_mul(BLOCK_BYTES as u64);
            while left > 0 {
                match from.read(&mut block)? {
                    0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                    bytes => left = left.saturating_sub(bytes as u64),
                }
            }
            answers.write_all(&[1])?;
        }
    })?;
    let operation = Blocks { _partner: partner, to, teller, answer, block: vec![1; BLOCK_BYTES] };
    Ok(ReadyOperation { operation: Box::new(operation), batch: super::Batch::Of(1) })
}

struct Blocks<W> {
    _partner: Partner,
    to: W,
    teller: PipeWriter,
    answer: PipeReader,
    block: Vec<u8>,
}

impl<W: Write> Operation for Blocks<W> {
    fn run(&mut self, n: u64) -> io::Result<()> {
        self.teller.write_all(&n.to_ne_bytes())?;
        for _ in 0..n {
            self.to.write_all(&self.block)?;
        }
        self.answer.read_exact(&mut [0])
    }
}
