//! What type an expression has, and whether it may be null.

use tandem_column::Type;

use crate::{ArithmeticOperator, Expr, Failure, Overflow, Slot, SlotId};

impl Expr {
    /// Returns the type of the value; that of a slot out of range is null.
    pub fn kind(&self, slots: &[Slot]) -> Type {
        self.kind_with(&|slot| slots.get(slot).map_or(Type::Null, |slot| slot.kind.clone()))
    }

    /// Returns the type of the value, given the types of slots.
    pub fn kind_with(&self, slot_kind: &dyn Fn(SlotId) -> Type) -> Type {
        match self {
            Expr::Slot(slot) => slot_kind(*slot),
            Expr::Literal(_, kind) => kind.clone(),
            Expr::Arithmetic(arithmetic) => arithmetic.kind.clone(),
            Expr::Negate(input, _) => input.kind_with(slot_kind),
            Expr::Compare(..) | Expr::Distinct(..) | Expr::And(_) | Expr::Or(_) | Expr::Not(_) => Type::Boolean,
            Expr::IsNull(_) | Expr::In { .. } | Expr::Like { .. } => Type::Boolean,
            Expr::Case { kind, .. } | Expr::Cast { kind, .. } => kind.clone(),
            Expr::Function { kind, .. } | Expr::Call { kind, .. } => kind.clone(),
            Expr::Element(list, _) => match list.kind_with(slot_kind) {
                Type::List(of) => (*of).clone(),
                _ => Type::Null,
            },
            Expr::ListLength(_) => Type::Int64,
        }
    }

    /// Tells whether the value may be null.
    pub fn nullable(&self, slots: &[Slot]) -> bool {
        let any = |inputs: &[Expr]| inputs.iter().any(|input| input.nullable(slots));
        match self {
            Expr::Slot(slot) => slots.get(*slot).is_none_or(|slot| slot.nullable),
            Expr::Literal(value, _) => value.is_null(),
            Expr::Arithmetic(arithmetic) => {
                let divides = matches!(arithmetic.operator, ArithmeticOperator::Divide | ArithmeticOperator::Remainder);
                arithmetic.overflow == Overflow::Null
                    || divides && arithmetic.zero == Failure::Null
                    || arithmetic.left.nullable(slots)
                    || arithmetic.right.nullable(slots)
            }
            Expr::Negate(input, overflow) => *overflow == Overflow::Null || input.nullable(slots),
            Expr::Compare(_, left, right) => left.nullable(slots) || right.nullable(slots),
            Expr::Distinct(..) | Expr::IsNull(_) => false,
            Expr::And(inputs) | Expr::Or(inputs) => any(inputs),
            Expr::Not(input) | Expr::Like { input, .. } | Expr::ListLength(input) => input.nullable(slots),
            Expr::Case { branches, otherwise, .. } => {
                otherwise.as_ref().is_none_or(|value| value.nullable(slots))
                    || branches.iter().any(|(_, value)| value.nullable(slots))
            }
            Expr::Cast { input, failure, .. } => *failure == Failure::Null || input.nullable(slots),
            Expr::In { input, list } => input.nullable(slots) || list.iter().any(|value| value.is_null()),
            Expr::Function { function, arguments, .. } => {
                function.nullable(arguments.iter().map(|argument| argument.nullable(slots)))
            }
            Expr::Call { .. } | Expr::Element(..) => true,
        }
    }
}
