//! The sentences that errors are made of, and the text handling behind them.

use std::io;

use crate::error::names::suggestion;
use crate::{Class, Error};

/// Makes the error of a table that does not exist, or of a file if the name looks like one.
pub(crate) fn unknown_table(name: &str, tables: &[String]) -> Error {
    Error::input(format!("unknown table '{name}'; {}", suggestion(name, tables, "tables")))
}

/// Makes the error of a file that does not exist.
pub(crate) fn missing(path: &str) -> Error {
    Error::input(format!("the file does not exist; check the path: {path}"))
}

/// Makes the error of a file format that is not known.
pub(crate) fn unknown_format(name: &str) -> Error {
    Error::input(format!("unknown file format; add STORED AS PARQUET, CSV, JSON or ARROW: {name}"))
}

pub(crate) fn unreadable(path: &str) -> Error {
    Error::input(format!("permission denied; make it readable for this user or choose another: {path}"))
}

pub(crate) fn full_disk(path: Option<&str>) -> Error {
    let path = path.map(|path| format!(": {path}")).unwrap_or_default();
    Error::exhausted(format!("the disk is full; free some space or write elsewhere{path}"))
}

/// Turns an input or output error into a sentence about `file`.
pub(crate) fn file_error(error: &io::Error, file: Option<&str>) -> Error {
    let path = file.unwrap_or("(unknown file)");
    match error.kind() {
        io::ErrorKind::NotFound => missing(path),
        io::ErrorKind::PermissionDenied => unreadable(path),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => full_disk(file),
        io::ErrorKind::UnexpectedEof => {
            Error::input(format!("the file ends too early; write or copy it again: {path}"))
        }
        io::ErrorKind::IsADirectory => Error::input(format!("a file is needed, and this is a directory: {path}")),
        io::ErrorKind::NotADirectory => Error::input(format!("a part of the path is not a directory: {path}")),
        io::ErrorKind::ReadOnlyFilesystem => {
            Error::input(format!("the file system is read-only; write elsewhere: {path}"))
        }
        _ => Error::new(Class::Input, format!("input or output failed for {path}: {}", sentence(&error.to_string()))),
    }
}

pub(crate) fn division_by_zero() -> Error {
    Error::input("division by zero; guard the divisor, as in x / NULLIF(y, 0)")
}

pub(crate) fn overflow(message: &str) -> Error {
    let detail = sentence(message);
    let detail = detail.strip_prefix("Overflow happened on: ").unwrap_or(&detail).trim_end_matches('.');
    let kind = if detail.to_lowercase().contains("decimal") { "decimal" } else { "integer" };
    Error::input(format!("{kind} overflow; cast an operand to a wider type such as DECIMAL(38,0) or DOUBLE: {detail}"))
}

pub(crate) fn invalid_cast(message: &str) -> Error {
    let detail = sentence(message);
    Error::input(format!(
        "invalid cast; correct the value, or use TRY_CAST to get NULL instead: {}",
        lower(detail.trim_end_matches('.'))
    ))
}

/// Returns the text between two markers.
pub(crate) fn quoted_between<'a>(text: &'a str, before: &str, after: &str) -> Option<&'a str> {
    let start = text.find(before)? + before.len();
    let length = text[start..].find(after)?;
    Some(&text[start..start + length])
}

/// Flattens a library's message: one line, without the names of the layers it came through.
pub(crate) fn sentence(message: &str) -> String {
    const LAYERS: [&str; 14] = [
        "External error: ",
        "Execution error: ",
        "Arrow error: ",
        "Parquet error: ",
        "Error during planning: ",
        "Invalid argument error: ",
        "Compute error: ",
        "Cast error: ",
        "Parser error: ",
        "Schema error: ",
        "SQL error: ",
        "IO error: ",
        "Object Store error: ",
        "External: ",
    ];
    // Some layers ask for bug reports in the middle of a message about the user's input.
    const PLEA: (&str, &str) = ("This issue was likely caused by", "/issues");
    let pleaded = match message.find(PLEA.0).and_then(|start| Some((start, message[start..].find(PLEA.1)?))) {
        Some((start, length)) => {
            format!("{} {}", &message[..start], message[start + length + PLEA.1.len()..].trim_start_matches('.'))
        }
        None => message.to_string(),
    };
    // Of a chain with causes, the last is the one that tells.
    let message = pleaded.rsplit("caused by").next().unwrap_or_default();
    let message = message.split("Backtrace:").next().unwrap_or(message);
    let mut line = message.split_whitespace().collect::<Vec<_>>().join(" ");
    while let Some(rest) = LAYERS.iter().find_map(|layer| line.strip_prefix(layer)) {
        line = rest.to_string();
    }
    line.trim_end_matches('.').to_string()
}

/// Begins a message in lower case, unless it begins with a name in capitals.
pub(crate) fn lower(message: &str) -> String {
    let mut characters = message.chars();
    match (characters.next(), characters.next()) {
        (Some(first), Some(second)) if first.is_uppercase() && !second.is_uppercase() => {
            first.to_lowercase().chain(message.chars().skip(1)).collect()
        }
        _ => message.to_string(),
    }
}

/// Cuts the part of a line around a column, so that the message stays short.
pub(crate) fn excerpt(line: &str, column: usize) -> String {
    const BEFORE: usize = 20;
    const LENGTH: usize = 60;
    let start = column.saturating_sub(1 + BEFORE);
    let text: String = line.chars().skip(start).take(LENGTH).collect();
    text.trim().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_becomes_its_last_cause() {
        let chain = "type_coercion\ncaused by\nError during planning: Execution error: Something is\n  wrong.";
        assert_eq!(sentence(chain), "Something is wrong");
    }

    #[test]
    fn a_plea_for_bug_reports_is_left_out() {
        let message = "Function 'sum' failed. This issue was likely caused by a bug in someone's code. Please help: \
                       https://example.org/issues. No function matches 'sum(Utf8)'.";
        assert_eq!(sentence(message), "Function 'sum' failed. No function matches 'sum(Utf8)'");
    }

    #[test]
    fn files_are_named_with_what_to_do() {
        let full = file_error(&io::ErrorKind::StorageFull.into(), Some("a.csv"));
        assert_eq!((full.class, full.message.ends_with(": a.csv")), (Class::Exhausted, true));
        assert_eq!(file_error(&io::ErrorKind::NotFound.into(), Some("b")).message, missing("b").message);
    }

    #[test]
    fn excerpts_are_cut_around_the_column() {
        let line = "x".repeat(100) + "HERE" + &"y".repeat(100);
        assert!(excerpt(&line, 101).contains("HERE"));
        assert!(excerpt(&line, 101).len() <= 60);
        assert_eq!(excerpt("äöü", 3), "äöü");
        assert_eq!(lower("Expected it"), "expected it");
        assert_eq!(lower("SQL is it"), "SQL is it");
    }
}
