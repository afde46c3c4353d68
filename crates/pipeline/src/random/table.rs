//! Random values, columns and tables.

use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_schema::Schema;
use rand::RngCore;
use tandem_column::{Field, LoadOptions, Loader, Result, Table, TimeUnit, Type};

use super::{below, chance, pick};
use crate::{Value, interpret::Row, scalar};

/// Words that strings are made of: short, long, empty, with wildcards, not in ASCII.
const WORDS: &[&str] = &["", "a", "A", "ab", "b%", "_x", "éclair", "日本", "MFGR#12", "quick brown fox", "\\", " pad "];

/// How far keys are apart that do not lie densely: 10,000 of them fit 32 bits.
const APART: i128 = 200_003;

/// Returns a type that columns have.
pub(super) fn kind(rng: &mut dyn RngCore) -> Type {
    let kinds = [
        Type::Boolean,
        Type::Int8,
        Type::Int16,
        Type::Int32,
        Type::Int64,
        Type::UInt8,
        Type::UInt16,
        Type::UInt32,
        Type::UInt64,
        Type::Float32,
        Type::Float64,
        Type::Decimal { precision: 9, scale: 2 },
        Type::Decimal { precision: 18, scale: 4 },
        Type::Decimal { precision: 38, scale: 10 },
        Type::Date,
        Type::Time(TimeUnit::Microsecond),
        Type::Timestamp(TimeUnit::Microsecond, None),
        Type::Timestamp(TimeUnit::Second, Some("Europe/Paris".into())),
        Type::String,
        Type::Binary,
    ];
    // Types that joins, groups and arithmetic meet most are drawn more often.
    let frequent = [Type::Int32, Type::Int64, Type::String, Type::Float64, Type::Date, kinds[11].clone()];
    if chance(rng, 2) { pick(rng, &frequent).clone() } else { pick(rng, &kinds).clone() }
}

/// Returns a non-null value of a type: often one of few, sometimes an extreme.
pub fn literal(rng: &mut dyn RngCore, kind: &Type) -> Value {
    let few = chance(rng, 3);
    let small = below(rng, 12) as i128;
    match kind {
        Type::Boolean => Value::Boolean(chance(rng, 2)),
        Type::Float32 | Type::Float64 => {
            let odd = [f64::NAN, -0.0, 0.0, f64::INFINITY, f64::NEG_INFINITY, 1e30, -1e-30];
            let value = match below(rng, 10) {
                0 => *pick(rng, &odd),
                1..=5 => small as f64 / 2.0,
                _ => (below(rng, 2_000_000) as f64 - 1e6) / 7.0,
            };
            Value::Float(if *kind == Type::Float32 { f64::from(value as f32) } else { value })
        }
        Type::Decimal { precision, scale } => {
            let limit = scalar::decimal::power_of_ten((*precision).into()).unwrap_or(i128::MAX);
            let unit = scalar::decimal::power_of_ten(scale.unsigned_abs().into()).unwrap_or(1);
            match below(rng, 16) {
                0 => Value::Integer(limit - 1),
                1 => Value::Integer(1 - limit),
                2..=8 => Value::Integer(small * unit / 2),
                _ => Value::Integer((below(rng, 1_000_000) as i128 - 500_000) % limit),
            }
        }
        Type::Date => Value::Integer(if few { 8_000 + small } else { below(rng, 40_000) as i128 - 5_000 }),
        Type::Time(unit) => Value::Integer((below(rng, 86_400) as i64 * unit.per_second()).into()),
        Type::Timestamp(unit, _) => {
            let seconds = if few { 800_000_000 + small as i64 } else { below(rng, 3_000_000_000) as i64 - 500_000_000 };
            Value::Integer((seconds * unit.per_second()).into())
        }
        Type::String => match below(rng, 4) {
            0 => Value::string(format!("{}{}", pick(rng, WORDS), pick(rng, WORDS))),
            1 => Value::string(below(rng, 50).to_string()),
            _ => Value::string(*pick(rng, WORDS)),
        },
        Type::Binary => {
            let bytes: Vec<u8> = (0..below(rng, 4)).map(|_| below(rng, 256) as u8).collect();
            Value::Binary(bytes.into())
        }
        Type::Interval => Value::Interval {
            months: below(rng, 30) as i32 - 15,
            days: below(rng, 90) as i32 - 45,
            nanoseconds: below(rng, 200_000) as i64 * 1_000_000_000,
        },
        Type::Null | Type::List(_) => Value::Null,
        kind => {
            let (low, high) = kind.integer_range().unwrap_or((0, 1));
            match below(rng, 24) {
                0 => Value::Integer(low),
                1 => Value::Integer(high),
                2..=15 => Value::Integer(small),
                16..=19 => Value::Integer((below(rng, 2_000_000) as i128 - 1_000_000).clamp(low, high)),
                _ => Value::Integer((small - 6).clamp(low, high)),
            }
        }
    }
}

/// Makes a table with a sorted key, mostly dense, a small group and some columns of any type, in one part or several.
pub fn table(rng: &mut dyn RngCore, rows: usize) -> Table {
    let mut fields = vec![Field::new("id", Type::Int32, false), Field::new("class", Type::Int64, true)];
    fields.extend((0..2 + below(rng, 6)).map(|index| Field::new(format!("c{index}"), kind(rng), !chance(rng, 3))));
    let start = below(rng, 3) as i128;
    // Keys far apart do not become an array, though they are sorted.
    let step = if start == 2 { APART } else { 1 };
    let row = |rng: &mut dyn RngCore, number: usize, fields: &[Field]| -> Row {
        let value = |(index, field): (usize, &Field)| match index {
            0 => Value::Integer(start + step * number as i128),
            _ if field.nullable && chance(rng, 7) => Value::Null,
            1 => Value::Integer(below(rng, 5) as i128),
            _ => literal(rng, &field.kind),
        };
        fields.iter().enumerate().map(value).collect()
    };
    let rows: Vec<Row> = (0..rows).map(|number| row(rng, number, &fields)).collect();
    let schema = Arc::new(Schema::new(fields.iter().map(Field::to_arrow).collect::<Vec<_>>()));
    let part_rows = 1 + below(rng, rows.len().max(1));
    let batch = |rows: &[Row]| {
        let column = |index: usize| {
            let values: Vec<Value> = rows.iter().map(|row| row[index].clone()).collect();
            scalar::arrow::array(&values, &fields[index].kind).expect("random values fit their types")
        };
        let columns = (0..fields.len()).map(column).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
        RecordBatch::try_new_with_options(schema.clone(), columns, &options).expect("columns are of one length")
    };
    let batches: Vec<RecordBatch> = rows.chunks(part_rows).map(batch).collect();
    // Loaded tables have dictionaries, and integers of one encoding in all parts; others keep what the batches have.
    let table = if start > 0 { load(&schema, &batches, part_rows) } else { Table::from_batches(&schema, &batches) };
    let mut table = table.expect("every type of a random table is supported");
    // Rows that are gone leave entries of dictionaries that nobody uses.
    if table.parts.len() > 1 && part_rows.is_multiple_of(2) {
        table = Table::with_statistics(table.schema, table.parts.split_off(1));
    }
    if chance(rng, 4) { table } else { Table::with_statistics(table.schema, table.parts) }
}

fn load(schema: &Schema, batches: &[RecordBatch], part_rows: usize) -> Result<Table> {
    let loader = Loader::new(Field::all_from_arrow(schema)?, LoadOptions { part_rows, ..LoadOptions::default() });
    for (sequence, batch) in batches.iter().enumerate() {
        loader.append(sequence as u64, batch.clone())?;
    }
    loader.finish()
}
