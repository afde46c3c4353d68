//! What one statement carries through planning and execution: its report, its bounds, and the tables it saw.
//!
//! Planning decides by statistics, so execution must read the same rows: a table resolved while planning is kept here
//! as it was, whatever is inserted meanwhile.

use std::sync::Arc;

use datafusion::common::TableReference;
use datafusion::datasource::DefaultTableSource;
use datafusion::logical_expr::{TableScan, TableSource};
use parking_lot::Mutex;
use tandem_column::Table;
use tandem_runtime::{Accelerator, Cancel, MemoryBudget, RowProgress, Runtime};
use tandem_scan::{ColumnCache, FileTable, Hold, Loading};

use crate::execution::host::Stop;
use crate::planning::reason::Reason;
use crate::planning::table_stats::{TableResolver, TableStats};
use crate::sql::parameters::Parameter;
use crate::tables::files::FileProvider;
use crate::tables::resident::ResidentTable;
use crate::testing::Switches;
use crate::{Config, Error, Report};

/// One statement.
pub(crate) struct Statement {
    pub(crate) report: Arc<Report>,
    pub(crate) stop: Stop,
    pub(crate) runtime: Arc<Runtime>,
    pub(crate) cache: Arc<ColumnCache>,
    pub(crate) budget: Arc<MemoryBudget>,
    /// The session's settings when the statement began; later changes are for later statements.
    pub(crate) config: Config,
    pub(crate) switches: Switches,
    /// The values of its parameters.
    pub(crate) values: Vec<Parameter>,
    /// The devices that pipelines are to run on.
    pub(crate) devices: Vec<Arc<Accelerator>>,
    /// A pipeline that does not run on them fails the statement.
    pub(crate) only_device: bool,
    /// The tables seen while planning, by their providers' addresses.
    pub(crate) tables: Mutex<Vec<(usize, ScanTable)>>,
}

/// A table that Tandem can scan, as the statement saw it.
#[derive(Clone)]
pub(crate) enum ScanTable {
    Resident(Arc<Table>),
    Files(Arc<FileTable>),
}

impl ScanTable {
    /// Returns the rows' columns that a scan needs, resident, and their memory, if they are not a resident table's.
    pub(crate) fn load(
        &self,
        columns: &[usize],
        predicates: &[tandem_pipeline::Expr],
        statement: &Statement,
        cancel: &Cancel,
    ) -> Result<(Arc<Table>, Hold), Error> {
        let (table, hold) = match self {
            ScanTable::Resident(table) => (table.project(columns), Hold::default()),
            ScanTable::Files(files) => {
                let (cache, runtime, memory) = (&*statement.cache, &*statement.runtime, &statement.budget);
                let progress = &**statement.report.counters();
                files.load(columns, predicates, &Loading { cache, runtime, memory, cancel, progress })?
            }
        };
        Ok((Arc::new(table), hold))
    }

    /// Returns what [`ScanTable::load`] would, if it is there already; reads nothing.
    pub(crate) fn resident(
        &self,
        columns: &[usize],
        predicates: &[tandem_pipeline::Expr],
        statement: &Statement,
    ) -> Option<(Arc<Table>, Hold)> {
        let (table, hold) = match self {
            ScanTable::Resident(table) => (table.project(columns), Hold::default()),
            ScanTable::Files(files) => {
                let (cache, runtime, memory) = (&*statement.cache, &*statement.runtime, &statement.budget);
                let (cancel, progress) = (&statement.stop.part(), &RowProgress::default());
                files.resident(columns, predicates, &Loading { cache, runtime, memory, cancel, progress })?
            }
        };
        Some((Arc::new(table), hold))
    }

    fn statistics(&self) -> TableStats {
        match self {
            ScanTable::Resident(table) => TableStats::of(table),
            ScanTable::Files(files) => TableStats {
                // A count that is not known without reading: take it for large.
                rows: files.rows().map_or(UNKNOWN_ROWS, |rows| rows as f64),
                columns: files.statistics(),
                fields: files.schema().clone(),
                dictionaries: Vec::new(),
                rows_at_hand: None,
            },
        }
    }
}

/// Rows assumed of a file that does not tell how many it has.
const UNKNOWN_ROWS: f64 = 1e6;

/// Returns the provider behind a table source.
pub(crate) fn provider(source: &Arc<dyn TableSource>) -> Option<&Arc<dyn datafusion::catalog::TableProvider>> {
    source.downcast_ref::<DefaultTableSource>().map(|source| &source.table_provider)
}

impl Statement {
    /// Names the devices that pipelines are to run on; `None` if none was asked for.
    pub(crate) fn device_names(&self) -> Option<String> {
        let names: Vec<String> = self.devices.iter().map(|device| device.name()).collect();
        (!names.is_empty()).then(|| names.join(" and "))
    }

    /// Returns the table behind a source, as planning saw it.
    ///
    /// # Errors
    /// Internal, if planning never saw it.
    pub(crate) fn scan_table(&self, source: &Arc<dyn TableSource>, name: &TableReference) -> Result<ScanTable, Error> {
        self.see(source).ok_or_else(|| Error::internal(format!("Tandem does not scan the captured table '{name}'")))
    }

    /// Tells why a scan is left to the host with all that is above it: columns that do not fit the memory limit.
    pub(crate) fn refuses(&self, scan: &TableScan) -> Option<Reason> {
        let ScanTable::Files(files) = self.see(&scan.source)? else { return None };
        let all = || (0..scan.source.schema().fields().len()).collect();
        let bytes = files.decoded_bytes(&scan.projection.clone().unwrap_or_else(all));
        // The other half is for what is made of them.
        (bytes > self.budget.limit() as u64 / 2).then(|| {
            let reason = format!("its columns take {} MB, more than half of the memory limit", bytes >> 20);
            Reason::new(format!("TableScan of {}", scan.table_name), reason)
        })
    }

    /// Remembers the table behind a source as it is now, unless it was seen before.
    fn see(&self, source: &Arc<dyn TableSource>) -> Option<ScanTable> {
        let provider = provider(source)?;
        let address = Arc::as_ptr(provider).cast::<()>() as usize;
        let mut tables = self.tables.lock();
        if let Some((_, table)) = tables.iter().find(|(other, _)| *other == address) {
            return Some(table.clone());
        }
        let table = if let Some(resident) = provider.downcast_ref::<ResidentTable>() {
            ScanTable::Resident(resident.snapshot())
        } else {
            let files = provider.downcast_ref::<FileProvider>()?;
            ScanTable::Files(files.opened().table.as_ref().ok()?.clone())
        };
        tables.push((address, table.clone()));
        Some(table)
    }
}

impl TableResolver for Statement {
    fn resolve(&self, source: &Arc<dyn TableSource>, _name: &TableReference) -> Option<TableStats> {
        self.see(source).map(|table| table.statistics())
    }
}
