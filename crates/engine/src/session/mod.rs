//! A session: tables, settings, and statements run one at a time.
//!
//! [`Session::sql`] makes a statement ([`query`]). When its result is asked for, it is parsed and planned by DataFusion on
//! the host's threads, dispatched by what it is (a table to create, files to write, a plan to explain, rows to return), and
//! given back as a stream. It keeps the settings that the session had at its start.

mod builder;
pub(crate) mod query;
mod register;

use std::collections::HashSet;
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use arrow::array::RecordBatch;
use arrow::datatypes::{Schema, SchemaRef};
use datafusion::catalog::{CatalogProvider, CatalogProviderList, MemoryCatalogProvider, MemoryCatalogProviderList};
use datafusion::common::TableReference;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::execution::session_state::SessionStateBuilder;
use datafusion::optimizer::Optimizer;
use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::prelude::{SessionConfig, SessionContext};
use parking_lot::{Mutex, RwLock};
use tandem_runtime::{Cancel, Devices, MemoryBudget, Runtime};
use tandem_scan::ColumnCache;

use crate::error::FromHost;
use crate::error::translate::ErrorContext;
use crate::execution::host::{BatchStream, Host, Stop};
use crate::execution::memory::BudgetPool;
use crate::execution::staging::{StagedFile, Unfinished};
use crate::planning::cross_joins::CrossJoins;
use crate::planning::overflow::{CheckedArithmetic, CheckedConstants};
use crate::planning::unnest::Unnest;
use crate::sql::parameters::Parameter;
use crate::sql::statement::Statement;
use crate::sql::{run, syntax};
use crate::tables::catalog::Tables;
use crate::tables::external::ExternalFactory;
use crate::tables::info::{self, ColumnInfo, TableInfo};
use crate::tables::location::Location;
use crate::testing::Switches;
use crate::{Config, Error, Mode, OnFallback, Report};
pub use builder::SessionBuilder;
use query::wait;
pub use query::{Batches, SqlQuery};

/// A session. Clones share everything.
#[derive(Clone)]
pub struct Session {
    inner: Arc<Inner>,
}

/// What a session's statements share.
pub(crate) struct Inner {
    /// Read once by each statement, at its start.
    config: RwLock<Config>,
    switches: Switches,
    pub(crate) context: SessionContext,
    pub(crate) tables: Arc<Tables>,
    pub(crate) budget: Arc<MemoryBudget>,
    pub(crate) runtime: Arc<Runtime>,
    devices: Arc<Devices>,
    pub(crate) cache: Arc<ColumnCache>,
    unfinished: Arc<Unfinished>,
    /// The names of functions that the program registered.
    functions: Mutex<HashSet<String>>,
    host: Host,
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("config", &*self.inner.config.read()).finish_non_exhaustive()
    }
}

impl Session {
    /// Returns the settings of a session that is to be made, all with their defaults.
    pub fn builder() -> SessionBuilder {
        SessionBuilder::default()
    }

    /// Makes a session without tables.
    fn new(config: Config, switches: Switches, devices: Arc<Devices>) -> Result<Session, Error> {
        let threads = config.threads.max(1);
        let runtime = Runtime::new(threads);
        let machine = info::machine_memory();
        let limit = config.memory_limit.unwrap_or(machine / 5 * 4);
        let budget = Arc::new(MemoryBudget::new(limit));
        let cache_limit = config.cache_limit.unwrap_or((machine / 4).min(limit / 2));
        let tables = Arc::new(Tables::default());
        let unfinished = Arc::new(Unfinished::default());
        let context = context(threads, &budget, &tables, &unfinished)?;
        tables.attach(context.state_weak_ref());
        let host = Host::new(threads)?;
        let cache = ColumnCache::within(&budget, cache_limit);
        let (config, functions) = (RwLock::new(config), Mutex::default());
        let inner =
            Inner { config, switches, devices, context, tables, budget, runtime, cache, unfinished, functions, host };
        Ok(Session { inner: Arc::new(inner) })
    }

    /// Returns the settings as they are now.
    pub fn config(&self) -> Config {
        self.inner.config.read().clone()
    }

    /// Sets where the following statements run.
    pub fn set_mode(&self, mode: Mode) {
        self.inner.config.write().mode = mode;
    }

    /// Sets what happens when a part of a following statement is left to the host engine.
    pub fn set_on_fallback(&self, on_fallback: OnFallback) {
        self.inner.config.write().on_fallback = on_fallback;
    }

    /// Splits SQL text into statements, without their semicolons; quotes and comments are respected.
    ///
    /// # Errors
    /// If a quote or comment is not closed.
    pub fn split(&self, text: &str) -> Result<Vec<String>, Error> {
        syntax::split(text)
    }

    /// Tells whether the text ends with a semicolon outside quotes and comments, or is empty.
    pub fn is_complete(text: &str) -> bool {
        syntax::is_complete(text)
    }

    /// Makes a statement of SQL text, which runs when its result is asked for.
    pub fn sql(&self, sql: impl Into<String>) -> SqlQuery {
        SqlQuery::new(self.clone(), sql.into())
    }

    /// Runs a statement up to the point where rows are read.
    async fn start(
        &self,
        sql: String,
        values: Vec<Parameter>,
        cancel: &Cancel,
        report: Arc<Report>,
    ) -> Result<BatchStream, Error> {
        let (inner, stop) = (self.inner.clone(), Stop::default());
        let statement = Arc::new(inner.statement(&stop, values, report.clone())?);
        let running = {
            let inner = inner.clone();
            async move { run::run(&inner, &sql, &statement).await }
        };
        let ran = inner.host.run(cancel, &stop, running).await?;
        let words = ran.context;
        let translate = move |error| words.translate(&error);
        Ok(inner.host.stream(cancel, &stop, ran.stream, translate, report, inner.clone()))
    }

    /// Returns the session's tables, by name.
    pub fn tables(&self) -> Vec<TableInfo> {
        self.inner.tables.all().into_iter().map(|(name, table)| info::table(name, table.as_ref())).collect()
    }

    /// Returns the columns of a table, or of a file by its path.
    ///
    /// # Errors
    /// If there is no such table.
    pub fn describe(&self, table: &str) -> Result<Vec<ColumnInfo>, Error> {
        let (inner, name) = (self.inner.clone(), table.to_string());
        let finding = async move {
            let words = inner.words("");
            let found = inner.context.table_provider(TableReference::from(name.as_str())).await;
            let found = match found {
                Ok(found) => found,
                // A path is one name, whatever dots it has.
                Err(error) => match inner.context.table_provider(TableReference::bare(name.as_str())).await {
                    Ok(found) => found,
                    Err(second) if Location::looks_like(&name) => return Err(words.translate(&second)),
                    Err(_) => return Err(words.translate(&error)),
                },
            };
            Ok(info::columns(found.as_ref()))
        };
        wait(self.inner.host.run(&Cancel::new(), &Stop::default(), finding))
    }

    /// Opens a file for writing that appears whole or not at all.
    ///
    /// # Errors
    /// If the path is a directory or nothing can be created beside it.
    #[doc(hidden)]
    pub fn stage_file(&self, path: &Path) -> Result<StagedFile, Error> {
        StagedFile::create(path, &self.inner.unfinished)
    }

    /// Waits until the writers of statements that failed or were cancelled have ended and nothing is left of them, at
    /// most for a given time. For a process that is about to end.
    pub fn wait_for_writers(&self, limit: Duration) {
        self.inner.unfinished.wait(limit);
    }

    /// Removes what unfinished statements wrote, though they may still run. For a process that ends at once.
    pub fn discard_unfinished(&self) {
        self.inner.unfinished.discard();
    }

    /// Returns the devices that statements in mode gpu run on.
    pub fn devices(&self) -> &Arc<Devices> {
        &self.inner.devices
    }

    /// Forgets the cached columns of scanned files.
    pub fn clear_cache(&self) {
        self.inner.cache.clear();
    }
}

impl Inner {
    fn statement(&self, stop: &Stop, values: Vec<Parameter>, report: Arc<Report>) -> Result<Statement, Error> {
        let config = self.config.read().clone();
        let devices = if config.mode == Mode::Gpu { self.devices.chosen()? } else { Vec::new() };
        Ok(Statement {
            report,
            stop: stop.clone(),
            runtime: self.runtime.clone(),
            cache: self.cache.clone(),
            budget: self.budget.clone(),
            only_device: !devices.is_empty() && config.on_fallback == OnFallback::Error,
            config,
            switches: self.switches,
            values,
            devices,
            tables: Default::default(),
        })
    }

    /// Returns what errors of a statement can be worded with.
    pub(crate) fn words(&self, sql: &str) -> ErrorContext {
        ErrorContext {
            sql: sql.to_string(),
            tables: self.tables.all().into_iter().map(|(name, _)| name).collect(),
            memory_limit: Some(self.budget.limit()),
            ..ErrorContext::default()
        }
    }
}

/// Makes a stream of batches that are there already.
pub(crate) fn ready(schema: SchemaRef, batches: Vec<RecordBatch>) -> SendableRecordBatchStream {
    Box::pin(RecordBatchStreamAdapter::new(schema, futures::stream::iter(batches.into_iter().map(Ok))))
}

/// Makes the stream of a statement that returns nothing.
pub(crate) fn nothing() -> SendableRecordBatchStream {
    ready(Arc::new(Schema::empty()), Vec::new())
}

/// Makes DataFusion's side of a session.
fn context(
    threads: usize,
    budget: &Arc<MemoryBudget>,
    tables: &Arc<Tables>,
    unfinished: &Arc<Unfinished>,
) -> Result<SessionContext, Error> {
    let config = SessionConfig::new()
        .with_target_partitions(threads)
        .with_information_schema(true)
        .with_create_default_catalog_and_schema(false)
        .with_extension(unfinished.clone());
    let catalog = MemoryCatalogProvider::new();
    catalog.register_schema(&config.options().catalog.default_schema, tables.clone()).out_of_host()?;
    let catalogs = MemoryCatalogProviderList::new();
    catalogs.register_catalog(config.options().catalog.default_catalog.clone(), Arc::new(catalog));
    let environment = RuntimeEnvBuilder::new()
        .with_memory_pool(Arc::new(BudgetPool::new(budget.clone())))
        // Files are listed anew for each statement, so that changes are noticed.
        .with_object_list_cache_limit(0)
        .build_arc()
        .out_of_host()?;
    let mut rules = PhysicalOptimizer::new().rules;
    rules.insert(0, Arc::new(CheckedArithmetic));
    let logical = Optimizer::new().rules.into_iter().map(|rule| match rule.name() {
        "eliminate_cross_join" => Arc::new(CrossJoins::default()),
        _ => rule,
    });
    let mut state = SessionStateBuilder::new()
        .with_config(config)
        .with_runtime_env(environment)
        .with_catalog_list(Arc::new(catalogs))
        .with_optimizer_rules(logical.collect())
        .with_physical_optimizer_rules(rules)
        .with_analyzer_rule(Arc::new(CheckedConstants))
        .with_analyzer_rule(Arc::new(Unnest))
        .with_default_features()
        .build();
    for factory in state.table_factories_mut().values_mut() {
        *factory = Arc::new(ExternalFactory(factory.clone()));
    }
    let context = SessionContext::new_with_state(state);
    context.register_udf(crate::functions::date_diff());
    context.register_udf(crate::functions::exclude());
    context.register_udaf(crate::functions::quantile_disc());
    context.register_udf(crate::sql::asof::mark());
    Ok(context)
}
