//! Window functions: ranking, neighbours, aggregates over frames; named windows and `QUALIFY`.
//!
//! What depends on the order of rows that compare equal is ordered by all columns in scope, so that rows which still compare
//! equal are the same.

use super::{
    Family, Kind, Relation, Writer,
    kind::{BIGINT, Column},
    select::Items,
};

/// Columns of a relation beyond which its rows are not ordered by all of them.
const MOST_COLUMNS: usize = 10;

impl Writer<'_> {
    /// Writes columns and window functions over a relation's rows.
    pub(super) fn windowed(&mut self, from: &Relation) -> Items {
        let exact: Vec<Column> = from.columns.iter().filter(|column| !column.inexact).cloned().collect();
        // Other columns could tell rows apart that are ordered as one.
        let scope = if exact.is_empty() { from.columns.clone() } else { exact };
        let total = scope.len() == from.columns.len() && scope.len() <= MOST_COLUMNS;
        let mut columns: Vec<Column> =
            (0..1 + self.choices.below(2)).map(|_| self.choices.pick(&scope).clone()).collect();
        let mut behind = String::new();
        let mut named = None;
        // One at most that numbers rows: two could number equal rows differently.
        let mut total = total;
        for _ in 0..1 + self.choices.below(3) {
            let (function, numbers) = self.window(&scope, total, &mut named);
            total &= !numbers;
            columns.push(function);
        }
        if let Some((name, definition)) = named {
            behind += &format!(" window {name} as ({definition})");
        }
        if self.choices.chance(20) {
            let partition = self.partition(&scope);
            let order = self.order(&scope, false);
            let (name, most) = (*self.choices.pick(&["rank", "dense_rank"]), 1 + self.choices.below(4));
            behind += &format!(" qualify {name}() over ({partition}order by {order}) <= {most}");
        }
        Items { columns, behind, rows: from.rows, distinct: false, sets: false }
    }

    fn partition(&mut self, scope: &[Column]) -> String {
        let count = *self.choices.pick(&[0, 1, 1, 2]);
        let keys: Vec<String> = (0..count).map(|_| self.choices.pick(scope).sql.clone()).collect();
        if keys.is_empty() { String::new() } else { format!("partition by {} ", keys.join(", ")) }
    }

    /// Writes an order by some columns, or by these and all others. Where nulls go is written: each engine has its own
    /// opinion.
    fn order(&mut self, scope: &[Column], total: bool) -> String {
        let mut keys: Vec<String> =
            (0..1 + self.choices.below(2)).map(|_| self.choices.pick(scope).sql.clone()).collect();
        if total {
            keys.extend(scope.iter().map(|column| column.sql.clone()));
        }
        let mut known = Vec::new();
        keys.retain(|key| {
            !known.contains(key) && {
                known.push(key.clone());
                true
            }
        });
        let key = |key: &String| {
            let (way, nulls) = (self.choices.pick(&["", " desc"]), self.choices.pick(&["last", "first"]));
            format!("{key}{way} nulls {nulls}")
        };
        keys.iter().map(key).collect::<Vec<_>>().join(", ")
    }

    /// Writes one function with its window; tells whether it depends on the order of all rows.
    fn window(&mut self, scope: &[Column], total: bool, named: &mut Option<(String, String)>) -> (Column, bool) {
        let partition = self.partition(scope);
        // Functions from 5 on depend on the order of all rows.
        let way = self.choices.below(if total { 10 } else { 5 });
        let family = self.family(scope);
        let argument = self.leaf(scope, family);
        let (a, offset) = (&argument.sql, self.choices.below(4));
        let function = match way {
            0 => {
                let name = *self.choices.pick(&["rank", "dense_rank"]);
                let definition = format!("{partition}order by {}", self.order(scope, false));
                Column::within(self.over(&format!("{name}()"), &definition, named), BIGINT, 1e4)
            }
            1 => {
                let name = *self.choices.pick(&["percent_rank", "cume_dist"]);
                let definition = format!("{partition}order by {}", self.order(scope, false));
                Column::exact(self.over(&format!("{name}()"), &definition, named), Kind::Double)
            }
            2 => {
                let aggregate = self.framed(scope);
                Column { sql: format!("{} over ({})", aggregate.sql, partition.trim_end()), ..aggregate }
            }
            3 => {
                // Without a frame: all rows up to the last that compares equal.
                let aggregate = self.framed(scope);
                let definition = format!("{partition}order by {}", self.order(scope, false));
                Column { sql: self.over(&aggregate.sql, &definition, named), ..aggregate }
            }
            4 => self.ranged(scope, &partition),
            5 => {
                let definition = format!("{partition}order by {}", self.order(scope, true));
                Column::within(self.over("row_number()", &definition, named), BIGINT, 1e4)
            }
            6 => {
                let definition = format!("{partition}order by {}", self.order(scope, true));
                Column::within(self.over(&format!("ntile({})", offset + 1), &definition, named), BIGINT, 10.0)
            }
            7 => {
                let name = *self.choices.pick(&["lag", "lead"]);
                let definition = format!("{partition}order by {}", self.order(scope, true));
                let sql = self.over(&format!("{name}({a}, {offset})"), &definition, named);
                Column { sql, unique: false, ..argument.clone() }
            }
            8 => {
                let call = match self.choices.below(3) {
                    0 => format!("first_value({a})"),
                    1 => format!("last_value({a})"),
                    _ => format!("nth_value({a}, {})", offset + 1),
                };
                let (order, frame) = (self.order(scope, true), self.frame("rows"));
                Column {
                    sql: format!("{call} over ({partition}order by {order} {frame})"),
                    unique: false,
                    ..argument.clone()
                }
            }
            _ => {
                let aggregate = self.framed(scope);
                let (order, frame) = (self.order(scope, true), self.frame("rows"));
                Column { sql: format!("{} over ({partition}order by {order} {frame})", aggregate.sql), ..aggregate }
            }
        };
        (function, way >= 5)
    }

    /// Writes a function over a window, which may get a name that later functions use, too.
    fn over(&mut self, call: &str, definition: &str, named: &mut Option<(String, String)>) -> String {
        match named {
            Some((name, known)) if known == definition => format!("{call} over {name}"),
            None if self.choices.chance(20) => {
                let name = self.name('w');
                *named = Some((name.clone(), definition.to_string()));
                format!("{call} over {name}")
            }
            _ => format!("{call} over ({definition})"),
        }
    }

    /// Writes an aggregate that can slide over a frame.
    fn framed(&mut self, scope: &[Column]) -> Column {
        let family = *self.choices.pick(&[Family::Integer, Family::Float, Family::Decimal]);
        let drawn = self.leaf(scope, family);
        let small = drawn.bound.is_finite();
        let integer = self.leaf(scope, Family::Integer).sql;
        match self.choices.below(11) {
            6 => Column::exact(format!("median(cast({} as double))", drawn.sql), Kind::Double),
            7 => Column::within(format!("count(distinct {})", drawn.sql), BIGINT, 1e4),
            8 => {
                let name = self.choices.pick(&["bit_and", "bit_or", "bit_xor"]);
                Column::exact(format!("{name}(cast({integer} as bigint))"), BIGINT)
            }
            // Where the sides are constant, or nearly, engines differ in what a correlation is.
            9 if small => {
                let name = self.choices.pick(&["covar_pop", "regr_count", "regr_avgx"]);
                let sql = format!("{name}(cast({0} as double), cast({0} as double))", drawn.sql);
                Column { inexact: true, ..Column::exact(sql, Kind::Double) }
            }
            10 if small && family == Family::Integer => Column::exact(format!("sum(distinct {})", drawn.sql), BIGINT),
            0 => Column::within("count(*)", BIGINT, 1e4),
            1 => Column::within(format!("count({})", drawn.sql), BIGINT, 1e4),
            2 if small => {
                let kind = if family == Family::Integer { BIGINT } else { Kind::Double };
                let kind = if family == Family::Decimal { Kind::Decimal(38, 4) } else { kind };
                Column::exact(format!("sum({})", drawn.sql), kind)
            }
            3 if small && family != Family::Decimal => Column::exact(format!("avg({})", drawn.sql), Kind::Double),
            4 => Column { sql: format!("min({})", drawn.sql), unique: false, ..drawn },
            _ => Column { sql: format!("max({})", drawn.sql), unique: false, ..drawn },
        }
    }

    /// Writes an aggregate over a frame of values or of groups of equal rows.
    fn ranged(&mut self, scope: &[Column], partition: &str) -> Column {
        let aggregate = self.framed(scope);
        let small = |column: &&Column| column.family() == Family::Integer && column.bound.is_finite();
        let keys: Vec<&Column> = scope.iter().filter(small).collect();
        if let Some(sql) = self.ranged_by_time(scope, partition, &aggregate) {
            return Column { sql, ..aggregate };
        }
        if keys.is_empty() || self.choices.chance(40) {
            let (order, frame) = (self.order(scope, false), self.frame("groups"));
            return Column {
                sql: format!("{} over ({partition}order by {order} {frame})", aggregate.sql),
                ..aggregate
            };
        }
        let key = self.choices.pick(&keys).sql.clone();
        let (way, nulls) = (*self.choices.pick(&["", " desc"]), *self.choices.pick(&["last", "first"]));
        let frame = self.frame("range");
        // As wide as the distance, which is not everywhere fitted to a narrow key.
        let order = format!("cast({key} as bigint){way} nulls {nulls}");
        Column { sql: format!("{} over ({partition}order by {order} {frame})", aggregate.sql), ..aggregate }
    }

    /// Writes an aggregate over a range of dates, times or floats, sometimes, if there are any.
    fn ranged_by_time(&mut self, scope: &[Column], partition: &str, aggregate: &Column) -> Option<String> {
        let family = *self.choices.pick(&[Family::Integer, Family::Date, Family::Timestamp, Family::Float]);
        let units: &[&str] = match family {
            Family::Date => &["interval '3 days'", "interval '1 month'", "interval '2 years'"],
            Family::Timestamp => &["interval '90 minutes'", "interval '1 month 2 days'"],
            Family::Float => &["0.5", "2.25"],
            _ => return None,
        };
        // Of floats, those whose sums are exact: so is the end of the range.
        let exact = |column: &Column| family != Family::Float || column.bound.is_finite();
        let key = self.column(scope, family).filter(exact)?.sql;
        let (way, nulls) = (*self.choices.pick(&["", " desc"]), *self.choices.pick(&["last", "first"]));
        let bounds = [
            "unbounded preceding".to_string(),
            format!("{} preceding", self.choices.pick(units)),
            "current row".to_string(),
            format!("{} following", self.choices.pick(units)),
            "unbounded following".to_string(),
        ];
        let first = self.choices.below(3);
        let last = first.max(2) + self.choices.below(3);
        let frame = format!("range between {} and {}{}", bounds[first], bounds[last], self.exclusion());
        let cast = if family == Family::Float { format!("cast({key} as double)") } else { key };
        Some(format!("{} over ({partition}order by {cast}{way} nulls {nulls} {frame})", aggregate.sql))
    }

    /// Writes what a frame leaves out: mostly nothing. DataFusion does not know it, so that DuckDB alone is compared with.
    fn exclusion(&mut self) -> &'static str {
        if !self.choices.chance(15) {
            return "";
        }
        self.choices.pick::<&str>(&[" exclude current row", " exclude group", " exclude ties", " exclude no others"])
    }

    /// Writes a frame that does not end before it begins, which is an error in one engine and empty in another.
    fn frame(&mut self, unit: &str) -> String {
        let bounds = [
            "unbounded preceding",
            "2 preceding",
            "1 preceding",
            "current row",
            "1 following",
            "3 following",
            "unbounded following",
        ];
        let first = self.choices.below(6);
        let last = first.max(1) + self.choices.below(7 - first.max(1));
        format!("{unit} between {} and {}{}", bounds[first], bounds[last], self.exclusion())
    }
}
