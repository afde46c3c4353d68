//! Regular expressions, in the syntax of Rust's `regex`, whose time is linear in the text.
//!
//! Flags are letters as in `(?flags)`: `i` ignores case, `m` lets `^` and `$` match at lines, `s` lets `.` match their ends, `x`
//! ignores blanks in the pattern.

use std::{borrow::Cow, sync::Mutex};

use regex::Regex;
use tandem_column::{Error, Result};

use super::text::WORTH_COUNTING;

/// A compiled regular expression.
#[derive(Clone, Debug)]
pub struct Pattern(Regex);

impl Pattern {
    /// Compiles a pattern with flags.
    ///
    /// # Errors
    /// Input, if it is not a regular expression, or needs too much memory.
    pub fn new(pattern: &str, flags: &str) -> Result<Pattern> {
        let whole = if flags.is_empty() { pattern.to_owned() } else { format!("(?{flags}){pattern}") };
        Regex::new(&whole).map(Pattern).map_err(|error| match error {
            regex::Error::CompiledTooBig(limit) => Error::input(format!(
                "the regular expression needs more than {} MB when compiled: repeat less in it, or simpler classes: {whole}",
                limit >> 20
            )),
            other => {
                let text = other.to_string();
                let reason = text.lines().last().unwrap_or_default().trim_start_matches("error: ");
                Error::input(format!("the regular expression is not valid, {reason}: {whole}"))
            }
        })
    }

    /// Tells whether any part of a text matches.
    pub fn is_match(&self, text: &str) -> bool {
        self.0.is_match(text)
    }

    /// Returns the text of a group of the first match, counted from 1 among those that took part in it; of a pattern
    /// without groups, the match is the only one.
    pub fn group<'t>(&self, text: &'t str, number: i64) -> Option<&'t str> {
        let captures = self.0.captures(text)?;
        let whole = usize::from(captures.len() > 1);
        let groups = captures.iter().skip(whole).flatten();
        let place = usize::try_from(number.checked_sub(1)?).ok()?;
        groups.map(|group| group.as_str()).nth(place)
    }
}

/// Compiled patterns that are kept, so that each is compiled once for all values; threads share them.
#[derive(Debug, Default)]
pub struct Patterns(Mutex<Vec<(String, String, Pattern)>>);

/// Patterns that are kept at once: a query has few that are constant, and those of a column soon differ.
const MOST_PATTERNS: usize = 32;

impl Patterns {
    /// Returns a compiled pattern with flags.
    ///
    /// # Errors
    /// As [`Pattern::new`].
    pub fn compile(&self, pattern: &str, flags: &str) -> Result<Pattern> {
        let mut known = self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if let Some((.., found)) = known.iter().find(|(text, with, _)| text == pattern && with == flags) {
            return Ok(found.clone());
        }
        let compiled = Pattern::new(pattern, flags)?;
        if known.len() == MOST_PATTERNS {
            known.remove(0);
        }
        known.push((pattern.to_owned(), flags.to_owned(), compiled.clone()));
        Ok(compiled)
    }
}

/// What the matches of a pattern are replaced by.
#[derive(Clone, Debug)]
pub struct Replacement {
    pattern: Pattern,
    template: String,
    all: bool,
}

impl Replacement {
    /// Separates the flag `g`, which replaces all matches rather than the first, from those of the pattern.
    pub fn flags(flags: &str) -> (Cow<'_, str>, bool) {
        match flags.contains('g') {
            true => (flags.replace('g', "").into(), true),
            false => (flags.into(), false),
        }
    }

    /// Makes one; in the replacement, `\1` (or `$1`) stands for the first group, and so on, `\0` for the whole match.
    pub fn new(pattern: Pattern, replacement: &str, all: bool) -> Replacement {
        Replacement { pattern, template: template(replacement), all }
    }

    /// Returns the most bytes that a text gets; near what it gets, where that may be much.
    pub fn most(&self, text: &str) -> usize {
        let references = self.template.matches('$').count();
        let bytes = |matches: usize| {
            let copied = references.saturating_mul(text.len());
            text.len().saturating_add(matches.saturating_mul(self.template.len())).saturating_add(copied)
        };
        match self.all {
            false => bytes(1),
            true if bytes(text.len() + 1) <= WORTH_COUNTING => bytes(text.len() + 1),
            true => bytes(self.pattern.0.find_iter(text).count()),
        }
    }

    /// Replaces the first match, or all.
    pub fn replace<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.pattern.0.replacen(text, usize::from(!self.all), self.template.as_str())
    }
}

/// Writes the groups of a replacement as `regex` does: `\1` and `\\1` become `${1}`.
fn template(replacement: &str) -> String {
    let mut out = String::with_capacity(replacement.len());
    let mut rest = replacement;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        let behind = &rest[at..];
        let slashes = behind.bytes().take_while(|byte| *byte == b'\\').count();
        let number: String = behind[slashes..].chars().take_while(|character| character.is_ascii_digit()).collect();
        if number.is_empty() {
            out.push_str(&behind[..slashes]);
        } else {
            // Of more than two backslashes, the others stay.
            out.push_str(&behind[..slashes.saturating_sub(2)]);
            out.push_str(&format!("${{{number}}}"));
        }
        rest = &behind[slashes + number.len()..];
    }
    out.push_str(rest);
    out
}
