//! Fields of dates and times, and the starts of those fields. Timestamps of other zones than UTC are the
//! CPU's.

use tandem_column::{Result, TimeUnit, Type};
use tandem_pipeline::{
    ArithmeticOperator, DateField, Expr, Overflow, Value, range::Range, scalar::date::days_from_civil,
};

use super::{
    arithmetic::relation,
    term::{Integer, Term, Width, either, unsupported},
};
use crate::kernel::Generator;

/// Seconds in a day.
pub(super) const DAY: i64 = 86_400;

/// An interval that is the same for all rows.
pub(super) struct Interval {
    months: i64,
    days: i64,
    nanoseconds: i64,
}

impl Interval {
    /// Reads a literal; negates it for a subtraction.
    pub(super) fn of(expr: &Expr, negate: bool) -> Option<Interval> {
        let Expr::Literal(Value::Interval { months, days, nanoseconds }, _) = expr else { return None };
        let sign = if negate { -1 } else { 1 };
        let (months, days) = (i64::from(*months) * sign, i64::from(*days) * sign);
        // More months than the calendar has leave it, and the device's 32 bits.
        let known = months.abs() < 1 << 23;
        Some(Interval { months, days, nanoseconds: nanoseconds.checked_mul(sign)? }).filter(|_| known)
    }
}

/// Returns the days that have fields: of the years that Arrow's calendar covers.
fn calendar() -> Range {
    Range::new(days_from_civil(-262_143, 1, 1).into(), days_from_civil(262_142, 12, 31).into())
}

impl Generator<'_> {
    pub(super) fn extract(&mut self, field: DateField, input: &Expr) -> Result<Term> {
        let input = self.expression(input)?;
        let value = input.integer()?;
        match &input.kind {
            Type::Date => match of_time(field) {
                // A date is midnight.
                Some(_) => self.field("0".into(), input.null),
                None => self.date_field(field, value, input.null),
            },
            Type::Time(unit) => match of_time(field) {
                Some((seconds, modulus)) => self.time_field(value, *unit, seconds, modulus, input.null),
                None => self.field("0".into(), Some("1".into())),
            },
            kind @ Type::Timestamp(unit, _) if is_utc(kind) => {
                let days = self.floor_divide(&value, DAY * unit.per_second());
                match of_time(field) {
                    Some((seconds, modulus)) => {
                        let null = self.outside_calendar(&days, input.null);
                        self.time_field(value, *unit, seconds, modulus, null)
                    }
                    None => self.date_field(field, days, input.null),
                }
            }
            kind => unsupported(format!("the field {field:?} of {kind}")),
        }
    }

    fn field(&mut self, value: String, null: Option<String>) -> Result<Term> {
        self.keep("i32", &value, null, Type::Int32)
    }

    /// Returns a field of a day; null outside the calendar.
    fn date_field(&mut self, field: DateField, days: Integer, null: Option<String>) -> Result<Term> {
        let name = match field {
            DateField::Year => "year_of",
            DateField::Quarter => "quarter_of",
            DateField::Month => "month_of",
            DateField::Week => "week_of",
            DateField::Day => "day_of_month",
            DateField::DayOfWeek => "day_of_week",
            DateField::DayOfYear => "day_of_year",
            DateField::Hour | DateField::Minute | DateField::Second => return self.field("0".into(), null),
        };
        let null = self.outside_calendar(&days, null);
        self.field(format!("{name}((i32){})", days.value), null)
    }

    /// Returns how many times `seconds` fit the time of day, modulo `modulus`.
    fn time_field(
        &mut self,
        value: Integer,
        unit: TimeUnit,
        seconds: i64,
        modulus: i64,
        null: Option<String>,
    ) -> Result<Term> {
        let unit = seconds * unit.per_second();
        self.field(format!("(i32)floor_remainder(floor_divide({}, {unit}L), {modulus})", value.value), null)
    }

    /// Adds to a null flag that a day is outside the calendar.
    fn outside_calendar(&mut self, days: &Integer, null: Option<String>) -> Option<String> {
        let outside = is_outside(days);
        self.flag(either([null, outside]))
    }

    /// Leaves rows with days outside the calendar to the CPU.
    pub(super) fn in_calendar(&mut self, days: Integer, null: Option<&String>) -> Integer {
        match is_outside(&days) {
            None => days,
            Some(outside) => {
                self.fail_if(&outside, null);
                Integer::new(format!("(i32){}", days.value), calendar())
            }
        }
    }

    /// Divides by a positive number, toward −∞.
    pub(super) fn floor_divide(&mut self, value: &Integer, by: i64) -> Integer {
        if by == 1 {
            return value.clone();
        }
        let range = Range::new(value.range.low.div_euclid(by.into()), value.range.high.div_euclid(by.into()));
        let divided = self.text.define(Width::of(range).c(), &format!("floor_divide({}, {by}L)", value.value));
        Integer::new(divided, range)
    }

    pub(super) fn truncate(&mut self, field: DateField, input: &Expr) -> Result<Term> {
        let input = self.expression(input)?;
        let value = input.integer()?;
        let per_second = match &input.kind {
            Type::Date => None,
            Type::Time(unit) => Some(unit.per_second()),
            kind @ Type::Timestamp(unit, _) if is_utc(kind) => Some(unit.per_second()),
            kind => return unsupported(format!("truncating {kind}")),
        };
        let name = match field {
            DateField::Year => Some("start_of_year"),
            DateField::Quarter => Some("start_of_quarter"),
            DateField::Month => Some("start_of_month"),
            DateField::Week => Some("start_of_week"),
            _ => None,
        };
        let start = match (name, per_second) {
            (None, None) => return Ok(input),
            (Some(name), None) => self.start(name, value, input.null.as_ref()),
            (Some(name), Some(per_second)) if !matches!(input.kind, Type::Time(_)) => {
                let day = DAY * per_second;
                let days = self.floor_divide(&value, day);
                let start = self.start(name, days, input.null.as_ref());
                self.combine(ArithmeticOperator::Multiply, &start, &Integer::fixed(day.into()), Width::Long)
            }
            (_, Some(per_second)) => {
                let seconds = match field {
                    DateField::Second => 1,
                    DateField::Minute => 60,
                    DateField::Hour => 3600,
                    _ => DAY,
                };
                let unit = seconds * per_second;
                let units = self.floor_divide(&value, unit);
                self.combine(ArithmeticOperator::Multiply, &units, &Integer::fixed(unit.into()), Width::Long)
            }
        };
        self.fit(start, input.null, &input.kind, Overflow::Error)
    }

    /// Moves a date or timestamp by an interval that is the same for all rows: months first, which clamp to the month's
    /// end, then days, then the rest. What leaves the calendar is left to the CPU.
    pub(super) fn shift(&mut self, instant: &Expr, by: Interval, kind: &Type) -> Result<Term> {
        let input = self.expression(instant)?;
        let (mut value, null) = (input.integer()?, input.null.clone());
        let day = match &input.kind {
            Type::Date => 1,
            kind @ Type::Timestamp(unit, _) if is_utc(kind) => DAY * unit.per_second(),
            kind => return unsupported(format!("moving {kind} by an interval")),
        };
        let days = self.floor_divide(&value, day);
        let days = self.in_calendar(days, null.as_ref());
        if by.months != 0 {
            let moved = format!("add_months((i32){}, (i32){})", days.value, self.constant(by.months));
            let most = i128::from(by.months.abs()) * 31;
            let range = Range::new(days.range.low - most, days.range.high + most);
            let moved = Integer::new(self.text.define(Width::of(range).c(), &moved), range);
            let moved = self.in_calendar(moved, null.as_ref());
            if day == 1 {
                value = moved;
            } else {
                let distance = self.combine(ArithmeticOperator::Subtract, &moved, &days, Width::Wide);
                let distance =
                    self.combine(ArithmeticOperator::Multiply, &distance, &Integer::fixed(day.into()), Width::Wide);
                value = self.combine(ArithmeticOperator::Add, &value, &distance, Width::Wide);
            }
        }
        // A date has no time: what is less than a day is dropped.
        let rest = match &input.kind {
            Type::Date => by.nanoseconds / (DAY * 1_000_000_000),
            _ => by.nanoseconds.div_euclid(DAY * 1_000_000_000 / day),
        };
        let rest = i128::from(by.days) * i128::from(day) + i128::from(rest);
        let Ok(distance) = i64::try_from(rest) else { return unsupported("moving by so long an interval") };
        let distance = Integer::new(self.constant(distance), Range::only(rest));
        let moved = self.combine(ArithmeticOperator::Add, &value, &distance, Width::Wide);
        let moved = self.fit(moved, null.clone(), kind, Overflow::Error)?;
        let days = self.floor_divide(&moved.integer()?, day);
        self.in_calendar(days, null.as_ref());
        Ok(moved)
    }

    /// Returns the first day of the field that a day lies in.
    fn start(&mut self, name: &str, days: Integer, null: Option<&String>) -> Integer {
        let days = self.in_calendar(days, null);
        // A field has at most 366 days.
        let range = Range::new(days.range.low - 366, days.range.high);
        Integer::new(self.text.define("i32", &format!("{name}((i32){})", days.value)), range)
    }
}

/// Tells whether the fields of a timestamp are those of its number.
fn is_utc(kind: &Type) -> bool {
    match kind {
        Type::Timestamp(_, zone) => zone.as_ref().is_none_or(|zone| matches!(&**zone, "UTC" | "+00:00")),
        _ => false,
    }
}

/// Returns the flag that a day is outside the calendar, if it can be.
fn is_outside(days: &Integer) -> Option<String> {
    let all = calendar();
    let bounds = [(days.range.low < all.low, "<", all.low), (days.range.high > all.high, ">", all.high)];
    let possible = bounds.into_iter().filter(|(possible, ..)| *possible);
    either(possible.map(|(_, sign, bound)| Some(relation(days, sign, &Integer::fixed(bound)))))
}

/// Returns the seconds that a field of the time of day counts, and where it starts again.
fn of_time(field: DateField) -> Option<(i64, i64)> {
    match field {
        DateField::Hour => Some((3600, 24)),
        DateField::Minute => Some((60, 60)),
        DateField::Second => Some((1, 60)),
        _ => None,
    }
}
