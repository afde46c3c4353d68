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

    /// Returns the bits of a plain value.
    fn plain_bits(&self) -> usize;

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
                match (encoding, &mut table) {
                    // A page of nulls only has no values, not even a bit width.
                    _ if present == 0 => {}
                    (Encoding::Plain, _) => append_plain(target, values, &mut out, present)?,
                    (Encoding::Dictionary, Some(table)) => table.append(values, &mut out, present)?,
                    (Encoding::Dictionary, None) => return Err(damaged("indices without a dictionary")),
                    (Encoding::Rle, _) => {
                        let (values, _) = length_prefixed(values)?;
                        let codes = vec![target.repeated(0)?, target.repeated(1)?];
                        Table::new(codes).append_runs(Runs::new(values, 1), &mut out, present)?;
                    }
                    (Encoding::Other, _) => return Err(Problem::Unsupported),
                }
                validity.expand(start, present, count, &mut out);
            }
        }
    }
    Ok((out, validity))
}

/// Appends rows of the default code and returns them for writing. A block at a time, what is cleared is still in the
/// first-level cache when it is written.
fn grow<C: Plain>(out: &mut AlignedVec<C>, rows: usize) -> &mut [C] {
    let start = out.len();
    out.resize(start + rows, C::default());
    &mut out.as_mut_slice()[start..]
}

/// Appends the first `count` plain values.
fn append_plain<T: Target>(
    target: &mut T,
    bytes: &[u8],
    out: &mut AlignedVec<T::Code>,
    count: usize,
) -> Result<(), Problem> {
    let stride = target.plain_bits() * BLOCK / 8;
    for (block, start) in (0..count).step_by(BLOCK).enumerate() {
        let bytes = bytes.get(block * stride..).unwrap_or_default();
        target.plain(bytes, grow(out, BLOCK.min(count - start)))?;
    }
    Ok(())
}

/// Finished codes by dictionary index.
pub(super) struct Table<C> {
    codes: Vec<C>,
    /// The same, filled up to every index of 8 or 16 bits, so that looking up needs no check.
    bytes: Option<Box<[C; 1 << 8]>>,
    shorts: Option<Box<[C; 1 << 16]>>,
    pairs: Option<Pairs<C>>,
}

impl<C: Plain> Table<C> {
    pub(super) fn new(codes: Vec<C>) -> Self {
        Table { codes, bytes: None, shorts: None, pairs: None }
    }

    /// Appends the codes of a data page's indices, of which there are at least `count`.
    pub(super) fn append(&mut self, page: &[u8], out: &mut AlignedVec<C>, count: usize) -> Result<(), Problem> {
        self.append_runs(Runs::indices(page)?, out, count)
    }

    fn append_runs(&mut self, runs: Runs<'_>, out: &mut AlignedVec<C>, count: usize) -> Result<(), Problem> {
        match runs.width() {
            width @ 1..=PAIR_BITS if size_of::<C>() <= 2 => {
                let pairs = self.pairs.take().unwrap_or_else(|| Pairs::new(&self.codes, width));
                let pairs = if pairs.width == width { pairs } else { Pairs::new(&self.codes, width) };
                let done = self.each_run(runs, out, count, |bytes, out| pairs.look_up(bytes, out));
                self.pairs = Some(pairs);
                done
            }
            0..=8 => {
                let bytes = self.bytes.take().unwrap_or_else(|| filled(&self.codes));
                let done = self.look_up::<u8>(runs, out, count, |index, out| {
                    index.iter().zip(out).for_each(|(&index, out)| *out = bytes[usize::from(index)]);
                });
                self.bytes = Some(bytes);
                done
            }
            9..=16 => {
                let shorts = self.shorts.take().unwrap_or_else(|| filled(&self.codes));
                let done = self.look_up::<u16>(runs, out, count, |index, out| {
                    index.iter().zip(out).for_each(|(&index, out)| *out = shorts[usize::from(index)]);
                });
                self.shorts = Some(shorts);
                done
            }
            _ => self.look_up::<u32>(runs, out, count, |index, out| {
                let codes = &self.codes[..];
                index
                    .iter()
                    .zip(out)
                    .for_each(|(&index, out)| *out = codes.get(index as usize).copied().unwrap_or_default());
            }),
        }
    }

    /// Unpacks indices block by block; `map` gets them and as many codes to fill. Indices are checked after mapping.
    #[inline(always)]
    fn look_up<I: Index>(
        &self,
        runs: Runs<'_>,
        out: &mut AlignedVec<C>,
        count: usize,
        map: impl Fn(&[I], &mut [C]),
    ) -> Result<(), Problem> {
        let width = runs.width();
        let unpack = (width > 0).then(|| I::unpacker(width));
        let mut block = [I::default(); BLOCK];
        self.each_run(runs, out, count, |bytes, out| {
            let indices = &mut block[..out.len()];
            unpack.into_iter().for_each(|unpack| unpack(bytes, indices));
            map(indices, out);
            indices.iter().copied().max().unwrap_or_default().to_usize() < self.codes.len()
        })
    }

    /// Appends the codes of runs; `packed` gets the bytes of bit-packed indices, up to a block of codes to fill, and tells
    /// whether all indices are in the dictionary.
    #[inline(always)]
    fn each_run(
        &self,
        mut runs: Runs<'_>,
        out: &mut AlignedVec<C>,
        count: usize,
        mut packed: impl FnMut(&[u8], &mut [C]) -> bool,
    ) -> Result<(), Problem> {
        let width = runs.width() as usize;
        let mut fits = true;
        let mut left = count;
        while left > 0 {
            match runs.next(left)? {
                Run::Packed(bytes, count) => {
                    for start in (0..count).step_by(BLOCK) {
                        let bytes = bytes.get(start / 8 * width..).unwrap_or_default();
                        fits &= packed(bytes, grow(out, BLOCK.min(count - start)));
                    }
                    left -= count;
                }
                Run::Repeat(value, count) => {
                    let code = self.codes.get(value as usize).copied();
                    fits &= code.is_some();
                    out.resize(out.len() + count, code.unwrap_or_default());
                    left -= count;
                }
            }
        }
        match fits {
            true => Ok(()),
            false => Err(damaged(format!("an index beyond a dictionary of {}", self.codes.len()))),
        }
    }
}

/// The widest indices that are looked up in pairs: the table of short codes is then 16 KiB, half a first-level cache.
const PAIR_BITS: u32 = 6;
const PAIRS: usize = 1 << (2 * PAIR_BITS);

/// The codes of each two neighbouring indices of one bit width.
struct Pairs<C> {
    codes: Box<[[C; 2]; PAIRS]>,
    width: u32,
    /// What carries an index that is not in the dictionary beyond its bits, for every other of eight.
    carry: u64,
    /// Those bits, and the bits behind them, into which they carry.
    fields: u64,
    carries: u64,
}

impl<C: Plain> Pairs<C> {
    fn new(codes: &[C], width: u32) -> Self {
        let count = 1usize << width;
        let code = |index: usize| codes.get(index & (count - 1)).copied().unwrap_or_default();
        let every_other = |bits: u64| (0..4).fold(0, |word, at| word | bits << (2 * width * at));
        let mut pairs = vec![[C::default(); 2]; PAIRS];
        pairs.iter_mut().enumerate().take(count * count).for_each(|(at, pair)| *pair = [code(at), code(at >> width)]);
        Pairs {
            codes: pairs.into_boxed_slice().try_into().expect("as long as it was made"),
            width,
            carry: every_other(count.saturating_sub(codes.len()) as u64),
            fields: every_other(count as u64 - 1),
            carries: every_other(count as u64),
        }
    }

    /// Fills in the codes of bit-packed indices; tells whether all of them are in the dictionary.
    fn look_up(&self, bytes: &[u8], out: &mut [C]) -> bool {
        let (width, mask) = (self.width, ((1usize << (2 * self.width)) - 1) & (PAIRS - 1));
        let mut beyond = 0;
        let mut eight = |at: usize, out: &mut [C; 8], present: u32| {
            let bytes = bytes.get(at * width as usize..).unwrap_or_default();
            let mut word = match bytes.first_chunk() {
                Some(word) => u64::from_le_bytes(*word),
                None => bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte)),
            };
            // What stands behind the last index of a page may be anything.
            word &= (1 << (present * width)) - 1;
            beyond |= ((word & self.fields) + self.carry) | (((word >> width) & self.fields) + self.carry);
            for (at, out) in out.as_chunks_mut::<2>().0.iter_mut().enumerate() {
                *out = self.codes[(word >> (2 * width * at as u32)) as usize & mask];
            }
        };
        let (chunks, rest) = out.as_chunks_mut::<8>();
        let whole = chunks.len();
        chunks.iter_mut().enumerate().for_each(|(at, out)| eight(at, out, 8));
        if !rest.is_empty() {
            let mut last = [C::default(); 8];
            eight(whole, &mut last, rest.len() as u32);
            rest.copy_from_slice(&last[..rest.len()]);
        }
        beyond & self.carries == 0
    }
}

fn filled<C: Plain, const N: usize>(codes: &[C]) -> Box<[C; N]> {
    let mut all = vec![C::default(); N];
    let count = codes.len().min(N);
    all[..count].copy_from_slice(&codes[..count]);
    all.into_boxed_slice().try_into().expect("as long as it was made")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A page of one bit-packed run, cut off behind the last index.
    fn page(width: usize, indices: &[usize]) -> Vec<u8> {
        let mut header = indices.len().div_ceil(8) << 1 | 1;
        let mut page = vec![width as u8];
        while header >= 0x80 {
            page.push(header as u8 | 0x80);
            header >>= 7;
        }
        page.push(header as u8);
        let mut packed = vec![0u8; (indices.len() * width).div_ceil(8)];
        for (at, index) in indices.iter().enumerate() {
            for bit in 0..width {
                packed[(at * width + bit) / 8] |= ((index >> bit & 1) as u8) << ((at * width + bit) % 8);
            }
        }
        [page, packed].concat()
    }

    fn check<C: Plain>(code: impl Fn(usize) -> C) {
        let mut state = 7usize;
        for width in 1..=9 {
            for length in [1, (1 << width) / 2 + 1, (1 << width) - 1, 1 << width] {
                let codes: Vec<C> = (0..length).map(&code).collect();
                let mut table = Table::new(codes.clone());
                for count in [1, 7, 8, 9, 1023, 1024, 1025, 5000] {
                    let mut indices: Vec<usize> = Vec::new();
                    for _ in 0..count {
                        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                        indices.push((state >> 33) % length);
                    }
                    let mut out = AlignedVec::from(&[C::default(); 3][..]);
                    assert!(table.append(&page(width, &indices), &mut out, count).is_ok(), "{width} {length} {count}");
                    let wanted: Vec<C> = indices.iter().map(|index| codes[*index]).collect();
                    assert_eq!(out[3..], wanted, "{width} {length} {count}");
                    let at = (state >> 40) % count;
                    if length < 1 << width {
                        indices[at] = length;
                        assert!(
                            table.append(&page(width, &indices), &mut out, count).is_err(),
                            "{width} {length} {at}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn indices_become_codes_and_none_is_beyond_the_dictionary() {
        check(|index| (index * 7) as u8);
        check(|index| (index * 77) as u16);
        check(|index| index as u32 + 70_000);
    }
}
