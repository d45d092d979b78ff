//! The load `messaging`: the pattern of hackbench.
//!
//! In each group 20 processes send 100-byte messages to each of 20 others, over one stream socket pair per receiver,
//! without end, so that the rate is the machine's.

use super::count_one;
use super::workers::Workers;
use punctual_model::LoadPart;
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::atomic::AtomicU64;

/// hackbench(8): 20 senders and 20 receivers a group (`--fds=20`), 10 groups, 100 bytes a message (`--datasize=100`).
const PER_GROUP: usize = 20;
const GROUPS: usize = 10;
const MESSAGE_BYTES: usize = 100;

/// hackbench's 10 groups, or one for each CPU where there are more: each CPU has at least 40 tasks to switch between.
fn default_groups(n_cpus: usize) -> u32 {
    u32::try_from(n_cpus.max(GROUPS)).unwrap_or(LoadPart::MAX_GROUPS).min(LoadPart::MAX_GROUPS)
}

/// The number of receivers in `groups`, which are the ones that count; there are as many senders.
pub(super) fn n_receivers(groups: Option<u32>, n_cpus: usize) -> usize {
    groups.unwrap_or_else(|| default_groups(n_cpus)) as usize * PER_GROUP
}

/// Holds senders back until every receiver has started and got its first message. With 400 processes already at work,
/// the last of them would take seconds to begin.
#[derive(Debug)]
pub(super) struct Gate {
    inlet: PipeWriter,
    senders: usize,
}

impl Gate {
    /// Releases all senders at once. Errors: when the pipe to them cannot be written.
    pub(super) fn open(mut self) -> io::Result<()> {
        self.inlet.write_all(&vec![0; self.senders])
    }
}

/// Forks as many groups as have `n_receivers` together. The senders wait at the gate; before that, only the first of
/// each group sends one message to every receiver.
pub(super) fn start(workers: &mut Workers<'_>, n_receivers: usize) -> Result<Gate, String> {
    let (waiting, inlet) = io::pipe().map_err(|source| workers.start_error(&source))?;
    (0..n_receivers).step_by(PER_GROUP).try_for_each(|first_counter| start_group(workers, first_counter, &waiting))?;
    Ok(Gate { inlet, senders: n_receivers })
}

/// Forks one group, whose receivers count from `first_counter` on. The supervisor's ends of the sockets are closed on
/// return.
fn start_group(workers: &mut Workers<'_>, first_counter: usize, gate: &PipeReader) -> Result<(), String> {
    let mut outlets = Vec::with_capacity(PER_GROUP);
    for receiver in 0..PER_GROUP {
        let (outlet, inlet) = UnixStream::pair().map_err(|source| workers.start_error(&source))?;
        workers.fork(Some(first_counter + receiver), move |count| receive(inlet, count))?;
        outlets.push(outlet);
    }
    for sender in 0..PER_GROUP {
        workers.fork(None, |_| send(&outlets, sender == 0, gate))?;
    }
    Ok(())
}

fn receive(mut inlet: UnixStream, count: Option<&AtomicU64>) -> io::Result<()> {
    let mut message = [0; MESSAGE_BYTES];
    loop {
        inlet.read_exact(&mut message)?;
        count_one(count);
    }
}

fn send(outlets: &[UnixStream], is_first: bool, mut gate: &PipeReader) -> io::Result<()> {
    let to_each = || outlets.iter().try_for_each(|mut outlet| outlet.write_all(&[0; MESSAGE_BYTES]));
    if is_first {
        to_each()?;
    }
    gate.read_exact(&mut [0])?;
    loop {
        to_each()?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_grow_with_the_machine_only_beyond_ten_cpus() {
        for (n_cpus, groups) in [(1, 10), (10, 10), (11, 11), (64, 64), (8192, LoadPart::MAX_GROUPS)] {
            assert_eq!(default_groups(n_cpus), groups, "{n_cpus}");
        }
    }
}
