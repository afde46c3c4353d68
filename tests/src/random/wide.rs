//! Joins of many tables, as a chain, a star or a cycle.

use super::{Statement, Writer, from::named, kind::Column};

/// Tables of a join at most.
const MOST_TABLES: usize = 40;

impl Writer<'_> {
    /// Writes a join of up to 40 tables by their keys, so that its rows stay few.
    pub(super) fn wide_join(&mut self) -> Statement {
        // Mostly some ten: planning takes more than running.
        let most = *self.choices.pick(&[6, 8, 10, 12, 16, 24, MOST_TABLES]);
        let count = 2 + self.choices.below(most - 1);
        let shape = self.choices.below(3);
        let tables = self.tables;
        let mut aliases: Vec<String> = Vec::new();
        let mut columns: Vec<Column> = Vec::new();
        let mut sql = String::new();
        for at in 0..count {
            let (table, alias) = (self.choices.pick(tables), self.name('a'));
            let relation = named(format!("{} {alias}", table.name), &alias, &table.columns, table.rows as f64);
            columns.extend(relation.columns);
            if at == 0 {
                sql = relation.sql;
            } else {
                let other = if shape == 1 { 0 } else { at - 1 };
                let kind = *self.choices.pick(&["join", "join", "join", "left join"]);
                sql += &format!(" {kind} {} on {alias}.k = {}.k", relation.sql, aliases[other]);
                if shape == 2 && at + 1 == count && at > 1 {
                    sql += &format!(" and {alias}.k = {}.k", aliases[0]);
                }
            }
            aliases.push(alias);
        }
        let filter = match self.choices.chance(60) {
            true => format!(" where {}", self.predicate(&columns, 1)),
            false => String::new(),
        };
        let items: Vec<Column> = (0..1 + self.choices.below(4)).map(|_| self.choices.pick(&columns).clone()).collect();
        let list: Vec<String> = items.iter().enumerate().map(|(at, item)| format!("{} as c{at}", item.sql)).collect();
        let inexact = vec![false; items.len()];
        let sql = format!("select {} from {sql}{filter}", list.join(", "));
        Statement { sql, inexact, order: Vec::new() }
    }
}
