//! Group `memory`: mapping memory, and moving its content.

use super::{Batch, NotReady, Operation, ReadyOperation, unknown};
use punctual_sys::mapping::{Mapping, page_bytes};
use std::hint::black_box;
use std::io;

const MAPPING_BYTES: usize = 64 * 1024;
/// Pages of a batch.
const PAGES: u64 = 64;
/// Bytes of a block, and number of blocks used in rotation: more than the caches near a CPU hold.
const BLOCK_BYTES: usize = 1 << 20;
const BLOCKS: usize = 16;

pub(crate) fn make(name: &str) -> Result<ReadyOperation, NotReady> {
    Ok(match name {
        "mmap" => ReadyOperation::each(|| {
            black_box(Mapping::anonymous(MAPPING_BYTES)?);
            Ok(())
        }),
        "map_touch" => ReadyOperation::each(|| {
            let mut mapping = Mapping::anonymous(MAPPING_BYTES)?;
            mapping.touch();
            Ok(())
        }),
        "fault" => ReadyOperation { operation: Box::new(FirstWrites(None)), batch: Batch::Exactly(PAGES) },
        "copy" => {
            let (from, mut to, mut turn) = (blocks(), blocks(), 0);
            ReadyOperation::each(move || {
                let (from, to) = block(&from, &mut to, &mut turn)?;
                to.copy_from_slice(black_box(from));
                black_box(to);
                Ok(())
            })
        }
        "read" => {
            let (from, mut to, mut turn) = (blocks(), vec![0; BLOCK_BYTES / 8 * BLOCKS], 0);
            ReadyOperation::each(move || {
                let (from, _) = block(&from, &mut to, &mut turn)?;
                black_box(black_box(from).iter().fold(0, |sum: u64, word| sum.wrapping_add(*word)));
                Ok(())
            })
        }
        "write" => {
            let (from, mut to, mut turn) = (vec![0; BLOCK_BYTES / 8 * BLOCKS], blocks(), 0);
            ReadyOperation::each(move || {
                let value = turn as u64;
                let (_, to) = block(&from, &mut to, &mut turn)?;
                to.fill(black_box(value));
                black_box(to);
                Ok(())
            })
        }
        other => return Err(unknown(other)),
    })
}

/// Memory with all pages present.
fn blocks() -> Vec<u64> {
    vec![1; BLOCK_BYTES / size_of::<u64>() * BLOCKS]
}

/// The next block of both, in rotation.
fn block<'a>(from: &'a [u64], to: &'a mut [u64], turn: &mut usize) -> io::Result<(&'a [u64], &'a mut [u64])> {
    let words = BLOCK_BYTES / size_of::<u64>();
    let place = *turn * words..(*turn + 1) * words;
    *turn = (*turn + 1) % BLOCKS;
    from.get(place.clone()).zip(to.get_mut(place)).ok_or_else(|| io::ErrorKind::InvalidInput.into())
}

/// First writes to pages that are not present yet.
struct FirstWrites(Option<Mapping>);

impl Operation for FirstWrites {
    fn prepare(&mut self, n: u64) -> io::Result<()> {
        let mapping = Mapping::anonymous(usize::try_from(n).map_err(io::Error::other)? * page_bytes())?;
        mapping.in_small_pages();
        self.0 = Some(mapping);
        Ok(())
    }

    fn run(&mut self, _: u64) -> io::Result<()> {
        self.0.as_mut().ok_or(io::ErrorKind::InvalidInput)?.touch();
        Ok(())
    }
}
