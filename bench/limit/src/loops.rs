//! The four loops, each over one run of rows, in vectors that stay in the first-level cache.
//!
//! Foreign keys index lookup tables directly: a bitmap where only existence matters and the table is large, a byte per key where
//! a code is wanted, [`ABSENT`] for keys that do not qualify. The most selective and smallest table comes first.

use std::ops::Range;

use crate::simd::dispatch;

/// Rows of a vector: its selection vector of 16 KiB shares the first-level cache with the columns.
const VECTOR: usize = 4096;
/// The code of a key that does not qualify.
pub const ABSENT: u8 = u8::MAX;

dispatch! {
    /// 1.1: a branch-free mask over three narrow columns, then a masked multiply-add.
    pub fn sum_1_1(
        rows: Range<usize>, discount: &[u8], quantity: &[u8], date: &[u16], price: &[i32], days: &Range<u16>,
    ) -> i64 {
        let (first, count) = (days.start, days.end - days.start);
        let (mut sum, mut at) = (0i64, rows.start);
        let mut mask = [0u8; VECTOR];
        while at < rows.end {
            let end = (at + VECTOR).min(rows.end);
            let (d, q, o, p) = (&discount[at..end], &quantity[at..end], &date[at..end], &price[at..end]);
            let n = d.len();
            let (q, o, p, mask) = (&q[..n], &o[..n], &p[..n], &mut mask[..n]);
            for k in 0..n {
                mask[k] = ((d[k].wrapping_sub(1) <= 2) & (q[k] < 25) & (o[k].wrapping_sub(first) < count)) as u8;
            }
            for k in 0..n {
                sum += if mask[k] != 0 { i64::from(p[k]) * i64::from(d[k]) } else { 0 };
            }
            at = end;
        }
        sum
    }
}

dispatch! {
    /// 2.1: parts by bitmap, then suppliers, then sums by year and brand.
    pub fn sum_2_1(
        rows: Range<usize>, part: &[i32], supplier: &[i32], date: &[u16], revenue: &[i32],
        parts: &[u8], brand: &[u16], suppliers: &[u8], year: &[u8], groups: &mut [i64],
    ) -> () {
        let mut selected = [0u32; VECTOR];
        let mut at = rows.start;
        while at < rows.end {
            let end = (at + VECTOR).min(rows.end);
            let (p, s) = (&part[at..end], &supplier[at..end]);
            let mut n = 0;
            for (k, &key) in p.iter().enumerate() {
                selected[n] = k as u32;
                let key = key as usize;
                n += ((parts[key >> 3] >> (key & 7)) & 1) as usize;
            }
            let mut m = 0;
            for j in 0..n {
                let k = selected[j];
                selected[m] = k;
                m += (suppliers[s[k as usize] as usize] != ABSENT) as usize;
            }
            for &k in &selected[..m] {
                let k = at + k as usize;
                let group = usize::from(year[date[k] as usize]) * 1024 + usize::from(brand[part[k] as usize]);
                groups[group] += i64::from(revenue[k]);
            }
            at = end;
        }
    }
}

dispatch! {
    /// 3.1: suppliers, then customers, then years, then sums by year and both nations.
    pub fn sum_3_1(
        rows: Range<usize>, customer: &[i32], supplier: &[i32], date: &[u16], revenue: &[i32],
        customers: &[u8], suppliers: &[u8], year: &[u8], groups: &mut [i64],
    ) -> () {
        let mut selected = [0u32; VECTOR];
        let mut at = rows.start;
        while at < rows.end {
            let end = (at + VECTOR).min(rows.end);
            let (c, s) = (&customer[at..end], &supplier[at..end]);
            let mut n = 0;
            for k in 0..s.len() {
                selected[n] = k as u32;
                n += (suppliers[s[k] as usize] != ABSENT) as usize;
            }
            let mut m = 0;
            for j in 0..n {
                let k = selected[j];
                selected[m] = k;
                m += (customers[c[k as usize] as usize] != ABSENT) as usize;
            }
            for &k in &selected[..m] {
                let k = at + k as usize;
                let nations = usize::from(customers[customer[k] as usize]) * 32 + usize::from(suppliers[supplier[k] as usize]);
                // Years that do not qualify have rows of their own, which the caller leaves out.
                groups[usize::from(year[date[k] as usize]) * 1024 + nations] += i64::from(revenue[k]);
            }
            at = end;
        }
    }
}

dispatch! {
    /// 4.1: suppliers, then customers, then parts by bitmap, then sums by year and the customer's nation.
    pub fn sum_4_1(
        rows: Range<usize>, customer: &[i32], supplier: &[i32], part: &[i32], date: &[u16], revenue: &[i32], cost: &[i32],
        customers: &[u8], suppliers: &[u8], parts: &[u8], year: &[u8], groups: &mut [i64],
    ) -> () {
        let mut selected = [0u32; VECTOR];
        let mut at = rows.start;
        while at < rows.end {
            let end = (at + VECTOR).min(rows.end);
            let (c, s, p) = (&customer[at..end], &supplier[at..end], &part[at..end]);
            let mut n = 0;
            for k in 0..s.len() {
                selected[n] = k as u32;
                n += (suppliers[s[k] as usize] != ABSENT) as usize;
            }
            let mut m = 0;
            for j in 0..n {
                let k = selected[j];
                selected[m] = k;
                m += (customers[c[k as usize] as usize] != ABSENT) as usize;
            }
            let mut l = 0;
            for j in 0..m {
                let k = selected[j];
                selected[l] = k;
                let key = p[k as usize] as usize;
                l += ((parts[key >> 3] >> (key & 7)) & 1) as usize;
            }
            for &k in &selected[..l] {
                let k = at + k as usize;
                let group = usize::from(year[date[k] as usize]) * 32 + usize::from(customers[customer[k] as usize]);
                groups[group] += i64::from(revenue[k]) - i64::from(cost[k]);
            }
            at = end;
        }
    }
}
