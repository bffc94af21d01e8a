//! Writing and reading packets allocates nothing: counted by the global allocator, per thread.

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::hint::black_box;

use common::*;
use hawser_scion::packet::{dispatched_port, parse};

/// Counts what the calling thread allocates.
struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: everything is handed to the system's allocator, unchanged; `realloc` is made of the two others.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // A thread that is ending has no count any more, and is none that a test looks at.
        let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
        // SAFETY: the caller keeps the contract, which is the system allocator's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

fn allocations_of(work: impl FnOnce()) -> u64 {
    let before = ALLOCATIONS.get();
    work();
    ALLOCATIONS.get() - before
}

#[test]
fn the_counter_counts() {
    assert_eq!(allocations_of(|| drop(black_box(vec![1_u8; 9]))), 1);
}

#[test]
fn packets_are_written_and_read_without_allocation() {
    let template = template(&path(&[2, 3, 2], 0));
    let stride = template.headroom() + 1200;
    let mut run = vec![7; stride * 5 + template.headroom() + 10];
    let (echo, error) = (datagram(&path(&[2], 0), b"hello"), control(&down(&datagram(&path(&[2, 2], 1), b"quoted"))));
    let work = || {
        template.finish(&mut run[..stride]);
        template.finish_run(&mut run, stride);
        for bytes in run.chunks(stride).chain([&echo[..], &error]) {
            let packet = parse(bytes).expect("a packet");
            assert!(packet.verify_checksum() && dispatched_port(&packet).is_ok());
            black_box((packet.source(), packet.destination(), packet.upper(), packet.dataplane().expiry()));
        }
    };
    assert_eq!(allocations_of(work), 0);
}
