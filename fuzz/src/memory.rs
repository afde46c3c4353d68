//! An allocator that ends the process when an input takes far more memory than its bytes can stand for.
//!
//! It counts what is asked for, not what is touched: room that is reserved on a file's word is a mistake even where the system
//! would give it.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    backtrace::Backtrace,
    sync::atomic::{AtomicUsize, Ordering},
};

/// What an input may take at one time: inputs have kilobytes, and the limits that targets set are 64 MB at most.
const MOST: usize = 512 << 20;

static LIVE: AtomicUsize = AtomicUsize::new(0);
/// What was live when the input began, and [`MOST`].
static LIMIT: AtomicUsize = AtomicUsize::new(usize::MAX);

/// The system's allocator, counted.
pub struct Counted;

/// Begins an input.
pub fn begin() {
    LIMIT.store(LIVE.load(Ordering::Relaxed).saturating_add(MOST), Ordering::Relaxed);
}

fn grow(bytes: usize) {
    let live = LIVE.fetch_add(bytes, Ordering::Relaxed);
    if live.saturating_add(bytes) > LIMIT.load(Ordering::Relaxed) {
        exceed(bytes);
    }
}

#[cold]
fn exceed(bytes: usize) -> ! {
    // Saying so allocates.
    LIMIT.store(usize::MAX, Ordering::Relaxed);
    let trace = Backtrace::force_capture();
    eprintln!("an input takes more than {} MB of memory, the last {} MB here:\n{trace}", MOST >> 20, bytes >> 20);
    std::process::abort();
}

fn shrink(bytes: usize) {
    LIVE.fetch_sub(bytes, Ordering::Relaxed);
}

// SAFETY: every call is handed on as it is to the system's allocator, which keeps the contract; counting touches no memory of it.
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        grow(layout.size());
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        grow(layout.size());
        // SAFETY: the caller keeps the contract of `alloc_zeroed`.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        shrink(layout.size());
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        grow(size);
        shrink(layout.size());
        // SAFETY: the caller keeps the contract of `realloc`.
        unsafe { System.realloc(pointer, layout, size) }
    }
}
