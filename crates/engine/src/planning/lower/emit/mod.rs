//! Emits a relational tree as pipelines.
//!
//! Going down, each node is told which columns are needed above it, so only live columns are scanned, carried in builds
//! and added by probes. The probing side of a join goes on in the current pipeline; the other side becomes a pipeline
//! that ends in a build. Aggregates, sorts and limits end a pipeline; what follows reads their result.

mod join;
mod sets;
mod share;

use std::collections::{BTreeMap, BTreeSet};

use tandem_pipeline::{
    Aggregate as PipelineAggregate, Expr, Phase, Pipeline, Query, Sink, Slot, SlotId, SortKey, Source, Step, Window,
};

use super::Block;
use crate::planning::{
    captured::Scan,
    join_order::Estimator,
    tree::{
        Registry,
        node::{AggregateCall, ColumnId, Node, OrderBy, WindowCall, WindowNode, references},
        substitute,
    },
};
use share::SharedReads;

/// A query and what it needs around it.
pub(crate) struct Emitted {
    pub query: Query,
    pub scans: Vec<Scan>,
    pub blocks: Vec<Block>,
    /// The rows that each pipeline is estimated to give.
    pub estimates: Vec<f64>,
}

/// Emits a tree whose result has the given columns.
pub(crate) fn emit(
    registry: &Registry,
    estimator: &Estimator<'_>,
    node: &Node,
    columns: &[ColumnId],
) -> Result<Emitted, String> {
    let mut emitter = Emitter::new(registry, estimator, None);
    emitter.whole(node, columns)?;
    if !emitter.shares.is_empty() {
        // The first run has found out which columns are read of what is shared.
        let shares = emitter.shares;
        emitter = Emitter::new(registry, estimator, Some(shares));
        emitter.whole(node, columns)?;
    }
    let query = Query { functions: vec![], pipelines: emitter.pipelines };
    Ok(Emitted { query, scans: emitter.scans, blocks: emitter.blocks, estimates: emitter.estimates })
}

/// A pipeline that has not met its sink yet.
struct Open {
    source: Source,
    steps: Vec<Step>,
    slots: Vec<Slot>,
    map: BTreeMap<ColumnId, SlotId>,
    /// Estimated rows at this point.
    rows: f64,
}

/// Rows on their way, or already in the result of a pipeline.
enum Stream {
    Open(Open),
    Sunk { pipeline: usize, columns: Vec<ColumnId>, rows: f64 },
}

impl Open {
    /// Rewrites an expression over columns as one over slots.
    fn lower(&self, expr: &Expr) -> Result<Expr, String> {
        if let Some(missing) = references(expr).into_iter().find(|column| !self.map.contains_key(column)) {
            return Err(format!("column {missing} is not live where it is used, which is an error of the planner"));
        }
        Ok(substitute(expr, &|column| Expr::Slot(self.map[&column])))
    }

    fn slot(&self, column: ColumnId) -> Result<SlotId, String> {
        match self.map.get(&column) {
            Some(slot) => Ok(*slot),
            None => Err(format!("column {column} is not live where it is used, which is an error of the planner")),
        }
    }

    fn slots_of(&self, columns: &[ColumnId]) -> Result<Vec<SlotId>, String> {
        columns.iter().map(|column| self.slot(*column)).collect()
    }

    fn sort_keys(&self, keys: &[OrderBy]) -> Result<Vec<SortKey>, String> {
        let key = |key: &OrderBy| {
            let slot = self.slot(key.column)?;
            Ok(SortKey { slot, descending: key.descending, nulls_first: key.nulls_first })
        };
        keys.iter().map(key).collect()
    }

    fn aggregate(&self, aggregate: &AggregateCall) -> Result<PipelineAggregate, String> {
        Ok(PipelineAggregate {
            function: aggregate.function,
            argument: aggregate.argument.map(|column| self.slot(column)).transpose()?,
            second: aggregate.second.map(|column| self.slot(column)).transpose()?,
            parameter: aggregate.parameter.clone(),
            order: self.sort_keys(&aggregate.order)?,
            distinct: aggregate.distinct,
            filter: aggregate.filter.map(|column| self.slot(column)).transpose()?,
            kind: aggregate.kind.clone(),
            overflow: aggregate.overflow,
        })
    }

    fn add(&mut self, column: ColumnId, slot: Slot) {
        self.map.insert(column, self.slots.len());
        self.slots.push(slot);
    }
}

struct Emitter<'a> {
    registry: &'a Registry,
    estimator: &'a Estimator<'a>,
    pipelines: Vec<Pipeline>,
    scans: Vec<Scan>,
    blocks: Vec<Block>,
    estimates: Vec<f64>,
    /// What is read of shared parts: rows, or a build by some keys.
    shares: Vec<SharedReads>,
    /// Whether what is read is known, so that a shared part is emitted once.
    known: bool,
}

impl<'a> Emitter<'a> {
    fn new(registry: &'a Registry, estimator: &'a Estimator<'a>, shares: Option<Vec<SharedReads>>) -> Self {
        let known = shares.is_some();
        let shares = shares.unwrap_or_default();
        let (pipelines, scans, blocks, estimates) = (vec![], vec![], vec![], vec![]);
        Emitter { registry, estimator, pipelines, scans, blocks, estimates, shares, known }
    }

    /// Emits a tree up to the pipeline that ends with its result.
    fn whole(&mut self, node: &Node, columns: &[ColumnId]) -> Result<(), String> {
        let stream = self.stream(node, columns)?;
        if !matches!(&stream, Stream::Sunk { columns: made, .. } if made == columns) {
            let open = self.reopen(stream)?;
            self.materialize(open, columns)?;
        }
        Ok(())
    }

    /// Emits a node up to where its rows flow; `need` are the columns used above.
    fn stream(&mut self, node: &Node, need: &[ColumnId]) -> Result<Stream, String> {
        let rows = self.estimator.rows(node);
        match node {
            Node::Scan { scan, filters } => self.scan(*scan, filters, need, rows).map(Stream::Open),
            Node::Input { input } => self.input(*input, need, rows).map(Stream::Open),
            Node::Values { columns, rows: values } => {
                let kept: Vec<usize> = (0..columns.len()).filter(|i| need.contains(&columns[*i])).collect();
                let rows_kept = values.iter().map(|row| kept.iter().map(|i| row[*i].clone()).collect()).collect();
                let made: Vec<ColumnId> = kept.iter().map(|i| columns[*i]).collect();
                self.start(Source::Values { rows: rows_kept }, &made, rows).map(Stream::Open)
            }
            Node::Filter { input, predicates } => {
                let mut open = self.open(input, &union(need, predicates))?;
                self.filter(&mut open, predicates)?;
                open.rows = rows;
                Ok(Stream::Open(open))
            }
            Node::Let { input, columns } => self.compute(input, columns, need).map(Stream::Open),
            Node::Join(join) => self.join(join, need, rows).map(Stream::Open),
            Node::Aggregate { input, keys, aggregates } => self.aggregate(input, keys, aggregates, need, rows),
            Node::GroupingSets { input, sets } => self.grouping_sets(input, sets, need, rows).map(Stream::Open),
            Node::Sort { input, keys, skip, fetch } => self.sort(input, keys, *skip, *fetch, need, rows),
            Node::Window { input, window } => self.window(input, window, need, rows),
            Node::Limit { input, skip, fetch } => {
                let open = self.open(input, &dedup(need))?;
                let output = open.slots_of(need)?;
                let sink = Sink::Materialize { skip: *skip, fetch: *fetch, output };
                Ok(self.sink(open, sink, need.to_vec(), rows))
            }
            Node::Union { inputs, columns } => self.union(inputs, columns, need, rows).map(Stream::Open),
            Node::Shared(shared) => self.shared(shared, need),
        }
    }

    fn open(&mut self, node: &Node, need: &[ColumnId]) -> Result<Open, String> {
        let stream = self.stream(node, need)?;
        self.reopen(stream)
    }

    /// Goes on with rows in a new pipeline if the last one has ended.
    fn reopen(&mut self, stream: Stream) -> Result<Open, String> {
        match stream {
            Stream::Open(open) => Ok(open),
            Stream::Sunk { pipeline, columns, rows } => Ok(self.resume(vec![pipeline], &columns, rows)),
        }
    }

    /// Starts a pipeline over the results of others, whose columns are the given ones.
    fn resume(&mut self, pipelines: Vec<usize>, columns: &[ColumnId], rows: f64) -> Open {
        let outputs: Vec<Vec<Slot>> = pipelines.iter().map(|pipeline| self.pipelines[*pipeline].output()).collect();
        let source = Source::Result { pipelines };
        let mut open = Open { source, steps: vec![], slots: vec![], map: BTreeMap::new(), rows };
        for (position, column) in columns.iter().enumerate() {
            let name = self.registry.columns[*column].name.clone();
            let kind = outputs[0][position].kind.clone();
            let nullable = outputs.iter().any(|output| output[position].nullable);
            open.add(*column, Slot { name, kind, nullable });
        }
        open
    }

    /// Starts a pipeline whose source has the given columns.
    fn start(&mut self, source: Source, columns: &[ColumnId], rows: f64) -> Result<Open, String> {
        let mut open = Open { source, steps: vec![], slots: vec![], map: BTreeMap::new(), rows };
        for column in columns {
            open.add(*column, self.describe(*column)?);
        }
        Ok(open)
    }

    fn describe(&self, column: ColumnId) -> Result<Slot, String> {
        let info = &self.registry.columns[column];
        Ok(Slot { name: info.name.clone(), kind: self.registry.kind(column)?, nullable: info.nullable })
    }

    /// Ends a pipeline.
    fn sink(&mut self, open: Open, sink: Sink, columns: Vec<ColumnId>, rows: f64) -> Stream {
        let Open { source, steps, slots, .. } = open;
        self.pipelines.push(Pipeline { source, steps, sink, slots });
        self.estimates.push(rows);
        Stream::Sunk { pipeline: self.pipelines.len() - 1, columns, rows }
    }

    fn materialize(&mut self, open: Open, columns: &[ColumnId]) -> Result<Stream, String> {
        let output = open.slots_of(columns)?;
        let rows = open.rows;
        Ok(self.sink(open, Sink::Materialize { skip: 0, fetch: None, output }, columns.to_vec(), rows))
    }

    fn scan(&mut self, scan: usize, filters: &[Expr], need: &[ColumnId], rows: f64) -> Result<Open, String> {
        let info = &self.registry.scans[scan];
        let end = info.first + info.stats.fields.len();
        let live: BTreeSet<ColumnId> =
            union(need, filters).into_iter().filter(|column| (info.first..end).contains(column)).collect();
        let live: Vec<ColumnId> = live.into_iter().collect();
        let name = format!("{}#{}", info.table.table(), self.scans.len());
        let source = Source::Table { table: name.clone(), columns: (0..live.len()).collect() };
        let mut open = self.start(source, &live, rows)?;
        self.filter(&mut open, filters)?;
        let predicates = open.steps.iter().filter_map(|step| match step {
            Step::Filter(expr) => Some(expr.clone()),
            _ => None,
        });
        self.scans.push(Scan {
            name,
            table: info.table.clone(),
            source: info.source.clone(),
            columns: live.iter().map(|column| column - info.first).collect(),
            predicates: predicates.collect(),
        });
        Ok(open)
    }

    fn input(&mut self, input: usize, need: &[ColumnId], rows: f64) -> Result<Open, String> {
        let info = &self.registry.inputs[input];
        let width = info.plan.schema().fields().len();
        let mut live: Vec<usize> = (0..width).filter(|position| need.contains(&(info.first + position))).collect();
        if live.is_empty() {
            // Rows without columns do not cross between the engines: any column will do.
            live.extend((0..width).find(|position| self.registry.kind(info.first + position).is_ok()));
        }
        let source = Source::Block { name: format!("input{}", self.blocks.len()) };
        let columns: Vec<ColumnId> = live.iter().map(|position| info.first + position).collect();
        self.blocks.push(Block { input, columns: live });
        self.start(source, &columns, rows)
    }

    /// Adds a filter step for each condition: what may fail last, the rest by how much it drops for its cost.
    fn filter(&mut self, open: &mut Open, predicates: &[Expr]) -> Result<(), String> {
        for predicate in self.estimator.filter_order(predicates) {
            open.steps.push(Step::Filter(open.lower(&predicate)?));
        }
        Ok(())
    }

    fn compute(&mut self, input: &Node, columns: &[(ColumnId, Expr)], need: &[ColumnId]) -> Result<Open, String> {
        let live: Vec<&(ColumnId, Expr)> = columns.iter().filter(|(column, _)| need.contains(column)).collect();
        let made: BTreeSet<ColumnId> = columns.iter().map(|(column, _)| *column).collect();
        let below: Vec<ColumnId> = need.iter().copied().filter(|column| !made.contains(column)).collect();
        let mut open = self.open(input, &union(&below, live.iter().map(|(_, expr)| expr)))?;
        if live.is_empty() {
            return Ok(open);
        }
        let exprs = live.iter().map(|(_, expr)| open.lower(expr)).collect::<Result<Vec<_>, _>>()?;
        let nullable: Vec<bool> = exprs.iter().map(|expr| expr.nullable(&open.slots)).collect();
        for ((column, _), nullable) in live.into_iter().zip(nullable) {
            open.add(*column, Slot { nullable, ..self.describe(*column)? });
        }
        open.steps.push(Step::Let(exprs));
        Ok(open)
    }

    fn aggregate(
        &mut self,
        input: &Node,
        keys: &[ColumnId],
        aggregates: &[AggregateCall],
        need: &[ColumnId],
        rows: f64,
    ) -> Result<Stream, String> {
        let mut live: Vec<&AggregateCall> =
            aggregates.iter().filter(|aggregate| need.contains(&aggregate.output)).collect();
        if keys.is_empty() && live.is_empty() {
            live.extend(aggregates.first());
        }
        let mut below = keys.to_vec();
        below.extend(live.iter().flat_map(|aggregate| aggregate.columns()));
        let open = self.open(input, &dedup(&below))?;
        let mut columns = keys.to_vec();
        let mut made = Vec::with_capacity(live.len());
        for aggregate in live {
            columns.push(aggregate.output);
            made.push(open.aggregate(aggregate)?);
        }
        let sink = Sink::Aggregate { keys: open.slots_of(keys)?, aggregates: made, phase: Phase::Single };
        Ok(self.sink(open, sink, columns, rows))
    }

    fn sort(
        &mut self,
        input: &Node,
        keys: &[OrderBy],
        skip: usize,
        fetch: Option<usize>,
        need: &[ColumnId],
        rows: f64,
    ) -> Result<Stream, String> {
        let mut below = need.to_vec();
        below.extend(keys.iter().map(|key| key.column));
        let open = self.open(input, &dedup(&below))?;
        let by = open.sort_keys(keys)?;
        let sink = Sink::Sort { keys: by, skip, fetch, output: open.slots_of(need)? };
        Ok(self.sink(open, sink, need.to_vec(), rows))
    }

    fn window(&mut self, input: &Node, window: &WindowNode, need: &[ColumnId], rows: f64) -> Result<Stream, String> {
        let need = dedup(need);
        let (made, output): (Vec<ColumnId>, Vec<ColumnId>) =
            need.iter().copied().partition(|column| window.functions.iter().any(|call| call.output == *column));
        // Where rows are dropped by a function, it is the first.
        let first = window.functions.iter().take(usize::from(window.fetch.is_some()));
        let first: Vec<&WindowCall> = first.collect();
        let others = made.iter().filter(|column| first.iter().all(|call| call.output != **column));
        let others = others.filter_map(|column| window.functions.iter().find(|call| call.output == *column));
        let live: Vec<&WindowCall> = first.iter().copied().chain(others).collect();
        if live.is_empty() {
            return self.stream(input, &output);
        }
        let mut below = output.clone();
        below.extend(window.partition.iter().copied().chain(window.order.iter().map(|key| key.column)));
        live.iter().for_each(|call| call.window.function.visit_slots(&mut |column| below.push(column)));
        let open = self.open(input, &dedup(&below))?;
        let order = open.sort_keys(&window.order)?;
        let place = |column: ColumnId| open.map.get(&column).copied().unwrap_or(usize::MAX);
        let functions = live
            .iter()
            .map(|call| Window { function: call.window.function.map_slots(&place), kind: call.window.kind.clone() });
        let sink = Sink::Window {
            partition: open.slots_of(&window.partition)?,
            order,
            functions: functions.collect(),
            fetch: window.fetch,
            output: open.slots_of(&output)?,
        };
        let columns = output.into_iter().chain(live.iter().map(|call| call.output)).collect();
        Ok(self.sink(open, sink, columns, rows))
    }

    fn union(
        &mut self,
        inputs: &[(Node, Vec<ColumnId>)],
        columns: &[ColumnId],
        need: &[ColumnId],
        rows: f64,
    ) -> Result<Open, String> {
        let live: Vec<usize> = (0..columns.len()).filter(|position| need.contains(&columns[*position])).collect();
        let mut pipelines = Vec::with_capacity(inputs.len());
        for (node, from) in inputs {
            let from: Vec<ColumnId> = live.iter().map(|position| from[*position]).collect();
            let mut stream = self.stream(node, &from)?;
            if !matches!(&stream, Stream::Sunk { columns, .. } if *columns == from) {
                let open = self.reopen(stream)?;
                stream = self.materialize(open, &from)?;
            }
            if let Stream::Sunk { pipeline, .. } = stream {
                pipelines.push(pipeline);
            }
        }
        let columns: Vec<ColumnId> = live.iter().map(|position| columns[*position]).collect();
        Ok(self.resume(pipelines, &columns, rows))
    }
}

/// Returns columns without repetition.
fn dedup(columns: &[ColumnId]) -> Vec<ColumnId> {
    let mut seen = BTreeSet::new();
    columns.iter().copied().filter(|column| seen.insert(*column)).collect()
}

/// Returns columns and what expressions read, without repetition.
fn union<'e>(columns: &[ColumnId], exprs: impl IntoIterator<Item = &'e Expr>) -> Vec<ColumnId> {
    let mut all = columns.to_vec();
    exprs.into_iter().for_each(|expr| all.extend(references(expr)));
    dedup(&all)
}
