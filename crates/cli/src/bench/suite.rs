//! The suites: queries as data, embedded from `bench/suites`, the tables they read and what generates these.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use tandem_generator::{GeneratorOptions, ProgressListener, TableFile};

use crate::format::grid::thousands;

/// One query of a suite.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BenchQuery {
    /// Its name, as `1.1` or `13`.
    pub name: &'static str,
    /// Its text, without a semicolon.
    pub sql: &'static str,
}

impl BenchQuery {
    /// Tells whether the text has a name as a whole word.
    pub fn mentions(&self, name: &str) -> bool {
        self.sql.split(|c: char| !(c.is_alphanumeric() || c == '_')).any(|word| word.eq_ignore_ascii_case(name))
    }
}

/// A benchmark: an entry of the table below.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Suite {
    /// The Star Schema Benchmark, 13 queries.
    Ssb,
    /// TPC-H, 22 queries with the validation parameters.
    Tpch,
    /// The db-benchmark's ten group-by and five join questions.
    H2o,
    /// Ten questions of windows, sorts, distinct values and top-k, over the group-by table of h2o.
    Windows,
}

/// What a benchmark is.
struct Definition {
    name: &'static str,
    /// Names and texts.
    queries: &'static [(&'static str, &'static str)],
    tables: &'static [&'static str],
    /// What its data is called; suites of the same data share files.
    data: &'static str,
    /// Whether data is by rows instead of by scale factor.
    by_rows: bool,
    write: Write,
}

/// Generates the data.
type Write = fn(&GeneratorOptions, &Path, &ProgressListener<'_>) -> tandem_generator::Result<Vec<TableFile>>;

macro_rules! queries {
    ($suite:literal: $($name:literal)*) => {
        &[$((
            $name,
            include_str!(concat!("../../../../bench/suites/", $suite, "/", $name, ".sql")),
        )),*]
    };
}

const SSB: Definition = Definition {
    name: "ssb",
    queries: queries!("ssb": "1.1" "1.2" "1.3" "2.1" "2.2" "2.3" "3.1" "3.2" "3.3" "3.4" "4.1" "4.2" "4.3"),
    tables: &["date", "supplier", "customer", "part", "lineorder"],
    data: "ssb",
    by_rows: false,
    write: tandem_generator::write_ssb,
};

const TPCH: Definition = Definition {
    name: "tpch",
    queries: queries!("tpch": "1" "2" "3" "4" "5" "6" "7" "8" "9" "10" "11" "12" "13" "14" "15" "16" "17" "18" "19" "20"
        "21" "22"),
    tables: &["region", "nation", "supplier", "part", "customer", "partsupp", "orders", "lineitem"],
    data: "tpch",
    by_rows: false,
    write: tandem_generator::write_tpch,
};

const H2O: Definition = Definition {
    name: "h2o",
    queries: queries!("h2o": "groupby.1" "groupby.2" "groupby.3" "groupby.4" "groupby.5" "groupby.6" "groupby.7" "groupby.8"
        "groupby.9" "groupby.10" "join.1" "join.2" "join.3" "join.4" "join.5"),
    tables: &["small", "medium", "big", "x", "g1"],
    data: "h2o",
    by_rows: true,
    write: tandem_generator::write_h2o,
};

const WINDOWS: Definition = Definition {
    name: "windows",
    queries: queries!("windows": "1" "2" "3" "4" "5" "6" "7" "8" "9" "10"),
    tables: &["g1"],
    data: "h2o",
    by_rows: true,
    write: tandem_generator::write_h2o_groups,
};

impl Suite {
    fn definition(self) -> &'static Definition {
        match self {
            Suite::Ssb => &SSB,
            Suite::Tpch => &TPCH,
            Suite::H2o => &H2O,
            Suite::Windows => &WINDOWS,
        }
    }

    /// Returns the suite's name, as in file names.
    pub fn name(self) -> &'static str {
        self.definition().name
    }

    /// Returns all queries, in order.
    pub fn queries(self) -> Vec<BenchQuery> {
        let texts = self.definition().queries;
        texts.iter().map(|&(name, text)| BenchQuery { name, sql: text.trim().trim_end_matches(';') }).collect()
    }

    /// Returns the names of the tables.
    pub fn tables(self) -> &'static [&'static str] {
        self.definition().tables
    }

    /// Generates the tables as files.
    ///
    /// # Errors
    /// What the generator says.
    pub fn write(
        self,
        options: &GeneratorOptions,
        dir: &Path,
        progress: &ProgressListener<'_>,
    ) -> tandem_generator::Result<Vec<TableFile>> {
        (self.definition().write)(options, dir, progress)
    }

    /// Returns the options of a scale factor, also where data is by rows: there, 1 is as many rows as unless told.
    pub fn options(self, sf: f64) -> GeneratorOptions {
        let usual = GeneratorOptions::default();
        GeneratorOptions { sf, rows: (sf * usual.rows as f64) as u64, ..usual }
    }

    /// Tells whether data is by rows instead of by scale factor.
    pub fn is_by_rows(self) -> bool {
        self.definition().by_rows
    }

    /// Says how much data options ask for.
    pub fn size(self, options: &GeneratorOptions) -> Size {
        if self.is_by_rows() { Size::Rows(options.rows) } else { Size::Factor(options.sf) }
    }

    /// Returns where data of a size lies unless told.
    pub fn default_data(self, size: Size) -> PathBuf {
        let data = self.definition().data;
        PathBuf::from("data").join(match size {
            Size::Factor(factor) => format!("{data}-sf{factor}"),
            Size::Rows(rows) => format!("{data}-{rows}"),
        })
    }

    /// Chooses queries by name; a name without a point chooses its whole flight.
    ///
    /// # Errors
    /// The first name that chooses nothing.
    pub fn choose(self, names: &[String]) -> Result<Vec<BenchQuery>, String> {
        let all = self.queries();
        if names.is_empty() {
            return Ok(all);
        }
        let matches = |query: &BenchQuery, name: &str| {
            query.name == name || query.name.split_once('.').is_some_and(|(flight, _)| flight == name)
        };
        if let Some(unknown) = names.iter().find(|name| !all.iter().any(|query| matches(query, name))) {
            return Err(unknown.clone());
        }
        Ok(all.into_iter().filter(|query| names.iter().any(|name| matches(query, name))).collect())
    }
}

/// How much data there is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Size {
    /// By scale factor.
    Factor(f64),
    /// By rows of the largest table.
    Rows(u64),
}

impl Size {
    /// Returns a number that grows as the data does.
    pub fn amount(self) -> f64 {
        match self {
            Size::Factor(factor) => factor,
            Size::Rows(rows) => rows as f64,
        }
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Size::Factor(factor) => write!(f, "at scale factor {factor}"),
            Size::Rows(rows) => write!(f, "of {} rows", thousands(*rows as usize)),
        }
    }
}

/// Keeps the names that any of the queries mentions: columns that no query reads need not be held.
pub fn mentioned(names: &[String], queries: &[BenchQuery]) -> Vec<String> {
    let mentions = |name: &&String| queries.iter().any(|query| query.mentions(name));
    let kept: Vec<String> = names.iter().filter(mentions).cloned().collect();
    // A table that is only counted still needs a column.
    if kept.is_empty() { names.iter().take(1).cloned().collect() } else { kept }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_query_is_there() {
        let all = [Suite::Ssb, Suite::Tpch, Suite::H2o, Suite::Windows].map(Suite::queries);
        assert_eq!(all.each_ref().map(Vec::len), [13, 22, 15, 10]);
        for query in all.iter().flatten() {
            assert!(!query.sql.is_empty() && !query.sql.contains(';'), "{}", query.name);
        }
    }

    #[test]
    fn names_choose_queries_and_flights() {
        let names = |wanted: &[&str]| -> Result<Vec<_>, String> {
            let wanted: Vec<String> = wanted.iter().map(|w| w.to_string()).collect();
            Ok(Suite::Ssb.choose(&wanted)?.iter().map(|q| q.name).collect())
        };
        assert_eq!(names(&["2.1", "1"]), Ok(vec!["1.1", "1.2", "1.3", "2.1"]));
        assert_eq!(names(&["9"]), Err("9".to_string()));
        assert_eq!(Suite::Tpch.choose(&["1".to_string()]).map(|q| q.len()), Ok(1));
        assert_eq!(Suite::H2o.choose(&["join".to_string()]).map(|q| q.len()), Ok(5));
    }

    #[test]
    fn columns_are_found_as_whole_words() {
        let columns: Vec<String> = ["lo_tax", "lo_discount", "lo_quantity", "lo"].map(String::from).into();
        assert_eq!(mentioned(&columns, &Suite::Ssb.queries()), ["lo_discount", "lo_quantity"]);
        assert_eq!(mentioned(&columns[..1], &Suite::Ssb.queries()), ["lo_tax"]);
    }
}
