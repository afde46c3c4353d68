//! Completion of keywords, tables, columns and the shell's commands.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use reedline::{Completer, CompletionResult, Span, Suggestion};

use super::highlight::KEYWORDS;
use crate::{command::COMMANDS, statement::Runner};

/// The tables and columns to offer, shared with the editor; refreshed between statements.
#[derive(Clone, Default)]
pub struct Names {
    tables: Arc<Mutex<BTreeMap<String, Vec<String>>>>,
}

impl Names {
    /// Takes the session's tables; columns are asked for once per table.
    pub fn refresh(&self, runner: &Runner) {
        let mut known = self.tables.lock().unwrap_or_else(PoisonError::into_inner);
        let now: Vec<String> = runner.session.tables().into_iter().map(|t| t.name).collect();
        known.retain(|name, _| now.contains(name));
        for name in now {
            known.entry(name).or_insert_with_key(|name| {
                let columns = runner.session.describe(name).unwrap_or_default();
                columns.into_iter().map(|c| c.name).collect()
            });
        }
    }
}

/// Offers what may stand at the cursor.
pub struct SqlCompleter {
    names: Names,
}

impl SqlCompleter {
    /// Makes a completer over `names`.
    pub fn new(names: Names) -> Self {
        SqlCompleter { names }
    }
}

impl Completer for SqlCompleter {
    fn complete(&mut self, line: &str, position: usize) -> CompletionResult {
        let before = line.get(..position).unwrap_or(line);
        let start = before
            .rfind(|c: char| !(c.is_alphanumeric() || c == '_' || c == '.'))
            .map_or(0, |at| at + before[at..].chars().next().map_or(1, char::len_utf8));
        let word = &before[start..];
        let tables = self.names.tables.lock().unwrap_or_else(PoisonError::into_inner);
        let values = if word.starts_with('.') && start == 0 {
            COMMANDS.iter().map(|(name, ..)| (*name).to_owned()).filter(|name| name.starts_with(word)).collect()
        } else {
            candidates(word, &tables)
        };
        let suggestions: Vec<Suggestion> = values
            .into_iter()
            .map(|value| Suggestion {
                value,
                span: Span::new(start, position),
                append_whitespace: true,
                ..Suggestion::default()
            })
            .collect();
        CompletionResult::fresh(suggestions)
    }
}

/// Lists the names and keywords that begin with `word`, whatever the case.
fn candidates(word: &str, tables: &BTreeMap<String, Vec<String>>) -> Vec<String> {
    let begins = |name: &str, prefix: &str| {
        name.len() >= prefix.len()
            && name.is_char_boundary(prefix.len())
            && name[..prefix.len()].eq_ignore_ascii_case(prefix)
    };
    if let Some((table, prefix)) = word.rsplit_once('.') {
        let columns = tables.get(table).into_iter().flatten();
        return columns.filter(|c| begins(c, prefix)).map(|c| format!("{table}.{c}")).collect();
    }
    if word.is_empty() {
        return tables.keys().cloned().collect();
    }
    let columns = tables.values().flatten();
    let mut found: Vec<String> = tables.keys().chain(columns).filter(|name| begins(name, word)).cloned().collect();
    let lower = word.chars().all(|c| !c.is_uppercase());
    found.extend(KEYWORDS.iter().filter(|k| begins(k, word)).map(|k| match lower {
        true => k.to_lowercase(),
        false => (*k).to_owned(),
    }));
    found.sort();
    found.dedup();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_keywords_are_offered() {
        let tables = BTreeMap::from([("orders".to_owned(), vec!["o_key".to_owned(), "o_date".to_owned()])]);
        assert_eq!(candidates("o_", &tables), ["o_date", "o_key"]);
        assert_eq!(candidates("orders.o_k", &tables), ["orders.o_key"]);
        assert_eq!(candidates("sel", &tables), ["select"]);
        assert_eq!(candidates("SEL", &tables), ["SELECT"]);
        assert_eq!(candidates("ORD", &tables), ["ORDER", "orders"]);
        assert!(candidates("ü", &tables).is_empty());
    }
}
