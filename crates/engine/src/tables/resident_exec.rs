//! The host engine's scan of resident tables: Arrow batches made on the fly, and what the table knows of itself.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use arrow::datatypes::{DataType, SchemaRef};
use datafusion::common::stats::Precision;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{ColumnStatistics, ScalarValue, Statistics};
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType, SchedulingType};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PlanProperties};
use tandem_column::{Field, Table};

use crate::error::IntoHost;

/// Rows below which another partition does not pay.
const PARTITION_ROWS: usize = 1 << 16;

/// Tells DataFusion what a table knows of itself.
pub(crate) fn statistics(table: &Table, schema: &SchemaRef) -> Statistics {
    let columns = table.statistics.iter().zip(schema.fields()).zip(table.schema.iter());
    let column_statistics = columns.map(|((column, arrow), field)| {
        let bound = |value: Option<i64>| match value.and_then(|value| scalar(value, field, arrow.data_type())) {
            Some(value) => Precision::Exact(value),
            None => Precision::Absent,
        };
        ColumnStatistics {
            null_count: Precision::Exact(column.nulls),
            min_value: bound(column.range.map(|range| range.0)),
            max_value: bound(column.range.map(|range| range.1)),
            distinct_count: column.distinct.map_or(Precision::Absent, |distinct| Precision::Inexact(distinct as usize)),
            ..ColumnStatistics::new_unknown()
        }
    });
    Statistics {
        num_rows: Precision::Exact(table.rows()),
        total_byte_size: Precision::Inexact(table.byte_len()),
        column_statistics: column_statistics.collect(),
    }
}

/// Returns an integer bound in the column's Arrow type; other types' bounds are not values.
fn scalar(value: i64, field: &Field, kind: &DataType) -> Option<ScalarValue> {
    match kind {
        DataType::Date32 => Some(ScalarValue::Date32(i32::try_from(value).ok())),
        _ if field.kind.is_integer() && kind.is_integer() => ScalarValue::Int64(Some(value)).cast_to(kind).ok(),
        _ => None,
    }
}

/// Gives the rows of a resident table to the host engine.
#[derive(Debug)]
pub(crate) struct ResidentExec {
    name: String,
    table: Arc<Table>,
    schema: SchemaRef,
    partitions: Vec<Vec<(usize, Range<usize>)>>,
    limit: Option<usize>,
    properties: Arc<PlanProperties>,
}

impl ResidentExec {
    pub(crate) fn new(
        name: String,
        table: Arc<Table>,
        schema: SchemaRef,
        partitions: usize,
        limit: Option<usize>,
    ) -> ResidentExec {
        let rows = table.rows().min(limit.unwrap_or(usize::MAX));
        let partitions = divide(&table, rows, partitions.min(rows.div_ceil(PARTITION_ROWS)).max(1));
        let properties = PlanProperties::new(
            EquivalenceProperties::new(schema.clone()),
            Partitioning::UnknownPartitioning(partitions.len()),
            EmissionType::Incremental,
            Boundedness::Bounded,
        )
        .with_scheduling_type(SchedulingType::Cooperative);
        ResidentExec { name, table, schema, partitions, limit, properties: Arc::new(properties) }
    }
}

/// Divides the first `rows` rows into runs of about equal length, in order.
fn divide(table: &Table, rows: usize, partitions: usize) -> Vec<Vec<(usize, Range<usize>)>> {
    let mut divided = vec![Vec::new(); partitions];
    let share = rows.div_ceil(partitions).max(1);
    let mut first = 0;
    for (number, part) in table.parts.iter().enumerate() {
        let mut start = 0;
        let end = part.rows.min(rows - first);
        while start < end {
            let partition = (first + start) / share;
            let until = end.min((partition + 1) * share - first);
            divided[partition].push((number, start..until));
            start = until;
        }
        first += end;
    }
    divided
}

impl DisplayAs for ResidentExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns: Vec<&str> = self.schema.fields().iter().map(|field| field.name().as_str()).collect();
        write!(f, "ResidentExec: table={}, columns=[{}]", self.name, columns.join(", "))?;
        match self.limit {
            Some(limit) => write!(f, ", limit={limit}"),
            None => Ok(()),
        }
    }
}

impl ExecutionPlan for ResidentExec {
    fn name(&self) -> &str {
        "ResidentExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![]
    }

    fn apply_expressions(
        &self,
        _f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(self: Arc<Self>, _children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let step = context.session_config().batch_size().max(1);
        let pieces: Vec<(usize, Range<usize>)> = self.partitions[partition]
            .iter()
            .flat_map(|(part, range)| {
                let (part, end) = (*part, range.end);
                range.clone().step_by(step).map(move |start| (part, start..end.min(start + step)))
            })
            .collect();
        let (table, schema) = (self.table.clone(), self.schema.clone());
        let batches = pieces.into_iter().map(move |(part, range)| table.batch(part, range, &schema).into_host());
        let stream = RecordBatchStreamAdapter::new(self.schema.clone(), futures::stream::iter(batches));
        Ok(Box::pin(datafusion::physical_plan::coop::cooperative(stream)))
    }

    fn partition_statistics(&self, partition: Option<usize>) -> Result<Arc<Statistics>> {
        let all = statistics(&self.table, &self.schema);
        Ok(Arc::new(match (partition, self.limit) {
            (None, None) => all,
            (None, Some(limit)) => all.with_fetch(Some(limit), 0, 1)?,
            (Some(partition), _) => {
                let rows = self.partitions[partition].iter().map(|(_, range)| range.len()).sum();
                Statistics { num_rows: Precision::Exact(rows), ..all.to_inexact() }
            }
        }))
    }
}
