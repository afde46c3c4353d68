//! What happens to each row of a physical pipeline, up to its sink: one fused loop, or one generated kernel.

use tandem_pipeline::{Expr, JoinKind, Slot, SlotId};

use crate::{Domain, Narrowing, Packed};

/// The steps of a physical pipeline, and what they read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Body {
    /// The pipeline's slots. Where a join emits unmatched build rows, slots before it are nullable.
    pub slots: Vec<Slot>,
    /// What statistics know of each slot; may be shorter than the slots.
    pub domains: Vec<Domain>,
    /// Where each slot's value comes from.
    pub origins: Vec<Origin>,
    /// Builds that rows lead into.
    pub lookups: Vec<Lookup>,
    /// What happens to each row, in order: filters on codes first, those that are likely to drop most rows before others.
    pub steps: Vec<PhysicalStep>,
}

/// Where a slot's value comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A column of the source.
    Column(usize),
    /// A payload column of a lookup, at the entry that the row leads to.
    Payload {
        /// Index in [`Body::lookups`].
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
    /// The source column whose codes are the key, where it is text ([`Build::coded`](crate::Build::coded)).
    pub codes: Option<usize>,
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
    /// By hash of the key columns.
    Bytes,
}

/// One step of a physical pipeline.
#[derive(Clone, Debug, PartialEq)]
pub struct PhysicalStep {
    /// The pipeline's step that it is, or is a part of.
    pub of: usize,
    /// What it does.
    pub action: Action,
}

/// What a step does.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
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
        /// Index in [`crate::Physical::sets`].
        set: usize,
    },
    /// Keeps rows for which an expression is true.
    Filter(Expr),
    /// Looks the row up.
    Probe(PhysicalProbe),
    /// Defines slots from `first` on.
    Let {
        /// The first slot defined.
        first: SlotId,
        /// One expression for each.
        exprs: Vec<Expr>,
    },
}

/// A step that looks rows up.
#[derive(Clone, Debug, PartialEq)]
pub struct PhysicalProbe {
    /// Index in [`Body::lookups`].
    pub lookup: usize,
    /// Which rows come out.
    pub kind: JoinKind,
    /// One expression for each key of the build.
    pub keys: Vec<Expr>,
    /// A further condition on a pair: sees the row's slots and, from `first` on, all payload.
    pub residual: Option<Expr>,
    /// How entries that fulfil a part of the residual are searched; it says what is left of it.
    pub narrowing: Option<Narrowing>,
    /// The first slot that the step adds; of `Mark`, the only one.
    pub first: SlotId,
    /// Null keys match null keys.
    pub null_equals_null: bool,
    /// See [`tandem_pipeline::Probe::null_aware`].
    pub null_aware: bool,
}

impl Body {
    /// Returns the smallest and largest integer of a slot, where statistics know them. Codes of text have none.
    pub fn range(&self, slot: SlotId) -> Option<(i64, i64)> {
        let domain = self.domains.get(slot)?;
        domain.range.filter(|_| domain.dictionary.is_none())
    }

    /// Returns the probes, in order.
    pub fn probes(&self) -> impl Iterator<Item = &PhysicalProbe> {
        self.steps.iter().filter_map(|step| match &step.action {
            Action::Probe(probe) => Some(probe),
            _ => None,
        })
    }

    /// Tells whether a join emits unmatched build rows after the last row.
    pub fn emits_build_rows(&self) -> bool {
        self.probes().any(|probe| probe.kind.emits_build_rows())
    }
}

impl Action {
    /// Tells whether it is a filter on the codes of a source column.
    pub fn is_encoded_filter(&self) -> bool {
        matches!(self, Action::Between { .. } | Action::Member { .. })
    }
}
