//! The Star Schema Benchmark after O'Neil, O'Neil and Chen (revision 3): how many rows each table has, and its sources.
//!
//! Where the specification is silent we do as the authors' generator does: order keys use 8 of every 32 numbers, orders end 151
//! days before the date table does, money is whole cents, and the date table has 2556 days.

mod date;
mod dimension;
mod lineorder;
mod part;
#[cfg(test)]
mod tests;
mod words;

use crate::{
    GeneratorOptions,
    columns::{batch, integers, schema, strings},
    source::TableSource,
};

/// How many rows each table has, by scale factor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cardinality {
    /// Orders, of one to seven lines each.
    pub orders: u64,
    /// Customers.
    pub customers: u64,
    /// Suppliers.
    pub suppliers: u64,
    /// Parts, which grow with the logarithm of the scale factor from 1 on.
    pub parts: u64,
}

impl Cardinality {
    /// Computes the rows of scale factor `sf`.
    pub fn new(sf: f64) -> Self {
        let scaled = |rows: f64| (rows * sf).round() as u64;
        let parts = if sf < 1.0 { scaled(200_000.0) } else { 200_000 * (1 + sf.log2().floor() as u64) };
        Cardinality { orders: scaled(1_500_000.0), customers: scaled(30_000.0), suppliers: scaled(2_000.0), parts }
    }
}

/// Returns the five tables, the smallest first, so that a failure shows early.
pub fn sources(options: &GeneratorOptions) -> Vec<Box<dyn TableSource>> {
    let rows = Cardinality::new(options.sf);
    vec![
        Box::new(date::Dates::new()),
        Box::new(dimension::Dimension::supplier(options.seed, rows.suppliers)),
        Box::new(dimension::Dimension::customer(options.seed, rows.customers)),
        Box::new(part::Parts::new(options.seed, rows.parts)),
        Box::new(lineorder::LineOrder::new(options.seed, rows)),
    ]
}
