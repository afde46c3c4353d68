//! Strings and bytes: codes of a sorted dictionary while all pages have one, plain values from the first that has not.

use std::sync::Arc;

use tandem_column::{AlignedVec, Code, Codes, Column, Dictionary, Reservation, Type};

use super::{
    Problem, damaged,
    fixed::{RESERVE_ROWS, Table},
    page::{Page, Pages},
    thrift::Encoding,
    validity::Validity,
};

/// The most bytes of plain values of one chunk, so that a small file of long repeated values cannot fill all memory.
const CHUNK_LIMIT: u64 = 4 << 30;

/// What a value of a dictionary takes besides its bytes: two references of 16 bytes while it is sorted, three numbers of 4,
/// an offset of 8.
const DICTIONARY_ENTRY: usize = 2 * 16 + 3 * 4 + 8;

/// Returns what `bytes` of plain values take: a buffer that grows holds half as much again while it is copied.
fn spread(bytes: usize, copies: usize) -> usize {
    (bytes + bytes / 2).saturating_mul(copies)
}

/// How long values are stored in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lengths {
    /// Each value comes with its length.
    Prefixed,
    /// All values have this length.
    Fixed(usize),
}

impl Lengths {
    /// Returns the bytes that a value takes in the file at least.
    fn least(self) -> usize {
        match self {
            Lengths::Prefixed => 4,
            Lengths::Fixed(length) => length.max(1),
        }
    }

    /// Splits off the first value.
    fn split<'a>(self, bytes: &mut &'a [u8]) -> Result<&'a [u8], Problem> {
        let cut = match self {
            Lengths::Fixed(length) => bytes.split_at_checked(length),
            Lengths::Prefixed => bytes
                .split_first_chunk::<4>()
                .and_then(|(length, rest)| rest.split_at_checked(u32::from_le_bytes(*length) as usize)),
        };
        let (value, rest) = cut.ok_or_else(|| damaged("a string is cut off"))?;
        *bytes = rest;
        Ok(value)
    }
}

/// Rows so far, as codes of the chunk's dictionary.
struct Coded<C: Code> {
    codes: AlignedVec<C>,
    table: Table<C>,
}

/// Rows so far, as plain values.
#[derive(Default)]
struct Values {
    offsets: AlignedVec<u64>,
    bytes: AlignedVec<u8>,
}

enum Rows {
    /// Before the first page.
    None,
    Bytes(Coded<u8>),
    Shorts(Coded<u16>),
    Words(Coded<u32>),
    Plain(Values),
}

struct Text<'a> {
    kind: &'a Type,
    lengths: Lengths,
    dictionary: Option<Arc<Dictionary>>,
    /// The dictionary's codes in the file's order.
    order: Vec<u32>,
    rows: Rows,
    validity: Validity,
    /// How many rows the chunk has.
    total: usize,
    /// How often values are there at most, when the column is cut.
    copies: usize,
    /// What the rows so far take.
    held: &'a mut Reservation,
}

/// Decodes a chunk of strings or bytes, into memory taken from `held`; `copies` is how often it is there at the end.
pub(super) fn decode(
    pages: &mut Pages<'_>,
    kind: &Type,
    lengths: Lengths,
    rows: usize,
    copies: usize,
    held: &mut Reservation,
) -> Result<Column, Problem> {
    held.resize(rows / 8)?;
    let mut text = Text {
        kind,
        lengths,
        dictionary: None,
        order: Vec::new(),
        rows: Rows::None,
        validity: Validity::default(),
        total: rows,
        copies,
        held,
    };
    let mut row = 0;
    while row < rows {
        match pages.next()? {
            None => return Err(damaged(format!("{row} of {rows} rows"))),
            Some(Page::Dictionary { count, values }) => text.set_dictionary(values, count)?,
            Some(Page::Data { rows: count, levels, encoding, values }) => {
                if count > rows - row {
                    return Err(damaged("more values than rows"));
                }
                let present = text.validity.append_page(levels, count)?;
                match encoding {
                    Encoding::Plain => text.plain_page(values, row, count)?,
                    Encoding::Dictionary => text.index_page(values, row, count, present)?,
                    Encoding::Rle | Encoding::Other => return Err(Problem::Unsupported),
                }
                row += count;
            }
        }
    }
    text.finish(rows)
}

impl Text<'_> {
    fn set_dictionary(&mut self, mut bytes: &[u8], count: usize) -> Result<(), Problem> {
        if self.dictionary.is_some() || !matches!(self.rows, Rows::None) {
            return Err(damaged("a second or late dictionary"));
        }
        // A value takes its bytes, an offset, a code, and a place in each of three lists while it is sorted.
        let most = count.min(bytes.len() / self.lengths.least() + 1);
        self.held.add(bytes.len().saturating_add(most.saturating_mul(DICTIONARY_ENTRY)))?;
        let mut values: Vec<&[u8]> = Vec::with_capacity(most);
        for _ in 0..count {
            values.push(self.lengths.split(&mut bytes)?);
        }
        // Writers do not repeat values, but nothing forbids it.
        let mut sorted: Vec<u32> = (0..values.len() as u32).collect();
        sorted.sort_unstable_by_key(|&index| values[index as usize]);
        let mut distinct: Vec<&[u8]> = Vec::with_capacity(values.len());
        self.order = vec![0; values.len()];
        for index in sorted {
            let value = values[index as usize];
            if distinct.last() != Some(&value) {
                distinct.push(value);
            }
            self.order[index as usize] = (distinct.len() - 1) as u32;
        }
        let (dictionary, _) =
            Dictionary::from_unsorted(self.kind, &distinct).map_err(|error| damaged(error.message))?;
        let width = Codes::width_for(dictionary.len().saturating_sub(1) as u64);
        self.held.add(self.total.saturating_mul(width * self.copies))?;
        let reserve = self.total.min(RESERVE_ROWS);
        self.rows = match dictionary.len() {
            0..=0x100 => Rows::Bytes(Coded::new(&self.order, reserve)),
            0x101..=0x1_0000 => Rows::Shorts(Coded::new(&self.order, reserve)),
            _ => Rows::Words(Coded::new(&self.order, reserve)),
        };
        self.dictionary = Some(Arc::new(dictionary));
        Ok(())
    }

    fn index_page(&mut self, page: &[u8], row: usize, count: usize, present: usize) -> Result<(), Problem> {
        match &mut self.rows {
            Rows::Bytes(coded) => coded.append(page, count, present, &self.validity),
            Rows::Shorts(coded) => coded.append(page, count, present, &self.validity),
            Rows::Words(coded) => coded.append(page, count, present, &self.validity),
            Rows::None if present == 0 => self.plain_page(&[], row, count),
            Rows::Plain(values) => {
                let mut coded: Coded<u32> = Coded::new(&self.order, count);
                coded.append(page, present, present, &Validity::default())?;
                let mut codes = coded.codes.iter();
                let Some(dictionary) = &self.dictionary else {
                    return values.append(std::iter::repeat_n(&[][..], count));
                };
                let bytes: usize = coded.codes.iter().map(|&code| dictionary.get(code).len()).sum();
                self.held.add(spread(bytes, self.copies))?;
                values.append((row..row + count).map(|row| match self.validity.is_valid(row) {
                    true => codes.next().map_or(&[][..], |&code| dictionary.get(code)),
                    false => &[],
                }))
            }
            Rows::None => Err(damaged("indices without a dictionary")),
        }
    }

    fn plain_page(&mut self, mut page: &[u8], row: usize, count: usize) -> Result<(), Problem> {
        let before = std::mem::replace(&mut self.rows, Rows::None);
        if !matches!(before, Rows::Plain(_)) {
            // Where each value ends, once in the making and once in the column.
            let offsets = self.total.saturating_mul(size_of::<u64>() * (1 + self.copies));
            let bytes = match &before {
                Rows::Bytes(coded) => coded.plain_bytes(&self.dictionary, &self.validity),
                Rows::Shorts(coded) => coded.plain_bytes(&self.dictionary, &self.validity),
                Rows::Words(coded) => coded.plain_bytes(&self.dictionary, &self.validity),
                Rows::None | Rows::Plain(_) => 0,
            };
            self.held.add(offsets.saturating_add(spread(bytes, self.copies)))?;
        }
        let mut values = match before {
            Rows::Plain(values) => values,
            Rows::None => Values::default(),
            Rows::Bytes(coded) => coded.to_values(&self.dictionary, &self.validity)?,
            Rows::Shorts(coded) => coded.to_values(&self.dictionary, &self.validity)?,
            Rows::Words(coded) => coded.to_values(&self.dictionary, &self.validity)?,
        };
        self.held.add(spread(page.len(), self.copies))?;
        let from = (values.offsets.len(), values.bytes.len());
        values.offsets.reserve(count);
        for row in row..row + count {
            if self.validity.is_valid(row) {
                values.bytes.extend_from_slice(self.lengths.split(&mut page)?);
            }
            values.offsets.push(values.bytes.len() as u64);
        }
        if *self.kind == Type::String {
            values.check_text(from)?;
        }
        self.rows = Rows::Plain(values);
        Ok(())
    }

    fn finish(self, rows: usize) -> Result<Column, Problem> {
        let kind = self.kind.clone();
        let validity = self.validity.finish();
        let codes = match self.rows {
            Rows::Bytes(coded) => u8::codes(coded.codes.into_buffer()),
            Rows::Shorts(coded) => u16::codes(coded.codes.into_buffer()),
            Rows::Words(coded) => u32::codes(coded.codes.into_buffer()),
            Rows::None if rows > 0 => return Err(damaged("no values")),
            Rows::None => return Ok(Column::nulls(kind, 0)),
            Rows::Plain(values) => {
                let mut offsets = AlignedVec::with_capacity(rows + 1);
                offsets.push(0);
                offsets.extend_from_slice(&values.offsets);
                return Ok(Column::from_bytes(kind, offsets.into_buffer(), values.bytes.into_buffer(), validity));
            }
        };
        let dictionary = self.dictionary.ok_or_else(|| damaged("indices without a dictionary"))?;
        if dictionary.is_empty() {
            return Ok(Column::nulls(kind, rows));
        }
        Ok(Column::from_codes(kind, codes, dictionary, validity))
    }
}

impl<C: Code> Coded<C> {
    fn new(order: &[u32], reserve: usize) -> Self {
        let codes = order.iter().map(|&code| C::truncate(code.into())).collect();
        Coded { codes: AlignedVec::with_capacity(reserve), table: Table::new(codes) }
    }

    fn append(&mut self, page: &[u8], count: usize, present: usize, validity: &Validity) -> Result<(), Problem> {
        let start = self.codes.len();
        if present > 0 {
            self.table.append(page, &mut self.codes, present)?;
        }
        validity.expand(start, present, count, &mut self.codes);
        Ok(())
    }

    /// Returns the bytes of the rows as plain values.
    fn plain_bytes(&self, dictionary: &Option<Arc<Dictionary>>, validity: &Validity) -> usize {
        let Some(dictionary) = dictionary else { return 0 };
        let length = |(row, &code): (usize, &C)| match validity.is_valid(row) {
            true => dictionary.get(Into::<u64>::into(code) as u32).len(),
            false => 0,
        };
        self.codes.iter().enumerate().map(length).sum()
    }

    fn to_values(&self, dictionary: &Option<Arc<Dictionary>>, validity: &Validity) -> Result<Values, Problem> {
        let mut values = Values::default();
        let Some(dictionary) = dictionary else { return Ok(values) };
        let get = |(row, &code): (usize, &C)| match validity.is_valid(row) {
            true => dictionary.get(Into::<u64>::into(code) as u32),
            false => &[],
        };
        values.append(self.codes.iter().enumerate().map(get))?;
        Ok(values)
    }
}

impl Values {
    fn append<'a>(&mut self, values: impl Iterator<Item = &'a [u8]>) -> Result<(), Problem> {
        for value in values {
            if (self.bytes.len() + value.len()) as u64 > CHUNK_LIMIT {
                return Err(damaged("more than 4 GiB of text in one row group"));
            }
            self.bytes.extend_from_slice(value);
            self.offsets.push(self.bytes.len() as u64);
        }
        Ok(())
    }

    /// Checks that values from a number of offsets and bytes on are UTF-8, each by itself.
    fn check_text(&self, (offset, byte): (usize, usize)) -> Result<(), Problem> {
        let text = std::str::from_utf8(&self.bytes[byte..]).map_err(|_| damaged("text that is not UTF-8"))?;
        match self.offsets[offset..].iter().all(|&end| text.is_char_boundary(end as usize - byte)) {
            true => Ok(()),
            false => Err(damaged("text that is not UTF-8")),
        }
    }
}
