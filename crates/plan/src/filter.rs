//! Filters compiled from statistics: what a predicate on one encoded column comes down to.
//!
//! A predicate that reads a single source column with few possible values (a dictionary, or integers of a small span) is
//! evaluated once for each of them; what remains is a range of codes, a set of codes, or nothing at all. So LIKE, IN,
//! date functions and user functions cost the same as a comparison.

use std::sync::Arc;

use tandem_column::{ColumnStatistics, Dictionary, Repr, Result, Table, Type};
use tandem_pipeline::{Comparison, Expr, Slot, SlotId, Value};

use crate::{Build, Origin, Set, has_nulls};

/// A predicate ready to run.
#[derive(Clone, Debug)]
pub(crate) enum Filter {
    /// The source column's value (or code) is within these bounds and not null.
    Between { column: usize, low: i64, high: i64 },
    /// The source column's value (or code) is in the set and not null.
    Member { column: usize, set: Arc<Set> },
    /// Any expression.
    General(Expr),
}

/// What a part of a predicate comes down to.
pub(crate) struct Compiled {
    /// The conjuncts that it is made of.
    pub(crate) of: Vec<Expr>,
    /// What runs; `None` if every row satisfies them.
    pub(crate) filter: Option<Filter>,
}

/// All values that a slot may have.
#[derive(Clone, Debug)]
pub enum Candidates {
    /// The codes of a dictionary, from the first on.
    Codes(Arc<Dictionary>),
    /// Integers, or booleans as 0 and 1.
    Integers {
        /// The first.
        min: i64,
        /// The last.
        max: i64,
    },
    /// Null alone.
    Null,
}

/// Tells what becomes of a slot's possible values. Executors evaluate; planning only asks.
pub trait Selector {
    /// Returns the places of the candidates for which the expression, which reads that slot alone, is true.
    ///
    /// # Errors
    /// What the expression raises for some candidate; exhausted if the candidates are too large to try them all.
    fn select(&self, expr: &Expr, slot: SlotId, kind: &Type, candidates: &Candidates) -> Result<Vec<u32>>;

    /// Lays a build by one key of text out by the codes of a dictionary, of which each value is looked up once; `existence`
    /// says that no more than whether there is an entry is asked.
    ///
    /// # Errors
    /// Internal if the build has other keys.
    fn by_code(&self, build: &Build, dictionary: &Arc<Dictionary>, existence: bool) -> Result<Build>;
}

/// More values than this are not tried one by one.
const MOST_VALUES: i64 = 1 << 16;

/// What a predicate is compiled from.
pub(crate) struct Compiler<'c> {
    pub(crate) slots: &'c [Slot],
    pub(crate) origins: &'c [Origin],
    pub(crate) table: &'c Table,
    pub(crate) selector: &'c dyn Selector,
}

impl Compiler<'_> {
    /// Compiles a predicate's conjuncts; `None` if it is false for every row.
    pub(crate) fn compile(&self, expr: &Expr) -> Option<Vec<Compiled>> {
        let mut compiled = Vec::new();
        let mut conjuncts = vec![expr];
        while let Some(conjunct) = conjuncts.pop() {
            match conjunct {
                Expr::And(list) => conjuncts.extend(list.iter().rev()),
                Expr::Literal(Value::Boolean(true), _) => {}
                Expr::Literal(..) => return None,
                conjunct => {
                    compiled.push(Compiled { of: vec![conjunct.clone()], filter: self.compile_one(conjunct)? });
                }
            }
        }
        merge_ranges(compiled)
    }

    fn compile_one(&self, expr: &Expr) -> Option<Option<Filter>> {
        let general = || Some(Some(Filter::General(expr.clone())));
        let mut slots = expr.slots().into_iter();
        let (Some(slot), None) = (slots.next(), slots.next()) else { return general() };
        let Origin::Column(column) = self.origins[slot] else { return general() };
        let statistics = &self.table.statistics[column];
        let nulls = has_nulls(self.table, column);
        let kind = &self.slots[slot].kind;
        let dictionary = self.table.parts.first().and_then(|part| part.columns[column].dictionary().cloned());
        let range = match &dictionary {
            Some(dictionary) if dictionary.is_empty() => None,
            Some(dictionary) => Some((0, dictionary.len() as i64 - 1)),
            None if matches!(kind.repr(), Repr::Int | Repr::Boolean) => statistics.range,
            None => return general(),
        };
        let Some((min, max)) = range else { return general() };
        if let Some((low, high)) = literal_range(expr, slot).filter(|_| dictionary.is_none()) {
            let (low, high) = (low.max(min), high.min(max));
            if low > high {
                return None;
            }
            if low == min && high == max && !nulls {
                return Some(None);
            }
            return Some(Some(Filter::Between { column, low, high }));
        }
        let span = max.wrapping_sub(min);
        if !(0..MOST_VALUES).contains(&span) && dictionary.is_none() || span as usize > self.table.rows().max(1024) {
            return general();
        }
        let candidates = dictionary.map_or(Candidates::Integers { min, max }, Candidates::Codes);
        // An error for a value that no row may have is not an error of the query: leave such predicates to the rows.
        let Ok(kept) = self.selector.select(expr, slot, kind, &candidates) else { return general() };
        if nulls {
            match self.selector.select(expr, slot, kind, &Candidates::Null) {
                Ok(kept) if kept.is_empty() => {}
                _ => return general(),
            }
        }
        members(column, min, span as usize + 1, &kept, !nulls, statistics)
    }
}

/// Joins ranges of the same column; `None` if they exclude each other.
fn merge_ranges(compiled: Vec<Compiled>) -> Option<Vec<Compiled>> {
    let mut merged: Vec<Compiled> = Vec::new();
    for one in compiled {
        let Some(Filter::Between { column, low, high }) = one.filter else {
            merged.push(one);
            continue;
        };
        let same = merged.iter_mut().find_map(|Compiled { of, filter }| match filter {
            Some(Filter::Between { column: c, low, high }) if *c == column => Some((of, low, high)),
            _ => None,
        });
        match same {
            Some((of, l, h)) => {
                of.extend(one.of);
                *l = low.max(*l);
                *h = high.min(*h);
                if *l > *h {
                    return None;
                }
            }
            None => merged.push(one),
        }
    }
    Some(merged)
}

/// Returns the filter that keeps the values at `kept` (offsets from `min`, ascending).
///
/// The values from `min` on may run over some that do not occur: those between others, and all entries of a dictionary
/// that no row uses.
fn members(
    column: usize,
    min: i64,
    count: usize,
    kept: &[u32],
    never_null: bool,
    statistics: &ColumnStatistics,
) -> Option<Option<Filter>> {
    let exact = statistics.values.as_deref().zip(statistics.range);
    let occurs = |offset: usize| {
        exact.is_none_or(|(values, (low, _))| {
            let place = usize::try_from(i128::from(min) + offset as i128 - i128::from(low));
            place.is_ok_and(|place| place < values.len() && values.get(place))
        })
    };
    let kept: Vec<u32> = kept.iter().copied().filter(|offset| occurs(*offset as usize)).collect();
    let (Some(first), Some(last)) = (kept.first().copied(), kept.last().copied()) else { return None };
    let mut next = kept.iter().peekable();
    let contiguous = (first..=last).all(|offset| {
        if next.peek() == Some(&&offset) {
            next.next();
            return true;
        }
        !occurs(offset as usize)
    });
    if contiguous {
        let all = never_null && (0..first as usize).chain(last as usize + 1..count).all(|o| !occurs(o));
        let filter = Filter::Between { column, low: min + i64::from(first), high: min + i64::from(last) };
        return Some((!all).then_some(filter));
    }
    let mut set = Set::new(min, count);
    kept.iter().for_each(|offset| set.insert(min + i64::from(*offset)));
    Some(Some(Filter::Member { column, set: Arc::new(set) }))
}

/// Returns the filter that keeps rows whose source column is in a build's key set.
pub(crate) fn membership(column: usize, table: &Table, set: &Arc<Set>) -> Option<Option<Filter>> {
    let statistics = &table.statistics[column];
    let never_null = !has_nulls(table, column);
    let Some((min, max)) = statistics.range else {
        return Some(Some(Filter::Member { column, set: set.clone() }));
    };
    let span = max.wrapping_sub(min);
    if (0..MOST_VALUES).contains(&span) {
        let kept: Vec<u32> = (0..=span).filter(|o| set.contains(min + o)).map(|o| o as u32).collect();
        return members(column, min, span as usize + 1, &kept, never_null, statistics);
    }
    let full = set.len() as u64 == set.domain;
    let last = set.min.saturating_add_unsigned(set.domain.saturating_sub(1));
    if full && set.min <= min && max <= last && never_null {
        return Some(None);
    }
    if set.is_empty() {
        return None;
    }
    Some(Some(Filter::Member { column, set: set.clone() }))
}

/// Reads a comparison of the slot with an integer literal as bounds.
fn literal_range(expr: &Expr, slot: SlotId) -> Option<(i64, i64)> {
    let Expr::Compare(operator, left, right) = expr else { return None };
    let (operator, value) = match (left.as_ref(), right.as_ref()) {
        (Expr::Slot(s), Expr::Literal(Value::Integer(value), _)) if *s == slot => (*operator, *value),
        (Expr::Literal(Value::Integer(value), _), Expr::Slot(s)) if *s == slot => (operator.mirrored(), *value),
        _ => return None,
    };
    let clamp = |v: i128| v.clamp(i64::MIN.into(), i64::MAX.into()) as i64;
    let fits = i64::try_from(value).is_ok();
    Some(match operator {
        Comparison::Equal if fits => (clamp(value), clamp(value)),
        Comparison::Less if value > i128::from(i64::MIN) => (i64::MIN, clamp(value - 1)),
        Comparison::LessOrEqual if value >= i128::from(i64::MIN) => (i64::MIN, clamp(value)),
        Comparison::Greater if value < i128::from(i64::MAX) => (clamp(value + 1), i64::MAX),
        Comparison::GreaterOrEqual if value <= i128::from(i64::MAX) => (clamp(value), i64::MAX),
        _ => return None,
    })
}
