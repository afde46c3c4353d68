//! The share of rows that fulfil a condition, from ranges, distinct values and dictionaries.
//!
//! Comparisons of one column with constants are intersected as intervals before they are weighed, so that BETWEEN is
//! one condition. Values are put on a line of numbers: integers as they are, text as its position in the dictionary.

use std::collections::BTreeMap;

use tandem_column::{Type, from_float_order};
use tandem_pipeline::{Comparison, Expr, Value};

use super::estimate::{Estimator, UNKNOWN_CONDITION};
use crate::planning::tree::{may_fail, node::ColumnId, visit};

/// The share assumed of rows with one value of a column that nothing is known of.
const UNKNOWN_EQUAL: f64 = 0.05;
/// The shares assumed of rows that match a pattern: with a fixed beginning, and without.
const UNKNOWN_PREFIX: f64 = 0.05;
const UNKNOWN_PATTERN: f64 = 0.1;
/// Dictionary values that are looked at to weigh one pattern; larger dictionaries are sampled.
const PATTERN_SAMPLE: usize = 4096;

/// The part of a column's line that conditions leave: first and last value.
#[derive(Clone, Copy)]
struct Interval {
    low: f64,
    high: f64,
}

/// Where a column's values lie on the line, and whether they are whole numbers there.
struct Line {
    low: f64,
    high: f64,
    whole: bool,
}

impl Estimator<'_> {
    /// Estimates the share of rows that fulfil all conditions.
    pub(super) fn conjunction(&self, predicates: &[Expr]) -> f64 {
        let mut share = 1.0;
        let mut intervals: BTreeMap<ColumnId, Interval> = BTreeMap::new();
        for predicate in predicates {
            match self.interval(predicate) {
                Some((column, interval)) => {
                    intervals
                        .entry(column)
                        .and_modify(|known| {
                            known.low = known.low.max(interval.low);
                            known.high = known.high.min(interval.high);
                        })
                        .or_insert(interval);
                }
                None => share *= self.selectivity(predicate),
            }
        }
        for (column, interval) in intervals {
            share *= self.fraction(column, interval);
        }
        share.clamp(0.0, 1.0)
    }

    /// Estimates the share of rows that fulfil a condition.
    pub(crate) fn selectivity(&self, expr: &Expr) -> f64 {
        let share = match expr {
            Expr::And(parts) => self.conjunction(parts),
            Expr::Or(parts) if same_column(parts) => parts.iter().map(|part| self.selectivity(part)).sum::<f64>(),
            Expr::Or(parts) => 1.0 - parts.iter().map(|part| 1.0 - self.selectivity(part)).product::<f64>(),
            Expr::Not(input) => 1.0 - self.selectivity(input),
            Expr::Literal(Value::Boolean(true), _) => 1.0,
            Expr::Literal(..) => 0.0,
            Expr::Compare(operator, left, right) => self.comparison(*operator, left, right),
            Expr::In { input, list } => list.iter().map(|value| self.equality(input, value)).sum::<f64>().min(1.0),
            Expr::Like { input, pattern, ignore_case, .. } => self.pattern(input, pattern, *ignore_case),
            Expr::IsNull(input) => self.null_share(input),
            Expr::Slot(_) => 0.5,
            _ => UNKNOWN_CONDITION,
        };
        share.clamp(0.0, 1.0)
    }

    /// Orders conditions: what may fail last, as written; before it what drops most rows for its cost first. The bounds
    /// of one column are one condition.
    pub(crate) fn filter_order(&self, predicates: &[Expr]) -> Vec<Expr> {
        let (last, mut first): (Vec<Expr>, Vec<Expr>) = predicates.iter().cloned().partition(may_fail);
        let mut bounded: BTreeMap<ColumnId, Vec<Expr>> = BTreeMap::new();
        first.retain(|predicate| match self.interval(predicate) {
            Some((column, _)) => {
                bounded.entry(column).or_default().push(predicate.clone());
                false
            }
            None => true,
        });
        first.extend(bounded.into_values().map(|mut bounds| match bounds.len() {
            1 => bounds.remove(0),
            _ => Expr::And(bounds),
        }));
        // A rank may take a look at thousands of dictionary values: each is worked out once.
        let rank = |expr: Expr| ((1.0 - self.selectivity(&expr)) / self.cost(&expr), expr);
        let mut ranked: Vec<(f64, Expr)> = first.into_iter().map(rank).collect();
        ranked.sort_by(|(a, _), (b, _)| b.total_cmp(a));
        ranked.into_iter().map(|(_, expr)| expr).chain(last).collect()
    }

    /// Weighs what evaluating an expression on a row takes, in comparisons of numbers.
    fn cost(&self, expr: &Expr) -> f64 {
        let mut cost = 1.0;
        visit(expr, &mut |expr| {
            cost += match expr {
                Expr::Slot(column) => {
                    let text = self.registry.kind(*column).is_ok_and(|kind| kind == Type::String);
                    if text && self.registry.dictionary(*column).is_none() { 8.0 } else { 0.0 }
                }
                Expr::Literal(..) | Expr::Compare(..) | Expr::In { .. } | Expr::Like { .. } | Expr::And(_) => 0.0,
                Expr::Function { .. } => 4.0,
                _ => 1.0,
            }
        });
        cost
    }

    fn comparison(&self, operator: Comparison, left: &Expr, right: &Expr) -> f64 {
        match (left, right) {
            (input, Expr::Literal(value, _)) | (Expr::Literal(value, _), input) => match operator {
                Comparison::Equal => self.equality(input, value),
                Comparison::NotEqual => 1.0 - self.equality(input, value),
                _ => match self.interval_of(operator, left, right) {
                    Some((column, interval)) => self.fraction(column, interval),
                    None => UNKNOWN_CONDITION,
                },
            },
            _ => {
                let largest = 1e6;
                let equal = 1.0 / self.distinct(left, largest).max(self.distinct(right, largest));
                match operator {
                    Comparison::Equal => equal,
                    Comparison::NotEqual => 1.0 - equal,
                    _ => UNKNOWN_CONDITION,
                }
            }
        }
    }

    /// Estimates the share of rows where an expression has a given value.
    fn equality(&self, input: &Expr, value: &Value) -> f64 {
        if matches!(value, Value::Null) {
            return 0.0;
        }
        let Expr::Slot(column) = strip(input) else {
            let distinct = self.distinct(input, 1e6);
            return if distinct < 1e6 { 1.0 / distinct } else { UNKNOWN_EQUAL };
        };
        if let Some(dictionary) = self.registry.dictionary(*column)
            && let Value::String(text) = value
            && dictionary.find(text.as_bytes()).is_err()
        {
            return 0.0;
        }
        if let (Some(line), Some(point)) = (self.line(*column), self.point(*column, value))
            && !(line.low..=line.high).contains(&point)
        {
            return 0.0;
        }
        self.column_distinct(*column).map_or(UNKNOWN_EQUAL, |distinct| 1.0 / distinct)
    }

    /// Returns the interval that a comparison of a column with a constant leaves.
    fn interval(&self, predicate: &Expr) -> Option<(ColumnId, Interval)> {
        match predicate {
            Expr::Compare(Comparison::Equal | Comparison::NotEqual, ..) => None,
            Expr::Compare(operator, left, right) => self.interval_of(*operator, left, right),
            _ => None,
        }
    }

    fn interval_of(&self, operator: Comparison, left: &Expr, right: &Expr) -> Option<(ColumnId, Interval)> {
        let (column, value, operator) = match (strip(left), strip(right)) {
            (Expr::Slot(column), Expr::Literal(value, _)) => (*column, value, operator),
            (Expr::Literal(value, _), Expr::Slot(column)) => (*column, value, operator.mirrored()),
            _ => return None,
        };
        let line = self.line(column)?;
        let point = self.point(column, value)?;
        let step = if line.whole { 1.0 } else { 0.0 };
        // A point between two codes of a dictionary excludes nothing further.
        let (before, after) = (point - step, point + step);
        let interval = match operator {
            Comparison::Less => Interval { low: line.low, high: if point.fract() == 0.0 { before } else { point } },
            Comparison::LessOrEqual => Interval { low: line.low, high: point },
            Comparison::Greater => Interval { low: if point.fract() == 0.0 { after } else { point }, high: line.high },
            Comparison::GreaterOrEqual => Interval { low: point, high: line.high },
            Comparison::Equal | Comparison::NotEqual => return None,
        };
        Some((column, interval))
    }

    /// Returns the line of a column's values.
    fn line(&self, column: ColumnId) -> Option<Line> {
        let statistics = self.registry.statistics(column)?;
        if let Some(dictionary) = self.registry.dictionary(column) {
            return Some(Line { low: 0.0, high: dictionary.len() as f64 - 1.0, whole: true });
        }
        let (low, high) = statistics.range?;
        match self.registry.kind(column).ok()? {
            kind if kind.is_float() => {
                Some(Line { low: from_float_order(low), high: from_float_order(high), whole: false })
            }
            Type::String | Type::Binary => None,
            _ => Some(Line { low: low as f64, high: high as f64, whole: true }),
        }
    }

    /// Puts a constant on a column's line; text that is not in the dictionary lies half-way between its neighbours.
    fn point(&self, column: ColumnId, value: &Value) -> Option<f64> {
        match value {
            Value::Integer(value) => Some(*value as f64),
            Value::Float(value) => Some(*value),
            Value::Boolean(value) => Some(f64::from(u8::from(*value))),
            Value::String(text) => match self.registry.dictionary(column)?.find(text.as_bytes()) {
                Ok(code) => Some(f64::from(code)),
                Err(before) => Some(f64::from(before) - 0.5),
            },
            _ => None,
        }
    }

    /// Estimates the share of a column's rows in an interval.
    fn fraction(&self, column: ColumnId, interval: Interval) -> f64 {
        let Some(line) = self.line(column) else { return UNKNOWN_CONDITION };
        let (low, high) = if line.whole {
            (interval.low.max(line.low).ceil(), interval.high.min(line.high).floor())
        } else {
            (interval.low.max(line.low), interval.high.min(line.high))
        };
        if low > high {
            return 0.0;
        }
        let step = if line.whole { 1.0 } else { 0.0 };
        if line.whole
            && let Some(statistics) = self.registry.statistics(column)
            && let Some(values) = statistics.values.as_ref()
            && self.registry.dictionary(column).is_none()
        {
            let total = values.count_ones().max(1) as f64;
            let (first, end) = ((low - line.low) as usize, ((high - line.low) as usize + 1).min(values.len()));
            return values.count_ones_in(first.min(end)..end) as f64 / total;
        }
        if line.high - line.low + step <= 0.0 {
            return 1.0;
        }
        ((high - low + step) / (line.high - line.low + step)).clamp(0.0, 1.0)
    }

    fn pattern(&self, input: &Expr, pattern: &str, ignore_case: bool) -> f64 {
        let fixed: &str = pattern.split(['%', '_', '\\']).next().unwrap_or_default();
        let guess = if fixed.is_empty() { UNKNOWN_PATTERN } else { UNKNOWN_PREFIX };
        let Expr::Slot(column) = input else { return guess };
        let Some(dictionary) = self.registry.dictionary(*column) else { return guess };
        if dictionary.is_empty() || ignore_case {
            return guess;
        }
        if pattern.len() == fixed.len() + 1 && pattern.ends_with('%') {
            return dictionary.prefix_range(fixed.as_bytes()).len() as f64 / dictionary.len() as f64;
        }
        let stride = dictionary.len().div_ceil(PATTERN_SAMPLE);
        let sample = dictionary.iter().step_by(stride);
        let looked = sample.len().max(1);
        let parts: Vec<&[u8]> = pattern.split(['%', '_']).map(str::as_bytes).filter(|part| !part.is_empty()).collect();
        let matched = sample.filter(|value| contains_in_order(value, &parts)).count();
        (matched as f64 / looked as f64).max(0.5 / dictionary.len() as f64)
    }

    fn null_share(&self, input: &Expr) -> f64 {
        let Expr::Slot(column) = input else { return 0.05 };
        let Some((scan, _)) = self.registry.columns[*column].origin else { return 0.05 };
        let rows = self.registry.scans[scan].stats.rows.max(1.0);
        self.registry.statistics(*column).map_or(0.05, |statistics| statistics.nulls as f64 / rows)
    }
}

/// Tells whether parts occur one after the other: what a pattern asks, but for its ends and single characters.
fn contains_in_order(mut value: &[u8], parts: &[&[u8]]) -> bool {
    for part in parts {
        match value.windows(part.len()).position(|window| window == *part) {
            Some(position) => value = &value[position + part.len()..],
            None => return false,
        }
    }
    true
}

/// Tells whether conditions are equalities of one column, which exclude each other.
fn same_column(parts: &[Expr]) -> bool {
    let column = |part: &Expr| match part {
        Expr::Compare(Comparison::Equal, left, right) => match (&**left, &**right) {
            (Expr::Slot(column), Expr::Literal(..)) | (Expr::Literal(..), Expr::Slot(column)) => Some(*column),
            _ => None,
        },
        _ => None,
    };
    let first = parts.first().and_then(column);
    first.is_some() && parts.iter().all(|part| column(part) == first)
}

/// Looks through casts that keep the order of numbers.
fn strip(expr: &Expr) -> &Expr {
    match expr {
        Expr::Cast { input, kind, .. } if kind.is_integer() => strip(input),
        other => other,
    }
}
