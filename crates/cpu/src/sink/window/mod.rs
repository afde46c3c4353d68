//! Window functions: rows sorted by partition and order once, and each function computed along them.
//!
//! Tasks are runs of whole partitions. Within a task, what functions read is gathered in order once; a function gives a value, or the
//! place of the row whose value it is. Rows come out partition by partition, in order. Where only the first rows of each
//! partition are wanted, a worker drops the others now and then while it collects.

mod aggregate;
mod frame;
mod marks;
mod place;

use std::{ops::Range, sync::Arc};

use tandem_column::Result;
use tandem_pipeline::{SlotId, SortKey, Window, WindowFunction};
use tandem_plan::sink::WindowPlan;

use self::{aggregate::aggregate, frame::frames, marks::Marks, place::at_places};
use super::{Finishing, SinkOperator, order};
use crate::{
    Contents, MemoryBudget, PipelineOutput, Reservation, Rows, Values, Vector,
    frame::Frame,
    rows::{concat_in_parallel, to_table_in_parallel},
    settings::ParallelTasks,
};

/// A worker that keeps only the first rows of partitions drops the others when it has this many, or four times what it kept last.
const CUT_FROM: usize = 1 << 18;

pub(super) struct WindowSink {
    pub(super) plan: Arc<WindowPlan>,
    pub(super) memory: Arc<MemoryBudget>,
}

/// Rows of some partitions, in order, and what functions read of them.
struct Sorted<'s> {
    plan: &'s WindowPlan,
    marks: Marks<'s>,
    /// By position among the plan's collected slots; empty where no function reads the slot.
    vectors: Vec<Option<Vector>>,
}

impl Sorted<'_> {
    /// Returns the values of a slot.
    fn vector(&self, slot: SlotId) -> &Vector {
        self.vectors[self.plan.position(slot)].as_ref().expect("what functions read is gathered")
    }

    /// Computes a function for all rows.
    fn compute(&self, window: &Window) -> Result<Vector> {
        let (marks, rows) = (&self.marks, self.marks.rows());
        let integers = |values: Vec<i64>| match window.kind.repr() {
            tandem_column::Repr::Wide => Values::Wide(values.into_iter().map(i128::from).collect()),
            _ => Values::Int(values),
        };
        let mut numbers: Vec<i64> = Vec::new();
        let mut shares: Vec<f64> = Vec::new();
        let framed =
            |frame| frames(frame, marks, self.plan.order.first().map(|key| (self.vector(key.slot), key.descending)));
        Ok(match &window.function {
            WindowFunction::RowNumber => {
                numbers.reserve(rows);
                marks.partitions().for_each(|partition| numbers.extend(1..=partition.len() as i64));
                Vector::new(integers(numbers))
            }
            WindowFunction::Rank => {
                marks.peers(|partition, peers, _| {
                    numbers.extend(std::iter::repeat_n((peers.start - partition.start) as i64 + 1, peers.len()));
                });
                Vector::new(integers(numbers))
            }
            WindowFunction::DenseRank => {
                marks.peers(|_, peers, group| numbers.extend(std::iter::repeat_n(group as i64 + 1, peers.len())));
                Vector::new(integers(numbers))
            }
            WindowFunction::PercentRank => {
                marks.peers(|partition, peers, _| {
                    let others = (partition.len() - 1).max(1) as f64;
                    shares.extend(std::iter::repeat_n((peers.start - partition.start) as f64 / others, peers.len()));
                });
                Vector::new(Values::Float(shares))
            }
            WindowFunction::CumeDist => {
                marks.peers(|partition, peers, _| {
                    let share = (peers.end - partition.start) as f64 / partition.len() as f64;
                    shares.extend(std::iter::repeat_n(share, peers.len()));
                });
                Vector::new(Values::Float(shares))
            }
            WindowFunction::Ntile { buckets } => {
                marks.partitions().for_each(|partition| numbers.extend(place::ntile(partition.len() as u64, *buckets)));
                Vector::new(integers(numbers))
            }
            WindowFunction::Lag { slot, offset, default } => {
                let places = place::lag(marks, *offset);
                at_places(self.vector(*slot), &places, default.map(|default| self.vector(default)))
            }
            WindowFunction::Nth { slot, place, frame } => {
                let places = place::nth(&framed(frame), *place);
                at_places(self.vector(*slot), &places, None)
            }
            WindowFunction::Aggregate { aggregate: of, frame } => {
                let argument = of.argument.map(|slot| (self.vector(slot), &self.plan.kinds[self.plan.position(slot)]));
                aggregate(of, argument, of.filter.map(|slot| self.vector(slot)), rows, &framed(frame))?
            }
        })
    }
}

impl WindowSink {
    /// Returns the keys that rows are sorted by: those of the partition, in any order, then those of the order.
    fn keys(&self) -> (Vec<SortKey>, usize) {
        let mut keys: Vec<SortKey> = Vec::new();
        let partition =
            self.plan.partition.iter().map(|slot| SortKey { slot: *slot, descending: false, nulls_first: true });
        for key in partition {
            if keys.iter().all(|known| known.slot != key.slot) {
                keys.push(key);
            }
        }
        let partition = keys.len();
        for key in &self.plan.order {
            if keys.iter().all(|known| known.slot != key.slot) {
                keys.push(key.clone());
            }
        }
        (keys, partition)
    }

    /// Sorts rows; tells where partitions and peers begin.
    fn sort(&self, all: &[Vector], rows: usize, parallel: ParallelTasks<'_>) -> Result<(Vec<u32>, Vec<u8>)> {
        let (keys, partition) = self.keys();
        let vectors: Vec<&Vector> = keys.iter().map(|key| &all[self.plan.position(key.slot)]).collect();
        let order = match keys.is_empty() {
            true => (0..rows as u32).collect(),
            false => order::order(&keys, &vectors, rows, usize::MAX, parallel)?,
        };
        let marks = marks::find(&vectors[..partition], &vectors[partition..], &order, parallel)?;
        Ok((order, marks))
    }

    /// Gathers what functions read of some rows.
    fn sorted<'s>(&'s self, all: &[Vector], order: &[u32], marks: &'s [u8]) -> Sorted<'s> {
        let gather = |(slot, vector): (&SlotId, &Vector)| self.plan.read.contains(slot).then(|| vector.take(order));
        let vectors = self.plan.collected.iter().zip(all).map(gather).collect();
        Sorted { plan: &self.plan, marks: Marks::new(marks), vectors }
    }

    /// Returns the rows, of those that lie in order, whose first function is at most what is fetched.
    fn wanted(&self, first: &Vector) -> Option<Vec<u32>> {
        let fetch = self.plan.fetch?;
        let rows = 0..first.len() as u32;
        Some(match &first.values {
            Values::Int(places) => rows.filter(|row| places[*row as usize] as u64 <= fetch as u64).collect(),
            Values::Wide(places) => rows.filter(|row| places[*row as usize] <= fetch as i128).collect(),
            _ => rows.collect(),
        })
    }

    /// Drops a worker's rows that are not among the first of their partition.
    fn cut(&self, rows: &mut Rows) -> Result<()> {
        let (count, all) = (rows.count(), rows.concat());
        let _held = Reservation::take(&self.memory, "sorting", count.saturating_mul(order::ROW_BYTES))?;
        let (order, marks) = self.sort(&all, count, &order::alone)?;
        let first = self.sorted(&all, &order, &marks).compute(&self.plan.functions[0])?;
        let mut kept: Vec<u32> = self.wanted(&first).into_iter().flatten().map(|place| order[place as usize]).collect();
        // Rows that are equal in all keys keep their order.
        kept.sort_unstable();
        rows.replace(kept.len(), all.iter().map(|vector| vector.take(&kept)).collect());
        rows.kept = kept.len();
        Ok(())
    }
}

impl SinkOperator for WindowSink {
    fn state(&self) -> Contents {
        Contents::Rows(Rows::new(self.plan.kinds.clone(), &self.memory, "the rows of windows"))
    }

    fn consume(&self, contents: &mut Contents, frame: &Frame<'_>, morsel: usize) -> Result<()> {
        let rows = contents.rows()?;
        rows.push_slots(morsel, frame, &self.plan.collected)?;
        if self.plan.looks_back_only() && rows.count() > CUT_FROM.max(rows.kept.saturating_mul(4)) {
            self.cut(rows)?;
        }
        Ok(())
    }

    fn copies(&self) -> usize {
        2
    }

    fn finish(&self, contents: Vec<Contents>, finishing: &Finishing<'_>) -> Result<PipelineOutput> {
        let collected = contents.into_iter().map(Contents::into_rows).collect::<Result<Vec<Rows>>>()?;
        let (rows, all) = concat_in_parallel(&self.plan.kinds, collected, finishing.parallel)?;
        let _held = Reservation::take(&self.memory, "sorting", rows.saturating_mul(order::ROW_BYTES))?;
        let (order, marks) = self.sort(&all, rows, finishing.parallel)?;
        let output: Vec<&Vector> = self.plan.output.iter().map(|slot| &all[self.plan.position(*slot)]).collect();
        let make = |range: Range<usize>| {
            let order = &order[range.clone()];
            let sorted = self.sorted(&all, order, &marks[range]);
            let mut computed =
                self.plan.functions.iter().map(|window| sorted.compute(window)).collect::<Result<Vec<_>>>()?;
            let wanted = computed.first().and_then(|first| self.wanted(first));
            let taken: Vec<Vector> = match wanted {
                None => output.iter().map(|vector| vector.take(order)).collect(),
                Some(wanted) => {
                    computed = computed.iter().map(|vector| vector.take(&wanted)).collect();
                    let rows: Vec<u32> = wanted.iter().map(|place| order[*place as usize]).collect();
                    output.iter().map(|vector| vector.take(&rows)).collect()
                }
            };
            let rows = computed.first().map_or(order.len(), Vector::len);
            Ok((rows, taken.into_iter().chain(computed).collect()))
        };
        let table = to_table_in_parallel(finishing.schema, &marks::tasks(&marks), finishing.parallel, &make)?;
        Ok(PipelineOutput::Rows(table))
    }
}
