//! How a kernel lays out what rows end in: an array or a hash table of groups, or rows.

use tandem_pipeline::Expr;
use tandem_plan::sink::{GroupKey, PlannedAggregate};

use crate::HashKey;

/// Where the rows of a kernel end.
#[derive(Clone, Debug, PartialEq)]
pub enum KernelSink {
    /// An array of groups.
    Groups {
        /// The keys; none for one group.
        keys: Vec<GroupKey>,
        /// How many places the array has.
        groups: usize,
        /// What is computed for each.
        aggregates: Vec<PlannedAggregate>,
    },
    /// A hash table of groups, whose keys are numbers.
    Hashed {
        /// What the numbers are made of.
        keys: Vec<HashKey>,
        /// What is computed for each.
        aggregates: Vec<PlannedAggregate>,
    },
    /// The values that contribute to an aggregate, each with the place of its group, as ordinals: they are sorted then.
    Values {
        /// What tells groups apart.
        groups: ValueGroups,
        /// The aggregate.
        aggregate: Box<PlannedAggregate>,
    },
    /// The rows that are left, by the hash of keys.
    Partition {
        /// The keys.
        keys: Vec<Expr>,
        /// How many partitions there are.
        parts: usize,
        /// One column for each.
        values: Vec<Expr>,
    },
    /// The rows that are left, with these values each.
    Rows {
        /// One column for each.
        values: Vec<Expr>,
        /// The order that they are wanted in; none for any order.
        order: Vec<OrderKey>,
    },
}

/// What tells the groups apart that values are sorted by.
#[derive(Clone, Debug, PartialEq)]
pub enum ValueGroups {
    /// Places of an array; no key for one group.
    Places(Vec<GroupKey>),
    /// Places of a hash table.
    Hashed(Vec<HashKey>),
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

/// Where the count of a group's rows lies.
pub const ROWS_COUNT: usize = 0;
/// The most values that sums in parts of 32 bits hold: a part is a 64-bit number with a sign.
pub const MOST_HALVES: i64 = 1 << 31;

/// Where a group's table of 64-bit numbers holds one aggregate; the count of its rows is at [`ROWS_COUNT`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccumulatorWords {
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
    /// The moments of floats around one of them, their center: see `spread.rs`.
    Spread {
        /// Where the center is.
        center: usize,
        /// Where the sum of differences from it is.
        sum: usize,
        /// Where the sum of their squares is.
        squares: usize,
        /// Where the count is.
        count: usize,
    },
    /// The moments of pairs of floats around one of each: centers of y and x, sums of differences, of squares, and of products.
    Pairs {
        /// Where the center of y is; the others follow in this order.
        first: usize,
        /// Where the count is.
        count: usize,
    },
    /// Combined bits of integers.
    Bits {
        /// Where the lower 64 bits are.
        low: usize,
        /// Where the higher 64 bits are, of 128-bit values.
        high: Option<usize>,
        /// Where the count is.
        count: usize,
        /// How they are combined.
        by: BitOperation,
    },
    /// Nothing: it is computed of other rows, as those of distinct values, or of rows in order.
    Elsewhere,
}

/// How bits of integers are combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BitOperation {
    /// Those that all have.
    And,
    /// Those that any has.
    Or,
    /// Those that an odd number has.
    Xor,
}

/// What a center is before the first value: the bits of −0, which no center is.
pub const NO_CENTER: i64 = i64::MIN;
/// How many numbers there are of the moments of pairs.
pub(crate) const PAIR_NUMBERS: usize = 7;

impl BitOperation {
    /// Returns what combines with any bits to these.
    pub fn none(self) -> i64 {
        if self == BitOperation::And { -1 } else { 0 }
    }

    /// Returns the operator in C.
    pub(crate) fn sign(self) -> &'static str {
        match self {
            BitOperation::And => "&",
            BitOperation::Or => "|",
            BitOperation::Xor => "^",
        }
    }

    /// Returns the name of what combines bits in a table.
    pub(crate) fn name(self) -> &'static str {
        match self {
            BitOperation::And => "BITS_AND",
            BitOperation::Or => "BITS_OR",
            BitOperation::Xor => "BITS_XOR",
        }
    }
}

impl AccumulatorWords {
    /// Returns where the count of contributing rows is.
    pub fn count(&self) -> usize {
        match *self {
            AccumulatorWords::Count(count)
            | AccumulatorWords::Sum { count, .. }
            | AccumulatorWords::WideSum { count, .. }
            | AccumulatorWords::LimbSum { count, .. }
            | AccumulatorWords::FloatSum { count, .. }
            | AccumulatorWords::Best { count, .. }
            | AccumulatorWords::WideBest { count, .. }
            | AccumulatorWords::Spread { count, .. }
            | AccumulatorWords::Pairs { count, .. }
            | AccumulatorWords::Bits { count, .. } => count,
            AccumulatorWords::Elsewhere => ROWS_COUNT,
        }
    }

    /// Returns the last place that is used.
    pub fn last(&self) -> usize {
        match *self {
            AccumulatorWords::Count(count) => count,
            AccumulatorWords::Sum { sum, count } | AccumulatorWords::FloatSum { sum, count } => sum.max(count),
            AccumulatorWords::WideSum { low, high, count } | AccumulatorWords::WideBest { low, high, count, .. } => {
                low.max(high).max(count)
            }
            AccumulatorWords::LimbSum { first, count } => count.max(first + 3),
            AccumulatorWords::Best { best, count, .. } => best.max(count),
            AccumulatorWords::Spread { center, sum, squares, count } => center.max(sum).max(squares).max(count),
            AccumulatorWords::Pairs { first, count } => count.max(first + PAIR_NUMBERS - 1),
            AccumulatorWords::Bits { low, high, count, .. } => low.max(high.unwrap_or(low)).max(count),
            AccumulatorWords::Elsewhere => ROWS_COUNT,
        }
    }
}
