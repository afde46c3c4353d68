//! A session as sqllogictest's database.

use std::time::Duration;

use arrow::{datatypes::DataType, record_batch::RecordBatch};
use async_trait::async_trait;
use futures::TryStreamExt;
use sqllogictest::{AsyncDB, ColumnType, DBOutput, Normalizer};
use tandem_engine::{Cancel, Class, Error, Session};

use crate::spell_rows;

/// A statement that takes longer hangs.
const PATIENCE: Duration = Duration::from_secs(180);

/// A session that answers sqllogictest's records.
pub struct Database {
    session: Session,
}

impl Database {
    /// Makes a database of a session.
    pub fn new(session: Session) -> Self {
        Database { session }
    }
}

#[async_trait]
impl AsyncDB for Database {
    type Error = Error;
    type ColumnType = ColumnKind;

    async fn run(&mut self, sql: &str) -> Result<DBOutput<ColumnKind>, Error> {
        let (session, sql) = (self.session.clone(), sql.trim().trim_end_matches(';').to_owned());
        let cancel = Cancel::new();
        let task = {
            let cancel = cancel.clone();
            // A task of its own turns a panic into an error of this record.
            tokio::spawn(async move {
                let stream = session.sql(sql).cancel(&cancel).stream().await?;
                let schema = stream.schema().clone();
                let batches: Vec<RecordBatch> = stream.try_collect().await?;
                let rows = spell_rows(&batches).map_err(|e| Error::new(Class::Internal, e.to_string()))?;
                if schema.fields().is_empty() {
                    return Ok(DBOutput::StatementComplete(0));
                }
                Ok(DBOutput::Rows {
                    types: schema.fields().iter().map(|f| ColumnKind::of(f.data_type())).collect(),
                    rows,
                })
            })
        };
        match tokio::time::timeout(PATIENCE, task).await {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(panic)) => Err(Error::new(Class::Internal, format!("the statement panicked: {panic}"))),
            Err(_) => {
                cancel.cancel();
                Err(Error::new(Class::Exhausted, format!("the statement took longer than {PATIENCE:?}")))
            }
        }
    }

    async fn shutdown(&mut self) {}

    fn engine_name(&self) -> &str {
        // DataFusion's files name this engine in their conditions.
        "DataFusion"
    }
}

/// The kinds of columns that a `query` line names by letter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ColumnKind {
    /// `B`
    Boolean,
    /// `D`: dates and times of day.
    Date,
    /// `I`
    Integer,
    /// `R`: floats and decimals.
    Real,
    /// `T`
    Text,
    /// `P`
    Timestamp,
    /// `?`: anything else.
    Other,
}

impl ColumnKind {
    fn of(data_type: &DataType) -> Self {
        match data_type {
            DataType::Boolean => ColumnKind::Boolean,
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => ColumnKind::Text,
            DataType::Date32 | DataType::Date64 | DataType::Time32(_) | DataType::Time64(_) => ColumnKind::Date,
            DataType::Timestamp(..) => ColumnKind::Timestamp,
            DataType::Dictionary(_, values) if ColumnKind::of(values) == ColumnKind::Text => ColumnKind::Text,
            kind if kind.is_integer() => ColumnKind::Integer,
            kind if kind.is_floating() || kind.is_decimal() => ColumnKind::Real,
            _ => ColumnKind::Other,
        }
    }
}

impl ColumnType for ColumnKind {
    fn from_char(letter: char) -> Option<Self> {
        Some(match letter {
            'B' => ColumnKind::Boolean,
            'D' => ColumnKind::Date,
            'I' => ColumnKind::Integer,
            'R' => ColumnKind::Real,
            'T' => ColumnKind::Text,
            'P' => ColumnKind::Timestamp,
            _ => ColumnKind::Other,
        })
    }

    fn to_char(&self) -> char {
        match self {
            ColumnKind::Boolean => 'B',
            ColumnKind::Date => 'D',
            ColumnKind::Integer => 'I',
            ColumnKind::Real => 'R',
            ColumnKind::Text => 'T',
            ColumnKind::Timestamp => 'P',
            ColumnKind::Other => '?',
        }
    }
}

/// Compares rows with expected lines; `<slt:ignore>` in a line stands for anything.
pub fn validate_rows(normalizer: Normalizer, actual: &[Vec<String>], expected: &[String]) -> bool {
    const ANYTHING: &str = "<slt:ignore>";
    let expected: Vec<String> = expected.iter().map(normalizer).collect();
    let actual: Vec<String> = actual.iter().map(|row| row.join(" ").trim_end().to_owned()).collect();
    if !expected.iter().any(|line| line.contains(ANYTHING)) {
        return actual == expected;
    }
    let (expected, actual) = (expected.join("\n"), actual.join("\n"));
    let mut rest = actual.as_str();
    for (index, fragment) in expected.split(ANYTHING).enumerate() {
        match rest.find(fragment) {
            Some(at) if index > 0 || at == 0 => rest = &rest[at + fragment.len()..],
            _ => return false,
        }
    }
    true
}

/// Compares rows as [`validate_rows`] does, in whatever order they come.
pub fn validate_rows_in_any_order(normalizer: Normalizer, actual: &[Vec<String>], expected: &[String]) -> bool {
    if validate_rows(normalizer, actual, expected) {
        return true;
    }
    let mut expected: Vec<String> = expected.iter().map(normalizer).collect();
    let mut actual: Vec<String> = actual.iter().map(|row| row.join(" ").trim_end().to_owned()).collect();
    expected.sort();
    actual.sort();
    actual == expected
}
