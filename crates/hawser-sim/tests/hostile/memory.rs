//! Bytes that live on the heap, counted per thread: a test and its world run on one.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

struct Counting;

thread_local! {
    static LIVE: Cell<i64> = const { Cell::new(0) };
}

fn count(bytes: i64) {
    // A thread that is ending has no count any more, and is none that a test looks at.
    let _ = LIVE.try_with(|live| live.set(live.get() + bytes));
}

// SAFETY: everything is handed to the system's allocator, unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as i64);
        // SAFETY: the caller keeps the contract, which is the system allocator's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(-(layout.size() as i64));
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size as i64 - layout.size() as i64);
        // SAFETY: as above.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// Bytes that this thread allocated and did not free.
pub fn live() -> i64 {
    LIVE.get()
}

#[test]
fn the_counter_counts() {
    let before = live();
    let kept = std::hint::black_box(vec![1_u8; 1_000]);
    assert_eq!(live() - before, 1_000);
    drop(kept);
    assert_eq!(live(), before);
}
