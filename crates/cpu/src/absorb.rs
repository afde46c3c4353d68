//! What a device computed of a job becomes a worker's: groups, rows, builds laid out.

use std::{
    rc::Rc,
    sync::{
        Arc,
        atomic::{AtomicU8, Ordering},
    },
};

use tandem_column::{AlignedVec, Bitmap, Codes, Column, Data, Dictionary, Repr, Result};
use tandem_pipeline::{
    Expr, SlotId,
    fused::{Accumulator, KeyOf, Origin as FusedOrigin, Packed},
};

use crate::{
    Error, Job, Values, Vector,
    aggregate::HashedGroups,
    build::{Build, Order, arrange, dense_domain},
    directory::packing,
    evaluate::Slots,
    frame::{Frame, NO_MATCH, Origin, fetch_matches},
    job::{Operation, SinkPlan, SinkState, Worker},
};

/// One column of rows that a kernel computed.
#[derive(Debug)]
pub enum Collected {
    /// 64-bit numbers (codes, for text; bits, for floats), and bytes that are 1 where a value is null.
    Numbers(Vec<i64>, Option<Vec<u8>>),
    /// 128-bit integers, and bytes that are 1 where a value is null.
    Wide(Vec<i128>, Option<Vec<u8>>),
    /// The rows whose values they are, counted through all parts; `u32::MAX` for none.
    Rows(Vec<u32>),
    /// The entries of a build whose payload they are; `u32::MAX` for none.
    Entries(Vec<u32>),
    /// As an earlier column.
    Same(usize),
}

/// A build that a device laid out.
#[derive(Debug)]
pub struct LaidOut {
    /// Rows, null keys included.
    pub rows: usize,
    /// Some key is null.
    pub null_key: bool,
    /// How keys lead to entries.
    pub way: LaidOutWay,
    /// The payload columns, in the order of entries.
    pub payload: Vec<Arc<Column>>,
    /// The smallest and largest number of each.
    pub ranges: Vec<Option<(i64, i64)>>,
}

/// How keys lead to the entries of a build that a device laid out.
#[derive(Debug)]
pub enum LaidOutWay {
    /// The only key has a place for every value.
    Places {
        /// The smallest key.
        min: i64,
        /// How many values from there on have a place.
        domain: usize,
        /// A bit for each of them, set where it is a key.
        bits: Vec<u8>,
        /// Where the entries of each begin, if keys repeat.
        starts: Option<Vec<u32>>,
    },
    /// By hash of the packed keys; in their order, if there is one bucket.
    Hash {
        /// How they are packed.
        packing: Vec<Packed>,
        /// The packed key of each entry that has one: the first of them.
        keys: Vec<u64>,
        /// How many entries there are.
        entries: usize,
        /// Where the entries of each bucket begin.
        starts: Vec<u32>,
    },
}

/// One payload column of a build that a device laid out.
#[derive(Debug)]
pub enum Arranged {
    /// Numbers less the smallest, in as few bytes as they take; codes of text as they are.
    Codes {
        /// The codes in the order of entries.
        codes: Codes,
        /// What code 0 stands for.
        base: i64,
        /// The null flags.
        validity: Option<Bitmap>,
    },
    /// Floats in the order of entries.
    Floats(AlignedVec<f64>, Option<Bitmap>),
    /// Values of the rows, and the entry of each row; `u32::MAX` for none.
    Rows(Collected, Vec<u32>),
}

impl Job {
    /// Adds rows that a kernel computed to a worker's; `sorted` tells that they are all there are, in the sink's order.
    /// Several parts may have rows at once if codes of text mean the same in all of them; rows that are of none have
    /// nulls in its place.
    ///
    /// # Errors
    /// Unsupported if they do not; an exhausted memory budget.
    pub fn collect(
        &self,
        worker: &mut Worker,
        parts: &[usize],
        rows: usize,
        columns: Vec<Collected>,
        sorted: bool,
    ) -> Result<()> {
        let exprs = self.collected();
        let (SinkState::Collect(collector), true) = (&mut worker.sink, exprs.len() == columns.len()) else {
            return Err(Error::internal("an aggregation takes no rows"));
        };
        let mut vectors: Vec<Rc<Vector>> = Vec::with_capacity(columns.len());
        for (expr, column) in exprs.iter().zip(columns) {
            let vector = match column {
                Collected::Same(earlier) => vectors[earlier].clone(),
                column => self.vector(expr, parts, column)?,
            };
            vectors.push(vector);
        }
        collector.push(parts.first().copied().unwrap_or(0), rows, &vectors)?;
        self.emitted.fetch_add(rows, Ordering::Relaxed);
        worker.sorted = sorted;
        worker.rows_out += rows as u64;
        let counter = worker.counters.last_mut().expect("the sink has a counter");
        counter.rows_in += rows as u64;
        Ok(())
    }

    /// Makes a vector of a column.
    pub(crate) fn vector(&self, expr: &Expr, parts: &[usize], column: Collected) -> Result<Rc<Vector>> {
        match (column, parts) {
            (Collected::Numbers(numbers, nulls), parts) => Ok(Rc::new(self.vector_of(expr, parts, numbers, nulls)?)),
            (Collected::Wide(values, nulls), _) => {
                Ok(Rc::new(Vector { values: Values::Wide(values), valid: valid(nulls) }))
            }
            (Collected::Rows(mut list), parts) => {
                let Expr::Slot(slot) = expr else { return Err(Error::internal("rows of a computed value")) };
                if self.table.rows() >= NO_MATCH as usize {
                    return Err(Error::unsupported("so many rows are put together by the processor"));
                }
                let [part] = parts else {
                    let rows: Vec<u64> = list.iter().map(|row| (*row).into()).collect();
                    return Ok(Rc::new(self.source_values(*slot, &rows)?));
                };
                let first: usize = self.table.parts[..*part].iter().map(|part| part.rows).sum();
                list.iter_mut().filter(|row| **row != NO_MATCH).for_each(|row| *row = row.wrapping_sub(first as u32));
                Ok(Rc::new(fetch_matches(&self.table.parts[*part].columns[self.column(*slot)?], &list)))
            }
            (Collected::Entries(list), _) => {
                let payload = self.payload_of(expr).ok_or_else(|| Error::internal("entries without payload"))?;
                Ok(Rc::new(fetch_matches(payload, &list)))
            }
            (Collected::Same(_), _) => Err(Error::internal("a column is the same as none")),
        }
    }

    fn vector_of(&self, expr: &Expr, parts: &[usize], numbers: Vec<i64>, nulls: Option<Vec<u8>>) -> Result<Vector> {
        let values = match expr.kind(&self.layout.slots).repr() {
            Repr::Boolean => Values::Boolean(numbers.iter().map(|number| *number as u8).collect()),
            Repr::Int => Values::Int(numbers),
            Repr::Float => Values::Float(numbers.iter().map(|number| f64::from_bits(*number as u64)).collect()),
            _ => {
                // Payload has its dictionary whatever part rows are of.
                let parts = if parts.is_empty() { &[0] } else { parts };
                let mut all = parts.iter().map(|part| self.dictionary(expr, *part));
                let dictionary = all.next().flatten().ok_or_else(|| Error::internal("codes without words"))?;
                if all.any(|other| !other.is_some_and(|other| Arc::ptr_eq(&other, &dictionary))) {
                    return Err(Error::unsupported("parts with other dictionaries are put together by the processor"));
                }
                // Nulls have any code.
                let last = dictionary.len().saturating_sub(1) as i64;
                let codes = numbers.iter().map(|number| (*number).clamp(0, last) as u32).collect();
                Values::Code { codes, dictionary }
            }
        };
        Ok(Vector { values, valid: valid(nulls) })
    }

    /// Returns the payload column behind a slot.
    fn payload_of(&self, expr: &Expr) -> Option<&Column> {
        let Expr::Slot(slot) = expr else { return None };
        match &self.layout.origins[*slot] {
            Origin::Payload { step, payload } => {
                self.layout.builds[*step].as_ref()?.payload.get(*payload).map(Arc::as_ref)
            }
            _ => None,
        }
    }

    pub(crate) fn dictionary(&self, expr: &Expr, part: usize) -> Option<Arc<Dictionary>> {
        let Expr::Slot(slot) = expr else { return None };
        let column = match &self.layout.origins[*slot] {
            Origin::Source(column) => &*self.table.parts.get(part)?.columns[*column],
            _ => self.payload_of(expr)?,
        };
        match &column.data {
            Data::Dictionary { dictionary, .. } => Some(dictionary.clone()),
            _ => None,
        }
    }

    /// Returns the dictionary of a source column or of a payload column.
    ///
    /// # Errors
    /// Unsupported if parts have different ones.
    pub fn words(&self, of: FusedOrigin) -> Result<Arc<Dictionary>> {
        let payload = match of {
            FusedOrigin::Payload { lookup, payload } => {
                self.build_of(lookup).and_then(|build| build.columns().get(payload))
            }
            _ => None,
        };
        let columns: Vec<&Column> = match of {
            FusedOrigin::Column(column) => self.table.parts.iter().map(|part| &*part.columns[column]).collect(),
            _ => payload.into_iter().map(Arc::as_ref).collect(),
        };
        let mut all = columns.into_iter().map(Column::dictionary);
        let first = all.next().flatten().ok_or_else(|| Error::internal("codes without words"))?;
        match all.all(|other| other.is_some_and(|other| Arc::ptr_eq(other, first))) {
            true => Ok(first.clone()),
            false => Err(Error::unsupported("parts with other dictionaries are not on the device yet")),
        }
    }

    fn matched(&self, lookup: usize) -> &[AtomicU8] {
        let step = self.lookup_steps().get(lookup).copied();
        let matched = self.operations.iter().find_map(|operation| match operation {
            Operation::Probe(probe) if Some(probe.step) == step => probe.matched.as_deref(),
            _ => None,
        });
        matched.unwrap_or_default()
    }

    /// Notes which entries of a lookup's build met a row of a device: those with a flag that is not 0.
    pub fn mark(&self, lookup: usize, flags: &[u8]) {
        for (matched, _) in self.matched(lookup).iter().zip(flags).filter(|(_, flag)| **flag != 0) {
            matched.store(1, Ordering::Relaxed);
        }
    }

    /// Returns a flag for each entry of a lookup's build: 1 if it met a row so far.
    pub fn marked(&self, lookup: usize) -> Vec<u8> {
        self.matched(lookup).iter().map(|matched| matched.load(Ordering::Relaxed)).collect()
    }

    /// Notes that a worker's rows have the build rows that come out of joins at the end among them.
    pub fn left_over(&self, worker: &mut Worker) {
        worker.leftovers = true;
    }

    /// Adds a hash table of groups that a kernel counted to a worker's.
    pub fn absorb_hashed(&self, worker: &mut Worker, hashed: &HashedGroups<'_>) -> Result<()> {
        let (SinkPlan::Aggregate(plan), SinkState::Aggregate(state)) = (&self.sink, &mut worker.sink) else {
            return Err(Error::internal("only an aggregation takes groups"));
        };
        let steps = self.lookup_steps();
        worker.rows_out += plan.absorb_hashed(state, hashed, &|slot, of, numbers| {
            Ok(match (&self.layout.origins[slot], of) {
                (Origin::Payload { step, .. }, KeyOf::Entry(lookup)) if steps[lookup] == *step => {
                    // 0 is no entry.
                    let entries: Vec<u32> = numbers.iter().map(|entry| (*entry as u32).wrapping_sub(1)).collect();
                    self.payload_of(&Expr::Slot(slot)).map(|payload| Rc::new(fetch_matches(payload, &entries)))
                }
                (Origin::Source(_), KeyOf::Row) => Some(Rc::new(self.source_values(slot, &numbers)?)),
                _ => None,
            })
        })?;
        Ok(())
    }

    /// Fetches the values of a source column at rows that are counted through all parts, null behind the last.
    fn source_values(&self, slot: SlotId, rows: &[u64]) -> Result<Vector> {
        let mut order: Vec<u32> = (0..rows.len() as u32).collect();
        order.sort_unstable_by_key(|at| rows[*at as usize]);
        let mut values = Vector::empty(&self.layout.slots[slot].kind);
        let (mut rest, mut first) = (order.as_slice(), 0u64);
        for part in &self.table.parts {
            let end = first + part.rows as u64;
            let within = rest.partition_point(|at| rows[*at as usize] < end);
            let (here, later) = rest.split_at(within);
            let list: Vec<u32> = here.iter().map(|at| (rows[*at as usize] - first) as u32).collect();
            if !list.is_empty() {
                values.append(&*Frame::list(&self.layout, part, list).vector(slot)?);
            }
            (rest, first) = (later, end);
        }
        if !rest.is_empty() {
            values.append(&Vector::nulls(&self.layout.slots[slot].kind, rest.len()));
        }
        let mut place = vec![0; rows.len()];
        order.iter().zip(0u32..).for_each(|(at, sorted)| place[*at as usize] = sorted);
        Ok(values.take(&place))
    }

    /// Adds the groups that a kernel counted to a worker's.
    pub fn absorb(
        &self,
        worker: &mut Worker,
        numbers: &[i64],
        width: usize,
        accumulators: &[Accumulator],
    ) -> Result<()> {
        match (&self.sink, &mut worker.sink) {
            (SinkPlan::Aggregate(plan), SinkState::Aggregate(state)) => {
                worker.rows_out += plan.absorb(state, numbers, width, accumulators)?;
                Ok(())
            }
            _ => Err(Error::internal("only an aggregation takes groups")),
        }
    }

    /// Tells how many integer keys a build has that a device may lay out, and whether only their existence matters; `None` if
    /// only the processor lays it out.
    pub fn wants_layout(&self) -> Option<(usize, bool)> {
        let SinkPlan::Build { keys, payload, kinds, used } = &self.sink else { return None };
        let integers = kinds[..keys.len()].iter().all(|kind| matches!(kind.repr(), Repr::Int | Repr::Boolean));
        let layout = (keys.len(), payload.is_empty() && used.existence);
        (integers && !keys.is_empty() && !used.collide).then_some(layout)
    }

    /// Notes that rows come in the order of the build's only key, and so do all rows that look it up: a device need not hash.
    pub fn merge(&mut self) {
        if let SinkPlan::Build { used, .. } = &mut self.sink {
            used.merge = true;
        }
    }

    /// Tells whether a device lays the build out in the order of its only key.
    pub fn merges(&self) -> bool {
        matches!(&self.sink, SinkPlan::Build { used, .. } if used.merge)
    }

    /// Packs keys of such ranges into 64 bits, if they fit; tells whether null keys match, and whether rows with null keys
    /// that do not are kept, behind all others.
    pub fn packing(&self, ranges: &[(i64, i64)]) -> Option<(Vec<Packed>, bool, bool)> {
        let SinkPlan::Build { used, .. } = &self.sink else { return None };
        packing(ranges).map(|packing| (packing, used.null_equals_null, used.outer))
    }

    /// Returns how many values from `min` on get a place; `None` if they are too far apart, or nulls must be kept.
    pub fn places(&self, keyed: usize, null_key: bool, min: i64, max: i64) -> Option<usize> {
        let SinkPlan::Build { keys, payload, used, .. } = &self.sink else { return None };
        if keys.len() != 1 {
            return None;
        }
        let kept = null_key && (used.null_equals_null || used.outer);
        dense_domain(keyed, min, max, payload.is_empty() && used.existence).filter(|_| !kept)
    }

    /// Tells whether codes of text mean the same in all parts, for every value that is collected.
    pub fn shares_dictionaries(&self, parts: &[usize]) -> bool {
        self.collected().iter().all(|expr| {
            let mut all = parts.iter().map(|part| self.dictionary(expr, *part));
            let first = all.next().flatten();
            all.all(|other| match (&first, &other) {
                (Some(first), Some(other)) => Arc::ptr_eq(first, other),
                (None, None) => true,
                _ => false,
            })
        })
    }

    /// Returns the type of a payload column of the build.
    pub fn payload_kind(&self, payload: usize) -> Option<&tandem_column::Type> {
        match &self.sink {
            SinkPlan::Build { keys, kinds, .. } => kinds.get(keys.len() + payload),
            _ => None,
        }
    }

    /// Makes a payload column of the build, with the range of its numbers.
    pub fn payload_column(
        &self,
        payload: usize,
        parts: &[usize],
        entries: usize,
        arranged: Arranged,
    ) -> Result<(Column, Option<(i64, i64)>)> {
        let SinkPlan::Build { keys, kinds, .. } = &self.sink else { return Err(Error::internal("no build")) };
        let (at, kind) = (keys.len() + payload, &kinds[keys.len() + payload]);
        let expr = &self.collected()[at];
        Ok(match arranged {
            Arranged::Floats(values, validity) => (Column::from_f64(values, validity), None),
            Arranged::Codes { codes, base, validity } if kind.repr() == Repr::Bytes => {
                let missing = || Error::internal("codes without words");
                let dictionary = self.dictionary(expr, parts.first().copied().unwrap_or(0)).ok_or_else(missing)?;
                debug_assert_eq!(base, 0, "codes of text are as they are");
                (Column::from_codes(kind.clone(), codes, dictionary, validity), None)
            }
            Arranged::Codes { codes, base, validity } => {
                (Column::from_offsets(kind.clone(), base, codes, validity), None)
            }
            Arranged::Rows(collected, entry_of) => {
                let vector = self.vector(expr, parts, collected)?;
                let (rows, places) = entry_of
                    .iter()
                    .enumerate()
                    .filter(|(_, entry)| **entry != u32::MAX)
                    .map(|(r, e)| (r as u32, *e))
                    .unzip();
                arrange(&vector, kind, &Order::Some { rows, places, entries })
            }
        })
    }

    /// Gives a worker the build that a device laid out.
    pub fn laid_out(&self, worker: &mut Worker, build: LaidOut) {
        worker.rows_out += build.rows as u64;
        let counter = worker.counters.last_mut().expect("the sink has a counter");
        counter.rows_in += build.rows as u64;
        worker.built = Some(Build::laid_out(build));
    }
}

/// Returns which values are not null, if some are.
fn valid(nulls: Option<Vec<u8>>) -> Option<Vec<u8>> {
    nulls.filter(|nulls| nulls.contains(&1)).map(|nulls| nulls.iter().map(|null| 1 - null).collect())
}
