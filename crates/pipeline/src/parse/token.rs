//! The words of the text form.

use tandem_column::{Error, Result};

/// One word of the text.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    /// A bare word.
    Word(String),
    /// A name in double quotes.
    Name(String),
    /// Text in single quotes.
    Text(String),
    /// Bytes as `x'…'`.
    Bytes(Vec<u8>),
    /// Digits, perhaps with a point and an exponent, or `0x…`.
    Number(String),
    /// `$` and a number.
    Slot(usize),
    /// Anything else.
    Symbol(&'static str),
    /// Behind the last word.
    End,
}

/// Every symbol; those with two characters come first.
const SYMBOLS: &[&str] =
    &["<>", "<=", ">=", "(", ")", "[", "]", ",", ":", "@", "?", "=", "<", ">", "+", "-", "*", "/", "%"];

/// Splits text into words, each with its line number.
///
/// # Errors
/// If a quote is not closed, an escape unknown, or a character belongs to no word.
pub(super) fn tokens(text: &str) -> Result<Vec<(Token, usize)>> {
    let mut tokens = Vec::new();
    let mut rest = text;
    let mut line = 1;
    while let Some(first) = rest.chars().next() {
        if first.is_whitespace() {
            line += usize::from(first == '\n');
            rest = &rest[first.len_utf8()..];
            continue;
        }
        let (token, after) = token(rest).map_err(|reason| Error::input(format!("line {line}: {reason}")))?;
        tokens.push((token, line));
        rest = after;
    }
    tokens.push((Token::End, line));
    Ok(tokens)
}

/// Splits off the words' characters at the start that satisfy a condition.
fn span(text: &str, accept: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(|c| !accept(c)).unwrap_or(text.len()))
}

/// Reads one word, and returns it with the text behind it.
fn token(text: &str) -> std::result::Result<(Token, &str), String> {
    if let Some(rest) = text.strip_prefix("x'") {
        let (digits, rest) = span(rest, |c| c.is_ascii_hexdigit());
        let rest = rest.strip_prefix('\'').ok_or("bytes lack their closing quote")?;
        if digits.len() % 2 != 0 {
            return Err("bytes have an odd number of digits".to_owned());
        }
        let byte = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16).unwrap_or(0);
        return Ok((Token::Bytes((0..digits.len()).step_by(2).map(byte).collect()), rest));
    }
    let first = text.chars().next().unwrap_or(' ');
    match first {
        '\'' => quoted(text, '\'').map(|(text, rest)| (Token::Text(text), rest)),
        '"' => quoted(text, '"').map(|(text, rest)| (Token::Name(text), rest)),
        '$' => {
            let (digits, rest) = span(&text[1..], |c| c.is_ascii_digit());
            let slot = digits.parse().map_err(|_| format!("${digits} is not a slot"))?;
            Ok((Token::Slot(slot), rest))
        }
        c if c.is_ascii_alphabetic() || c == '_' => {
            let (word, rest) = span(text, |c| c.is_ascii_alphanumeric() || c == '_');
            Ok((Token::Word(word.to_owned()), rest))
        }
        c if c.is_ascii_digit() => Ok(number(text)),
        c => match SYMBOLS.iter().find(|symbol| text.starts_with(**symbol)) {
            Some(symbol) => Ok((Token::Symbol(symbol), &text[symbol.len()..])),
            None => Err(format!("{c:?} is not expected here")),
        },
    }
}

/// Reads a number.
fn number(text: &str) -> (Token, &str) {
    let digits = |text: &str| text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let mut end = digits(text);
    if let Some(digits) = text.strip_prefix("0x") {
        end = 2 + span(digits, |c| c.is_ascii_hexdigit()).0.len();
    } else {
        if text[end..].starts_with('.') && digits(&text[end + 1..]) > 0 {
            end += 1 + digits(&text[end + 1..]);
        }
        if let Some(exponent) = text[end..].strip_prefix('e') {
            let sign = usize::from(exponent.starts_with(['-', '+']));
            if digits(&exponent[sign..]) > 0 {
                end += 1 + sign + digits(&exponent[sign..]);
            }
        }
    }
    (Token::Number(text[..end].to_owned()), &text[end..])
}

/// Reads text up to the closing quote.
fn quoted(text: &str, quote: char) -> std::result::Result<(String, &str), String> {
    let mut found = String::new();
    let mut characters = text.char_indices().skip(1);
    while let Some((at, character)) = characters.next() {
        match character {
            c if c == quote => return Ok((found, &text[at + 1..])),
            '\\' => match characters.next().map(|(_, escaped)| escaped) {
                Some('n') => found.push('\n'),
                Some('r') => found.push('\r'),
                Some('t') => found.push('\t'),
                Some('u') => {
                    let digits: String = characters.by_ref().map(|(_, c)| c).take_while(|c| *c != '}').collect();
                    let code = u32::from_str_radix(digits.trim_start_matches('{'), 16).ok();
                    found.push(code.and_then(char::from_u32).ok_or("an escaped character does not exist")?);
                }
                Some(c @ ('\\' | '\'' | '"')) => found.push(c),
                _ => return Err("an escape is not known".to_owned()),
            },
            c => found.push(c),
        }
    }
    Err("text lacks its closing quote".to_owned())
}
