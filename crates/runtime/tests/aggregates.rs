//! Aggregates on devices with nothing left to the CPU: of distinct values, of states, of pairs, of bits and in order, by keys of
//! every layout.

use std::sync::Arc;

use tandem_column::{AlignedVec, Bitmap, Column, Field, Part, Table, Type};
use tandem_device::{Backend, Search, shim::Shim, testing};
use tandem_pipeline::{
    interpret::{interpret, rows},
    parse, random, verify,
};
use tandem_runtime::{Accelerator, QueryInputs, RunOptions, Runtime};

const SCAN: &str = "scan t [k@0: int64?, s@1: int64?, t@2: string?, f@3: float64?, v@4: int64, w@5: int64?, b@6: boolean?, \
u@7: uint64, d@8: decimal(30, 2)?, x@9: float64]";

/// Keys whose groups are one, an array, a hash table of one number, of several, and of texts.
const KEYS: [&str; 6] = ["", "$0", "$1", "$0, $1, $3", "$2", "$1, $2"];

const DISTINCT: &str = "count_rows(): int64, count(distinct $4): int64, count(distinct $2): int64, sum(distinct $5): int64, \
average(distinct $5): float64, count(distinct $3): int64, sum($4): int64, median(distinct $3): float64, \
count(distinct $4 where $6): int64, min(distinct $3): float64, max(distinct $5): int64, bit_xor(distinct $4): int64, \
sum(distinct $8): decimal(38, 2)";

const MOMENTS: &str = "variance_sample($4): float64, deviation_population($3): float64, variance_population($8): float64, \
correlation($4, $4): float64, covariance_sample($5, $5): float64, regression_slope($5, $5): float64, correlation($4, $9): float64, \
regression_average_x($4, $5): float64, regression_squares_y($4, $5): float64, regression_products($4, $4): float64, \
regression_r2($4, $4 where $6): float64, deviation_sample($5 where $6): float64";

const BITS: &str = "bit_and($4): int64, bit_or($5): int64, bit_xor($4 where $6): int64, bit_xor($7): uint64, bit_and($7): uint64, \
bool_and($6): boolean, bool_or($6): boolean, min($7): uint64, max($7): uint64, min($8): decimal(30, 2), count($5): int64";

const IN_ORDER: &str = "median($3): float64, quantile($3, 0.3): float64, quantile($3, 0.999 where $6): float64, \
median($8): decimal(30, 2), median($9): float64, sum($4): int64, deviation_sample($3): float64";

/// Gives numbers without a pattern.
fn spread(row: u64) -> u64 {
    let row = row.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (row ^ row >> 31).wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 20
}

/// Keys, few and many, and values of every kind that are null at times, in parts of so many rows; `x` is one number in each group.
fn table(parts: u64, of_part: u64) -> Arc<Table> {
    let schema: Arc<[Field]> = Arc::new([
        Field::new("k", Type::Int64, true),
        Field::new("s", Type::Int64, true),
        Field::new("t", Type::String, true),
        Field::new("f", Type::Float64, true),
        Field::new("v", Type::Int64, false),
        Field::new("w", Type::Int64, true),
        Field::new("b", Type::Boolean, true),
        Field::new("u", Type::UInt64, false),
        Field::new("d", Type::Decimal { precision: 30, scale: 2 }, true),
        Field::new("x", Type::Float64, false),
    ]);
    let part = |part: u64| {
        let all: Vec<u64> = (part * of_part..(part + 1) * of_part).collect();
        let valid = |every: u64| Some(all.iter().map(|row| !spread(*row).is_multiple_of(every)).collect::<Bitmap>());
        let of = |value: &dyn Fn(u64) -> i64| all.iter().map(|row| value(*row)).collect::<AlignedVec<i64>>();
        let wide = |value: &dyn Fn(u64) -> i128| all.iter().map(|row| value(*row)).collect::<AlignedVec<i128>>();
        let floats = |value: &dyn Fn(u64) -> f64| all.iter().map(|row| value(*row)).collect::<AlignedVec<f64>>();
        let text = all.iter().map(|row| (!row.is_multiple_of(9)).then(|| format!("text {}", spread(*row) % 40)));
        let columns = vec![
            Column::from_i64(Type::Int64, of(&|row| (spread(row) % 7) as i64), valid(11)),
            Column::from_i64(Type::Int64, of(&|row| ((spread(row) % 50) as i64 - 20) << 40), valid(13)),
            Column::from_values(Type::String, text),
            Column::from_f64(floats(&|row| (spread(row) % 25) as f64 / 8.0 - 1.0), valid(17)),
            Column::from_i64(Type::Int64, of(&|row| (spread(row * 3) % 90) as i64 - 40), None),
            Column::from_i64(Type::Int64, of(&|row| (spread(row * 5) % 13) as i64), valid(7)),
            Column::from_i64(Type::Boolean, of(&|row| i64::from(spread(row).is_multiple_of(3))), valid(5)),
            Column::from_i128(Type::UInt64, wide(&|row| i128::from(spread(row) << 30)), None),
            Column::from_i128(
                Type::Decimal { precision: 30, scale: 2 },
                wide(&|row| i128::from(spread(row) % 30) * (1 << 80) - (1 << 84)),
                valid(10),
            ),
            Column::from_f64(floats(&|_| 0.1), None),
        ];
        Arc::new(Part::new(all.len(), columns))
    };
    Arc::new(Table::with_statistics(schema, (0..parts).map(part).collect()))
}

/// The devices with rows dealt out in runs and in turn, and CUDA's text on the CPU.
fn accelerators() -> Vec<(&'static str, Arc<Accelerator>)> {
    let found = Search::from_environment().run();
    let mut all = Vec::new();
    if testing::has(&found, Backend::OpenCl) {
        let device = found.devices[0].clone();
        all.push(("in runs", Arc::new(Accelerator::new(device.clone()))));
        all.push(("in turn", Arc::new(Accelerator::new(device).in_turn().keep_all())));
    }
    match Shim::open() {
        Ok(shim) => all.push(("shim", Arc::new(Accelerator::new(Arc::new(shim))))),
        Err(error) => assert!(std::env::var_os("TANDEM_REQUIRE_SHIM").is_none(), "{error}"),
    }
    all
}

fn check(name: &str, devices: &[Arc<Accelerator>], table: &Arc<Table>, text: &str) {
    let query = parse(text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    verify(&query).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let tables = vec![("t".to_owned(), table.clone())];
    let expected = interpret(&query, &random::inputs(&tables)).expect("the interpreter runs it");
    let inputs = QueryInputs { tables: tables.into_iter().collect(), ..QueryInputs::default() };
    let options = RunOptions { devices: devices.to_vec(), ..RunOptions::default() };
    let execution = Runtime::new(1).execute(&query, &inputs, &options).expect("it runs");
    for pipeline in &execution.metrics.pipelines {
        assert!(pipeline.device.is_some() && pipeline.reason.is_none(), "{name}: {:?}\n{text}", pipeline.reason);
    }
    let found = rows(&execution.table);
    assert!(random::same_rows(&expected, &found), "{name}\n{text}\nexpected {expected:?}\nfound {found:?}");
}

/// Every kind of aggregate by every kind of key.
#[test]
fn aggregates_run_on_the_device() {
    for (name, device) in accelerators() {
        let (several, one) = (table(3, 700), table(1, 1500));
        for aggregates in [DISTINCT, MOMENTS, BITS, IN_ORDER] {
            for keys in KEYS {
                let text =
                    format!("pipeline 0\n  {SCAN}\n  filter $4 > -35:int64\n  aggregate by ({keys}) ({aggregates})\n");
                // Medians by text are of one part.
                let table = if keys.contains("$2") && aggregates == IN_ORDER { &one } else { &several };
                check(name, std::slice::from_ref(&device), table, &text);
            }
        }
    }
}

/// Of no rows, or no values, aggregates are null or 0.
#[test]
fn aggregates_of_nothing_run_on_the_device() {
    for (name, device) in accelerators() {
        for aggregates in [DISTINCT, MOMENTS, BITS, IN_ORDER] {
            for keys in ["", "$1"] {
                let text =
                    format!("pipeline 0\n  {SCAN}\n  filter $4 > 1000:int64\n  aggregate by ({keys}) ({aggregates})\n");
                check(name, std::slice::from_ref(&device), &table(2, 50), &text);
            }
        }
    }
}

/// States of a partial aggregation by two keys are finished by one of them, by the other, and by none.
#[test]
fn states_are_finished_on_the_device() {
    let aggregates = "count_rows(): int64, count($5): int64, sum($5): int64, average($4): float64, average($5): float64, \
min($3): float64, max($4): int64, variance_sample($4): float64, covariance_population($4, $4): float64, bit_or($5): int64, \
bool_and($6): boolean";
    let states = "n: int64, c: int64, s: int64?, a: float64?, an: int64, d: float64?, dn: int64, m: float64?, t: int64?, \
vc: int64, vm: float64, vs: float64, pc: int64, py: float64, px: float64, pyy: float64, pxx: float64, pyx: float64, b: int64?, \
o: boolean?";
    let finished = "count_rows($2): int64, count($3): int64, sum($4): int64, average($5): float64, average($7): float64, \
min($9): float64, max($10): int64, variance_sample($11): float64, covariance_population($14): float64, bit_or($20): int64, \
bool_and($21): boolean";
    for (name, device) in accelerators() {
        for keys in ["", "$0", "$1", "$1, $0"] {
            let text = format!(
                "pipeline 0\n  {SCAN}\n  aggregate partial by ($0, $1) ({aggregates})\n\
pipeline 1\n  result 0 [k: int64?, s: int64?, {states}]\n  aggregate final by ({keys}) ({finished})\n"
            );
            check(name, std::slice::from_ref(&device), &table(2, 600), &text);
        }
    }
}
