//! Decoders that fuzz targets call directly. A page's header is reached through a whole file otherwise, and few of a fuzzer's
//! inputs would come so far. Not for anybody else: no promise is kept here.

use crate::parquet;

/// Reads the page header at the start of some bytes; returns its length, if it is one.
pub fn page_header(bytes: &[u8]) -> Option<usize> {
    parquet::page_header_length(bytes)
}
