//! The fact table: orders of one to seven lines.
//!
//! How many lines an order has is a random number of its own, so that a quick pass over the orders finds where each group of rows
//! begins; an order that spans two groups is made twice, and each group keeps its lines.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int32Array, Int64Array};
use arrow_schema::{DataType, SchemaRef};
use tandem_column::Result;

use super::{
    Cardinality, batch,
    date::{DAY_COUNT, days},
    part::retail_price,
    schema, strings,
    words::{PRIORITIES, SHIP_MODES},
};
use crate::{
    random::{Streams, Use},
    source::{BATCH_ROWS, Emit, GROUP_ROWS, TableSource},
};

/// Days on which orders are taken: as in TPC-H, none in the last 151 of the calendar's 2557 days, so that every commit date
/// (30 to 90 days after the order) is in the date table.
const ORDER_DAYS: u64 = 2557 - 151;
const MOST_LINES: u64 = 7;

/// The lineorder table.
pub struct LineOrder {
    rows: u64,
    counts: Streams,
    orders: Streams,
    size: Cardinality,
    /// The order and its line with which each group begins, both from 0, and past the last group the end.
    starts: Vec<(u64, u64)>,
    day_keys: Vec<i32>,
    schema: SchemaRef,
}

/// One line of an order.
#[derive(Clone, Copy, Default)]
struct Line {
    part: i32,
    supplier: i32,
    quantity: i32,
    extended_price: i32,
    discount: i32,
    revenue: i32,
    supply_cost: i32,
    tax: i32,
    commit_date: i32,
    ship_mode: u8,
}

/// The columns of a batch being filled, in the schema's order.
#[derive(Default)]
struct Columns {
    order_key: Vec<i64>,
    integers: [Vec<i32>; 13],
    priority: Vec<u8>,
    ship_mode: Vec<u8>,
}

impl LineOrder {
    pub fn new(seed: u64, size: Cardinality) -> Self {
        let counts = Streams::new(seed, Use::LineCount);
        let mut starts = vec![(0, 0)];
        let mut rows = 0;
        for order in 0..size.orders {
            let lines = line_count(counts, order);
            let next = starts.len() as u64 * GROUP_ROWS;
            if rows + lines > next {
                starts.push((order, next - rows));
            }
            rows += lines;
        }
        starts.push((size.orders, 0));
        LineOrder {
            rows,
            counts,
            orders: Streams::new(seed, Use::Order),
            size,
            starts,
            day_keys: days().map(|day| day.key()).collect(),
            schema: columns(key_of(size.orders) > i64::from(i32::MAX)),
        }
    }

    /// Adds lines `range` of `order`, both counted from 0.
    fn add(&self, order: u64, range: std::ops::Range<u64>, to: &mut Columns) {
        let mut random = self.orders.stream(order);
        let customer = random.below(self.size.customers) as i32 + 1;
        let day = random.below(ORDER_DAYS) as usize;
        let priority = random.below(PRIORITIES.len() as u64) as u8;
        let mut lines = [Line::default(); MOST_LINES as usize];
        let lines = &mut lines[..line_count(self.counts, order) as usize];
        let mut total = 0;
        for line in lines.iter_mut() {
            let part = random.below(self.size.parts) + 1;
            let price = retail_price(part);
            line.part = part as i32;
            line.supplier = random.below(self.size.suppliers) as i32 + 1;
            line.quantity = random.between(1, 50);
            line.discount = random.between(0, 10);
            line.tax = random.between(0, 8);
            line.extended_price = price * line.quantity;
            line.revenue = (i64::from(line.extended_price) * i64::from(100 - line.discount) / 100) as i32;
            line.supply_cost = 6 * price / 10;
            line.commit_date = self.day_keys[day + random.between(30, 90) as usize];
            line.ship_mode = random.below(SHIP_MODES.len() as u64) as u8;
            total += (i64::from(line.revenue) * i64::from(100 + line.tax) / 100) as i32;
        }
        for number in range {
            let line = &lines[number as usize];
            to.order_key.push(key_of(order + 1));
            to.priority.push(priority);
            to.ship_mode.push(line.ship_mode);
            let values = [
                number as i32 + 1,
                customer,
                line.part,
                line.supplier,
                self.day_keys[day],
                line.quantity,
                line.extended_price,
                total,
                line.discount,
                line.revenue,
                line.supply_cost,
                line.tax,
                line.commit_date,
            ];
            for (column, value) in to.integers.iter_mut().zip(values) {
                column.push(value);
            }
        }
    }

    fn flush(&self, columns: &mut Columns, emit: &mut Emit<'_>) -> Result<()> {
        let Columns { order_key, integers, priority, ship_mode } = std::mem::take(columns);
        let rows = order_key.len();
        let keys: ArrayRef = match self.schema.field(0).data_type() {
            DataType::Int64 => Arc::new(Int64Array::from(order_key)),
            _ => Arc::new(Int32Array::from_iter_values(order_key.into_iter().map(|key| key as i32))),
        };
        let mut integers = integers.into_iter().map(|values| Arc::new(Int32Array::from(values)) as ArrayRef);
        let mut arrays = vec![keys];
        arrays.extend(integers.by_ref().take(5));
        arrays.push(strings(priority.iter().map(|&at| PRIORITIES[usize::from(at)])));
        arrays.push(strings(std::iter::repeat_n("0", rows)));
        arrays.extend(integers);
        arrays.push(strings(ship_mode.iter().map(|&at| SHIP_MODES[usize::from(at)])));
        emit(batch(&self.schema, arrays)?)
    }
}

impl TableSource for LineOrder {
    fn name(&self) -> &'static str {
        "lineorder"
    }
    fn schema(&self) -> SchemaRef {
        SchemaRef::clone(&self.schema)
    }
    fn rows(&self) -> u64 {
        self.rows
    }
    fn groups(&self) -> usize {
        self.starts.len() - 1
    }
    fn wide_columns(&self) -> &'static [&'static str] {
        &["lo_orderkey", "lo_custkey", "lo_partkey", "lo_extendedprice", "lo_ordtotalprice", "lo_revenue"]
    }

    fn generate(&self, group: usize, emit: &mut Emit<'_>) -> Result<()> {
        let ((mut order, mut line), (last, end)) = (self.starts[group], self.starts[group + 1]);
        let mut columns = Columns::default();
        while (order, line) < (last, end) {
            let lines = if order == last { end } else { line_count(self.counts, order) };
            self.add(order, line..lines, &mut columns);
            (order, line) = (order + 1, 0);
            if columns.order_key.len() > BATCH_ROWS - MOST_LINES as usize {
                self.flush(&mut columns, emit)?;
            }
        }
        if columns.order_key.is_empty() { Ok(()) } else { self.flush(&mut columns, emit) }
    }
}

fn line_count(counts: Streams, order: u64) -> u64 {
    counts.stream(order).below(MOST_LINES) + 1
}

/// Returns the key of the order that is the `index`-th from 1: eight keys are used, then 24 left out.
fn key_of(index: u64) -> i64 {
    (((index >> 3) << 5) | (index & 7)) as i64
}

fn columns(long_keys: bool) -> SchemaRef {
    use DataType::{Int32, Int64, Utf8};
    schema(&[
        ("lo_orderkey", if long_keys { Int64 } else { Int32 }),
        ("lo_linenumber", Int32),
        ("lo_custkey", Int32),
        ("lo_partkey", Int32),
        ("lo_suppkey", Int32),
        ("lo_orderdate", Int32),
        ("lo_orderpriority", Utf8),
        ("lo_shippriority", Utf8),
        ("lo_quantity", Int32),
        ("lo_extendedprice", Int32),
        ("lo_ordtotalprice", Int32),
        ("lo_discount", Int32),
        ("lo_revenue", Int32),
        ("lo_supplycost", Int32),
        ("lo_tax", Int32),
        ("lo_commitdate", Int32),
        ("lo_shipmode", Utf8),
    ])
}

const _: () = assert!(ORDER_DAYS as usize - 1 + 90 < DAY_COUNT);
