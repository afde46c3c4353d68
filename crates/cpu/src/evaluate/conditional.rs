//! CASE, COALESCE and NULLIF: each row takes its value from one operand, which is computed for just the rows that do.

use std::sync::Arc;

use tandem_column::{Repr, Result, Type};
use tandem_pipeline::{Comparison, Expr, Value};

use super::kernels::{both, map, positions};
use super::operand::Operand;
use super::{Evaluator, compare, rowwise};
use crate::vector::{BytesVector, Values, Vector, bytes, float, integer};

/// The rows at some positions and their values, in the same order.
struct Piece {
    positions: Vec<u32>,
    operand: Operand,
}

/// Computes CASE: the value of the first true branch, else of `otherwise`, else null.
pub(super) fn case(
    evaluator: &Evaluator<'_>,
    branches: &[(Expr, Expr)],
    otherwise: Option<&Expr>,
    kind: &Type,
) -> Result<Operand> {
    let mut pieces = Vec::with_capacity(branches.len() + 1);
    let mut open: Vec<u32> = (0..evaluator.rows() as u32).collect();
    for (condition, value) in branches {
        if open.is_empty() {
            break;
        }
        let taken = restricted(evaluator, &open, |subset| subset.select(condition))?;
        if taken.is_empty() {
            continue;
        }
        let mut rest = Vec::with_capacity(open.len() - taken.len());
        let mut next = taken.iter().copied().peekable();
        for (at, &row) in open.iter().enumerate() {
            if next.next_if_eq(&(at as u32)).is_none() {
                rest.push(row);
            }
        }
        let positions: Vec<u32> = taken.into_iter().map(|at| open[at as usize]).collect();
        let operand = restricted(evaluator, &positions, |subset| subset.operand(value))?;
        pieces.push(Piece { positions, operand });
        open = rest;
    }
    if let Some(otherwise) = otherwise
        && !open.is_empty()
    {
        let operand = restricted(evaluator, &open, |subset| subset.operand(otherwise))?;
        pieces.push(Piece { positions: open, operand });
    }
    assemble(evaluator, kind, pieces)
}

/// Computes COALESCE: the first argument that is not null.
pub(super) fn coalesce(evaluator: &Evaluator<'_>, arguments: &[Expr], kind: &Type) -> Result<Operand> {
    let mut pieces = Vec::with_capacity(arguments.len());
    let mut open: Vec<u32> = (0..evaluator.rows() as u32).collect();
    for argument in arguments {
        if open.is_empty() {
            break;
        }
        let operand = restricted(evaluator, &open, |subset| subset.operand(argument))?;
        if operand.is_null() {
            continue;
        }
        let Some(valid) = operand.valid() else {
            pieces.push(Piece { positions: std::mem::take(&mut open), operand });
            break;
        };
        let present = positions(valid);
        let absent = positions(&map(valid, |valid| valid ^ 1));
        let taken = match &operand {
            Operand::Vector(vector) => vector.take(&present).into(),
            constant => constant.clone(),
        };
        let rows = |at: Vec<u32>| at.into_iter().map(|at| open[at as usize]).collect::<Vec<_>>();
        let (present, absent) = (rows(present), rows(absent));
        if !present.is_empty() {
            pieces.push(Piece { positions: present, operand: taken });
        }
        open = absent;
    }
    assemble(evaluator, kind, pieces)
}

/// Computes NULLIF: null where both sides are equal, else the first.
pub(super) fn null_if(evaluator: &Evaluator<'_>, first: &Expr, second: &Expr, kind: &Type) -> Result<Operand> {
    let sides = [evaluator.operand(first)?, evaluator.operand(second)?];
    if sides.iter().any(Operand::is_null) {
        return Ok(sides[0].clone());
    }
    let kinds = [evaluator.kind(first), evaluator.kind(second)];
    if let Operand::Vector(vector) = &sides[0]
        && kinds[0] == kinds[1]
        && let Some(unequal) = compare::mask(Comparison::NotEqual, &sides[0], &sides[1])
    {
        // Against a null the sides are not equal.
        let keep = match sides[1].valid() {
            None => unequal,
            Some(valid) => unequal.iter().zip(valid).map(|(unequal, valid)| unequal | (valid ^ 1)).collect(),
        };
        let valid = match &vector.valid {
            None => keep,
            Some(valid) => both(&keep, valid),
        };
        return Ok(Vector { values: vector.values.clone(), valid: Some(valid) }.into());
    }
    rowwise::function(evaluator, tandem_pipeline::Function::NullIf, &sides, &kinds, kind)
}

/// Evaluates on the rows at ascending positions; all of them need no view.
fn restricted<R>(
    evaluator: &Evaluator<'_>,
    positions: &[u32],
    run: impl FnOnce(&Evaluator<'_>) -> Result<R>,
) -> Result<R> {
    if positions.len() == evaluator.rows() { run(evaluator) } else { evaluator.within(positions, run) }
}

/// Puts pieces together; rows of none are null.
fn assemble(evaluator: &Evaluator<'_>, kind: &Type, mut pieces: Vec<Piece>) -> Result<Operand> {
    let rows = evaluator.rows();
    if pieces.len() == 1 && pieces[0].positions.len() == rows && pieces[0].operand.held_as(kind.repr()) {
        return Ok(pieces.swap_remove(0).operand);
    }
    let covered: usize = pieces.iter().map(|piece| piece.positions.len()).sum();
    let nulls = covered < rows || pieces.iter().any(|piece| piece.operand.is_null() || piece.operand.valid().is_some());
    let valid = nulls.then(|| {
        let mut valid = vec![0; rows];
        for Piece { positions, operand } in &pieces {
            match operand.valid() {
                Some(from) => scatter(&mut valid, positions, |at| from[at]),
                None => scatter(&mut valid, positions, |_| u8::from(!operand.is_null())),
            }
        }
        valid
    });
    let values = match kind.repr() {
        Repr::Boolean => Values::Boolean(fixed(
            rows,
            &pieces,
            |values| match values {
                Values::Boolean(values) => values,
                _ => &[],
            },
            |value| matches!(value, Value::Boolean(true)).into(),
        )),
        Repr::Int | Repr::Other => Values::Int(fixed(
            rows,
            &pieces,
            |values| match values {
                Values::Int(values) => values,
                _ => &[],
            },
            |value| integer(value) as i64,
        )),
        Repr::Wide => Values::Wide(fixed(
            rows,
            &pieces,
            |values| match values {
                Values::Wide(values) => values,
                _ => &[],
            },
            integer,
        )),
        Repr::Float => Values::Float(fixed(
            rows,
            &pieces,
            |values| match values {
                Values::Float(values) => values,
                _ => &[],
            },
            float,
        )),
        Repr::Bytes => text(evaluator, &pieces)?,
    };
    Ok(Vector { values, valid }.into())
}

fn scatter<T>(into: &mut [T], positions: &[u32], from: impl Fn(usize) -> T) {
    positions.iter().enumerate().for_each(|(at, &row)| into[row as usize] = from(at));
}

/// Puts values of one width together. `slice` gives the values of a vector; nothing for an untyped NULL.
fn fixed<T: Copy + Default>(
    rows: usize,
    pieces: &[Piece],
    slice: impl Fn(&Values) -> &[T],
    single: impl Fn(&Value) -> T,
) -> Vec<T> {
    let mut out = vec![T::default(); rows];
    for Piece { positions, operand } in pieces {
        match operand {
            Operand::Constant(value) => {
                let value = single(value);
                scatter(&mut out, positions, |_| value);
            }
            Operand::Vector(vector) => {
                let values = slice(&vector.values);
                if values.len() == positions.len() {
                    scatter(&mut out, positions, |at| values[at]);
                }
            }
        }
    }
    out
}

/// Puts text together: as codes if all pieces share a dictionary, else as bytes.
fn text(evaluator: &Evaluator<'_>, pieces: &[Piece]) -> Result<Values> {
    let rows = evaluator.rows();
    let mut shared = None;
    let same = pieces.iter().all(|piece| match &piece.operand {
        Operand::Constant(value) => matches!(value, Value::Null),
        Operand::Vector(vector) => match &vector.values {
            Values::Code { dictionary, .. } => Arc::ptr_eq(shared.get_or_insert(dictionary), dictionary),
            _ => false,
        },
    });
    if let Some(dictionary) = shared.filter(|_| same) {
        let codes = fixed(
            rows,
            pieces,
            |values| match values {
                Values::Code { codes, .. } => codes,
                _ => &[],
            },
            |_| 0,
        );
        return Ok(Values::Code { codes, dictionary: dictionary.clone() });
    }
    let mut origin = vec![(u32::MAX, 0u32); rows];
    for (number, piece) in pieces.iter().enumerate() {
        scatter(&mut origin, &piece.positions, |at| (number as u32, at as u32));
    }
    let value = |(number, at): (u32, u32)| match pieces.get(number as usize).map(|piece| &piece.operand) {
        None => &[][..],
        Some(Operand::Constant(value)) => bytes(value),
        Some(Operand::Vector(vector)) => vector.values.bytes(at as usize),
    };
    let length = origin.iter().map(|&from| value(from).len()).sum();
    evaluator.slots.reserve(length)?;
    let mut out = BytesVector::with_capacity(rows, length);
    origin.into_iter().for_each(|from| out.push(value(from)));
    Ok(Values::Bytes(out))
}
