//! The pipeline language: everything Tandem executes is a [`Query`] in it.
//!
//! A query is a list of pipelines in topological order; each takes rows from a source through fused steps into a sink,
//! and the last sink holds the result. Within a pipeline every value of a row has a *slot*: the source's columns first,
//! then what each step adds, in order. Expressions name slots by index and see only earlier ones, so liveness (column
//! pruning, late materialisation, transfers) is read off the IR rather than decided by each executor.
//!
//! This file is the language reference. Meaning is defined by [`crate::interpret`], well-formedness by [`crate::verify`].

use std::sync::Arc;

use tandem_column::Type;

use crate::{Expr, UserFunction, Value};

/// Index of a pipeline in [`Query::pipelines`].
pub type PipelineId = usize;
/// Index of a slot in [`Pipeline::slots`].
pub type SlotId = usize;

/// A query: pipelines in topological order; the last one's sink is the result.
#[derive(Clone, Debug, PartialEq)]
pub struct Query {
    /// User functions that expressions may call, by index.
    pub functions: Vec<Arc<UserFunction>>,
    /// The pipelines.
    pub pipelines: Vec<Pipeline>,
}

/// `source → step* → sink`, with every slot that exists for a row.
#[derive(Clone, Debug, PartialEq)]
pub struct Pipeline {
    /// Where rows come from.
    pub source: Source,
    /// What happens to each row, in order.
    pub steps: Vec<Step>,
    /// Where rows go.
    pub sink: Sink,
    /// Every slot: the source's columns first, then those that each `Let` and `Probe` adds.
    pub slots: Vec<Slot>,
}

/// A value that exists for a row.
#[derive(Clone, Debug, PartialEq)]
pub struct Slot {
    /// A name for people; need not be unique.
    pub name: String,
    /// Its type.
    pub kind: Type,
    /// Whether it may be null where it is defined. A probe that emits build rows without a pair makes every earlier slot
    /// nullable: see [`Pipeline::scope`].
    pub nullable: bool,
}

/// Where a pipeline's rows come from. A source defines one slot per column it lists.
#[rustfmt::skip]
#[allow(missing_docs)] // documented beside each variant
#[derive(Clone, Debug, PartialEq)]
pub enum Source {
    Table { table: String, columns: Vec<usize> }, // columns of a table that the execution's catalogue resolves by name
    Result { pipelines: Vec<PipelineId> },        // rows of earlier pipelines, one after the other (UNION ALL)
    Block { name: String },                       // Arrow rows handed in with the query, by name
    Values { rows: Vec<Vec<Value>> },             // literal rows; may have no columns (SELECT 1)
}

/// One fused operation on a row.
#[rustfmt::skip]
#[allow(missing_docs)] // documented beside each variant
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    Filter(Expr),   // keeps the row if true; false and null drop it
    Let(Vec<Expr>), // adds a slot for each expression; all see only slots before this step
    Probe(Probe),   // looks the row up in an earlier pipeline's build
}

/// A join against an earlier pipeline that ends in [`Sink::Build`].
#[derive(Clone, Debug, PartialEq)]
pub struct Probe {
    /// The pipeline that builds the other side.
    pub build: PipelineId,
    /// Which rows come out.
    pub kind: JoinKind,
    /// One expression per key of the build, of the same type.
    pub keys: Vec<Expr>,
    /// A further condition on a pair: sees the row's slots and, behind them, all payload slots of the build.
    pub residual: Option<Expr>,
    /// Which payload slots of the build become slots here, in order; `Mark` adds one boolean slot instead.
    pub adds: Vec<usize>,
    /// Null keys match null keys (IS NOT DISTINCT FROM) instead of nothing.
    pub null_equals_null: bool,
    /// `Anti` and `Mark` as in NOT IN and IN: any null key on the build side, or a null key on this side against a
    /// non-empty build, makes the answer unknown (`Anti` drops the row, `Mark` gives null). With a residual, the build side is what
    /// passes it.
    pub null_aware: bool,
}

/// Which rows a probe emits. "Row" is this pipeline's, "build row" the other side's.
#[allow(missing_docs)] // documented beside each variant
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum JoinKind {
    Inner,     // each matching pair
    Left,      // each pair, and rows without match with null payload
    Right,     // each pair, and, after the last row, build rows without match with null row slots
    Full,      // Left and Right together
    Semi,      // rows with a match, once
    Anti,      // rows without a match
    Mark,      // every row, with a boolean slot: has a match
    RightSemi, // after the last row: build rows with a match, once; row slots null
    RightAnti, // after the last row: build rows without a match; row slots null
}

/// Where a pipeline's rows end.
#[rustfmt::skip]
#[allow(missing_docs)] // documented beside each variant
#[derive(Clone, Debug, PartialEq)]
pub enum Sink {
    Build { keys: Vec<Expr>, payload: Vec<SlotId> }, // the side a later probe looks rows up in
    Aggregate { keys: Vec<SlotId>, aggregates: Vec<Aggregate>, phase: Phase }, // keys' columns, then aggregates'
    Sort { keys: Vec<SortKey>, skip: usize, fetch: Option<usize>, output: Vec<SlotId> }, // with fetch: top-k
    Window { partition: Vec<SlotId>, order: Vec<SortKey>, functions: Vec<Window>, fetch: Option<usize>, output: Vec<SlotId> }, // output, then functions; with fetch: rows whose first function, a row number or a rank, is at most that
    Partition { keys: Vec<Expr>, parts: usize, output: Vec<SlotId> }, // rows by hash of keys, for an exchange: see `crate::partition`
    Materialize { skip: usize, fetch: Option<usize>, output: Vec<SlotId> }, // rows as they come
}

/// Which half of an aggregation a sink computes.
#[allow(missing_docs)] // documented beside each variant
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Phase {
    Single,  // rows in, final values out
    Partial, // rows in, states out: see [`AggregateFunction::state`]
    Final,   // states in, final values out; each aggregate's `argument` is its first state slot
}

/// One aggregate of a sink. A null argument never contributes (except to `CountRows`, `First` and `Nth`).
#[derive(Clone, Debug, PartialEq)]
pub struct Aggregate {
    /// What is computed.
    pub function: AggregateFunction,
    /// The slot it is computed of; `None` only for `CountRows`.
    pub argument: Option<SlotId>,
    /// The other slot of functions of pairs; where either is null, the row does not contribute.
    pub second: Option<SlotId>,
    /// The constant that a function takes; null for those that take none.
    pub parameter: Value,
    /// The order in which `Nth` and `JoinText` take rows; equal ones as they come in. Of distinct values, by the argument alone.
    pub order: Vec<SortKey>,
    /// Only equal-free values count.
    pub distinct: bool,
    /// Only rows where this boolean slot is true contribute.
    pub filter: Option<SlotId>,
    /// The result's type.
    pub kind: Type,
    /// What an integer or decimal sum that leaves `kind` does.
    pub overflow: Overflow,
}

/// The aggregate functions. Over no contributing row all but the counts give null.
#[rustfmt::skip]
#[allow(missing_docs)] // documented beside each variant
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AggregateFunction {
    CountRows,          // count(*)
    Count,              // count(x)
    Sum,                // exact for integers and decimals
    Average,            // of decimals: exact sum, truncated toward zero at `kind`'s scale, as DataFusion does; else in float64
    Min,                // by the order of comparison; NaN is largest
    Max,
    VarianceSample,     // null for fewer than two rows
    VariancePopulation,
    DeviationSample,    // square root of the variance
    DeviationPopulation,
    BoolAnd,
    BoolOr,
    First,              // any one non-deterministic value, nulls included
    CovarianceSample,   // of pairs, `argument` y and `second` x, as are all up to `RegressionProducts`; null for fewer than two
    CovariancePopulation,
    Correlation,        // null for fewer than two pairs, where either side is constant or one mean is NaN; NaN where both are
    RegressionSlope,    // of the line through the pairs, y by x; null for fewer than two, or where x is constant
    RegressionIntercept, // as the slope
    RegressionR2,       // the square of the correlation; null for fewer than two, or where either side is constant
    RegressionAverageX,
    RegressionAverageY,
    RegressionSquaresX, // summed squared differences of x from its mean
    RegressionSquaresY,
    RegressionProducts, // summed products of both differences
    BitAnd,             // of integers, in two's complement
    BitOr,
    BitXor,
    Median,             // the middle value; of two, half their sum: decimals toward zero, all else as floats of their type
    Quantile,           // at `parameter`, 0 to 1, of the values' order, between two linearly, in steps of 10⁻⁶; of floats
    QuantileDiscrete,   // the first of the values in order that at least the share `parameter`, 0 to 1, of them does not exceed
    Nth,                // value at the place `parameter` in `order`, from 1, or −1 from its end; nulls included; null if there is none
    JoinText,           // texts one behind the other in `order`, with `parameter` between
    CountApproximate,   // of distinct values, by a sketch: see `crate::scalar::sketch`
}

/// One ordering key.
#[derive(Clone, Debug, PartialEq)]
pub struct SortKey {
    /// The slot ordered by; floats in total order (−NaN < −∞ < … < −0 < 0 < … < ∞ < NaN), text by bytes.
    pub slot: SlotId,
    /// Largest first.
    pub descending: bool,
    /// Nulls before all values.
    pub nulls_first: bool,
}

/// One window function.
#[derive(Clone, Debug, PartialEq)]
pub struct Window {
    /// What is computed for each row of its partition.
    pub function: WindowFunction,
    /// The result's type.
    pub kind: Type,
}

/// The window functions.
#[rustfmt::skip]
#[allow(missing_docs)] // documented beside each variant
#[derive(Clone, Debug, PartialEq)]
pub enum WindowFunction {
    RowNumber,
    Rank,                                             // 1 + the rows before the first peer
    DenseRank,                                        // 1 + the groups of peers before
    PercentRank,                                      // (rank − 1) / (rows − 1), 0 for a single row
    CumeDist,                                         // rows up to the last peer / rows
    Ntile { buckets: u64 },                           // the number of its bucket, of as many of equal size; the first have one row more
    Lag { slot: SlotId, offset: i64, default: Option<SlotId>, ignore_nulls: bool }, // negative looks ahead; beyond the partition: `default` of this row, or null; ignoring nulls, only rows of a value count
    Nth { slot: SlotId, place: i64, frame: WindowFrame, ignore_nulls: bool }, // value of a row of the frame: 1 is the first, −1 the last; null if there is none; ignoring nulls, of the rows of a value
    Aggregate { aggregate: Aggregate, frame: WindowFrame }, // over the frame around the row
}

/// Rows around the current one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowFrame {
    /// What the ends count.
    pub unit: FrameUnit,
    /// First row of the frame.
    pub start: FrameBound,
    /// Last row of the frame.
    pub end: FrameBound,
    /// Which of the rows between are left out.
    pub exclusion: FrameExclusion,
}

/// One end of a frame.
#[rustfmt::skip]
#[allow(missing_docs)] // documented beside each variant
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameBound {
    Unbounded,     // the partition's first or last row
    At(i64),       // so many units behind the current row; negative is before, 0 the row itself: of `Range` and `Groups`, with its peers
    Value(SlotId), // of `Range`: rows that are not before (of an end: not behind) this row's value of a slot, by the order's only key
}

/// Rows of a frame that are left out.
#[rustfmt::skip]
#[allow(missing_docs)] // documented beside each variant
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FrameExclusion {
    NoOthers,   // none
    CurrentRow, // the row itself
    Group,      // the row and its peers
    Ties,       // its peers, but not the row itself
}

/// What the ends of a frame count. Peers are rows of one partition that are equal in the order's keys.
#[allow(missing_docs)] // documented beside each variant
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FrameUnit {
    Rows,   // rows
    Range, // how far the only key, an integer or a date as it is held, is from that of this row, in the direction of the order; of null only null is in reach, at any distance
    Groups, // groups of peers
}

/// What an operation does when its result does not fit its type.
#[allow(missing_docs)] // documented beside each variant
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Overflow {
    Wrap,  // modulo 2^bits; for types other than integers as Error
    Error, // the query fails
    Null,  // the value is null
}
