//! Text functions of one varying argument: over all rows, or over a dictionary's distinct values where these are fewer.

use memchr::memmem::Finder;
use tandem_column::{Result, Type};
use tandem_pipeline::{
    Function, Value,
    scalar::{self, text::MOST_TEXT},
};

use super::Slots;
use super::meter::Meter;
use super::operand::Operand;
use crate::vector::{BytesVector, Values, Vector, bytes, integer, word};

/// Tells whether it pays to compute all of a dictionary rather than each row.
fn pays(distinct: usize, rows: usize) -> bool {
    distinct <= rows
}

/// Computes a small value of each text; 0 for representations without text.
pub(super) fn measure<R: Copy + Default>(values: &Values, f: impl Fn(&[u8]) -> R) -> Vec<R> {
    match values {
        Values::Bytes(values) => values.iter().map(f).collect(),
        Values::Code { codes, dictionary } if dictionary.is_empty() => vec![R::default(); codes.len()],
        Values::Code { codes, dictionary } if pays(dictionary.len(), codes.len()) => {
            let table: Vec<R> = dictionary.iter().map(f).collect();
            codes.iter().map(|&code| table[code as usize]).collect()
        }
        Values::Code { codes, dictionary } => codes.iter().map(|&code| f(dictionary.get(code))).collect(),
        other => vec![R::default(); other.len()],
    }
}

/// Tells which texts contain a part and fulfil a condition, 1 or 0 each. Texts that lie one after the other are searched as one:
/// the search then takes as long as there are bytes, not as there are rows.
pub(super) fn search(values: &Values, finder: &Finder<'_>, holds: impl Fn(&[u8]) -> bool) -> Vec<u8> {
    let part = finder.needle().len();
    let Values::Bytes(texts) = values else {
        return measure(values, |value| u8::from(finder.find(value).is_some() && holds(value)));
    };
    if part == 0 {
        return measure(values, |value| u8::from(holds(value)));
    }
    let (offsets, bytes) = texts.parts();
    let mut mask = vec![0; texts.len()];
    let (mut row, mut from) = (0, 0);
    while let Some(found) = finder.find(&bytes[from..]) {
        let start = from + found;
        while offsets[row + 1] <= start {
            row += 1;
        }
        let text = offsets[row]..offsets[row + 1];
        // What begins in one text and ends in another is in neither.
        from = start + 1;
        if start + part <= text.end {
            from = text.end;
            mask[row] = u8::from(holds(&bytes[text]));
        }
    }
    mask
}

/// Computes a text of each text, which `f` appends; `most` tells how long it may become.
pub(super) fn rewrite(
    slots: &dyn Slots,
    values: &Values,
    most: impl Fn(&str) -> usize,
    f: impl Fn(&str, &mut Vec<u8>),
) -> Result<Values> {
    let each = |out: &mut BytesVector, meter: &mut Meter<'_>, value: &[u8]| -> Result<()> {
        let value = text(value);
        meter.reach(out.byte_len() + most(value))?;
        out.push_with(|out| f(value, out));
        Ok(())
    };
    let (mut out, mut meter) = (BytesVector::with_capacity(values.len(), 0), Meter::new(slots));
    match values {
        Values::Code { codes, dictionary } if pays(dictionary.len(), codes.len()) => {
            let (mut table, mut entries) = (BytesVector::with_capacity(dictionary.len(), 0), Meter::new(slots));
            dictionary.iter().try_for_each(|value| each(&mut table, &mut entries, value))?;
            for &code in codes {
                let value = if table.is_empty() { &[] } else { table.get(code as usize) };
                meter.reach(out.byte_len() + value.len())?;
                out.push(value);
            }
        }
        Values::Code { codes, dictionary } => {
            codes.iter().try_for_each(|&code| each(&mut out, &mut meter, word(dictionary, code)))?;
        }
        Values::Bytes(values) => values.iter().try_for_each(|value| each(&mut out, &mut meter, value))?,
        other => return Ok(other.clone()),
    }
    Ok(Values::Bytes(out))
}

/// Reads bytes that are known to be text.
#[inline]
pub(super) fn text(bytes: &[u8]) -> &str {
    debug_assert!(std::str::from_utf8(bytes).is_ok());
    // SAFETY: vectors of text hold only UTF-8: columns check it when loaded, and functions make it of text.
    unsafe { std::str::from_utf8_unchecked(bytes) }
}

/// Computes a function whose first argument is a vector of text and whose others are constants that are not null;
/// `None` where there is no loop for it.
pub(super) fn fast(
    slots: &dyn Slots,
    function: Function,
    operands: &[Operand],
    kinds: &[Type],
    kind: &Type,
) -> Result<Option<Vector>> {
    let (Some(Operand::Vector(vector)), Some(Type::String)) = (operands.first(), kinds.first()) else {
        return Ok(None);
    };
    let mut rest = Vec::with_capacity(2);
    for operand in &operands[1..] {
        match operand {
            Operand::Constant(value) => rest.push(value),
            Operand::Vector(_) => return Ok(None),
        }
    }
    let values = &vector.values;
    let out = match measured(function, &rest, values, kind) {
        None => match sliced(slots, function, &rest, values)? {
            None => rewritten(slots, function, &rest, values)?,
            sliced => sliced,
        },
        measured => measured,
    };
    Ok(out.map(|values| Vector { values, valid: vector.valid.clone() }))
}

/// Computes functions that give a number or a truth value of each text.
fn measured(function: Function, rest: &[&Value], values: &Values, kind: &Type) -> Option<Values> {
    use Function::*;
    Some(match (function, rest) {
        (CharLength, []) if *kind == Type::Int32 => {
            Values::Int(measure(values, |value| i64::from(scalar::text::char_length(text(value)))))
        }
        (OctetLength, []) if *kind == Type::Int32 => {
            Values::Int(measure(values, |value| i64::from(scalar::text::octet_length(value))))
        }
        (Position, [Value::String(part)]) if *kind == Type::Int32 => {
            Values::Int(measure(values, |value| i64::from(scalar::text::position(text(value), part))))
        }
        (StartsWith, [Value::String(part)]) => {
            Values::Boolean(measure(values, |value| u8::from(value.starts_with(part.as_bytes()))))
        }
        (EndsWith, [Value::String(part)]) => {
            Values::Boolean(measure(values, |value| u8::from(value.ends_with(part.as_bytes()))))
        }
        (Contains, [Value::String(part)]) => Values::Boolean(search(values, &Finder::new(part.as_bytes()), |_| true)),
        _ => return None,
    })
}

/// Computes functions that give a part of each text.
fn sliced(slots: &dyn Slots, function: Function, rest: &[&Value], values: &Values) -> Result<Option<Values>> {
    use Function::*;
    let out = match (function, rest) {
        (Trim | TrimStart | TrimEnd, []) => {
            let (start, end) = (function != TrimEnd, function != TrimStart);
            slice(slots, values, |value| scalar::text::trim(value, None, start, end))?
        }
        (Left, [Value::Integer(count)]) => {
            let Ok(count) = i64::try_from(*count) else { return Ok(None) };
            slice(slots, values, |value| scalar::text::left(value, count))?
        }
        (Right, [Value::Integer(count)]) => {
            let Ok(count) = i64::try_from(*count) else { return Ok(None) };
            slice(slots, values, |value| scalar::text::right(value, count))?
        }
        (Substring, [Value::Integer(start), length @ ..]) if length.len() <= 1 => {
            let Ok(start) = i64::try_from(*start) else { return Ok(None) };
            let length = match length {
                [value] => match i64::try_from(integer(value)) {
                    Ok(length) if length >= 0 => Some(length),
                    _ => return Ok(None),
                },
                _ => None,
            };
            slice(slots, values, |value| substring(value, start, length))?
        }
        (SplitPart, [Value::String(separator), Value::Integer(number)]) if *number != 0 => {
            let Ok(number) = i64::try_from(*number) else { return Ok(None) };
            slice(slots, values, |value| scalar::text::split_part(value, separator, number).unwrap_or_default())?
        }
        _ => return Ok(None),
    };
    Ok(Some(out))
}

/// Computes functions that write another text for each.
fn rewritten(slots: &dyn Slots, function: Function, rest: &[&Value], values: &Values) -> Result<Option<Values>> {
    use Function::*;
    // Changing case makes at most three bytes of one.
    let three = |value: &str| value.len().saturating_mul(3);
    let out = match (function, rest) {
        (Upper, []) => rewrite(slots, values, three, |value, out| {
            if value.is_ascii() {
                out.extend(value.bytes().map(|byte| byte.to_ascii_uppercase()));
            } else {
                out.extend_from_slice(value.to_uppercase().as_bytes());
            }
        })?,
        (Lower, []) => rewrite(slots, values, three, |value, out| {
            if value.is_ascii() {
                out.extend(value.bytes().map(|byte| byte.to_ascii_lowercase()));
            } else {
                out.extend_from_slice(value.to_lowercase().as_bytes());
            }
        })?,
        (Reverse, []) => rewrite(slots, values, str::len, |value, out| {
            out.extend_from_slice(scalar::text::reverse(value).as_bytes())
        })?,
        (Replace, [Value::String(from), Value::String(to)]) => {
            let most = |value: &str| scalar::text::most_replaced(value, from, to);
            rewrite(slots, values, most, |value, out| {
                out.extend_from_slice(scalar::text::replace(value, from, to).as_bytes());
            })?
        }
        (InitCap, []) => {
            rewrite(slots, values, three, |value, out| out.extend_from_slice(scalar::text::initcap(value).as_bytes()))?
        }
        (Md5, []) => rewrite(
            slots,
            values,
            |_| 32,
            |value, out| {
                out.extend_from_slice(scalar::digest::md5(value.as_bytes()).as_bytes());
            },
        )?,
        (Sha256, []) => rewrite(
            slots,
            values,
            |_| 32,
            |value, out| {
                out.extend_from_slice(&scalar::digest::sha256(value.as_bytes()));
            },
        )?,
        (Translate, [Value::String(from), Value::String(to)]) => {
            // A character has at most four bytes.
            rewrite(
                slots,
                values,
                |value| value.len().saturating_mul(4),
                |value, out| {
                    out.extend_from_slice(scalar::text::translate(value, from, to).as_bytes());
                },
            )?
        }
        (Repeat, [Value::Integer(count)]) => {
            let Ok(count) = i64::try_from(*count) else { return Ok(None) };
            let most = |value: &str| scalar::text::repeated_bytes(value, count);
            if !fits(values, most) {
                return Ok(None);
            }
            rewrite(slots, values, most, |value, out| {
                (0..count).take_while(|_| !value.is_empty()).for_each(|_| out.extend_from_slice(value.as_bytes()));
            })?
        }
        (PadStart | PadEnd, [Value::Integer(length), fill @ ..]) => {
            let fill = if let [Value::String(fill)] = fill { fill } else { " " };
            let Ok(length) = i64::try_from(*length) else { return Ok(None) };
            let most = |value: &str| scalar::text::padded_bytes(value, length, fill);
            if length > MOST_TEXT as i64 || !fits(values, most) {
                return Ok(None);
            }
            rewrite(slots, values, most, |value, out| {
                let padded = scalar::text::pad(value, length, fill, function == PadStart);
                out.extend_from_slice(padded.unwrap_or_default().as_bytes());
            })?
        }
        _ => return Ok(None),
    };
    Ok(Some(out))
}

/// Tells whether what is made of each text is within what a column holds; if not, some rows may raise an error.
pub(super) fn fits(values: &Values, most: impl Fn(&str) -> usize) -> bool {
    measure(values, |value| most(text(value))).into_iter().all(|bytes| bytes <= MOST_TEXT)
}

fn slice(slots: &dyn Slots, values: &Values, f: impl Fn(&str) -> &str) -> Result<Values> {
    rewrite(slots, values, str::len, |value, out| out.extend_from_slice(f(value).as_bytes()))
}

/// Returns part of a text; the length is not negative. Characters of ASCII text are bytes.
fn substring(value: &str, start: i64, length: Option<i64>) -> &str {
    if !value.is_ascii() {
        return scalar::text::substring(value, start, length).unwrap_or_default();
    }
    let size = value.len() as i64;
    let start = start.saturating_sub(1);
    let end = length.map_or(size, |length| start.saturating_add(length));
    let (start, end) = (start.clamp(0, size), end.clamp(0, size));
    &value[start as usize..end.max(start) as usize]
}

/// Concatenates text; nulls are skipped.
pub(super) fn concat(slots: &dyn Slots, operands: &[Operand]) -> Result<Vector> {
    let rows = slots.rows();
    let length = |row: usize, operand: &Operand| match operand {
        Operand::Constant(value) => bytes(value).len(),
        Operand::Vector(vector) => vector.values.bytes(row).len(),
    };
    let lengths = (0..rows).flat_map(|row| operands.iter().map(move |operand| (row, operand)));
    let most = lengths.map(|(row, operand)| length(row, operand)).fold(0, usize::saturating_add);
    slots.reserve(most)?;
    let mut out = BytesVector::with_capacity(rows, most);
    for row in 0..rows {
        out.push_with(|out| {
            for operand in operands {
                match operand {
                    Operand::Constant(value) => out.extend_from_slice(bytes(value)),
                    Operand::Vector(vector) if vector.is_valid(row) => {
                        out.extend_from_slice(vector.values.bytes(row));
                    }
                    Operand::Vector(_) => {}
                }
            }
        });
    }
    Ok(Vector::new(Values::Bytes(out)))
}
