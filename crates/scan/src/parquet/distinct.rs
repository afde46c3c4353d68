//! How many distinct values a column has, estimated from the size of its first dictionary.

use std::{os::unix::fs::FileExt, sync::Arc};

use parquet::{basic::Encoding, file::statistics::Statistics};

use super::{
    ParquetFile,
    thrift::{self, PageKind},
};

/// Bytes that hold the header of a dictionary page, which carries no statistics.
const HEADER: usize = 64;

/// Returns about how many distinct values a column has over all files, if the first row group tells.
pub(crate) fn distinct_of(files: &[Arc<ParquetFile>], column: usize, rows: usize) -> Option<f64> {
    let file = files.iter().find(|file| file.groups() > 0)?;
    let group = file.metadata.row_group(0);
    let chunk = group.columns().get(file.leaves[column].index)?;
    let nulls = chunk.statistics().and_then(Statistics::null_count_opt).unwrap_or_default();
    let sampled = (group.num_rows() as f64 - nulls as f64).max(1.0);
    let found = match chunk.statistics().and_then(Statistics::distinct_count_opt) {
        Some(count) => count as f64,
        None => dictionary_size(file, column)? as f64,
    };
    Some(extrapolate(found.min(sampled), sampled, rows as f64))
}

/// Reads the number of values in the dictionary of the first row group, if all of its pages use it.
fn dictionary_size(file: &ParquetFile, column: usize) -> Option<usize> {
    let chunk = file.metadata.row_group(0).column(file.leaves[column].index);
    let only = |encoding| chunk.page_encoding_stats_mask().is_some_and(|mask| mask.is_only(encoding));
    if !only(Encoding::RLE_DICTIONARY) && !only(Encoding::PLAIN_DICTIONARY) {
        return None;
    }
    let offset = u64::try_from(chunk.dictionary_page_offset()?).ok()?;
    let mut bytes = [0; HEADER];
    let length = HEADER.min(file.identity.size.saturating_sub(offset) as usize);
    file.reopen().ok()?.read_exact_at(&mut bytes[..length], offset).ok()?;
    match thrift::page_header(&bytes[..length]) {
        Ok((thrift::PageHeader { kind: PageKind::Dictionary { values, .. }, .. }, _)) => Some(values),
        _ => None,
    }
}

/// Estimates the distinct values of `rows` rows when `sampled` of them have `found`.
///
/// Rows drawn evenly from `n` values show `n (1 − e^(−rows / n))` of them; the sample gives `n`.
fn extrapolate(found: f64, sampled: f64, rows: f64) -> f64 {
    let shown = |values: f64, rows: f64| values * (1.0 - (-rows / values).exp());
    if found >= 0.95 * sampled {
        return found / sampled * rows;
    }
    let (mut low, mut high) = (found.max(1.0), found.max(1.0) * 64.0);
    for _ in 0..48 {
        let middle = (low + high) / 2.0;
        if shown(middle, sampled) < found { low = middle } else { high = middle }
    }
    shown(high, rows).max(found).min(rows.max(found))
}

#[cfg(test)]
mod tests {
    use super::extrapolate;

    #[test]
    fn few_values_stay_few_and_keys_grow_with_rows() {
        assert!((extrapolate(25.0, 1e6, 6e7) - 25.0).abs() < 0.01);
        assert_eq!(extrapolate(1e6, 1e6, 6e7), 6e7);
        // 1,000,000 rows drawn from 800,000 values show about 570,800 of them.
        let estimate = extrapolate(570_800.0, 1e6, 6e7);
        assert!((790_000.0..810_000.0).contains(&estimate), "{estimate}");
        assert!(extrapolate(0.0, 1.0, 0.0).is_finite());
    }
}
