//! Tables that CREATE EXTERNAL TABLE leaves to DataFusion: read by it, written by way of a [staging](crate::execution::staging).
//!
//! DataFusion's own INSERT writes straight into the table's directory, where rows of a statement that fails stay. Here an
//! INSERT is one new file (or one for each partition), which appears when all its rows are written. What cannot be
//! staged is refused: single files, streams, and OVERWRITE.

use std::path::PathBuf;
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider, TableProviderFactory};
use datafusion::common::{Constraints, SchemaExt, Statistics};
use datafusion::datasource::listing::{ListingTable, ListingTableUrl};
use datafusion::datasource::physical_plan::{FileGroup, FileOutputMode, FileSinkConfig};
use datafusion::error::Result;
use datafusion::logical_expr::dml::InsertOp;
use datafusion::logical_expr::{CreateExternalTable, Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::ExecutionPlan;

use crate::Error;
use crate::error::IntoHost;
use crate::execution::staging::{StagedExec, StagingUrl, WriteTarget, random_name};
use crate::tables::provider_future::{PlanFuture, boxed};

/// Makes tables as another factory does, whose INSERT is staged.
#[derive(Debug)]
pub(crate) struct ExternalFactory(pub(crate) Arc<dyn TableProviderFactory>);

#[async_trait]
impl TableProviderFactory for ExternalFactory {
    async fn create(&self, state: &dyn Session, create: &CreateExternalTable) -> Result<Arc<dyn TableProvider>> {
        let (table, name) = (self.0.create(state, create).await?, create.name.to_string());
        Ok(Arc::new(ExternalTable { table, name }))
    }
}

/// A table that DataFusion reads.
#[derive(Debug)]
pub(crate) struct ExternalTable {
    table: Arc<dyn TableProvider>,
    name: String,
}

/// Returns the table of files that DataFusion reads behind a table, if it is one.
pub(crate) fn listing(table: &Arc<dyn TableProvider>) -> Option<&ListingTable> {
    let table = table.downcast_ref::<ExternalTable>().map_or(table, |external| &external.table);
    table.downcast_ref::<ListingTable>()
}

impl ExternalTable {
    /// Plans an INSERT of new files into the table's first directory.
    async fn insert(
        &self,
        state: &dyn Session,
        input: Arc<dyn ExecutionPlan>,
        operation: InsertOp,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let refused = |reason: &str| Err(Error::unsupported(format!("{reason}: table '{}'", self.name)).into_host());
        let Some(listing) = listing(&self.table) else {
            return refused("INSERT into an unbounded table is not supported; write with COPY … TO");
        };
        if operation != InsertOp::Append {
            return refused("INSERT OVERWRITE of files is not supported; write new ones with COPY … TO");
        }
        let path = &listing.table_paths()[0];
        if !path.is_collection() || path.scheme() != "file" {
            return refused("INSERT needs a table of a local directory; end its LOCATION with a slash");
        }
        listing.schema().logically_equivalent_names_and_types(&input.schema())?;
        let options = listing.options();
        let extension = options.format.compression_type();
        let extension = extension.and_then(|kind| options.format.get_ext_with_compression(&kind).ok());
        let extension = extension.unwrap_or_else(|| options.format.get_ext());
        let name = format!("{}.{extension}", random_name());
        if !path.contains(&path.prefix().clone().join(name.as_str()), true) || !name.ends_with(&options.file_extension)
        {
            return refused("new files would not fit the pattern of the LOCATION; name the directory alone");
        }
        let single = options.table_partition_cols.is_empty();
        let url = StagingUrl::new();
        let output = ListingTableUrl::parse(if single { url.named(&name) } else { url.output(false) })?;
        let config = FileSinkConfig {
            original_url: String::new(),
            object_store_url: url.store()?,
            file_group: FileGroup::default(),
            table_paths: vec![output],
            output_schema: listing.schema(),
            table_partition_cols: options.table_partition_cols.clone(),
            insert_op: operation,
            keep_partition_by_columns: state.config_options().execution.keep_partition_by_columns,
            file_extension: extension,
            file_output_mode: if single { FileOutputMode::SingleFile } else { FileOutputMode::Directory },
        };
        let order = listing.try_create_output_ordering(state.execution_props(), &[])?;
        let order = order.into_iter().next().map(Into::into);
        let writing = options.format.create_writer_physical_plan(input, state, config, order).await?;
        let mut directory = PathBuf::from("/");
        directory.extend(path.prefix().parts().map(|part| part.as_ref().to_string()));
        Ok(Arc::new(StagedExec::new(writing, WriteTarget::Into { directory }, url)))
    }
}

impl TableProvider for ExternalTable {
    fn schema(&self) -> SchemaRef {
        self.table.schema()
    }

    fn constraints(&self) -> Option<&Constraints> {
        self.table.constraints()
    }

    fn table_type(&self) -> TableType {
        self.table.table_type()
    }

    fn get_table_definition(&self) -> Option<&str> {
        self.table.get_table_definition()
    }

    fn get_column_default(&self, column: &str) -> Option<&Expr> {
        self.table.get_column_default(column)
    }

    fn scan<'s: 'a, 'c: 'a, 'p: 'a, 'f: 'a, 'a>(
        &'s self,
        state: &'c dyn Session,
        projection: Option<&'p Vec<usize>>,
        filters: &'f [Expr],
        limit: Option<usize>,
    ) -> PlanFuture<'a> {
        self.table.scan(state, projection, filters, limit)
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        self.table.supports_filters_pushdown(filters)
    }

    fn statistics(&self) -> Option<Statistics> {
        self.table.statistics()
    }

    fn insert_into<'s: 'a, 'c: 'a, 'a>(
        &'s self,
        state: &'c dyn Session,
        input: Arc<dyn ExecutionPlan>,
        operation: InsertOp,
    ) -> PlanFuture<'a> {
        boxed(self.insert(state, input, operation))
    }
}
