//! Window functions: rows sorted by partition and order once, and each function computed along them.
//!
//! Tasks are runs of whole partitions; what functions read of a long run, and what comes out of it, is gathered by several. Within a
//! task, what functions read is gathered in order once; a function gives a value, or the place of the row whose value it is. Rows come
//! out partition by partition, in order. Where only the first rows of each partition are wanted, a worker drops others as they come
//! (`first`), and sorts what is left now and then while it collects.

mod aggregate;
mod first;
mod frame;
mod marks;
mod place;
mod ranked;
mod slide;

use std::{
    ops::Range,
    rc::Rc,
    sync::{Arc, Mutex},
};

use tandem_column::{Cancel, PART_ROWS, Result};
use tandem_pipeline::{SlotId, Window, WindowFunction};
use tandem_plan::sink::WindowPlan;

pub(crate) use first::FirstRows;

use self::{
    aggregate::{Input, aggregate},
    frame::frames,
    marks::Marks,
    place::at_places,
};
use super::{Finishing, SinkOperator, order};
use crate::{
    Contents, MemoryBudget, PipelineOutput, Reservation, Rows, Values, Vector,
    frame::Frame,
    parallel,
    rows::{concat_in_parallel, part_ranges, to_table_in_parallel},
    settings::ParallelTasks,
};

/// A run of whole partitions with more rows than this is gathered by several tasks: as many rows as a part of a result has.
const LONG: usize = PART_ROWS / 4;

/// A worker that keeps only the first rows of partitions drops the others when it has this many, or four times what it kept last.
const CUT_FROM: usize = 1 << 18;

pub(super) struct WindowSink {
    pub(super) plan: Arc<WindowPlan>,
    pub(super) memory: Arc<MemoryBudget>,
    pub(super) cancel: Cancel,
}

/// Rows of some partitions, in order, and what functions read of them.
struct Sorted<'s> {
    plan: &'s WindowPlan,
    cancel: &'s Cancel,
    /// The memory of joined texts.
    texts: &'s Mutex<Reservation>,
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
        let framed = |frame| frames(frame, marks, &self.plan.order, &|slot| self.vector(slot));
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
            WindowFunction::Lag { slot, offset, default, ignore_nulls } => {
                let vector = self.vector(*slot);
                let places = match &vector.valid {
                    Some(valid) if *ignore_nulls && *offset != 0 => place::lag_of_values(marks, valid, *offset),
                    _ => place::lag(marks, *offset),
                };
                at_places(vector, &places, default.map(|default| self.vector(default)))
            }
            WindowFunction::Nth { slot, place, frame, ignore_nulls } => {
                let vector = self.vector(*slot);
                let places = match &vector.valid {
                    Some(valid) if *ignore_nulls => place::nth_of_values(&framed(frame), valid, *place),
                    _ => place::nth(&framed(frame), *place),
                };
                at_places(vector, &places, None)
            }
            WindowFunction::Aggregate { aggregate: of, frame } => {
                let typed = |slot: SlotId| (self.vector(slot), &self.plan.kinds[self.plan.position(slot)]);
                let input = Input {
                    of,
                    argument: of.argument.map(typed),
                    second: of.second.map(typed),
                    order: of.order.iter().map(|key| typed(key.slot)).collect(),
                    filter: of.filter.map(|slot| self.vector(slot)),
                    rows,
                    cancel: self.cancel,
                    texts: self.texts,
                };
                aggregate(&input, &framed(frame))?
            }
        })
    }
}

impl WindowSink {
    /// Sorts rows; tells where partitions and peers begin.
    fn sort(&self, all: &[Vector], rows: usize, parallel: ParallelTasks<'_>) -> Result<(Vec<u32>, Vec<u8>)> {
        let (keys, partition) = self.plan.keys();
        let vectors: Vec<&Vector> = keys.iter().map(|key| &all[self.plan.position(key.slot)]).collect();
        let order = match keys.is_empty() {
            true => (0..rows as u32).collect(),
            false => order::order(&keys, &vectors, rows, usize::MAX, parallel)?,
        };
        let marks = marks::find(&vectors[..partition], &vectors[partition..], &order, parallel)?;
        Ok((order, marks))
    }

    /// Gathers what functions read of some rows.
    fn sorted<'s>(
        &'s self,
        all: &[Vector],
        order: &[u32],
        marks: &'s [u8],
        texts: &'s Mutex<Reservation>,
    ) -> Sorted<'s> {
        let gather = |(slot, vector): (&SlotId, &Vector)| self.plan.read.contains(slot).then(|| vector.take(order));
        let vectors = self.plan.collected.iter().zip(all).map(gather).collect();
        Sorted { plan: &self.plan, cancel: &self.cancel, texts, marks: Marks::new(marks), vectors }
    }

    /// Computes the functions for a long run of whole partitions: what they read is gathered in pieces, and each function is a task.
    fn compute_long(
        &self,
        all: &[Vector],
        order: &[u32],
        marks: &[u8],
        texts: &Mutex<Reservation>,
        workers: ParallelTasks<'_>,
    ) -> Result<Vec<Vector>> {
        let pieces = part_ranges(order.len());
        let mut vectors: Vec<Option<Vector>> = Vec::with_capacity(all.len());
        for (slot, vector) in self.plan.collected.iter().zip(all) {
            let read = self.plan.read.contains(slot).then(|| -> Result<Vector> {
                let taken = parallel::map(workers, pieces.len(), |piece| vector.take(&order[pieces[piece].clone()]))?;
                let mut taken = taken.into_iter();
                let mut whole = taken.next().unwrap_or_else(|| vector.take(&[]));
                whole.reserve(order.len() - whole.len());
                taken.for_each(|piece| whole.append(&piece));
                Ok(whole)
            });
            vectors.push(read.transpose()?);
        }
        let sorted = Sorted { plan: &self.plan, cancel: &self.cancel, texts, marks: Marks::new(marks), vectors };
        let functions = &self.plan.functions;
        parallel::map(workers, functions.len(), |function| sorted.compute(&functions[function]))?.into_iter().collect()
    }

    /// Makes what joined texts are reserved in.
    fn texts(&self) -> Mutex<Reservation> {
        Mutex::new(Reservation::new(&self.memory, "the texts of windows"))
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
        let count = rows.count();
        if let Some(left) = rows.first.as_ref().map(|first| first.left()).filter(|left| left.len() <= count / 2) {
            keep(rows, &left);
            return Ok(());
        }
        let all = rows.concat();
        let _held = Reservation::take(&self.memory, "sorting", count.saturating_mul(order::ROW_BYTES))?;
        let (order, marks) = self.sort(&all, count, &order::alone)?;
        let first = self.sorted(&all, &order, &marks, &self.texts()).compute(&self.plan.functions[0])?;
        let mut kept: Vec<u32> = self.wanted(&first).into_iter().flatten().map(|place| order[place as usize]).collect();
        // Rows that are equal in all keys keep their order.
        kept.sort_unstable();
        rows.replace(count, all);
        keep(rows, &kept);
        Ok(())
    }

    /// Adds those active rows that may be among the first of their partition; tells whether all were asked.
    fn push_first(&self, rows: &mut Rows, frame: &Frame<'_>, morsel: usize) -> Result<bool> {
        let Some(first) = &mut rows.first else { return Ok(false) };
        let Some(selected) = first.select(&self.plan, frame)? else {
            rows.first = None;
            return Ok(false);
        };
        if !selected.is_empty() {
            let fetch = |slot: &SlotId| frame.vector_at(*slot, &selected).map(Rc::new);
            let vectors = self.plan.collected.iter().map(fetch).collect::<Result<Vec<_>>>()?;
            rows.push(morsel, selected.len(), &vectors)?;
        }
        Ok(true)
    }
}

/// Keeps only some of a worker's rows.
fn keep(rows: &mut Rows, kept: &[u32]) {
    let vectors = rows.concat().iter().map(|vector| vector.take(kept)).collect();
    rows.replace(kept.len(), vectors);
    rows.kept = kept.len();
    if let Some(first) = &mut rows.first {
        first.retain(kept);
    }
}

impl SinkOperator for WindowSink {
    fn state(&self) -> Contents {
        let mut rows = Rows::new(self.plan.kinds.clone(), &self.memory, "the rows of windows");
        if let (Some(numbering), Some(fetch)) = (&self.plan.numbering, self.plan.fetch) {
            rows.first = Some(Box::new(FirstRows::new(numbering, fetch, &self.memory)));
        }
        Contents::Rows(rows)
    }

    fn consume(&self, contents: &mut Contents, frame: &Frame<'_>, morsel: usize) -> Result<()> {
        let rows = contents.rows()?;
        if !self.push_first(rows, frame, morsel)? {
            rows.push_slots(morsel, frame, &self.plan.collected)?;
        }
        if self.plan.looks_back_only() && rows.count() > CUT_FROM.max(rows.kept.saturating_mul(4)) {
            self.cut(rows)?;
        }
        Ok(())
    }

    fn copies(&self) -> usize {
        2
    }

    fn finish(&self, contents: Vec<Contents>, finishing: &Finishing<'_>) -> Result<PipelineOutput> {
        let mut collected = contents.into_iter().map(Contents::into_rows).collect::<Result<Vec<Rows>>>()?;
        if let [rows] = collected.as_mut_slice()
            && rows.sorted
            && rows.count() > 0
        {
            // A device computed the functions, too.
            let (count, columns) = (rows.count(), rows.concat());
            let make = |range: Range<usize>| {
                let rows: Vec<u32> = (range.start as u32..range.end as u32).collect();
                Ok((rows.len(), columns.iter().map(|vector| vector.take(&rows)).collect()))
            };
            let table = to_table_in_parallel(finishing.schema, &part_ranges(count), finishing.parallel, &make)?;
            return Ok(PipelineOutput::Rows(table));
        }
        let collected = parallel::map_each(finishing.parallel, collected, |mut rows| {
            let left = rows.first.as_ref().map(|first| first.left());
            if let Some(left) = left.filter(|left| left.len() < rows.count()) {
                keep(&mut rows, &left);
            }
            // What it knew of partitions is of no more use.
            rows.first = None;
            rows
        })?;
        let (rows, all) = concat_in_parallel(&self.plan.kinds, collected, finishing.parallel)?;
        let _held = Reservation::take(&self.memory, "sorting", rows.saturating_mul(order::ROW_BYTES))?;
        let (order, marks) = self.sort(&all, rows, finishing.parallel)?;
        let output: Vec<&Vector> = self.plan.output.iter().map(|slot| &all[self.plan.position(*slot)]).collect();
        let texts = self.texts();
        let (mut ranges, mut long) = (Vec::new(), Vec::new());
        for range in marks::tasks(&marks) {
            if range.len() > LONG {
                let (order, marks) = (&order[range.clone()], &marks[range.clone()]);
                long.push((range.clone(), self.compute_long(&all, order, marks, &texts, finishing.parallel)?));
                let pieces = part_ranges(range.len()).into_iter();
                ranges.extend(pieces.map(|piece| range.start + piece.start..range.start + piece.end));
            } else {
                ranges.push(range);
            }
        }
        let make = |range: Range<usize>| {
            let order = &order[range.clone()];
            let mut computed: Vec<Vector> = match long.iter().find(|(whole, _)| whole.contains(&range.start)) {
                Some((whole, computed)) => {
                    let piece = (range.start - whole.start) as u32..(range.end - whole.start) as u32;
                    let rows: Vec<u32> = piece.collect();
                    computed.iter().map(|vector| vector.take(&rows)).collect()
                }
                None => {
                    let sorted = self.sorted(&all, order, &marks[range], &texts);
                    self.plan.functions.iter().map(|window| sorted.compute(window)).collect::<Result<_>>()?
                }
            };
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
        let table = to_table_in_parallel(finishing.schema, &ranges, finishing.parallel, &make)?;
        Ok(PipelineOutput::Rows(table))
    }
}
