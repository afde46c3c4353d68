//! `EXCLUDE` of a window's frame, which the parser does not know, as something that it does: a key of the window's partition that calls
//! [`exclude`](crate::functions::exclude). The key stays with the frame through DataFusion's planner; lowering reads it, and
//! DataFusion itself fails at it, rather than count rows that are left out.

use std::borrow::Cow;
use std::ops::Range;

use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

use super::syntax;
use crate::functions::EXCLUDE;

/// Writes each `EXCLUDE` of a frame as a key of its partition. Text that the tokenizer refuses stays as it is.
pub(crate) fn mark(sql: &str) -> Cow<'_, str> {
    let mentioned = sql.as_bytes().windows(7).any(|word| word.eq_ignore_ascii_case(b"exclude"));
    let Some(tokens) = mentioned.then(|| syntax::tokens(sql).ok()).flatten() else { return Cow::Borrowed(sql) };
    let tokens: Vec<&TokenWithSpan> =
        tokens.iter().filter(|token| !matches!(token.token, Token::Whitespace(_) | Token::EOF)).collect();
    let lines = syntax::line_starts(sql);
    let bytes = |token: &TokenWithSpan| {
        syntax::offset(sql, &lines, token.span.start)..syntax::offset(sql, &lines, token.span.end)
    };
    let mut edits: Vec<(Range<usize>, String)> = Vec::new();
    for at in 0..tokens.len() {
        let Some((what, end)) = exclusion(&tokens, at) else { continue };
        let Some((place, has_keys)) = partition(&tokens, at) else { continue };
        if what != "no others" {
            let key = format!("{EXCLUDE}('{what}')");
            let written = if has_keys { format!(" {key},") } else { format!(" PARTITION BY {key} ") };
            let behind = bytes(tokens[place]).end;
            edits.push((behind..behind, written));
        }
        edits.push((bytes(tokens[at]).start..bytes(tokens[end]).end, String::new()));
    }
    let mut marked = sql.to_string();
    // A window within a window's argument is marked before the outer one ends.
    edits.sort_by_key(|(range, _)| range.start);
    for (range, written) in edits.into_iter().rev() {
        marked.replace_range(range, &written);
    }
    Cow::Owned(marked)
}

/// Tells whether a token is one of some words, not in quotes.
fn is_word(token: Option<&&TokenWithSpan>, words: &[&str]) -> bool {
    matches!(token.map(|token| &token.token), Some(Token::Word(word))
        if word.quote_style.is_none() && words.iter().any(|known| word.value.eq_ignore_ascii_case(known)))
}

/// Returns what the frame that ends before a token excludes, and the last token of that.
fn exclusion(tokens: &[&TokenWithSpan], at: usize) -> Option<(&'static str, usize)> {
    let behind_frame = at > 0 && is_word(tokens.get(at - 1), &["preceding", "following", "row"]);
    if !behind_frame || !is_word(tokens.get(at), &["exclude"]) {
        return None;
    }
    let (next, after) = (tokens.get(at + 1), tokens.get(at + 2));
    let (what, end) = if is_word(next, &["group"]) {
        ("group", at + 1)
    } else if is_word(next, &["ties"]) {
        ("ties", at + 1)
    } else if is_word(next, &["current"]) && is_word(after, &["row"]) {
        ("current row", at + 2)
    } else if is_word(next, &["no"]) && is_word(after, &["others"]) {
        ("no others", at + 2)
    } else {
        return None;
    };
    let closes = tokens.get(end + 1).is_some_and(|token| token.token == Token::RParen);
    closes.then_some((what, end))
}

/// Returns the token behind which a key of the partition can stand, and whether there are keys behind it.
fn partition(tokens: &[&TokenWithSpan], at: usize) -> Option<(usize, bool)> {
    let mut depth = 0;
    let open = (0..at).rev().find(|place| {
        match tokens[*place].token {
            Token::RParen => depth += 1,
            Token::LParen if depth == 0 => return true,
            Token::LParen => depth -= 1,
            _ => {}
        }
        false
    })?;
    // A window may begin with the name of another.
    let frame = ["partition", "order", "rows", "range", "groups"];
    let first = open + 1 + usize::from(!is_word(tokens.get(open + 1), &frame));
    match is_word(tokens.get(first), &["partition"]) && is_word(tokens.get(first + 1), &["by"]) {
        true => Some((first + 1, true)),
        false => Some((first - 1, false)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exclusions_become_keys_of_partitions() {
        let marked = |sql: &str| mark(sql).into_owned();
        assert_eq!(
            marked("select sum(x) over (partition by a, b order by c rows 2 preceding EXCLUDE CURRENT ROW) from t"),
            "select sum(x) over (partition by tandem_exclude('current row'), a, b order by c rows 2 preceding ) from t"
        );
        assert_eq!(
            marked("select sum(x) over (order by (c + 1) groups current row exclude ties) from t"),
            "select sum(x) over ( PARTITION BY tandem_exclude('ties') order by (c + 1) groups current row ) from t"
        );
        assert_eq!(
            marked("select sum(x) over w from t window w as (rows unbounded preceding exclude group)"),
            "select sum(x) over w from t window w as ( PARTITION BY tandem_exclude('group') rows unbounded preceding )"
        );
        assert_eq!(
            marked("select sum(x) over (order by c rows unbounded preceding exclude no others) from t"),
            "select sum(x) over (order by c rows unbounded preceding ) from t"
        );
    }

    #[test]
    fn other_uses_of_the_word_stay() {
        for sql in [
            "select * exclude (a) from t",
            "select * exclude ties from t",
            "select 'rows 1 preceding exclude ties)' from t",
            "select sum(x) over (order by c rows 1 preceding exclude everything) from t",
            "select \"exclude\" from t -- exclude ties",
            "select 'exclude",
        ] {
            assert_eq!(mark(sql), sql);
        }
    }
}
