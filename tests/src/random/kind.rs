//! Types of columns, with their names and literals in both dialects.

use super::Choices;

/// A type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `boolean`
    Boolean,
    /// An integer of so many bits, with a sign or without.
    Integer(u8, bool),
    /// `real`
    Real,
    /// `double`
    Double,
    /// Digits in all, and behind the point.
    Decimal(u8, u8),
    /// `date`
    Date,
    /// `timestamp`
    Timestamp,
    /// `varchar`
    Text,
    /// `bytea`
    Bytes,
}

/// Types that expressions treat alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// Integers that `bigint` holds.
    Integer,
    /// Truth values.
    Boolean,
    /// Floats.
    Float,
    /// Decimals.
    Decimal,
    /// Dates.
    Date,
    /// Points in time.
    Timestamp,
    /// Text.
    Text,
    /// What is only compared: engines differ in what they turn it into.
    Opaque,
}

/// `bigint`
pub const BIGINT: Kind = Kind::Integer(64, true);

/// The families that expressions are made of.
pub const FAMILIES: [Family; 7] =
    [Family::Integer, Family::Text, Family::Float, Family::Boolean, Family::Date, Family::Decimal, Family::Timestamp];

/// All types, simple ones first.
pub const KINDS: [Kind; 18] = [
    Kind::Integer(32, true),
    BIGINT,
    Kind::Text,
    Kind::Double,
    Kind::Date,
    Kind::Boolean,
    Kind::Decimal(9, 2),
    Kind::Timestamp,
    Kind::Integer(16, true),
    Kind::Integer(8, true),
    Kind::Decimal(18, 4),
    Kind::Real,
    Kind::Integer(8, false),
    Kind::Integer(16, false),
    Kind::Integer(32, false),
    Kind::Decimal(38, 10),
    Kind::Integer(64, false),
    Kind::Bytes,
];

/// A column, or an expression, and what is known of its values.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// How it is named or written.
    pub sql: String,
    /// Its type.
    pub kind: Kind,
    /// No value is further from 0, and sums of values are exact in any order; infinite where that is not known: then there
    /// is no arithmetic with it, which could overflow in one engine and not in another.
    pub bound: f64,
    /// The value is right up to rounding only, so that nothing may depend on it.
    pub inexact: bool,
    /// No value occurs twice, and none is null.
    pub unique: bool,
}

impl Column {
    /// Makes an expression whose value is exact and of which nothing else is known.
    pub fn exact(sql: impl Into<String>, kind: Kind) -> Self {
        Column { sql: sql.into(), kind, bound: f64::INFINITY, inexact: false, unique: false }
    }

    /// The same with a bound of its values.
    pub fn within(sql: impl Into<String>, kind: Kind, bound: f64) -> Self {
        Column { bound, ..Column::exact(sql, kind) }
    }

    /// Returns its family.
    pub fn family(&self) -> Family {
        self.kind.family()
    }
}

/// How far from 0 the values of a column are that can be computed with.
pub const SMALL: f64 = 1000.0;

impl Kind {
    /// Returns the family.
    pub fn family(self) -> Family {
        match self {
            Kind::Boolean => Family::Boolean,
            // No signed type of every engine holds all of its values.
            Kind::Integer(64, false) | Kind::Bytes => Family::Opaque,
            Kind::Integer(..) => Family::Integer,
            Kind::Real | Kind::Double => Family::Float,
            Kind::Decimal(..) => Family::Decimal,
            Kind::Date => Family::Date,
            Kind::Timestamp => Family::Timestamp,
            Kind::Text => Family::Text,
        }
    }

    /// Names the type in both dialects.
    pub fn name(self) -> String {
        match self {
            Kind::Boolean => "boolean".into(),
            Kind::Integer(8, true) => "tinyint".into(),
            Kind::Integer(16, true) => "smallint".into(),
            Kind::Integer(32, true) => "integer".into(),
            Kind::Integer(_, true) => "bigint".into(),
            Kind::Integer(8, false) => "⟦tinyint unsigned|utinyint⟧".into(),
            Kind::Integer(16, false) => "⟦smallint unsigned|usmallint⟧".into(),
            Kind::Integer(32, false) => "⟦int unsigned|uinteger⟧".into(),
            Kind::Integer(_, false) => "⟦bigint unsigned|ubigint⟧".into(),
            Kind::Real => "real".into(),
            Kind::Double => "double".into(),
            Kind::Decimal(digits, scale) => format!("decimal({digits},{scale})"),
            Kind::Date => "date".into(),
            Kind::Timestamp => "timestamp".into(),
            Kind::Text => "varchar".into(),
            Kind::Bytes => "⟦bytea|blob⟧".into(),
        }
    }

    /// Writes a value with its type. Engines differ in the types of plain literals (`1.5`, `1`), so that all are cast.
    pub fn literal(self, choices: &mut Choices, small: bool) -> String {
        let value = self.value(choices, small);
        match self {
            Kind::Boolean => value,
            Kind::Text => format!("'{}'", value.replace('\'', "''")),
            Kind::Date | Kind::Timestamp => format!("{} '{value}'", self.name()),
            Kind::Bytes => format!("⟦X'{value}'|unhex('{value}')⟧"),
            Kind::Integer(64, true) if small => format!("cast({value} as bigint)"),
            _ => format!("cast('{value}' as {})", self.name()),
        }
    }

    /// Draws a value: small ones that can be computed with, or the extremes of the type, too. There is no −0.0: engines
    /// differ in whether it equals 0.0 where rows are grouped.
    fn value(self, choices: &mut Choices, small: bool) -> String {
        let wild = !small && choices.chance(40);
        match self {
            Kind::Boolean => choices.pick(&["false", "true"]).to_string(),
            Kind::Integer(bits, true) if wild => {
                let (least, most) = (i64::MIN >> (64 - bits), i64::MAX >> (64 - bits));
                choices.pick(&[least, most, least + 1, most - 1, -1]).to_string()
            }
            Kind::Integer(bits, false) if wild => (u64::MAX >> (64 - bits) >> choices.below(2)).to_string(),
            Kind::Integer(bits, signed) => {
                let most = if bits == 8 { 100 } else { SMALL as usize };
                let few = if choices.chance(60) { 8 } else { most };
                let value = choices.below(few) as i64;
                if signed && choices.chance(30) { (-value).to_string() } else { value.to_string() }
            }
            Kind::Real | Kind::Double if wild => {
                let all = ["NaN", "1e30", "-1e30", "Infinity", "-Infinity", "1e-30", "0.1", "16777217", "-0.3"];
                choices.pick(&all).to_string()
            }
            Kind::Real | Kind::Double => quarters(choices),
            Kind::Decimal(digits, scale) if wild => {
                let nines = |count: u8| "9".repeat(count.into());
                let sign = choices.pick(&["", "-"]);
                format!("{sign}{}.{}", nines(digits - scale), nines(scale))
            }
            Kind::Decimal(..) => quarters(choices),
            Kind::Date if wild => {
                choices.pick(&["0001-01-01", "9999-12-31", "1582-10-15", "1969-12-31", "1600-02-29"]).to_string()
            }
            Kind::Date => day(choices),
            // Nanoseconds in 64 bits, DataFusion's points in time, end in 2262.
            Kind::Timestamp if wild => {
                choices.pick(&["1700-01-01 00:00:00", "2200-12-31 23:59:59.999", "1969-12-31 23:59:59.5"]).to_string()
            }
            Kind::Timestamp => {
                let time = *choices.pick(&["00:00:00", "12:30:00", "23:59:59", "06:07:08.25"]);
                format!("{} {time}", day(choices))
            }
            Kind::Text => text(choices, wild),
            Kind::Bytes => choices.pick(&["00", "", "ff", "00ff", "616263", "0000"]).to_string(),
        }
    }
}

/// A number of quarters: sums and products of some are exact as floats in whatever order they are added.
fn quarters(choices: &mut Choices) -> String {
    let few = if choices.chance(60) { 4 } else { SMALL as usize };
    let whole = choices.below(few);
    let fraction = choices.pick(&["", ".5", ".25", ".75"]);
    let sign = if (whole > 0 || !fraction.is_empty()) && choices.chance(30) { "-" } else { "" };
    format!("{sign}{whole}{fraction}")
}

fn day(choices: &mut Choices) -> String {
    let year = 2000 + choices.below(25);
    let month = 1 + choices.below(12);
    let most = [31, 28 + usize::from(year.is_multiple_of(4)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31][month - 1];
    // The last days of months are where calendars go wrong.
    let day = if choices.chance(40) { most } else { 1 + choices.below(most) };
    format!("{year}-{month:02}-{day:02}")
}

fn text(choices: &mut Choices, wild: bool) -> String {
    // No letters whose capitals are several letters, and no marks that combine: engines differ in what a character is.
    const WORDS: [&str; 14] =
        ["a", "b", "ab", "", "A", "abc", " a ", "b%", "a_b", "é", "漢字", "😀x", "it's", "zzzzzzzzzzzzzzzz"];
    if wild && choices.chance(20) {
        return "long é ".repeat(1 + choices.below(60));
    }
    choices.pick(&WORDS).to_string()
}
