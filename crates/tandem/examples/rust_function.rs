//! Rust functions in SQL: closures over values, and functions over whole Arrow arrays.

use std::sync::Arc;

use tandem::arrow::array::{ArrayRef, AsArray};
use tandem::arrow::compute::kernels::length::length;
use tandem::arrow::datatypes::{DataType, Int64Type};
use tandem::{Result, Session};

/// Runs the example.
pub fn main() -> Result<()> {
    let session = Session::builder().build()?;
    session
        .sql("CREATE TABLE words AS SELECT 'word' || value AS word, value AS n FROM generate_series(1, 100)")
        .collect()?;

    // One to three arguments of i64, f64, bool or &str. A null argument gives null, an error fails the statement.
    session.register_function("vowels", |text: &str| text.chars().filter(|c| "aeiou".contains(*c)).count() as i64)?;
    session.register_function("divide", |a: i64, b: i64| a.checked_div(b).ok_or("division by zero"))?;

    // A function of whole columns, as fast as Arrow's kernels.
    session.register_array_function("text_length", &[DataType::Utf8], DataType::Int32, |columns| {
        let lengths: ArrayRef = length(&columns[0])?;
        Ok(Arc::clone(&lengths))
    })?;

    let query = session.sql("SELECT sum(vowels(word)), sum(divide(n, 2)), max(text_length(word)) FROM words");
    let report = query.report();
    let batches = query.collect()?;
    let (vowels, halves) =
        (batches[0].column(0).as_primitive::<Int64Type>(), batches[0].column(1).as_primitive::<Int64Type>());
    println!("{} vowels, {} in halves", vowels.value(0), halves.value(0));
    assert_eq!((vowels.value(0), halves.value(0)), (100, 2500));

    // The operator that calls them runs on the host engine, and the report says so.
    println!("{}", report.reasons().join("\n"));
    assert!(report.reasons().iter().any(|reason| reason.contains("vowels")));
    Ok(())
}
