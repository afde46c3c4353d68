//! Colours for SQL while it is typed: keywords, strings, numbers, comments.

use reedline::{Color, Highlighter, StyledText};

/// The words that are coloured and completed.
pub const KEYWORDS: &[&str] = &[
    "ALL",
    "ANALYZE",
    "AND",
    "ANTI",
    "AS",
    "ASC",
    "AVG",
    "BETWEEN",
    "BY",
    "CASE",
    "CAST",
    "COPY",
    "COUNT",
    "CREATE",
    "CROSS",
    "DATE",
    "DECIMAL",
    "DELETE",
    "DESC",
    "DESCRIBE",
    "DISTINCT",
    "DROP",
    "ELSE",
    "END",
    "EXCEPT",
    "EXISTS",
    "EXPLAIN",
    "EXTERNAL",
    "EXTRACT",
    "FALSE",
    "FROM",
    "FULL",
    "GROUP",
    "HAVING",
    "IN",
    "INNER",
    "INSERT",
    "INTERSECT",
    "INTERVAL",
    "INTO",
    "IS",
    "JOIN",
    "LEFT",
    "LIKE",
    "LIMIT",
    "LOCATION",
    "MAX",
    "MIN",
    "NOT",
    "NULL",
    "NULLS",
    "OFFSET",
    "ON",
    "OR",
    "ORDER",
    "OUTER",
    "OVER",
    "PARTITION",
    "REPLACE",
    "RIGHT",
    "SELECT",
    "SEMI",
    "SET",
    "SHOW",
    "STORED",
    "SUM",
    "TABLE",
    "THEN",
    "TIMESTAMP",
    "TO",
    "TRUE",
    "UNION",
    "USING",
    "VALUES",
    "VIEW",
    "WHEN",
    "WHERE",
    "WITH",
];

/// Colours a line of SQL.
pub struct SqlHighlighter;

impl Highlighter for SqlHighlighter {
    fn highlight(&self, line: &str, _cursor: usize) -> StyledText {
        let mut styled = StyledText::new();
        let mut rest = line;
        while let Some(first) = rest.chars().next() {
            let (length, style) = token(rest, first);
            styled.push((style, rest[..length].to_owned()));
            rest = &rest[length..];
        }
        styled
    }
}

/// Returns the length in bytes of the token that `text` begins with, and its style.
fn token(text: &str, first: char) -> (usize, nu_ansi_term::Style) {
    let run = |pass: fn(char) -> bool| text.find(|c| !pass(c)).unwrap_or(text.len());
    if first == '\'' || first == '"' {
        let end = text[1..].find(first).map_or(text.len(), |at| at + 2);
        return (end, Color::Green.normal());
    }
    if text.starts_with("--") {
        return (text.find('\n').unwrap_or(text.len()), Color::DarkGray.normal());
    }
    if first.is_ascii_digit() {
        return (run(|c| c.is_ascii_alphanumeric() || c == '.'), Color::Cyan.normal());
    }
    if first.is_alphabetic() || first == '_' {
        let length = run(|c| c.is_alphanumeric() || c == '_');
        let keyword = KEYWORDS.binary_search(&text[..length].to_uppercase().as_str()).is_ok();
        return (length, if keyword { Color::Blue.bold() } else { Color::Default.normal() });
    }
    (first.len_utf8(), Color::Default.normal())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keywords_are_sorted_for_the_search() {
        assert!(KEYWORDS.is_sorted());
    }

    #[test]
    fn highlighting_keeps_the_text() {
        for text in ["SELECT 'a''b', \"ü\" FROM t -- end\nWHERE x >= 1.5e3;", "'open", "日本", ""] {
            assert_eq!(SqlHighlighter.highlight(text, 0).raw_string(), text);
        }
    }
}
