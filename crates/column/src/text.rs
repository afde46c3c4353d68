//! Text and bytes from Arrow: a dictionary where it pays, plain otherwise.

use arrow_array::cast::AsArray;
use arrow_array::types::ArrowDictionaryKeyType;
use arrow_array::{Array, DictionaryArray, downcast_dictionary_array};
use arrow_schema::DataType;

use crate::interner::Interner;
use crate::{AlignedVec, Bitmap, Codes, Column, DICTIONARY_BYTES, Dictionary, Result, Type};
use std::sync::Arc;

/// Up to so many distinct values a dictionary pays whatever the number of rows: it fits the nearest caches.
const SMALL_DICTIONARY: usize = 4096;
/// More distinct values than this are not worth a dictionary: it would not fit the caches.
const LARGE_DICTIONARY: usize = 1 << 20;
/// Rows after which an attempt at a dictionary is looked at early.
const EARLY_ROWS: usize = 1 << 16;

/// The number that stands for null while values are interned.
const NULL: u32 = u32::MAX;

/// Tells whether a dictionary pays for the given numbers of rows, distinct values and their bytes together.
pub(crate) fn dictionary_pays(rows: usize, distinct: usize, bytes: usize) -> bool {
    if distinct <= SMALL_DICTIONARY {
        return bytes <= DICTIONARY_BYTES;
    }
    // The average length of the distinct values stands for that of all.
    let plain = rows * 8 + (bytes as f64 / distinct as f64 * rows as f64) as usize;
    let coded = rows * Codes::width_for(distinct as u64 - 1) + bytes + 4 * distinct;
    distinct <= LARGE_DICTIONARY && distinct <= rows / 4 && bytes <= DICTIONARY_BYTES && coded < plain
}

/// Tells whether an Arrow type is read here: text and bytes of all layouts but dictionaries.
pub(crate) fn is_text(kind: &DataType) -> bool {
    use DataType::*;
    matches!(kind, Utf8 | LargeUtf8 | Utf8View | Binary | LargeBinary | BinaryView | FixedSizeBinary(_))
}

/// Calls `f` with each value in order; what a null row gives is not specified.
fn each<'a>(array: &'a dyn Array, mut f: impl FnMut(&'a [u8])) {
    let rows = array.len();
    macro_rules! values {
        ($array:expr) => {{
            let array = $array;
            (0..rows).for_each(|i| f(array.value(i).as_ref()))
        }};
    }
    match array.data_type() {
        DataType::Utf8 => values!(array.as_string::<i32>()),
        DataType::LargeUtf8 => values!(array.as_string::<i64>()),
        DataType::Utf8View => values!(array.as_string_view()),
        DataType::Binary => values!(array.as_binary::<i32>()),
        DataType::LargeBinary => values!(array.as_binary::<i64>()),
        DataType::BinaryView => values!(array.as_binary_view()),
        DataType::FixedSizeBinary(_) => values!(array.as_fixed_size_binary()),
        other => unreachable!("{other} is not text"),
    }
}

/// The keys of an Arrow dictionary array; null keys give 0.
fn keys(array: &dyn Array) -> Vec<usize> {
    fn of<K: ArrowDictionaryKeyType>(array: &DictionaryArray<K>) -> Vec<usize> {
        array.keys_iter().map(|key| key.unwrap_or(0)).collect()
    }
    downcast_dictionary_array!(
        array => of(array),
        other => unreachable!("{other} is not a dictionary")
    )
}

/// Encodes chunks of text. Arrow dictionaries always become a dictionary, plain text if `intern` and where it pays.
pub(crate) fn encode(
    kind: &Type,
    chunks: &[&dyn Array],
    rows: usize,
    validity: Option<Bitmap>,
    intern: bool,
) -> Result<Column> {
    let intern = intern || chunks.iter().any(|chunk| matches!(chunk.data_type(), DataType::Dictionary(..)));
    match intern.then(|| numbers(chunks, rows, validity.as_ref())).flatten() {
        Some((interner, numbers)) => coded(kind, interner, &numbers, validity),
        None => Ok(plain(kind, chunks, rows, validity)),
    }
}

/// Makes a dictionary column of interned values.
fn coded(kind: &Type, interner: Interner, numbers: &[u32], validity: Option<Bitmap>) -> Result<Column> {
    let (mut dictionary, remap) = interner.into_dictionary(kind)?;
    if dictionary.is_empty() {
        dictionary = Dictionary::placeholder(kind);
    }
    let width = Codes::width_for(dictionary.len() as u64 - 1);
    let code = |&number: &u32| if number == NULL { 0 } else { u64::from(remap[number as usize]) };
    let codes = Codes::collect(width, numbers.len(), numbers.iter().map(code));
    Ok(Column::from_codes(kind.clone(), codes, Arc::new(dictionary), validity))
}

/// Numbers the values, or gives up where there are too many.
fn numbers(chunks: &[&dyn Array], rows: usize, validity: Option<&Bitmap>) -> Option<(Interner, Vec<u32>)> {
    let mut interner = Interner::new();
    let mut numbers = Vec::with_capacity(rows);
    let is_valid = |row: usize| validity.is_none_or(|validity| validity.get(row));
    for chunk in chunks {
        if let Some(dictionary) = chunk.as_any_dictionary_opt() {
            let mut values: Vec<&[u8]> = Vec::with_capacity(dictionary.values().len());
            each(dictionary.values().as_ref(), |value| values.push(value));
            let mut known = vec![NULL; values.len()];
            for key in keys(*chunk) {
                let number = match is_valid(numbers.len()) {
                    true if known[key] == NULL => {
                        known[key] = interner.intern(values[key]);
                        known[key]
                    }
                    true => known[key],
                    false => NULL,
                };
                numbers.push(number);
            }
        } else {
            let mut hopeless = false;
            each(*chunk, |value| {
                let seen = numbers.len();
                if seen.is_multiple_of(4096) {
                    hopeless |= is_hopeless(&interner, seen, rows);
                }
                let intern = !hopeless && is_valid(seen);
                numbers.push(if intern { interner.intern(value) } else { NULL });
            });
            if hopeless {
                return None;
            }
        }
    }
    (!is_hopeless(&interner, rows, rows)).then_some((interner, numbers))
}

/// Tells whether so many values are distinct after `seen` of `rows` rows that a dictionary will not pay. A part may have
/// twice the share of distinct values that the table may: other parts can repeat them.
fn is_hopeless(interner: &Interner, seen: usize, rows: usize) -> bool {
    let distinct = interner.len();
    let many = distinct > SMALL_DICTIONARY && distinct > rows / 2;
    let early = seen >= EARLY_ROWS && distinct > seen / 8 * 7;
    many || early || distinct > LARGE_DICTIONARY || interner.byte_len() > DICTIONARY_BYTES / 2
}

/// Copies values one after the other.
fn plain(kind: &Type, chunks: &[&dyn Array], rows: usize, validity: Option<Bitmap>) -> Column {
    let mut offsets = AlignedVec::<u64>::with_capacity(rows + 1);
    let mut row = 0;
    let mut end = 0;
    offsets.push(0);
    // Two passes, so that the bytes are allocated once, in their size.
    let mut visit = |f: &mut dyn FnMut(&[u8])| {
        row = 0;
        for chunk in chunks {
            let mut add = |value| {
                let valid = validity.as_ref().is_none_or(|validity| validity.get(row));
                f(if valid { value } else { &[] });
                row += 1;
            };
            match chunk.as_any_dictionary_opt() {
                None => each(*chunk, add),
                Some(dictionary) => {
                    let mut values: Vec<&[u8]> = Vec::with_capacity(dictionary.values().len());
                    each(dictionary.values().as_ref(), |value| values.push(value));
                    keys(*chunk).into_iter().for_each(|key| add(values.get(key).copied().unwrap_or_default()));
                }
            }
        }
    };
    visit(&mut |value| {
        end += value.len() as u64;
        offsets.push(end);
    });
    let mut bytes = AlignedVec::<u8>::with_capacity(end as usize);
    visit(&mut |value| bytes.extend_from_slice(value));
    Column::from_bytes(kind.clone(), offsets.into_buffer(), bytes.into_buffer(), validity)
}

/// Makes dictionary columns of plain ones, all of one dictionary, if that pays for `rows` rows.
pub(crate) fn intern_columns(kind: &Type, columns: &[&Column], rows: usize) -> Result<Option<Vec<Column>>> {
    let mut interner = Interner::new();
    let mut all = Vec::with_capacity(columns.len());
    for column in columns {
        let mut numbers = Vec::with_capacity(column.rows);
        for row in 0..column.rows {
            numbers.push(if column.is_valid(row) { interner.intern(column.bytes_at(row)) } else { NULL });
            if row % 4096 == 0 && !dictionary_pays(rows, interner.len(), interner.byte_len()) {
                return Ok(None);
            }
        }
        all.push(numbers);
    }
    if !dictionary_pays(rows, interner.len(), interner.byte_len()) {
        return Ok(None);
    }
    let (mut dictionary, remap) = interner.into_dictionary(kind)?;
    if dictionary.is_empty() {
        dictionary = Dictionary::placeholder(kind);
    }
    let dictionary = Arc::new(dictionary);
    let width = Codes::width_for(dictionary.len() as u64 - 1);
    let coded = columns.iter().zip(all).map(|(column, numbers)| {
        let code = |&number: &u32| if number == NULL { 0 } else { u64::from(remap[number as usize]) };
        let codes = Codes::collect(width, numbers.len(), numbers.iter().map(code));
        Column::from_codes(kind.clone(), codes, dictionary.clone(), column.validity.clone()).with_blocks()
    });
    Ok(Some(coded.collect()))
}
