//! `SELECT … FROM … WHERE …`: plain, grouped (`aggregate.rs`) or with window functions (`window.rs`).

use super::{
    Relation, Writer,
    kind::{Column, Kind},
};

/// Columns of a result at most.
const MOST_ITEMS: usize = 6;

/// The items of a select list, and what stands behind its conditions.
pub(super) struct Items {
    /// The expressions, in order.
    pub(super) columns: Vec<Column>,
    /// `GROUP BY`, `HAVING`, `QUALIFY` and the like.
    pub(super) behind: String,
    /// About how many rows come out.
    pub(super) rows: f64,
    /// There is at most one row of the same values.
    pub(super) distinct: bool,
    /// The rows are of grouping sets.
    pub(super) sets: bool,
}

impl Writer<'_> {
    /// Writes a query without set operations. Its columns are named `c0`, `c1`, ….
    pub(super) fn select(&mut self, depth: usize) -> Relation {
        let from = self.from(depth);
        let filter = match !from.sets && self.choices.chance(40) {
            true => format!(" where {}", self.condition(&from.columns, depth)),
            false => String::new(),
        };
        let items = match self.choices.below(10) {
            0..4 => self.plain(&from, depth),
            4..8 => self.grouped(&from),
            _ => self.windowed(&from),
        };
        finish(&from, &filter, items)
    }

    /// Writes a query whose columns are of given types, without inexact ones.
    pub(super) fn select_of(&mut self, kinds: &[Kind], depth: usize) -> Relation {
        let from = self.from(depth);
        let filter = match !from.sets && self.choices.chance(40) {
            true => format!(" where {}", self.condition(&from.columns, depth)),
            false => String::new(),
        };
        let columns = kinds.iter().map(|kind| self.of_kind(&from.columns, *kind)).collect();
        let items = Items { columns, behind: String::new(), rows: from.rows, distinct: false, sets: false };
        finish(&from, &filter, items)
    }

    /// Writes an expression that a set operation may put beside another of a type: of the same one, for engines differ in
    /// what they make of two.
    fn of_kind(&mut self, scope: &[Column], kind: Kind) -> Column {
        let same: Vec<&Column> = scope.iter().filter(|column| column.kind == kind && !column.inexact).collect();
        if !same.is_empty() && self.choices.chance(60) {
            return (*self.choices.pick(&same)).clone();
        }
        Column::within(kind.literal(self.choices, true), kind, super::kind::SMALL)
    }

    fn plain(&mut self, from: &Relation, depth: usize) -> Items {
        let count = 1 + self.choices.below(MOST_ITEMS);
        let columns: Vec<Column> = (0..count).map(|_| self.item(&from.columns, depth)).collect();
        let distinct = self.choices.chance(15) && columns.iter().all(|column| !column.inexact);
        Items { columns, behind: String::new(), rows: from.rows, distinct, sets: false }
    }

    /// Writes one item: a column as it is, an expression, or a subquery's value.
    fn item(&mut self, scope: &[Column], depth: usize) -> Column {
        match self.choices.below(10) {
            0..5 => self.choices.pick(scope).clone(),
            9 if depth > 0 && self.choices.chance(40) => self.scalar(scope, depth - 1),
            _ => {
                let family = self.family(scope);
                self.expression(scope, family, 3)
            }
        }
    }
}

/// Puts the clauses together.
fn finish(from: &Relation, filter: &str, items: Items) -> Relation {
    let list: Vec<String> = items.columns.iter().enumerate().map(|(at, c)| format!("{} as c{at}", c.sql)).collect();
    let distinct = if items.distinct { "distinct " } else { "" };
    let sql = format!("select {distinct}{} from {}{filter}{}", list.join(", "), from.sql, items.behind);
    let name = |(at, column): (usize, Column)| Column { sql: format!("c{at}"), unique: false, ..column };
    let sets = items.sets || from.sets;
    let columns = items.columns.into_iter().enumerate().map(name).collect();
    Relation { sql, columns, rows: items.rows, sets }
}
