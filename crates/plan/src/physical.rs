//! A pipeline with its physical choices made.

use std::sync::Arc;

use tandem_column::Field;
use tandem_pipeline::UserFunction;

use crate::{Body, Build, Outline, Set, SinkPlan};

/// A pipeline with its physical choices made.
#[derive(Clone, Debug)]
pub struct Physical {
    /// What happens to each row.
    pub body: Body,
    /// Where rows go.
    pub sink: SinkPlan,
    /// The columns of the rows that the sink gives.
    pub schema: Arc<[Field]>,
    /// The sets that steps test.
    pub sets: Vec<Arc<Set>>,
    /// The build of each lookup.
    pub builds: Vec<Arc<Build>>,
    /// For each step of the pipeline, the slots still needed after it.
    pub live: Vec<Vec<bool>>,
    /// The user functions that expressions call.
    pub functions: Vec<Arc<UserFunction>>,
    /// The rows to compute.
    pub morsels: Vec<Morsel>,
    /// How many source rows no morsel covers because statistics exclude them.
    pub skipped: usize,
    /// A later pipeline reads the rows, and these alone.
    pub read_later: bool,
    /// The same in words.
    pub outline: Outline,
}

/// A run of rows that one worker takes at once: at most a block.
#[derive(Clone, Copy, Debug)]
pub struct Morsel {
    /// Which part of the table.
    pub part: usize,
    /// First row in the part.
    pub start: usize,
    /// How many rows.
    pub count: usize,
}

impl Physical {
    /// Tells whether a device may keep the rows: a later pipeline reads them, and all that it is given of them are they.
    pub fn may_stay(&self) -> bool {
        self.read_later && self.sink.may_stay() && !self.body.emits_build_rows()
    }

    /// Tells whether the rows are those of a table that others look up: its columns are worth a copy on a device.
    pub fn is_reference(&self) -> bool {
        matches!(self.sink, SinkPlan::Build(_)) && self.body.lookups.is_empty()
    }

    /// Returns the parts that have rows to compute, in order.
    pub fn parts(&self) -> Vec<usize> {
        let mut parts: Vec<usize> = self.morsels.iter().map(|morsel| morsel.part).collect();
        parts.dedup();
        parts
    }
}
