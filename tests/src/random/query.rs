//! Whole queries: `WITH`, set operations, `ORDER BY` and `LIMIT`.

use super::{
    Family, Relation, Statement, Writer,
    kind::{Column, Kind},
};

/// How deep queries lie in queries.
const DEPTH: usize = 2;

impl Writer<'_> {
    /// Writes a statement.
    pub(super) fn top(&mut self) -> Statement {
        let mut with = Vec::new();
        if self.choices.chance(12) {
            for _ in 0..1 + self.choices.below(2) {
                let (name, query) = (self.name('r'), self.query(1));
                with.push(format!("{name} as ({})", query.sql));
                self.shared.push(Relation { sql: name, ..query });
            }
        }
        let query = self.query_of(DEPTH);
        let (order, clause) = self.order_and_limit(&query.columns);
        let with = if with.is_empty() { String::new() } else { format!("with {} ", with.join(", ")) };
        let inexact = query.columns.iter().map(|column| column.inexact).collect();
        Statement { sql: format!("{with}{}{clause}", query.sql), inexact, order }
    }

    /// Writes a query that lies in another one.
    pub(super) fn query(&mut self, depth: usize) -> Relation {
        let query = self.query_of(depth);
        // Some rows of an order that says which.
        if self.choices.chance(10) {
            let (_, clause) = self.order_and_limit(&query.columns);
            return Relation { sql: format!("{}{clause}", query.sql), ..query };
        }
        query
    }

    fn query_of(&mut self, depth: usize) -> Relation {
        let first = self.select(depth);
        if !self.choices.chance(12) || first.columns.iter().any(|column| column.inexact) {
            return first;
        }
        let kinds: Vec<Kind> = first.columns.iter().map(|column| column.kind).collect();
        let second = self.select_of(&kinds, depth.min(1));
        let operation = *self.choices.pick(&["union all", "union", "intersect", "except"]);
        let widen = |(left, right): (&Column, &Column)| Column {
            bound: left.bound.max(right.bound),
            ..Column::exact(left.sql.clone(), left.kind)
        };
        // The first query's expressions may have other types than the generator says; these are the types of the columns.
        let cast = |column: &Column| format!("cast({} as {}) as {}", column.sql, column.kind.name(), column.sql);
        let list = |query: &Relation| query.columns.iter().map(cast).collect::<Vec<_>>().join(", ");
        let columns: Vec<Column> = first.columns.iter().zip(&second.columns).map(widen).collect();
        let (left, right) = (self.name('u'), self.name('u'));
        let sql = format!(
            "select {} from ({}) {left} {operation} select {} from ({}) {right}",
            list(&first),
            first.sql,
            list(&second),
            second.sql
        );
        Relation { sql, columns, rows: first.rows + second.rows, sets: first.sets || second.sets }
    }

    /// Writes an order by some columns of a result, or by all and how many rows of it are kept: without all of them, which
    /// rows those are would be open.
    fn order_and_limit(&mut self, columns: &[Column]) -> (Vec<usize>, String) {
        let can_limit = columns.iter().all(|column| !column.inexact);
        let mut order: Vec<usize> = Vec::new();
        for _ in 0..*self.choices.pick(&[0, 0, 1, 2]) {
            let at = self.choices.below(columns.len());
            let sortable = !columns[at].inexact && columns[at].family() != Family::Boolean;
            if sortable && !order.contains(&at) {
                order.push(at);
            }
        }
        let limit = can_limit && self.choices.chance(25);
        if limit {
            let rest: Vec<usize> = (0..columns.len()).filter(|at| !order.contains(at)).collect();
            order.extend(rest);
        }
        if order.is_empty() {
            return (order, String::new());
        }
        let key = |at: &usize| {
            let (way, nulls) = (self.choices.pick(&["", " desc"]), self.choices.pick(&["last", "first"]));
            format!("{}{way} nulls {nulls}", at + 1)
        };
        let mut clause = format!(" order by {}", order.iter().map(key).collect::<Vec<_>>().join(", "));
        if limit {
            clause += &format!(" limit {}", self.choices.below(20));
            if self.choices.chance(30) {
                clause += &format!(" offset {}", self.choices.below(6));
            }
        }
        (order, clause)
    }
}
