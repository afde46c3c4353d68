//! Loops over encoded columns: selecting rows and fetching values, monomorphised for each code width.
//!
//! Rows are numbers within a part. A loop either runs over a contiguous run of rows or over a list of row numbers, and
//! writes row numbers without branching on the data.

use tandem_column::{Codes, Column, Data};

use crate::simd::simd;
#[cfg(target_arch = "x86_64")]
use crate::simd::{Level, level};

/// An unsigned code of one physical width.
pub(crate) trait Code: Copy + Ord + Send + Sync + 'static {
    /// The code as a number.
    fn get(self) -> u64;
    /// The number as a code, cut to the width.
    fn cut(value: u64) -> Self;
    /// The largest code of this width.
    const MAX: u64;
    /// `self − low`, modulo the width.
    fn minus(self, low: Self) -> Self;
}

macro_rules! codes {
    ($($t:ty),*) => {$(impl Code for $t {
        #[inline(always)]
        fn get(self) -> u64 { self as u64 }
        #[inline(always)]
        fn cut(value: u64) -> Self { value as $t }
        const MAX: u64 = <$t>::MAX as u64;
        #[inline(always)]
        fn minus(self, low: Self) -> Self { self.wrapping_sub(low) }
    })*};
}
codes!(u8, u16, u32, u64);

/// Runs an expression with `$c` bound to the typed slice of codes.
macro_rules! with_codes {
    ($codes:expr, $c:ident => $body:expr) => {
        match $codes {
            tandem_column::Codes::U8(buffer) => {
                let $c: &[u8] = buffer;
                $body
            }
            tandem_column::Codes::U16(buffer) => {
                let $c: &[u16] = buffer;
                $body
            }
            tandem_column::Codes::U32(buffer) => {
                let $c: &[u32] = buffer;
                $body
            }
            tandem_column::Codes::U64(buffer) => {
                let $c: &[u64] = buffer;
                $body
            }
        }
    };
}

/// Rows of a part: a run, or a list of numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Rows<'a> {
    /// `start .. start + count`.
    Run { start: usize, count: usize },
    /// These.
    List(&'a [u32]),
}

impl Rows<'_> {
    pub(crate) fn count(&self) -> usize {
        match self {
            Rows::Run { count, .. } => *count,
            Rows::List(list) => list.len(),
        }
    }
}

/// The codes of an integer or dictionary column, and what code 0 stands for (0 for dictionaries).
pub(crate) fn encoded(column: &Column) -> Option<(i64, &Codes)> {
    match &column.data {
        Data::Int { base, codes } => Some((*base, codes)),
        Data::Dictionary { codes, .. } => Some((0, codes)),
        _ => None,
    }
}

simd! {
    /// Ands `low ≤ code ≤ high` into a mask of 0 and 1, one byte a row.
    fn mask_range<T: Code>(codes: &[T], low: T, span: T, mask: &mut [u8]) {
        for (m, c) in mask.iter_mut().zip(codes) {
            *m &= (c.minus(low) <= span) as u8;
        }
    }
    /// Counts the set bytes of a mask.
    fn count_mask(mask: &[u8]) -> usize {
        let (words, rest) = mask.as_chunks::<8>();
        let ones: u32 = words.iter().map(|word| u64::from_le_bytes(*word).count_ones()).sum();
        ones as usize + rest.iter().map(|m| *m as usize).sum::<usize>()
    }
}

/// A set of integers: bit `i` stands for `min + i`.
#[derive(Clone, Debug)]
pub(crate) struct Set {
    /// What bit 0 stands for.
    pub(crate) min: i64,
    /// How many integers from `min` on are described; all others are outside.
    pub(crate) domain: u64,
    /// The bits, in bytes, with at least one byte behind the domain.
    pub(crate) bits: Vec<u8>,
}

impl Set {
    pub(crate) fn new(min: i64, domain: usize) -> Set {
        Set { min, domain: domain as u64, bits: vec![0; domain / 8 + 1] }
    }

    #[inline]
    pub(crate) fn insert(&mut self, value: i64) {
        let i = value.wrapping_sub(self.min) as u64;
        debug_assert!(i < self.domain, "set value outside of its domain");
        self.bits[(i >> 3) as usize] |= 1 << (i & 7);
    }

    #[inline]
    pub(crate) fn contains(&self, value: i64) -> bool {
        let i = value.wrapping_sub(self.min) as u64;
        i < self.domain && (self.bits[(i >> 3) as usize] >> (i & 7)) & 1 == 1
    }

    /// Counts the members.
    pub(crate) fn len(&self) -> usize {
        self.bits.iter().map(|b| b.count_ones() as usize).sum()
    }
}

/// Tells of each code whether it is a member: 1 or 0.
pub(crate) trait Membership: Copy {
    fn of(self, code: u64) -> usize;
}

/// One byte per code: the quickest while it fits the first-level cache.
#[derive(Clone, Copy)]
struct Bytes<'a>(&'a [u8]);

impl Membership for Bytes<'_> {
    #[inline(always)]
    fn of(self, code: u64) -> usize {
        self.0[code as usize] as usize
    }
}

/// One bit per code, in words.
#[derive(Clone, Copy)]
struct Words<'a>(&'a [u32]);

impl Membership for Words<'_> {
    #[inline(always)]
    fn of(self, code: u64) -> usize {
        ((self.0[(code >> 5) as usize] >> (code & 31)) & 1) as usize
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

/// A set laid out for one column: indexed by its codes, without a test of bounds or an offset.
#[derive(Clone, Debug)]
pub(crate) enum CodeSet {
    Bytes(Vec<u8>),
    Words(Vec<u32>),
}

/// Codes up to which a byte each is kept: little enough to stay in a 32 KiB cache beside the rows that stream through it.
const BYTE_CODES: u64 = 4 << 10;

impl CodeSet {
    /// Lays out a set for codes `0 ..= last` that stand for `base + code`.
    pub(crate) fn new(set: &Set, base: i64, last: u64) -> CodeSet {
        let member = |code: u64| set.contains(base.wrapping_add(code as i64));
        if last < BYTE_CODES {
            return CodeSet::Bytes((0..=last).map(|code| member(code) as u8).collect());
        }
        let mut words = vec![0u32; (last >> 5) as usize + 1];
        let first = set.min.wrapping_sub(base);
        for (byte, bits) in set.bits.iter().enumerate().filter(|(_, bits)| **bits != 0) {
            for bit in (0..8).filter(|bit| bits >> bit & 1 == 1) {
                let code = first.wrapping_add((byte * 8 + bit) as i64) as u64;
                if code <= last {
                    words[(code >> 5) as usize] |= 1 << (code & 31);
                }
            }
        }
        CodeSet::Words(words)
    }
}

simd! {
    /// Lists the rows of a run that are members; returns how many.
    fn list_set<T: Code, M: Membership>(codes: &[T], first: u32, set: M, rows: &mut [u32]) -> usize {
        assert!(rows.len() >= codes.len(), "room for every row");
        let mut kept = 0;
        for (k, c) in codes.iter().enumerate() {
            // SAFETY: at most one row is kept for each before this one, so `kept ≤ k < rows.len()`.
            unsafe { *rows.get_unchecked_mut(kept) = first + k as u32 };
            kept += set.of(c.get());
        }
        kept
    }
    /// Lists the rows of a run that are members and set in the mask; returns how many.
    fn list_set_masked<T: Code, M: Membership>(
        codes: &[T], mask: &[u8], first: u32, set: M, rows: &mut [u32],
    ) -> usize {
        assert!(rows.len() >= codes.len(), "room for every row");
        let mut kept = 0;
        for (k, (c, m)) in codes.iter().zip(mask).enumerate() {
            // SAFETY: at most one row is kept for each before this one, so `kept ≤ k < rows.len()`.
            unsafe { *rows.get_unchecked_mut(kept) = first + k as u32 };
            kept += set.of(c.get()) & *m as usize;
        }
        kept
    }
    /// Keeps the listed rows that are members; returns how many.
    fn refine_set<T: Code, M: Membership>(codes: &[T], rows: &mut [u32], set: M) -> usize {
        let mut kept = 0;
        for j in 0..rows.len() {
            let row = rows[j];
            // SAFETY: at most one row is kept for each before this one, so `kept ≤ j < rows.len()`.
            unsafe { *rows.get_unchecked_mut(kept) = row };
            kept += set.of(codes[row as usize].get());
        }
        kept
    }
    /// Lists the rows of a run where the mask is 1; `rows` has room for 8 more than there are.
    fn list_mask(mask: &[u8], first: u32, rows: &mut [u32]) -> usize {
        assert!(rows.len() >= mask.len() + 8, "room for a whole group of eight behind the last row");
        let (groups, rest) = mask.as_chunks::<8>();
        let mut kept = 0;
        let mut row = first;
        for group in groups {
            let word = u64::from_le_bytes(*group);
            if word != 0 {
                // Eight mask bytes gathered into the top byte: bit i is row i.
                let bits = (word.wrapping_mul(0x0102_0408_1020_4080) >> 56) as usize;
                // SAFETY: `kept` is at most the rows before this group, and `rows` has eight more than there are rows.
                let slots = unsafe { rows.get_unchecked_mut(kept..kept + 8) };
                for (slot, offset) in slots.iter_mut().zip(&COMPRESS[bits]) {
                    *slot = row + *offset;
                }
                kept += word.count_ones() as usize;
            }
            row += 8;
        }
        for m in rest {
            rows[kept] = row;
            kept += *m as usize;
            row += 1;
        }
        kept
    }
}

/// For each set of eight flags, the positions of those set, first ones first.
static COMPRESS: [[u32; 8]; 256] = {
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

/// Ands `low ≤ value ≤ high` over a run of rows into `mask`.
pub(crate) fn mask_between(base: i64, codes: &Codes, start: usize, mask: &mut [u8], low: i64, high: i64) {
    with_codes!(codes, c => match code_range(c, base, low, high) {
        Some((low, span)) => mask_range(&c[start..start + mask.len()], low, span, mask),
        None => mask.fill(0),
    });
}

/// Translates a range of values to a first code and a span; `None` if no code can be within.
fn code_range<T: Code>(_: &[T], base: i64, low: i64, high: i64) -> Option<(T, T)> {
    let first = (i128::from(low) - i128::from(base)).max(0);
    let last = (i128::from(high) - i128::from(base)).min(i128::from(T::MAX));
    (first <= last).then(|| (T::cut(first as u64), T::cut((last - first) as u64)))
}

/// Lists the rows of a run where the mask is set; returns how many. `rows` has room for 8 more than the run has.
pub(crate) fn list_where(mask: &[u8], first: usize, rows: &mut [u32]) -> usize {
    list_mask(mask, first as u32, rows)
}

/// Counts the set bytes of a mask.
pub(crate) fn count_where(mask: &[u8]) -> usize {
    count_mask(mask)
}

/// Lists the rows of a run whose bit is set, and which the mask has if there is one, eight at a time.
///
/// Looking bits up with a gather takes about a third of the time of one load a row.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,bmi2,popcnt,lzcnt,fma")]
fn list_words_avx2<T: Code>(codes: &[T], mask: Option<&[u8]>, first: u32, words: &[u32], rows: &mut [u32]) -> usize {
    use std::arch::x86_64::*;
    let count = codes.len();
    assert!(rows.len() >= count + 8 && words.len() < 1 << 27, "room for a whole group behind the last row");
    assert!(size_of::<T>() <= 4 && mask.is_none_or(|mask| mask.len() == count), "codes of at most 32 bits");
    let limit = _mm256_set1_epi32(words.len() as i32);
    let lowest = _mm256_set1_epi32(31);
    let (groups, rest) = codes.as_chunks::<8>();
    let mut kept = 0;
    let mut row = first;
    for (at, group) in groups.iter().enumerate() {
        // SAFETY: a group is eight codes of one, two or four bytes, of which exactly as many are read.
        let code = unsafe {
            match size_of::<T>() {
                1 => _mm256_cvtepu8_epi32(_mm_loadl_epi64(group.as_ptr().cast())),
                2 => _mm256_cvtepu16_epi32(_mm_loadu_si128(group.as_ptr().cast())),
                _ => _mm256_loadu_si256(group.as_ptr().cast()),
            }
        };
        let index = _mm256_srli_epi32::<5>(code);
        let inside = _mm256_cmpgt_epi32(limit, index);
        // SAFETY: only lanes whose index is below the number of words are read; an index has 27 bits, so it is positive.
        let word =
            unsafe { _mm256_mask_i32gather_epi32::<4>(_mm256_setzero_si256(), words.as_ptr().cast(), index, inside) };
        // Moves the code's bit to the sign: left by 31 − code mod 32.
        let signs = _mm256_sllv_epi32(word, _mm256_andnot_si256(code, lowest));
        let mut bits = _mm256_movemask_ps(_mm256_castsi256_ps(signs)) as usize;
        if let Some(mask) = mask {
            let flags: [u8; 8] = mask[at * 8..at * 8 + 8].try_into().expect("eight flags");
            bits &= (u64::from_le_bytes(flags).wrapping_mul(0x0102_0408_1020_4080) >> 56) as usize;
        }
        // SAFETY: `kept` is at most the rows before this group, and `rows` has eight more than there are codes.
        let slots = unsafe { rows.get_unchecked_mut(kept..kept + 8) };
        for (slot, offset) in slots.iter_mut().zip(&COMPRESS[bits]) {
            *slot = row + *offset;
        }
        kept += bits.count_ones() as usize;
        row += 8;
    }
    for (at, code) in rest.iter().enumerate() {
        let flag = mask.map_or(1, |mask| mask[groups.len() * 8 + at]) as usize;
        let word = words.get((code.get() >> 5) as usize).copied().unwrap_or(0);
        rows[kept] = row;
        kept += (word >> (code.get() & 31) & 1) as usize & flag;
        row += 1;
    }
    kept
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
                let $m = Words(words);
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

/// Lists the rows of a run whose value is in `set`, and which the mask has if there is one; returns how many.
///
/// `aligned` is the set laid out for exactly these codes, where it is.
pub(crate) fn list_members(
    base: i64,
    codes: &Codes,
    start: usize,
    count: usize,
    mask: Option<&[u8]>,
    set: &Set,
    aligned: Option<&CodeSet>,
    rows: &mut [u32],
) -> usize {
    let first = start as u32;
    #[cfg(target_arch = "x86_64")]
    if let (Some(CodeSet::Words(words)), true, 1..=4) = (aligned, level() >= Level::Avx2, codes.width()) {
        // SAFETY: the level says that the processor has the features that the function asks for.
        return with_codes!(codes, c => unsafe {
            list_words_avx2(&c[start..start + count], mask, first, words, rows)
        });
    }
    with_codes!(codes, c => with_membership!(set, aligned, base, m => match mask {
        None => list_set(&c[start..start + count], first, m, rows),
        Some(mask) => list_set_masked(&c[start..start + count], mask, first, m, rows),
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

simd! {
    fn widen_run<T: Code>(codes: &[T], base: i64, out: &mut [i64]) {
        for (o, c) in out.iter_mut().zip(codes) {
            *o = base.wrapping_add(c.get() as i64);
        }
    }
    fn widen_list<T: Code>(codes: &[T], rows: &[u32], base: i64, out: &mut [i64]) {
        for (o, row) in out.iter_mut().zip(rows) {
            *o = base.wrapping_add(codes[*row as usize].get() as i64);
        }
    }
    fn narrow_run<T: Code>(codes: &[T], delta: u64, out: &mut [u32]) {
        for (o, c) in out.iter_mut().zip(codes) {
            *o = c.get().wrapping_add(delta) as u32;
        }
    }
    fn narrow_list<T: Code>(codes: &[T], rows: &[u32], delta: u64, out: &mut [u32]) {
        for (o, row) in out.iter_mut().zip(rows) {
            *o = codes[*row as usize].get().wrapping_add(delta) as u32;
        }
    }
}

/// Fetches values as 64-bit integers.
pub(crate) fn fetch_ints(base: i64, codes: &Codes, rows: Rows<'_>) -> Vec<i64> {
    let mut out = vec![0; rows.count()];
    with_codes!(codes, c => match rows {
        Rows::Run { start, count } => widen_run(&c[start..start + count], base, &mut out),
        Rows::List(list) => widen_list(c, list, base, &mut out),
    });
    out
}

/// Fetches `value − min` as 32-bit numbers, for values known to lie within `min ..= min + u32::MAX`.
pub(crate) fn fetch_offsets(base: i64, codes: &Codes, rows: Rows<'_>, min: i64) -> Vec<u32> {
    let mut out = vec![0; rows.count()];
    let delta = base.wrapping_sub(min) as u64;
    with_codes!(codes, c => match rows {
        Rows::Run { start, count } => narrow_run(&c[start..start + count], delta, &mut out),
        Rows::List(list) => narrow_list(c, list, delta, &mut out),
    });
    out
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
                let mask: Vec<u8> = (0..count as u64).map(|i| !scramble(i * 3).is_multiple_of(3) as u8).collect();
                let aligned = CodeSet::new(&set, 5, domain + 100);
                for mask in [None, Some(mask.as_slice())] {
                    let keep = |row: &usize| {
                        set.contains(5 + codes.get(*row) as i64) && mask.is_none_or(|mask| mask[row - 3] != 0)
                    };
                    let expected: Vec<u32> = (3..3 + count).filter(keep).map(|row| row as u32).collect();
                    for aligned in [None, Some(&aligned)] {
                        let mut rows = vec![0; count + 8];
                        let kept = list_members(5, &codes, 3, count, mask, &set, aligned, &mut rows);
                        assert_eq!(rows[..kept], expected, "domain {domain}, {count} rows");
                        let mut rows: Vec<u32> = (3..3 + count as u32).collect();
                        let kept = refine_members(5, &codes, &mut rows, &set, aligned);
                        assert!(kept >= expected.len());
                    }
                }
            }
        }
    }

    #[test]
    fn a_mask_lists_its_rows() {
        for count in [0usize, 1, 8, 13, 4096] {
            let mask: Vec<u8> = (0..count as u64).map(|i| scramble(i).is_multiple_of(4) as u8).collect();
            let mut rows = vec![0; count + 8];
            let kept = list_where(&mask, 100, &mut rows);
            let expected: Vec<u32> = (0..count).filter(|i| mask[*i] == 1).map(|i| 100 + i as u32).collect();
            assert_eq!(rows[..kept], expected);
            assert_eq!(count_where(&mask), kept);
        }
    }
}
