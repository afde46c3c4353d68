//! Fields of dates and of timestamps without a zone.
//!
//! The loops compute the civil calendar in 32-bit arithmetic, which vectorises, for the days within about 180 000 years
//! around 1970; a vector with a day beyond goes the slow way.

use tandem_column::Type;
use tandem_pipeline::{DateField, scalar};

use super::kernels::{Side, both_valid, map, map_flagged};
use super::operand::Operand;
use crate::vector::{Values, Vector};

/// Days of 400 years.
const ERA: u32 = 146_097;

/// Eras between the loops' first day and 0000-03-01.
const ERAS: u32 = 600;

/// Days between the loops' first day and 1970-01-01: 719 468 lie between 0000-03-01 and 1970-01-01.
const SHIFT: i64 = ERAS as i64 * ERA as i64 + 719_468;

/// Days the loops cover, from the first on: about twice the shift, and small enough for 32-bit arithmetic.
const COVERED: u64 = 1 << 27;

/// Returns year, month and day of a day counted from the loops' first.
#[inline(always)]
fn civil(day: u32) -> (i32, u32, u32) {
    let (era, day_of_era) = (day / ERA, day % ERA);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let january_on = u32::from(month_from_march >= 10);
    let month = month_from_march + 3 - 12 * january_on;
    let year = (era * 400 + year_of_era + january_on) as i32 - (ERAS * 400) as i32;
    (year, month, day)
}

/// Extracts a field from a vector of dates or zone-less timestamps; `None` where there is no loop.
pub(super) fn extract(field: DateField, vector: &Vector, from: &Type, kind: &Type) -> Option<Vector> {
    let Values::Int(values) = &vector.values else { return None };
    if *kind != Type::Int32 {
        return None;
    }
    let values = match from {
        Type::Date => fields(field, values)?,
        Type::Timestamp(unit, None) => {
            let per_second = unit.per_second();
            let per_day = 86_400 * per_second;
            match field {
                DateField::Hour | DateField::Minute | DateField::Second => {
                    // The calendar's range is the same as for the other fields.
                    let in_range = |value: &i64| (value.div_euclid(per_day).wrapping_add(SHIFT) as u64) < COVERED;
                    if !values.iter().all(in_range) {
                        return None;
                    }
                    map(values, move |value: i64| {
                        let seconds = value.rem_euclid(per_day) / per_second;
                        match field {
                            DateField::Hour => seconds / 3600,
                            DateField::Minute => seconds / 60 % 60,
                            _ => seconds % 60,
                        }
                    })
                }
                _ => fields(field, &map(values, move |value: i64| value.div_euclid(per_day)))?,
            }
        }
        _ => return None,
    };
    Some(Vector { values: Values::Int(values), valid: vector.valid.clone() })
}

fn fields(field: DateField, days: &[i64]) -> Option<Vec<i64>> {
    match field {
        DateField::Year => each(days, |day| civil(day).0.into()),
        DateField::Quarter => each(days, |day| civil(day).1.div_ceil(3).into()),
        DateField::Month => each(days, |day| civil(day).1.into()),
        DateField::Day => each(days, |day| civil(day).2.into()),
        _ => None,
    }
}

fn each(days: &[i64], f: impl Fn(u32) -> i64) -> Option<Vec<i64>> {
    let (values, flags) = map_flagged(days, |day: i64| {
        let shifted = day.wrapping_add(SHIFT);
        (f(shifted as u32 & (COVERED - 1) as u32), shifted & !(COVERED as i64 - 1))
    });
    (flags == 0).then_some(values)
}

/// Truncates dates to the start of a field; `None` where there is no loop.
pub(super) fn truncate(field: DateField, vector: &Vector, from: &Type, kind: &Type) -> Option<Vector> {
    let Values::Int(values) = &vector.values else { return None };
    if *from != Type::Date || *kind != Type::Date {
        return None;
    }
    let mut out = vec![0; values.len()];
    for (row, (out, &days)) in out.iter_mut().zip(values).enumerate() {
        if vector.is_valid(row) {
            *out = scalar::date::truncate(field, days);
            // The start of the first year lies before the first date: an error that the slow path makes.
            i32::try_from(*out).ok()?;
        }
    }
    Some(Vector { values: Values::Int(out), valid: vector.valid.clone() })
}

/// Counts the starts of a field between dates or timestamps without a zone; `None` where there is no loop.
pub(super) fn difference(field: DateField, sides: [&Operand; 2], from: &Type, rows: usize) -> Option<Vector> {
    let [start, end] = sides;
    let valid = both_valid(start.valid(), end.valid());
    let ordinal = |value: i64| match from {
        Type::Timestamp(unit, _) => scalar::date::ordinal_timestamp(field, value, *unit),
        _ => scalar::date::ordinal(field, value),
    };
    let at = |side: Side<'_, i64>, row: usize| match side {
        Side::Rows(values) => values[row],
        Side::One(value) => value,
    };
    let (start, end) = (start.ints()?, end.ints()?);
    let is_valid = |row: usize| valid.as_ref().is_none_or(|valid| valid[row] != 0);
    // What a null row holds need not be in the calendar.
    let difference = |row: usize| if is_valid(row) { ordinal(at(end, row)) - ordinal(at(start, row)) } else { 0 };
    let values = (0..rows).map(difference).collect();
    Some(Vector { values: Values::Int(values), valid })
}
