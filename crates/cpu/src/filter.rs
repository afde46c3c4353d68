//! Filters compiled from statistics: what a predicate on one encoded column comes down to.
//!
//! A predicate that reads a single source column with few possible values (a dictionary, or integers of a small span) is
//! evaluated once for each of them; what remains is a range of codes, a set of codes, or nothing at all. So LIKE, IN,
//! date functions and user functions cost the same as a comparison.

use std::{cell::RefCell, rc::Rc, sync::Arc};

use tandem_column::{ColumnStatistics, Result, Table, Type};
use tandem_pipeline::{Comparison, Expr, SlotId, UserFunction, Value};

use crate::{
    Error, Reservation, Values, Vector,
    evaluate::{self, Slots},
    frame::{Layout, Origin},
    set::Set,
};

/// A predicate ready to run.
#[derive(Clone, Debug)]
pub(crate) enum Filter {
    /// The source column's value (or code) is within these bounds and not null.
    Between { slot: SlotId, low: i64, high: i64 },
    /// The source column's value (or code) is in the set and not null.
    Member { slot: SlotId, set: Arc<Set> },
    /// Any expression.
    General(Expr),
}

/// Text beyond this, in bytes, is not computed to try values one by one: rows are worked on a few thousand at a time.
const MOST_TEXT: usize = 16 << 20;

/// More values than this are not tried one by one.
const MOST_VALUES: i64 = 1 << 16;

/// Compiles a predicate's conjuncts; `None` if it is false for every row.
pub(crate) fn compile(
    expr: &Expr,
    layout: &Layout,
    table: &Table,
    functions: &[Arc<UserFunction>],
) -> Option<Vec<Filter>> {
    let mut filters = Vec::new();
    let mut conjuncts = vec![expr];
    while let Some(conjunct) = conjuncts.pop() {
        match conjunct {
            Expr::And(list) => conjuncts.extend(list.iter().rev()),
            Expr::Literal(Value::Boolean(true), _) => {}
            Expr::Literal(..) => return None,
            conjunct => filters.extend(compile_one(conjunct, layout, table, functions)?),
        }
    }
    merge_ranges(&mut filters)?;
    Some(filters)
}

/// Joins ranges of the same column; `None` if they exclude each other.
fn merge_ranges(filters: &mut Vec<Filter>) -> Option<()> {
    let mut merged: Vec<Filter> = Vec::new();
    for filter in filters.drain(..) {
        if let Filter::Between { slot, low, high } = filter {
            let same = merged.iter_mut().find_map(|f| match f {
                Filter::Between { slot: s, low, high } if *s == slot => Some((low, high)),
                _ => None,
            });
            match same {
                Some((l, h)) => {
                    *l = low.max(*l);
                    *h = high.min(*h);
                    if *l > *h {
                        return None;
                    }
                }
                None => merged.push(filter),
            }
        } else {
            merged.push(filter);
        }
    }
    *filters = merged;
    Some(())
}

fn compile_one(expr: &Expr, layout: &Layout, table: &Table, functions: &[Arc<UserFunction>]) -> Option<Option<Filter>> {
    let general = || Some(Some(Filter::General(expr.clone())));
    let mut slots = expr.slots().into_iter();
    let (Some(slot), None) = (slots.next(), slots.next()) else { return general() };
    let Origin::Source(column) = layout.origins[slot] else { return general() };
    let statistics = &table.statistics[column];
    let nulls = has_nulls(table, column);
    let kind = &layout.slots[slot].kind;
    let dictionary = table.parts.first().and_then(|part| match &part.columns[column].data {
        tandem_column::Data::Dictionary { dictionary, .. } => Some(dictionary.clone()),
        _ => None,
    });
    let range = match &dictionary {
        Some(dictionary) if dictionary.is_empty() => None,
        Some(dictionary) => Some((0, dictionary.len() as i64 - 1)),
        None if matches!(kind.repr(), tandem_column::Repr::Int | tandem_column::Repr::Boolean) => statistics.range,
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
        return Some(Some(Filter::Between { slot, low, high }));
    }
    let span = max.wrapping_sub(min);
    if !(0..MOST_VALUES).contains(&span) && dictionary.is_none() || span as usize > table.rows().max(1024) {
        return general();
    }
    let count = span as usize + 1;
    let all = match dictionary {
        Some(dictionary) => Values::Code { codes: (0..count as u32).collect(), dictionary },
        None if *kind == Type::Boolean => Values::Boolean((min..=max).map(|v| v as u8).collect()),
        None => Values::Int((min..=max).collect()),
    };
    let domain = Domain { slot, kind: kind.clone(), vector: Rc::new(Vector::new(all)), text: layout.text() };
    // An error for a value that no row may have is not an error of the query: leave such predicates to the rows.
    let Ok(kept) = evaluate::select(expr, &domain, functions) else { return general() };
    if nulls {
        let null = Domain { vector: Rc::new(Vector::nulls(kind, 1)), ..domain };
        match evaluate::select(expr, &null, functions) {
            Ok(kept) if kept.is_empty() => {}
            _ => return general(),
        }
    }
    members(slot, min, count, &kept, !nulls, statistics)
}

/// Returns the filter that keeps the values at `kept` (offsets from `min`, ascending).
///
/// The values from `min` on may run over some that do not occur: those between others, and all entries of a dictionary
/// that no row uses.
fn members(
    slot: SlotId,
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
        let filter = Filter::Between { slot, low: min + i64::from(first), high: min + i64::from(last) };
        return Some((!all).then_some(filter));
    }
    let mut set = Set::new(min, count);
    kept.iter().for_each(|offset| set.insert(min + i64::from(*offset)));
    Some(Some(Filter::Member { slot, set: Arc::new(set) }))
}

/// Returns the filter that keeps rows whose source column is in a build's key set.
pub(crate) fn membership(slot: SlotId, column: usize, table: &Table, set: &Set) -> Option<Option<Filter>> {
    let statistics = &table.statistics[column];
    let never_null = !has_nulls(table, column);
    let Some((min, max)) = statistics.range else {
        return Some(Some(Filter::Member { slot, set: Arc::new(set.clone()) }));
    };
    let span = max.wrapping_sub(min);
    if (0..MOST_VALUES).contains(&span) {
        let kept: Vec<u32> = (0..=span).filter(|o| set.contains(min + o)).map(|o| o as u32).collect();
        return members(slot, min, span as usize + 1, &kept, never_null, statistics);
    }
    let full = set.len() as u64 == set.domain;
    let last = set.min.saturating_add_unsigned(set.domain.saturating_sub(1));
    if full && set.min <= min && max <= last && never_null {
        return Some(None);
    }
    if set.len() == 0 {
        return None;
    }
    Some(Some(Filter::Member { slot, set: Arc::new(set.clone()) }))
}

/// Tells whether any part of a column has a null.
pub(crate) fn has_nulls(table: &Table, column: usize) -> bool {
    table.parts.iter().any(|part| part.columns[column].validity.is_some())
}

/// Reads a comparison of the slot with an integer literal as bounds.
fn literal_range(expr: &Expr, slot: SlotId) -> Option<(i64, i64)> {
    let Expr::Compare(operator, left, right) = expr else { return None };
    let (operator, value) = match (left.as_ref(), right.as_ref()) {
        (Expr::Slot(s), Expr::Literal(Value::Integer(value), _)) if *s == slot => (*operator, *value),
        (Expr::Literal(Value::Integer(value), _), Expr::Slot(s)) if *s == slot => (mirror(*operator), *value),
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

fn mirror(operator: Comparison) -> Comparison {
    match operator {
        Comparison::Less => Comparison::Greater,
        Comparison::LessOrEqual => Comparison::GreaterOrEqual,
        Comparison::Greater => Comparison::Less,
        Comparison::GreaterOrEqual => Comparison::LessOrEqual,
        same => same,
    }
}

/// Every value that one slot may have, as rows.
struct Domain {
    slot: SlotId,
    kind: Type,
    vector: Rc<Vector>,
    text: RefCell<Reservation>,
}

impl Slots for Domain {
    fn rows(&self) -> usize {
        self.vector.len()
    }
    fn vector(&self, slot: SlotId) -> Result<Rc<Vector>> {
        debug_assert_eq!(slot, self.slot, "the predicate reads one slot");
        Ok(self.vector.clone())
    }
    fn kind(&self, _: SlotId) -> &Type {
        &self.kind
    }
    fn reserve(&self, bytes: usize) -> Result<()> {
        let mut text = self.text.borrow_mut();
        if text.bytes().saturating_add(bytes) > MOST_TEXT {
            return Err(Error::exhausted("the values of a column are too long to try all of them"));
        }
        text.add(bytes)
    }
}
