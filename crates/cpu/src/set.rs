//! Sets of values as bits, and which rows of an encoded column are members.

use tandem_column::{Code, Codes, with_codes};

use tandem_plan::Set;

use crate::mask::{Mask, compress};
use crate::simd::simd;
#[cfg(target_arch = "x86_64")]
use crate::simd::{Level, level};

/// Tells of each code whether it is a member: 1 or 0.
pub(crate) trait Membership: Copy {
    fn of(self, code: u64) -> usize;
}

/// A byte for every code of at most 16 bits: no bound to test, one load.
#[derive(Clone, Copy)]
struct Bytes<'a>(&'a [u8; NARROW]);

impl Membership for Bytes<'_> {
    #[inline(always)]
    fn of(self, code: u64) -> usize {
        self.0[code as usize] as usize
    }
}

/// One bit per code, in words; codes behind them are not members.
#[derive(Clone, Copy)]
struct WordSet<'a>(&'a [u32]);

impl Membership for WordSet<'_> {
    #[inline(always)]
    fn of(self, code: u64) -> usize {
        let word = self.0.get((code >> 5) as usize).copied().unwrap_or(0);
        ((word >> (code & 31)) & 1) as usize
    }
}

/// The bits of a set that begins `delta` codes before code 0 and ends anywhere.
#[derive(Clone, Copy)]
struct Shifted<'a> {
    bits: &'a [u8],
    domain: u64,
    delta: u64,
}

impl Membership for Shifted<'_> {
    #[inline(always)]
    fn of(self, code: u64) -> usize {
        let position = code.wrapping_add(self.delta);
        let place = position.min(self.domain);
        // The byte behind the domain exists and is zero from `domain` on: see `Set::new`.
        ((self.bits[(place >> 3) as usize] >> (place & 7)) & 1) as usize & (position < self.domain) as usize
    }
}

/// How many codes of at most 16 bits there are.
const NARROW: usize = 1 << 16;

/// A set laid out for one column: indexed by its codes, without an offset.
#[derive(Clone, Debug)]
pub(crate) enum CodeSet {
    /// For codes of at most 16 bits.
    Bytes(Box<[u8; NARROW]>),
    Words(Vec<u32>),
}

impl CodeSet {
    /// Lays out a set for codes `0 ..= last` of `width` bytes that stand for `base + code`.
    pub(crate) fn new(set: &Set, base: i64, width: usize, last: u64) -> CodeSet {
        if width <= 2
            && let Ok(mut bytes) = <Box<[u8; NARROW]>>::try_from(vec![0; NARROW].into_boxed_slice())
        {
            let codes = set.members().map(|member| member.wrapping_sub(base) as u64);
            codes.filter(|code| *code <= last).for_each(|code| bytes[code as usize] = 1);
            return CodeSet::Bytes(bytes);
        }
        CodeSet::Words(set.words(base, last))
    }
}

/// Returns the bits of eight codes that are members.
#[inline(always)]
fn eight<T: Code, M: Membership>(codes: &[T; 8], set: M) -> usize {
    codes.iter().enumerate().fold(0, |bits, (i, code)| bits | set.of(code.widen()) << i)
}

/// Lists the rows behind the last whole group, number `at`, that are members and in the mask; returns how many.
#[inline(always)]
fn list_rest<T: Code, M: Membership>(rest: &[T], mask: &Mask, at: usize, row: u32, set: M, rows: &mut [u32]) -> usize {
    let left = if mask.is_fresh() || rest.is_empty() { 255 } else { mask.eight(at) };
    let mut kept = 0;
    for (i, code) in rest.iter().enumerate() {
        rows[kept] = row + i as u32;
        kept += set.of(code.widen()) & (left >> i & 1);
    }
    kept
}

simd! {
    /// Lists the rows of a run that are members and in the mask; returns how many.
    fn list_set<T: Code, M: Membership>(codes: &[T], mask: &Mask, first: u32, set: M, rows: &mut [u32]) -> usize {
        assert!(rows.len() >= codes.len() + 8, "room for a whole group of eight behind the last row");
        let (groups, rest) = codes.as_chunks::<8>();
        let (mut kept, mut row) = (0, first);
        for (at, group) in groups.iter().enumerate() {
            let mut bits = eight(group, set);
            if !mask.is_fresh() {
                bits &= mask.eight(at);
            }
            kept += compress(bits, row, &mut rows[kept..kept + 8]);
            row += 8;
        }
        kept + list_rest(rest, mask, groups.len(), row, set, &mut rows[kept..])
    }
    /// Keeps the listed rows that are members; returns how many.
    fn refine_set<T: Code, M: Membership>(codes: &[T], rows: &mut [u32], set: M) -> usize {
        let mut kept = 0;
        for j in 0..rows.len() {
            let row = rows[j];
            // SAFETY: at most one row is kept for each before this one, so `kept ≤ j < rows.len()`.
            unsafe { *rows.get_unchecked_mut(kept) = row };
            kept += set.of(codes[row as usize].widen());
        }
        kept
    }
}

/// Lists the rows of a run whose bit is set and which the mask has, eight at a time.
///
/// Looking bits up with a gather takes about a third of the time of one load a row.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,bmi2,popcnt,lzcnt,fma")]
fn list_words_avx2(codes: &[u32], mask: &Mask, first: u32, words: &[u32], rows: &mut [u32]) -> usize {
    use std::arch::x86_64::*;
    assert!(rows.len() >= codes.len() + 8 && words.len() < 1 << 27, "room for a whole group behind the last row");
    let limit = _mm256_set1_epi32(words.len() as i32);
    let lowest = _mm256_set1_epi32(31);
    let (groups, rest) = codes.as_chunks::<8>();
    let (mut kept, mut row) = (0, first);
    for (at, group) in groups.iter().enumerate() {
        // SAFETY: a group is eight codes of four bytes, exactly as many as are read.
        let code = unsafe { _mm256_loadu_si256(group.as_ptr().cast()) };
        let index = _mm256_srli_epi32::<5>(code);
        let inside = _mm256_cmpgt_epi32(limit, index);
        // SAFETY: only lanes whose index is below the number of words are read; an index has 27 bits, so it is positive.
        let word =
            unsafe { _mm256_mask_i32gather_epi32::<4>(_mm256_setzero_si256(), words.as_ptr().cast(), index, inside) };
        // Moves the code's bit to the sign: left by 31 − code mod 32.
        let signs = _mm256_sllv_epi32(word, _mm256_andnot_si256(code, lowest));
        let mut bits = _mm256_movemask_ps(_mm256_castsi256_ps(signs)) as usize;
        if !mask.is_fresh() {
            bits &= mask.eight(at);
        }
        kept += compress(bits, row, &mut rows[kept..kept + 8]);
        row += 8;
    }
    kept + list_rest(rest, mask, groups.len(), row, WordSet(words), &mut rows[kept..])
}

/// Runs an expression with `$m` bound to the quickest form of a set for codes that count from `base`.
macro_rules! with_membership {
    ($set:expr, $aligned:expr, $base:expr, $m:ident => $body:expr) => {
        match $aligned {
            Some(CodeSet::Bytes(bytes)) => {
                let $m = Bytes(bytes);
                $body
            }
            Some(CodeSet::Words(words)) => {
                let $m = WordSet(words);
                $body
            }
            None => {
                let delta = $base.wrapping_sub($set.min) as u64;
                let $m = Shifted { bits: &$set.bits, domain: $set.domain, delta };
                $body
            }
        }
    };
}

/// Lists the rows of a run whose value is in `set` and which the mask has; returns how many.
///
/// `aligned` is the set laid out for exactly these codes, where it is.
pub(crate) fn list_members(
    base: i64,
    codes: &Codes,
    start: usize,
    count: usize,
    mask: &Mask,
    set: &Set,
    aligned: Option<&CodeSet>,
    rows: &mut [u32],
) -> usize {
    let first = start as u32;
    #[cfg(target_arch = "x86_64")]
    if let (Some(CodeSet::Words(words)), true, Codes::U32(c)) = (aligned, level() >= Level::Avx2, codes) {
        // SAFETY: the level says that the CPU has the features that the function asks for.
        return unsafe { list_words_avx2(&c[start..start + count], mask, first, words, rows) };
    }
    with_codes!(codes, c => with_membership!(set, aligned, base, m => {
        list_set(&c[start..start + count], mask, first, m, rows)
    }))
}

/// Keeps the listed rows whose value is in `set`; returns how many.
pub(crate) fn refine_members(
    base: i64,
    codes: &Codes,
    rows: &mut [u32],
    set: &Set,
    aligned: Option<&CodeSet>,
) -> usize {
    with_codes!(codes, c => with_membership!(set, aligned, base, m => refine_set(c, rows, m)))
}

#[cfg(test)]
mod tests {
    use tandem_column::Buffer;

    use super::*;

    /// Numbers that look random, the same in every run.
    fn scramble(i: u64) -> u64 {
        (i + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 20
    }

    #[test]
    fn every_form_of_a_set_lists_the_same_rows() {
        for (domain, wide) in [(200u64, false), (50_000, false), (300_000, true)] {
            let mut set = Set::new(7, domain as usize);
            (0..domain).filter(|i| scramble(*i).is_multiple_of(5)).for_each(|i| set.insert(7 + i as i64));
            for count in [0usize, 1, 7, 8, 9, 1000, 4093] {
                // Some codes lie outside of the set's domain.
                let values: Vec<u64> = (0..count as u64 + 3).map(|i| scramble(i) % (domain + 100)).collect();
                let codes = match wide {
                    true => Codes::U32(Buffer::from(values.iter().map(|v| *v as u32).collect::<Vec<_>>())),
                    false => Codes::U16(Buffer::from(values.iter().map(|v| *v as u16).collect::<Vec<_>>())),
                };
                let masked: Vec<u8> = (0..count as u64).map(|i| !scramble(i * 3).is_multiple_of(3) as u8).collect();
                let flags = Codes::U8(Buffer::from(masked.clone()));
                let aligned = CodeSet::new(&set, 5, codes.width(), domain + 100);
                for only_masked in [false, true] {
                    let mut mask = Mask::default();
                    mask.begin(count);
                    if only_masked {
                        mask.keep_between(0, &flags, 0, count, 1, 1);
                    }
                    let keep = |row: &usize| {
                        set.contains(5 + codes.get(*row) as i64) && (!only_masked || masked[row - 3] != 0)
                    };
                    let expected: Vec<u32> = (3..3 + count).filter(keep).map(|row| row as u32).collect();
                    for aligned in [None, Some(&aligned)] {
                        let mut rows = vec![0; count + 8];
                        let kept = list_members(5, &codes, 3, count, &mask, &set, aligned, &mut rows);
                        assert_eq!(rows[..kept], expected, "domain {domain}, {count} rows");
                        let mut rows: Vec<u32> = (3..3 + count as u32).collect();
                        let kept = refine_members(5, &codes, &mut rows, &set, aligned);
                        assert_eq!(
                            rows[..kept],
                            (3..3 + count as u32)
                                .filter(|row| set.contains(5 + codes.get(*row as usize) as i64))
                                .collect::<Vec<_>>()
                        );
                    }
                }
            }
        }
    }
}
