//! Text functions, in characters (Unicode scalar values) unless said otherwise.

use tandem_column::{Error, Result};

/// Returns the byte position of character `index`, or the end of the text.
fn byte_at(text: &str, index: usize) -> usize {
    text.char_indices().nth(index).map_or(text.len(), |(position, _)| position)
}

/// Returns `length` characters (or all) from `start`, which counts from 1 and may lie before the text.
///
/// # Errors
/// If the length is negative.
pub fn substring(text: &str, start: i64, length: Option<i64>) -> Result<&str> {
    if let Some(length) = length.filter(|length| *length < 0) {
        return Err(Error::input(format!("substring needs a length of 0 or more, not {length}")));
    }
    let characters = i128::try_from(text.len()).unwrap_or(i128::MAX);
    let start = i128::from(start) - 1;
    let end = length.map_or(characters, |length| start + i128::from(length));
    let clamp = |position: i128| usize::try_from(position.clamp(0, characters)).unwrap_or(usize::MAX);
    Ok(&text[byte_at(text, clamp(start))..byte_at(text, clamp(end))])
}

/// Returns the first `count` characters or, if negative, all but the last −`count`.
pub fn left(text: &str, count: i64) -> &str {
    let magnitude = usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX);
    let kept = if count >= 0 { magnitude } else { text.chars().count().saturating_sub(magnitude) };
    &text[..byte_at(text, kept)]
}

/// Returns the last `count` characters or, if negative, all but the first −`count`.
pub fn right(text: &str, count: i64) -> &str {
    let magnitude = usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX);
    let skipped = if count < 0 { magnitude } else { text.chars().count().saturating_sub(magnitude) };
    &text[byte_at(text, skipped)..]
}

/// Returns the position from 1 of the first occurrence of `part`, or 0; the empty text is found at 1.
pub fn position(text: &str, part: &str) -> i32 {
    match text.find(part) {
        Some(at) => i32::try_from(text[..at].chars().count() + 1).unwrap_or(i32::MAX),
        None => 0,
    }
}

/// Bytes of a text that Arrow's columns hold.
pub const MOST_TEXT: usize = i32::MAX as usize;

/// Bytes from which on it pays to count what would be replaced rather than to assume the most.
pub(super) const WORTH_COUNTING: usize = 1 << 20;

/// Returns the most bytes that [`replace`] gives; exactly what it gives, where that may be much.
pub fn most_replaced(text: &str, from: &str, to: &str) -> usize {
    let (Some(most), Some(more)) = (text.len().checked_div(from.len()), to.len().checked_sub(from.len())) else {
        return text.len();
    };
    let bytes = |times: usize| text.len().saturating_add(times.saturating_mul(more));
    if bytes(most) > WORTH_COUNTING { bytes(text.matches(from).count()) } else { bytes(most) }
}

/// Replaces every occurrence of `from`; the empty text has none.
pub fn replace(text: &str, from: &str, to: &str) -> String {
    if from.is_empty() { text.to_owned() } else { text.replace(from, to) }
}

/// Removes spaces, or any of `characters`, from the chosen ends.
pub fn trim<'a>(text: &'a str, characters: Option<&str>, start: bool, end: bool) -> &'a str {
    let removes = |character: char| characters.map_or(character == ' ', |set| set.contains(character));
    let text = if start { text.trim_start_matches(removes) } else { text };
    if end { text.trim_end_matches(removes) } else { text }
}

/// Returns the characters in reverse order.
pub fn reverse(text: &str) -> String {
    text.chars().rev().collect()
}

/// Returns how many characters there are.
pub fn char_length(text: &str) -> i32 {
    i32::try_from(text.chars().count()).unwrap_or(i32::MAX)
}

/// Returns how many bytes there are.
pub fn octet_length(bytes: &[u8]) -> i32 {
    i32::try_from(bytes.len()).unwrap_or(i32::MAX)
}

/// Returns the part with a number from 1, or from −1 backwards, of a text that is split at every occurrence of another;
/// empty where there is no such part. The empty text splits nothing.
///
/// # Errors
/// If the number is zero.
pub fn split_part<'a>(text: &'a str, separator: &str, number: i64) -> Result<&'a str> {
    let place = usize::try_from(number.unsigned_abs()).unwrap_or(usize::MAX);
    let Some(place) = place.checked_sub(1) else {
        return Err(Error::input("split_part counts parts from 1, or backwards from -1: part 0 does not exist"));
    };
    let part = match (separator.is_empty(), number > 0) {
        (true, _) => (place == 0).then_some(text),
        (false, true) => text.split(separator).nth(place),
        (false, false) => text.rsplit(separator).nth(place),
    };
    Ok(part.unwrap_or_default())
}

/// Returns the bytes of a text that [`pad`] makes so many characters long; the most there can be where it is beyond 2 GB.
pub fn padded_bytes(text: &str, length: i64, fill: &str) -> usize {
    let wanted = usize::try_from(length).unwrap_or(0);
    let (each, missing) = (fill.chars().count(), wanted.saturating_sub(text.chars().count()));
    let Some(cycles) = missing.checked_div(each) else { return text.len() };
    let rest = byte_at(fill, missing % each);
    text.len().saturating_add(cycles.saturating_mul(fill.len())).saturating_add(rest)
}

/// Makes a text so many characters long: cuts its end, or repeats `fill` before it (`start`) or behind it. An empty `fill`
/// adds nothing, a negative length leaves nothing.
///
/// # Errors
/// Exhausted, if the result has more than 2 GB.
pub fn pad(text: &str, length: i64, fill: &str, start: bool) -> Result<String> {
    if length > MOST_TEXT as i64 || padded_bytes(text, length, fill) > MOST_TEXT {
        return Err(Error::exhausted("LPAD or RPAD gives a text of more than 2 GB: pad to less"));
    }
    let wanted = usize::try_from(length).unwrap_or(0);
    let characters = text.chars().count();
    if wanted <= characters {
        return Ok(text[..byte_at(text, wanted)].to_owned());
    }
    let padding = fill.chars().cycle().take(wanted - characters);
    Ok(match start {
        true => padding.chain(text.chars()).collect(),
        false => text.chars().chain(padding).collect(),
    })
}

/// Returns the text with a capital letter at the start of each word, a run of letters and digits, and small ones else.
pub fn initcap(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut within = false;
    for character in text.chars() {
        match within {
            true => out.extend(character.to_lowercase()),
            false => out.extend(character.to_uppercase()),
        }
        within = character.is_alphanumeric();
    }
    out
}

/// Returns the bytes of a text so many times.
pub fn repeated_bytes(text: &str, count: i64) -> usize {
    text.len().saturating_mul(usize::try_from(count).unwrap_or(if count < 0 { 0 } else { usize::MAX }))
}

/// Returns a text so many times; negative: none.
///
/// # Errors
/// Exhausted, if the result has more than 2 GB.
pub fn repeat(text: &str, count: i64) -> Result<String> {
    if repeated_bytes(text, count) > MOST_TEXT {
        return Err(Error::exhausted("REPEAT gives a text of more than 2 GB: repeat less"));
    }
    // Nothing is nothing however often it is repeated.
    Ok(if text.is_empty() { String::new() } else { text.repeat(usize::try_from(count).unwrap_or(0)) })
}

/// Replaces each character of `from` by the one at its place in `to`, or removes it where there is none; of one that occurs
/// twice in `from`, the first counts.
pub fn translate(text: &str, from: &str, to: &str) -> String {
    let replaced = |character: char| match from.chars().position(|candidate| candidate == character) {
        Some(place) => to.chars().nth(place),
        None => Some(character),
    };
    text.chars().filter_map(replaced).collect()
}
