//! Aggregations of few and many groups, dense and sparse, evenly spread, skewed and sorted, by numbers, text and several keys, give
//! what the reference interpreter gives: beyond the cache-sized tables that random queries stay within.

use std::sync::Arc;

use tandem_column::{AlignedVec, BitmapBuilder, Column, Field, Part, Table, Type};
use tandem_pipeline::{
    interpret::{interpret, rows},
    parse, random, verify,
};
use tandem_runtime::{QueryInputs, RunOptions, Runtime, Switches};

/// Enough for several runs of each worker.
const ROWS: usize = 80_000;

/// How often keys repeat, and in which order they come.
const SHAPES: [(&str, fn(u64) -> u64); 6] = [
    ("few", |row| spread(row) % 10),
    ("as many as a run has", |row| spread(row) % 20_000),
    ("more than the cache holds", |row| spread(row) % 60_000),
    ("all different", |row| row),
    ("sorted", |row| row / 4),
    ("skewed", |row| if row.is_multiple_of(2) { 7 } else { spread(row) % 50_000 }),
];

/// Gives numbers without a pattern.
fn spread(row: u64) -> u64 {
    let row = row.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (row ^ row >> 31).wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 20
}

/// A dense key, a sparse one with nulls, a key as text, a float, and values that are null at times.
fn table(key: fn(u64) -> u64) -> Table {
    let all = || 0..ROWS as u64;
    let nullable = |every: u64| {
        let mut validity = BitmapBuilder::default();
        all().for_each(|row| validity.push(!row.is_multiple_of(every)));
        Some(validity.finish())
    };
    let integers = |value: &dyn Fn(u64) -> i64| all().map(value).collect::<AlignedVec<i64>>();
    let text = all().map(|row| {
        let long = if key(row).is_multiple_of(5) { " of some more bytes" } else { "" };
        Some(format!("key {}{long}", key(row)))
    });
    let text = Column::from_values(Type::String, text);
    let sparse = integers(&|row| if row.is_multiple_of(11) { 0 } else { (key(row) as i64 - 999) << 40 });
    let columns = [
        Column::from_i64(Type::Int64, integers(&|row| key(row) as i64 - 5), None),
        Column::from_i64(Type::Int64, sparse, nullable(11)),
        text,
        Column::from_f64(all().map(|row| key(row) as f64 / 8.0).collect::<AlignedVec<f64>>(), None),
        Column::from_i64(Type::Int64, integers(&|row| (row * 31 % 1009) as i64 - 500), None),
        Column::from_i64(
            Type::Int64,
            integers(&|row| if row.is_multiple_of(7) { 0 } else { (row % 13) as i64 }),
            nullable(7),
        ),
    ];
    let names = [
        ("k", Type::Int64),
        ("s", Type::Int64),
        ("t", Type::String),
        ("f", Type::Float64),
        ("v", Type::Int64),
        ("w", Type::Int64),
    ];
    let schema: Arc<[Field]> = names.map(|(name, kind)| Field::new(name, kind, true)).into();
    let columns = columns.map(Arc::new).to_vec();
    Table::with_statistics(schema, vec![Arc::new(Part { rows: ROWS, columns })])
}

/// The keys of each aggregation, by slot.
const KEYS: [&str; 8] = ["", "$0", "$1", "$2", "$3", "$0, $5", "$1, $2", "$3, $1, $0"];

/// Aggregates with a state of fixed size, and distinct ones.
const AGGREGATES: &str = "count_rows(): int64, sum($4): int64, count($5): int64, average($4): float64, min($2): string, \
max($3): float64, count(distinct $5): int64, count(distinct $1): int64, sum(distinct $4): int64";

/// Aggregates of pairs that do not cancel out, of bits and by a sketch, and those that need all values of a group.
const STATISTICS: &str = "correlation($4, $4): float64, covariance_sample($5, $5): float64, regression_slope($5, $5): float64, \
regression_average_x($4, $5): float64, regression_squares_y($4, $5): float64, bit_and($4): int64, bit_xor($5): int64, \
count_approximate($2): int64, median($3): float64, quantile($3, 0.3): float64, median(distinct $3): float64, \
quantile($3, 0.999): float64, count_approximate($4): int64, count_approximate($3): int64, \
nth($5, 1 order ($4, $1 desc, $5)): int64, nth($2, -2 order ($5 nulls first, $2)): string, nth($2, 1 order ($4)): string, \
nth($4, -1 order ($3 desc)): int64, nth($3, -1 order ($2)): float64, nth($3, 1 order ($2 nulls first)): float64, \
nth($4, 1): int64, nth($4, -1): int64, nth($1, 1 order ($5 desc nulls first)): int64, join_text($2, ', ' order ($4, $2)): string";

#[test]
fn groups_of_any_number_and_order_agree_with_the_interpreter() {
    agree_with_the_interpreter(AGGREGATES, &KEYS);
}

#[test]
fn statistics_and_lists_of_values_agree_with_the_interpreter() {
    agree_with_the_interpreter(STATISTICS, &["", "$0", "$1", "$2", "$3, $1, $0"]);
}

fn agree_with_the_interpreter(aggregates: &str, by: &[&str]) {
    let runtime = Runtime::new(2);
    for (shape, key) in SHAPES {
        let tables = vec![("t".to_string(), Arc::new(table(key)))];
        let inputs = QueryInputs { tables: tables.iter().cloned().collect(), ..QueryInputs::default() };
        let reference = random::inputs(&tables);
        for keys in by {
            let query = format!(
                "pipeline 0
  scan t [k@0: int64, s@1: int64, t@2: string, f@3: float64, v@4: int64, w@5: int64]
  aggregate by ({keys}) ({aggregates})
"
            );
            let query = parse(&query).expect("the query is right");
            verify(&query).expect("the query is well-formed");
            let expected = interpret(&query, &reference).expect("it is computed");
            for vector_rows in [4096, 100] {
                let switches = Switches { vector_rows, ..Switches::default() };
                let options = RunOptions { settings: switches.into(), ..RunOptions::default() };
                let found = rows(&runtime.execute(&query, &inputs, &options).expect("it runs").table);
                assert_eq!(found.len(), expected.len(), "groups by ({keys}), {shape}, vectors of {vector_rows} rows");
                let same = random::same_rows(&expected, &found);
                assert!(same, "values of groups by ({keys}), {shape}, vectors of {vector_rows} rows");
            }
        }
    }
}
