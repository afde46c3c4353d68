//! The values of each group, for aggregates that need them in an order: values by place, joined texts.
//!
//! All groups share one list of rows, each with the number of its group. It is put in the order of groups (`seal`) when groups are
//! set aside and before they are merged, so that a group's rows are a run; results are computed of runs. Where only the first or the
//! last row of each group is wanted, those that cannot be it are left out as they come (`ends`).

use std::{cmp::Ordering, ops::Range, rc::Rc};

use tandem_column::{Error, Result, Type};
use tandem_pipeline::{Aggregate, AggregateFunction, SortKey, Value, scalar::quantile};

use super::{accumulator::GroupOf, ends::Ends};
use crate::{BytesVector, Values, Vector, sink::order::compare};

/// The rows of all groups.
#[derive(Debug)]
pub(super) struct Collected {
    /// The group of each row.
    groups: Vec<u32>,
    /// Of each row: the argument, what it is ordered by, and, where order matters, when it came.
    columns: Vec<Vector>,
    ordered: bool,
    /// How many groups there are.
    size: usize,
    /// The first row of each group, and the number of rows, while rows lie group by group.
    starts: Vec<usize>,
    ends: Option<Ends>,
}

impl Collected {
    pub(super) fn new(aggregate: &Aggregate, argument: &Type) -> Collected {
        let ordered = aggregate.function.is_ordered();
        // Others than the argument take the representation of what comes.
        let by = aggregate.order.len() + usize::from(ordered);
        let columns = [argument].into_iter().chain(std::iter::repeat_n(&Type::Int64, by)).map(Vector::empty).collect();
        let ends = Ends::new(aggregate);
        Collected { groups: Vec::new(), columns, ordered, size: 0, starts: Vec::new(), ends }
    }

    /// Makes room for so many groups.
    pub(super) fn resize(&mut self, groups: usize) {
        self.size = groups;
    }

    /// Adds rows, the first of which came at a time: the argument, and what it is ordered by.
    pub(super) fn push(
        &mut self,
        aggregate: &Aggregate,
        groups: GroupOf<'_>,
        rows: usize,
        vectors: &[Rc<Vector>],
        mask: Option<&[u8]>,
        came: u64,
    ) {
        self.starts.clear();
        let mut chosen: Option<Vec<u32>> =
            mask.map(|mask| (0..rows as u32).filter(|row| mask[*row as usize] != 0).collect());
        if let Some(ends) = &mut self.ends {
            let at_end = ends.select(aggregate, groups, rows, chosen.as_deref(), (vectors.get(1), came));
            match at_end {
                Some(at_end) => chosen = Some(at_end),
                None => self.ends = None,
            }
        }
        match &chosen {
            Some(chosen) => self.groups.extend(chosen.iter().map(|row| groups.of(*row as usize) as u32)),
            None => self.groups.extend((0..rows).map(|row| groups.of(row) as u32)),
        }
        for (column, vector) in self.columns.iter_mut().zip(vectors) {
            match &chosen {
                Some(chosen) => column.append(&vector.take(chosen)),
                None => column.append(vector),
            }
        }
        if let Some(Vector { values: Values::Int(times), .. }) = self.columns.last_mut().filter(|_| self.ordered) {
            match &chosen {
                Some(chosen) => times.extend(chosen.iter().map(|row| (came + u64::from(*row)) as i64)),
                None => times.extend((came..came + rows as u64).map(|time| time as i64)),
            }
        }
        // Looking at all groups pays where there are as many rows.
        if self.ends.as_ref().is_some_and(|ends| self.groups.len() >= ends.next_cut.max(2 * self.size)) {
            self.cut(aggregate);
        }
    }

    /// Drops rows that are no longer the first or last of their group.
    fn cut(&mut self, aggregate: &Aggregate) {
        let Value::Integer(place) = aggregate.parameter else { return };
        self.seal();
        let runs = (0..self.size).map(|group| self.run(group));
        let kept: Vec<u32> = self.rows_at(aggregate, place, runs).into_iter().flatten().collect();
        self.columns.iter_mut().for_each(|column| *column = column.take(&kept));
        self.groups = kept.iter().map(|row| self.groups[*row as usize]).collect();
        self.starts.clear();
        self.ends.iter_mut().for_each(|ends| ends.next_cut = Ends::CUT_FROM.max(4 * kept.len()));
    }

    /// Puts groups in another order, or keeps some: those of these numbers.
    pub(super) fn arrange(&mut self, groups: &[u32]) {
        let mut numbers = vec![0; self.size];
        groups.iter().enumerate().for_each(|(number, group)| numbers[*group as usize] = number as u32);
        self.groups.iter_mut().for_each(|group| *group = numbers[*group as usize]);
        self.size = groups.len();
        self.starts.clear();
        self.seal();
    }

    /// Puts rows in the order of their groups.
    pub(super) fn seal(&mut self) {
        if self.starts.len() == self.size + 1 {
            return;
        }
        let mut starts = vec![0usize; self.size + 1];
        self.groups.iter().for_each(|group| starts[*group as usize + 1] += 1);
        (0..self.size).for_each(|group| starts[group + 1] += starts[group]);
        if !self.groups.is_sorted() {
            let (mut next, mut order) = (starts.clone(), vec![0u32; self.groups.len()]);
            for (row, group) in self.groups.iter().enumerate() {
                let next = &mut next[*group as usize];
                order[*next] = row as u32;
                *next += 1;
            }
            self.columns.iter_mut().for_each(|column| *column = column.take(&order));
            self.groups = order.iter().map(|row| self.groups[*row as usize]).collect();
        }
        self.starts = starts;
    }

    /// Adds rows of groups of another list, which lies group by group: its group `from` becomes group `to` for each pair.
    pub(super) fn merge(&mut self, other: &Collected, pairs: &[(u32, u32)]) {
        self.starts.clear();
        let mut rows: Vec<u32> = Vec::new();
        for (from, to) in pairs {
            let run = other.run(*from as usize);
            self.groups.extend(std::iter::repeat_n(*to, run.len()));
            rows.extend(run.start as u32..run.end as u32);
        }
        // Columns of no rows may not have the representation of others yet.
        if !rows.is_empty() {
            self.columns.iter_mut().zip(&other.columns).for_each(|(column, more)| column.append(&more.take(&rows)));
        }
    }

    /// Returns the rows of a group.
    fn run(&self, group: usize) -> Range<usize> {
        self.starts[group]..self.starts[group + 1]
    }

    /// Checks that rows can be numbered.
    ///
    /// # Errors
    /// Exhausted, beyond 2^32 rows of a worker.
    pub(super) fn check(&self) -> Result<()> {
        if self.groups.len() <= u32::MAX as usize {
            return Ok(());
        }
        Err(Error::exhausted("too many values for one text or place: group rows by more, or filter them"))
    }

    pub(super) fn byte_len(&self) -> usize {
        let columns: usize = self.columns.iter().map(Vector::held_bytes).sum();
        columns + self.groups.len() * 4 + self.starts.len() * 8 + self.ends.as_ref().map_or(0, Ends::byte_len)
    }

    /// Returns the results of some groups; rows lie group by group.
    pub(super) fn finish(&self, aggregate: &Aggregate, groups: &[u32]) -> Vector {
        let runs = groups.iter().map(|group| self.run(*group as usize));
        match (aggregate.function, &aggregate.parameter) {
            (AggregateFunction::Nth, Value::Integer(place)) => {
                self.values_of(self.rows_at(aggregate, *place, runs), aggregate)
            }
            (AggregateFunction::QuantileDiscrete, Value::Float(fraction)) => {
                self.values_of(self.rows_of_quantiles(*fraction, runs), aggregate)
            }
            (_, between) => self.join(aggregate, between.as_str().unwrap_or(""), runs),
        }
    }

    /// Returns the row at a place of each run's order.
    fn rows_at(
        &self,
        aggregate: &Aggregate,
        place: i128,
        runs: impl Iterator<Item = Range<usize>>,
    ) -> Vec<Option<u32>> {
        let order = self.order(aggregate);
        let row = |run: Range<usize>| {
            let count = run.len();
            let at = if place > 0 { place - 1 } else { count as i128 + place };
            let at = usize::try_from(at).ok().filter(|at| *at < count)?;
            let places = run.start as u32..run.end as u32;
            match at {
                0 => places.min_by(|left, right| order(*left, *right)),
                at if at == count - 1 => places.max_by(|left, right| order(*left, *right)),
                at => {
                    let mut places: Vec<u32> = places.collect();
                    Some(*places.select_nth_unstable_by(at, |left, right| order(*left, *right)).1)
                }
            }
        };
        runs.map(row).collect()
    }

    /// Returns the row at a fraction of the values of each run, in their order.
    fn rows_of_quantiles(&self, fraction: f64, runs: impl Iterator<Item = Range<usize>>) -> Vec<Option<u32>> {
        let argument = &self.columns[0];
        let row = |run: Range<usize>| {
            let at = quantile::discrete_place(run.len(), fraction)?;
            let mut rows: Vec<u32> = (run.start as u32..run.end as u32).collect();
            let compare =
                |left: &u32, right: &u32| compare::plain((argument, *left as usize), (argument, *right as usize));
            Some(*rows.select_nth_unstable_by(at, compare).1)
        };
        runs.map(row).collect()
    }

    /// Returns the values at rows, null where there is none.
    fn values_of(&self, rows: Vec<Option<u32>>, aggregate: &Aggregate) -> Vector {
        if self.groups.is_empty() {
            return Vector::nulls(&aggregate.kind, rows.len());
        }
        let mut values = self.columns[0].take(&rows.iter().map(|row| row.unwrap_or(0)).collect::<Vec<_>>());
        if rows.contains(&None) {
            let valid = values.valid.get_or_insert_with(|| vec![1; rows.len()]);
            valid.iter_mut().zip(rows).for_each(|(valid, row)| *valid &= u8::from(row.is_some()));
        }
        values
    }

    /// Returns the texts of each group, one behind the other.
    fn join(&self, aggregate: &Aggregate, between: &str, runs: impl Iterator<Item = Range<usize>>) -> Vector {
        let order = self.order(aggregate);
        let (mut texts, mut valid) = (BytesVector::default(), Vec::new());
        for run in runs {
            valid.push(u8::from(!run.is_empty()));
            let mut rows: Vec<u32> = (run.start as u32..run.end as u32).collect();
            rows.sort_unstable_by(|left, right| order(*left, *right));
            texts.push_with(|text| {
                for (number, row) in rows.iter().enumerate() {
                    if number > 0 {
                        text.extend_from_slice(between.as_bytes());
                    }
                    text.extend_from_slice(self.columns[0].values.bytes(*row as usize));
                }
            });
        }
        Vector { values: Values::Bytes(texts), valid: valid.contains(&0).then_some(valid) }
    }

    /// Returns the order of rows: by the aggregate's keys, then as they came.
    fn order(&self, aggregate: &Aggregate) -> impl Fn(u32, u32) -> Ordering {
        let mut keys = aggregate.order.clone();
        keys.push(SortKey { slot: 0, descending: false, nulls_first: false });
        let vectors: Vec<&Vector> = self.columns[1..].iter().collect();
        move |left, right| compare::rows(&keys, &vectors, left as usize, right as usize)
    }
}
