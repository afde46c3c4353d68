//! Walking expressions: their operands, the slots they read, and copies with other slots.

use std::collections::BTreeSet;

use crate::{Arithmetic, Expr, SlotId};

impl Expr {
    /// Returns the operands, in order of evaluation.
    pub fn children(&self) -> Vec<&Expr> {
        match self {
            Expr::Slot(_) | Expr::Literal(..) => vec![],
            Expr::Arithmetic(arithmetic) => vec![&arithmetic.left, &arithmetic.right],
            Expr::Negate(input, _) | Expr::Not(input) | Expr::IsNull(input) | Expr::ListLength(input) => vec![input],
            Expr::Compare(_, left, right) | Expr::Distinct(left, right) | Expr::Element(left, right) => {
                vec![left, right]
            }
            Expr::And(inputs) | Expr::Or(inputs) => inputs.iter().collect(),
            Expr::Case { branches, otherwise, .. } => {
                let branches = branches.iter().flat_map(|(condition, value)| [condition, value]);
                branches.chain(otherwise.as_deref()).collect()
            }
            Expr::Cast { input, .. } | Expr::In { input, .. } | Expr::Like { input, .. } => vec![input],
            Expr::Function { arguments, .. } | Expr::Call { arguments, .. } => arguments.iter().collect(),
        }
    }

    /// Makes a copy whose operands are what `map` makes of them.
    pub fn map_children(&self, map: &mut dyn FnMut(&Expr) -> Expr) -> Expr {
        match self {
            Expr::Slot(_) | Expr::Literal(..) => self.clone(),
            Expr::Arithmetic(arithmetic) => Expr::Arithmetic(Box::new(Arithmetic {
                left: map(&arithmetic.left),
                right: map(&arithmetic.right),
                kind: arithmetic.kind.clone(),
                ..**arithmetic
            })),
            Expr::Negate(input, overflow) => Expr::Negate(Box::new(map(input)), *overflow),
            Expr::Compare(comparison, left, right) => {
                Expr::Compare(*comparison, Box::new(map(left)), Box::new(map(right)))
            }
            Expr::Distinct(left, right) => Expr::Distinct(Box::new(map(left)), Box::new(map(right))),
            Expr::And(inputs) => Expr::And(inputs.iter().map(map).collect()),
            Expr::Or(inputs) => Expr::Or(inputs.iter().map(map).collect()),
            Expr::Not(input) => Expr::Not(Box::new(map(input))),
            Expr::IsNull(input) => Expr::IsNull(Box::new(map(input))),
            Expr::Case { branches, otherwise, kind } => Expr::Case {
                branches: branches.iter().map(|(condition, value)| (map(condition), map(value))).collect(),
                otherwise: otherwise.as_ref().map(|value| Box::new(map(value))),
                kind: kind.clone(),
            },
            Expr::Cast { input, kind, failure } => {
                Expr::Cast { input: Box::new(map(input)), kind: kind.clone(), failure: *failure }
            }
            Expr::In { input, list } => Expr::In { input: Box::new(map(input)), list: list.clone() },
            Expr::Like { input, pattern, escape, ignore_case } => Expr::Like {
                input: Box::new(map(input)),
                pattern: pattern.clone(),
                escape: *escape,
                ignore_case: *ignore_case,
            },
            Expr::Function { function, arguments, kind } => Expr::Function {
                function: *function,
                arguments: arguments.iter().map(map).collect(),
                kind: kind.clone(),
            },
            Expr::Call { function, arguments, kind } => {
                Expr::Call { function: *function, arguments: arguments.iter().map(map).collect(), kind: kind.clone() }
            }
            Expr::Element(list, index) => Expr::Element(Box::new(map(list)), Box::new(map(index))),
            Expr::ListLength(list) => Expr::ListLength(Box::new(map(list))),
        }
    }

    /// Calls `visit` with every slot that is read, in order, as often as it is.
    pub fn visit_slots(&self, visit: &mut dyn FnMut(SlotId)) {
        match self {
            Expr::Slot(slot) => visit(*slot),
            _ => self.children().into_iter().for_each(|child| child.visit_slots(visit)),
        }
    }

    /// Makes a copy that reads other slots.
    pub fn map_slots(&self, map: &dyn Fn(SlotId) -> SlotId) -> Expr {
        match self {
            Expr::Slot(slot) => Expr::Slot(map(*slot)),
            _ => self.map_children(&mut |child| child.map_slots(map)),
        }
    }

    /// Returns the slots that are read.
    pub fn slots(&self) -> BTreeSet<SlotId> {
        let mut slots = BTreeSet::new();
        self.visit_slots(&mut |slot| {
            slots.insert(slot);
        });
        slots
    }

    /// Returns the conditions that must all be true for this one to be: nested conjunctions flattened.
    pub fn conjuncts(&self) -> Vec<&Expr> {
        match self {
            Expr::And(inputs) => inputs.iter().flat_map(Expr::conjuncts).collect(),
            other => vec![other],
        }
    }

    /// Reads a comparison, or one that is fulfilled as well if one of its sides is null (`a < b or b is null`): the comparison,
    /// and that side.
    pub fn as_comparison(&self) -> Option<(&Expr, Option<&Expr>)> {
        match self {
            Expr::Compare(..) => Some((self, None)),
            Expr::Or(inputs) => match inputs.as_slice() {
                [Expr::IsNull(side), comparison @ Expr::Compare(_, left, right)]
                | [comparison @ Expr::Compare(_, left, right), Expr::IsNull(side)]
                    if side == left || side == right =>
                {
                    Some((comparison, Some(side)))
                }
                _ => None,
            },
            _ => None,
        }
    }

    /// Tells whether the value is the same for every row.
    pub fn is_constant(&self) -> bool {
        match self {
            Expr::Slot(_) => false,
            _ => self.children().into_iter().all(Expr::is_constant),
        }
    }
}
