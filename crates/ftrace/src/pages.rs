//! Parser for pages of the kernel's ring buffer, as read from `trace_pipe_raw`.
//!
//! Layout: kernel/trace/ring_buffer.c, `events/header_page` and `events/header_event`. A page begins with the time of
//! its first record and its length; a record with 5 bits of type and 27 bits of time since the previous record.

/// Positions of the parts of a page, from `events/header_page`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PageLayout {
    /// Offset of the length, and its size: 4 or 8 bytes.
    pub(super) commit_at: usize,
    pub(super) commit_bytes: usize,
    /// Offset of the records.
    pub(super) data_at: usize,
    pub(super) page_bytes: usize,
}

/// A defect of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum PageError {
    /// The page is shorter than its own head declares.
    #[error("truncated page of {0} bytes")]
    Short(usize),
    /// A record is longer than the page.
    #[error("a record at byte {0} is longer than its page")]
    Record(usize),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct PageHead {
    /// The time of its first record, ns.
    pub(super) time_ns: u64,
    /// Whether events were lost before it.
    pub(super) lost: bool,
    /// The number of lost events, if known.
    pub(super) lost_count: Option<u64>,
}

/// Flag bits in the length field (`RB_MISSED_*`).
const LOST: u64 = 1 << 31;
const LOST_COUNTED: u64 = 1 << 30;
/// The length itself: the low 20 bits.
const LENGTH: u64 = 0xf_ffff;

/// Notes in a page's head that events before it are missing.
pub(super) fn mark_lost(page: &mut [u8], layout: &PageLayout) {
    // The low 32 bits of the length.
    let at = if cfg!(target_endian = "big") { layout.commit_at + layout.commit_bytes - 4 } else { layout.commit_at };
    if let Some(low) = page.get_mut(at..).and_then(|rest| rest.first_chunk_mut::<4>()) {
        *low = (u32::from_ne_bytes(*low) | 1 << 31).to_ne_bytes();
    }
}

const DELTA_BITS: u32 = 27;
/// The upper five bits, which an absolute time of 59 bits lacks.
const HIGH: u64 = 0xf8 << 56;

/// The time of the first record of a page, ns; `None` if the page is shorter than that.
pub(super) fn page_begins(page: &[u8]) -> Option<u64> {
    u64_at(page, 0)
}

/// Passes every event of `page` to `take`, with its time, ns, and its data. The time after records without an event is
/// also correct. Errors: when the page is damaged; the events before the damage have been taken.
pub(super) fn read_page(
    page: &[u8],
    layout: &PageLayout,
    mut take: impl FnMut(u64, &[u8]),
) -> Result<PageHead, PageError> {
    let (head, records) = page_head(page, layout)?;
    read_records(records, head.time_ns, &mut take)?;
    Ok(head)
}

/// The head of a page, and its records. Errors: when the page is shorter than its head declares.
pub(super) fn page_head<'a>(page: &'a [u8], layout: &PageLayout) -> Result<(PageHead, &'a [u8]), PageError> {
    let short = || PageError::Short(page.len());
    let time_ns = page_begins(page).ok_or_else(short)?;
    let commit = match layout.commit_bytes {
        4 => u64::from(u32_at(page, layout.commit_at).ok_or_else(short)?),
        _ => u64_at(page, layout.commit_at).ok_or_else(short)?,
    };
    let length = usize::try_from(commit & LENGTH).map_err(|_| short())?;
    let data = page.get(layout.data_at..).ok_or_else(short)?;
    let records = data.get(..length).ok_or_else(short)?;
    let lost = commit & LOST != 0;
    let counted = lost && commit & LOST_COUNTED != 0;
    Ok((PageHead { time_ns, lost, lost_count: u64_at(data, length).filter(|_| counted) }, records))
}

fn read_records(records: &[u8], mut time_ns: u64, take: &mut impl FnMut(u64, &[u8])) -> Result<(), PageError> {
    let mut at = 0;
    while let Some(header) = u32_at(records, at) {
        let (kind, delta) = divided(header);
        let too_long = PageError::Record(at);
        let word = || u32_at(records, at + 4).ok_or(too_long);
        match kind {
            // Padding up to the end of the page.
            29 if delta == 0 => return Ok(()),
            // A discarded event.
            29 => {
                time_ns = time_ns.wrapping_add(delta);
                at = next(at, 4, u64::from(word()?)).ok_or(too_long)?;
            }
            30 => {
                time_ns = time_ns.wrapping_add(delta | u64::from(word()?) << DELTA_BITS);
                at += 8;
            }
            31 => {
                time_ns = absolute(delta | u64::from(word()?) << DELTA_BITS, time_ns);
                at += 8;
            }
            // Events of more than 112 bytes; the length includes its own word.
            0 => {
                let length = word()?;
                time_ns = time_ns.wrapping_add(delta);
                let end = next(at, 4, u64::from(length)).ok_or(too_long)?;
                take(time_ns, records.get(at + 8..end).ok_or(too_long)?);
                at = end;
            }
            words => {
                time_ns = time_ns.wrapping_add(delta);
                let end = next(at, 4, u64::from(words) * 4).ok_or(too_long)?;
                take(time_ns, records.get(at + 4..end).ok_or(too_long)?);
                at = end;
            }
        }
    }
    Ok(())
}

/// A record with an absolute time, ns, for the next event.
pub(super) fn absolute_time(at_ns: u64) -> [u8; 8] {
    let low = u32::try_from(at_ns & ((1 << DELTA_BITS) - 1)).unwrap_or(0);
    let high = u32::try_from((at_ns & !HIGH) >> DELTA_BITS).unwrap_or(0);
    let mut record = [0; 8];
    let (head, rest) = record.split_at_mut(4);
    head.copy_from_slice(&joined(31, low));
    rest.copy_from_slice(&high.to_ne_bytes());
    record
}

/// A record with an event of any length in whole words, at the time of the record before.
pub(super) fn long_event(data: &[u8]) -> Vec<u8> {
    let length = u32::try_from(data.len() + 4).unwrap_or(0);
    [&joined(0, 0), &length.to_ne_bytes()[..], data].concat()
}

/// The first word of a record.
pub(super) fn joined(kind: u32, delta: u32) -> [u8; 4] {
    (if cfg!(target_endian = "big") { kind << DELTA_BITS | delta } else { delta << 5 | kind }).to_ne_bytes()
}

/// The type and the time of a record's first word, which is a bit field of C.
fn divided(header: u32) -> (u32, u64) {
    if cfg!(target_endian = "big") {
        (header >> DELTA_BITS, u64::from(header & ((1 << DELTA_BITS) - 1)))
    } else {
        (header & 0x1f, u64::from(header >> 5))
    }
}

/// `at + head + length`, rounded up to whole words; `None` without progress.
fn next(at: usize, head: usize, length: u64) -> Option<usize> {
    let length = usize::try_from(length).ok()?;
    at.checked_add(head)?.checked_add(length)?.checked_next_multiple_of(4).filter(|_| length > 0)
}

/// An absolute time, completed with the upper bits of the previous time (`rb_fix_abs_ts`).
fn absolute(low: u64, before: u64) -> u64 {
    let time = low | before & HIGH;
    if before & HIGH != 0 && time < before { time.wrapping_add(1 << 59) } else { time }
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{LAYOUT, Record, header, page, written};
    use super::*;
    use proptest::prelude::*;

    /// The head of a page, and its events.
    type Taken = (Result<PageHead, PageError>, Vec<(u64, Vec<u8>)>);

    fn read(page: &[u8], layout: &PageLayout) -> Taken {
        let mut events = Vec::new();
        let head = read_page(page, layout, |time, data| events.push((time, data.to_vec())));
        (head, events)
    }

    #[test]
    fn every_kind_of_record_is_read() {
        let long = vec![7; 116];
        let records = written(&[
            Record::Event(0, vec![1; 4]),
            Record::Event((1 << 27) - 1, vec![2; 112]),
            Record::Discarded(5, 3),
            Record::Event(1, long.clone()),
            Record::Extend(1 << 27),
            Record::Event(2, vec![3; 8]),
            Record::Absolute((1 << 40) + 9),
            Record::Event(1, vec![4; 8]),
        ]);
        let (head, events) = read(&page(1000, 0, &records, &LAYOUT, None), &LAYOUT);
        assert_eq!(head, Ok(PageHead { time_ns: 1000, lost: false, lost_count: None }));
        let second = 1000 + (1 << 27) - 1;
        let third = second + 6;
        let fourth = third + (1 << 27) + 2;
        let want = [
            (1000, vec![1; 4]),
            (second, vec![2; 112]),
            (third, long),
            (fourth, vec![3; 8]),
            ((1 << 40) + 10, vec![4; 8]),
        ];
        assert_eq!(events, want);
    }

    #[test]
    fn an_empty_page_padding_and_lost_events() {
        assert_eq!(
            read(&page(5, 0, &[], &LAYOUT, None), &LAYOUT),
            (Ok(PageHead { time_ns: 5, ..PageHead::default() }), vec![])
        );
        let mut records = written(&[Record::Event(1, vec![1; 4])]);
        records.extend(header(29, 0));
        records.extend([0xff; 8]);
        let (head, events) = read(&page(5, LOST | LOST_COUNTED, &records, &LAYOUT, Some(77)), &LAYOUT);
        assert_eq!((head.unwrap().lost, head.unwrap().lost_count, events.len()), (true, Some(77), 1));
        let (head, _) = read(&page(5, LOST, &records, &LAYOUT, Some(77)), &LAYOUT);
        assert_eq!((head.unwrap().lost, head.unwrap().lost_count), (true, None));
    }

    #[test]
    fn an_absolute_time_takes_its_upper_bits_from_before() {
        let high = 0x10 << 56;
        assert_eq!(absolute(5, 0), 5);
        assert_eq!(absolute(5, high | 3), high | 5);
        // The lower bits have wrapped.
        assert_eq!(absolute(5, (1 << 59) | ((1 << 59) - 2)), (1 << 60) | 5);
    }

    #[test]
    fn a_damaged_page_is_an_error_and_what_came_before_is_taken() {
        let good = written(&[Record::Event(1, vec![1; 4])]);
        for (bad, at) in [
            // Longer than the page; of length zero; without its second word.
            ([header(0, 1), 4000_u32.to_ne_bytes()].concat(), 8),
            ([header(0, 1), 0_u32.to_ne_bytes()].concat(), 8),
            ([header(29, 1), 0_u32.to_ne_bytes()].concat(), 8),
            (header(30, 1).to_vec(), 8),
            (header(28, 1).to_vec(), 8),
        ] {
            let (head, events) = read(&page(5, 0, &[good.clone(), bad].concat(), &LAYOUT, None), &LAYOUT);
            assert_eq!((head, events.len()), (Err(PageError::Record(at)), 1));
        }
        let whole = page(5, 0, &good, &LAYOUT, None);
        for cut in [0, 7, 8, 15, 16, 23] {
            assert_eq!(read(&whole[..cut], &LAYOUT).0, Err(PageError::Short(cut)), "{cut}");
        }
        assert!(read(&whole[..24], &LAYOUT).0.is_ok());
    }

    fn record() -> impl Strategy<Value = Record> {
        let data = prop_oneof![Just(1_usize), 2..28_usize, Just(28), Just(29), 30..60_usize];
        prop_oneof![
            4 => (0_u32..1 << 27, data, any::<u8>()).prop_map(|(delta, words, byte)| Record::Event(delta, vec![byte; words * 4])),
            1 => (1_u32..1 << 27, 1_u32..20).prop_map(|(delta, words)| Record::Discarded(delta, words)),
            1 => (0_u64..1 << 59).prop_map(Record::Extend),
            1 => (0_u64..1 << 59).prop_map(Record::Absolute),
        ]
    }

    proptest! {
        /// Everything that the kernel can write is read back, for pages of every size, and for 32-bit kernels.
        #[test]
        fn what_is_written_is_read(
            records in prop::collection::vec(record(), 0..40), time in 0_u64..1 << 50, order in 0_u32..5,
            is_short in any::<bool>(), lost in prop::option::of(any::<u64>()),
        ) {
            let layout = match is_short {
                true => PageLayout { commit_at: 8, commit_bytes: 4, data_at: 12, page_bytes: 4096 << order },
                false => PageLayout { page_bytes: 4096 << order, ..LAYOUT },
            };
            let flags = if lost.is_some() { LOST | LOST_COUNTED } else { 0 };
            let bytes = written(&records);
            let (head, events) = read(&page(time, flags, &bytes, &layout, lost), &layout);
            let (mut at, mut want) = (time, Vec::new());
            for record in &records {
                match record {
                    Record::Event(delta, data) => {
                        at = at.wrapping_add(u64::from(*delta));
                        want.push((at, data.clone()));
                    }
                    Record::Discarded(delta, _) => at = at.wrapping_add(u64::from(*delta)),
                    Record::Extend(delta) => at = at.wrapping_add(*delta),
                    Record::Absolute(time) => at = absolute(*time, at),
                }
            }
            prop_assert_eq!(head, Ok(PageHead { time_ns: time, lost: lost.is_some(), lost_count: lost }));
            prop_assert_eq!(events, want);
        }
    }
}
