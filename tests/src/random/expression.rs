//! Expressions of each family of types.
//!
//! Arithmetic stays within bounds, so that no engine overflows where another, which evaluates in another order or a wider
//! type, does not. Engines divide integers differently and differ in what a division by zero is: integers are not divided, and
//! divisors are null instead of 0.

use super::{
    Family, Kind, Writer,
    kind::{BIGINT, Column, FAMILIES, SMALL},
};

/// Integers up to here are exact as floats, with room for sums of some thousand.
const LARGEST: f64 = 1e12;

impl Writer<'_> {
    /// Writes an expression of a family.
    pub(super) fn expression(&mut self, scope: &[Column], family: Family, depth: usize) -> Column {
        if depth == 0 || self.choices.chance(35) {
            return self.leaf(scope, family);
        }
        if self.choices.chance(20) {
            return self.conditional(scope, family, depth - 1);
        }
        match family {
            Family::Integer => self.integer(scope, depth - 1),
            Family::Float => self.float(scope, depth - 1),
            Family::Text => self.text(scope, depth - 1),
            Family::Date => self.date(scope, depth - 1),
            Family::Timestamp => self.timestamp(scope, depth - 1),
            Family::Decimal => self.decimal(scope, depth - 1),
            Family::Boolean => Column::exact(format!("({})", self.predicate(scope, depth - 1)), Kind::Boolean),
            Family::Opaque => self.leaf(scope, family),
        }
    }

    /// Chooses a family: mostly one that the scope has columns of.
    pub(super) fn family(&mut self, scope: &[Column]) -> Family {
        let there: Vec<Family> =
            FAMILIES.into_iter().filter(|f| scope.iter().any(|c| c.family() == *f && !c.inexact)).collect();
        let all = there.is_empty() || self.choices.chance(10);
        *self.choices.pick(if all { &FAMILIES } else { &there })
    }

    /// Chooses a column of a family.
    pub(super) fn column(&mut self, scope: &[Column], family: Family) -> Option<Column> {
        let fitting: Vec<&Column> = scope.iter().filter(|c| c.family() == family && !c.inexact).collect();
        if fitting.is_empty() { None } else { Some((*self.choices.pick(&fitting)).clone()) }
    }

    /// Writes a column of a family, or a literal where there is none.
    pub(super) fn leaf(&mut self, scope: &[Column], family: Family) -> Column {
        if !self.choices.chance(15)
            && let Some(column) = self.column(scope, family)
        {
            return column;
        }
        let kind = match family {
            Family::Integer => BIGINT,
            Family::Boolean => Kind::Boolean,
            Family::Float => Kind::Double,
            Family::Decimal => Kind::Decimal(9, 2),
            Family::Date => Kind::Date,
            Family::Timestamp => Kind::Timestamp,
            Family::Text => Kind::Text,
            Family::Opaque => Kind::Bytes,
        };
        let null = self.choices.chance(10);
        let sql = if null { format!("cast(null as {})", kind.name()) } else { kind.literal(self.choices, true) };
        Column::within(sql, kind, SMALL)
    }

    /// Writes an integer to compute with: a small one, as `bigint`. Literals are 64 bits wide in one engine and as narrow as
    /// their value in another, and results of narrow types are of different widths.
    fn operand(&mut self, scope: &[Column], depth: usize) -> Column {
        let drawn = self.expression(scope, Family::Integer, depth);
        if drawn.bound > LARGEST {
            return Column::within(BIGINT.literal(self.choices, true), BIGINT, SMALL);
        }
        let sql = if drawn.kind == BIGINT { drawn.sql } else { format!("cast({} as bigint)", drawn.sql) };
        Column::within(sql, BIGINT, drawn.bound)
    }

    fn integer(&mut self, scope: &[Column], depth: usize) -> Column {
        match self.choices.below(10) {
            0..4 => {
                let (left, right) = (self.operand(scope, depth), self.operand(scope, depth));
                let (a, b) = (&left.sql, &right.sql);
                let (sql, bound) = match self.choices.below(6) {
                    0 => (format!("({a} + {b})"), left.bound + right.bound),
                    1 => (format!("({a} - {b})"), left.bound + right.bound),
                    2 => (format!("({a} * {b})"), left.bound * right.bound),
                    3 => (format!("({a} % nullif({b}, 0))"), left.bound),
                    4 => (format!("(- {a})"), left.bound),
                    _ => (format!("abs({a})"), left.bound),
                };
                if bound > LARGEST { left } else { Column::within(sql, BIGINT, bound) }
            }
            4 => {
                let text = self.expression(scope, Family::Text, depth).sql;
                let name = self.choices.pick(&["character_length", "⟦octet_length|strlen⟧"]);
                Column::within(format!("cast({name}({text}) as bigint)"), BIGINT, SMALL * SMALL)
            }
            5 => {
                let (text, part) = (self.expression(scope, Family::Text, depth).sql, self.needle());
                Column::within(format!("cast(strpos({text}, {part}) as bigint)"), BIGINT, SMALL * SMALL)
            }
            6 => {
                let family = *self.choices.pick(&[Family::Date, Family::Timestamp]);
                let point = self.expression(scope, family, depth).sql;
                let field = self.choices.pick(&["year", "month", "day", "quarter", "doy", "dow"]);
                Column::within(format!("cast(extract({field} from {point}) as bigint)"), BIGINT, 1e4)
            }
            7 => {
                let truth = self.expression(scope, Family::Boolean, depth).sql;
                Column::within(format!("cast({truth} as bigint)"), BIGINT, 1.0)
            }
            8 => {
                let (left, right) = (self.operand(scope, depth), self.operand(scope, depth));
                // `^` and `xor` are different things in different engines.
                let operator = self.choices.pick(&["&", "|"]);
                let bound = 4.0 * left.bound.max(right.bound);
                Column::within(format!("({} {operator} {})", left.sql, right.sql), BIGINT, bound)
            }
            _ => {
                let number = self.small_float(scope, depth);
                // Casts of floats round in one engine and truncate in another: whole numbers are the same in both.
                Column::within(format!("cast(floor({}) as bigint)", number.sql), BIGINT, number.bound + 1.0)
            }
        }
    }

    /// Writes a float to compute with.
    fn small_float(&mut self, scope: &[Column], depth: usize) -> Column {
        let drawn = self.expression(scope, Family::Float, depth);
        if drawn.bound > LARGEST {
            return Column::within(Kind::Double.literal(self.choices, true), Kind::Double, SMALL);
        }
        let sql = if drawn.kind == Kind::Real { format!("cast({} as double)", drawn.sql) } else { drawn.sql };
        Column::within(sql, Kind::Double, drawn.bound)
    }

    fn float(&mut self, scope: &[Column], depth: usize) -> Column {
        let (left, right) = (self.small_float(scope, depth), self.small_float(scope, depth));
        let (a, b) = (&left.sql, &right.sql);
        // Adding 0.0 makes 0.0 of −0.0.
        let (sql, bound) = match self.choices.below(9) {
            0 => (format!("({a} + {b})"), left.bound + right.bound),
            1 => (format!("({a} - {b})"), left.bound + right.bound),
            2 if left.bound <= SMALL && right.bound <= SMALL => {
                (format!("({a} * {b} + 0.0e0)"), left.bound * right.bound)
            }
            // Rounded the same way everywhere, but sums of it depend on their order.
            3 => (format!("({a} / nullif({b}, 0.0e0) + 0.0e0)"), f64::INFINITY),
            4 => (format!("abs({a})"), left.bound),
            5 => (format!("(floor({a}) + 0.0e0)"), left.bound + 1.0),
            6 => (format!("(round({a}) + 0.0e0)"), left.bound + 1.0),
            7 => {
                let whole = self.operand(scope, depth);
                (format!("cast({} as double)", whole.sql), whole.bound)
            }
            _ => (format!("(ceil({a}) + 0.0e0)"), left.bound + 1.0),
        };
        Column::within(sql, Kind::Double, bound)
    }

    fn decimal(&mut self, scope: &[Column], depth: usize) -> Column {
        let draw = |writer: &mut Self| {
            let drawn = writer.leaf(scope, Family::Decimal);
            let narrow = matches!(drawn.kind, Kind::Decimal(..=18, _)) && drawn.bound <= SMALL;
            let literal = |writer: &mut Self| Kind::Decimal(9, 2).literal(writer.choices, true);
            if narrow { drawn } else { Column::within(literal(writer), Kind::Decimal(9, 2), SMALL) }
        };
        let (left, right) = (draw(self), draw(self));
        let (a, b) = (&left.sql, &right.sql);
        let sum = Kind::Decimal(24, 4);
        // Decimals are not divided: engines differ in the scale of a quotient.
        match self.choices.below(5) {
            0 => Column::within(format!("({a} + {b})"), sum, left.bound + right.bound),
            1 => Column::within(format!("({a} - {b})"), sum, left.bound + right.bound),
            2 => Column::within(format!("({a} * {b})"), Kind::Decimal(37, 8), f64::INFINITY),
            3 => Column::within(format!("abs({a})"), left.kind, left.bound),
            _ => {
                let whole = self.operand(scope, depth.min(1));
                Column::within(format!("cast({} as decimal(18,2))", whole.sql), Kind::Decimal(18, 2), whole.bound)
            }
        }
    }

    /// Writes a text to look for, as a literal.
    fn needle(&mut self) -> String {
        let needle = *self.choices.pick(&["'a'", "'b'", "'é'", "'字'", "' '", "'%'", "'ab'"]);
        needle.to_string()
    }

    fn text(&mut self, scope: &[Column], depth: usize) -> Column {
        let text = self.expression(scope, Family::Text, depth).sql;
        // Positions from 1 on: what lies before is different things.
        let (from, length) = (1 + self.choices.below(4), self.choices.below(5));
        let sql = match self.choices.below(14) {
            0 => format!("upper({text})"),
            1 => format!("lower({text})"),
            2 => format!("substr({text}, {from}, {length})"),
            3 => format!("substr({text}, {from})"),
            4 => format!("({text} || {})", self.expression(scope, Family::Text, depth).sql),
            5 => format!("concat({text}, {})", self.expression(scope, Family::Text, depth).sql),
            6 => format!("replace({text}, {}, 'xy')", self.needle()),
            7 => format!("trim({text})"),
            8 => format!("left({text}, {length})"),
            9 => format!("right({text}, {length})"),
            10 => format!("reverse({text})"),
            11 => format!("split_part({text}, {}, {from})", self.needle()),
            12 => format!("lpad({text}, {length}, 'xy')"),
            _ => {
                let whole = self.expression(scope, Family::Integer, depth).sql;
                format!("cast({whole} as varchar)")
            }
        };
        Column::exact(sql, Kind::Text)
    }

    /// Writes a date to compute with: not one at the end of the calendar.
    fn near(&mut self, scope: &[Column], family: Family, depth: usize) -> String {
        let drawn = self.expression(scope, family, depth);
        if drawn.bound.is_finite() { drawn.sql } else { Kind::Date.literal(self.choices, true) }
    }

    fn date(&mut self, scope: &[Column], depth: usize) -> Column {
        let date = self.near(scope, Family::Date, depth);
        let (sign, count) = (*self.choices.pick(&["+", "-"]), self.choices.below(40));
        // A date with an interval, and its start of a month, is a point in time in one engine and a date in another.
        let sql = match self.choices.below(4) {
            0 => format!("cast({date} {sign} interval '{count}' day as date)"),
            1 => format!("cast({date} {sign} interval '{count}' month as date)"),
            2 => {
                let field = self.choices.pick(&["month", "year", "quarter", "week"]);
                format!("cast(date_trunc('{field}', {date}) as date)")
            }
            _ => {
                let point = self.expression(scope, Family::Timestamp, depth).sql;
                format!("cast({point} as date)")
            }
        };
        // Some years further at most, and not at the calendar's end.
        Column::within(sql, Kind::Date, SMALL)
    }

    fn timestamp(&mut self, scope: &[Column], depth: usize) -> Column {
        let point = self.near(scope, Family::Timestamp, depth);
        let (sign, count) = (*self.choices.pick(&["+", "-"]), self.choices.below(100));
        let sql = match self.choices.below(3) {
            0 => {
                let unit = self.choices.pick(&["hour", "minute", "day"]);
                format!("(cast({point} as timestamp) {sign} interval '{count}' {unit})")
            }
            1 => {
                let field = self.choices.pick(&["hour", "day", "month", "year"]);
                format!("date_trunc('{field}', cast({point} as timestamp))")
            }
            _ => format!("cast({} as timestamp)", self.near(scope, Family::Date, depth)),
        };
        Column::within(sql, Kind::Timestamp, SMALL)
    }

    /// Writes what chooses between expressions of one family.
    fn conditional(&mut self, scope: &[Column], family: Family, depth: usize) -> Column {
        let first = self.expression(scope, family, depth);
        let second = self.expression(scope, family, depth);
        let (a, b) = (&first.sql, &second.sql);
        let sql = match self.choices.below(5) {
            0 => format!("coalesce({a}, {b})"),
            1 => format!("nullif({a}, {b})"),
            2 if family != Family::Boolean => {
                format!("{}({a}, {b})", self.choices.pick(&["greatest", "least"]))
            }
            3 => {
                let otherwise = if self.choices.chance(50) { format!(" else {b}") } else { String::new() };
                format!("case when {} then {a}{otherwise} end", self.predicate(scope, depth))
            }
            _ => {
                let tested = self.expression(scope, Family::Text, depth).sql;
                format!("case {tested} when {} then {a} when 'ab' then {b} else {a} end", self.needle())
            }
        };
        Column {
            kind: wider(first.kind, second.kind),
            ..Column::within(sql, first.kind, first.bound.max(second.bound))
        }
    }
}

/// Returns a type that holds the values of both, as far as this generator has to know.
fn wider(first: Kind, second: Kind) -> Kind {
    match (first, second) {
        _ if first == second => first,
        (Kind::Integer(..), _) => BIGINT,
        // Computed with as doubles only.
        (Kind::Real | Kind::Double, _) => Kind::Double,
        (Kind::Decimal(a, b), Kind::Decimal(c, d)) => Kind::Decimal((a - b).max(c - d) + b.max(d), b.max(d)),
        _ => first,
    }
}
