//! SQL text into statements, by the parser's own tokens, so that quotes and comments are respected.

use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::tokenizer::{Location, Token, TokenWithSpan, Tokenizer, Whitespace};

use crate::Result;
use crate::error::translate::ErrorContext;

/// Splits text into statements, without their semicolons and surrounding blanks; comments alone are none.
///
/// # Errors
/// If a quote or comment is not closed.
pub(crate) fn split(text: &str) -> Result<Vec<String>> {
    let context = ErrorContext { sql: text.to_string(), ..ErrorContext::default() };
    let tokens = tokens(text).map_err(|error| context.translate(&error.into()))?;
    let lines = line_starts(text);
    let mut statements = Vec::new();
    let (mut start, mut empty) = (0, true);
    for token in &tokens {
        match &token.token {
            Token::SemiColon => {
                let end = offset(text, &lines, token.span.start);
                if !empty {
                    statements.push(text[start..end].trim().to_string());
                }
                (start, empty) = (offset(text, &lines, token.span.end), true);
            }
            Token::Whitespace(_) | Token::EOF => {}
            _ => empty = false,
        }
    }
    if !empty {
        statements.push(text[start..].trim().to_string());
    }
    Ok(statements)
}

/// Tells whether text ends with a semicolon outside quotes and comments, or holds nothing but blanks and comments.
pub(crate) fn is_complete(text: &str) -> bool {
    let Ok(tokens) = tokens(text) else {
        // Either something is not closed, or the text is no SQL at all: then only running it can tell why.
        return text.trim_end().ends_with(';') && !is_open(text);
    };
    let last = tokens.iter().rev().find(|token| !matches!(token.token, Token::Whitespace(_) | Token::EOF));
    match last {
        Some(token) => token.token == Token::SemiColon,
        None => !tokens.iter().any(|token| {
            matches!(
                token.token,
                Token::Whitespace(Whitespace::MultiLineComment(_) | Whitespace::SingleLineComment { .. })
            )
        }),
    }
}

/// Cuts text into tokens.
pub(crate) fn tokens(text: &str) -> Result<Vec<TokenWithSpan>, datafusion::sql::sqlparser::parser::ParserError> {
    Ok(Tokenizer::new(&GenericDialect {}, text).tokenize_with_location()?)
}

/// Tells whether text ends within a quote or a comment.
fn is_open(text: &str) -> bool {
    match Tokenizer::new(&GenericDialect {}, text).tokenize() {
        Ok(_) => false,
        Err(error) => {
            let message = error.message.to_lowercase();
            message.contains("unterminated") || message.contains("unexpected eof") || message.contains("expected close")
        }
    }
}

pub(super) fn line_starts(text: &str) -> Vec<usize> {
    std::iter::once(0).chain(text.match_indices('\n').map(|(position, _)| position + 1)).collect()
}

/// Returns the byte position of a line and column, both counted in characters from 1.
pub(super) fn offset(text: &str, lines: &[usize], location: Location) -> usize {
    let Some(start) = lines.get((location.line as usize).saturating_sub(1)) else { return text.len() };
    let skip = (location.column as usize).saturating_sub(1);
    text[*start..].char_indices().nth(skip).map_or(text.len(), |(position, _)| start + position)
}

/// Returns the query of `EXPLAIN KERNEL query`, which is ours and unknown to the parser.
pub(crate) fn explain_kernel(sql: &str) -> Option<&str> {
    let mut rest = sql;
    for word in ["explain", "kernel"] {
        rest = rest.trim_start();
        let (head, tail) = rest.split_at_checked(word.len())?;
        rest = tail;
        if !head.eq_ignore_ascii_case(word) || !tail.starts_with(char::is_whitespace) {
            return None;
        }
    }
    Some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn split_respects_quotes_and_comments() {
        let text = "select ';' as \"a;b\" -- no; comment\n, 2; /* ; */ ;\n select 'ä;ö', $$x;y$$;\nselect 3 -- end";
        let statements = split(text).unwrap();
        assert_eq!(
            statements,
            ["select ';' as \"a;b\" -- no; comment\n, 2", "select 'ä;ö', $$x;y$$", "select 3 -- end"]
        );
        assert!(split("  -- nothing\n").unwrap().is_empty());
        assert!(split("").unwrap().is_empty());
    }

    #[test]
    fn an_open_quote_is_an_error_with_a_position() {
        let error = split("select 1;\nselect 'abc").unwrap_err();
        assert!(error.message.starts_with("syntax error in line 2"), "{error}");
    }

    #[test]
    fn completeness_is_about_the_last_token() {
        for text in ["select 1;", "select 1; -- done", "select ';';  ", "a; b;\n", "", "  \n"] {
            assert!(is_complete(text), "{text:?}");
        }
        for text in ["select 1", "select ';", "select 1 -- ;", "select /* ;", "select 1; select 2", "-- note"] {
            assert!(!is_complete(text), "{text:?}");
        }
    }
}
