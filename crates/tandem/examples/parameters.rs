//! Values in a statement's `$1`, `$2` …: typed, never pasted into the text.

use tandem::{Class, Parameter, Result, Session, arrow::array::AsArray, arrow::datatypes::Int64Type};

/// Runs the example.
pub fn main() -> Result<()> {
    let session = Session::builder().build()?;
    session.sql("CREATE TABLE people (name VARCHAR, age BIGINT, born DATE)").collect()?;
    session
        .sql("INSERT INTO people VALUES ($1, $2, $3)")
        .bind("Ada'; DROP TABLE people; --")
        .bind(36)
        .bind(Parameter::date(-56_270))
        .collect()?;

    let count = session
        .sql("SELECT count(*) FROM people WHERE age BETWEEN $1 AND $2 AND born < $3")
        .parameters([30, 40])
        .bind("1900-01-01")
        .collect()?;
    let count = count[0].column(0).as_primitive::<Int64Type>().value(0);
    println!("{count} person");
    assert_eq!(count, 1);

    // What does not fit is one sentence, before anything runs.
    let error = session.sql("SELECT name FROM people WHERE age > $1").bind("many").collect().unwrap_err();
    println!("{error}");
    assert_eq!(error.class, Class::Input);
    Ok(())
}
