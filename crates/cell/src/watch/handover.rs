//! What goes to the explaining thread, which gives way to all others and therefore has no room at times.

use std::sync::mpsc::{SyncSender, TrySendError};

/// Memory of the values that wait, at most, bytes. The largest waits in any case.
const MOST_BYTES: usize = 32 << 20;

/// A value that can wait.
pub(super) trait Waiting {
    /// Its rank: values of a lower one give way.
    fn rank(&self) -> u64;
    /// Its memory.
    fn bytes(&self) -> usize;
    /// Frees memory that it does not need.
    fn shrink(&mut self);
}

/// The sender of values to a thread that may be busy: without idle time it takes them at the end. The largest values
/// that found no room are not lost.
#[derive(Debug)]
pub(super) struct Handover<T> {
    sender: SyncSender<T>,
    most_bytes: usize,
    /// The largest first.
    put_off: Vec<T>,
}

impl<T: Waiting> Handover<T> {
    pub(super) fn new(sender: SyncSender<T>) -> Handover<T> {
        Handover { sender, most_bytes: MOST_BYTES, put_off: Vec::new() }
    }

    /// Sends `value` and what was put off, as far as there is room, the largest first. Puts off the largest of the
    /// rest, and returns the others.
    pub(super) fn pass_on(&mut self, value: Option<T>) -> Vec<T> {
        if let Some(value) = value {
            let at = self.put_off.partition_point(|other| other.rank() >= value.rank());
            self.put_off.insert(at, value);
        }
        let (mut bytes, mut is_full) = (0, false);
        let (mut left, mut lost) = (Vec::new(), Vec::new());
        for one in std::mem::take(&mut self.put_off) {
            let refused = if is_full { Some(one) } else { self.send(one) };
            is_full = refused.is_some();
            let Some(mut one) = refused else { continue };
            one.shrink();
            bytes += one.bytes();
            if left.is_empty() || bytes <= self.most_bytes { left.push(one) } else { lost.push(one) }
        }
        self.put_off = left;
        lost
    }

    /// Returns the value if the channel is full.
    fn send(&self, value: T) -> Option<T> {
        match self.sender.try_send(value) {
            Ok(()) => None,
            Err(TrySendError::Full(one) | TrySendError::Disconnected(one)) => Some(one),
        }
    }

    /// Waits until what was put off has room, and ends: the receiver gets no more.
    pub(super) fn end(self) {
        // Fails if the receiving thread has panicked, which its `join` tells.
        self.put_off.into_iter().for_each(|one| drop(self.sender.send(one)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::{Receiver, sync_channel};

    impl Waiting for u64 {
        fn rank(&self) -> u64 {
            *self
        }

        fn bytes(&self) -> usize {
            100
        }

        fn shrink(&mut self) {}
    }

    fn handover(most_bytes: usize) -> (Handover<u64>, Receiver<u64>) {
        let (sender, receiver) = sync_channel(1);
        (Handover { most_bytes, ..Handover::new(sender) }, receiver)
    }

    #[test]
    fn the_largest_values_are_not_lost_while_the_receiver_is_busy() {
        for (most_bytes, lost, kept) in
            [(0, &[1, 2, 5, 3][..], &[4, 7][..]), (250, &[1, 2, 3], &[4, 7, 5]), (500, &[], &[4, 7, 5, 3, 2, 1])]
        {
            let (mut handover, receiver) = handover(most_bytes);
            let gave: Vec<u64> =
                [4, 1, 7, 2, 5, 3].into_iter().flat_map(|value| handover.pass_on(Some(value))).collect();
            assert_eq!(gave, lost, "{most_bytes}");
            let receiving = std::thread::spawn(move || receiver.iter().collect::<Vec<u64>>());
            handover.end();
            assert_eq!(receiving.join().unwrap(), kept, "{most_bytes}");
        }
    }

    #[test]
    fn what_waits_is_sent_as_soon_as_there_is_room() {
        let (mut handover, receiver) = handover(1000);
        [3, 1, 7].into_iter().for_each(|value| drop(handover.pass_on(Some(value))));
        assert_eq!(receiver.try_recv(), Ok(3));
        assert_eq!((handover.pass_on(Some(5)), receiver.try_recv()), (vec![], Ok(7)));
        assert_eq!((handover.pass_on(None), receiver.try_recv()), (vec![], Ok(5)));
    }
}
