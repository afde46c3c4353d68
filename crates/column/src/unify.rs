//! One encoding for a column over all parts of a table.
//!
//! Parts are encoded on their own as their rows arrive. A table wants one dictionary per text column (a rule) and, for
//! loaded tables, one base and width per integer column (a convenience). Parts that already agree are shared.

use std::sync::{Arc, Mutex, PoisonError};

use crate::compact::CodeFrame;
use crate::text::{dictionary_pays, intern_columns};
use crate::{Codes, Column, Dictionary, Error, Field, Parallel, Part, Repr, Reservation, Result};

/// What happens to one column in each part.
enum Unification {
    Keep,
    Reframe(CodeFrame),
    /// A dictionary and, per part, the new code of each old one; `None` for a part without values.
    Recode(Arc<Dictionary>, Vec<Option<Vec<u32>>>),
    /// The columns that replace those of the parts; `None` for a part that stays.
    Replace(Vec<Option<Arc<Column>>>),
    Decode,
}

/// Brings the parts of a table to one encoding per column; `integers` asks for it of integers too. Text that is written out
/// for each row is taken from `memory` first.
pub(crate) fn unify(
    schema: &[Field],
    parts: Vec<Arc<Part>>,
    integers: bool,
    parallel: &Parallel<'_>,
    memory: Option<&mut Reservation>,
) -> Result<Vec<Arc<Part>>> {
    let plans: Vec<Mutex<Result<Unification>>> = schema.iter().map(|_| Mutex::new(Ok(Unification::Keep))).collect();
    parallel(schema.len(), &|column| {
        let found = plan(schema, &parts, column, integers);
        *plans[column].lock().unwrap_or_else(PoisonError::into_inner) = found;
    });
    let plans: Vec<Unification> = plans
        .into_iter()
        .map(|plan| plan.into_inner().unwrap_or_else(PoisonError::into_inner))
        .collect::<Result<_>>()?;
    if plans.iter().all(|plan| matches!(plan, Unification::Keep)) {
        return Ok(parts);
    }
    if let Some(memory) = memory {
        let decoded = plans.iter().enumerate().filter(|(_, plan)| matches!(plan, Unification::Decode));
        let bytes = |at: usize| parts.iter().map(|part| part.columns[at].decoded_bytes()).sum::<usize>();
        memory.add(decoded.map(|(at, _)| bytes(at)).sum())?;
    }
    // Each part is taken out while it is worked on, so that its old columns are freed at once.
    let slots: Vec<Mutex<Option<Arc<Part>>>> = parts.into_iter().map(|part| Mutex::new(Some(part))).collect();
    parallel(slots.len(), &|at| {
        let mut slot = slots[at].lock().unwrap_or_else(PoisonError::into_inner);
        *slot = slot.take().map(|part| apply(&plans, part, at));
    });
    let parts = slots.into_iter().map(|slot| slot.into_inner().unwrap_or_else(PoisonError::into_inner));
    parts.map(|part| part.ok_or_else(|| Error::internal("a part was lost while it was encoded"))).collect()
}

fn plan(schema: &[Field], parts: &[Arc<Part>], column: usize, integers: bool) -> Result<Unification> {
    let columns: Vec<&Column> = parts.iter().map(|part| part.columns[column].as_ref()).collect();
    match schema[column].kind.repr() {
        Repr::Int if integers => {
            let ranges = columns.iter().filter_map(|column| column.range());
            let frame = CodeFrame::of(ranges.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1))));
            let agreed = columns.iter().all(|column| CodeFrame::current(column) == Some(frame));
            Ok(if agreed { Unification::Keep } else { Unification::Reframe(frame) })
        }
        Repr::Bytes => plan_text(&schema[column], &columns),
        _ => Ok(Unification::Keep),
    }
}

fn plan_text(field: &Field, columns: &[&Column]) -> Result<Unification> {
    let rows = columns.iter().map(|column| column.rows).sum();
    let coded = columns.iter().filter(|column| column.dictionary().is_some()).count();
    if coded == 0 {
        return Ok(Unification::Keep);
    }
    if coded < columns.len() {
        let plain: Vec<&Column> = columns.iter().copied().filter(|column| column.dictionary().is_none()).collect();
        let Some(interned) = intern_columns(&field.kind, &plain, rows)? else { return Ok(Unification::Decode) };
        let mut interned = interned.into_iter();
        let all: Vec<Column> = columns
            .iter()
            .filter_map(|column| match column.dictionary() {
                Some(_) => Some((*column).clone()),
                None => interned.next(),
            })
            .collect();
        let references: Vec<&Column> = all.iter().collect();
        return match merge(field, &references, rows)? {
            Unification::Recode(dictionary, remaps) => Ok(Unification::Replace(
                columns
                    .iter()
                    .zip(all.iter().zip(&remaps))
                    .map(|(old, (column, remap))| {
                        (!is_coded(old, &dictionary)).then(|| Arc::new(recode(column, remap, &dictionary)))
                    })
                    .collect(),
            )),
            other => Ok(other),
        };
    }
    merge(field, columns, rows)
}

/// Merges the dictionaries of columns that all have one.
fn merge(field: &Field, columns: &[&Column], rows: usize) -> Result<Unification> {
    let all: Vec<&Arc<Dictionary>> = columns.iter().filter_map(|column| column.dictionary()).collect();
    if all.iter().all(|dictionary| Arc::ptr_eq(dictionary, all[0])) {
        let pays = dictionary_pays(rows, all[0].len(), all[0].bytes().len());
        // One dictionary over several parts was somebody's choice; that of a single part was only an attempt.
        return Ok(if pays || columns.len() > 1 { Unification::Keep } else { Unification::Decode });
    }
    // A part of nulls only has a placeholder for a dictionary, which must not become a value of the table.
    let present: Vec<usize> = (0..columns.len()).filter(|at| columns[*at].null_count() < columns[*at].rows).collect();
    let mut dictionaries: Vec<&Arc<Dictionary>> = Vec::new();
    let mut place = Vec::with_capacity(present.len());
    for &at in &present {
        let known = dictionaries.iter().position(|dictionary| Arc::ptr_eq(dictionary, all[at]));
        place.push(known.unwrap_or(dictionaries.len()));
        if known.is_none() {
            dictionaries.push(all[at]);
        }
    }
    let (merged, remaps) = match dictionaries.as_slice() {
        [] => (Arc::new(Dictionary::placeholder(&field.kind)), Vec::new()),
        // The same pointer again: nothing but the placeholders changes.
        [one] => ((*one).clone(), vec![(0..one.len() as u32).collect()]),
        several => {
            let several: Vec<&Dictionary> = several.iter().map(|dictionary| dictionary.as_ref()).collect();
            let (merged, remaps) = Dictionary::merge(&several)?;
            // Rows appended with known values only leave the old dictionary, and with it the old parts, as they are.
            match dictionaries.iter().find(|dictionary| dictionary.as_ref() == &merged) {
                Some(same) => ((*same).clone(), remaps),
                None => (Arc::new(merged), remaps),
            }
        }
    };
    if !dictionary_pays(rows, merged.len(), merged.bytes().len()) {
        return Ok(Unification::Decode);
    }
    let mut plans = vec![None; columns.len()];
    for (&at, &dictionary) in present.iter().zip(&place) {
        plans[at] = Some(remaps[dictionary].clone());
    }
    Ok(Unification::Recode(merged, plans))
}

fn recode(column: &Column, remap: &Option<Vec<u32>>, dictionary: &Arc<Dictionary>) -> Column {
    match remap {
        Some(remap) => column.recode(remap, dictionary),
        None => column.recode(&[], dictionary),
    }
}

/// Tells whether a column is already codes of that dictionary, in its width.
fn is_coded(column: &Column, dictionary: &Arc<Dictionary>) -> bool {
    column.dictionary().is_some_and(|own| Arc::ptr_eq(own, dictionary))
        && column.width() == Codes::width_for(dictionary.len().saturating_sub(1) as u64)
}

fn apply(plans: &[Unification], part: Arc<Part>, at: usize) -> Arc<Part> {
    let columns: Vec<Arc<Column>> = plans
        .iter()
        .zip(&part.columns)
        .map(|(plan, column)| match plan {
            Unification::Reframe(frame) if CodeFrame::current(column) != Some(*frame) => {
                Arc::new(column.reframe(*frame))
            }
            Unification::Keep | Unification::Reframe(_) => column.clone(),
            Unification::Recode(dictionary, _) if is_coded(column, dictionary) => column.clone(),
            Unification::Recode(dictionary, remaps) => Arc::new(recode(column, &remaps[at], dictionary)),
            Unification::Replace(columns) => columns[at].clone().unwrap_or_else(|| column.clone()),
            Unification::Decode if column.dictionary().is_some() => Arc::new(column.decode()),
            Unification::Decode => column.clone(),
        })
        .collect();
    match columns.iter().zip(&part.columns).all(|(new, old)| Arc::ptr_eq(new, old)) {
        true => part,
        false => Arc::new(Part { rows: part.rows, columns }),
    }
}
