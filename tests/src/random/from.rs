//! What is selected from: tables, subqueries, lists of values, queries of `WITH`, and joins of these.

use super::{
    Family, Kind, Relation, Writer,
    kind::{BIGINT, Column, SMALL},
};

/// Rows beyond which joins are not made: a statement should take milliseconds.
const MOST_ROWS: f64 = 4000.0;

impl Writer<'_> {
    /// Writes one relation with a name of its own, of not many more rows than given.
    pub(super) fn relation(&mut self, depth: usize, rows: f64) -> Relation {
        let way = self.choices.below(10);
        if way >= 8 && depth > 0 {
            let alias = self.name('q');
            let query = self.query(depth - 1);
            if query.rows <= rows {
                let relation = named(format!("({}) {alias}", query.sql), &alias, &query.columns, query.rows);
                return Relation { sets: query.sets, ..relation };
            }
        }
        if way == 7 && !self.shared.is_empty() {
            let shared = self.choices.below(self.shared.len());
            let (alias, shared) = (self.name('s'), self.shared[shared].clone());
            if shared.rows <= rows {
                let relation = named(format!("{} {alias}", shared.sql), &alias, &shared.columns, shared.rows);
                return Relation { sets: shared.sets, ..relation };
            }
        }
        if way == 6 && self.choices.chance(30) {
            return self.values();
        }
        let (tables, alias) = (self.tables, self.name('a'));
        let table = self.choices.pick(tables);
        named(format!("{} {alias}", table.name), &alias, &table.columns, table.rows as f64)
    }

    fn values(&mut self) -> Relation {
        let alias = self.name('v');
        let row = |writer: &mut Self| {
            let number = BIGINT.literal(writer.choices, true);
            format!("({number}, {})", Kind::Text.literal(writer.choices, true))
        };
        let rows: Vec<String> = (0..1 + self.choices.below(3)).map(|_| row(self)).collect();
        let columns = [Column::within("n", BIGINT, SMALL), Column::exact("s", Kind::Text)];
        named(format!("(values {}) {alias}(n, s)", rows.join(", ")), &alias, &columns, rows.len() as f64)
    }

    /// Writes what stands behind `FROM`: a relation, or a join of some.
    pub(super) fn from(&mut self, depth: usize) -> Relation {
        let mut joined = self.relation(depth, MOST_ROWS / 4.0);
        while self.choices.chance(35) && joined.columns.len() < 24 {
            joined = self.join(joined, depth);
        }
        joined
    }

    fn join(&mut self, left: Relation, depth: usize) -> Relation {
        let right = self.relation(depth.min(1), 100.0);
        let both: Vec<Column> = left.columns.iter().chain(&right.columns).cloned().collect();
        let product = left.rows * right.rows.max(1.0);
        // One row of the other side at most for each of a key.
        let (on, rows) = self.equality(&left.columns, &right.columns);
        let fits = |rows: f64| rows <= MOST_ROWS;
        let sets = left.sets || right.sets;
        let way = self.choices.below(10);
        if way == 7
            && let Some(nearest) = self.asof(&left, &right)
        {
            return nearest;
        }
        let (kind, on, rows) = match way {
            9 if fits(product) => ("cross join", String::new(), product),
            8 if fits(product) && !sets => ("join", format!(" on {}", self.predicate(&both, 1)), product),
            _ => {
                let rows = if rows { left.rows + right.rows } else { product / 2.0 };
                let kind = *self.choices.pick(&["join", "left join", "join", "right join", "full join", "left join"]);
                // Full joins with further conditions are not for every engine.
                let further = match kind != "full join" && !sets && self.choices.chance(20) {
                    true => format!(" and {}", self.predicate(&both, 1)),
                    false => String::new(),
                };
                (kind, format!(" on {on}{further}"), rows)
            }
        };
        if !fits(rows) {
            return left;
        }
        // Keys are not unique any more, and outer joins make nulls.
        let columns = both.into_iter().map(|column| Column { unique: false, ..column }).collect();
        Relation { sql: format!("{} {kind} {}{on}", left.sql, right.sql), columns, rows, sets }
    }

    /// Writes an ASOF join, if the sides have columns to compare. Of rows that are as near, each engine takes the one it likes: there is
    /// one of each.
    fn asof(&mut self, left: &Relation, right: &Relation) -> Option<Relation> {
        let ordered = [Family::Integer, Family::Date, Family::Timestamp, Family::Decimal];
        let pairs: Vec<(&Column, &Column)> = left
            .columns
            .iter()
            .flat_map(|l| right.columns.iter().map(move |r| (l, r)))
            .filter(|(l, r)| l.kind == r.kind && !l.inexact && !r.inexact && ordered.contains(&l.family()))
            .collect();
        if pairs.is_empty() {
            return None;
        }
        let (near, key) = (*self.choices.pick(&pairs), *self.choices.pick(&pairs));
        let keys = if self.choices.chance(75) { vec![("k", key)] } else { Vec::new() };
        let operator = *self.choices.pick(&[">=", ">", "<=", "<"]);
        let kind = *self.choices.pick(&["asof join", "asof left join"]);
        let alias = self.name('n');
        let (mut columns, mut held, mut on) = (left.columns.clone(), Vec::new(), Vec::new());
        for (name, (l, r)) in keys.into_iter().chain([("n", near)]) {
            held.push(format!("{} {name}", r.sql));
            on.push(format!("{} {} {alias}.{name}", l.sql, if name == "n" { operator } else { "=" }));
            columns.push(Column { sql: format!("{alias}.{name}"), unique: false, ..r.clone() });
        }
        let from = format!("(select distinct {} from {}) {alias}", held.join(", "), right.sql);
        let sql = format!("{} {kind} {from} on {}", left.sql, on.join(" and "));
        Some(Relation { sql, columns, rows: left.rows, sets: left.sets || right.sets })
    }

    /// Writes one or two equalities between columns of both sides; tells whether one of them is a key.
    fn equality(&mut self, left: &[Column], right: &[Column]) -> (String, bool) {
        let mut texts = Vec::new();
        let mut key = false;
        let count = if self.choices.chance(15) { 2 } else { 1 };
        for _ in 0..count {
            let family = *self.choices.pick(&[
                Family::Integer,
                Family::Text,
                Family::Date,
                Family::Decimal,
                Family::Float,
                Family::Boolean,
                Family::Timestamp,
            ]);
            let pairs: Vec<(&Column, &Column)> = left
                .iter()
                .flat_map(|l| right.iter().map(move |r| (l, r)))
                .filter(|(l, r)| l.family() == family && r.family() == family && !l.inexact && !r.inexact)
                // Floats of different widths are compared as one or as the other.
                .filter(|(l, r)| family != Family::Float || l.kind == r.kind)
                .collect();
            if pairs.is_empty() {
                continue;
            }
            let (l, r) = *self.choices.pick(&pairs);
            key |= l.unique || r.unique;
            texts.push(format!("{} = {}", l.sql, r.sql));
        }
        if texts.is_empty() {
            // Every relation has something to count by, if only a literal.
            let (l, r) = (self.leaf(left, Family::Integer), self.leaf(right, Family::Integer));
            key = false;
            texts.push(format!("{} = {}", l.sql, r.sql));
        }
        (texts.join(" and "), key)
    }
}

/// Makes a relation of something with an alias.
pub(super) fn named(sql: String, alias: &str, columns: &[Column], rows: f64) -> Relation {
    let columns = columns.iter().map(|c| Column { sql: format!("{alias}.{}", c.sql), ..c.clone() }).collect();
    Relation { sql, columns, rows, sets: false }
}
