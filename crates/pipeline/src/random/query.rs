//! Random queries: builds first, then a pipeline that probes them, then perhaps one that reads its result.

use std::sync::Arc;

use rand::RngCore;
use tandem_column::Type;

use super::{NamedTable, below, chance, expression, pick, table};
use crate::{
    Aggregate, AggregateFunction, Expr, FrameBound, FrameExclusion, FrameUnit, JoinKind, Local, Overflow, Phase,
    Pipeline, Probe, Query, Sink, Slot, SlotId, SortKey, Source, Statement, Step, UserFunction, Value, Window,
    WindowFrame, WindowFunction,
};

/// The functions of pairs.
const PAIRS: [AggregateFunction; 9] = [
    AggregateFunction::CovarianceSample,
    AggregateFunction::CovariancePopulation,
    AggregateFunction::Correlation,
    AggregateFunction::RegressionSlope,
    AggregateFunction::RegressionIntercept,
    AggregateFunction::RegressionR2,
    AggregateFunction::RegressionAverageX,
    AggregateFunction::RegressionAverageY,
    AggregateFunction::RegressionProducts,
];

/// What an aggregate is made for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Purpose {
    /// Groups of all rows.
    Groups,
    /// Groups that are computed in parts.
    Parts,
    /// Frames.
    Window,
}

/// Makes a query over tables.
pub fn query(rng: &mut dyn RngCore, tables: &[NamedTable]) -> Query {
    let mut maker = Maker { rng, tables, query: Query { functions: vec![], pipelines: vec![] } };
    if chance(maker.rng, 12) {
        maker.query.functions.push(Arc::new(doubling()));
    }
    for _ in 0..below(maker.rng, 3) {
        maker.build();
    }
    let (source, slots) = maker.source();
    let mut pipeline = maker.steps(source, slots, true);
    match below(maker.rng, 8) {
        0 => maker.partial_and_final(pipeline),
        1 => maker.union(pipeline),
        _ => {
            pipeline.sink = maker.sink(&pipeline);
            maker.query.pipelines.push(pipeline);
            // What reads rounded sums would not be determined.
            let rounded = maker.query.pipelines.last().is_some_and(has_rounded_sums);
            if !rounded && chance(maker.rng, 4) {
                maker.read_result();
            }
        }
    }
    maker.query
}

/// Tells whether a pipeline computes floats whose last digits depend on the order of rows.
fn has_rounded_sums(pipeline: &Pipeline) -> bool {
    match &pipeline.sink {
        Sink::Aggregate { aggregates, .. } => aggregates.iter().any(|aggregate| aggregate.kind.is_float()),
        Sink::Window { functions, .. } => functions.iter().any(|window| window.kind.is_float()),
        _ => false,
    }
}

/// Makes the user function `double(n)`, by repeated addition up to a bound.
fn doubling() -> UserFunction {
    let int = |value: i128| Expr::Literal(Value::Integer(value), Type::Int64);
    let add = |left: Expr, right: Expr| {
        Expr::Arithmetic(Box::new(crate::Arithmetic {
            operator: crate::ArithmeticOperator::Add,
            left,
            right,
            kind: Type::Int64,
            overflow: Overflow::Wrap,
            zero: crate::Failure::Null,
        }))
    };
    let local = |name: &str| Local { name: name.to_owned(), kind: Type::Int64 };
    UserFunction {
        name: "double".to_owned(),
        parameters: 1,
        locals: vec![local("n"), local("sum"), local("i")],
        returns: Type::Int64,
        body: vec![
            Statement::Assign(1, int(0)),
            Statement::For {
                variable: 2,
                from: int(0),
                to: int(2),
                body: vec![Statement::Assign(1, add(Expr::Slot(1), Expr::Slot(0)))],
            },
            Statement::Return(Expr::Slot(1)),
        ],
    }
}

/// A query being made.
struct Maker<'a> {
    rng: &'a mut dyn RngCore,
    tables: &'a [NamedTable],
    query: Query,
}

impl Maker<'_> {
    /// Makes a source and its slots: mostly a table.
    fn source(&mut self) -> (Source, Vec<Slot>) {
        if self.tables.is_empty() || chance(self.rng, 10) {
            let kinds: Vec<Type> = (0..below(self.rng, 4)).map(|_| table::kind(self.rng)).collect();
            let name =
                |(index, kind): (usize, &Type)| Slot { name: format!("v{index}"), kind: kind.clone(), nullable: true };
            let slots: Vec<Slot> = kinds.iter().enumerate().map(name).collect();
            let value = |maker: &mut Self, kind: &Type| match chance(maker.rng, 6) {
                true => Value::Null,
                false => table::literal(maker.rng, kind),
            };
            let rows = (0..below(self.rng, 8)).map(|_| kinds.iter().map(|kind| value(self, kind)).collect()).collect();
            return (Source::Values { rows }, slots);
        }
        let (name, chosen) = pick(self.rng, self.tables);
        let columns: Vec<usize> =
            (0..chosen.schema.len()).filter(|column| *column < 2 || !chance(self.rng, 4)).collect();
        let slot = |column: &usize| {
            let field = &chosen.schema[*column];
            Slot { name: field.name.clone(), kind: field.kind.clone(), nullable: field.nullable }
        };
        let slots = columns.iter().map(slot).collect();
        (Source::Table { table: name.clone(), columns }, slots)
    }

    /// Adds a pipeline that ends in a build.
    fn build(&mut self) {
        let (source, slots) = self.source();
        let mut pipeline = self.steps(source, slots, false);
        let keys = (0..1 + below(self.rng, 2)).map(|number| match below(self.rng, 4) {
            0 if number == 0 => expression(self.rng, &Type::Int64, &pipeline.slots, 1),
            _ if pipeline.slots.is_empty() => Expr::Literal(Value::Integer(1), Type::Int64),
            _ => Expr::Slot(below(self.rng, pipeline.slots.len().min(4))),
        });
        let keys = keys.collect();
        pipeline.sink = Sink::Build { keys, payload: self.some_slots(&pipeline.slots) };
        self.query.pipelines.push(pipeline);
    }

    /// Chooses some slots, perhaps none, each once.
    fn some_slots(&mut self, slots: &[Slot]) -> Vec<SlotId> {
        (0..slots.len()).filter(|_| !chance(self.rng, 3)).collect()
    }

    /// Makes a pipeline with some steps and a sink to be replaced.
    fn steps(&mut self, source: Source, slots: Vec<Slot>, probes: bool) -> Pipeline {
        let sink = Sink::Materialize { skip: 0, fetch: None, output: vec![] };
        let mut pipeline = Pipeline { source, steps: vec![], sink, slots };
        for _ in 0..below(self.rng, 5) {
            let slots = &pipeline.scope(pipeline.steps.len());
            let step = match below(self.rng, 3) {
                0 => Step::Filter(expression(self.rng, &Type::Boolean, slots, 3)),
                1 if probes && !self.query.pipelines.is_empty() => {
                    let (probe, added) = self.probe(slots, &pipeline.steps);
                    pipeline.slots.extend(added);
                    Step::Probe(probe)
                }
                _ => {
                    let exprs: Vec<Expr> = (0..1 + below(self.rng, 2)).map(|_| self.value(slots)).collect();
                    let slot = |(index, expr): (usize, &Expr)| Slot {
                        name: format!("let{}", slots.len() + index),
                        kind: expr.kind(slots),
                        nullable: expr.nullable(slots),
                    };
                    let added: Vec<Slot> = exprs.iter().enumerate().map(slot).collect();
                    pipeline.slots.extend(added);
                    Step::Let(exprs)
                }
            };
            pipeline.steps.push(step);
        }
        pipeline
    }

    /// Makes an expression of any type, sometimes a call of a user function.
    fn value(&mut self, slots: &[Slot]) -> Expr {
        if !self.query.functions.is_empty() && chance(self.rng, 2) {
            let arguments = vec![expression(self.rng, &Type::Int64, slots, 2)];
            return Expr::Call { function: 0, arguments, kind: Type::Int64 };
        }
        let kind = table::kind(self.rng);
        expression(self.rng, &kind, slots, 3)
    }

    /// Makes a probe of one of the builds, and the slots it adds.
    fn probe(&mut self, slots: &[Slot], before: &[Step]) -> (Probe, Vec<Slot>) {
        let build = below(self.rng, self.query.pipelines.len());
        let other = &self.query.pipelines[build];
        let Sink::Build { keys, .. } = &other.sink else { unreachable!("only builds come before probes") };
        let kinds: Vec<Type> = keys.iter().map(|key| key.kind(&other.slots)).collect();
        let payload = other.output();
        let keys = kinds.iter().map(|kind| expression(self.rng, kind, slots, 1)).collect();
        // Rows multiply in a join of pairs, so a pipeline has at most one of those.
        let pairs =
            |kind: JoinKind| matches!(kind, JoinKind::Inner | JoinKind::Left | JoinKind::Right | JoinKind::Full);
        let multiplied = before.iter().any(|step| matches!(step, Step::Probe(probe) if pairs(probe.kind)));
        let joins: Vec<JoinKind> = JoinKind::all().filter(|kind| !multiplied || !pairs(*kind)).collect();
        let kind = *pick(self.rng, &joins);
        let residual = chance(self.rng, 4).then(|| {
            let scope = self.query.residual_scope(slots, slots.len(), build);
            expression(self.rng, &Type::Boolean, &scope, 2)
        });
        let adds = match kind {
            JoinKind::Mark | JoinKind::Semi | JoinKind::Anti => vec![],
            _ => self.some_slots(&payload),
        };
        let null_aware = matches!(kind, JoinKind::Anti | JoinKind::Mark) && chance(self.rng, 2);
        let null_equals_null = !null_aware && chance(self.rng, 4);
        let mut added: Vec<Slot> = adds.iter().map(|add: &usize| payload[*add].clone()).collect();
        if matches!(kind, JoinKind::Left | JoinKind::Full) {
            added.iter_mut().for_each(|slot| slot.nullable = true);
        }
        if kind == JoinKind::Mark {
            added.push(Slot { name: "mark".to_owned(), kind: Type::Boolean, nullable: null_aware });
        }
        (Probe { build, kind, keys, residual, adds, null_equals_null, null_aware }, added)
    }

    /// Makes a sink whose rows are determined.
    fn sink(&mut self, pipeline: &Pipeline) -> Sink {
        let slots = &pipeline.slots;
        let output = self.some_slots(slots);
        match below(self.rng, 8) {
            0 => Sink::Partition {
                keys: vec![expression(self.rng, &Type::Int64, slots, 1)],
                parts: 1 + below(self.rng, 5),
                output,
            },
            1 => self.window(slots, output),
            2 => {
                // With a limit only the keys come out, so that ties do not matter.
                let fetch = chance(self.rng, 2).then(|| below(self.rng, 20));
                let keys = self.sort_keys(&output);
                let skip = if chance(self.rng, 3) { below(self.rng, 5) } else { 0 };
                Sink::Sort { keys, skip, fetch, output }
            }
            3 => Sink::Materialize { skip: 0, fetch: None, output },
            _ => Sink::Aggregate {
                keys: if chance(self.rng, 3) { vec![] } else { self.few_slots(slots) },
                aggregates: (0..below(self.rng, 4)).map(|_| self.aggregate(slots, Purpose::Groups)).collect(),
                phase: Phase::Single,
            },
        }
    }

    /// Chooses up to three slots.
    fn few_slots(&mut self, slots: &[Slot]) -> Vec<SlotId> {
        let mut chosen = self.some_slots(slots);
        chosen.truncate(below(self.rng, 4));
        chosen
    }

    /// Makes sort keys of all these slots.
    fn sort_keys(&mut self, slots: &[SlotId]) -> Vec<SortKey> {
        let key =
            |slot: &SlotId| SortKey { slot: *slot, descending: chance(self.rng, 2), nulls_first: chance(self.rng, 2) };
        slots.iter().map(key).collect()
    }

    /// Makes a window: ordered by all slots, so that only equal rows are tied; or by a few, for functions that give peers the same.
    fn window(&mut self, slots: &[Slot], output: Vec<SlotId>) -> Sink {
        let few = chance(self.rng, 2);
        let all: Vec<SlotId> = if few { self.few_slots(slots) } else { (0..slots.len()).collect() };
        let order = self.sort_keys(&all);
        let measured = order.len() == 1 && slots[order[0].slot].kind.repr() == tandem_column::Repr::Int;
        let alike: Vec<SlotId> = match &order[..] {
            [key] => (0..slots.len()).filter(|slot| slots[*slot].kind == slots[key.slot].kind).collect(),
            _ => Vec::new(),
        };
        let functions = (0..1 + below(self.rng, 2)).map(|_| {
            let unit = match below(self.rng, if few { 2 } else { 3 }) {
                0 => FrameUnit::Range,
                1 => FrameUnit::Groups,
                _ => FrameUnit::Rows,
            };
            let mut bound = || match below(self.rng, 4) {
                0 | 1 => FrameBound::Unbounded,
                2 if unit == FrameUnit::Range && !alike.is_empty() => FrameBound::Value(*pick(self.rng, &alike)),
                _ if unit != FrameUnit::Range || measured => FrameBound::At(below(self.rng, 7) as i64 - 3),
                _ => FrameBound::At(0),
            };
            let (start, end) = (bound(), bound());
            let exclusion = match below(self.rng, 6) {
                0 => FrameExclusion::Group,
                1 => FrameExclusion::CurrentRow,
                2 => FrameExclusion::Ties,
                _ => FrameExclusion::NoOthers,
            };
            let frame = WindowFrame { unit, start, end, exclusion };
            let function = match below(self.rng, 9) {
                0 if !few => WindowFunction::RowNumber,
                1 => WindowFunction::Rank,
                2 => WindowFunction::DenseRank,
                3 => WindowFunction::PercentRank,
                4 => WindowFunction::CumeDist,
                5 if !few => WindowFunction::Ntile { buckets: 1 + below(self.rng, 5) as u64 },
                6 if !few && !slots.is_empty() => {
                    let slot = below(self.rng, slots.len());
                    let default = chance(self.rng, 2).then_some(slot);
                    let ignore_nulls = chance(self.rng, 2);
                    WindowFunction::Lag { slot, offset: below(self.rng, 5) as i64 - 2, default, ignore_nulls }
                }
                7 if !few && !slots.is_empty() => {
                    let place = [1, 2, -1, -2][below(self.rng, 4)];
                    let ignore_nulls = chance(self.rng, 2);
                    WindowFunction::Nth { slot: below(self.rng, slots.len()), place, frame, ignore_nulls }
                }
                _ => WindowFunction::Aggregate { aggregate: self.aggregate(slots, Purpose::Window), frame },
            };
            let kind = match &function {
                WindowFunction::Lag { slot, .. } | WindowFunction::Nth { slot, .. } => slots[*slot].kind.clone(),
                WindowFunction::Aggregate { aggregate, .. } => aggregate.kind.clone(),
                WindowFunction::PercentRank | WindowFunction::CumeDist => Type::Float64,
                _ => Type::Int64,
            };
            Window { function, kind }
        });
        let functions: Vec<Window> = functions.collect();
        let ranks = matches!(functions[0].function, WindowFunction::RowNumber | WindowFunction::Rank);
        let fetch = (ranks && chance(self.rng, 2)).then(|| below(self.rng, 4));
        Sink::Window { partition: self.few_slots(slots), order, functions, fetch, output }
    }

    /// Makes an aggregate of one of the slots.
    fn aggregate(&mut self, slots: &[Slot], purpose: Purpose) -> Aggregate {
        use AggregateFunction::*;
        let whole = purpose != Purpose::Parts;
        let count = |filter| Aggregate { filter, ..Aggregate::new(CountRows, None, Type::Int64) };
        let conditions: Vec<SlotId> = (0..slots.len()).filter(|slot| slots[*slot].kind == Type::Boolean).collect();
        let filter = (!conditions.is_empty() && chance(self.rng, 4)).then(|| *pick(self.rng, &conditions));
        if slots.is_empty() || chance(self.rng, 6) {
            return count(filter);
        }
        let argument = below(self.rng, slots.len());
        let given = slots[argument].kind.clone();
        let mut functions = vec![Count, Min, Max];
        if given.is_numeric() {
            functions.extend([Sum, Sum, Average]);
            functions.extend([VarianceSample, VariancePopulation, DeviationSample, DeviationPopulation]);
        }
        if given == Type::Boolean {
            functions.extend([BoolAnd, BoolOr]);
        }
        if given.is_integer() {
            functions.extend([BitAnd, BitOr, BitXor]);
        }
        if whole {
            functions.extend([CountApproximate, QuantileDiscrete]);
            functions.extend((given.is_float() || matches!(given, Type::Decimal { .. })).then_some(Median));
            functions.extend(given.is_float().then_some(Quantile));
            functions.extend((given == Type::String).then_some(JoinText));
        }
        // What is computed of floats, and what cancels out, depends on the order of rows beyond the last digits.
        let exact = |slot: &Slot| slot.kind.is_numeric() && !slot.kind.is_float();
        let others: Vec<SlotId> = (0..slots.len()).filter(|slot| exact(&slots[*slot])).collect();
        if exact(&slots[argument]) {
            functions.extend([
                *pick(self.rng, &PAIRS),
                *pick(self.rng, &PAIRS),
                RegressionSquaresX,
                RegressionSquaresY,
            ]);
        }
        functions.extend((purpose == Purpose::Groups).then_some(Nth));
        let function = *pick(self.rng, &functions);
        let kind = match (function, &given) {
            (Count | CountApproximate, _) => Type::Int64,
            (Min | Max | BoolAnd | BoolOr | BitAnd | BitOr | BitXor, _) => given.clone(),
            (Median | Quantile | QuantileDiscrete | Nth | JoinText, _) => given.clone(),
            (Sum, Type::Decimal { scale, .. }) => Type::Decimal { precision: 38, scale: *scale },
            (Average, Type::Decimal { scale, .. }) => Type::Decimal { precision: 38, scale: (scale + 4).min(38) },
            (Sum, given) if given.is_integer() => {
                if matches!(given, Type::UInt8 | Type::UInt16 | Type::UInt32 | Type::UInt64) {
                    Type::UInt64
                } else {
                    Type::Int64
                }
            }
            _ => Type::Float64,
        };
        let wraps = kind.is_integer() && (!whole || chance(self.rng, 2));
        let overflow = if wraps { Overflow::Wrap } else { Overflow::Null };
        // Sums of distinct floats would depend on which of two nearly equal ones is met.
        let distinct = whole && !(given.is_float() && given.is_numeric() && function == Sum) && chance(self.rng, 4);
        let distinct = distinct && !function.is_of_pairs();
        let squares = matches!(function, RegressionSquaresX | RegressionSquaresY) && purpose == Purpose::Groups;
        let second = function.is_of_pairs().then(|| if squares { *pick(self.rng, &others) } else { argument });
        // Ordered by the value last, so that ties are of equal values.
        let by: Vec<SlotId> = match function {
            Nth | JoinText if distinct => vec![argument],
            Nth | JoinText => self.few_slots(slots).into_iter().chain([argument]).collect(),
            _ => Vec::new(),
        };
        let order = self.sort_keys(&by);
        let parameter = match function {
            Quantile | QuantileDiscrete => Value::Float([0.0, 0.25, 0.5, 0.9, 1.0][below(self.rng, 5)]),
            Nth => Value::Integer([1, 2, -1, -3][below(self.rng, 4)]),
            JoinText => Value::string(["", ", ", "é"][below(self.rng, 3)]),
            _ => Value::Null,
        };
        Aggregate { function, argument: Some(argument), second, parameter, order, distinct, filter, kind, overflow }
    }

    /// Ends the pipeline in a partial aggregation, and adds one that finishes it.
    fn partial_and_final(&mut self, mut pipeline: Pipeline) {
        let keys = self.few_slots(&pipeline.slots);
        let aggregates: Vec<Aggregate> =
            (0..1 + below(self.rng, 3)).map(|_| self.aggregate(&pipeline.slots, Purpose::Parts)).collect();
        pipeline.sink = Sink::Aggregate { keys: keys.clone(), aggregates: aggregates.clone(), phase: Phase::Partial };
        let slots = pipeline.output();
        self.query.pipelines.push(pipeline);
        let mut first = keys.len();
        let finish = aggregates.into_iter().map(|aggregate| {
            let argument = Some(first);
            first += aggregate.function.state_names().len();
            Aggregate { argument, second: None, distinct: false, filter: None, ..aggregate }
        });
        let sink =
            Sink::Aggregate { keys: (0..keys.len()).collect(), aggregates: finish.collect(), phase: Phase::Final };
        let source = Source::Result { pipelines: vec![self.query.pipelines.len() - 1] };
        self.query.pipelines.push(Pipeline { source, steps: vec![], sink, slots });
    }

    /// Materialises the pipeline, and adds one that reads its rows twice.
    fn union(&mut self, mut pipeline: Pipeline) {
        let output = self.some_slots(&pipeline.slots);
        pipeline.sink = Sink::Materialize { skip: 0, fetch: None, output };
        self.query.pipelines.push(pipeline);
        let last = self.query.pipelines.len() - 1;
        self.read(vec![last, last]);
    }

    /// Adds a pipeline that reads the last one's rows.
    fn read_result(&mut self) {
        let last = self.query.pipelines.len() - 1;
        self.read(vec![last]);
    }

    /// Adds a pipeline over the rows of others.
    fn read(&mut self, pipelines: Vec<usize>) {
        let slots = self.query.pipelines[pipelines[0]].output();
        let mut pipeline = self.steps(Source::Result { pipelines }, slots, false);
        pipeline.sink = self.sink(&pipeline);
        self.query.pipelines.push(pipeline);
    }
}
