//! Loops that fetch values of encoded columns, monomorphised for each code width.
//!
//! Rows are numbers within a part: a contiguous run of them, or a list.

use tandem_column::{Code, Codes, Column, Data, with_codes};

use crate::simd::simd;

/// Rows of a part: a run, or a list of numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) enum RowRun<'a> {
    /// `start .. start + count`.
    Run { start: usize, count: usize },
    /// These.
    List(&'a [u32]),
}

impl RowRun<'_> {
    pub(crate) fn count(&self) -> usize {
        match self {
            RowRun::Run { count, .. } => *count,
            RowRun::List(list) => list.len(),
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
    fn widen_run<T: Code>(codes: &[T], base: i64, out: &mut [i64]) {
        for (o, c) in out.iter_mut().zip(codes) {
            *o = base.wrapping_add(c.widen() as i64);
        }
    }
    fn widen_list<T: Code>(codes: &[T], rows: &[u32], base: i64, out: &mut [i64]) {
        for (o, row) in out.iter_mut().zip(rows) {
            *o = base.wrapping_add(codes[*row as usize].widen() as i64);
        }
    }
    fn narrow_run<T: Code>(codes: &[T], delta: u64, out: &mut [u32]) {
        for (o, c) in out.iter_mut().zip(codes) {
            *o = c.widen().wrapping_add(delta) as u32;
        }
    }
    fn narrow_list<T: Code>(codes: &[T], rows: &[u32], delta: u64, out: &mut [u32]) {
        for (o, row) in out.iter_mut().zip(rows) {
            *o = codes[*row as usize].widen().wrapping_add(delta) as u32;
        }
    }
}

/// Fetches values as 64-bit integers.
pub(crate) fn fetch_ints(base: i64, codes: &Codes, rows: RowRun<'_>) -> Vec<i64> {
    let mut out = vec![0; rows.count()];
    with_codes!(codes, c => match rows {
        RowRun::Run { start, count } => widen_run(&c[start..start + count], base, &mut out),
        RowRun::List(list) => widen_list(c, list, base, &mut out),
    });
    out
}

/// Fetches `value − min` as 32-bit numbers, for values known to lie within `min ..= min + u32::MAX`.
pub(crate) fn fetch_offsets(base: i64, codes: &Codes, rows: RowRun<'_>, min: i64) -> Vec<u32> {
    let mut out = vec![0; rows.count()];
    let delta = base.wrapping_sub(min) as u64;
    with_codes!(codes, c => match rows {
        RowRun::Run { start, count } => narrow_run(&c[start..start + count], delta, &mut out),
        RowRun::List(list) => narrow_list(c, list, delta, &mut out),
    });
    out
}
