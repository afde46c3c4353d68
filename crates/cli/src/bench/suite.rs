//! The suites: queries as data, embedded from `bench/suites`, and the tables they read.

/// One query of a suite.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Query {
    /// Its name, as `1.1` or `13`.
    pub name: &'static str,
    /// Its text, without a semicolon.
    pub sql: &'static str,
}

/// A benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Suite {
    /// The Star Schema Benchmark, 13 queries.
    Ssb,
    /// TPC-H, 22 queries with the validation parameters.
    Tpch,
}

macro_rules! queries {
    ($suite:literal: $($name:literal)*) => {
        &[$((
            $name,
            include_str!(concat!("../../../../bench/suites/", $suite, "/", $name, ".sql")),
        )),*]
    };
}

const SSB: &[(&str, &str)] =
    queries!("ssb": "1.1" "1.2" "1.3" "2.1" "2.2" "2.3" "3.1" "3.2" "3.3" "3.4" "4.1" "4.2" "4.3");
const TPCH: &[(&str, &str)] = queries!("tpch": "1" "2" "3" "4" "5" "6" "7" "8" "9" "10" "11" "12" "13" "14" "15" "16" "17"
    "18" "19" "20" "21" "22");

impl Suite {
    /// Returns the suite's name, as in file names.
    pub fn name(self) -> &'static str {
        match self {
            Suite::Ssb => "ssb",
            Suite::Tpch => "tpch",
        }
    }

    /// Returns all queries, in order.
    pub fn queries(self) -> Vec<Query> {
        let texts = match self {
            Suite::Ssb => SSB,
            Suite::Tpch => TPCH,
        };
        texts.iter().map(|&(name, text)| Query { name, sql: text.trim().trim_end_matches(';') }).collect()
    }

    /// Returns the names of the tables.
    pub fn tables(self) -> &'static [&'static str] {
        match self {
            Suite::Ssb => &["date", "supplier", "customer", "part", "lineorder"],
            Suite::Tpch => &["region", "nation", "supplier", "part", "customer", "partsupp", "orders", "lineitem"],
        }
    }

    /// Chooses queries by name; a name without a point chooses its whole flight.
    ///
    /// # Errors
    /// The first name that chooses nothing.
    pub fn choose(self, names: &[String]) -> Result<Vec<Query>, String> {
        let all = self.queries();
        if names.is_empty() {
            return Ok(all);
        }
        let matches = |query: &Query, name: &str| {
            query.name == name || query.name.split_once('.').is_some_and(|(flight, _)| flight == name)
        };
        if let Some(unknown) = names.iter().find(|name| !all.iter().any(|query| matches(query, name))) {
            return Err(unknown.clone());
        }
        Ok(all.into_iter().filter(|query| names.iter().any(|name| matches(query, name))).collect())
    }
}

/// Keeps the columns that any of the queries mentions, so that no engine holds what none reads.
pub fn mentioned(columns: &[String], queries: &[Query]) -> Vec<String> {
    let word = |c: char| !(c.is_alphanumeric() || c == '_');
    let texts = || queries.iter().flat_map(|query| query.sql.split(word));
    let kept: Vec<String> = columns.iter().filter(|c| texts().any(|w| w.eq_ignore_ascii_case(c))).cloned().collect();
    // A table that is only counted still needs a column.
    if kept.is_empty() { columns.iter().take(1).cloned().collect() } else { kept }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_query_is_there() {
        assert_eq!((Suite::Ssb.queries().len(), Suite::Tpch.queries().len()), (13, 22));
        for query in Suite::Ssb.queries().iter().chain(&Suite::Tpch.queries()) {
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
    }

    #[test]
    fn columns_are_found_as_whole_words() {
        let columns: Vec<String> = ["lo_tax", "lo_discount", "lo_quantity", "lo"].map(String::from).into();
        assert_eq!(mentioned(&columns, &Suite::Ssb.queries()), ["lo_discount", "lo_quantity"]);
        assert_eq!(mentioned(&columns[..1], &Suite::Ssb.queries()), ["lo_tax"]);
    }
}
