//! Records of the ring of perf events (perf_event_open(2)): samples, losses, and programs that are replaced.

use crate::registers::{PERF_REGISTERS, Registers, STACK};

/// Kinds of records, include/uapi/linux/perf_event.h.
const LOST: u32 = 2;
const COMM: u32 = 3;
const SAMPLE: u32 = 9;
/// `PERF_RECORD_MISC_COMM_EXEC`.
const COMM_EXEC: u16 = 1 << 13;
/// `PERF_SAMPLE_REGS_ABI_64` on 64-bit architectures, and that of 32 bits on others: other programs are not unwound.
const ABI: u64 = if cfg!(target_pointer_width = "64") { 2 } else { 1 };

/// A sample of a thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawSample {
    /// Identifier of the event that took it.
    pub event: u64,
    /// Time, `CLOCK_MONOTONIC`, ns.
    pub at_ns: u64,
    /// The user's registers.
    pub registers: Registers,
    /// Memory from the stack pointer upwards, as much as was copied.
    pub stack: Box<[u8]>,
}

impl RawSample {
    /// The word at an address on the stack; `None` outside of the copy.
    pub(crate) fn word(&self, address: u64) -> Option<u64> {
        let base = self.registers.get(STACK)?;
        let at = usize::try_from(address.checked_sub(base)?).ok()?;
        let bytes = self.stack.get(at..at.checked_add(size_of::<usize>())?)?;
        Some(usize::from_ne_bytes(bytes.try_into().ok()?) as u64)
    }
}

/// What one record says.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::large_enum_variant, reason = "nearly all are samples")]
pub enum Record {
    /// A sample with registers of a user.
    Sample(RawSample),
    /// This many records were lost before.
    Lost(u64),
    /// The thread started another program.
    Exec,
}

/// A record of events with identifier, thread, time, registers and stack; `None` where it tells nothing of these.
pub fn parse(record: &[u8]) -> Option<Record> {
    let mut words = Words(record);
    let header = words.next()?;
    let kind = u32::try_from(header & u64::from(u32::MAX)).ok()?;
    let misc = u16::try_from(header >> 32 & u64::from(u16::MAX)).ok()?;
    match kind {
        LOST => {
            words.next()?;
            words.next().map(Record::Lost)
        }
        COMM => (misc & COMM_EXEC != 0).then_some(Record::Exec),
        SAMPLE => {
            let event = words.next()?;
            let _thread = words.next()?;
            let at_ns = words.next()?;
            if words.next()? != ABI {
                return None;
            }
            let mut values = [0; 64];
            let n = PERF_REGISTERS.count_ones() as usize;
            for value in values.iter_mut().take(n) {
                *value = words.next()?;
            }
            let size = usize::try_from(words.next()?).ok()?;
            let stack = match size {
                0 => &[][..],
                _ => {
                    let bytes = words.bytes(size)?;
                    let copied = usize::try_from(words.next()?).ok()?;
                    bytes.get(..copied.min(size))?
                }
            };
            let registers = Registers::of_sample(values.get(..n)?);
            Some(Record::Sample(RawSample { event, at_ns, registers, stack: stack.into() }))
        }
        _ => None,
    }
}

/// The rest of a record.
struct Words<'a>(&'a [u8]);

impl<'a> Words<'a> {
    fn next(&mut self) -> Option<u64> {
        Some(u64::from_ne_bytes(self.bytes(8)?.try_into().ok()?))
    }

    fn bytes(&mut self, n: usize) -> Option<&'a [u8]> {
        let (first, rest) = self.0.split_at_checked(n)?;
        self.0 = rest;
        Some(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn record(kind: u32, misc: u16, words: &[u64]) -> Vec<u8> {
        let length = u64::try_from(8 + words.len() * 8).unwrap();
        let header = u64::from(kind) | u64::from(misc) << 32 | length << 48;
        std::iter::once(&header).chain(words).flat_map(|word| word.to_ne_bytes()).collect()
    }

    fn sample(copied: u64) -> Vec<u8> {
        let n = u64::from(PERF_REGISTERS.count_ones());
        let registers = (0..n).map(|one| 0x1000 + one);
        let words: Vec<u64> =
            [77, 5 << 32 | 6, 123_456, ABI].into_iter().chain(registers).chain([16, 1, 2, copied]).collect();
        record(SAMPLE, 0, &words)
    }

    #[test]
    fn samples_losses_and_other_programs_are_told_apart() {
        let Some(Record::Sample(found)) = parse(&sample(8)) else { panic!("no sample") };
        assert_eq!((found.event, found.at_ns, found.stack.len()), (77, 123_456, 8));
        let base = found.registers.get(STACK).unwrap();
        assert_eq!(found.word(base), Some(1));
        assert_eq!(found.word(base + 8), None);
        assert_eq!(found.word(base - 8), None);
        assert_eq!(found.word(u64::MAX), None);
        assert_eq!(parse(&record(LOST, 0, &[9, 4])), Some(Record::Lost(4)));
        assert_eq!(parse(&record(COMM, COMM_EXEC, &[0, 0])), Some(Record::Exec));
        assert_eq!(parse(&record(COMM, 0, &[0, 0])), None);
        assert_eq!(parse(&record(77, 0, &[0, 0])), None);
    }

    proptest! {
        #[test]
        fn no_record_is_read_beyond_its_end(cut in 0..400_usize, flips in prop::collection::vec((0..400_usize, any::<u8>()), 0..8)) {
            let mut bytes = sample(16);
            for (at, with) in flips {
                if let Some(byte) = bytes.get_mut(at) {
                    *byte ^= with;
                }
            }
            bytes.truncate(cut);
            if let Some(Record::Sample(found)) = parse(&bytes) {
                prop_assert!(found.stack.len() <= bytes.len());
                let base = found.registers.get(STACK).unwrap_or(0);
                for at in 0..32 {
                    let _ = found.word(base.wrapping_add(at));
                }
            }
        }
    }
}
