//! The kernel's ring buffer as `trace_pipe_raw` hands it out: pages of records.
//!
//! Layout: kernel/trace/ring_buffer.c, `events/header_page` and `events/header_event`. A page begins with the time of its
//! first record and its length; a record with 5 bits of type and 27 bits of time since the one before.

/// Where the parts of a page are; from `events/header_page`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PageLayout {
    /// Where the length is, and how long that number is: 4 or 8 bytes.
    pub(super) commit_at: usize,
    pub(super) commit_bytes: usize,
    /// Where the records begin.
    pub(super) data_at: usize,
    /// Bytes of a page.
    pub(super) page_bytes: usize,
}

/// What is wrong with a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum PageError {
    /// It is shorter than its own head says.
    #[error("a page of {0} bytes is cut off")]
    Short(usize),
    /// A record is longer than the page.
    #[error("a record at byte {0} is longer than its page")]
    Record(usize),
}

/// What a page says besides its records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct PageHead {
    /// The time of its first record, ns.
    pub(super) time_ns: u64,
    /// Whether events were lost before it.
    pub(super) lost: bool,
    /// How many were lost, if that is known.
    pub(super) lost_count: Option<u64>,
}

/// Bits of the length that say something else (`RB_MISSED_*`).
const LOST: u64 = 1 << 31;
const LOST_COUNTED: u64 = 1 << 30;
/// The length itself: the low 20 bits.
const LENGTH: u64 = 0xf_ffff;

const DELTA_BITS: u32 = 27;
/// The five bits that an absolute time of 59 bits lacks.
const HIGH: u64 = 0xf8 << 56;

/// Hands every event of `page` to `take`, with its time, ns, and its data. The time of what comes behind records without
/// an event is right, too.
///
/// # Errors
/// When the page is damaged; the events before the damage have been taken.
pub(super) fn read_page(
    page: &[u8],
    layout: &PageLayout,
    mut take: impl FnMut(u64, &[u8]),
) -> Result<PageHead, PageError> {
    let short = || PageError::Short(page.len());
    let time_ns = u64_at(page, 0).ok_or_else(short)?;
    let commit = match layout.commit_bytes {
        4 => u64::from(u32_at(page, layout.commit_at).ok_or_else(short)?),
        _ => u64_at(page, layout.commit_at).ok_or_else(short)?,
    };
    let length = usize::try_from(commit & LENGTH).map_err(|_| short())?;
    let data = page.get(layout.data_at..).ok_or_else(short)?;
    let records = data.get(..length).ok_or_else(short)?;
    let lost = commit & LOST != 0;
    let counted = lost && commit & LOST_COUNTED != 0;
    let head = PageHead { time_ns, lost, lost_count: u64_at(data, length).filter(|_| counted) };
    read_records(records, time_ns, &mut take)?;
    Ok(head)
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
            // An event that was given up.
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
            // Events of more than 112 bytes; the length counts its own word.
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

/// The type and the time of a record's first word, which is a bit field of C.
fn divided(header: u32) -> (u32, u64) {
    if cfg!(target_endian = "big") {
        (header >> DELTA_BITS, u64::from(header & ((1 << DELTA_BITS) - 1)))
    } else {
        (header & 0x1f, u64::from(header >> 5))
    }
}

/// `at + head + length`, rounded up to whole words; `None` when it does not move on.
fn next(at: usize, head: usize, length: u64) -> Option<usize> {
    let length = usize::try_from(length).ok()?;
    at.checked_add(head)?.checked_add(length)?.checked_next_multiple_of(4).filter(|_| length > 0)
}

/// An absolute time, with the upper bits of the time before (`rb_fix_abs_ts`).
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
pub(super) mod tests;
