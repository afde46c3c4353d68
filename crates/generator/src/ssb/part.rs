//! Parts, in the hierarchy brand → category → manufacturer, and the price every order line of a part is computed from.

use arrow_schema::{DataType, SchemaRef};
use tandem_column::Result;

use super::{
    batch, integers, schema, strings,
    words::{COLORS, CONTAINERS, TYPES},
};
use crate::{
    random::{Streams, Use},
    source::{Emit, GROUP_ROWS, TableSource, batches, group_range},
};

/// Returns the retail price of a part in cents, from 900.00 to 2098.99, which TPC-H defines by the key alone.
pub fn retail_price(key: u64) -> i32 {
    (90_000 + (key / 10) % 20_001 + 100 * (key % 1_000)) as i32
}

/// The part table.
pub struct Parts {
    rows: u64,
    streams: Streams,
    schema: SchemaRef,
}

struct Row {
    name: [&'static str; 2],
    /// Manufacturer 1 to 5, category within it 1 to 5, brand within that 1 to 40.
    brand: (i32, i32, i32),
    color: &'static str,
    kind: [&'static str; 3],
    size: i32,
    container: [&'static str; 2],
}

impl Parts {
    pub fn new(seed: u64, rows: u64) -> Self {
        use DataType::{Int32, Utf8};
        Parts {
            rows,
            streams: Streams::new(seed, Use::Part),
            schema: schema(&[
                ("p_partkey", Int32),
                ("p_name", Utf8),
                ("p_mfgr", Utf8),
                ("p_category", Utf8),
                ("p_brand1", Utf8),
                ("p_color", Utf8),
                ("p_type", Utf8),
                ("p_size", Int32),
                ("p_container", Utf8),
            ]),
        }
    }

    fn row(&self, key: u64) -> Row {
        let mut random = self.streams.stream(key);
        let brand = (random.between(1, 5), random.between(1, 5), random.between(1, 40));
        let first = random.below(COLORS.len() as u64) as usize;
        // Any other colour: a step of 1 to 91 round the list.
        let second = (first + random.between(1, COLORS.len() as i32 - 1) as usize) % COLORS.len();
        Row {
            name: [COLORS[first], COLORS[second]],
            brand,
            color: random.pick(&COLORS),
            kind: [random.pick(&TYPES.0), random.pick(&TYPES.1), random.pick(&TYPES.2)],
            size: random.between(1, 50),
            container: [random.pick(&CONTAINERS.0), random.pick(&CONTAINERS.1)],
        }
    }
}

impl TableSource for Parts {
    fn name(&self) -> &'static str {
        "part"
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

    fn generate(&self, group: usize, emit: &mut Emit<'_>) -> Result<()> {
        for range in batches(group_range(self.rows, group)) {
            let keys = range.start + 1..range.end + 1;
            let rows: Vec<Row> = keys.clone().map(|key| self.row(key)).collect();
            emit(batch(
                &self.schema,
                vec![
                    integers(keys.map(|key| key as i32)),
                    strings(rows.iter().map(|r| r.name.join(" "))),
                    strings(rows.iter().map(|r| format!("MFGR#{}", r.brand.0))),
                    strings(rows.iter().map(|r| format!("MFGR#{}{}", r.brand.0, r.brand.1))),
                    strings(rows.iter().map(|r| format!("MFGR#{}{}{}", r.brand.0, r.brand.1, r.brand.2))),
                    strings(rows.iter().map(|r| r.color)),
                    strings(rows.iter().map(|r| r.kind.join(" "))),
                    integers(rows.iter().map(|r| r.size)),
                    strings(rows.iter().map(|r| r.container.join(" "))),
                ],
            )?)?;
        }
        Ok(())
    }
}
