//! A memory allocator that counts its use inside measured sections.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    /// Calls since the section began; `None` outside of sections. Const and without drop: reading it never allocates.
    static CALLS: Cell<Option<u64>> = const { Cell::new(None) };
}

/// The system allocator. It also counts the calls of a thread inside its measured section, so that a record can contain
/// "allocations: 0". The cost outside of sections is one thread-local read a call.
#[derive(Debug, Clone, Copy)]
pub struct CountingAllocator;

fn note() {
    CALLS.set(CALLS.get().map(|calls| calls + 1));
}

// SAFETY: every method hands its arguments to `System` unchanged and returns what it returns; `note` does not unwind.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note();
        // SAFETY: the caller keeps the contract of `GlobalAlloc::alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        note();
        // SAFETY: the caller keeps the contract of `GlobalAlloc::alloc_zeroed`.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        note();
        // SAFETY: the caller keeps the contract of `GlobalAlloc::realloc`.
        unsafe { System.realloc(block, layout, new_size) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        note();
        // SAFETY: the caller keeps the contract of `GlobalAlloc::dealloc`.
        unsafe { System.dealloc(block, layout) }
    }
}

/// Counting for one thread, from start to stop.
#[derive(Debug)]
pub struct AllocationCounter(());

impl AllocationCounter {
    /// Counts from now on, in the calling thread.
    pub fn start() -> AllocationCounter {
        CALLS.set(Some(0));
        AllocationCounter(())
    }

    /// Number of calls since the start; 0 also when [`CountingAllocator`] is not the program's allocator.
    pub fn stop(self) -> u64 {
        CALLS.replace(None).unwrap_or(0)
    }
}
