//! The calendar: fields of dates and timestamps, and truncation to them.
//!
//! Days count from 1970-01-01 in the proleptic Gregorian calendar. Fields exist for the years that Arrow's calendar
//! covers, −262143 to 262142; outside them a field is null. Zoned timestamps are taken in their zone.

use arrow_array::timezone::Tz;
use chrono::{
    DateTime, LocalResult, NaiveDateTime, Offset, TimeDelta, TimeZone,
    format::{Parsed, StrftimeItems, parse},
};
use tandem_column::{Error, Result, TimeUnit};

use crate::DateField;

/// Seconds in a day.
const DAY: i64 = 86_400;

/// The years that have fields.
const YEARS: std::ops::RangeInclusive<i64> = -262_143..=262_142;

/// Returns year, month and day of a day number. The calendar is cut at 1 March, so that a leap day ends its year.
pub fn civil_from_days(days: i64) -> (i64, i64, i64) {
    // 719468 days lie between 0000-03-01 and 1970-01-01; an era of 400 years has 146097.
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

/// Returns the day number of a year, month (1 to 12) and day of the month.
pub fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = year - i64::from(month <= 2);
    let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let month_from_march = if month > 2 { month - 3 } else { month + 9 };
    let day_of_year = (153 * month_from_march + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

/// Returns a field of a date; the fields of the time of day are 0.
pub fn extract(field: DateField, days: i64) -> Option<i32> {
    if matches!(field, DateField::Hour | DateField::Minute | DateField::Second) {
        return Some(0);
    }
    let (year, month, day) = civil_from_days(days);
    if !YEARS.contains(&year) {
        return None;
    }
    let value = match field {
        DateField::Year => year,
        DateField::Quarter => (month + 2) / 3,
        DateField::Month => month,
        DateField::Week => iso_week(days),
        DateField::Day => day,
        DateField::DayOfWeek => (days + 4).rem_euclid(7),
        DateField::DayOfYear => days - days_from_civil(year, 1, 1) + 1,
        DateField::Hour | DateField::Minute | DateField::Second => 0,
    };
    i32::try_from(value).ok()
}

/// Returns the ISO week: weeks start on Monday, and the first of a year is the one with its first Thursday.
fn iso_week(days: i64) -> i64 {
    let thursday = days - (days + 3).rem_euclid(7) + 3;
    let (year, _, _) = civil_from_days(thursday);
    (thursday - days_from_civil(year, 1, 1)) / 7 + 1
}

/// Returns a field of a time of day; the fields of a date are `None`.
pub fn extract_time(field: DateField, value: i64, unit: TimeUnit) -> Option<i32> {
    let seconds = value.div_euclid(unit.per_second());
    match field {
        DateField::Hour => i32::try_from(seconds / 3600).ok(),
        DateField::Minute => i32::try_from(seconds / 60 % 60).ok(),
        DateField::Second => i32::try_from(seconds % 60).ok(),
        _ => None,
    }
}

/// Returns a field of a timestamp, in its zone if it has one.
pub fn extract_timestamp(field: DateField, value: i64, unit: TimeUnit, zone: Option<Tz>) -> Option<i32> {
    let seconds = value.div_euclid(unit.per_second());
    let seconds = match zone {
        Some(zone) => seconds + offset(seconds, zone)?,
        None => seconds,
    };
    match field {
        DateField::Hour | DateField::Minute | DateField::Second => {
            extract(DateField::Year, seconds.div_euclid(DAY))?;
            extract_time(field, seconds.rem_euclid(DAY), TimeUnit::Second)
        }
        _ => extract(field, seconds.div_euclid(DAY)),
    }
}

/// Returns how many seconds a zone is ahead of UTC at an instant.
fn offset(seconds: i64, zone: Tz) -> Option<i64> {
    let instant = DateTime::from_timestamp(seconds, 0)?.naive_utc();
    Some(zone.offset_from_utc_datetime(&instant).fix().local_minus_utc().into())
}

/// Returns the first day of the field that a date lies in.
pub fn truncate(field: DateField, days: i64) -> i64 {
    let (year, month, _) = civil_from_days(days);
    match field {
        DateField::Year => days_from_civil(year, 1, 1),
        DateField::Quarter => days_from_civil(year, (month - 1) / 3 * 3 + 1, 1),
        DateField::Month => days_from_civil(year, month, 1),
        DateField::Week => days - (days + 3).rem_euclid(7),
        _ => days,
    }
}

/// Returns the start of the field that a time of day lies in.
pub fn truncate_time(field: DateField, value: i64, unit: TimeUnit) -> i64 {
    let seconds = match field {
        DateField::Second => 1,
        DateField::Minute => 60,
        DateField::Hour => 3600,
        _ => DAY,
    };
    value - value.rem_euclid(seconds * unit.per_second())
}

/// Returns the start of the field that a timestamp lies in, in its zone if it has one; `None` out of range.
pub fn truncate_timestamp(field: DateField, value: i64, unit: TimeUnit, zone: Option<Tz>) -> Option<i64> {
    let per_second = unit.per_second();
    let seconds = value.div_euclid(per_second);
    let start = match (field, zone) {
        (DateField::Second, _) => seconds,
        (DateField::Minute, _) => seconds - seconds.rem_euclid(60),
        (_, None) => truncate_seconds(field, seconds),
        (_, Some(zone)) => {
            let ahead = offset(seconds, zone)?;
            from_local(truncate_seconds(field, seconds + ahead), zone, ahead)?
        }
    };
    start.checked_mul(per_second)
}

/// Truncates seconds of local time to hours or longer.
fn truncate_seconds(field: DateField, seconds: i64) -> i64 {
    match field {
        DateField::Hour => seconds - seconds.rem_euclid(3600),
        _ => truncate(field, seconds.div_euclid(DAY)) * DAY,
    }
}

/// Returns the instant of a local time. Of two, the one with the offset `ahead`; in a gap, as if three hours earlier.
fn from_local(seconds: i64, zone: Tz, ahead: i64) -> Option<i64> {
    let local: NaiveDateTime = DateTime::from_timestamp(seconds, 0)?.naive_utc();
    let gap = TimeDelta::try_hours(3)?;
    match zone.from_local_datetime(&local) {
        LocalResult::Single(instant) => Some(instant.timestamp()),
        LocalResult::Ambiguous(first, second) => {
            let matches = i64::from(first.offset().fix().local_minus_utc()) == ahead;
            Some(if matches { first.timestamp() } else { second.timestamp() })
        }
        LocalResult::None => {
            let earlier = zone.from_local_datetime(&local.checked_sub_signed(gap)?).single()?;
            Some(earlier.timestamp() + gap.num_seconds())
        }
    }
}

/// Returns how many fields (years, months, weeks, …) lie between a date and 1970, counting those that have begun.
pub fn ordinal(field: DateField, days: i64) -> i64 {
    let (year, month, _) = civil_from_days(days);
    match field {
        DateField::Year => year,
        DateField::Quarter => year * 4 + (month - 1) / 3,
        DateField::Month => year * 12 + month - 1,
        DateField::Week => (days + 3).div_euclid(7),
        DateField::Hour => days * 24,
        DateField::Minute => days * 24 * 60,
        DateField::Second => days * DAY,
        DateField::Day | DateField::DayOfWeek | DateField::DayOfYear => days,
    }
}

/// Returns the same of a timestamp without a zone.
pub fn ordinal_timestamp(field: DateField, value: i64, unit: TimeUnit) -> i64 {
    let seconds = value.div_euclid(unit.per_second());
    match field {
        DateField::Hour => seconds.div_euclid(3600),
        DateField::Minute => seconds.div_euclid(60),
        DateField::Second => seconds,
        _ => ordinal(field, seconds.div_euclid(DAY)),
    }
}

/// Returns the date that a text says in a format of `chrono` (as `strftime`); a time of day in it is read and dropped, with an
/// offset from UTC after bringing it to UTC.
///
/// # Errors
/// Input, if the text is not of the format.
pub fn parse_date(text: &str, format: &str) -> Result<i64> {
    let wrong = |reason: chrono::ParseError| {
        Error::input(format!("cannot read a date from '{text}' in the format '{format}': {reason}"))
    };
    let mut parsed = Parsed::new();
    parse(&mut parsed, text, StrftimeItems::new(format)).map_err(wrong)?;
    let date = match parsed.to_datetime() {
        Ok(instant) => instant.naive_utc().date(),
        Err(_) => {
            let local = parsed.to_naive_datetime_with_offset(0).map(|local| local.date());
            local.or_else(|_| parsed.to_naive_date()).map_err(wrong)?
        }
    };
    Ok(date.signed_duration_since(DateTime::UNIX_EPOCH.date_naive()).num_days())
}
