//! The tables of the join questions: `x` and three that it is joined with, by integers and by text of the same numbers.

use arrow_schema::{DataType, SchemaRef};
use tandem_column::Result;

use super::{batch, floats, integers, measure, schema, strings};
use crate::{
    random::{Random, Streams, Use, mix},
    source::{Emit, GROUP_ROWS, TableSource, batches, group_range},
};

/// One table: its name, the first of its keys that has a row for each value, and its number.
pub type Kind = (&'static str, Option<usize>, &'static str);

/// The four tables, the smallest first.
pub const SIDES: [Kind; 4] =
    [("small", Some(0), "v2"), ("medium", Some(1), "v2"), ("big", Some(2), "v2"), ("x", None, "v1")];

/// One of the tables.
pub struct Side {
    name: &'static str,
    /// The key that numbers the rows; `x` has none.
    unique: Option<usize>,
    rows: u64,
    /// How many values each key has.
    values: [u64; 3],
    streams: Streams,
    schema: SchemaRef,
}

impl Side {
    /// Describes a table for so many rows of `x`.
    pub fn new((name, unique, number): Kind, seed: u64, rows: u64) -> Self {
        let values = [1_000_000, 1_000, 1].map(|fraction| (rows / fraction).max(10));
        let keys = unique.map_or(3, |key| key + 1);
        let names = ["id1", "id2", "id3", "id4", "id5", "id6"];
        let columns = names[..keys].iter().map(|name| (*name, DataType::Int32));
        let columns = columns.chain(names[3..3 + keys].iter().map(|name| (*name, DataType::Utf8)));
        let columns: Vec<_> = columns.chain([(number, DataType::Float64)]).collect();
        let rows = unique.map_or(rows, |key| values[key]);
        // A stream for each table.
        let streams = Streams::new(seed ^ mix(keys as u64 + 4 * u64::from(unique.is_none())), Use::Join);
        Side { name, unique, rows, values, streams, schema: schema(&columns) }
    }

    fn keys(&self) -> usize {
        self.unique.map_or(3, |key| key + 1)
    }

    /// Draws the keys of a row. Those of `x` are from 1 on, those of the others from a tenth further.
    fn row(&self, number: u64, random: &mut Random) -> [i32; 3] {
        let draw = |(key, values): (usize, u64)| {
            let first = if self.unique.is_some() { values / 10 } else { 0 };
            let place = if self.unique == Some(key) { scatter(number, values) } else { random.below(values) };
            (1 + first + place) as i32
        };
        let mut numbered = (0..3).zip(self.values).map(draw);
        std::array::from_fn(|_| numbered.next().expect("there are three keys"))
    }
}

/// Gives each number below `values` another one, in no order: by steps of a prime that does not divide it.
fn scatter(number: u64, values: u64) -> u64 {
    const PRIMES: [u64; 2] = [2_147_483_647, 4_294_967_291];
    let prime = if values.is_multiple_of(PRIMES[0]) { PRIMES[1] } else { PRIMES[0] };
    (u128::from(number) * u128::from(prime) % u128::from(values.max(1))) as u64
}

impl TableSource for Side {
    fn name(&self) -> &'static str {
        self.name
    }
    fn schema(&self) -> SchemaRef {
        SchemaRef::clone(&self.schema)
    }
    fn rows(&self) -> u64 {
        self.rows
    }
    fn groups(&self) -> usize {
        self.rows.div_ceil(GROUP_ROWS) as usize
    }
    fn wide_columns(&self) -> &'static [&'static str] {
        match self.unique {
            None => &["id3", "id6", "v1"],
            Some(2) => &["id3", "id6", "v2"],
            Some(_) => &["v2"],
        }
    }

    fn generate(&self, group: usize, emit: &mut Emit<'_>) -> Result<()> {
        for range in batches(group_range(self.rows, group)) {
            let draw = |number: u64| {
                let mut random = self.streams.stream(number);
                (self.row(number, &mut random), measure(&mut random))
            };
            let rows: Vec<([i32; 3], f64)> = range.map(draw).collect();
            let keys = 0..self.keys();
            let mut columns: Vec<_> = keys.clone().map(|key| integers(rows.iter().map(|(ids, _)| ids[key]))).collect();
            columns.extend(keys.map(|key| strings(rows.iter().map(|(ids, _)| format!("id{}", ids[key])))));
            columns.push(floats(rows.iter().map(|(_, number)| *number)));
            emit(batch(&self.schema, columns)?)?;
        }
        Ok(())
    }
}
