//! Customers and suppliers: a name, an address, a phone, and a place in the hierarchy city → nation → region.

use arrow_schema::{DataType, SchemaRef};
use tandem_column::Result;

use super::{
    batch, integers, schema, strings,
    words::{NATIONS, REGIONS, SEGMENTS},
};
use crate::{
    random::{Random, Streams, Use},
    source::{Emit, GROUP_ROWS, TableSource, batches, group_range},
};

/// The customer or the supplier table.
pub struct Dimension {
    name: &'static str,
    title: &'static str,
    segments: bool,
    rows: u64,
    streams: Streams,
    schema: SchemaRef,
}

struct Row {
    name: String,
    address: String,
    nation: usize,
    city: u64,
    phone: String,
    segment: &'static str,
}

impl Dimension {
    pub fn customer(seed: u64, rows: u64) -> Self {
        let streams = Streams::new(seed, Use::Customer);
        let schema = Self::columns("c", "custkey", true);
        Dimension { name: "customer", title: "Customer", segments: true, rows, streams, schema }
    }

    pub fn supplier(seed: u64, rows: u64) -> Self {
        let streams = Streams::new(seed, Use::Supplier);
        let schema = Self::columns("s", "suppkey", false);
        Dimension { name: "supplier", title: "Supplier", segments: false, rows, streams, schema }
    }

    fn columns(prefix: &str, key: &str, segments: bool) -> SchemaRef {
        let mut names = vec![key, "name", "address", "city", "nation", "region", "phone"];
        if segments {
            names.push("mktsegment");
        }
        let names: Vec<String> = names.iter().map(|name| format!("{prefix}_{name}")).collect();
        let kind = |at| if at == 0 { DataType::Int32 } else { DataType::Utf8 };
        schema(&names.iter().enumerate().map(|(at, name)| (name.as_str(), kind(at))).collect::<Vec<_>>())
    }

    fn row(&self, key: u64) -> Row {
        let mut random = self.streams.stream(key);
        let nation = random.below(NATIONS.len() as u64) as usize;
        let city = random.below(10);
        Row {
            name: format!("{}#{key:09}", self.title),
            address: address(&mut random),
            nation,
            city,
            phone: phone(&mut random, nation),
            segment: random.pick(&SEGMENTS),
        }
    }
}

impl TableSource for Dimension {
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

    fn generate(&self, group: usize, emit: &mut Emit<'_>) -> Result<()> {
        for range in batches(group_range(self.rows, group)) {
            let keys = range.start + 1..range.end + 1;
            let rows: Vec<Row> = keys.clone().map(|key| self.row(key)).collect();
            let mut columns = vec![
                integers(keys.map(|key| key as i32)),
                strings(rows.iter().map(|r| &r.name)),
                strings(rows.iter().map(|r| &r.address)),
                strings(rows.iter().map(|r| city(NATIONS[r.nation].0, r.city))),
                strings(rows.iter().map(|r| NATIONS[r.nation].0)),
                strings(rows.iter().map(|r| REGIONS[NATIONS[r.nation].1])),
                strings(rows.iter().map(|r| &r.phone)),
            ];
            if self.segments {
                columns.push(strings(rows.iter().map(|r| r.segment)));
            }
            emit(batch(&self.schema, columns)?)?;
        }
        Ok(())
    }
}

/// Names a city: the nation's first nine letters, padded with blanks, and a digit.
fn city(nation: &str, digit: u64) -> String {
    format!("{:<9}{digit}", &nation[..nation.len().min(9)])
}

/// Makes an address of 10 to 25 letters, digits and marks.
fn address(random: &mut Random) -> String {
    const LETTERS: &[u8; 64] = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ, ";
    let length = random.between(10, 25);
    (0..length).map(|_| random.pick(LETTERS) as char).collect()
}

/// Makes a phone number: the nation's code, 10 to 34, and three groups of digits.
fn phone(random: &mut Random, nation: usize) -> String {
    let (area, exchange, number) = (random.between(100, 999), random.between(100, 999), random.between(1000, 9999));
    format!("{}-{area}-{exchange}-{number}", nation + 10)
}
