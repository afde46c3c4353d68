//! Conditions: comparisons within a family of types, three-valued logic, patterns, lists, and what subqueries answer.

use super::{Family, Writer, kind::Column};

impl Writer<'_> {
    /// Writes a condition.
    pub(super) fn predicate(&mut self, scope: &[Column], depth: usize) -> String {
        let operators = ["=", "<", "<>", ">", "<=", ">=", "is distinct from", "is not distinct from"];
        let family = self.family(scope);
        match self.choices.below(if depth == 0 { 6 } else { 12 }) {
            0 | 1 => {
                let left = self.comparable(scope, family, depth);
                let operator = *self.choices.pick(&operators);
                // In parentheses: behind `IS DISTINCT FROM`, one parser takes all of what follows.
                format!("({} {operator} {})", left.sql, self.expression(scope, left.family(), depth.min(1)).sql)
            }
            2 => {
                let tested = self.comparable(scope, family, depth).sql;
                format!("{tested} is {}null", self.choices.pick(&["not ", ""]))
            }
            3 => {
                let tested = self.comparable(scope, family, 0);
                let not = self.choices.pick(&["", "not "]);
                let values: Vec<String> =
                    (0..1 + self.choices.below(4)).map(|_| self.leaf(&[], tested.family()).sql).collect();
                format!("{} {not}in ({})", tested.sql, values.join(", "))
            }
            4 => {
                let tested = self.comparable(scope, family, depth);
                let (low, high) = (self.leaf(scope, tested.family()).sql, self.leaf(scope, tested.family()).sql);
                let not = self.choices.pick(&["", "not "]);
                format!("{} {not}between {low} and {high}", tested.sql)
            }
            5 => {
                let text = self.expression(scope, Family::Text, depth).sql;
                let pattern = self.choices.pick(&["%", "a%", "%b", "_", "%a%", "a_b", "", "%é%", "%字", "_%_", "ab"]);
                let operator = self.choices.pick(&["like", "not like", "ilike"]);
                format!("{text} {operator} '{pattern}'")
            }
            6 => format!("({} and {})", self.predicate(scope, depth - 1), self.predicate(scope, depth - 1)),
            7 => format!("({} or {})", self.predicate(scope, depth - 1), self.predicate(scope, depth - 1)),
            8 => format!("(not ({}))", self.predicate(scope, depth - 1)),
            9 => {
                let truth = self.predicate(scope, depth - 1);
                let is = self.choices.pick(&["true", "not true", "false", "not false"]);
                format!("(({truth}) is {is})")
            }
            10 => {
                let text = self.expression(scope, Family::Text, depth).sql;
                let part = self.choices.pick(&["'a'", "'é'", "''", "' '"]);
                format!("starts_with({text}, {part})")
            }
            _ => self.expression(scope, Family::Boolean, 0).sql,
        }
    }

    /// Writes what a condition compares: now and then a column that can only be compared.
    fn comparable(&mut self, scope: &[Column], family: Family, depth: usize) -> Column {
        let opaque: Vec<&Column> = scope.iter().filter(|column| column.family() == Family::Opaque).collect();
        if !opaque.is_empty() && self.choices.chance(8) {
            // The other side is of this family, and of this type: there are no literals of unsigned 64 bits.
            let column = (*self.choices.pick(&opaque)).clone();
            return Column::exact(format!("({} = {})", column.sql, column.sql), super::Kind::Boolean);
        }
        self.expression(scope, family, depth)
    }

    /// Writes conditions on several things, of which a subquery may be one.
    pub(super) fn condition(&mut self, scope: &[Column], depth: usize) -> String {
        if depth > 0 && self.choices.chance(25) {
            let asked = self.subquery_condition(scope, depth - 1);
            return if self.choices.chance(40) { format!("{asked} and {}", self.predicate(scope, 1)) } else { asked };
        }
        self.predicate(scope, 2)
    }
}
