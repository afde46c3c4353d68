//! A pipeline with its physical choices made: what one fused loop, or one generated kernel, computes.
//!
//! A planner reads statistics and turns predicates into ranges and sets of codes, joins to dense builds into lookups by
//! value, and group keys into places of an array. The result is plain data: an executor runs it, a generator prints it.

use crate::{Aggregate, Expr, JoinKind, Slot, SlotId};

/// A fused pipeline.
#[derive(Clone, Debug, PartialEq)]
pub struct Fused {
    /// The pipeline's slots, nullable only where statistics allow a null.
    pub slots: Vec<Slot>,
    /// The smallest and largest integer of each slot, where statistics know them.
    pub ranges: Vec<Option<(i64, i64)>>,
    /// Where each slot's value comes from.
    pub origins: Vec<Origin>,
    /// Builds that rows lead into.
    pub lookups: Vec<Lookup>,
    /// What happens to each row, in order.
    pub steps: Vec<FusedStep>,
    /// Where rows go.
    pub sink: FusedSink,
}

/// Where a slot's value comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A column of the source.
    Column(usize),
    /// A payload column of a lookup, at the entry that the row leads to.
    Payload {
        /// Index in [`Fused::lookups`].
        lookup: usize,
        /// Which payload column of its build.
        payload: usize,
    },
    /// The step that defines it.
    Computed,
}

/// A build that rows lead into.
#[derive(Clone, Debug, PartialEq)]
pub struct Lookup {
    /// How rows lead to its entries.
    pub way: Way,
    /// Its payload columns.
    pub payload: Vec<Slot>,
    /// Every key has at most one entry.
    pub unique: bool,
    /// It has no row.
    pub empty: bool,
    /// Some key is null.
    pub null_key: bool,
}

/// How rows lead to the entries of a build.
#[derive(Clone, Debug, PartialEq)]
pub enum Way {
    /// Entry = value of a source column − `min`. Earlier steps keep only rows that have one.
    Column {
        /// The source column.
        column: usize,
        /// The value of entry 0.
        min: i64,
    },
    /// Every entry, of so many, matches every row.
    All(usize),
    /// Entry = key − `min`, for keys of a set.
    Unique {
        /// The key of entry 0.
        min: i64,
        /// How many keys from there on may be in the set.
        domain: u64,
    },
    /// Entries between two places of an array, at key − `min`.
    Dense {
        /// The key of place 0.
        min: i64,
        /// How many keys from there on have a place.
        domain: u64,
    },
    /// Entries of equal packed key, neighbours in a bucket of an array of buckets.
    Hash {
        /// How keys are packed into 64 bits.
        packing: Vec<Packed>,
        /// How many bits of the hash choose the bucket.
        bits: u32,
    },
    /// Entries of equal packed key, neighbours among all in the order of their keys: rows in that order merge with them.
    Sorted {
        /// How keys are packed into 64 bits.
        packing: Vec<Packed>,
        /// How many entries have a key: the first of them.
        keyed: usize,
    },
}

/// Where one key lies in a packed one: 0 is null, other values count from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packed {
    /// The value packed as 1.
    pub min: i64,
    /// How many values from there on can be packed.
    pub span: u64,
    /// How many bits lie below.
    pub shift: u32,
}

/// A step that looks rows up.
#[derive(Clone, Debug, PartialEq)]
pub struct FusedProbe {
    /// Index in [`Fused::lookups`].
    pub lookup: usize,
    /// Which rows come out.
    pub kind: JoinKind,
    /// One expression for each key of the build.
    pub keys: Vec<Expr>,
    /// A further condition on a pair: sees the row's slots and, from `first` on, all payload.
    pub residual: Option<Expr>,
    /// The first slot that the step adds; of `Mark`, the only one.
    pub first: SlotId,
    /// Null keys match null keys.
    pub null_equals_null: bool,
    /// See [`crate::Probe::null_aware`].
    pub null_aware: bool,
}

/// One step of a fused pipeline.
#[derive(Clone, Debug, PartialEq)]
pub enum FusedStep {
    /// Keeps rows whose value (or code) of a source column is not null and within bounds.
    Between {
        /// The source column.
        column: usize,
        /// Smallest value kept.
        low: i64,
        /// Largest value kept.
        high: i64,
    },
    /// Keeps rows whose value (or code) of a source column is not null and in a set.
    Member {
        /// The source column.
        column: usize,
        /// Which set, by the planner's count.
        set: usize,
    },
    /// Keeps rows for which an expression is true.
    Filter(Expr),
    /// Looks the row up.
    Probe(FusedProbe),
    /// Defines slots from `first` on.
    Let {
        /// The first slot defined.
        first: SlotId,
        /// One expression for each.
        exprs: Vec<Expr>,
    },
}

/// Where the rows of a fused pipeline end.
#[derive(Clone, Debug, PartialEq)]
pub enum FusedSink {
    /// An array of groups.
    Groups {
        /// The keys; none for one group.
        keys: Vec<GroupKey>,
        /// How many places the array has.
        groups: usize,
        /// What is computed for each.
        aggregates: Vec<FusedAggregate>,
    },
    /// A hash table of groups, whose keys are numbers of 63 bits.
    Hashed {
        /// What a number is made of.
        keys: Vec<HashKey>,
        /// What is computed for each.
        aggregates: Vec<FusedAggregate>,
    },
    /// The rows that are left, with these values each.
    Rows {
        /// One column for each.
        values: Vec<Expr>,
        /// The order that they are wanted in; none for any order.
        order: Vec<OrderKey>,
    },
}

/// One key of an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrderKey {
    /// Which of the values.
    pub value: usize,
    /// Largest first.
    pub descending: bool,
    /// Nulls before all values.
    pub nulls_first: bool,
    /// Of text without a dictionary: the bytes of the longest one.
    pub longest: Option<usize>,
}

/// One key of an array of groups: its place is value − `min`, the last place is null where `nullable`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupKey {
    /// The slot.
    pub slot: SlotId,
    /// The value of place 0.
    pub min: i64,
    /// How many places there are.
    pub size: u64,
    /// Whether the last place is null.
    pub nullable: bool,
}

/// One part of the number that stands for a group's keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HashKey {
    /// What it says.
    pub of: KeyOf,
    /// How many bits lie below.
    pub shift: u32,
}

/// What tells one group from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyOf {
    /// The place of a key's value.
    Place(GroupKey),
    /// The entry of a lookup, plus 1; 0 for none. It stands for all keys that are payload of it: groups may then be finer than
    /// asked for, until their keys' values are known.
    Entry(usize),
    /// The number of the source row among all of the table; how many there are, for none.
    Row,
}

/// One aggregate of groups.
#[derive(Clone, Debug, PartialEq)]
pub struct FusedAggregate {
    /// What is computed.
    pub aggregate: Aggregate,
    /// The sum of all rows fits 64 bits.
    pub narrow: bool,
}

/// Where the count of a group's rows lies.
pub const ROWS_COUNT: usize = 0;
/// The most values that sums in parts of 32 bits hold: a part is a 64-bit number with a sign.
pub const MOST_HALVES: i64 = 1 << 31;

/// Where a group's table of 64-bit numbers holds one aggregate; the count of its rows is at [`ROWS_COUNT`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accumulator {
    /// The count of contributing rows, at this place.
    Count(usize),
    /// A sum, and the count of contributing rows (0: that of all rows).
    Sum {
        /// Where the sum is.
        sum: usize,
        /// Where the count is.
        count: usize,
    },
    /// A sum of low halves, one of high halves, and the count.
    WideSum {
        /// Where the sum of the lower 32 bits is.
        low: usize,
        /// Where the sum of the higher 32 bits is.
        high: usize,
        /// Where the count is.
        count: usize,
    },
    /// The sums of the four 32-bit limbs of 128-bit values, lowest first, and the count.
    LimbSum {
        /// Where the sum of the lowest limbs is; the others follow.
        first: usize,
        /// Where the count is.
        count: usize,
    },
    /// A sum of floats, and the count.
    FloatSum {
        /// Where the sum is.
        sum: usize,
        /// Where the count is.
        count: usize,
    },
    /// The smallest or largest value (of floats: its place in total order), and the count.
    Best {
        /// Where the value is.
        best: usize,
        /// Where the count is.
        count: usize,
        /// The smallest, rather than the largest.
        smallest: bool,
        /// Its distance from this number is held, in the lower 32 bits alone.
        from: Option<i64>,
    },
    /// The smallest or largest 128-bit value, and the count.
    WideBest {
        /// Where its lower half is.
        low: usize,
        /// Where its higher half is.
        high: usize,
        /// Where the count is.
        count: usize,
        /// The smallest, rather than the largest.
        smallest: bool,
    },
    /// The mean of floats, the sum of their squared differences from it, and the count.
    Moments {
        /// Where the mean is.
        mean: usize,
        /// Where the sum of squares is.
        squares: usize,
        /// Where the count is, which is of this aggregate alone.
        count: usize,
    },
}

impl Accumulator {
    /// Returns where the count of contributing rows is.
    pub fn count(&self) -> usize {
        match *self {
            Accumulator::Count(count)
            | Accumulator::Sum { count, .. }
            | Accumulator::WideSum { count, .. }
            | Accumulator::LimbSum { count, .. }
            | Accumulator::FloatSum { count, .. }
            | Accumulator::Best { count, .. }
            | Accumulator::WideBest { count, .. }
            | Accumulator::Moments { count, .. } => count,
        }
    }

    /// Returns the last place that is used.
    pub fn last(&self) -> usize {
        match *self {
            Accumulator::Count(count) => count,
            Accumulator::Sum { sum, count } | Accumulator::FloatSum { sum, count } => sum.max(count),
            Accumulator::WideSum { low, high, count } | Accumulator::WideBest { low, high, count, .. } => {
                low.max(high).max(count)
            }
            Accumulator::LimbSum { first, count } => count.max(first + 3),
            Accumulator::Best { best, count, .. } => best.max(count),
            Accumulator::Moments { mean, squares, count } => mean.max(squares).max(count),
        }
    }
}
