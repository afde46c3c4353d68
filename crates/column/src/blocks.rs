//! Statistics of blocks: one fast pass over the codes.

use crate::{BLOCK_ROWS, Bitmap, BlockStatistics, Code, Codes, Column, Data, float_order, with_codes};

impl Column {
    /// Computes the statistics of each block.
    pub fn compute_blocks(&self) -> Vec<BlockStatistics> {
        let validity = self.validity.as_ref();
        match &self.data {
            Data::Int { base, codes: Codes::U64(codes) } => {
                blocks(codes, validity, |code| base.wrapping_add(code as i64), |value| value)
            }
            Data::Int { base, codes } => with_codes!(codes, codes => code_blocks(codes, validity, *base)),
            Data::Dictionary { codes, .. } => with_codes!(codes, codes => code_blocks(codes, validity, 0)),
            Data::Float32(values) => blocks(values, validity, |value| float_order(value.into()), |order| order),
            Data::Float64(values) => blocks(values, validity, float_order, |order| order),
            Data::Wide(_) | Data::Bytes { .. } => (0..self.rows)
                .step_by(BLOCK_ROWS)
                .map(|start| {
                    let range = start..self.rows.min(start + BLOCK_ROWS);
                    let valid = validity.map_or(range.len(), |validity| validity.count_ones_in(range.clone()));
                    BlockStatistics { range: None, nulls: (range.len() - valid) as u32 }
                })
                .collect(),
            Data::Remote(_) => Vec::new(),
        }
    }

    /// Returns the column with block statistics, computed unless they are there.
    pub fn with_blocks(mut self) -> Column {
        if self.blocks.is_empty() {
            self.blocks = self.compute_blocks();
        }
        self
    }
}

/// Statistics of narrow codes: compared as they are, and only the result widened.
fn code_blocks<T: Code>(codes: &[T], validity: Option<&Bitmap>, base: i64) -> Vec<BlockStatistics> {
    blocks(codes, validity, |code| code, |code| base.wrapping_add(code.widen() as i64))
}

fn blocks<T: Copy, K: Copy + Ord>(
    values: &[T],
    validity: Option<&Bitmap>,
    key: impl Fn(T) -> K + Copy,
    widen: impl Fn(K) -> i64,
) -> Vec<BlockStatistics> {
    let words = |block: usize| {
        let words = validity?.words();
        let start = block * (BLOCK_ROWS / 64);
        Some(&words[start..words.len().min(start + BLOCK_ROWS / 64)])
    };
    values
        .chunks(BLOCK_ROWS)
        .enumerate()
        .map(|(at, block)| {
            let Some(words) = words(at) else {
                return BlockStatistics { range: span(block, key).map(|(a, b)| (widen(a), widen(b))), nulls: 0 };
            };
            let valid: usize = words.iter().map(|word| word.count_ones() as usize).sum();
            let range = match valid {
                0 => None,
                _ if valid == block.len() => span(block, key),
                _ => masked_span(block, words, key),
            };
            BlockStatistics { range: range.map(|(a, b)| (widen(a), widen(b))), nulls: (block.len() - valid) as u32 }
        })
        .collect()
}

/// Returns the smallest and largest key.
pub(crate) fn span<T: Copy, K: Copy + Ord>(values: &[T], key: impl Fn(T) -> K) -> Option<(K, K)> {
    let first = key(*values.first()?);
    Some(values.iter().fold((first, first), |(low, high), &value| (low.min(key(value)), high.max(key(value)))))
}

/// Returns the smallest and largest key of the values whose bit is set.
pub(crate) fn masked_span<T: Copy, K: Copy + Ord>(values: &[T], words: &[u64], key: impl Fn(T) -> K) -> Option<(K, K)> {
    let mut range: Option<(K, K)> = None;
    let mut add = |found: (K, K)| {
        range = Some(range.map_or(found, |(low, high)| (low.min(found.0), high.max(found.1))));
    };
    for (chunk, &word) in values.chunks(64).zip(words) {
        if word == !0 {
            span(chunk, &key).into_iter().for_each(&mut add);
            continue;
        }
        let mut rest = word;
        while rest != 0 {
            let value = key(chunk[rest.trailing_zeros() as usize]);
            add((value, value));
            rest &= rest - 1;
        }
    }
    range
}
