//! The memory bandwidth probe: how fast all threads together can read an array much larger than the caches.

use std::{ops::Range, time::Instant};

use crate::{parallel::fold, simd::dispatch};

/// Bytes read: 1 GiB, well beyond any last-level cache of today but the largest servers'.
const BYTES: usize = 1 << 30;

dispatch! {
    /// Sums a run of words: a loop that the compiler turns into wide additions on several registers, whatever the CPU has,
    /// which leaves memory as the only limit. Lanes written out by hand reached a fifth of that with AVX-512.
    pub fn sum(words: &[u64], rows: Range<usize>) -> u64 {
        words[rows].iter().fold(0, |total, word| total.wrapping_add(*word))
    }
}

/// Measures the bandwidth of reading memory on `threads` threads, in gigabytes (10^9) per second: the best of five passes.
pub fn bandwidth(threads: usize) -> f64 {
    let words = vec![1u64; BYTES / 8];
    let pass = || {
        let start = Instant::now();
        let sums = fold(words.len(), threads.max(1), || 0u64, |total, rows| *total += sum(&words, rows));
        let seconds = start.elapsed().as_secs_f64();
        assert_eq!(sums.iter().sum::<u64>(), words.len() as u64, "the probe reads every word once");
        BYTES as f64 / seconds / 1e9
    };
    (0..5).map(|_| pass()).fold(0.0, f64::max)
}
