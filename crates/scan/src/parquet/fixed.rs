//! Columns of fixed-width values: pages straight into the resident encoding.
//!
//! [`decode`] walks the pages of a chunk and knows levels, dictionaries and runs; a [`Target`] knows what one value is:
//! how dictionary and plain values become resident codes. Dictionary indices go through a table of finished codes, so
//! a value of the dictionary is converted once per chunk, not once per row.

use tandem_column::{AlignedVec, Plain};

use super::{
    Problem, damaged,
    hybrid::{Run, Runs},
    page::{Page, Pages, length_prefixed},
    thrift::Encoding,
    unpack::Index,
    validity::Validity,
};

/// Rows unpacked at once: writers bit-pack at most 504 values in a run; indices and codes stay in the first-level cache.
const BLOCK: usize = 1024;

/// What the values of a column become.
pub(super) trait Target {
    /// The resident form of one value.
    type Code: Plain;

    /// Converts `count` plain values of a dictionary page.
    fn dictionary(&mut self, bytes: &[u8], count: usize) -> Result<Vec<Self::Code>, Problem> {
        // Every type takes at least one bit per value: a count beyond that is damage, found before memory is taken.
        if count > bytes.len().saturating_mul(8) {
            return Err(damaged("a dictionary is cut off"));
        }
        let mut codes = vec![Self::Code::default(); count];
        self.plain(bytes, &mut codes)?;
        Ok(codes)
    }

    /// Converts the first `out.len()` plain values.
    fn plain(&mut self, bytes: &[u8], out: &mut [Self::Code]) -> Result<(), Problem>;

    /// Converts a value of the RLE encoding (booleans).
    fn repeated(&mut self, _value: u32) -> Result<Self::Code, Problem> {
        Err(Problem::Unsupported)
    }
}

/// Rows that memory is reserved for at once: what a header claims beyond is reserved as pages really bring it.
pub(super) const RESERVE_ROWS: usize = 16 << 20;

/// Decodes all pages of a chunk to one code per row; null rows hold the default code.
pub(super) fn decode<T: Target>(
    pages: &mut Pages<'_>,
    target: &mut T,
    rows: usize,
) -> Result<(AlignedVec<T::Code>, Validity), Problem> {
    let mut table: Option<Table<T::Code>> = None;
    let mut validity = Validity::default();
    let mut out = AlignedVec::with_capacity(rows.min(RESERVE_ROWS));
    while out.len() < rows {
        let start = out.len();
        match pages.next()? {
            None => return Err(damaged(format!("{start} of {rows} rows"))),
            Some(Page::Dictionary { .. }) if table.is_some() => return Err(damaged("two dictionaries")),
            Some(Page::Dictionary { count, values }) => table = Some(Table::new(target.dictionary(values, count)?)),
            Some(Page::Data { rows: count, levels, encoding, values }) => {
                if count > rows - start {
                    return Err(damaged("more values than rows"));
                }
                let present = validity.append_page(levels, count)?;
                // Plain values take at least a bit each; what is not there is not worth memory.
                if encoding == Encoding::Plain && present / 8 > values.len() {
                    return Err(damaged("a page has fewer values than it says"));
                }
                // Page by page, so that cleared memory is still in the cache when it is written.
                clear_rows(&mut out, count);
                let page = &mut out.as_mut_slice()[start..];
                let dense = &mut page[..present];
                match (encoding, &mut table) {
                    // A page of nulls only has no values, not even a bit width.
                    _ if present == 0 => {}
                    (Encoding::Plain, _) => target.plain(values, dense)?,
                    (Encoding::Dictionary, Some(table)) => table.decode(values, dense)?,
                    (Encoding::Dictionary, None) => return Err(damaged("indices without a dictionary")),
                    (Encoding::Rle, _) => {
                        let (values, _) = length_prefixed(values)?;
                        let codes = vec![target.repeated(0)?, target.repeated(1)?];
                        Table::new(codes).decode_runs(Runs::new(values, 1), dense)?;
                    }
                    (Encoding::Other, _) => return Err(Problem::Unsupported),
                }
                validity.expand(start, present, page);
            }
        }
    }
    Ok((out, validity))
}

/// Appends rows of the default code, a block at a time.
pub(super) fn clear_rows<C: Plain>(out: &mut AlignedVec<C>, rows: usize) {
    let block = [C::default(); BLOCK];
    out.reserve(rows);
    for start in (0..rows).step_by(BLOCK) {
        out.extend_from_slice(&block[..BLOCK.min(rows - start)]);
    }
}

/// Finished codes by dictionary index.
pub(super) struct Table<C> {
    codes: Vec<C>,
    /// The same, filled up to every index of 8 or 16 bits, so that looking up needs no check.
    bytes: Option<Box<[C; 1 << 8]>>,
    shorts: Option<Box<[C; 1 << 16]>>,
}

impl<C: Plain> Table<C> {
    pub(super) fn new(codes: Vec<C>) -> Self {
        Table { codes, bytes: None, shorts: None }
    }

    /// Decodes the indices of a data page, of which there are at least `out.len()`.
    pub(super) fn decode(&mut self, page: &[u8], out: &mut [C]) -> Result<(), Problem> {
        self.decode_runs(Runs::indices(page)?, out)
    }

    fn decode_runs(&mut self, runs: Runs<'_>, out: &mut [C]) -> Result<(), Problem> {
        match runs.width() {
            0..=8 => {
                let bytes = self.bytes.take().unwrap_or_else(|| filled(&self.codes));
                let done = self.lookup::<u8>(runs, out, |index, out| {
                    index.iter().zip(out).for_each(|(&index, out)| *out = bytes[usize::from(index)]);
                });
                self.bytes = Some(bytes);
                done
            }
            9..=16 => {
                let shorts = self.shorts.take().unwrap_or_else(|| filled(&self.codes));
                let done = self.lookup::<u16>(runs, out, |index, out| {
                    index.iter().zip(out).for_each(|(&index, out)| *out = shorts[usize::from(index)]);
                });
                self.shorts = Some(shorts);
                done
            }
            _ => self.lookup::<u32>(runs, out, |index, out| {
                let codes = &self.codes[..];
                index
                    .iter()
                    .zip(out)
                    .for_each(|(&index, out)| *out = codes.get(index as usize).copied().unwrap_or_default());
            }),
        }
    }

    /// Expands runs block by block; `map` gets indices and as many codes to fill. Indices are checked after mapping.
    #[inline(always)]
    fn lookup<I: Index>(&self, mut runs: Runs<'_>, out: &mut [C], map: impl Fn(&[I], &mut [C])) -> Result<(), Problem> {
        let width = runs.width();
        let unpack = (width > I::BITS / 2 || (width > 0 && I::BITS == 8)).then(|| I::unpacker(width));
        let mut block = [I::default(); BLOCK];
        let mut largest = 0usize;
        let mut left = out;
        while !left.is_empty() {
            match (runs.next(left.len())?, unpack) {
                (Run::Packed(mut bytes, count), Some(unpack)) => {
                    let (now, later) = left.split_at_mut(count);
                    for chunk in now.chunks_mut(BLOCK) {
                        let indices = &mut block[..chunk.len()];
                        unpack(bytes, indices);
                        largest = largest.max(indices.iter().copied().max().unwrap_or_default().to_usize());
                        map(indices, chunk);
                        bytes = &bytes[(chunk.len() / 8 * width as usize).min(bytes.len())..];
                    }
                    left = later;
                }
                (Run::Repeat(value, count), _) => {
                    largest = largest.max(value as usize);
                    let (now, later) = left.split_at_mut(count);
                    now.fill(self.codes.get(value as usize).copied().unwrap_or_default());
                    left = later;
                }
                (Run::Packed(_, count), None) => {
                    let (now, later) = left.split_at_mut(count);
                    now.fill(self.codes.first().copied().unwrap_or_default());
                    left = later;
                }
            }
        }
        match largest < self.codes.len() {
            true => Ok(()),
            false => Err(damaged(format!("index {largest} into a dictionary of {}", self.codes.len()))),
        }
    }
}

fn filled<C: Plain, const N: usize>(codes: &[C]) -> Box<[C; N]> {
    let mut all = vec![C::default(); N];
    let count = codes.len().min(N);
    all[..count].copy_from_slice(&codes[..count]);
    all.into_boxed_slice().try_into().expect("as long as it was made")
}
