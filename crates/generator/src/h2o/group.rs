//! The table of the group-by questions: three keys as text and three as integers, of few and of many groups, and three
//! numbers.

use arrow_schema::{DataType, SchemaRef};
use tandem_column::Result;

use super::{batch, floats, integers, measure, schema, strings};
use crate::{
    random::{Streams, Use},
    source::{Emit, GROUP_ROWS, TableSource, batches, group_range},
};

/// Groups of the small keys.
const GROUPS: u64 = 100;

/// The table `g1`.
pub struct Groups {
    rows: u64,
    streams: Streams,
    schema: SchemaRef,
}

struct Row {
    ids: [u64; 6],
    v1: i32,
    v2: i32,
    v3: f64,
}

impl Groups {
    /// Describes a table of so many rows.
    pub fn new(seed: u64, rows: u64) -> Self {
        let columns = ["id1", "id2", "id3"].map(|name| (name, DataType::Utf8)).into_iter();
        let columns = columns.chain(["id4", "id5", "id6", "v1", "v2"].map(|name| (name, DataType::Int32)));
        let columns: Vec<_> = columns.chain([("v3", DataType::Float64)]).collect();
        Groups { rows, streams: Streams::new(seed, Use::Group), schema: schema(&columns) }
    }

    fn row(&self, number: u64) -> Row {
        let mut random = self.streams.stream(number);
        let many = (self.rows / GROUPS).max(1);
        let ids = [GROUPS, GROUPS, many, GROUPS, GROUPS, many].map(|groups| 1 + random.below(groups));
        Row { ids, v1: random.between(1, 5), v2: random.between(1, 15), v3: measure(&mut random) }
    }
}

impl TableSource for Groups {
    fn name(&self) -> &'static str {
        "g1"
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
        &["id3", "id6", "v3"]
    }

    fn generate(&self, group: usize, emit: &mut Emit<'_>) -> Result<()> {
        for range in batches(group_range(self.rows, group)) {
            let rows: Vec<Row> = range.map(|number| self.row(number)).collect();
            let columns = vec![
                strings(rows.iter().map(|row| format!("id{:03}", row.ids[0]))),
                strings(rows.iter().map(|row| format!("id{:03}", row.ids[1]))),
                strings(rows.iter().map(|row| format!("id{:010}", row.ids[2]))),
                integers(rows.iter().map(|row| row.ids[3] as i32)),
                integers(rows.iter().map(|row| row.ids[4] as i32)),
                integers(rows.iter().map(|row| row.ids[5] as i32)),
                integers(rows.iter().map(|row| row.v1)),
                integers(rows.iter().map(|row| row.v2)),
                floats(rows.iter().map(|row| row.v3)),
            ];
            emit(batch(&self.schema, columns)?)?;
        }
        Ok(())
    }
}
