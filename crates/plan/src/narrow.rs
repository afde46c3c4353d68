//! Joins by inequality: a search among the entries of a key, or among all, instead of a look at each.
//!
//! A residual such as `payload < slot` has as many candidates as the key has entries. Where there may be many, a build has
//! the entries of each key in the order of one payload column ([`RunOrder`]); a probe then finds by halves where its row's
//! candidates begin and end. Of a second column, as of the other end of an interval, it is known of each entry how far those
//! up to it reach, which leaves a run as well. A search only narrows: what it does not decide stays with the residual, and
//! executors without it evaluate the residual as a whole.

use tandem_column::{Repr, Type};
use tandem_pipeline::{Comparison, Expr, Probe, Slot, SlotId};

/// A condition of a residual: a payload column of the build compared with a value of the row.
#[derive(Clone, Debug, PartialEq)]
pub struct RangeCondition {
    /// Which payload column.
    pub payload: usize,
    /// How it compares with the row's value, which is on the right: less, greater, or either and equal.
    pub comparison: Comparison,
    /// The row's value.
    pub slot: SlotId,
    /// It is fulfilled, too, if this is null.
    pub or_null: Option<NullSide>,
}

/// A side of a condition that may be null.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NullSide {
    /// The entry's value.
    Entry,
    /// The row's value.
    Row,
}

impl RangeCondition {
    /// Reads a condition whose payload begins at slot `first`.
    fn new(condition: &Expr, first: SlotId, slots: &[Slot], payload: &[Type]) -> Option<RangeCondition> {
        let (condition, null) = condition.as_comparison()?;
        let or_null = match null {
            Some(Expr::Slot(slot)) => Some(if *slot >= first { NullSide::Entry } else { NullSide::Row }),
            Some(_) => return None,
            None => None,
        };
        let Expr::Compare(comparison, left, right) = condition else { return None };
        let (Expr::Slot(left), Expr::Slot(right)) = (&**left, &**right) else { return None };
        let (comparison, of_payload, slot) = match (*left >= first, *right >= first) {
            (true, false) => (*comparison, left - first, *right),
            (false, true) => (comparison.mirrored(), right - first, *left),
            _ => return None,
        };
        let (kind, equality) = (&payload[of_payload], matches!(comparison, Comparison::Equal | Comparison::NotEqual));
        let searched = matches!(kind.repr(), Repr::Int | Repr::Float) && slots[slot].kind == *kind;
        (searched && !equality).then_some(RangeCondition { payload: of_payload, comparison, slot, or_null })
    }

    /// Tells whether it bounds the payload column from above.
    fn is_upper(&self) -> bool {
        matches!(self.comparison, Comparison::Less | Comparison::LessOrEqual)
    }
}

/// The payload columns that a build's entries are to be ordered by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunColumns {
    /// The column whose order the entries of each key have.
    pub order: usize,
    /// The column of which probes ask for more than some value.
    pub highest: Option<usize>,
    /// The column of which probes ask for less than some value.
    pub lowest: Option<usize>,
    /// Entries whose value of either of these is null fulfil what is asked of it.
    pub nulls: bool,
}

impl RunColumns {
    /// Chooses the columns for a probe whose payload begins at slot `first`; `None` if its residual has no inequality to
    /// search by, or may raise an error, which pairs that are never looked at would not.
    pub(crate) fn new(probe: &Probe, first: SlotId, slots: &[Slot], payload: &[Type]) -> Option<RunColumns> {
        let conditions = conditions(probe, first, slots, payload)?;
        let both = |column: usize| {
            let mut of = conditions.iter().filter(|condition| condition.payload == column);
            of.clone().any(RangeCondition::is_upper) && of.any(|condition| !condition.is_upper())
        };
        // Of the column that gives the order, null is the largest, and fulfils nothing.
        let ordered = conditions.iter().filter(|condition| condition.or_null != Some(NullSide::Entry));
        let columns = || ordered.clone().map(|condition| condition.payload);
        let order = columns().find(|column| both(*column)).or(columns().next())?;
        let other = |upper: bool| {
            conditions.iter().find(|condition| condition.payload != order && condition.is_upper() == upper)
        };
        let (highest, lowest) = (other(false), other(true));
        let nulls = highest.iter().chain(&lowest).any(|condition| condition.or_null == Some(NullSide::Entry));
        let column = |condition: Option<&RangeCondition>| condition.map(|condition| condition.payload);
        Some(RunColumns { order, highest: column(highest), lowest: column(lowest), nulls })
    }
}

/// Returns the inequalities of a probe's residual that a search may answer.
fn conditions(probe: &Probe, first: SlotId, slots: &[Slot], payload: &[Type]) -> Option<Vec<RangeCondition>> {
    let residual = probe.residual.as_ref().filter(|residual| !probe.null_aware && !residual.may_fail())?;
    let read = |condition: &Expr| RangeCondition::new(condition, first, slots, payload);
    Some(residual.conjuncts().into_iter().filter_map(read).collect())
}

/// The entries of each key of a build, in the order of a payload column.
#[derive(Debug)]
pub struct RunOrder {
    /// The columns that were asked for.
    pub columns: RunColumns,
    /// The ordered column's value of each entry, as an integer of the same order; nulls are largest.
    pub values: Vec<i64>,
    /// No value is null: a search decides its condition.
    pub exact: bool,
    /// Of each entry, the largest value of a second column up to it among those of its key.
    pub highest: Vec<i64>,
    /// Of each entry, the smallest value of a third column from it on among those of its key.
    pub lowest: Vec<i64>,
}

impl RunOrder {
    /// Returns those of a key's entries, from `start` to `end`, that may fulfil a condition with a row's value.
    #[inline]
    pub fn narrow(&self, (start, end): (u32, u32), condition: &RangeCondition, value: i64) -> (u32, u32) {
        let null_entry = condition.or_null == Some(NullSide::Entry);
        let ordered = condition.payload == self.columns.order;
        if null_entry && (ordered || !self.columns.nulls) {
            return (start, end);
        }
        let value = match condition.is_upper() {
            _ if !null_entry => value,
            // Entries with null have an end of the integers: it must fulfil the condition with every value.
            true => value.max(i64::MIN + 1),
            false => value.min(i64::MAX - 1),
        };
        let values = match condition.is_upper() {
            _ if ordered => &self.values,
            true if Some(condition.payload) == self.columns.lowest => &self.lowest,
            false if Some(condition.payload) == self.columns.highest => &self.highest,
            _ => return (start, end),
        };
        let values = &values[start as usize..end as usize];
        let before = |kept: &dyn Fn(i64) -> bool| start + values.partition_point(|value| kept(*value)) as u32;
        match condition.comparison {
            Comparison::Less => (start, before(&|other| other < value)),
            Comparison::LessOrEqual => (start, before(&|other| other <= value)),
            Comparison::Greater => (before(&|other| other <= value), end),
            Comparison::GreaterOrEqual => (before(&|other| other < value), end),
            Comparison::Equal | Comparison::NotEqual => (start, end),
        }
    }

    /// Returns the bytes held.
    pub fn byte_len(&self) -> usize {
        (self.values.len() + self.highest.len() + self.lowest.len()) * size_of::<i64>()
    }
}

/// How a probe searches an ordered build.
#[derive(Clone, Debug, PartialEq)]
pub struct Narrowing {
    /// The conditions searched by.
    pub conditions: Vec<RangeCondition>,
    /// What is left of the residual.
    pub rest: Option<Expr>,
}

impl Narrowing {
    /// Plans the search of a probe whose payload begins at slot `first`.
    pub(crate) fn new(
        order: &RunOrder,
        probe: &Probe,
        first: SlotId,
        slots: &[Slot],
        payload: &[Type],
    ) -> Option<Narrowing> {
        let conditions = conditions(probe, first, slots, payload)?;
        if conditions.is_empty() {
            return None;
        }
        let decided = |condition: &&Expr| {
            let read = RangeCondition::new(condition, first, slots, payload);
            order.exact
                && read.is_some_and(|condition| {
                    condition.payload == order.columns.order && condition.or_null != Some(NullSide::Entry)
                })
        };
        let residual = probe.residual.iter().flat_map(Expr::conjuncts);
        let mut rest: Vec<Expr> = residual.filter(|condition| !decided(condition)).cloned().collect();
        let rest = if rest.len() > 1 { Some(Expr::And(rest)) } else { rest.pop() };
        Some(Narrowing { conditions, rest })
    }
}
