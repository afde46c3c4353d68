//! What flows through a pipeline: slots before each step, slots still needed after it, and the sink's columns.

use tandem_column::Type;

use crate::{
    Aggregate, AggregateFunction, Expr, FrameBound, JoinKind, Overflow, Phase, Pipeline, Query, Sink, Slot, SlotId,
    Source, Step, Value, WindowFrame, WindowFunction,
};

impl Step {
    /// Returns how many slots the step adds.
    pub fn adds(&self) -> usize {
        match self {
            Step::Filter(_) => 0,
            Step::Let(exprs) => exprs.len(),
            Step::Probe(probe) if probe.kind == JoinKind::Mark => 1,
            Step::Probe(probe) => probe.adds.len(),
        }
    }
}

impl JoinKind {
    /// Tells whether build rows without a pair come out, with null in every slot of the row.
    pub fn emits_build_rows(self) -> bool {
        matches!(self, JoinKind::Right | JoinKind::Full | JoinKind::RightSemi | JoinKind::RightAnti)
    }
}

impl Pipeline {
    /// Returns how many slots the source defines.
    pub fn source_columns(&self) -> usize {
        self.slots.len().saturating_sub(self.steps.iter().map(Step::adds).sum())
    }

    /// Returns how many slots exist before step `step` (before the sink, if there are no more steps).
    pub fn defined_before(&self, step: usize) -> usize {
        self.source_columns() + self.steps.iter().take(step).map(Step::adds).sum::<usize>()
    }

    /// Returns, for each step, which slots a later step or the sink still reads.
    pub fn liveness(&self) -> Vec<Vec<bool>> {
        let mut live = vec![false; self.slots.len()];
        self.sink.visit_slots(&mut |slot| mark(&mut live, slot));
        let mut after = Vec::with_capacity(self.steps.len());
        for (index, step) in self.steps.iter().enumerate().rev() {
            after.push(live.clone());
            let defined = self.defined_before(index);
            // What the step itself defines does not exist before it.
            live.iter_mut().skip(defined).for_each(|slot| *slot = false);
            step.visit_slots(defined, &mut |slot| mark(&mut live, slot));
        }
        after.reverse();
        after
    }

    /// Returns which slots any step or the sink reads.
    pub fn used(&self) -> Vec<bool> {
        let mut used = vec![false; self.slots.len()];
        self.sink.visit_slots(&mut |slot| mark(&mut used, slot));
        for (index, step) in self.steps.iter().enumerate() {
            step.visit_slots(self.defined_before(index), &mut |slot| mark(&mut used, slot));
        }
        used
    }

    /// Returns the slots that exist before step `step` (before the sink, if there are no more steps), as nullable as
    /// they are there: a probe that emits build rows without a pair gives null to every slot before it.
    pub fn scope(&self, step: usize) -> Vec<Slot> {
        let mut slots = self.slots[..self.defined_before(step).min(self.slots.len())].to_vec();
        for (index, step) in self.steps.iter().take(step).enumerate() {
            if matches!(step, Step::Probe(probe) if probe.kind.emits_build_rows()) {
                let before = self.defined_before(index);
                slots.iter_mut().take(before).for_each(|slot| slot.nullable = true);
            }
        }
        slots
    }

    /// Returns a slot as the sink sees it.
    pub fn slot_at_sink(&self, slot: SlotId) -> Slot {
        let missing = || Slot { name: String::new(), kind: Type::Null, nullable: true };
        self.scope(self.steps.len()).get(slot).cloned().unwrap_or_else(missing)
    }

    /// Returns the columns of the sink's result; of a build, its payload.
    pub fn output(&self) -> Vec<Slot> {
        let slots = |output: &[SlotId]| output.iter().map(|slot| self.slot_at_sink(*slot)).collect::<Vec<_>>();
        match &self.sink {
            Sink::Build { payload, .. } => slots(payload),
            Sink::Sort { output, .. } | Sink::Partition { output, .. } | Sink::Materialize { output, .. } => {
                slots(output)
            }
            Sink::Aggregate { keys, aggregates, phase } => {
                let mut columns = slots(keys);
                for aggregate in aggregates {
                    columns.extend(self.aggregate_output(aggregate, *phase, keys.is_empty()));
                }
                columns
            }
            Sink::Window { functions, output, .. } => {
                let mut columns = slots(output);
                columns.extend(functions.iter().map(|window| {
                    let (name, nullable) = match &window.function {
                        WindowFunction::RowNumber => ("row_number".to_owned(), false),
                        WindowFunction::Rank => ("rank".to_owned(), false),
                        WindowFunction::DenseRank => ("dense_rank".to_owned(), false),
                        WindowFunction::PercentRank => ("percent_rank".to_owned(), false),
                        WindowFunction::CumeDist => ("cume_dist".to_owned(), false),
                        WindowFunction::Ntile { .. } => ("ntile".to_owned(), false),
                        WindowFunction::Lag { slot, .. } => (format!("lag({})", self.slot_at_sink(*slot).name), true),
                        WindowFunction::Nth { slot, .. } => (format!("nth({})", self.slot_at_sink(*slot).name), true),
                        WindowFunction::Aggregate { aggregate, .. } => {
                            (self.aggregate_name(aggregate), !aggregate.function.is_count())
                        }
                    };
                    Slot { name, kind: window.kind.clone(), nullable }
                }));
                columns
            }
        }
    }

    /// Names an aggregate for people.
    fn aggregate_name(&self, aggregate: &Aggregate) -> String {
        let distinct = if aggregate.distinct { "distinct " } else { "" };
        match aggregate.argument {
            Some(slot) => {
                let name = |slot: SlotId| self.slot_at_sink(slot).name;
                let second = aggregate.second.map_or_else(String::new, |slot| format!(", {}", name(slot)));
                format!("{}({distinct}{}{second})", aggregate.function.name(), name(slot))
            }
            None => format!("{}(*)", aggregate.function.name()),
        }
    }

    /// Returns the columns of one aggregate.
    fn aggregate_output(&self, aggregate: &Aggregate, phase: Phase, global: bool) -> Vec<Slot> {
        let name = self.aggregate_name(aggregate);
        let argument = aggregate.argument.map(|slot| self.slot_at_sink(slot));
        let kind = argument.as_ref().map_or(Type::Null, |slot| slot.kind.clone());
        match phase {
            Phase::Partial => {
                let types = aggregate.function.state(&kind, &aggregate.kind);
                let names = aggregate.function.state_names();
                // Counts are never null, nor are the moments of variances and pairs.
                let counted = aggregate.function.is_count() || names.len() >= 3;
                let column = |(kind, part): (Type, &&str)| Slot {
                    name: if part.is_empty() { name.clone() } else { format!("{name} {part}") },
                    nullable: !counted && *part != "count",
                    kind,
                };
                types.into_iter().zip(names).map(column).collect()
            }
            Phase::Single | Phase::Final => {
                let never_empty = !global && aggregate.filter.is_none() && argument.is_none_or(|slot| !slot.nullable);
                let always = match aggregate.function {
                    function if function.is_count() => true,
                    AggregateFunction::Sum | AggregateFunction::Average => {
                        never_empty && aggregate.overflow != Overflow::Null
                    }
                    AggregateFunction::Min | AggregateFunction::Max | AggregateFunction::First => never_empty,
                    AggregateFunction::BoolAnd | AggregateFunction::BoolOr => never_empty,
                    _ => false,
                };
                vec![Slot { name, kind: aggregate.kind.clone(), nullable: !always }]
            }
        }
    }

    /// Returns the earlier pipelines that this one reads, in order of appearance.
    pub fn inputs(&self) -> Vec<usize> {
        let mut inputs = match &self.source {
            Source::Result { pipelines } => pipelines.clone(),
            _ => vec![],
        };
        inputs.extend(self.steps.iter().filter_map(|step| match step {
            Step::Probe(probe) => Some(probe.build),
            _ => None,
        }));
        inputs
    }
}

impl Query {
    /// Returns the columns of the result.
    pub fn output(&self) -> Vec<Slot> {
        self.pipelines.last().map_or(vec![], Pipeline::output)
    }

    /// Returns what a probe's residual sees: the row's slots and, behind them, the build's payload.
    pub fn residual_scope(&self, slots: &[Slot], defined: usize, build: usize) -> Vec<Slot> {
        let payload = self.pipelines.get(build).map_or(vec![], Pipeline::output);
        slots.iter().take(defined).cloned().chain(payload).collect()
    }
}

impl Step {
    /// Calls `visit` with every slot of the row that the step reads; `defined` is how many exist before it.
    pub fn visit_slots(&self, defined: usize, visit: &mut dyn FnMut(SlotId)) {
        match self {
            Step::Filter(condition) => condition.visit_slots(visit),
            Step::Let(exprs) => exprs.iter().for_each(|expr| expr.visit_slots(visit)),
            Step::Probe(probe) => {
                probe.keys.iter().for_each(|key| key.visit_slots(visit));
                if let Some(residual) = &probe.residual {
                    // Behind the row's slots the residual sees the build's payload.
                    residual.visit_slots(&mut |slot| {
                        if slot < defined {
                            visit(slot);
                        }
                    });
                }
            }
        }
    }
}

impl Sink {
    /// Calls `visit` with every slot that the sink reads, as often as it does.
    pub fn visit_slots(&self, visit: &mut dyn FnMut(SlotId)) {
        let exprs = |exprs: &[Expr], visit: &mut dyn FnMut(SlotId)| {
            exprs.iter().for_each(|expr| expr.visit_slots(visit));
        };
        match self {
            Sink::Build { keys, payload } => {
                exprs(keys, visit);
                payload.iter().copied().for_each(visit);
            }
            Sink::Aggregate { keys, aggregates, phase } => {
                keys.iter().copied().for_each(&mut *visit);
                aggregates.iter().for_each(|aggregate| aggregate.visit_slots(*phase, visit));
            }
            Sink::Sort { keys, output, .. } => {
                keys.iter().map(|key| key.slot).for_each(&mut *visit);
                output.iter().copied().for_each(visit);
            }
            Sink::Window { partition, order, functions, output, .. } => {
                partition.iter().copied().for_each(&mut *visit);
                order.iter().map(|key| key.slot).for_each(&mut *visit);
                functions.iter().for_each(|window| window.function.visit_slots(visit));
                output.iter().copied().for_each(visit);
            }
            Sink::Partition { keys, output, .. } => {
                exprs(keys, visit);
                output.iter().copied().for_each(visit);
            }
            Sink::Materialize { output, .. } => output.iter().copied().for_each(visit),
        }
    }
}

impl WindowFunction {
    /// Calls `visit` with every slot that the function reads.
    pub fn visit_slots(&self, visit: &mut dyn FnMut(SlotId)) {
        match self {
            WindowFunction::Lag { slot, default, .. } => {
                visit(*slot);
                default.iter().copied().for_each(visit);
            }
            WindowFunction::Nth { slot, frame, .. } => {
                visit(*slot);
                frame.slots().for_each(visit);
            }
            WindowFunction::Aggregate { aggregate, frame } => {
                aggregate.visit_slots(Phase::Single, visit);
                frame.slots().for_each(visit);
            }
            WindowFunction::RowNumber
            | WindowFunction::Rank
            | WindowFunction::DenseRank
            | WindowFunction::PercentRank
            | WindowFunction::CumeDist
            | WindowFunction::Ntile { .. } => {}
        }
    }

    /// Returns the function of other slots.
    pub fn map_slots(&self, map: &dyn Fn(SlotId) -> SlotId) -> WindowFunction {
        let mut mapped = self.clone();
        match &mut mapped {
            WindowFunction::Lag { slot, default, .. } => {
                *slot = map(*slot);
                *default = default.map(map);
            }
            WindowFunction::Nth { slot, frame, .. } => {
                *slot = map(*slot);
                frame.map_slots(map);
            }
            WindowFunction::Aggregate { aggregate, frame } => {
                frame.map_slots(map);
                aggregate.renumber(map);
            }
            WindowFunction::RowNumber
            | WindowFunction::Rank
            | WindowFunction::DenseRank
            | WindowFunction::PercentRank
            | WindowFunction::CumeDist
            | WindowFunction::Ntile { .. } => {}
        }
        mapped
    }
}

impl WindowFrame {
    /// Returns the slots whose values tell where the frame ends.
    pub fn slots(&self) -> impl Iterator<Item = SlotId> {
        [self.start, self.end].into_iter().filter_map(|bound| match bound {
            FrameBound::Value(slot) => Some(slot),
            FrameBound::Unbounded | FrameBound::At(_) => None,
        })
    }

    /// Names other slots.
    fn map_slots(&mut self, map: &dyn Fn(SlotId) -> SlotId) {
        for bound in [&mut self.start, &mut self.end] {
            if let FrameBound::Value(slot) = bound {
                *slot = map(*slot);
            }
        }
    }
}

impl Aggregate {
    /// Makes an aggregate of all rows; of pairs, ordered or with a constant once that is set.
    pub fn new(function: AggregateFunction, argument: Option<SlotId>, kind: Type) -> Aggregate {
        let (second, parameter, order) = (None, Value::Null, Vec::new());
        let (distinct, filter, overflow) = (false, None, Overflow::Error);
        Aggregate { function, argument, second, parameter, order, distinct, filter, kind, overflow }
    }

    /// Calls `visit` with every slot that the aggregate reads: in the final phase all of its states.
    pub fn visit_slots(&self, phase: Phase, visit: &mut dyn FnMut(SlotId)) {
        if let Some(argument) = self.argument {
            let states = if phase == Phase::Final { self.function.state_names().len() } else { 1 };
            (argument..argument.saturating_add(states)).for_each(&mut *visit);
        }
        self.second.into_iter().chain(self.order.iter().map(|key| key.slot)).chain(self.filter).for_each(visit);
    }
}

impl AggregateFunction {
    /// Tells whether this counts rows or values.
    pub fn is_count(self) -> bool {
        matches!(self, AggregateFunction::CountRows | AggregateFunction::Count | AggregateFunction::CountApproximate)
    }

    /// Tells whether this is computed of pairs of values.
    pub fn is_of_pairs(self) -> bool {
        use AggregateFunction::*;
        matches!(
            self,
            CovarianceSample
                | CovariancePopulation
                | Correlation
                | RegressionSlope
                | RegressionIntercept
                | RegressionR2
                | RegressionAverageX
                | RegressionAverageY
                | RegressionSquaresX
                | RegressionSquaresY
                | RegressionProducts
        )
    }

    /// Tells whether all values of a group are needed at once.
    pub fn is_holistic(self) -> bool {
        use AggregateFunction::*;
        matches!(self, Median | Quantile | QuantileDiscrete | Nth | JoinText)
    }

    /// Tells whether rows may be taken in an order.
    pub fn is_ordered(self) -> bool {
        matches!(self, AggregateFunction::Nth | AggregateFunction::JoinText)
    }

    /// Tells whether a value that occurs twice changes nothing.
    pub fn ignores_repetition(self) -> bool {
        use AggregateFunction::*;
        matches!(self, Min | Max | BoolAnd | BoolOr | BitAnd | BitOr | CountApproximate)
    }

    /// Tells whether this is a variance or deviation.
    pub fn is_spread(self) -> bool {
        use AggregateFunction::*;
        matches!(self, VarianceSample | VariancePopulation | DeviationSample | DeviationPopulation)
    }

    /// Returns the types of the columns that a partial aggregation leaves for the final one.
    ///
    /// Counts: the count. Sum: the sum. Average: sum and count. Minimum, maximum, first, and, or, xor: the value. Variance
    /// and deviation: count, mean and summed squared differences from the mean. Of pairs: the count, both means, both sums of squared
    /// differences and that of products. Those that need all values at once, and sketches, have none: they are not computed in
    /// parts.
    pub fn state(self, argument: &Type, kind: &Type) -> Vec<Type> {
        use AggregateFunction::*;
        match self {
            CountRows | Count => vec![Type::Int64],
            Sum => vec![kind.clone()],
            Average => match (argument, kind) {
                (Type::Decimal { scale, .. }, Type::Decimal { .. }) => {
                    vec![Type::Decimal { precision: 38, scale: *scale }, Type::Int64]
                }
                _ => vec![Type::Float64, Type::Int64],
            },
            Min | Max | First => vec![argument.clone()],
            BoolAnd | BoolOr => vec![Type::Boolean],
            BitAnd | BitOr | BitXor => vec![kind.clone()],
            VarianceSample | VariancePopulation | DeviationSample | DeviationPopulation => {
                vec![Type::Int64, Type::Float64, Type::Float64]
            }
            Median | Quantile | QuantileDiscrete | Nth | JoinText | CountApproximate => Vec::new(),
            pairs => pairs
                .state_names()
                .iter()
                .map(|name| if *name == "count" { Type::Int64 } else { Type::Float64 })
                .collect(),
        }
    }

    /// Returns the names of the columns of [`AggregateFunction::state`]; one alone needs none.
    pub fn state_names(self) -> &'static [&'static str] {
        use AggregateFunction::*;
        match self {
            Average => &["sum", "count"],
            VarianceSample | VariancePopulation | DeviationSample | DeviationPopulation => {
                &["count", "mean", "squares"]
            }
            pairs if pairs.is_of_pairs() => &["count", "mean_y", "mean_x", "squares_y", "squares_x", "products"],
            _ => &[""],
        }
    }
}

/// Notes a slot, if it is in range.
fn mark(slots: &mut [bool], slot: SlotId) {
    if let Some(slot) = slots.get_mut(slot) {
        *slot = true;
    }
}
