//! What goes to the explaining thread, which gives way to all others and therefore has no room at times.

use std::cmp::Reverse;
use std::sync::mpsc::{SyncSender, TrySendError};

/// The sender of values to a thread that may be busy. The largest value that found no room is not lost.
#[derive(Debug)]
pub(in super::super) struct Handover<T> {
    sender: SyncSender<T>,
    size: fn(&T) -> u64,
    put_off: Option<T>,
}

impl<T> Handover<T> {
    pub(in super::super) fn new(sender: SyncSender<T>, size: fn(&T) -> u64) -> Handover<T> {
        Handover { sender, size, put_off: None }
    }

    /// Sends `value` and what was put off, as far as there is room, the largest first. Puts off the largest of the
    /// rest, and returns the other.
    pub(super) fn pass_on(&mut self, value: Option<T>) -> Option<T> {
        let mut waiting: Vec<T> = self.put_off.take().into_iter().chain(value).collect();
        waiting.sort_by_key(|one| Reverse((self.size)(one)));
        let mut left = waiting.into_iter().filter_map(|one| match self.sender.try_send(one) {
            Ok(()) => None,
            Err(TrySendError::Full(one) | TrySendError::Disconnected(one)) => Some(one),
        });
        let (largest, other) = (left.next(), left.next());
        self.put_off = largest;
        other
    }

    /// Waits until what was put off has room, and ends: the receiver gets no more.
    pub(in super::super) fn end(self) {
        if let Some(one) = self.put_off {
            // Fails if the receiving thread has panicked, which its `join` tells.
            let _ = self.sender.send(one);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::sync_channel;

    #[test]
    fn the_largest_value_is_not_lost_while_the_receiver_is_busy() {
        let (sender, receiver) = sync_channel(1);
        let mut handover = Handover::new(sender, |value: &u64| *value);
        let returned: Vec<Option<u64>> = [3, 1, 7, 2].map(|value| handover.pass_on(Some(value))).to_vec();
        assert_eq!((returned, receiver.try_recv()), (vec![None, None, Some(1), Some(2)], Ok(3)));
        assert_eq!((handover.pass_on(Some(5)), receiver.try_recv()), (None, Ok(7)));
        assert_eq!((handover.pass_on(None), handover.pass_on(Some(9)), receiver.try_recv()), (None, None, Ok(5)));
        let receiving = std::thread::spawn(move || receiver.iter().collect::<Vec<u64>>());
        handover.end();
        assert_eq!(receiving.join().unwrap(), [9]);
    }
}
