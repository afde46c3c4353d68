//! Values as text that does not depend on the engine: floats rounded to 12 decimals, decimals without trailing zeros, no
//! sign on NaN, `NULL` and `(empty)` written out.
//!
//! These are the conventions of DataFusion's own `.slt` files, so that one spelling serves both corpora.

use std::str::FromStr;

use arrow::{
    array::{Array, ArrayRef, AsArray},
    compute::cast,
    datatypes::{DataType, Float16Type, Float32Type, Float64Type},
    record_batch::RecordBatch,
    util::display::{ArrayFormatter, DurationFormat, FormatOptions},
};
use bigdecimal::BigDecimal;

/// Decimals that floats are rounded to.
const FLOAT_DECIMALS: i64 = 12;

/// Spells every row; a last cell of several lines (a plan) becomes a numbered line each.
pub fn spell_rows(batches: &[RecordBatch]) -> Result<Vec<Vec<String>>, arrow::error::ArrowError> {
    let mut rows = Vec::new();
    for batch in batches {
        for row in 0..batch.num_rows() {
            let cells = batch.columns().iter().map(|column| spell(column, row)).collect::<Result<Vec<_>, _>>()?;
            expand(cells, &mut rows);
        }
    }
    Ok(rows)
}

/// Drops white space at the end of a line, which editors remove.
#[allow(clippy::ptr_arg, reason = "the signature is sqllogictest's")]
pub fn normalize(line: &String) -> String {
    line.trim_end().to_owned()
}

/// Spells rows of another engine as the columns of a result are; a missing value is null.
pub fn respell(rows: &[Vec<Option<String>>], like: &[RecordBatch]) -> Vec<Vec<String>> {
    let kinds: Vec<DataType> =
        like.first().map_or_else(Vec::new, |b| b.columns().iter().map(|c| c.data_type().clone()).collect());
    let value = |(at, value): (usize, &Option<String>)| match (value, kinds.get(at)) {
        (None, _) => "NULL".to_owned(),
        (Some(value), Some(kind)) => respell_value(kind, value),
        (Some(value), None) => value.clone(),
    };
    rows.iter().map(|row| row.iter().enumerate().map(value).collect()).collect()
}

fn respell_value(kind: &DataType, value: &str) -> String {
    let number = value.parse::<f64>();
    match (kind, number) {
        (DataType::Float32, Ok(number)) => float((number as f32).to_string()),
        (DataType::Float64, Ok(number)) => float(number.to_string()),
        (DataType::Timestamp(..), _) => point_in_time(value),
        (DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View | DataType::Dictionary(..), _) => text(value),
        (kind, _) if kind.is_decimal() || kind.is_integer() => decimal(value, None),
        _ => value.to_owned(),
    }
}

/// Writes a fraction of a second with 3, 6 or 9 digits, as few as will do, or not at all.
fn point_in_time(value: &str) -> String {
    let Some((seconds, fraction)) = value.split_once('.') else { return value.to_owned() };
    let fraction = fraction.trim_end_matches('0');
    let digits = fraction.len().next_multiple_of(3);
    if digits == 0 { seconds.to_owned() } else { format!("{seconds}.{fraction:0<digits$}") }
}

fn expand(mut cells: Vec<String>, rows: &mut Vec<Vec<String>>) {
    match cells.last() {
        Some(last) if last.contains('\n') => {
            let last = cells.pop().unwrap_or_default();
            rows.push(cells);
            for (index, line) in last.split('\n').enumerate() {
                let text = line.trim_start();
                let indent = "-".repeat(line.len() - text.len());
                rows.push(vec![format!("{:02}){indent}{text}", index + 1)]);
            }
        }
        _ => rows.push(cells),
    }
}

fn spell(column: &ArrayRef, row: usize) -> Result<String, arrow::error::ArrowError> {
    if column.is_null(row) || column.data_type().is_null() {
        return Ok("NULL".to_owned());
    }
    Ok(match column.data_type() {
        DataType::Float16 => float(column.as_primitive::<Float16Type>().value(row).to_string()),
        DataType::Float32 => float(column.as_primitive::<Float32Type>().value(row).to_string()),
        DataType::Float64 => float(column.as_primitive::<Float64Type>().value(row).to_string()),
        DataType::Decimal32(..) | DataType::Decimal64(..) | DataType::Decimal128(..) | DataType::Decimal256(..) => {
            decimal(&plain(column, row)?, None)
        }
        DataType::Utf8 => text(column.as_string::<i32>().value(row)),
        DataType::LargeUtf8 => text(column.as_string::<i64>().value(row)),
        DataType::Utf8View => text(column.as_string_view().value(row)),
        DataType::Dictionary(_, values) => spell(&cast(&column.slice(row, 1), values)?, 0)?,
        _ => plain(column, row)?,
    })
}

fn plain(column: &ArrayRef, row: usize) -> Result<String, arrow::error::ArrowError> {
    let options = FormatOptions::new().with_null("NULL").with_duration_format(DurationFormat::Pretty);
    ArrayFormatter::try_new(column, &options)?.value(row).try_to_string()
}

fn float(spelled: String) -> String {
    match spelled.as_str() {
        "NaN" => spelled,
        "inf" => "Infinity".to_owned(),
        "-inf" => "-Infinity".to_owned(),
        _ => decimal(&spelled, Some(FLOAT_DECIMALS)),
    }
}

fn decimal(spelled: &str, decimals: Option<i64>) -> String {
    match BigDecimal::from_str(spelled) {
        Ok(value) => decimals.map_or(value.clone(), |d| value.round(d)).normalized().to_plain_string(),
        Err(_) => spelled.to_owned(),
    }
}

fn text(value: &str) -> String {
    if value.is_empty() { "(empty)".to_owned() } else { value.trim_end_matches('\n').replace('\0', "\\0") }
}
