//! Emits grouping sets: the rows are read once, whatever the number of sets.
//!
//! Where all aggregates can be computed in parts, the rows become the states of the groups by all keys, and each set is made of
//! those, which are few. Otherwise (distinct values, medians) what the sets read of the rows is kept, and each set groups that.

use tandem_column::Type;
use tandem_pipeline::{Aggregate, AggregateFunction, Expr, Failure, Phase, Sink, Slot, SlotId, Source, Step, Value};

use super::{Emitter, Open, Stream, dedup};
use crate::planning::{
    lower::typed::Typed,
    tree::node::{AggregateCall, ColumnId, GroupingSets, Node},
};

/// Digits of a decimal beyond which parts of a sum have no room to spare.
const DIVISIBLE_DIGITS: u8 = 28;

/// What all sets group: the states of the finest groups, or rows. Keys are the first columns.
struct Finest {
    pipeline: usize,
    keys: Vec<ColumnId>,
    aggregates: Vec<Aggregate>,
    phase: Phase,
    /// The rows that come in, about.
    rows: f64,
}

impl Emitter<'_> {
    /// Emits grouping sets, one after the other.
    pub(super) fn grouping_sets(
        &mut self,
        input: &Node,
        of: &GroupingSets,
        need: &[ColumnId],
        rows: f64,
    ) -> Result<Open, String> {
        let mut live: Vec<&AggregateCall> =
            of.aggregates.iter().filter(|aggregate| need.contains(&aggregate.output)).collect();
        if live.is_empty() {
            live.extend(of.aggregates.first());
        }
        let finest = self.finest(input, &dedup(&of.keys), &live)?;
        let outputs: Vec<usize> = (0..of.keys.len()).filter(|key| need.contains(&of.outputs[*key])).collect();
        let mut pipelines = Vec::with_capacity(of.sets.len());
        for (set, number) in &of.sets {
            pipelines.push(self.grouping_set(of, &finest, (set, *number), &outputs, &live)?);
        }
        let mut columns: Vec<ColumnId> = outputs.iter().map(|key| of.outputs[*key]).collect();
        columns.push(of.number);
        columns.extend(live.iter().map(|aggregate| aggregate.output));
        Ok(self.resume(pipelines, &columns, rows))
    }

    /// Ends the pipeline of the rows in what all sets are made of.
    fn finest(&mut self, input: &Node, keys: &[ColumnId], live: &[&AggregateCall]) -> Result<Finest, String> {
        let mut below = keys.to_vec();
        below.extend(live.iter().flat_map(|aggregate| aggregate.columns()));
        let below = dedup(&below);
        let open = self.open(input, &below)?;
        let (keys, rows) = (keys.to_vec(), open.rows);
        let mut aggregates = live.iter().map(|call| open.aggregate(call)).collect::<Result<Vec<_>, _>>()?;
        if !aggregates.iter().all(|aggregate| divides(aggregate, &open.slots)) {
            let Stream::Sunk { pipeline, .. } = self.materialize(open, &below)? else {
                return Err("rows that are kept end a pipeline".to_string());
            };
            let kept = self.resume(vec![pipeline], &below, rows);
            let aggregates = live.iter().map(|call| kept.aggregate(call)).collect::<Result<_, _>>()?;
            return Ok(Finest { pipeline, keys, aggregates, phase: Phase::Single, rows });
        }
        for aggregate in &mut aggregates {
            aggregate.distinct = false;
            // The sum of a finer group may pass the limits of a coarser one's type, and come back.
            if sums_integers(aggregate, &open.slots) {
                aggregate.kind = WIDE;
            }
        }
        let sink =
            Sink::Aggregate { keys: open.slots_of(&keys)?, aggregates: aggregates.clone(), phase: Phase::Partial };
        let Stream::Sunk { pipeline, .. } =
            self.sink(open, sink, vec![], self.estimator.groups(keys.iter().copied(), rows))
        else {
            return Err("groups end a pipeline".to_string());
        };
        let mut first = keys.len();
        let finish = aggregates.into_iter().map(|aggregate| {
            let argument = Some(first);
            first += aggregate.function.state_names().len();
            Aggregate { argument, second: None, filter: None, ..aggregate }
        });
        let aggregates = finish.collect();
        Ok(Finest { pipeline, keys, aggregates, phase: Phase::Final, rows })
    }

    /// Emits one set: groups, then the columns that all sets have.
    fn grouping_set(
        &mut self,
        of: &GroupingSets,
        finest: &Finest,
        (set, number): (&[usize], i128),
        outputs: &[usize],
        live: &[&AggregateCall],
    ) -> Result<usize, String> {
        let place = |column: ColumnId, within: &[ColumnId]| within.iter().position(|known| *known == column);
        let keys = dedup(&set.iter().map(|key| of.keys[*key]).collect::<Vec<_>>());
        let slots: Vec<SlotId> = keys.iter().filter_map(|key| place(*key, &finest.keys)).collect();
        let sink = Sink::Aggregate { keys: slots, aggregates: finest.aggregates.clone(), phase: finest.phase };
        let rows = self.estimator.groups(keys.iter().copied(), finest.rows);
        let groups = self.reads(finest.pipeline);
        let Stream::Sunk { pipeline, .. } = self.sink(groups, sink, vec![], rows) else {
            return Err("groups end a pipeline".to_string());
        };

        let mut open = self.reads(pipeline);
        let (mut computed, mut output) = (Vec::new(), Vec::new());
        let mut compute = |open: &mut Open, expr: Expr, slot: Slot| {
            computed.push(expr);
            open.slots.push(slot);
            open.slots.len() - 1
        };
        for key in outputs {
            let known = place(of.keys[*key], &keys).filter(|_| set.contains(key));
            let missing = self.describe(of.outputs[*key])?;
            output.push(match known {
                Some(slot) => slot,
                None => compute(&mut open, Expr::Literal(Value::Null, missing.kind.clone()), missing),
            });
        }
        let slot = self.describe(of.number)?;
        output.push(compute(&mut open, Expr::Literal(Value::Integer(number), slot.kind.clone()), slot));
        for (position, call) in live.iter().enumerate() {
            let at = keys.len() + position;
            let made = open.slots[at].clone();
            output.push(if made.kind == call.kind {
                at
            } else {
                let sum = Typed::new(Expr::Slot(at), made.kind, made.nullable).cast(&call.kind, Failure::Error);
                compute(&mut open, sum.expr, Slot { name: made.name, kind: call.kind.clone(), nullable: made.nullable })
            });
        }
        open.steps.push(Step::Let(computed));
        match self.sink(open, Sink::Materialize { skip: 0, fetch: None, output }, vec![], rows) {
            Stream::Sunk { pipeline, .. } => Ok(pipeline),
            Stream::Open(_) => Err("rows that are kept end a pipeline".to_string()),
        }
    }

    /// Starts a pipeline over the rows of another, whose slots have no columns.
    fn reads(&self, pipeline: usize) -> Open {
        let slots = self.pipelines[pipeline].output();
        let source = Source::Result { pipelines: vec![pipeline] };
        Open { source, steps: vec![], slots, map: Default::default(), rows: self.estimates[pipeline] }
    }
}

/// The type of the parts of sums of integers.
const WIDE: Type = Type::Decimal { precision: 38, scale: 0 };

/// Tells whether an aggregate is a sum of integers.
fn sums_integers(aggregate: &Aggregate, slots: &[Slot]) -> bool {
    aggregate.function == AggregateFunction::Sum && aggregate.argument.is_some_and(|slot| slots[slot].kind.is_integer())
}

/// Tells whether an aggregate of a group can be made of those of the groups within it.
fn divides(aggregate: &Aggregate, slots: &[Slot]) -> bool {
    let function = aggregate.function;
    let room = match aggregate.argument.map(|slot| &slots[slot].kind) {
        Some(Type::Decimal { precision, .. }) if function == AggregateFunction::Sum => *precision <= DIVISIBLE_DIGITS,
        _ => true,
    };
    let whole = function.is_holistic() || function == AggregateFunction::CountApproximate;
    room && !whole && (!aggregate.distinct || function.ignores_repetition())
}
