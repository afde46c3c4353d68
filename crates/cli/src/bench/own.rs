//! Ourselves: a session in this process, on resident tables or on Parquet files with our own cache cold or warm; and the
//! hand-fused loops of `bench/limit`.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use arrow::{
    array::RecordBatch,
    util::display::{ArrayFormatter, FormatOptions},
};
use tandem_engine::{OnFallback, Report, Session, SessionBuilder, Table};
use tandem_limit::{Arrays, Cell};

use super::{
    contender::{Answer, Contender, Rows},
    data::TableData,
    suite::BenchQuery,
};

/// Our session as a contender.
pub struct Own {
    name: &'static str,
    session: Session,
    /// Forget what earlier queries read before each run.
    cold: bool,
}

impl Own {
    /// Makes a session on resident tables.
    ///
    /// # Errors
    /// One sentence of why the session or a table cannot be made.
    pub fn resident(
        name: &'static str,
        session: SessionBuilder,
        tables: &[(&'static str, Arc<Table>)],
    ) -> Result<Own, String> {
        let own = Own::new(name, session, false)?;
        for (name, table) in tables {
            own.session.register_table(name, Arc::clone(table)).map_err(|error| error.to_string())?;
        }
        Ok(own)
    }

    /// Makes a session on Parquet files, whose cache of columns is cleared before each run or kept.
    ///
    /// # Errors
    /// One sentence of why the session or a table cannot be made.
    pub fn files(name: &'static str, session: SessionBuilder, tables: &[TableData], cold: bool) -> Result<Own, String> {
        let own = Own::new(name, session, cold)?;
        for table in tables {
            own.session.register_file(table.name, &table.path).map_err(|error| error.to_string())?;
        }
        Ok(own)
    }

    fn new(name: &'static str, session: SessionBuilder, cold: bool) -> Result<Own, String> {
        let session = session.on_fallback(OnFallback::Silent).build().map_err(|error| error.to_string())?;
        Ok(Own { name, session, cold })
    }

    /// Runs a query; returns its rows, the time until the last of them, and what the run tells about itself.
    ///
    /// # Errors
    /// One sentence of why the query failed.
    pub fn execute(&self, query: &BenchQuery) -> Result<(Vec<RecordBatch>, Duration, Arc<Report>), String> {
        if self.cold {
            self.session.clear_cache();
        }
        let start = Instant::now();
        let query = self.session.sql(query.sql);
        let report = query.report();
        let batches = query.collect().map_err(|error| error.to_string())?;
        Ok((batches, start.elapsed(), report))
    }
}

impl Contender for Own {
    fn name(&self) -> &str {
        self.name
    }
    fn version(&self) -> &str {
        env!("CARGO_PKG_VERSION")
    }

    fn run(&mut self, query: &BenchQuery) -> Result<Answer, String> {
        let (batches, time, report) = self.execute(query)?;
        let rows = rows(&batches).map_err(|error| error.to_string())?;
        Ok(Answer { time, rows, places: Some(report.places()), notes: report.fallbacks() })
    }
}

/// Writes values as text, as the peers do.
fn rows(batches: &[RecordBatch]) -> Result<Rows, arrow::error::ArrowError> {
    let options = FormatOptions::default();
    let mut rows = Rows::new();
    for batch in batches {
        let columns: Vec<_> =
            batch.columns().iter().map(|c| ArrayFormatter::try_new(c, &options)).collect::<Result<_, _>>()?;
        for row in 0..batch.num_rows() {
            let value = |at: usize| match batch.column(at).is_null(row) {
                true => None,
                false => Some(columns[at].value(row).to_string()),
            };
            rows.push((0..columns.len()).map(value).collect());
        }
    }
    Ok(rows)
}

/// The hand-fused loops as a contender, for the queries that have one.
pub struct Limit {
    /// The data.
    pub arrays: Arrays,
    /// How many threads.
    pub threads: usize,
}

impl Contender for Limit {
    fn name(&self) -> &str {
        "limit"
    }
    fn version(&self) -> &str {
        env!("CARGO_PKG_VERSION")
    }
    fn has(&self, query: &BenchQuery) -> bool {
        tandem_limit::QUERIES.contains(&query.name)
    }

    fn run(&mut self, query: &BenchQuery) -> Result<Answer, String> {
        let (rows, time): (_, Duration) =
            tandem_limit::run(query.name, &self.arrays, self.threads).ok_or("there is no loop for it")?;
        let text = |cell: Cell| match cell {
            Cell::Integer(value) => Some(value.to_string()),
            Cell::Text(value) => Some(value),
        };
        let rows = rows.into_iter().map(|row| row.into_iter().map(text).collect()).collect();
        Ok(Answer { time, rows, places: None, notes: Vec::new() })
    }
}
