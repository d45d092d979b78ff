//! Pages written as the kernel does, whole and damaged, and read back.

use super::*;
use proptest::prelude::*;

/// A page of 4 KiB as this kernel's has it.
pub(in crate::trace) const LAYOUT: PageLayout =
    PageLayout { commit_at: 8, commit_bytes: 8, data_at: 16, page_bytes: 4096 };

/// What the kernel may write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::trace) enum Record {
    /// An event so much later, with its data in whole words.
    Event(u32, Vec<u8>),
    /// One that was given up, with so many words.
    Discarded(u32, u32),
    /// Time that the 27 bits have no room for.
    Extend(u64),
    /// The time itself.
    Absolute(u64),
}

fn header(kind: u32, delta: u32) -> [u8; 4] {
    (if cfg!(target_endian = "big") { kind << 27 | delta } else { delta << 5 | kind }).to_ne_bytes()
}

fn split(value: u64) -> (u32, [u8; 4]) {
    let low = u32::try_from(value & 0x7ff_ffff).unwrap();
    (low, u32::try_from(value >> 27).unwrap().to_ne_bytes())
}

/// The records as the kernel writes them.
pub(in crate::trace) fn written(records: &[Record]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for record in records {
        match record {
            Record::Event(delta, data) if (4..=112).contains(&data.len()) => {
                bytes.extend(header(u32::try_from(data.len() / 4).unwrap(), *delta));
                bytes.extend(data);
            }
            Record::Event(delta, data) => {
                bytes.extend(header(0, *delta));
                bytes.extend(u32::try_from(data.len() + 4).unwrap().to_ne_bytes());
                bytes.extend(data);
            }
            Record::Discarded(delta, words) => {
                bytes.extend(header(29, *delta));
                bytes.extend((words * 4).to_ne_bytes());
                bytes.extend(vec![0xee; usize::try_from(*words).unwrap() * 4 - 4]);
            }
            Record::Extend(delta) => {
                let (low, high) = split(*delta);
                bytes.extend(header(30, low));
                bytes.extend(high);
            }
            Record::Absolute(time) => {
                let (low, high) = split(time & ((1 << 59) - 1));
                bytes.extend(header(31, low));
                bytes.extend(high);
            }
        }
    }
    bytes
}

/// A page of these records.
pub(in crate::trace) fn page(
    time_ns: u64,
    flags: u64,
    records: &[u8],
    layout: &PageLayout,
    lost: Option<u64>,
) -> Vec<u8> {
    let mut page = vec![0; layout.page_bytes.max(layout.data_at + records.len() + 8)];
    page[..8].copy_from_slice(&time_ns.to_ne_bytes());
    let commit = records.len() as u64 | flags;
    if layout.commit_bytes == 4 {
        page[layout.commit_at..][..4].copy_from_slice(&u32::try_from(commit).unwrap().to_ne_bytes());
    } else {
        page[layout.commit_at..][..8].copy_from_slice(&commit.to_ne_bytes());
    }
    page[layout.data_at..][..records.len()].copy_from_slice(records);
    if let Some(lost) = lost {
        page[layout.data_at + records.len()..][..8].copy_from_slice(&lost.to_ne_bytes());
    }
    page
}

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
    let want =
        [(1000, vec![1; 4]), (second, vec![2; 112]), (third, long), (fourth, vec![3; 8]), ((1 << 40) + 10, vec![4; 8])];
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
    // The lower bits have run over.
    assert_eq!(absolute(5, (1 << 59) | ((1 << 59) - 2)), (1 << 60) | 5);
}

#[test]
fn a_damaged_page_is_an_error_and_what_came_before_is_taken() {
    let good = written(&[Record::Event(1, vec![1; 4])]);
    for (bad, at) in [
        // Longer than the page; of no length; without its second word.
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
    /// What the kernel can write is read back, in pages of every size that there is, and of kernels of 32 bits.
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
