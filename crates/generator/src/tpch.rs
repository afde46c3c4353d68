//! TPC-H through the crate `tpchgen`, which gives the very rows of the benchmark's own generator, part by part.

use arrow_array::RecordBatch;
use arrow_schema::{ArrowError, SchemaRef};
use tandem_column::{Error, Result};
use tpchgen::generators::{
    CustomerGenerator, LineItemGenerator, NationGenerator, OrderGenerator, PartGenerator, PartSuppGenerator,
    RegionGenerator, SupplierGenerator,
};
use tpchgen_arrow::{
    CustomerArrow, LineItemArrow, NationArrow, OrderArrow, PartArrow, PartSuppArrow, RegionArrow, SupplierArrow,
};

use crate::source::{BATCH_ROWS, Emit, GROUP_ROWS, TableSource};

type Batches = Box<dyn Iterator<Item = Result<RecordBatch, ArrowError>>>;

/// One table of TPC-H.
struct Tpch {
    name: &'static str,
    sf: f64,
    rows: u64,
    groups: usize,
    schema: SchemaRef,
    wide: &'static [&'static str],
    make: fn(f64, i32, i32) -> Batches,
}

/// Returns the eight tables, the smallest first.
pub fn sources(sf: f64) -> Vec<Box<dyn TableSource>> {
    macro_rules! table {
        ($name:literal, $rows:expr, $wide:expr, $arrow:ident, $generator:ident) => {
            Box::new(Tpch {
                name: $name,
                sf,
                rows: $rows as u64,
                groups: ($rows as u64).div_ceil(GROUP_ROWS - GROUP_ROWS / 32).max(1) as usize,
                schema: $arrow::schema_ref(),
                wide: $wide,
                make: |sf, part, parts| {
                    Box::new($arrow::new($generator::new(sf, part, parts)).with_batch_size(BATCH_ROWS))
                },
            })
        };
    }
    let orders = OrderGenerator::calculate_row_count(sf, 1, 1);
    vec![
        table!("region", 5, &[], RegionArrow, RegionGenerator),
        table!("nation", 25, &[], NationArrow, NationGenerator),
        table!(
            "supplier",
            SupplierGenerator::calculate_row_count(sf, 1, 1),
            &["s_suppkey", "s_name", "s_address", "s_phone", "s_comment"],
            SupplierArrow,
            SupplierGenerator
        ),
        table!(
            "part",
            PartGenerator::calculate_row_count(sf, 1, 1),
            &["p_partkey", "p_name"],
            PartArrow,
            PartGenerator
        ),
        table!(
            "customer",
            CustomerGenerator::calculate_row_count(sf, 1, 1),
            &["c_custkey", "c_name", "c_address", "c_phone", "c_comment"],
            CustomerArrow,
            CustomerGenerator
        ),
        table!(
            "partsupp",
            PartSuppGenerator::calculate_row_count(sf, 1, 1),
            &["ps_partkey", "ps_comment"],
            PartSuppArrow,
            PartSuppGenerator
        ),
        table!("orders", orders, &["o_orderkey", "o_totalprice", "o_comment"], OrderArrow, OrderGenerator),
        // Orders have four lines on average; groups hold a little less than their limit, so that chance does not exceed it.
        table!(
            "lineitem",
            orders * 4,
            &["l_orderkey", "l_extendedprice", "l_comment"],
            LineItemArrow,
            LineItemGenerator
        ),
    ]
}

impl TableSource for Tpch {
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
        self.groups
    }
    fn wide_columns(&self) -> &'static [&'static str] {
        self.wide
    }

    fn generate(&self, group: usize, emit: &mut Emit<'_>) -> Result<()> {
        for batch in (self.make)(self.sf, group as i32 + 1, self.groups as i32) {
            emit(batch.map_err(|error| Error::internal(format!("Generating TPC-H failed: {error}.")))?)?;
        }
        Ok(())
    }
}
