//! `GROUP BY` with its forms (`ROLLUP`, `CUBE`, `GROUPING SETS`), aggregates and `HAVING`.

use super::{
    Family, Kind, Relation, Writer,
    kind::{BIGINT, Column},
    select::Items,
};

/// The most rows that a sum goes over, as far as its bound matters.
const ROWS: f64 = 4000.0;

impl Writer<'_> {
    /// Writes groups of a relation's rows and aggregates over each.
    pub(super) fn grouped(&mut self, from: &Relation) -> Items {
        let exact: Vec<Column> = from.columns.iter().filter(|column| !column.inexact).cloned().collect();
        let count = if exact.is_empty() { 0 } else { self.choices.below(4) };
        let sets = count > 0 && self.choices.chance(25);
        let mut keys: Vec<Column> = Vec::new();
        for _ in 0..count {
            let mut key = self.choices.pick(&exact).clone();
            // A literal as a key would be a position; sets are of columns.
            if !sets && self.choices.chance(20) {
                let family = self.family(&from.columns);
                let drawn = self.expression(&from.columns, family, 2);
                if from.columns.iter().any(|column| mentions(&drawn.sql, &column.sql)) {
                    key = drawn;
                }
            }
            if !keys.iter().any(|known| known.sql == key.sql) {
                keys.push(key);
            }
        }
        let mut columns = keys.clone();
        let names: Vec<String> = keys.iter().map(|key| key.sql.clone()).collect();
        let (clause, factor) = if sets { self.sets(&names, &mut columns) } else { (names.join(", "), 1.0) };
        for _ in 0..self.choices.below(4) + usize::from(keys.is_empty()) {
            let aggregate = self.aggregate(&from.columns);
            columns.push(aggregate);
        }
        let mut behind = if clause.is_empty() { String::new() } else { format!(" group by {clause}") };
        if self.choices.chance(20) {
            let (least, operator) = (self.choices.below(4), *self.choices.pick(&[">=", "<", "<>"]));
            behind += &format!(" having count(*) {operator} {least}");
            if self.choices.chance(30) {
                let aggregate = self.aggregate(&from.columns);
                if !aggregate.inexact {
                    behind += &format!(" and {} is not null", aggregate.sql);
                }
            }
        }
        let rows = if keys.is_empty() { 1.0 } else { (from.rows * factor).max(1.0) };
        Items { columns, behind, rows, distinct: false, sets }
    }

    /// Writes sets of keys, and adds `grouping` of one to the items; returns how many sets there are, too.
    fn sets(&mut self, keys: &[String], columns: &mut Vec<Column>) -> (String, f64) {
        // Engines give the keys of sets other types than the columns have, or none where a set leaves a key out.
        for column in columns.iter_mut() {
            column.unique = false;
        }
        if self.choices.chance(50) {
            let key = self.choices.pick(keys);
            columns.push(Column::within(format!("grouping({key})"), Kind::Integer(32, true), 1.0));
        }
        let all = keys.join(", ");
        match self.choices.below(3) {
            0 => (format!("rollup({all})"), keys.len() as f64 + 1.0),
            1 => (format!("cube({all})"), 2f64.powi(keys.len() as i32)),
            _ => {
                let count = 1 + self.choices.below(3);
                let subset = |writer: &mut Self| {
                    let kept: Vec<&str> =
                        keys.iter().filter(|_| writer.choices.chance(50)).map(String::as_str).collect();
                    format!("({})", kept.join(", "))
                };
                let mut sets: Vec<String> = vec![format!("({all})")];
                sets.extend((0..count).map(|_| subset(self)));
                (format!("grouping sets ({})", sets.join(", ")), count as f64 + 1.0)
            }
        }
    }

    /// Writes an aggregate over a relation's rows, perhaps of some of them.
    fn aggregate(&mut self, scope: &[Column]) -> Column {
        let mut aggregate = self.bare_aggregate(scope);
        if self.choices.chance(15) {
            aggregate.sql += &format!(" filter (where {})", self.predicate(scope, 1));
        }
        aggregate
    }

    fn bare_aggregate(&mut self, scope: &[Column]) -> Column {
        let distinct = *self.choices.pick(&["", "", "", "distinct "]);
        match self.choices.below(15) {
            0 => Column::within("count(*)", BIGINT, ROWS),
            1 => {
                let family = self.family(scope);
                let counted = self.expression(scope, family, 1).sql;
                Column::within(format!("count({distinct}{counted})"), BIGINT, ROWS)
            }
            2 | 3 => {
                // Truth values have no least one in every engine.
                let families = [Family::Integer, Family::Text, Family::Float, Family::Date, Family::Decimal];
                let family = *self.choices.pick(&families);
                let drawn = self.expression(scope, family, 1);
                let name = self.choices.pick(&["min", "max"]);
                Column { sql: format!("{name}({})", drawn.sql), unique: false, ..drawn }
            }
            4 | 5 => {
                let drawn = self.summed(scope);
                let bound = drawn.bound * ROWS;
                let bound = if bound > 1e12 { f64::INFINITY } else { bound };
                let kind = match drawn.kind {
                    Kind::Integer(..) => BIGINT,
                    Kind::Decimal(_, scale) => Kind::Decimal(38, scale),
                    _ => Kind::Double,
                };
                // Sums of integers have more bits in one engine than in another.
                let sql = format!("sum({distinct}{})", drawn.sql);
                match kind {
                    BIGINT => Column::within(sql, BIGINT, bound),
                    _ => Column::within(sql, kind, if kind == Kind::Double { bound } else { f64::INFINITY }),
                }
            }
            6 => {
                let drawn = self.summed(scope);
                // Averages of decimals have more digits in one engine than in another; of floats, they are exact sums divided.
                let inexact = drawn.family() == Family::Decimal;
                Column { inexact, ..Column::exact(format!("avg({distinct}{})", drawn.sql), Kind::Double) }
            }
            7 => {
                let name = self.choices.pick(&["bool_and", "bool_or"]);
                Column::exact(format!("{name}({})", self.predicate(scope, 1)), Kind::Boolean)
            }
            8 => {
                let name = self.choices.pick(&["stddev_samp", "stddev_pop", "var_samp", "var_pop"]);
                let drawn = self.summed(scope).sql;
                inexact(format!("{name}(cast({drawn} as double))"))
            }
            9 => {
                let name = self.choices.pick(&["corr", "covar_pop", "covar_samp", "regr_slope", "regr_count"]);
                let (a, b) = (self.summed(scope).sql, self.summed(scope).sql);
                inexact(format!("{name}(cast({a} as double), cast({b} as double))"))
            }
            10 => {
                // Of integers, the mean of two in the middle is rounded or not.
                let drawn = self.summed(scope).sql;
                Column::exact(format!("median(cast({drawn} as double))"), Kind::Double)
            }
            11 => {
                // An order by a literal is refused by one engine.
                let Some(text) = self.column(scope, Family::Text).map(|column| column.sql) else {
                    return Column::within("count(*)", BIGINT, ROWS);
                };
                Column::exact(format!("string_agg({text}, ',' order by {text})"), Kind::Text)
            }
            13 => {
                let family = *self.choices.pick(&[Family::Integer, Family::Text, Family::Float, Family::Date]);
                let drawn = self.expression(scope, family, 1);
                let fraction = *self.choices.pick(&["0.5", "0.0", "0.1", "0.75", "1.0"]);
                Column { sql: format!("quantile_disc({distinct}{}, {fraction})", drawn.sql), unique: false, ..drawn }
            }
            12 => {
                let name = self.choices.pick(&["bit_and", "bit_or", "bit_xor"]);
                let drawn = self.leaf(scope, Family::Integer).sql;
                Column::exact(format!("{name}(cast({drawn} as bigint))"), BIGINT)
            }
            _ => {
                // The value of the first row by itself, of equal ones any.
                let family = self.family(scope);
                let Some(drawn) = self.column(scope, family) else {
                    return Column::within("count(*)", BIGINT, ROWS);
                };
                let (name, order) = (*self.choices.pick(&["first", "last"]), *self.choices.pick(&["", " desc"]));
                let sql = format!("⟦{name}_value|{name}⟧({0} order by {0}{order} nulls last)", drawn.sql);
                Column { sql, unique: false, ..drawn }
            }
        }
    }

    /// Writes a number whose sums are exact in every order.
    fn summed(&mut self, scope: &[Column]) -> Column {
        let family = *self.choices.pick(&[Family::Integer, Family::Float, Family::Decimal]);
        let drawn = self.expression(scope, family, 1);
        if drawn.bound.is_finite() {
            return drawn;
        }
        Column::within(BIGINT.literal(self.choices, true), BIGINT, super::kind::SMALL)
    }
}

fn inexact(sql: String) -> Column {
    Column { inexact: true, ..Column::exact(sql, Kind::Double) }
}

/// Tells whether a text names a column: as a whole word.
fn mentions(text: &str, column: &str) -> bool {
    let part = |c: char| c.is_alphanumeric() || c == '_' || c == '.';
    text.match_indices(column).any(|(at, _)| {
        let (before, behind) = (&text[..at], &text[at + column.len()..]);
        !before.ends_with(part) && !behind.starts_with(part)
    })
}
