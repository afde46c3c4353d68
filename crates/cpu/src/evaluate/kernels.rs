//! The loops under every fast path: one value out per row, no branches, no validity.
//!
//! Kernels run over all rows, null ones too: a null row's result is never looked at. A kernel that can overflow gathers
//! a flag over the whole vector; when it is raised the caller computes the vector again row by row, which skips nulls
//! and knows what to do. So the common case pays nothing for nulls and overflow modes.

use crate::simd::simd;

/// What a flagged kernel makes.
pub(super) trait Cell: Copy + Default {}
impl<T: Copy + Default> Cell for T {}

/// One side of a binary kernel: a value per row, or one for all.
#[derive(Clone, Copy)]
pub(super) enum Side<'a, T> {
    /// A value per row.
    Rows(&'a [T]),
    /// The same value for every row.
    One(T),
}

simd! {
    /// Computes `f` of each value.
    pub(super) fn map<A: Copy, R: Sized, F: Fn(A) -> R>(a: &[A], f: F) -> Vec<R> {
        a.iter().map(|&a| f(a)).collect()
    }
}

simd! {
    fn map_pairs<A: Copy, B: Copy, R: Sized, F: Fn(A, B) -> R>(a: &[A], b: &[B], f: F) -> Vec<R> {
        a.iter().zip(b).map(|(&a, &b)| f(a, b)).collect()
    }
}

simd! {
    /// Computes `f` of each value and gathers the flags it returns; zero means that no row raised one.
    pub(super) fn map_flagged<A: Copy, R: Cell, F: Fn(A) -> (R, i64)>(a: &[A], f: F) -> (Vec<R>, i64) {
        let mut out = vec![R::default(); a.len()];
        let mut flags = 0;
        for (out, &a) in out.iter_mut().zip(a) {
            let (value, flag) = f(a);
            *out = value;
            flags |= flag;
        }
        (out, flags)
    }
}

simd! {
    fn map_pairs_flagged<A: Copy, B: Copy, R: Cell, F: Fn(A, B) -> (R, i64)>(a: &[A], b: &[B], f: F) -> (Vec<R>, i64) {
        let mut out = vec![R::default(); a.len()];
        let mut flags = 0;
        for ((out, &a), &b) in out.iter_mut().zip(a).zip(b) {
            let (value, flag) = f(a, b);
            *out = value;
            flags |= flag;
        }
        (out, flags)
    }
}

simd! {
    /// Gathers `f` of each value by bitwise or.
    pub(super) fn gather_bits<A: Copy, F: Fn(A) -> i64>(a: &[A], f: F) -> i64 {
        a.iter().fold(0, |bits, &a| bits | f(a))
    }
}

/// Computes `f` of both sides for each row; two constants give one value.
pub(super) fn map2<A: Copy, B: Copy, R>(a: Side<'_, A>, b: Side<'_, B>, f: impl Fn(A, B) -> R) -> Vec<R> {
    match (a, b) {
        (Side::Rows(a), Side::Rows(b)) => map_pairs(a, b, f),
        (Side::Rows(a), Side::One(b)) => map(a, move |a| f(a, b)),
        (Side::One(a), Side::Rows(b)) => map(b, move |b| f(a, b)),
        (Side::One(a), Side::One(b)) => vec![f(a, b)],
    }
}

/// Computes `f` of both sides for each row and gathers the flags; two constants give one value.
pub(super) fn map2_flagged<A: Copy, B: Copy, R: Cell>(
    a: Side<'_, A>,
    b: Side<'_, B>,
    f: impl Fn(A, B) -> (R, i64),
) -> (Vec<R>, i64) {
    match (a, b) {
        (Side::Rows(a), Side::Rows(b)) => map_pairs_flagged(a, b, f),
        (Side::Rows(a), Side::One(b)) => map_flagged(a, move |a| f(a, b)),
        (Side::One(a), Side::Rows(b)) => map_flagged(b, move |b| f(a, b)),
        (Side::One(a), Side::One(b)) => {
            let (value, flag) = f(a, b);
            (vec![value], flag)
        }
    }
}

/// Returns how many bits hold the magnitude of every value of a side: values lie in `-2^bits ..= 2^bits - 1`.
pub(super) fn bits(side: Side<'_, i64>) -> u32 {
    let magnitude = |a: i64| a ^ (a >> 63);
    64 - match side {
        Side::Rows(a) => gather_bits(a, magnitude),
        Side::One(a) => magnitude(a),
    }
    .leading_zeros()
}

/// Returns how many bits hold the magnitude of every value of a side of 128-bit integers.
pub(super) fn bits_wide(side: Side<'_, i128>) -> u32 {
    let magnitude = |a: i128| a ^ (a >> 127);
    let gathered = match side {
        Side::Rows(a) => a.iter().fold(0, |bits, &a| bits | magnitude(a)),
        Side::One(a) => magnitude(a),
    };
    128 - gathered.leading_zeros()
}

simd! {
    /// Combines two validities: a row is valid if it is in both.
    pub(super) fn both(a: &[u8], b: &[u8]) -> Vec<u8> {
        a.iter().zip(b).map(|(&a, &b)| a & b).collect()
    }
}

/// Combines two optional validities.
pub(super) fn both_valid(a: Option<&[u8]>, b: Option<&[u8]>) -> Option<Vec<u8>> {
    match (a, b) {
        (None, None) => None,
        (Some(one), None) | (None, Some(one)) => Some(one.to_vec()),
        (Some(a), Some(b)) => Some(both(a, b)),
    }
}

/// Returns the positions of the set bytes of a mask (each 0 or 1), ascending.
pub(super) fn positions(mask: &[u8]) -> Vec<u32> {
    let mut out = vec![0u32; mask.len()];
    let mut count = 0;
    for (position, &set) in mask.iter().enumerate() {
        out[count] = position as u32;
        count += usize::from(set);
    }
    out.truncate(count);
    out
}
