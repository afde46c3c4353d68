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

/// Bytes from which on it pays to count what would be replaced rather than to assume the most.
const WORTH_COUNTING: usize = 1 << 20;

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
