//! Three-valued AND, OR and NOT, and IS NULL.
//!
//! AND and OR look at their operands in order. A row that an operand decided is not given to later ones that may raise
//! an error, nor, once few rows are left, to any.

use tandem_column::Result;
use tandem_pipeline::{Expr, Value};

use super::Evaluator;
use super::kernels::{self, map};
use super::operand::Operand;
use crate::vector::{Values, Vector};

/// Computes AND: false decides.
pub(super) fn and(evaluator: &Evaluator<'_>, operands: &[Expr]) -> Result<Operand> {
    connect(evaluator, operands, 0)
}

/// Computes OR: true decides.
pub(super) fn or(evaluator: &Evaluator<'_>, operands: &[Expr]) -> Result<Operand> {
    connect(evaluator, operands, 1)
}

/// Computes NOT.
pub(super) fn not(evaluator: &Evaluator<'_>, input: &Expr) -> Result<Operand> {
    Ok(match evaluator.operand(input)? {
        Operand::Constant(Value::Boolean(value)) => Operand::Constant(Value::Boolean(!value)),
        Operand::Constant(_) => Operand::Constant(Value::Null),
        Operand::Vector(vector) => match &vector.values {
            Values::Boolean(values) => {
                Vector { values: Values::Boolean(map(values, |value| value ^ 1)), valid: vector.valid.clone() }.into()
            }
            _ => Operand::Constant(Value::Null), // an untyped NULL
        },
    })
}

/// Computes IS NULL.
pub(super) fn is_null(evaluator: &Evaluator<'_>, input: &Expr) -> Result<Operand> {
    Ok(match evaluator.operand(input)? {
        Operand::Constant(value) => Operand::Constant(Value::Boolean(matches!(value, Value::Null))),
        Operand::Vector(vector) => match &vector.valid {
            None => Operand::Constant(Value::Boolean(false)),
            Some(valid) => Vector::boolean(map(valid, |valid| valid ^ 1)).into(),
        },
    })
}

/// A boolean operand as a value and a validity per row, or one for all rows.
enum Outcomes {
    Constant(Option<u8>),
    Rows { values: Vec<u8>, valid: Option<Vec<u8>> },
}

fn truth(operand: Operand) -> Outcomes {
    match operand {
        Operand::Constant(Value::Boolean(value)) => Outcomes::Constant(Some(value.into())),
        Operand::Constant(_) => Outcomes::Constant(None),
        Operand::Vector(vector) => match &vector.values {
            Values::Boolean(values) => Outcomes::Rows { values: values.clone(), valid: vector.valid.clone() },
            _ => Outcomes::Constant(None), // an untyped NULL
        },
    }
}

/// What is known of each row after some operands: 1 where it is so.
struct State {
    /// An operand had the deciding value.
    decided: Vec<u8>,
    /// All operands had the other value.
    neutral: Vec<u8>,
    /// Some operand was null.
    nulls: bool,
}

impl State {
    /// Takes one operand of all rows, or of those at `positions`.
    fn take(&mut self, truth: Outcomes, decisive: u8, positions: Option<&[u32]>) {
        let rows = self.decided.len();
        let each: &mut dyn Iterator<Item = usize> = match positions {
            Some(positions) => &mut positions.iter().map(|&position| position as usize),
            None => &mut (0..rows),
        };
        match truth {
            Outcomes::Constant(Some(value)) if value != decisive => {}
            Outcomes::Constant(Some(_)) => each.for_each(|row| {
                self.decided[row] = 1;
                self.neutral[row] = 0;
            }),
            Outcomes::Constant(None) => {
                self.nulls = true;
                each.for_each(|row| self.neutral[row] = 0);
            }
            Outcomes::Rows { values, valid } => {
                self.nulls |= valid.is_some();
                let values = if decisive == 1 { values } else { map(&values, |value| value ^ 1) };
                match (positions, valid) {
                    (None, None) => {
                        or_into(&mut self.decided, &values);
                        and_not_into(&mut self.neutral, &values);
                    }
                    (None, Some(valid)) => {
                        or_into(&mut self.decided, &kernels::both(&values, &valid));
                        // Not neutral: the deciding value, or null.
                        and_not_into(&mut self.neutral, &map(&valid, |valid| valid ^ 1));
                        and_not_into(&mut self.neutral, &values);
                    }
                    (Some(positions), valid) => {
                        for (at, &row) in positions.iter().enumerate() {
                            let valid = valid.as_ref().map_or(1, |valid| valid[at]);
                            self.decided[row as usize] |= values[at] & valid;
                            self.neutral[row as usize] &= (values[at] ^ 1) & valid;
                        }
                    }
                }
            }
        }
    }
}

fn or_into(into: &mut [u8], from: &[u8]) {
    into.iter_mut().zip(from).for_each(|(into, from)| *into |= from);
}

fn and_not_into(into: &mut [u8], from: &[u8]) {
    into.iter_mut().zip(from).for_each(|(into, from)| *into &= from ^ 1);
}

fn connect(evaluator: &Evaluator<'_>, operands: &[Expr], decisive: u8) -> Result<Operand> {
    let rows = evaluator.rows();
    let mut state: Option<State> = None;
    let mut null = false; // a constant operand was null
    for operand in operands {
        match &mut state {
            None => match truth(evaluator.operand(operand)?) {
                Outcomes::Constant(Some(value)) if value == decisive => {
                    return Ok(Operand::Constant(Value::Boolean(decisive == 1)));
                }
                Outcomes::Constant(value) => null |= value.is_none(),
                rows_truth => {
                    let mut first = State { decided: vec![0; rows], neutral: vec![1; rows], nulls: null };
                    if null {
                        first.take(Outcomes::Constant(None), decisive, None);
                    }
                    first.take(rows_truth, decisive, None);
                    state = Some(first);
                }
            },
            Some(state) => {
                let decided: usize = state.decided.iter().map(|&decided| usize::from(decided)).sum();
                if decided == rows {
                    break;
                }
                let few = (rows - decided) * 4 < rows;
                if decided > 0 && (few || operand.may_fail()) {
                    let open = kernels::positions(&map(&state.decided, |decided| decided ^ 1));
                    let value = evaluator.within(&open, |subset| subset.operand(operand))?;
                    state.take(truth(value), decisive, Some(&open));
                } else {
                    state.take(truth(evaluator.operand(operand)?), decisive, None);
                }
            }
        }
    }
    let Some(State { decided, neutral, nulls }) = state else {
        return Ok(Operand::Constant(if null { Value::Null } else { Value::Boolean(decisive == 0) }));
    };
    let valid = nulls.then(|| {
        let mut valid = decided.clone();
        or_into(&mut valid, &neutral);
        valid
    });
    let values = if decisive == 1 { decided } else { neutral };
    Ok(Vector { values: Values::Boolean(values), valid }.into())
}
