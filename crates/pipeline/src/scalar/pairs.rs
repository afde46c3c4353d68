//! What covariances, correlations and regressions are computed of: the moments of pairs of floats.

use crate::{AggregateFunction, Value};

/// Count, means, and summed squared differences and products of differences from them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PairMoments {
    /// How many pairs there were.
    pub count: i64,
    /// The mean of the first of each.
    pub mean_y: f64,
    /// The mean of the second of each.
    pub mean_x: f64,
    /// The sum of squared differences of the first from their mean.
    pub squares_y: f64,
    /// The sum of squared differences of the second from theirs.
    pub squares_x: f64,
    /// The sum of products of both differences.
    pub products: f64,
}

impl PairMoments {
    /// Takes one more pair in, as Welford does.
    #[inline]
    pub fn update(&mut self, y: f64, x: f64) {
        self.count += 1;
        let count = self.count as f64;
        let (before_y, before_x) = (y - self.mean_y, x - self.mean_x);
        self.mean_y += before_y / count;
        self.mean_x += before_x / count;
        let after_y = y - self.mean_y;
        self.squares_y += before_y * after_y;
        self.squares_x += before_x * (x - self.mean_x);
        self.products += before_x * after_y;
    }

    /// Takes the pairs of another state in, by Chan's rule.
    pub fn merge(&mut self, other: PairMoments) {
        if other.count == 0 {
            return;
        }
        if self.count == 0 {
            *self = other;
            return;
        }
        let (left, right) = (self.count as f64, other.count as f64);
        let (delta_y, delta_x) = (other.mean_y - self.mean_y, other.mean_x - self.mean_x);
        let weight = left * right / (left + right);
        self.squares_y += other.squares_y + delta_y * delta_y * weight;
        self.squares_x += other.squares_x + delta_x * delta_x * weight;
        self.products += other.products + delta_y * delta_x * weight;
        // What is constant has exactly one mean, however often it is merged.
        self.mean_y += delta_y * (right / (left + right));
        self.mean_x += delta_x * (right / (left + right));
        self.count += other.count;
    }

    /// Returns what a function of pairs is.
    pub fn finish(&self, function: AggregateFunction) -> Option<f64> {
        use AggregateFunction::*;
        let PairMoments { count, mean_y, mean_x, squares_y, squares_x, products } = *self;
        let (some, several) = (count > 0, count > 1);
        let slope = products / squares_x;
        match function {
            CovarianceSample => several.then(|| products / (count - 1) as f64),
            CovariancePopulation => some.then(|| products / count as f64),
            Correlation if mean_y.is_nan() && mean_x.is_nan() => Some(f64::NAN),
            Correlation => {
                let varies = several && squares_y != 0.0 && squares_x != 0.0;
                let known = !mean_y.is_nan() && !mean_x.is_nan();
                (varies && known).then(|| products / squares_y.sqrt() / squares_x.sqrt())
            }
            RegressionSlope => (several && squares_x != 0.0).then_some(slope),
            RegressionIntercept => (several && squares_x != 0.0).then_some(mean_y - slope * mean_x),
            RegressionR2 => {
                let varies = several && squares_y != 0.0 && squares_x != 0.0;
                varies.then(|| products * products / (squares_x * squares_y))
            }
            RegressionAverageX => some.then_some(mean_x),
            RegressionAverageY => some.then_some(mean_y),
            RegressionSquaresX => some.then_some(squares_x),
            RegressionSquaresY => some.then_some(squares_y),
            RegressionProducts => some.then_some(products),
            _ => None,
        }
    }

    /// Returns the state as [`AggregateFunction::state`] lays it out.
    pub(super) fn state(&self) -> Vec<Value> {
        let floats = [self.mean_y, self.mean_x, self.squares_y, self.squares_x, self.products];
        [Value::Integer(self.count.into())].into_iter().chain(floats.map(Value::Float)).collect()
    }
}
