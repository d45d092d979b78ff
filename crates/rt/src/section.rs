//! The witness that a function runs inside the measured section of a thread.

use punctual_sys::alloc;
use std::marker::PhantomData;

/// Proof that the holder is a measured thread between its barrier and its end.
///
/// Only [`RtSection::enter`] makes one, and it cannot leave the thread. A function that takes it may not allocate,
/// lock, log, format, or touch new memory; the allocator counts violations (see [`alloc::CountingAllocator`]).
#[derive(Debug)]
pub struct RtSection<'a> {
    not_send: PhantomData<(*const (), &'a ())>,
}

impl RtSection<'_> {
    /// Runs `section` on this thread; returns its result and the number of its calls to the memory allocator.
    pub fn enter<R>(section: impl FnOnce(&RtSection<'_>) -> R) -> (R, u64) {
        let watch = alloc::AllocationCounter::start();
        let result = section(&RtSection { not_send: PhantomData });
        (result, watch.stop())
    }
}

#[cfg(not(loom))]
#[cfg(test)]
mod tests {
    use super::*;
    use punctual_sys::alloc::CountingAllocator;

    #[global_allocator]
    static ALLOCATOR: CountingAllocator = CountingAllocator;

    #[test]
    fn allocations_inside_are_counted_and_those_outside_are_not() {
        let outside = Box::new([1_u8; 100]);
        let (len, inside) = RtSection::enter(|_| std::hint::black_box(vec![2_u8; 100]).len());
        assert_eq!((len, inside), (100, 2), "one allocation and one release");
        let (sum, none) = RtSection::enter(|_| outside.iter().map(|byte| u32::from(*byte)).sum::<u32>());
        assert_eq!((sum, none), (100, 0));
    }
}
