//! Random tables, expressions and queries from a seed, for differential tests of executors.
//!
//! Queries are well-formed and cover the language: all sources, steps, join kinds, sinks, types and functions, with
//! nulls, NaN, −0.0, duplicates and overflow. None can fail at run time (what could overflow wraps or gives null), and
//! the rows of each result, though not their order, are determined up to the rounding of float sums: compare them with
//! [`same_rows`]. A test prints its seed and replays from it: see [`seed`].

mod expression;
mod query;
mod table;

use rand::{RngCore, SeedableRng, rngs::StdRng};
use tandem_column::Table;

pub use expression::expression;
pub use query::query;
pub use table::{literal, table};

use crate::{
    Value,
    interpret::{self, Inputs, Row},
    scalar,
};

/// A table and its name, as queries name it.
pub type NamedTable = (String, std::sync::Arc<Table>);

/// Makes a generator for a seed.
pub fn generator(seed: u64) -> StdRng {
    StdRng::seed_from_u64(seed)
}

/// Returns the seed of this test run: that of the environment variable `TANDEM_SEED`, or another one each time.
pub fn seed() -> u64 {
    match std::env::var("TANDEM_SEED").ok().and_then(|seed| seed.parse().ok()) {
        Some(seed) => seed,
        None => rand::random(),
    }
}

/// Makes some tables, of up to `rows` rows each; one has none at all now and then.
pub fn tables(rng: &mut dyn RngCore, rows: usize) -> Vec<NamedTable> {
    let count = 1 + below(rng, 3);
    let size = |rng: &mut dyn RngCore| if chance(rng, 8) { 0 } else { 1 + below(rng, rows.max(1)) };
    (0..count)
        .map(|index| {
            let rows = size(rng);
            (format!("table{index}"), std::sync::Arc::new(table(rng, rows)))
        })
        .collect()
}

/// Returns the tables as the interpreter takes them.
pub fn inputs(tables: &[NamedTable]) -> Inputs {
    let rows = tables.iter().map(|(name, table)| (name.clone(), interpret::rows(table)));
    Inputs { tables: rows.collect(), ..Inputs::default() }
}

/// Tells whether two results have the same rows in any order, floats nearly.
///
/// Rows are put in an order that ignores floats first, so that sums that differ in their last digits still meet.
pub fn same_rows(left: &[Row], right: &[Row]) -> bool {
    let columns = left.first().map_or(0, Vec::len);
    let is_float = |column: usize| {
        let mut values = left.iter().chain(right).filter_map(|row| row.get(column));
        values.any(|value| matches!(value, Value::Float(_)))
    };
    let (floats, others): (Vec<usize>, Vec<usize>) = (0..columns).partition(|column| is_float(*column));
    let sorted = |rows: &[Row]| {
        let mut rows = rows.to_vec();
        rows.sort_by(|left, right| {
            let columns = others.iter().chain(&floats).filter(|column| **column < left.len().min(right.len()));
            let mut orders = columns.map(|column| scalar::order(&left[*column], &right[*column]));
            orders.find(|order| order.is_ne()).unwrap_or(std::cmp::Ordering::Equal)
        });
        rows
    };
    let same_row = |(left, right): (&Row, &Row)| {
        left.len() == right.len() && left.iter().zip(right).all(|(left, right)| same_value(left, right))
    };
    left.len() == right.len() && sorted(left).iter().zip(&sorted(right)).all(same_row)
}

/// Tells whether two values are the same, floats up to a relative difference of 10⁻⁹, any NaN being like another.
pub fn same_value(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Float(left), Value::Float(right)) => {
            left == right
                || left.is_nan() && right.is_nan()
                || (left - right).abs() <= 1e-9 * left.abs().max(right.abs()).max(1e-9)
        }
        (left, right) => left == right,
    }
}

/// Returns a number below `limit`.
fn below(rng: &mut dyn RngCore, limit: usize) -> usize {
    (rng.next_u64() % limit.max(1) as u64) as usize
}

/// Tells, once in `in_how_many` times, yes.
fn chance(rng: &mut dyn RngCore, in_how_many: usize) -> bool {
    below(rng, in_how_many) == 0
}

/// Chooses one of some things.
fn pick<'a, T>(rng: &mut dyn RngCore, from: &'a [T]) -> &'a T {
    &from[below(rng, from.len())]
}
