//! What comes out of the states of groups: results, or states for a final aggregation.

use tandem_column::{Repr, Result, Type};
use tandem_pipeline::{
    Aggregate, AggregateFunction, Value,
    scalar::{aggregate::Accumulator as Scalar, decimal::power_of_ten, pairs::PairMoments},
};

use super::accumulator::{GroupAccumulators, State};
use crate::{BytesVector, Values, Vector};

impl GroupAccumulators {
    /// Returns the results of some groups; `counts` are those of the accumulator that counts the same rows, or its own.
    pub(super) fn finish(&self, counts: &[i64], groups: &[u32]) -> Result<Vector> {
        self.finish_as(self.aggregate.function, &self.aggregate.kind, counts, groups)
    }

    /// Returns the results of some groups as those of a function, of a type.
    fn finish_as(&self, function: AggregateFunction, kind: &Type, counts: &[i64], groups: &[u32]) -> Result<Vector> {
        use AggregateFunction as F;
        let pick = groups.iter().map(|g| *g as usize);
        let count = |g: usize| counts.get(g).copied().unwrap_or(1);
        let valid: Vec<u8> = pick.clone().map(|g| (count(g) > 0) as u8).collect();
        let values = match (&self.state, function) {
            (State::Count, _) => return Ok(Vector::new(Values::Int(pick.map(|g| counts[g]).collect()))),
            (State::First(first), _) => {
                let values: Vec<Value> = pick.map(|g| first[g].clone().unwrap_or(Value::Null)).collect();
                return Ok(Vector::from_values(kind, &values));
            }
            (State::Float(sums), F::Average) => {
                Values::Float(pick.map(|g| sums[g] / counts[g] as f64).map(|v| round(v, kind)).collect())
            }
            (State::Float(sums), _) => Values::Float(pick.map(|g| round(sums[g], kind)).collect()),
            (State::Best(best), _) if *kind == Type::Boolean => {
                Values::Boolean(pick.map(|g| (best[g] == 1) as u8).collect())
            }
            (State::Best(best), _) => Values::Int(pick.map(|g| if count(g) > 0 { best[g] } else { 0 }).collect()),
            (State::BestWide(best), _) => Values::Wide(pick.map(|g| best[g]).collect()),
            (State::BestFloat(best), _) => Values::Float(pick.map(|g| best[g]).collect()),
            (State::BestBytes(best), _) => Values::Bytes(pick.map(|g| best[g].as_slice()).collect::<BytesVector>()),
            (State::Bits(bits), _) => {
                let value = |g: usize| if count(g) > 0 { bits[g] } else { 0 };
                match kind.repr() {
                    Repr::Wide => Values::Wide(pick.map(value).collect()),
                    _ => Values::Int(pick.map(|g| value(g) as i64).collect()),
                }
            }
            (State::Sketches(sketches), _) => {
                return Ok(Vector::new(Values::Int(pick.map(|g| sketches[g].estimate()).collect())));
            }
            (State::Quantiles(quantiles), _) => return quantiles.finish(kind, groups),
            (State::Collected(collected), _) => return Ok(collected.finish(&self.aggregate, groups)),
            (State::Pairs(pairs), _) => {
                let found: Vec<Option<f64>> = pick.map(|g| pairs[g].finish(function)).collect();
                let valid: Vec<u8> = found.iter().map(|found| u8::from(found.is_some())).collect();
                let values = Values::Float(found.into_iter().map(Option::unwrap_or_default).collect());
                return Ok(Vector { values, valid: valid.contains(&0).then_some(valid) });
            }
            (State::Spread(spread), _) => {
                let result = |g: usize| Scalar::of_moments(&self.aggregate, &self.argument, spread[g]).finish();
                return Ok(Vector::from_values(kind, &pick.map(result).collect::<Result<Vec<_>>>()?));
            }
            (State::Int(_) | State::Wide(_), _) => {
                let sum = |g: usize| match &self.state {
                    State::Int(sums) => i128::from(sums[g]),
                    // No type holds what leaves 128 bits.
                    State::Wide(sums) => sums[g].to_i128().unwrap_or(i128::MAX),
                    _ => 0,
                };
                if function == F::Sum
                    && let Some(values) = plain_sums(pick.clone().map(sum), &self.argument, kind)
                {
                    return Ok(Vector { values, valid: valid.contains(&0).then_some(valid) });
                }
                let aggregate = Aggregate { function, kind: kind.clone(), ..self.aggregate.clone() };
                // A sum without counts contributed at least once.
                let result = |g: usize| Scalar::of_total(&aggregate, &self.argument, sum(g), count(g)).finish();
                let values = pick.map(result).collect::<Result<Vec<Value>>>()?;
                return Ok(Vector::from_values(kind, &values));
            }
        };
        Ok(Vector { values, valid: valid.contains(&0).then_some(valid) })
    }

    /// Returns the states of some groups, as [`AggregateFunction::state`] lays them out for a final aggregation.
    pub(super) fn states(&self, counts: &[i64], groups: &[u32]) -> Result<Vec<Vector>> {
        let pick = groups.iter().map(|g| *g as usize);
        match (&self.state, self.aggregate.function) {
            (State::Spread(spread), _) => Ok(vec![
                Vector::new(Values::Int(pick.clone().map(|g| spread[g].count).collect())),
                Vector::new(Values::Float(pick.clone().map(|g| spread[g].mean).collect())),
                Vector::new(Values::Float(pick.map(|g| spread[g].squares).collect())),
            ]),
            (State::Pairs(pairs), _) => {
                let floats = |of: fn(&PairMoments) -> f64| {
                    Vector::new(Values::Float(pick.clone().map(|g| of(&pairs[g])).collect()))
                };
                Ok(vec![
                    Vector::new(Values::Int(pick.clone().map(|g| pairs[g].count).collect())),
                    floats(|pair| pair.mean_y),
                    floats(|pair| pair.mean_x),
                    floats(|pair| pair.squares_y),
                    floats(|pair| pair.squares_x),
                    floats(|pair| pair.products),
                ])
            }
            (_, AggregateFunction::Average) => {
                // The state of an average is a sum of its own type, and the count.
                let kind = self.aggregate.function.state(&self.argument, &self.aggregate.kind).swap_remove(0);
                let counted = pick.map(|g| counts[g]).collect();
                let sums = self.finish_as(AggregateFunction::Sum, &kind, counts, groups)?;
                Ok(vec![sums, Vector::new(Values::Int(counted))])
            }
            // All others are their own state.
            _ => Ok(vec![self.finish(counts, groups)?]),
        }
    }
}

/// Returns sums of an argument as values of a type, if they need no other scale and all lie within its limits.
fn plain_sums(sums: impl Iterator<Item = i128> + Clone, argument: &Type, kind: &Type) -> Option<Values> {
    let (low, high) = match (argument, kind) {
        (Type::Decimal { scale: from, .. }, Type::Decimal { precision, scale }) if from == scale => {
            let limit = power_of_ten((*precision).into())? - 1;
            (-limit, limit)
        }
        (_, kind) => kind.integer_range()?,
    };
    let fits = sums.clone().all(|sum| low <= sum && sum <= high);
    match kind.repr() {
        _ if !fits => None,
        Repr::Int => Some(Values::Int(sums.map(|sum| sum as i64).collect())),
        Repr::Wide => Some(Values::Wide(sums.collect())),
        _ => None,
    }
}

fn round(value: f64, kind: &Type) -> f64 {
    if *kind == Type::Float32 { f64::from(value as f32) } else { value }
}
