//! CREATE TABLE: rows become resident columns, and the table appears only when all of them are.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use arrow::datatypes::{Schema, SchemaRef};
use datafusion::catalog::TableProvider;
use datafusion::common::TableReference;
use datafusion::datasource::MemTable;
use datafusion::datasource::listing::ListingTableUrl;
use datafusion::error::Result;
use datafusion::execution::SessionState;
use datafusion::logical_expr::{CreateExternalTable, CreateMemoryTable, DdlStatement, LogicalPlan};
use datafusion::physical_plan::collect;
use datafusion::prelude::SessionContext;
use tandem_column::{Field, Table};

use crate::error::IntoHost;
use crate::planning::planner::plan;
use crate::sql::statement::{ScanTable, Statement};
use crate::tables::files::{FileProvider, file_url};
use crate::tables::inspected::Inspected;
use crate::tables::load::{fields, load, parallel};
use crate::tables::location::{FileKind, Location};
use crate::tables::resident::ResidentTable;
use crate::{Error, Mode};

/// Runs CREATE TABLE, with or without AS.
pub(crate) async fn create_table(
    create: CreateMemoryTable,
    context: &SessionContext,
    state: &SessionState,
    statement: &Arc<Statement>,
) -> Result<()> {
    if create.temporary {
        return Err(Error::unsupported("temporary tables are not supported; leave out TEMPORARY").into_host());
    }
    let exists = context.table_exist(create.name.clone())?;
    match (create.if_not_exists, create.or_replace) {
        (true, true) => return Err(Error::input("IF NOT EXISTS and OR REPLACE exclude each other").into_host()),
        (true, false) if exists => return Ok(()),
        (false, false) if exists => return Err(already_exists(&create.name).into_host()),
        _ => {}
    }
    let schema = plain_schema(&create.input)?;
    let fields = match fields(&schema) {
        Ok(fields) => fields,
        Err(reason) => {
            // Types that resident columns lack stay with the host's own tables.
            statement.report.planned(0, vec![format!("CREATE TABLE: {}", reason.message)]);
            return create_host_table(create, context, state).await;
        }
    };
    let name = create.name.table().to_string();
    let optimized = state.optimize(&create.input)?;
    let shared = if statement.config.mode == Mode::Host {
        None
    } else {
        whole_table(&optimized, &schema, &fields, statement).await?
    };
    let table = match shared {
        Some(table) => table,
        None => {
            let planned = plan(&create.input, state, statement, statement.config.on_fallback).await?;
            let rows = planned.start(state)?;
            // Its memory counts as the table's from here on.
            load(rows, fields, &name, &statement.runtime, &statement.budget).await?.0
        }
    };
    let resident = ResidentTable::new(&name, schema, Arc::new(table), &statement.runtime, &statement.budget);
    let resident = resident.into_host()?.declare(create.constraints, create.column_defaults.into_iter().collect());
    put(context, create.name, Arc::new(resident))
}

/// Makes a table that the host engine holds; a table of that name is replaced when all rows are there.
async fn create_host_table(create: CreateMemoryTable, context: &SessionContext, state: &SessionState) -> Result<()> {
    let physical = state.create_physical_plan(&create.input).await?;
    let rows = collect(physical, state.task_ctx()).await?;
    // In one partition, since INSERT fills one after the other, and a statement could be cancelled in between.
    let table = MemTable::try_new(create.input.schema().inner().clone(), vec![rows])?;
    let table =
        table.with_constraints(create.constraints).with_column_defaults(create.column_defaults.into_iter().collect());
    put(context, create.name, Arc::new(table))
}

/// Runs CREATE EXTERNAL TABLE; plain files become a table that Tandem reads, too.
pub(crate) async fn create_external(
    mut create: CreateExternalTable,
    context: &SessionContext,
    state: &SessionState,
) -> Result<()> {
    let plain = create.schema.fields().is_empty()
        && create.table_partition_cols.is_empty()
        && create.order_exprs.is_empty()
        && create.options.is_empty()
        && create.constraints.is_empty()
        && !create.unbounded
        && !create.temporary;
    let exists = context.table_exist(create.name.clone())?;
    if let ([location], true) = (create.locations.as_slice(), plain && !location_is_remote(&create.locations)) {
        let location = Location::new(location.strip_prefix("file://").unwrap_or(location));
        // Where the extension says otherwise than STORED AS, the host reads what it was told.
        let agrees = location.kind().is_ok_and(|kind| kind.to_string().eq_ignore_ascii_case(&create.file_type));
        if agrees && location.kind().is_ok_and(|kind| kind != FileKind::Json) {
            match (create.if_not_exists, create.or_replace) {
                (true, false) if exists => return Ok(()),
                (false, false) if exists => return Err(already_exists(&create.name).into_host()),
                _ => {}
            }
            let files = FileProvider::open(location, state).await.into_host()?;
            return put(context, create.name, Arc::new(files));
        }
        location.files().into_host()?;
    }
    for location in &mut create.locations {
        // A file of that very name is meant before a pattern is.
        if location.contains(['*', '?', '[']) && Path::new(location.as_str()).exists() {
            let slash = if Path::new(location.as_str()).is_dir() { "/" } else { "" };
            *location = format!("{}{slash}", file_url(Path::new(location.trim_end_matches('/'))).into_host()?);
        }
    }
    inspect(&create, state).await?;
    context.execute_logical_plan(LogicalPlan::Ddl(DdlStatement::CreateExternalTable(Box::new(create)))).await?;
    Ok(())
}

/// Looks at the files of a table that becomes DataFusion's own, before it reads their schemas. A stream is a pipe by intent.
async fn inspect(create: &CreateExternalTable, state: &SessionState) -> Result<()> {
    let stream = |(name, value): (&String, &String)| name.to_lowercase().ends_with("unbounded") && value == "true";
    if create.unbounded || create.options.iter().any(stream) {
        return Ok(());
    }
    let places: Result<Vec<ListingTableUrl>> = create.locations.iter().map(ListingTableUrl::parse).collect();
    // With declared columns every file of a directory is read, else those whose names fit.
    let extension = match create.schema.fields().is_empty() {
        true => format!(".{}", create.file_type.to_lowercase()),
        false => String::new(),
    };
    Inspected::default().check(&places?, &create.file_type, &extension, state).await.into_host()?;
    Ok(())
}

fn location_is_remote(locations: &[String]) -> bool {
    locations.iter().any(|location| location.contains("://") && !location.starts_with("file://"))
}

fn already_exists(name: &TableReference) -> Error {
    Error::input(format!("the table '{name}' already exists; drop it first or use CREATE OR REPLACE"))
}

/// Puts a table in place of any of its name.
pub(crate) fn put(context: &SessionContext, name: TableReference, table: Arc<dyn TableProvider>) -> Result<()> {
    if context.table_exist(name.clone())? {
        context.deregister_table(name.clone())?;
    }
    context.register_table(name, table)?;
    Ok(())
}

/// Returns the schema of a query without qualifiers; each name may occur once.
fn plain_schema(plan: &LogicalPlan) -> Result<SchemaRef> {
    let mut seen = HashSet::new();
    let fields = plan.schema().fields();
    if let Some(twice) = fields.iter().find(|field| !seen.insert(field.name())) {
        return Err(
            Error::input(format!("the column name '{}' occurs twice; rename one with AS", twice.name())).into_host()
        );
    }
    Ok(Arc::new(Schema::new(fields.clone())))
}

/// Returns the rows of a query that is one whole table (`SELECT * FROM t`) without computing anything.
async fn whole_table(
    plan: &LogicalPlan,
    schema: &SchemaRef,
    fields: &Arc<[Field]>,
    statement: &Arc<Statement>,
) -> Result<Option<Table>> {
    let LogicalPlan::TableScan(scan) = plan else { return Ok(None) };
    if !scan.filters.is_empty() || scan.fetch.is_some() {
        return Ok(None);
    }
    let Ok(table) = statement.scan_table(&scan.source, &scan.table_name) else { return Ok(None) };
    let columns = scan.projection.clone().unwrap_or_else(|| (0..scan.source.schema().fields().len()).collect());
    let (statement, cancel) = (statement.clone(), statement.stop.part());
    let report = statement.report.clone();
    let loading = tokio::task::spawn_blocking(move || {
        let (loaded, hold) = table.load(&columns, &[], &statement, &cancel)?;
        // Text of which nothing is known was not tried as a dictionary: the loader does.
        hold.hand_over(&statement.cache);
        let known = loaded.rows() == 0 || loaded.statistics.iter().all(|column| column.distinct.is_some());
        Ok::<_, Error>(known.then(|| match table {
            ScanTable::Resident(_) => Arc::unwrap_or_clone(loaded),
            // A scan looks at blocks only; a table that stays deserves to be looked at in whole.
            ScanTable::Files(_) => {
                let parallel = parallel(&statement.runtime);
                Table::with_statistics_on(loaded.schema.clone(), loaded.parts.clone(), &parallel)
            }
        }))
    });
    let loaded = loading
        .await
        .map_err(|error| datafusion::error::DataFusionError::ExecutionJoin(Box::new(error)))?
        .into_host()?;
    let Some(table) = loaded else { return Ok(None) };
    let same = table.schema.iter().zip(fields.iter()).all(|(have, want)| have.kind == want.kind);
    if !same || table.schema.len() != schema.fields().len() {
        return Ok(None);
    }
    report.planned(1, Vec::new());
    Ok(Some(Table { schema: fields.clone(), ..table }))
}
