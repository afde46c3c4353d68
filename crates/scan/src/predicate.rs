//! Predicates on single columns as ranges of values, to leave out row groups.
//!
//! Only a hint: what is not understood excludes nothing, and rows that are kept need not match. Null never matches, as
//! in a filter.

use std::ops::Bound;

use tandem_column::{BLOCK_ROWS, Codes, Column, Data, Dictionary, Repr, Type, with_codes};
use tandem_pipeline::{Comparison, Expr, Value};

use crate::parquet::Bounds;

/// A condition on one of the columns asked for: its value lies in one of the ranges.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Test {
    /// Position among the columns asked for.
    pub(crate) column: usize,
    ranges: Ranges,
}

type TextRange = (Bound<Vec<u8>>, Bound<Vec<u8>>);

#[derive(Clone, Debug, PartialEq)]
enum Ranges {
    Int(Vec<(i64, i64)>),
    Text(Vec<TextRange>),
}

/// Rows tested at once.
const CHUNK: usize = 4096;

/// Takes from a conjunction what can be tested on single columns of the given types.
pub(crate) fn tests(predicates: &[Expr], kinds: &[Type]) -> Vec<Test> {
    let mut found = Vec::new();
    for predicate in predicates {
        match predicate {
            Expr::And(parts) => found.extend(tests(parts, kinds)),
            single => found.extend(test(single, kinds)),
        }
    }
    found
}

fn test(predicate: &Expr, kinds: &[Type]) -> Option<Test> {
    match predicate {
        Expr::Compare(comparison, left, right) => match (&**left, &**right) {
            (Expr::Slot(slot), Expr::Literal(value, kind)) => compare(*comparison, *slot, value, kind, kinds),
            (Expr::Literal(value, kind), Expr::Slot(slot)) => compare(mirror(*comparison), *slot, value, kind, kinds),
            _ => None,
        },
        Expr::In { input, list } => match &**input {
            Expr::Slot(slot) => {
                let kind = kinds.get(*slot)?;
                let parts = list.iter().filter(|value| !matches!(value, Value::Null));
                let parts = parts.map(|value| compare(Comparison::Equal, *slot, value, kind, kinds));
                union(*slot, kinds, parts)
            }
            _ => None,
        },
        Expr::Or(parts) => {
            let first = test(parts.first()?, kinds)?;
            union(first.column, kinds, parts.iter().map(|part| test(part, kinds)))
        }
        Expr::Slot(slot) if kinds.get(*slot) == Some(&Type::Boolean) => {
            Some(Test { column: *slot, ranges: Ranges::Int(vec![(1, 1)]) })
        }
        Expr::Not(inner) => match &**inner {
            Expr::Slot(slot) if kinds.get(*slot) == Some(&Type::Boolean) => {
                Some(Test { column: *slot, ranges: Ranges::Int(vec![(0, 0)]) })
            }
            _ => None,
        },
        _ => None,
    }
}

fn mirror(comparison: Comparison) -> Comparison {
    match comparison {
        Comparison::Less => Comparison::Greater,
        Comparison::LessOrEqual => Comparison::GreaterOrEqual,
        Comparison::Greater => Comparison::Less,
        Comparison::GreaterOrEqual => Comparison::LessOrEqual,
        same @ (Comparison::Equal | Comparison::NotEqual) => same,
    }
}

/// Joins tests of one column by "or"; `None` if one is missing or of another column.
fn union(column: usize, kinds: &[Type], parts: impl Iterator<Item = Option<Test>>) -> Option<Test> {
    let mut ranges = match kinds.get(column)?.repr() {
        Repr::Int | Repr::Boolean => Ranges::Int(Vec::new()),
        Repr::Bytes => Ranges::Text(Vec::new()),
        _ => return None,
    };
    for part in parts {
        let part = part.filter(|part| part.column == column)?;
        match (&mut ranges, part.ranges) {
            (Ranges::Int(all), Ranges::Int(more)) => all.extend(more),
            (Ranges::Text(all), Ranges::Text(more)) => all.extend(more),
            _ => return None,
        }
    }
    Some(Test { column, ranges })
}

fn compare(comparison: Comparison, column: usize, value: &Value, literal: &Type, kinds: &[Type]) -> Option<Test> {
    let kind = kinds.get(column)?;
    if kind != literal {
        return None;
    }
    let ranges = match (kind.repr(), value) {
        // A comparison with null is never true.
        (Repr::Int | Repr::Boolean, Value::Null) => Ranges::Int(Vec::new()),
        (Repr::Bytes, Value::Null) => Ranges::Text(Vec::new()),
        (Repr::Boolean, Value::Boolean(value)) => Ranges::Int(integers(comparison, i128::from(*value))),
        (Repr::Int, Value::Integer(value)) => Ranges::Int(integers(comparison, *value)),
        (Repr::Bytes, Value::String(value)) => Ranges::Text(texts(comparison, value.as_bytes())),
        (Repr::Bytes, Value::Binary(value)) => Ranges::Text(texts(comparison, value)),
        _ => return None,
    };
    Some(Test { column, ranges })
}

fn integers(comparison: Comparison, value: i128) -> Vec<(i64, i64)> {
    let (least, most) = (i128::from(i64::MIN), i128::from(i64::MAX));
    let below = (least, value.saturating_sub(1));
    let above = (value.saturating_add(1), most);
    let ranges = match comparison {
        Comparison::Equal => vec![(value, value)],
        Comparison::NotEqual => vec![below, above],
        Comparison::Less => vec![below],
        Comparison::LessOrEqual => vec![(least, value)],
        Comparison::Greater => vec![above],
        Comparison::GreaterOrEqual => vec![(value, most)],
    };
    let clamp = |(low, high): (i128, i128)| {
        let (low, high) = (low.max(least), high.min(most));
        (low <= high).then_some((low as i64, high as i64))
    };
    ranges.into_iter().filter_map(clamp).collect()
}

fn texts(comparison: Comparison, value: &[u8]) -> Vec<TextRange> {
    let (included, excluded) = (Bound::Included(value.to_vec()), Bound::Excluded(value.to_vec()));
    let open = Bound::Unbounded;
    match comparison {
        Comparison::Equal => vec![(included.clone(), included)],
        Comparison::NotEqual => vec![(open.clone(), excluded.clone()), (excluded, open)],
        Comparison::Less => vec![(open, excluded)],
        Comparison::LessOrEqual => vec![(open, included)],
        Comparison::Greater => vec![(excluded, open)],
        Comparison::GreaterOrEqual => vec![(included, open)],
    }
}

impl Test {
    /// Tells whether no value within the bounds matches.
    pub(crate) fn excludes(&self, bounds: &Bounds) -> bool {
        match (&self.ranges, bounds) {
            (_, Bounds::Unknown) => false,
            (_, Bounds::Empty) => true,
            (Ranges::Int(ranges), Bounds::Int(least, most)) => {
                ranges.iter().all(|(low, high)| high < least || low > most)
            }
            (Ranges::Text(ranges), Bounds::Text(least, most)) => ranges.iter().all(|(low, high)| {
                let beyond = match low {
                    Bound::Included(low) => low > most,
                    Bound::Excluded(low) => low >= most,
                    Bound::Unbounded => false,
                };
                let before = match high {
                    Bound::Included(high) => high < least,
                    Bound::Excluded(high) => high <= least,
                    Bound::Unbounded => false,
                };
                beyond || before
            }),
            _ => false,
        }
    }

    /// Returns the codes that match, as inclusive ranges; `None` if the column cannot be tested.
    fn codes(&self, column: &Column) -> Option<Vec<(u64, u64)>> {
        match (&self.ranges, &column.data) {
            (Ranges::Int(ranges), Data::Int { base, codes: Codes::U64(_) }) => {
                // Values below the base have codes that wrapped around.
                let shift = |&(low, high): &(i64, i64)| {
                    let (low, high) = (low.wrapping_sub(*base) as u64, high.wrapping_sub(*base) as u64);
                    if low <= high { vec![(low, high)] } else { vec![(low, u64::MAX), (0, high)] }
                };
                Some(ranges.iter().filter(|(low, high)| low <= high).flat_map(shift).collect())
            }
            (Ranges::Int(ranges), Data::Int { base, .. }) => {
                let base = i128::from(*base);
                let shift = |&(low, high): &(i64, i64)| {
                    let (low, high) = ((i128::from(low) - base).max(0), i128::from(high) - base);
                    (low <= high).then_some((low as u64, high as u64))
                };
                Some(ranges.iter().filter_map(shift).collect())
            }
            (Ranges::Text(ranges), Data::Dictionary { dictionary, .. }) => {
                Some(ranges.iter().filter_map(|range| code_range(dictionary, range)).collect())
            }
            _ => None,
        }
    }
}

fn code_range(dictionary: &Dictionary, (low, high): &TextRange) -> Option<(u64, u64)> {
    let from = match low {
        Bound::Unbounded => 0,
        Bound::Included(value) => dictionary.find(value).unwrap_or_else(|position| position),
        Bound::Excluded(value) => dictionary.find(value).map_or_else(|position| position, |code| code + 1),
    };
    let to = match high {
        Bound::Unbounded => dictionary.len() as u32,
        Bound::Included(value) => dictionary.find(value).map_or_else(|position| position, |code| code + 1),
        Bound::Excluded(value) => dictionary.find(value).unwrap_or_else(|position| position),
    };
    (from < to).then(|| (from.into(), u64::from(to) - 1))
}

/// Tells whether some row may match all tests; `column` gives the decoded column of a test, where there is one.
pub(crate) fn any_match<'a>(tests: &[Test], column: impl Fn(usize) -> Option<&'a Column>, rows: usize) -> bool {
    let mut checks: Vec<(&Column, Vec<(u64, u64)>)> = Vec::new();
    for test in tests {
        let Some(column) = column(test.column) else { continue };
        let Some(ranges) = test.codes(column) else { continue };
        if ranges.is_empty() {
            return false;
        }
        checks.push((column, ranges));
    }
    if checks.is_empty() {
        return rows > 0;
    }
    let mut mask = [false; CHUNK];
    (0..rows).step_by(CHUNK).any(|start| {
        let excluded = checks.iter().any(|(column, ranges)| !block_may_match(column, start / BLOCK_ROWS, ranges));
        if excluded {
            return false;
        }
        let mask = &mut mask[..(rows - start).min(CHUNK)];
        mask.fill(true);
        for (column, ranges) in &checks {
            if let Data::Int { codes, .. } | Data::Dictionary { codes, .. } = &column.data {
                with_codes!(codes, codes => keep(&codes[start..start + mask.len()], ranges, mask));
            }
        }
        mask.contains(&true)
    })
}

fn block_may_match(column: &Column, block: usize, ranges: &[(u64, u64)]) -> bool {
    let Some(Some((least, most))) = column.blocks.get(block).map(|block| block.range) else { return true };
    let base = if let Data::Int { base, .. } = &column.data { *base } else { 0 };
    let (least, most) = (least.wrapping_sub(base) as u64, most.wrapping_sub(base) as u64);
    // Codes that wrap around are those from the least on, and those up to the most.
    let wraps = least > most;
    ranges.iter().any(|&(low, high)| if wraps { low <= most || high >= least } else { low <= most && high >= least })
}

fn keep<C: Copy + Into<u64>>(codes: &[C], ranges: &[(u64, u64)], mask: &mut [bool]) {
    match ranges {
        [(low, high)] => {
            codes.iter().zip(mask).for_each(|(&code, keep)| *keep &= (*low..=*high).contains(&code.into()))
        }
        ranges => codes.iter().zip(mask).for_each(|(&code, keep)| {
            *keep &= ranges.iter().any(|(low, high)| (*low..=*high).contains(&code.into()));
        }),
    }
}
