//! Arrow batches in, Arrow batches out.

use std::sync::Arc;

use tandem::arrow::array::{AsArray, Float64Array, RecordBatch, StringArray};
use tandem::arrow::datatypes::Float64Type;
use tandem::{Result, Session};

/// Runs the example.
pub fn main() -> Result<()> {
    let batch = RecordBatch::try_from_iter([
        ("city", Arc::new(StringArray::from(vec!["Oslo", "Rome", "Oslo"])) as _),
        ("degrees", Arc::new(Float64Array::from(vec![4.5, 18.0, 5.5])) as _),
    ])?;

    let session = Session::builder().build()?;
    session.register_batches("weather", [batch])?;
    let query = session.sql("SELECT city, avg(degrees) AS degrees FROM weather GROUP BY city ORDER BY city");
    for batch in query.batches()? {
        let batch = batch?;
        let cities = batch.column_by_name("city").expect("the query names it").as_string::<i32>();
        let degrees = batch.column(1).as_primitive::<Float64Type>();
        for row in 0..batch.num_rows() {
            println!("{}: {} °C", cities.value(row), degrees.value(row));
        }
        assert_eq!((cities.value(0), degrees.value(0)), ("Oslo", 5.0));
    }
    Ok(())
}
