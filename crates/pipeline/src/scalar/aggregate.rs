//! Aggregates one value at a time: the accumulator behind every group of the interpreter.
//!
//! Sums are exact in 256 bits and checked once, at the end, so that their order never matters. Floats are summed as
//! they come; variance is Welford's, merged by Chan's rule. Pairs are in `pairs`, quantiles in `quantile`.

use arrow_buffer::i256;
use hashbrown::HashSet;
use tandem_column::{Result, Type};

use super::{compare, decimal, fault, number, pairs::PairMoments, quantile, sketch::Sketch};
use crate::{Aggregate, AggregateFunction, Overflow, SortKey, Value};

/// The running state of one aggregate of one group.
#[derive(Clone, Debug)]
pub struct Accumulator {
    function: AggregateFunction,
    argument: Type,
    kind: Type,
    overflow: Overflow,
    distinct: Option<HashSet<Value>>,
    count: i64,
    total: i256,
    sum: f64,
    moments: Moments,
    pairs: PairMoments,
    chosen: Option<Value>,
    parameter: Value,
    order: Vec<SortKey>,
    /// All values, each behind what it is ordered by, where all are needed at once.
    collected: Vec<(Vec<Value>, Value)>,
    sketch: Sketch,
}

/// Count, mean and summed squared differences from it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Moments {
    /// How many values there were.
    pub count: i64,
    /// Their mean.
    pub mean: f64,
    /// The sum of their squared differences from the mean.
    pub squares: f64,
}

impl Moments {
    /// Takes one more value in.
    pub fn update(&mut self, value: f64) {
        self.count += 1;
        let before = value - self.mean;
        self.mean += before / self.count as f64;
        self.squares += before * (value - self.mean);
    }

    /// Takes the values of another state in.
    pub fn merge(&mut self, other: Moments) {
        if other.count == 0 {
            return;
        }
        if self.count == 0 {
            *self = other;
            return;
        }
        let (left, right) = (self.count as f64, other.count as f64);
        let delta = other.mean - self.mean;
        self.mean = (left * self.mean + right * other.mean) / (left + right);
        self.squares += other.squares + delta * delta * left * right / (left + right);
        self.count += other.count;
    }

    /// Returns the variance, of a sample or of the whole population; `None` for too few values.
    pub fn variance(&self, sample: bool) -> Option<f64> {
        match (self.count, sample) {
            (0, _) | (1, true) => None,
            (count, true) => Some(self.squares / (count - 1) as f64),
            (count, false) => Some(self.squares / count as f64),
        }
    }
}

impl Accumulator {
    /// Makes the state of no rows; `argument` is the type of the argument (in the final phase: of the first state).
    pub fn new(aggregate: &Aggregate, argument: Option<&Type>) -> Accumulator {
        Accumulator {
            function: aggregate.function,
            argument: argument.cloned().unwrap_or(Type::Null),
            kind: aggregate.kind.clone(),
            overflow: aggregate.overflow,
            distinct: aggregate.distinct.then(HashSet::new),
            count: 0,
            total: i256::ZERO,
            sum: 0.0,
            moments: Moments::default(),
            pairs: PairMoments::default(),
            chosen: None,
            parameter: aggregate.parameter.clone(),
            order: aggregate.order.clone(),
            collected: Vec::new(),
            sketch: Sketch::default(),
        }
    }

    /// Makes the state of `count` contributing rows whose exact sum is `total`, as an executor has it.
    pub fn of_total(aggregate: &Aggregate, argument: &Type, total: i128, count: i64) -> Accumulator {
        let empty = Accumulator::new(aggregate, Some(argument));
        Accumulator { total: i256::from_i128(total), count, distinct: None, ..empty }
    }

    /// Makes the state of rows with these moments, as an executor has it.
    pub fn of_moments(aggregate: &Aggregate, argument: &Type, moments: Moments) -> Accumulator {
        let empty = Accumulator::new(aggregate, Some(argument));
        Accumulator { moments, count: moments.count, distinct: None, ..empty }
    }

    /// Takes a pair in: of the argument, which is not null, and of another of some type.
    pub fn update_pair(&mut self, y: &Value, x: &Value, x_type: &Type) -> Result<()> {
        if !y.is_null() && !x.is_null() {
            self.pairs.update(number::to_float(y, &self.argument)?, number::to_float(x, x_type)?);
        }
        Ok(())
    }

    /// Takes a row's argument in (for `CountRows`, anything).
    pub fn update(&mut self, value: &Value) -> Result<()> {
        self.update_ordered(value, Vec::new())
    }

    /// Takes a row's argument in, with what the row is ordered by.
    pub fn update_ordered(&mut self, value: &Value, by: Vec<Value>) -> Result<()> {
        use AggregateFunction::*;
        if value.is_null() && !matches!(self.function, CountRows | First | Nth) {
            return Ok(());
        }
        if let Some(seen) = &mut self.distinct
            && !seen.insert(value.clone())
        {
            return Ok(());
        }
        self.count += 1;
        match self.function {
            CountRows | Count => {}
            Sum | Average => self.add(value)?,
            VarianceSample | VariancePopulation | DeviationSample | DeviationPopulation => {
                self.moments.update(number::to_float(value, &self.argument)?);
            }
            Min | Max | BoolAnd | BoolOr | First => self.choose(value),
            BitAnd | BitOr | BitXor => self.combine(value),
            Median | Quantile | QuantileDiscrete | Nth | JoinText => self.collected.push((by, value.clone())),
            CountApproximate => self.sketch.add(value),
            pairs => return Err(fault::misfit(pairs.name(), value)),
        }
        Ok(())
    }

    /// Takes the states of a partial aggregation in, laid out as [`AggregateFunction::state`] says.
    pub fn merge(&mut self, states: &[Value]) -> Result<()> {
        use AggregateFunction::*;
        let count = |value: &Value| i64::try_from(value.as_integer().unwrap_or(0)).unwrap_or(0);
        match (self.function, states) {
            (CountRows | Count, [counted]) => self.count += count(counted),
            (Average, [sum, counted]) => {
                if !sum.is_null() {
                    self.add(sum)?;
                }
                self.count += count(counted);
            }
            (Sum, [sum]) if sum.is_null() => {}
            (Sum, [sum]) => {
                self.count += 1;
                self.add(sum)?;
            }
            (Min | Max | BoolAnd | BoolOr | First, [value]) => {
                if !value.is_null() {
                    self.choose(value);
                }
            }
            (BitAnd | BitOr | BitXor, [value]) => {
                if !value.is_null() {
                    self.combine(value);
                }
            }
            (_, [counted, mean_y, mean_x, squares_y, squares_x, products]) => self.pairs.merge(PairMoments {
                count: count(counted),
                mean_y: mean_y.as_float().unwrap_or(0.0),
                mean_x: mean_x.as_float().unwrap_or(0.0),
                squares_y: squares_y.as_float().unwrap_or(0.0),
                squares_x: squares_x.as_float().unwrap_or(0.0),
                products: products.as_float().unwrap_or(0.0),
            }),
            (_, [counted, mean, squares]) => self.moments.merge(Moments {
                count: count(counted),
                mean: mean.as_float().unwrap_or(0.0),
                squares: squares.as_float().unwrap_or(0.0),
            }),
            (_, states) => return Err(fault::misfit("a final aggregate", states.first().unwrap_or(&Value::Null))),
        }
        Ok(())
    }

    /// Combines the bits of an integer with those before.
    fn combine(&mut self, value: &Value) {
        let (value, before) = (value.as_integer().unwrap_or(0), self.chosen.as_ref().and_then(Value::as_integer));
        let combined = match (self.function, before) {
            (_, None) => value,
            (AggregateFunction::BitAnd, Some(before)) => before & value,
            (AggregateFunction::BitOr, Some(before)) => before | value,
            (_, Some(before)) => before ^ value,
        };
        self.chosen = Some(Value::Integer(combined));
    }

    /// Adds to the sum: exactly, unless floats are summed or averaged.
    fn add(&mut self, value: &Value) -> Result<()> {
        match value {
            Value::Integer(integer) if self.exact() => {
                self.total = self.total.wrapping_add(i256::from_i128(*integer));
            }
            other => self.sum += number::to_float(other, &self.argument)?,
        }
        Ok(())
    }

    /// Tells whether the sum is held exactly.
    fn exact(&self) -> bool {
        match self.function {
            AggregateFunction::Average => {
                matches!(self.argument, Type::Decimal { .. }) && matches!(self.kind, Type::Decimal { .. })
            }
            _ => !self.argument.is_float() && !self.kind.is_float(),
        }
    }

    /// Keeps the value that the function chooses of it and the one before.
    fn choose(&mut self, value: &Value) {
        let Some(before) = &self.chosen else {
            self.chosen = Some(value.clone());
            return;
        };
        let better = match self.function {
            AggregateFunction::Min | AggregateFunction::BoolAnd => compare::order(value, before).is_lt(),
            AggregateFunction::Max | AggregateFunction::BoolOr => compare::order(value, before).is_gt(),
            _ => false,
        };
        if better {
            self.chosen = Some(value.clone());
        }
    }

    /// Brings the exact sum to a type.
    fn total(&self, kind: &Type) -> Result<Value> {
        let total = self.total.to_i128();
        let fitting = match (kind, &self.argument) {
            (Type::Decimal { precision, scale }, Type::Decimal { scale: from, .. }) => {
                total.and_then(|total| decimal::rescale(total, *from, *scale, *precision, decimal::Rounding::HalfAway))
            }
            (Type::Decimal { precision, scale }, _) => {
                total.and_then(|total| decimal::rescale(total, 0, *scale, *precision, decimal::Rounding::HalfAway))
            }
            _ => total.filter(|total| Value::Integer(*total).fits(kind)),
        };
        match (fitting, self.overflow, kind.integer_range()) {
            (Some(total), ..) => Ok(Value::Integer(total)),
            (None, Overflow::Null, _) => Ok(Value::Null),
            (None, Overflow::Wrap, Some((low, high))) => {
                let span = i256::from_i128(high - low + 1);
                let shifted = self.total.wrapping_sub(i256::from_i128(low));
                let wrapped = shifted.checked_rem(span).unwrap_or(i256::ZERO);
                let wrapped = if wrapped < i256::ZERO { wrapped.wrapping_add(span) } else { wrapped };
                Ok(Value::Integer(wrapped.as_i128() + low))
            }
            _ => Err(fault::sum_overflow(kind)),
        }
    }

    /// Returns the state that a later [`Accumulator::merge`] takes in.
    pub fn state(&self) -> Result<Vec<Value>> {
        use AggregateFunction::*;
        let types = self.function.state(&self.argument, &self.kind);
        Ok(match self.function {
            CountRows | Count => vec![Value::Integer(self.count.into())],
            Sum | Average => {
                let sum = match &types[0] {
                    _ if self.count == 0 => Value::Null,
                    kind if self.exact() => self.total(kind)?,
                    kind => number::from_float(self.sum, kind),
                };
                match self.function {
                    Average => vec![sum, Value::Integer(self.count.into())],
                    _ => vec![sum],
                }
            }
            Min | Max | BoolAnd | BoolOr | First | BitAnd | BitOr | BitXor => {
                vec![self.chosen.clone().unwrap_or(Value::Null)]
            }
            Median | Quantile | QuantileDiscrete | Nth | JoinText | CountApproximate => Vec::new(),
            VarianceSample | VariancePopulation | DeviationSample | DeviationPopulation => vec![
                Value::Integer(self.moments.count.into()),
                Value::Float(self.moments.mean),
                Value::Float(self.moments.squares),
            ],
            _ => self.pairs.state(),
        })
    }

    /// Returns the aggregate's value.
    ///
    /// # Errors
    /// If a sum or average does not fit its type and overflow is an error.
    pub fn finish(&self) -> Result<Value> {
        use AggregateFunction::*;
        let float = |value: Option<f64>| value.map_or(Value::Null, |value| number::from_float(value, &self.kind));
        Ok(match self.function {
            CountRows | Count => Value::Integer(self.count.into()),
            Sum | Average if self.count == 0 => Value::Null,
            Sum if self.exact() => self.total(&self.kind)?,
            Sum => float(Some(self.sum)),
            Average if self.exact() => self.average()?,
            Average => float(Some(self.sum / self.count as f64)),
            VarianceSample => float(self.moments.variance(true)),
            VariancePopulation => float(self.moments.variance(false)),
            DeviationSample => float(self.moments.variance(true).map(f64::sqrt)),
            DeviationPopulation => float(self.moments.variance(false).map(f64::sqrt)),
            Min | Max | BoolAnd | BoolOr | First | BitAnd | BitOr | BitXor => {
                self.chosen.clone().unwrap_or(Value::Null)
            }
            Median | Quantile | QuantileDiscrete => {
                let mut values: Vec<Value> = self.collected.iter().map(|(_, value)| value.clone()).collect();
                values.sort_by(compare::order);
                match (self.function, &self.parameter) {
                    (Quantile, Value::Float(fraction)) => quantile::quantile(&values, *fraction, &self.kind),
                    (QuantileDiscrete, Value::Float(fraction)) => {
                        quantile::discrete_place(values.len(), *fraction).map_or(Value::Null, |at| values[at].clone())
                    }
                    _ => quantile::median(&values, &self.kind),
                }
            }
            Nth => self.nth(),
            JoinText => {
                let texts: Vec<&str> = self.in_order().into_iter().filter_map(Value::as_str).collect();
                let between = self.parameter.as_str().unwrap_or("");
                if texts.is_empty() { Value::Null } else { Value::string(texts.join(between)) }
            }
            CountApproximate => Value::Integer(self.sketch.estimate().into()),
            function => float(self.pairs.finish(function)),
        })
    }

    /// Returns all values in the aggregate's order; equal ones as they came.
    fn in_order(&self) -> Vec<&Value> {
        let mut rows: Vec<&(Vec<Value>, Value)> = self.collected.iter().collect();
        rows.sort_by(|(left, _), (right, _)| {
            let keys = self.order.iter().zip(left.iter().zip(right));
            let compared =
                keys.map(|(key, (left, right))| compare::order_nulls(left, right, key.descending, key.nulls_first));
            compared.into_iter().find(|order| order.is_ne()).unwrap_or(std::cmp::Ordering::Equal)
        });
        rows.into_iter().map(|(_, value)| value).collect()
    }

    /// Returns the value at a place of the order.
    fn nth(&self) -> Value {
        let place = self.parameter.as_integer().unwrap_or(1);
        let values = self.in_order();
        let at = if place > 0 { place - 1 } else { values.len() as i128 + place };
        usize::try_from(at).ok().and_then(|at| values.get(at).copied()).cloned().unwrap_or(Value::Null)
    }

    /// Returns the average of decimals.
    fn average(&self) -> Result<Value> {
        let (Type::Decimal { scale: from, .. }, Type::Decimal { precision, scale }) = (&self.argument, &self.kind)
        else {
            return Ok(Value::Null);
        };
        let total = self.total.to_i128();
        let found = total.and_then(|total| decimal::average(total, *from, self.count, *scale, *precision));
        match (found, self.overflow) {
            (Some(found), _) => Ok(Value::Integer(found)),
            (None, Overflow::Null) => Ok(Value::Null),
            (None, _) => Err(fault::sum_overflow(&self.kind)),
        }
    }
}
