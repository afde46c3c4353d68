//! Which integers an expression can give, from those that its slots can hold.
//!
//! Used to drop overflow checks that cannot fail, to compute and sum in as few bits as are enough, and to make group keys
//! array indices. A range is only ever too wide, never too narrow.

use tandem_column::{Repr, Type};

use crate::{
    Arithmetic, ArithmeticOperator, DateField, Expr, Function, SlotId, Value,
    scalar::{date, decimal::power_of_ten},
};

/// The integers from `low` to `high`.
#[allow(missing_docs)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    pub low: i128,
    pub high: i128,
}

impl Range {
    /// Makes the range of all integers from `low` to `high`.
    pub const fn new(low: i128, high: i128) -> Range {
        Range { low, high }
    }

    /// Makes the range of one integer.
    pub const fn only(value: i128) -> Range {
        Range::new(value, value)
    }

    /// Makes the smallest range from −`most` to `most` that holds another.
    pub fn around(other: Range) -> Range {
        let most = other.low.saturating_neg().max(other.high).max(other.low).max(other.high.saturating_neg());
        Range::new(-most, most)
    }

    /// Returns the range of a type whose values are integers.
    pub fn of_type(kind: &Type) -> Option<Range> {
        match kind {
            Type::Decimal { precision, .. } => {
                let most = power_of_ten((*precision).into())? - 1;
                Some(Range::new(-most, most))
            }
            Type::Date => Some(Range::new(i32::MIN.into(), i32::MAX.into())),
            kind => match (kind.integer_range(), kind.repr()) {
                (Some((low, high)), _) => Some(Range::new(low, high)),
                (None, Repr::Int) => Some(Range::new(i64::MIN.into(), i64::MAX.into())),
                _ => None,
            },
        }
    }

    /// Tells whether all integers are in another range, too.
    pub fn within(self, other: Range) -> bool {
        other.low <= self.low && self.high <= other.high
    }

    /// Returns the smallest range that holds both.
    pub fn union(self, other: Range) -> Range {
        Range::new(self.low.min(other.low), self.high.max(other.high))
    }

    /// Returns what is in both ranges; the other one if nothing is.
    pub fn clamp(self, other: Range) -> Range {
        let both = Range::new(self.low.max(other.low), self.high.min(other.high));
        if both.low <= both.high { both } else { other }
    }

    /// Returns the range of an exact sum, difference or product; `None` if 128 bits do not hold it.
    pub fn combine(self, operator: ArithmeticOperator, other: Range) -> Option<Range> {
        Some(match operator {
            ArithmeticOperator::Add => Range::new(self.low.checked_add(other.low)?, self.high.checked_add(other.high)?),
            ArithmeticOperator::Subtract => {
                Range::new(self.low.checked_sub(other.high)?, self.high.checked_sub(other.low)?)
            }
            ArithmeticOperator::Multiply => {
                let corner = |a: i128, b: i128| a.checked_mul(b).map(Range::only);
                corner(self.low, other.low)?
                    .union(corner(self.low, other.high)?)
                    .union(corner(self.high, other.low)?)
                    .union(corner(self.high, other.high)?)
            }
            ArithmeticOperator::Divide | ArithmeticOperator::Remainder => return None,
        })
    }
}

/// Returns the range of an integer-represented expression, from the type and range of each slot; `None` where it is not
/// known, or some result may not fit its type.
pub fn of(expr: &Expr, slot: &dyn Fn(SlotId) -> (Type, Option<Range>)) -> Option<Range> {
    match expr {
        Expr::Slot(at) => slot(*at).1,
        Expr::Literal(Value::Integer(value), _) => Some(Range::only(*value)),
        Expr::Arithmetic(a) if a.kind.is_integer() || matches!(a.kind, Type::Decimal { .. }) => {
            let (left, right) = (of(&a.left, slot)?, of(&a.right, slot)?);
            exact(a, left, right, slot).filter(|range| fits(*range, &a.kind))
        }
        Expr::Cast { input, kind, .. } if kind.is_integer() => {
            let range = of(input, slot)?;
            // Only integer to integer keeps the value; decimals and dates change their scale.
            (kind_of(input, slot).is_integer() && fits(range, kind)).then_some(range)
        }
        Expr::Case { branches, otherwise, .. } => {
            let values = branches.iter().map(|(_, value)| value).chain(otherwise.as_deref());
            let mut ranges =
                values.filter(|value| !matches!(value, Expr::Literal(Value::Null, _))).map(|value| of(value, slot));
            let first = ranges.next()??;
            ranges.try_fold(first, |all, range| Some(all.union(range?)))
        }
        Expr::Function { function: Function::Extract(field), arguments, .. } => {
            let [input] = arguments.as_slice() else { return None };
            of_field(*field, &kind_of(input, slot), of(input, slot))
        }
        Expr::Function { function: Function::Truncate(field), arguments, kind } => {
            let [input] = arguments.as_slice() else { return None };
            let range = of(input, slot)?;
            let start = |value: i128| start_of(*field, &kind_of(input, slot), i64::try_from(value).ok()?);
            Some(Range::new(start(range.low)?.into(), start(range.high)?.into())).filter(|range| fits(*range, kind))
        }
        _ => None,
    }
}

/// Returns the range of a field of dates or timestamps: years by theirs, other fields by the calendar.
fn of_field(field: DateField, kind: &Type, input: Option<Range>) -> Option<Range> {
    const DAY: i64 = 86_400;
    let (per_day, spare) = match kind {
        Type::Date => (1, 0),
        // A zone is less than a day ahead or behind.
        Type::Timestamp(unit, zone) => (DAY * unit.per_second(), i64::from(zone.is_some())),
        _ => return None,
    };
    let year = |value: i128, spare: i64| {
        let days = i64::try_from(value).ok()?.div_euclid(per_day).checked_add(spare)?;
        date::extract(field, days).map(i128::from)
    };
    Some(match field {
        DateField::Year => {
            let range = input?;
            Range::new(year(range.low, -spare)?, year(range.high, spare)?)
        }
        DateField::Quarter => Range::new(1, 4),
        DateField::Month => Range::new(1, 12),
        DateField::Week => Range::new(1, 53),
        DateField::Day => Range::new(1, 31),
        DateField::DayOfWeek => Range::new(0, 6),
        DateField::DayOfYear => Range::new(1, 366),
        DateField::Hour => Range::new(0, 23),
        DateField::Minute | DateField::Second => Range::new(0, 59),
    })
}

/// Returns the start of a field of a date, or of a timestamp without a zone, where it has one.
fn start_of(field: DateField, kind: &Type, value: i64) -> Option<i64> {
    match kind {
        Type::Date => Some(date::truncate(field, value)),
        Type::Timestamp(unit, None) => date::truncate_timestamp(field, value, *unit, None),
        _ => None,
    }
}

fn kind_of(expr: &Expr, slot: &dyn Fn(SlotId) -> (Type, Option<Range>)) -> Type {
    expr.kind_with(&|at| slot(at).0)
}

fn fits(range: Range, kind: &Type) -> bool {
    Range::of_type(kind).is_some_and(|all| range.within(all))
}

/// Returns the range of exact results; of decimals only where no digit is dropped.
fn exact(
    a: &Arithmetic,
    mut left: Range,
    mut right: Range,
    slot: &dyn Fn(SlotId) -> (Type, Option<Range>),
) -> Option<Range> {
    if let Type::Decimal { scale, .. } = a.kind {
        let scale_of = |e: &Expr| match kind_of(e, slot) {
            Type::Decimal { scale, .. } => Some(i32::from(scale)),
            _ => None,
        };
        let (target, left_scale, right_scale) = (i32::from(scale), scale_of(&a.left)?, scale_of(&a.right)?);
        if a.operator == ArithmeticOperator::Multiply {
            if left_scale + right_scale != target {
                return None;
            }
        } else {
            let align = |range: Range, from: i32| {
                let factor = power_of_ten(u32::try_from(target - from).ok()?)?;
                range.combine(ArithmeticOperator::Multiply, Range::only(factor))
            };
            (left, right) = (align(left, left_scale)?, align(right, right_scale)?);
        }
    }
    left.combine(a.operator, right)
}

#[cfg(test)]
mod tests {
    use tandem_column::TimeUnit;

    use super::*;
    use crate::{Slot, evaluate};

    /// Fields of random dates and timestamps are in the range that their slot's range gives, and so are their starts.
    #[test]
    fn fields_of_dates_are_within_their_range() {
        let fields = ["year", "quarter", "month", "week", "day", "hour", "minute", "second"];
        let kinds = [(Type::Date, 1), (Type::Timestamp(TimeUnit::Second, None), 86_400)];
        for (kind, per_day) in &kinds {
            let slots = [Slot { name: String::new(), kind: kind.clone(), nullable: false }];
            for (at, name) in fields.iter().flat_map(|field| ["extract", "truncate"].map(|name| (field, name))) {
                let Some(function) = Function::from_name(&format!("{name}_{at}")) else { continue };
                let result = function.natural_type(std::slice::from_ref(kind));
                let expr = Expr::Function { function, arguments: vec![Expr::Slot(0)], kind: result };
                for seed in 0..200i128 {
                    let low = (seed * 7919 % 50_000 - 20_000) * per_day + seed % 59;
                    let high = low + seed * 31 * per_day;
                    let range = of(&expr, &|_| (kind.clone(), Some(Range::new(low, high))));
                    let range = range.unwrap_or_else(|| panic!("{name}_{at} of {kind} has a range"));
                    for value in [low, high, low + (high - low) / 3] {
                        let found = evaluate(&expr, &[Value::Integer(value)], &slots, &[]);
                        let Ok(Value::Integer(found)) = found else { panic!("{name}_{at} of {value}: {found:?}") };
                        assert!(Range::only(found).within(range), "{name}_{at} of {value}: {found} in {range:?}");
                    }
                }
            }
        }
    }
}
