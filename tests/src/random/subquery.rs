//! Subqueries in conditions and as values: `EXISTS`, `IN`, and scalar ones of one row, correlated or not.

use super::{
    Family, Writer,
    kind::{BIGINT, Column},
};

impl Writer<'_> {
    /// Writes a condition on the rows of a subquery.
    pub(super) fn subquery_condition(&mut self, scope: &[Column], depth: usize) -> String {
        let inner = self.relation(depth, 60.0);
        let not = *self.choices.pick(&["", "not "]);
        let tie = self.tie(&inner.columns, scope);
        let further = if self.choices.chance(50) { self.predicate(&inner.columns, 1) } else { "true".into() };
        match self.choices.below(3) {
            0 => format!("{not}exists (select 1 from {} where {tie} and {further})", inner.sql),
            1 => {
                let family = self.family(scope);
                // Columns: that a constant is not among values of which one is null, or that null is not, DataFusion 55 takes for true.
                let (tested, found) = (self.column(scope, family), self.column(&inner.columns, family));
                let (Some(tested), Some(found)) = (tested, found) else { return self.predicate(scope, 1) };
                let tie = if self.choices.chance(30) { format!("{tie} and {further}") } else { further };
                format!("{} {not}in (select {} from {} where {tie})", tested.sql, found.sql, inner.sql)
            }
            _ => {
                let value = self.scalar(scope, depth);
                let operator = *self.choices.pick(&["<", "=", ">=", "<>"]);
                format!("{} {operator} {}", self.leaf(scope, Family::Integer).sql, value.sql)
            }
        }
    }

    /// Writes a condition that ties rows of a subquery to one outside, mostly by equal values.
    fn tie(&mut self, inner: &[Column], outer: &[Column]) -> String {
        if self.choices.chance(25) {
            return "true".into();
        }
        let family = *self.choices.pick(&[Family::Integer, Family::Text, Family::Date]);
        let find = |columns: &[Column]| -> Vec<String> {
            let of_family = columns.iter().filter(|c| c.family() == family && !c.inexact);
            of_family.map(|column| column.sql.clone()).collect()
        };
        let (inner, outer) = (find(inner), find(outer));
        if inner.is_empty() || outer.is_empty() {
            return "true".into();
        }
        let operator = *self.choices.pick(&["=", "=", "=", "<", ">=", "<>", "is not distinct from"]);
        format!("({} {operator} {})", self.choices.pick(&inner), self.choices.pick(&outer))
    }

    /// Writes a subquery that gives one number: an aggregate over all of its rows, or the first of them.
    pub(super) fn scalar(&mut self, scope: &[Column], depth: usize) -> Column {
        let inner = self.relation(depth.min(1), 60.0);
        let tie = self.tie(&inner.columns, scope);
        let aggregate = match self.choices.below(4) {
            3 => {
                let (value, last) =
                    (self.leaf(&inner.columns, Family::Integer).sql, self.choices.pick(&["first", "last"]));
                let sql =
                    format!("(select {value} from {} where {tie} order by {value} nulls {last} limit 1)", inner.sql);
                return Column::exact(sql, BIGINT);
            }
            0 => "count(*)".to_string(),
            1 => format!("max({})", self.leaf(&inner.columns, Family::Integer).sql),
            _ => format!("min({})", self.leaf(&inner.columns, Family::Integer).sql),
        };
        Column::exact(format!("(select {aggregate} from {} where {tie})", inner.sql), BIGINT)
    }
}
