//! Vectorised evaluation of expressions: a whole vector of active rows at a time.
//!
//! `evaluate` gives a value per row, `select` the rows where a predicate is true. What an expression means is defined
//! by the reference interpreter; here it is computed in loops over slices, and where there is no loop for a case, by the
//! interpreter's own scalar functions per value (`rowwise`). Two ideas run through all files: a literal stays one
//! `Operand::Constant` and is never expanded, and operands whose evaluation depends on others (CASE, AND, OR, COALESCE)
//! are computed on just the rows that need them, seen through a `Subset`, so that rows which do not never raise.

mod arithmetic;
mod bits;
mod cast;
mod compare;
mod conditional;
mod date;
mod decimal;
mod function;
mod kernels;
mod like;
mod logic;
mod membership;
mod meter;
mod number;
mod operand;
mod pattern;
mod rowwise;
mod supports;
mod text;

#[cfg(test)]
mod tests;

use std::{cell::RefCell, rc::Rc, sync::Arc};

use tandem_column::{Error, Result, Type};
use tandem_pipeline::{Expr, Slot, SlotId, UserFunction, Value, scalar::pattern::Patterns};

use crate::vector::{Values, Vector, bytes};
use operand::Operand;
pub use supports::supports;

/// The slots of the active rows.
pub(crate) trait Slots {
    /// Returns how many rows are active.
    fn rows(&self) -> usize;
    /// Returns a slot's values, one per active row.
    fn vector(&self, slot: SlotId) -> Result<Rc<Vector>>;
    /// Returns a slot's type.
    fn kind(&self, slot: SlotId) -> &Type;
    /// Takes memory for values of varying length that are about to be computed, for as long as the rows are worked on.
    ///
    /// # Errors
    /// Exhausted if the memory budget is used up.
    fn reserve(&self, _bytes: usize) -> Result<()> {
        Ok(())
    }
    /// Returns where compiled regular expressions are kept; none where each evaluation compiles its own.
    fn patterns(&self) -> Option<&Patterns> {
        None
    }
    /// Returns the slots with their names, so that errors can name them; none where names are not known.
    fn named(&self) -> &[Slot] {
        &[]
    }
}

/// Computes an expression for every active row.
pub(crate) fn evaluate(expr: &Expr, slots: &dyn Slots, functions: &[Arc<UserFunction>]) -> Result<Rc<Vector>> {
    let evaluator = Evaluator { slots, functions };
    let operand = evaluator.operand(expr)?;
    if let Operand::Constant(value) = &operand {
        slots.reserve(bytes(value).len().saturating_mul(slots.rows()))?;
    }
    Ok(operand.into_vector(|| evaluator.kind(expr), slots.rows()))
}

/// Returns the positions, ascending, of the rows where a predicate is true (not false, not null).
pub(crate) fn select(expr: &Expr, slots: &dyn Slots, functions: &[Arc<UserFunction>]) -> Result<Vec<u32>> {
    Evaluator { slots, functions }.select(expr)
}

/// The rows at some positions of other slots.
pub(crate) struct Subset<'a> {
    slots: &'a dyn Slots,
    positions: &'a [u32],
    taken: RefCell<Vec<(SlotId, Rc<Vector>)>>,
}

impl<'a> Subset<'a> {
    /// Makes a view of the rows at `positions`.
    pub(crate) fn new(slots: &'a dyn Slots, positions: &'a [u32]) -> Self {
        Subset { slots, positions, taken: RefCell::default() }
    }
}

impl Slots for Subset<'_> {
    fn rows(&self) -> usize {
        self.positions.len()
    }

    fn vector(&self, slot: SlotId) -> Result<Rc<Vector>> {
        if let Some((_, vector)) = self.taken.borrow().iter().find(|(taken, _)| *taken == slot) {
            return Ok(vector.clone());
        }
        let all = self.slots.vector(slot)?;
        self.slots.reserve(all.text_bytes(self.positions))?;
        let vector = Rc::new(all.take(self.positions));
        self.taken.borrow_mut().push((slot, vector.clone()));
        Ok(vector)
    }

    fn reserve(&self, bytes: usize) -> Result<()> {
        self.slots.reserve(bytes)
    }

    fn kind(&self, slot: SlotId) -> &Type {
        self.slots.kind(slot)
    }

    fn patterns(&self) -> Option<&Patterns> {
        self.slots.patterns()
    }

    fn named(&self) -> &[Slot] {
        self.slots.named()
    }
}

/// For which rows a predicate is true.
enum Truth {
    All,
    None,
    Mask(Vec<u8>),
}

/// What evaluation needs besides the expression.
#[derive(Clone, Copy)]
struct Evaluator<'a> {
    slots: &'a dyn Slots,
    functions: &'a [Arc<UserFunction>],
}

impl Evaluator<'_> {
    fn rows(&self) -> usize {
        self.slots.rows()
    }

    fn kind(&self, expr: &Expr) -> Type {
        expr.kind_with(&|slot| self.slots.kind(slot).clone())
    }

    /// Computes an expression: once if it is constant, else per row.
    fn operand(&self, expr: &Expr) -> Result<Operand> {
        match expr {
            Expr::Literal(value, _) => Ok(Operand::Constant(value.clone())),
            // Without rows nothing may raise, so nothing is computed.
            _ if self.rows() == 0 => Ok(Vector::empty(&self.kind(expr)).into()),
            Expr::Slot(slot) => self.slots.vector(*slot).map(Operand::Vector),
            Expr::Arithmetic(operation) => arithmetic::arithmetic(self, operation),
            Expr::Negate(input, overflow) => arithmetic::negate(self, input, *overflow),
            Expr::Compare(comparison, left, right) => compare::compare(self, *comparison, left, right),
            Expr::Distinct(left, right) => compare::distinct(self, left, right),
            Expr::And(operands) => logic::and(self, operands),
            Expr::Or(operands) => logic::or(self, operands),
            Expr::Not(input) => logic::not(self, input),
            Expr::IsNull(input) => logic::is_null(self, input),
            Expr::Case { branches, otherwise, kind } => conditional::case(self, branches, otherwise.as_deref(), kind),
            Expr::Cast { input, kind, failure } => cast::cast(self, input, kind, *failure),
            Expr::In { input, list } => membership::is_in(self, input, list),
            Expr::Like { input, pattern, escape, ignore_case } => {
                like::like(self, input, pattern, *escape, *ignore_case)
            }
            Expr::Function { function, arguments, kind } => function::function(self, *function, arguments, kind),
            Expr::Call { function, arguments, kind } => rowwise::call(self, *function, arguments, kind),
            Expr::Element(..) | Expr::ListLength(_) => {
                Err(Error::unsupported("lists exist only inside user functions"))
            }
        }
    }

    /// Evaluates on just the rows at some positions.
    fn within<R>(&self, positions: &[u32], run: impl FnOnce(&Evaluator<'_>) -> Result<R>) -> Result<R> {
        run(&Evaluator { slots: &Subset::new(self.slots, positions), functions: self.functions })
    }

    fn select(&self, expr: &Expr) -> Result<Vec<u32>> {
        if let Expr::And(operands) = expr
            && !operands.iter().any(Expr::may_fail)
        {
            return self.select_all(operands);
        }
        Ok(match self.truth(expr)? {
            Truth::All => (0..self.rows() as u32).collect(),
            Truth::None => Vec::new(),
            Truth::Mask(mask) => kernels::positions(&mask),
        })
    }

    /// Tells for which rows a predicate is true.
    fn truth(&self, expr: &Expr) -> Result<Truth> {
        Ok(match self.operand(expr)? {
            Operand::Constant(Value::Boolean(true)) => Truth::All,
            Operand::Constant(_) => Truth::None,
            Operand::Vector(vector) => match (&vector.values, &vector.valid) {
                (Values::Boolean(values), Some(valid)) => Truth::Mask(kernels::both(values, valid)),
                (Values::Boolean(_), None) => match Rc::unwrap_or_clone(vector).values {
                    Values::Boolean(values) => Truth::Mask(values),
                    _ => Truth::None,
                },
                _ => Truth::None, // an untyped NULL
            },
        })
    }

    /// Narrows the rows by each operand in turn; a row that one does not keep is not looked at again.
    fn select_all(&self, operands: &[Expr]) -> Result<Vec<u32>> {
        let Some((first, rest)) = operands.split_first() else { return Ok((0..self.rows() as u32).collect()) };
        let mut kept = self.select(first)?;
        for operand in rest {
            if kept.is_empty() {
                break;
            }
            // Computing for all rows is cheaper than fetching the values of most of them once more.
            if kept.len() * 2 > self.rows() {
                match self.truth(operand)? {
                    Truth::All => {}
                    Truth::None => kept.clear(),
                    Truth::Mask(mask) => kept.retain(|&position| mask[position as usize] != 0),
                }
                continue;
            }
            let more = self.within(&kept, |subset| subset.select(operand))?;
            kept = more.into_iter().map(|position| kept[position as usize]).collect();
        }
        Ok(kept)
    }
}
