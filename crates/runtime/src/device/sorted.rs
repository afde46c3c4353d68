//! Medians, quantiles, and the smallest and largest of wide values: picked from values that are sorted on the device.
//!
//! Values come as ordinals behind the places of their groups (`codegen/src/sorted.rs`). A radix sort makes neighbours of a group's values;
//! where each group begins and ends tells the host which places to read: at most two of each group come back.

use tandem_codegen::{HashKey, KernelSink, ValueGroups};
use tandem_column::{Buffer, Error, Repr, Result, float_order, from_float_order};
use tandem_cpu::{Best, Contribution, Partial};
use tandem_device::{Argument, Memory};
use tandem_pipeline::{AggregateFunction, scalar::quantile};
use tandem_plan::sink::{AggregatePlan, PlannedAggregate};

use super::{
    groups::GROWTH,
    hashed::{HashedGroups, texts_of},
    launch::{DeviceRun, numbers},
    operators::small,
    rows::DeviceRows,
    sink::is_quantile,
    unmatched::Piece,
};

/// The most places of a hash table: what [`super::groups`] allows one of a few numbers.
const MOST_PLACES: usize = 1 << 24;
/// Flipped in ordinals of numbers with a sign.
const SIGN: u64 = 1 << 63;

impl DeviceRun<'_> {
    /// Sorts the values of an aggregate and adds what is picked from them to the contribution.
    pub(super) fn values(&mut self, plan: &AggregatePlan, aggregate: usize, into: &mut Contribution) -> Result<()> {
        let sink = self.sink;
        let KernelSink::Values { groups, .. } = sink else { return Err(Error::internal("no values to sort")) };
        self.describe(
            self.shape(),
            "values counted, places summed up, values written behind the places of their groups",
        );
        let pieces = self.pieces();
        match groups {
            ValueGroups::Places(keys) => {
                let places = keys.iter().map(|key| key.size as usize).product();
                let rows = self.compute(&pieces)?;
                self.pick((plan, aggregate), (&rows, places), None, into)
            }
            ValueGroups::Hashed(keys) => {
                let runs = self.runs_of(keys, &pieces);
                if runs.len() > 1 && is_quantile(&plan.aggregates[aggregate]) {
                    let reason = "medians and quantiles by plain text of several parts are not on the device yet";
                    return Err(Error::unsupported(reason));
                }
                runs.into_iter().try_for_each(|run| self.hashed_values((plan, aggregate), keys, run, into))
            }
        }
    }

    /// Does so for the hashed groups of some pieces, in a larger table as long as it is too small.
    fn hashed_values(
        &mut self,
        of: (&AggregatePlan, usize),
        keys: &[HashKey],
        pieces: &[Piece],
        into: &mut Contribution,
    ) -> Result<()> {
        let mut places = self.first_places(pieces);
        loop {
            if places > MOST_PLACES {
                return Err(Error::unsupported("there are too many groups of sorted values for the device"));
            }
            let hashed = self.empty_hash_table((keys, &texts_of(keys)), places, pieces)?;
            let rows = self.compute(pieces)?;
            if !self.is_full()? {
                return self.pick(of, (&rows, places), Some(hashed), into);
            }
            places *= GROWTH;
        }
    }

    /// Sorts values and adds what is picked from those of each group.
    fn pick(
        &mut self,
        (plan, aggregate): (&AggregatePlan, usize),
        (rows, places): (&DeviceRows, usize),
        hashed: Option<HashedGroups>,
        into: &mut Contribution,
    ) -> Result<()> {
        if rows.count == 0 {
            return Ok(());
        }
        let planned = &plan.aggregates[aggregate];
        let order = self.sort(&rows.ordinals, rows.count)?;
        let (starts, ends) = self.segments(rows, &order, places)?;
        let groups = into.contents.groups()?;
        let (met, numbered): (Vec<usize>, Vec<u32>) = match &hashed {
            None => (0..places).filter(|place| ends[*place] > 0).map(|place| (place, place as u32)).unzip(),
            Some(hashed) => {
                let from: Vec<(&Memory, usize, usize)> =
                    hashed.memories().map(|memory| (memory, 0, places * 8)).collect();
                let tables: Vec<Vec<i64>> = self.read_each(&from)?.iter().map(|bytes| numbers(bytes)).collect();
                hashed.number_groups(plan, self.job, &tables, groups)?
            }
        };
        let picks = met.iter().zip(numbered).filter_map(|(place, group)| {
            Some((group, Picked::new(planned, starts[*place] as usize, ends[*place] as usize)?))
        });
        let picks: Vec<(u32, Picked)> = picks.collect();
        let positions: Buffer<u32> = picks.iter().flat_map(|(_, pick)| [pick.low as u32, pick.high as u32]).collect();
        let values = self.values_at(&rows.ordinals[1..], &order, positions)?;
        for ((group, pick), values) in picks.iter().zip(values.chunks_exact(2)) {
            if hashed.is_none() {
                groups.meet(*group as usize);
            }
            pick.add(planned, (values[0], values[1]), &mut |partial| groups.add(aggregate, *group as usize, partial));
        }
        groups.reserve()
    }

    /// Finds where the rows of each group, or partition, begin and end in an order by their numbers, of which there are `places`: where
    /// both are equal there are none.
    pub(super) fn segments(
        &mut self,
        rows: &DeviceRows,
        order: &Memory,
        places: usize,
    ) -> Result<(Vec<u32>, Vec<u32>)> {
        let (starts, ends) = (self.filled(places * 4, 0)?, self.filled(places * 4, 0)?);
        let (count, group) = (Argument::U32(small(rows.count)?), Argument::Memory(&rows.ordinals[0]));
        let (first, last) = (Argument::Memory(&starts), Argument::Memory(&ends));
        self.operate("find_segments", &[group, Argument::Memory(order), count, first, last], self.shape())?;
        Ok((self.read_places(&starts, places)?, self.read_places(&ends, places)?))
    }

    /// Returns the values at some positions of an order, as integers in their order.
    fn values_at(&mut self, ordinals: &[Memory], order: &Memory, positions: Buffer<u32>) -> Result<Vec<i128>> {
        let count = positions.len();
        let positions = self.place_bytes(positions.bytes())?;
        let rows = self.gather(order, &positions, count, 4)?;
        let mut halves = Vec::with_capacity(ordinals.len());
        for ordinal in ordinals {
            let picked = self.gather(ordinal, &rows, count, 8)?;
            halves.push(self.read_numbers(&picked, count)?);
        }
        let signed = |ordinal: &i64| i128::from((*ordinal as u64 ^ SIGN) as i64);
        match halves.as_slice() {
            [all] => Ok(all.iter().map(signed).collect()),
            [high, low] => {
                Ok(high.iter().zip(low).map(|(high, low)| signed(high) << 64 | *low as u64 as i128).collect())
            }
            _ => Err(Error::internal("a value has one ordinal, or two")),
        }
    }
}

/// The places among all values that an aggregate of a group is told from.
struct Picked {
    low: usize,
    high: usize,
    /// How far it is from the first to the second.
    weight: f64,
    /// How many values the group has.
    count: usize,
}

impl Picked {
    /// Chooses among the values from `start` on, before `end`; `None` if there are none.
    fn new(planned: &PlannedAggregate, start: usize, end: usize) -> Option<Picked> {
        let count = end.checked_sub(start).filter(|count| *count > 0)?;
        let (low, high, weight) = match planned.aggregate.function {
            AggregateFunction::Median => quantile::middle(count).map(|(low, high)| (low, high, 0.5))?,
            AggregateFunction::Quantile => {
                quantile::place(count, planned.aggregate.parameter.as_float().unwrap_or(0.5))?
            }
            AggregateFunction::Min => (0, 0, 0.0),
            _ => (count - 1, count - 1, 0.0),
        };
        Some(Picked { low: start + low, high: start + high, weight, count })
    }

    /// Adds the aggregate of values at these places.
    fn add(&self, planned: &PlannedAggregate, (low, high): (i128, i128), add: &mut dyn FnMut(Partial<'_>)) {
        match planned.aggregate.function {
            _ if self.low == self.high && is_quantile(planned) => add(Partial::Values(&[low])),
            AggregateFunction::Median => add(Partial::Values(&[low, high])),
            AggregateFunction::Quantile => {
                let float = |order: i128| from_float_order(order as i64);
                let kind = &planned.aggregate.kind;
                let value = quantile::between(float(low), float(high), self.weight, kind);
                debug_assert!(planned.argument.repr() == Repr::Float, "quantiles are of floats");
                add(Partial::Values(&[float_order(value).into()]));
            }
            _ => add(Partial::Best { best: Best::Wide(low), count: self.count as i64 }),
        }
    }
}
