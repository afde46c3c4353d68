//! What planning asks of every value that a column may have: predicates tried, keys looked up.

use std::{cell::RefCell, rc::Rc, sync::Arc};

use tandem_column::{Dictionary, Result, Type};
use tandem_pipeline::{Expr, SlotId, UserFunction};
use tandem_plan::{Build, Candidates, Selector};

use crate::{
    Error, MemoryBudget, Reservation, Values, Vector, coded,
    evaluate::{self, Slots},
};

/// Text beyond this, in bytes, is not computed to try values one by one: rows are worked on a few thousand at a time.
const MOST_TEXT: usize = 16 << 20;

/// Evaluates predicates for the planner, on vectors.
pub struct VectorSelector<'s> {
    /// The user functions that they may call.
    pub functions: &'s [Arc<UserFunction>],
    /// What computed text counts against.
    pub memory: &'s Arc<MemoryBudget>,
}

impl Selector for VectorSelector<'_> {
    fn select(&self, expr: &Expr, slot: SlotId, kind: &Type, candidates: &Candidates) -> Result<Vec<u32>> {
        let vector = match candidates {
            Candidates::Codes(dictionary) => Vector::new(Values::Code {
                codes: (0..dictionary.len() as u32).collect(),
                dictionary: dictionary.clone(),
            }),
            Candidates::Integers { min, max } if *kind == Type::Boolean => {
                Vector::new(Values::Boolean((*min..=*max).map(|value| value as u8).collect()))
            }
            Candidates::Integers { min, max } => Vector::new(Values::Int((*min..=*max).collect())),
            Candidates::Null => Vector::nulls(kind, 1),
        };
        let text = RefCell::new(Reservation::new(self.memory, "the text of a few thousand rows"));
        let tried = Tried { slot, kind: kind.clone(), vector: Rc::new(vector), text };
        evaluate::select(expr, &tried, self.functions)
    }

    fn by_code(&self, build: &Build, dictionary: &Arc<Dictionary>, existence: bool) -> Result<Build> {
        coded::by_code(build, dictionary, existence)
    }
}

/// The values that one slot is tried with, as rows.
struct Tried {
    slot: SlotId,
    kind: Type,
    vector: Rc<Vector>,
    text: RefCell<Reservation>,
}

impl Slots for Tried {
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
