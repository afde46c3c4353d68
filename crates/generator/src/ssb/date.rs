//! The date table: one row per day from 1992-01-01, 17 columns, the same at every scale factor.

use arrow_schema::{DataType, SchemaRef};
use tandem_column::Result;

use super::{
    batch, integers, schema, strings,
    words::{DAYS, HOLIDAYS, MONTHS, SEASONS},
};
use crate::source::{Emit, TableSource};

/// Days in the table: the seven years of the specification, whose last day is 1998-12-30.
pub const DAY_COUNT: usize = 2556;

/// One day of the calendar.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Day {
    pub year: i32,
    /// 1 to 12.
    pub month: i32,
    /// 1 to 31.
    pub day: i32,
    /// Day of the year from 1.
    pub of_year: i32,
    /// Day of the week, 0 for Sunday.
    pub of_week: i32,
    pub last_of_month: bool,
}

impl Day {
    /// Returns the day as the integer yyyymmdd.
    pub fn key(&self) -> i32 {
        self.year * 10_000 + self.month * 100 + self.day
    }

    fn is_holiday(&self) -> bool {
        HOLIDAYS.contains(&(self.month, self.day))
    }
}

/// Lists the days of the table.
pub fn days() -> impl Iterator<Item = Day> {
    // 1992-01-01 was a Wednesday.
    let first = Day { year: 1992, month: 1, day: 1, of_year: 1, of_week: 3, last_of_month: false };
    std::iter::successors(Some(first), |d| {
        let of_week = (d.of_week + 1) % 7;
        let (year, month, day, of_year) = match (d.last_of_month, d.month) {
            (false, _) => (d.year, d.month, d.day + 1, d.of_year + 1),
            (true, 12) => (d.year + 1, 1, 1, 1),
            (true, _) => (d.year, d.month + 1, 1, d.of_year + 1),
        };
        Some(Day { year, month, day, of_year, of_week, last_of_month: day == month_length(year, month) })
    })
    .take(DAY_COUNT)
}

fn month_length(year: i32, month: i32) -> i32 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if year % 4 == 0 => 29,
        2 => 28,
        _ => 31,
    }
}

/// The date table.
pub struct Dates {
    schema: SchemaRef,
}

impl Dates {
    pub fn new() -> Self {
        use DataType::{Int32, Utf8};
        Dates {
            schema: schema(&[
                ("d_datekey", Int32),
                ("d_date", Utf8),
                ("d_dayofweek", Utf8),
                ("d_month", Utf8),
                ("d_year", Int32),
                ("d_yearmonthnum", Int32),
                ("d_yearmonth", Utf8),
                ("d_daynuminweek", Int32),
                ("d_daynuminmonth", Int32),
                ("d_daynuminyear", Int32),
                ("d_monthnuminyear", Int32),
                ("d_weeknuminyear", Int32),
                ("d_sellingseason", Utf8),
                ("d_lastdayinweekfl", Int32),
                ("d_lastdayinmonthfl", Int32),
                ("d_holidayfl", Int32),
                ("d_weekdayfl", Int32),
            ]),
        }
    }
}

impl TableSource for Dates {
    fn name(&self) -> &'static str {
        "date"
    }
    fn schema(&self) -> SchemaRef {
        SchemaRef::clone(&self.schema)
    }
    fn rows(&self) -> u64 {
        DAY_COUNT as u64
    }
    fn groups(&self) -> usize {
        1
    }

    fn generate(&self, _group: usize, emit: &mut Emit<'_>) -> Result<()> {
        let month = |d: &Day| MONTHS[d.month as usize - 1];
        emit(batch(
            &self.schema,
            vec![
                integers(days().map(|d| d.key())),
                strings(days().map(|d| format!("{} {}, {}", month(&d), d.day, d.year))),
                strings(days().map(|d| DAYS[d.of_week as usize])),
                strings(days().map(|d| month(&d))),
                integers(days().map(|d| d.year)),
                integers(days().map(|d| d.year * 100 + d.month)),
                strings(days().map(|d| format!("{}{}", &month(&d)[..3], d.year))),
                integers(days().map(|d| d.of_week + 1)),
                integers(days().map(|d| d.day)),
                integers(days().map(|d| d.of_year)),
                integers(days().map(|d| d.month)),
                integers(days().map(|d| (d.of_year - 1) / 7 + 1)),
                strings(days().map(|d| SEASONS[d.month as usize - 1])),
                integers(days().map(|d| i32::from(d.of_week == 6))),
                integers(days().map(|d| i32::from(d.last_of_month))),
                integers(days().map(|d| i32::from(d.is_holiday()))),
                integers(days().map(|d| i32::from((1..=5).contains(&d.of_week)))),
            ],
        )?)
    }
}
