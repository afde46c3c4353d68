//! The engines of one worker, and what they say to a case.

use std::{collections::BTreeMap, path::Path, sync::Arc, time::Duration};

use arrow::record_batch::RecordBatch;
use tandem_engine::{Cancel, Class, DeviceOptions, Devices, Error, Session, Where};

use super::{
    case::Case,
    compare::{Rows, compare},
    duckdb::{Answer, DuckDb},
};
use crate::{Configuration, random::Dialect, spell_rows, spelling::respell};

/// A statement over some dozens of rows that takes longer hangs.
const PATIENCE: Duration = Duration::from_secs(60);

/// The configuration that every statement runs under, and those that take turns.
const ALWAYS: &str = "capture-on";
const IN_TURN: [&str; 4] = ["vectors-of-one-row", "vectors-of-seven-rows", "forced-hash-collisions", "one-thread"];

/// How many statements did what.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    /// All that ran.
    pub statements: usize,
    /// Those that ran on our pipelines from end to end.
    pub native: usize,
    /// Those that DataFusion refused, by the beginning of its reason.
    pub host_refused: BTreeMap<String, usize>,
    /// Answers with which DataFusion was alone against ours and DuckDB's.
    pub host_wrong: usize,
    /// Answers of ours and of DataFusion's with which DuckDB does not agree.
    pub duckdb_alone: usize,
    /// Those that DuckDB refused, by the beginning of its reason.
    pub duckdb_refused: BTreeMap<String, usize>,
}

/// One set of engines, with the tables of one case.
pub struct Engines {
    runtime: tokio::runtime::Runtime,
    host: Session,
    always: Session,
    in_turn: Vec<(&'static str, Session)>,
    duckdb: DuckDb,
    tables: Vec<String>,
    /// What was seen so far.
    pub counts: Counts,
}

type Outcome = Result<(Rows, Vec<RecordBatch>, Where), Error>;

impl Engines {
    /// Makes a set of engines.
    ///
    /// # Panics
    /// If one cannot start.
    pub fn start(python: &Path) -> Self {
        let configurations = Configuration::read_all(&Path::new(env!("CARGO_MANIFEST_DIR")).join("configs"));
        let devices = Arc::new(Devices::new(DeviceOptions::default()));
        let open = |name: &str| {
            let configuration = configurations.iter().find(|configuration| configuration.name == name);
            let session = configuration.unwrap_or_else(|| panic!("there is no configuration {name}")).open(&devices);
            session.expect("a session can be made")
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a thread can wait");
        Engines {
            runtime,
            host: open("capture-off"),
            always: open(ALWAYS),
            in_turn: IN_TURN.map(|name| (name, open(name))).into(),
            duckdb: DuckDb::start(python),
            tables: Vec::new(),
            counts: Counts::default(),
        }
    }

    /// Runs cases that have their tables in common; returns the first in which we are wrong, and how.
    ///
    /// # Panics
    /// If tables cannot be made.
    pub fn check(&mut self, cases: &[Case]) -> Option<(usize, String)> {
        let first = cases.first()?;
        let statements: Vec<String> = cases.iter().map(|case| case.sql(Dialect::DuckDb)).collect();
        self.duckdb.ask(&first.setup(Dialect::DuckDb), &statements);
        self.make_tables(first);
        let ours: Vec<_> = cases.iter().enumerate().map(|(at, case)| self.run_ours(at, case)).collect();
        let answers = self.duckdb.answers();
        let judged = cases.iter().zip(ours).zip(&answers).enumerate();
        let mut found = judged.filter_map(|(at, ((case, ours), duckdb))| Some((at, self.judge(case, ours, duckdb)?)));
        found.next()
    }

    /// Makes a case's tables in all sessions, in place of those of the last.
    fn make_tables(&mut self, case: &Case) {
        let mut statements: Vec<String> = self.tables.iter().map(|name| format!("drop table {name}")).collect();
        statements.extend(case.setup(Dialect::DataFusion));
        for session in [&self.host, &self.always].into_iter().chain(self.in_turn.iter().map(|(_, session)| session)) {
            for sql in &statements {
                session.sql(sql).collect().unwrap_or_else(|error| panic!("{error} in: {sql}"));
            }
        }
        self.tables = case.tables.iter().map(|table| table.name.clone()).collect();
    }

    /// Runs a case on DataFusion alone and on our pipelines, under two configurations.
    fn run_ours(&self, at: usize, case: &Case) -> (Outcome, Vec<(&'static str, Outcome)>) {
        let sql = case.sql(Dialect::DataFusion);
        let (name, session) = &self.in_turn[at % self.in_turn.len()];
        let host = self.run(&self.host, &sql);
        (host, vec![(ALWAYS, self.run(&self.always, &sql)), (name, self.run(session, &sql))])
    }

    fn run(&self, session: &Session, sql: &str) -> Outcome {
        let cancel = Cancel::new();
        let query = session.sql(sql).cancel(&cancel);
        let report = query.report();
        // A task of its own turns a panic into an error.
        let outcome = self.runtime.block_on(async {
            let task = tokio::spawn(query.into_future());
            tokio::time::timeout(PATIENCE, task).await
        });
        let batches = match outcome {
            Ok(Ok(outcome)) => outcome?,
            Ok(Err(panic)) => return Err(Error::new(Class::Internal, format!("the statement panicked: {panic}"))),
            Err(_) => {
                cancel.cancel();
                return Err(Error::new(Class::Internal, format!("the statement took longer than {PATIENCE:?}")));
            }
        };
        let rows = spell_rows(&batches).map_err(|error| Error::new(Class::Internal, error.to_string()))?;
        Ok((rows, batches, report.placement()))
    }

    /// Says what is wrong with our answers, if anything is.
    fn judge(
        &mut self,
        case: &Case,
        (host, ours): (Outcome, Vec<(&'static str, Outcome)>),
        duckdb: &Answer,
    ) -> Option<String> {
        self.counts.statements += 1;
        let count = |reasons: &mut BTreeMap<String, usize>, reason: &str| {
            let line: String = reason.lines().next().unwrap_or_default().chars().take(90).collect();
            *reasons.entry(line).or_default() += 1;
        };
        if let Err(error) = &host {
            count(&mut self.counts.host_refused, &error.to_string());
        }
        if let Answer::Error(error) = duckdb {
            count(&mut self.counts.duckdb_refused, error);
        }
        if let Some((_, Ok((_, _, Where::Cpu)))) = ours.first() {
            self.counts.native += 1;
        }
        for (name, outcome) in ours {
            let (rows, batches, _) = match (outcome, &host) {
                (Ok(outcome), _) => outcome,
                // What DataFusion refuses, or computes out of range, we need not answer; but we may not break, other than
                // DataFusion itself does.
                (Err(error), Err(host)) if error.class != Class::Internal || error.message == host.message => continue,
                (Err(error), _) => return Some(format!("under {name}, this failed: {error}")),
            };
            let against_host = match &host {
                Ok((expected, ..)) => compare(&case.statement, &rows, expected),
                Err(_) => Ok(()),
            };
            let against_duckdb = match duckdb {
                Answer::Rows(answer) => Some(compare(&case.statement, &rows, &respell(answer, &batches))),
                Answer::Error(_) => None,
            };
            match (against_host, against_duckdb) {
                // Of three engines, DataFusion alone has another opinion: it is wrong.
                (Err(_), Some(Ok(()))) => self.counts.host_wrong += 1,
                (Err(difference), _) => {
                    return Some(format!("under {name}, DataFusion answers otherwise: {difference}"));
                }
                // DataFusion plans our statements, too, and rewrites some of them wrongly: -(a & b) as a complement, NOT IN
                // with a null in its list, keys of an order that it takes for determined by others.
                (Ok(()), Some(Err(_))) if host.is_ok() => self.counts.duckdb_alone += 1,
                (_, Some(Err(difference))) => {
                    return Some(format!("under {name}, DuckDB answers otherwise: {difference}"));
                }
                (Ok(()), _) => {}
            }
        }
        None
    }
}
