//! What one command may ask for at most.
//!
//! A command's bytes are bounded, but a few of them can stand for much: a byte that names a column costs a vector for every
//! worker, a pipeline reads all splits of its table again, a name is copied with everything it names. What is counted here is
//! far above what a host sends and far below what would hurt; nothing of it is made before it was counted.

use tandem_column::{Error, Result};
use tandem_pipeline::proto as wire;

use crate::proto;

/// Pipelines: joins of a query and the parts of its unions.
const PIPELINES: usize = 1024;
/// Slots of all pipelines: each holds a vector of rows, 32 KB, in every worker.
const SLOTS: usize = 1 << 14;
/// Steps of all pipelines.
const STEPS: usize = 1 << 14;
/// Places where a name or number is mentioned: columns of sources, keys, payloads, outputs, aggregates, pipelines of unions.
const MENTIONS: usize = 1 << 16;
/// Columns of all tables.
const COLUMNS: usize = 1 << 14;
/// Splits of all tables, counted for every pipeline that reads them.
const SPLITS: usize = 1 << 19;
/// Blocks.
const BLOCKS: usize = 1024;
/// User functions, and the locals of all of them.
const FUNCTIONS: usize = 256;
const LOCALS: usize = 1 << 12;
/// Bytes of a name.
const NAME_BYTES: usize = 4 << 10;

/// Checks that a command asks for no more than what is sensible.
///
/// # Errors
/// Unsupported, with what is too much: the host can run it in parts, or by itself.
pub(crate) fn check(execute: &proto::Execute) -> Result<()> {
    let pipelines = execute.query.as_ref().map_or(&[][..], |query| &query.pipelines);
    let functions = execute.query.as_ref().map_or(&[][..], |query| &query.functions);
    most("pipelines", pipelines.len(), PIPELINES)?;
    most("slots", pipelines.iter().map(|pipeline| pipeline.slots.len()).sum(), SLOTS)?;
    most("steps", pipelines.iter().map(|pipeline| pipeline.steps.len()).sum(), STEPS)?;
    most("columns and keys", pipelines.iter().map(mentions).sum(), MENTIONS)?;
    most("columns of tables", execute.tables.iter().map(|table| table.columns.len()).sum(), COLUMNS)?;
    most("blocks", execute.blocks.len(), BLOCKS)?;
    most("functions", functions.len(), FUNCTIONS)?;
    most("locals of functions", functions.iter().map(|function| function.locals.len()).sum(), LOCALS)?;
    let read = pipelines.iter().filter_map(|pipeline| table_of(pipeline));
    let splits_of = |name: &str| {
        let named = execute.tables.iter().filter(|table| table.name == name);
        named.map(|table| table.splits.len()).sum::<usize>()
    };
    most("tables", execute.tables.len(), PIPELINES)?;
    most("splits", read.map(splits_of).fold(0, usize::saturating_add), SPLITS)?;
    let slots = pipelines.iter().flat_map(|pipeline| &pipeline.slots).map(|slot| &slot.name);
    let tables = execute.tables.iter().flat_map(|table| table.columns.iter().map(|column| &column.name));
    let sources = pipelines.iter().filter_map(|pipeline| table_of(pipeline));
    let locals = functions.iter().flat_map(|function| &function.locals).map(|local| &local.name);
    let blocks = execute.blocks.iter().flat_map(|block| [&block.name, &block.key]);
    let functions = functions.iter().map(|function| &function.name);
    let names = slots.chain(tables).chain(locals).chain(blocks).chain(functions).map(String::as_str).chain(sources);
    match names.map(str::len).max() {
        Some(longest) => most("bytes of a name", longest, NAME_BYTES),
        None => Ok(()),
    }
}

fn most(what: &str, found: usize, limit: usize) -> Result<()> {
    match found > limit {
        true => Err(Error::unsupported(format!(
            "a command has too many {what}: send less in one command (limit {limit}, given {found})"
        ))),
        false => Ok(()),
    }
}

/// Returns the table that a pipeline reads.
fn table_of(pipeline: &wire::Pipeline) -> Option<&str> {
    match pipeline.source.as_ref()?.source.as_ref()? {
        wire::source::Source::Table(table) => Some(&table.table),
        _ => None,
    }
}

/// Counts what a pipeline's source, probes and sink mention by number.
fn mentions(pipeline: &wire::Pipeline) -> usize {
    use wire::{sink::Sink, source::Source, step::Step};
    let source = match pipeline.source.as_ref().and_then(|source| source.source.as_ref()) {
        Some(Source::Table(table)) => table.columns.len(),
        // Each is looked at with all of its columns.
        Some(Source::Result(result)) => result.pipelines.len() * pipeline.slots.len().max(1),
        Some(Source::Block(_) | Source::Values(_)) | None => 0,
    };
    let step = |step: &wire::Step| match &step.step {
        // The residual of each sees all slots.
        Some(Step::Probe(probe)) => probe.keys.len() + probe.adds.len() + 1,
        Some(Step::Filter(_) | Step::Let(_)) | None => 0,
    };
    let sink = match pipeline.sink.as_ref().and_then(|sink| sink.sink.as_ref()) {
        Some(Sink::Build(build)) => build.keys.len() + build.payload.len(),
        Some(Sink::Aggregate(aggregate)) => aggregate.keys.len() + aggregate.aggregates.len(),
        Some(Sink::Sort(sort)) => sort.keys.len() + sort.output.len(),
        Some(Sink::Window(window)) => {
            window.partition.len() + window.order.len() + window.functions.len() + window.output.len()
        }
        Some(Sink::Partition(partition)) => partition.keys.len() + partition.output.len(),
        Some(Sink::Materialize(materialize)) => materialize.output.len(),
        None => 0,
    };
    pipeline.steps.iter().map(step).sum::<usize>() + source + sink
}
