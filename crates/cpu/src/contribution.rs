//! What one place leaves of its share of a pipeline's rows, CPU worker or device: a value that stands alone until the sink
//! merges it with the others.

use std::{fmt, sync::Arc, time::Duration};

use tandem_column::{Result, Table};
use tandem_plan::Build;

use crate::{Error, Groups, Job, Reservation, Rows};

/// What a share of the rows comes to.
#[derive(Debug)]
pub struct Contribution {
    /// Groups, rows, a build, or what a device keeps of them.
    pub contents: Contents,
    /// How many rows reached the sink; of groups that stay on a device, how many groups there are.
    pub rows: u64,
    /// The unmatched build rows that joins emit at the end are among them.
    pub unmatched: bool,
    /// What each step did, the sink last; none where nobody counted.
    pub(crate) counters: Vec<Counter>,
}

/// The kinds of contributions. Sinks merge any number of them, in any mix.
#[derive(Debug)]
pub enum Contents {
    /// Groups.
    Groups(Box<Groups>),
    /// Rows.
    Rows(Rows),
    /// A finished build: an array, a bitmap or a hash table.
    Build(Box<Build>),
    /// Finished rows that a device keeps.
    Kept(Kept),
}

/// Finished rows that a device keeps, and the way back. Alone, they are the pipeline's output and stay where they are. Beside
/// other contributions they cannot be merged (an average is no longer a sum and a count), and are recalled.
#[derive(Debug)]
pub struct Kept {
    /// The rows: columns of [`tandem_column::Data::Remote`].
    pub table: Table,
    /// Gives what they are made of.
    pub recall: Box<dyn Recall>,
}

/// Gives what a device made finished rows of.
pub trait Recall: fmt::Debug + Send {
    /// Returns the same share of the rows as groups or rows, which the job's sink merges.
    ///
    /// # Errors
    /// Device or unsupported if the device fails or has failed: the job has to be computed again.
    fn recall(&self, job: &Job) -> Result<Contribution>;
}

/// What a pipeline leaves behind.
#[derive(Debug)]
pub enum PipelineOutput {
    /// Rows, for the result or a later pipeline.
    Rows(Table),
    /// Rows in the order of partitions, and how many rows each has.
    Partitions(Table, Vec<usize>),
    /// A build, for later probes.
    Build(Arc<Build>),
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counter {
    pub(crate) rows_in: u64,
    pub(crate) rows_out: u64,
    pub(crate) time: Duration,
}

impl Counter {
    pub(crate) fn count(&mut self, rows_in: usize, rows_out: usize, time: Duration) {
        self.rows_in += rows_in as u64;
        self.rows_out += rows_out as u64;
        self.time += time;
    }

    pub(crate) fn add(&mut self, other: &Counter) {
        self.rows_in += other.rows_in;
        self.rows_out += other.rows_out;
        self.time += other.time;
    }
}

impl Contribution {
    /// Makes the contribution of a place that counts no steps.
    pub(crate) fn new(contents: Contents, rows: u64) -> Contribution {
        Contribution { contents, rows, unmatched: false, counters: Vec::new() }
    }

    /// Makes what a device keeps something that can be merged.
    pub(crate) fn recall(&mut self, job: &Job) -> Result<()> {
        if let Contents::Kept(kept) = &self.contents {
            let Contribution { contents, rows, .. } = kept.recall.recall(job)?;
            // Of finished groups, only these were counted; of an order, rows behind those that are wanted are gone.
            (self.contents, self.rows) = (contents, self.rows.max(rows));
        }
        Ok(())
    }
}

impl Contents {
    /// Takes the memory that it holds out, to hold it while something is made of it.
    pub(crate) fn hand_over(&mut self) -> Option<Reservation> {
        match self {
            Contents::Groups(groups) => Some(groups.hand_over()),
            Contents::Rows(rows) => Some(rows.hand_over()),
            Contents::Build(_) | Contents::Kept(_) => None,
        }
    }

    /// Returns the groups, to add to.
    ///
    /// # Errors
    /// Internal if it is something else.
    pub fn groups(&mut self) -> Result<&mut Groups> {
        match self {
            Contents::Groups(groups) => Ok(groups),
            _ => Err(Error::internal("a contribution to another sink")),
        }
    }

    /// Returns the rows, to add to.
    ///
    /// # Errors
    /// Internal if it is something else.
    pub fn rows(&mut self) -> Result<&mut Rows> {
        match self {
            Contents::Rows(rows) => Ok(rows),
            _ => Err(Error::internal("a contribution to another sink")),
        }
    }

    /// Returns the rows.
    pub(crate) fn into_rows(self) -> Result<Rows> {
        match self {
            Contents::Rows(rows) => Ok(rows),
            _ => Err(Error::internal("a contribution to another sink")),
        }
    }
}

impl PipelineOutput {
    /// Returns the memory that it holds, in bytes; dictionaries are mostly those of tables.
    pub fn byte_len(&self) -> usize {
        match self {
            PipelineOutput::Rows(table) | PipelineOutput::Partitions(table, _) => {
                table.parts.iter().map(|part| part.byte_len()).sum()
            }
            PipelineOutput::Build(build) => build.byte_len(),
        }
    }

    /// Returns how many rows there are.
    pub fn rows(&self) -> usize {
        match self {
            PipelineOutput::Rows(table) | PipelineOutput::Partitions(table, _) => table.rows(),
            PipelineOutput::Build(build) => build.rows,
        }
    }
}
