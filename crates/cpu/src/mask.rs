//! Sets of the rows of a run, one bit each: ranges of codes make them, lists of rows are made of them.

use tandem_column::{Code, Codes, with_codes};

use crate::simd::simd;
#[cfg(target_arch = "x86_64")]
use crate::simd::{Level, level};

/// The rows of a run as bits, the first row lowest; bits behind the last row are 0.
#[derive(Debug, Default)]
pub(crate) struct Mask {
    words: Vec<u64>,
    /// No filter has been applied since the run began: every row is in, whatever the words say.
    fresh: bool,
}

impl Mask {
    /// Begins a run with all of its rows.
    pub(crate) fn begin(&mut self, count: usize) {
        self.words.resize(count.div_ceil(64), 0);
        self.fresh = true;
    }

    /// Tells whether no filter was applied: then the run has all of its rows, and the bits say nothing.
    pub(crate) fn is_fresh(&self) -> bool {
        self.fresh
    }

    /// Drops the rows of a run whose value is not within `low ..= high`.
    pub(crate) fn keep_between(&mut self, base: i64, codes: &Codes, start: usize, count: usize, low: i64, high: i64) {
        let fresh = std::mem::take(&mut self.fresh);
        with_codes!(codes, c => match code_range(base, low, high) {
            Some((low, span)) => mask_range(&c[start..start + count], low, span, fresh, &mut self.words),
            None => self.words.fill(0),
        });
    }

    /// Drops the rows that are not set in `valid`, called for each row that is left.
    pub(crate) fn keep_where(&mut self, valid: impl Fn(usize) -> bool) {
        for (at, word) in self.words.iter_mut().enumerate() {
            let mut left = *word;
            while left != 0 {
                let bit = left.trailing_zeros() as usize;
                left &= left - 1;
                *word &= !(u64::from(!valid(at * 64 + bit)) << bit);
            }
        }
    }

    /// Counts the rows that are left.
    pub(crate) fn count(&self) -> usize {
        count_ones(&self.words)
    }

    /// Lists the rows that are left, counted from `first`; returns how many. `rows` has room for 8 more than the run has.
    pub(crate) fn list(&self, first: usize, rows: &mut [u32]) -> usize {
        list_ones(&self.words, first as u32, rows)
    }

    /// Returns the bits of the eight rows from `8 * group` on.
    #[inline(always)]
    pub(crate) fn eight(&self, group: usize) -> usize {
        (self.words[group / 8] >> (group % 8 * 8) & 255) as usize
    }
}

/// Translates a range of values to a first code and a span; `None` if no code can be within.
fn code_range<T: Code>(base: i64, low: i64, high: i64) -> Option<(T, T)> {
    if T::MAX == u64::MAX {
        // Codes of 64 bits may wrap around: then values below the base have the largest codes.
        let (first, span) = (low.wrapping_sub(base) as u64, high.wrapping_sub(low) as u64);
        return (low <= high).then(|| (T::truncate(first), T::truncate(span)));
    }
    let first = (i128::from(low) - i128::from(base)).max(0);
    let last = (i128::from(high) - i128::from(base)).min(i128::from(T::MAX));
    (first <= last).then(|| (T::truncate(first as u64), T::truncate((last - first) as u64)))
}

/// Keeps `low ≤ code ≤ low + span` of a run, or of what is left of it.
fn mask_range<T: Code>(codes: &[T], low: T, span: T, fresh: bool, words: &mut [u64]) {
    #[cfg(target_arch = "x86_64")]
    if level() >= Level::Avx2 {
        // SAFETY: the level says that the CPU has the features that the function asks for.
        return unsafe { mask_range_avx2(codes, low, span, fresh, words) };
    }
    mask_range_with(codes, low, span, fresh, words, pack);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,bmi2,popcnt,lzcnt,fma")]
fn mask_range_avx2<T: Code>(codes: &[T], low: T, span: T, fresh: bool, words: &mut [u64]) {
    use std::arch::x86_64::*;
    mask_range_with(codes, low, span, fresh, words, |flags| {
        // SAFETY: `flags` has 64 bytes, of which both halves are read.
        let (first, second) =
            unsafe { (_mm256_loadu_si256(flags.as_ptr().cast()), _mm256_loadu_si256(flags.as_ptr().add(32).cast())) };
        u64::from(_mm256_movemask_epi8(first) as u32) | u64::from(_mm256_movemask_epi8(second) as u32) << 32
    });
}

#[inline(always)]
fn mask_range_with<T: Code>(
    codes: &[T],
    low: T,
    span: T,
    fresh: bool,
    words: &mut [u64],
    pack: impl Fn(&[u8; 64]) -> u64,
) {
    let inside = |code: T| T::truncate(code.widen().wrapping_sub(low.widen())) <= span;
    let (groups, rest) = codes.as_chunks::<64>();
    for (word, group) in words.iter_mut().zip(groups) {
        let bits = pack(&std::array::from_fn(|i| if inside(group[i]) { u8::MAX } else { 0 }));
        *word = if fresh { bits } else { *word & bits };
    }
    if !rest.is_empty() {
        let bits = rest.iter().enumerate().fold(0, |bits, (i, code)| bits | u64::from(inside(*code)) << i);
        let word = &mut words[groups.len()];
        *word = if fresh { bits } else { *word & bits };
    }
}

/// Takes one bit of each byte, all of which are 0 or 255.
fn pack(flags: &[u8; 64]) -> u64 {
    let (groups, _) = flags.as_chunks::<8>();
    groups.iter().enumerate().fold(0, |bits, (i, group)| {
        // Eight lowest bits gathered into the top byte.
        let ones = u64::from_le_bytes(*group) & 0x0101_0101_0101_0101;
        bits | (ones.wrapping_mul(0x0102_0408_1020_4080) >> 56) << (i * 8)
    })
}

simd! {
    fn count_ones(words: &[u64]) -> usize {
        words.iter().map(|word| word.count_ones() as usize).sum()
    }
    fn list_ones(words: &[u64], first: u32, rows: &mut [u32]) -> usize {
        let mut kept = 0;
        let mut row = first;
        for &word in words {
            if word.count_ones() <= FEW {
                let mut left = word;
                while left != 0 {
                    rows[kept] = row + left.trailing_zeros();
                    kept += 1;
                    left &= left - 1;
                }
            } else {
                for (group, bits) in word.to_le_bytes().into_iter().enumerate() {
                    kept += compress(bits.into(), row + group as u32 * 8, &mut rows[kept..kept + 8]);
                }
            }
            row += 64;
        }
        kept
    }
}

/// Rows of 64 up to which they are listed one by one.
const FEW: u32 = 6;

/// Writes the rows of eight from `row` on whose bit is set, and anything behind them; returns how many.
#[inline(always)]
pub(crate) fn compress(bits: usize, row: u32, slots: &mut [u32]) -> usize {
    for (slot, offset) in slots.iter_mut().zip(&POSITIONS[bits & 255]) {
        *slot = row + *offset;
    }
    bits.count_ones() as usize
}

/// For each set of eight bits, the positions of those set, first ones first.
pub(crate) static POSITIONS: [[u32; 8]; 256] = {
    let mut table = [[0u32; 8]; 256];
    let mut bits = 0;
    while bits < 256 {
        let (mut i, mut n) = (0, 0);
        while i < 8 {
            if bits >> i & 1 == 1 {
                table[bits][n] = i;
                n += 1;
            }
            i += 1;
        }
        bits += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers that look random, the same in every run.
    fn scramble(i: u64) -> u64 {
        (i + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 20
    }

    /// Masks of every width and length list what a plain loop lists, whether few rows are left or many.
    #[test]
    fn a_mask_lists_the_rows_within_its_ranges() {
        for count in [0usize, 1, 7, 8, 63, 64, 65, 130, 4096, 4103] {
            let values: Vec<u64> = (0..count as u64 + 2).map(|i| scramble(i) % 200).collect();
            for width in [1, 2, 4, 8] {
                let codes = Codes::collect(width, values.len(), values.iter().copied());
                for (low, high) in [(10, 12), (10, 60), (10, 400), (-5, 150), (300, 400), (-9, -5)] {
                    for (second_low, second_high) in [(i64::MIN, i64::MAX), (20, 90)] {
                        let mut mask = Mask::default();
                        mask.begin(count);
                        assert!(mask.is_fresh());
                        mask.keep_between(10, &codes, 2, count, low, high);
                        mask.keep_between(10, &codes, 2, count, second_low, second_high);
                        mask.keep_where(|row| row % 3 != 1);
                        let keep = |row: &usize| {
                            let value = 10 + values[*row] as i64;
                            (low..=high).contains(&value)
                                && (second_low..=second_high).contains(&value)
                                && (row - 2) % 3 != 1
                        };
                        let expected: Vec<u32> = (2..2 + count).filter(keep).map(|row| row as u32).collect();
                        let mut rows = vec![0; count + 8];
                        let kept = mask.list(2, &mut rows);
                        assert_eq!(rows[..kept], expected, "{count} rows of {width} bytes within {low} and {high}");
                        assert_eq!(mask.count(), kept);
                    }
                }
            }
        }
    }

    #[test]
    fn codes_of_64_bits_wrap_around() {
        let values = [-128i64, 0, -5, 7, i64::MIN, i64::MAX];
        for base in [0, -5, i64::MIN, i64::MAX] {
            let codes = Codes::collect(8, values.len(), values.iter().map(|value| value.wrapping_sub(base) as u64));
            for (low, high) in [(-128, -5), (-200, 0), (7, 7), (i64::MIN, i64::MAX), (i64::MIN, -6), (3, 2)] {
                let mut mask = Mask::default();
                mask.begin(values.len());
                mask.keep_between(base, &codes, 0, values.len(), low, high);
                let mut rows = vec![0; values.len() + 8];
                let kept = mask.list(0, &mut rows);
                let within = |row: &u32| (low..=high).contains(&values[*row as usize]);
                let expected: Vec<u32> = (0..values.len() as u32).filter(within).collect();
                assert_eq!(rows[..kept], expected, "base {base}, within {low} and {high}");
            }
        }
    }

    #[test]
    fn packing_takes_one_bit_of_each_byte() {
        for bits in [0, 1, u64::MAX, 0x8000_0000_0000_0001, scramble(3), scramble(4) << 20] {
            let flags = std::array::from_fn(|i| if bits >> i & 1 == 1 { u8::MAX } else { 0 });
            assert_eq!(pack(&flags), bits);
        }
    }
}
