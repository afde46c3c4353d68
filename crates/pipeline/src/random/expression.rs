//! Random expressions of a wanted type.

use rand::RngCore;
use tandem_column::{TimeUnit, Type};

use super::{below, chance, pick, table};
use crate::{
    Arithmetic, ArithmeticOperator, Comparison, DateField, Expr, Failure, Function, Overflow, Slot, SlotId, Value,
    builtin::{ArgumentRule, Gives, TABLE},
    scalar::cast::castable,
};

/// Makes an expression of a type over some slots, nested at most `depth` deep, that cannot fail.
pub fn expression(rng: &mut dyn RngCore, kind: &Type, slots: &[Slot], depth: usize) -> Expr {
    Maker { rng, slots }.of(kind, depth)
}

/// What is needed to make expressions.
struct Maker<'a> {
    rng: &'a mut dyn RngCore,
    slots: &'a [Slot],
}

/// The comparisons.
const COMPARISONS: [Comparison; 6] = [
    Comparison::Equal,
    Comparison::NotEqual,
    Comparison::Less,
    Comparison::LessOrEqual,
    Comparison::Greater,
    Comparison::GreaterOrEqual,
];

/// The operators.
const OPERATORS: [ArithmeticOperator; 5] = [
    ArithmeticOperator::Add,
    ArithmeticOperator::Subtract,
    ArithmeticOperator::Multiply,
    ArithmeticOperator::Divide,
    ArithmeticOperator::Remainder,
];

impl Maker<'_> {
    /// Makes an expression of a type.
    fn of(&mut self, kind: &Type, depth: usize) -> Expr {
        if depth == 0 || chance(self.rng, 4) {
            return self.leaf(kind);
        }
        match below(self.rng, 10) {
            0 => Expr::Case {
                branches: (0..1 + below(self.rng, 2))
                    .map(|_| (self.of(&Type::Boolean, depth - 1), self.of(kind, depth - 1)))
                    .collect(),
                otherwise: chance(self.rng, 2).then(|| Box::new(self.of(kind, depth - 1))),
                kind: kind.clone(),
            },
            1 => self.builtin(kind, depth),
            2 => self.cast(kind, depth),
            _ => self.special(kind, depth),
        }
    }

    /// Makes a slot, a literal or, rarely, a null.
    fn leaf(&mut self, kind: &Type) -> Expr {
        let slots: Vec<SlotId> = (0..self.slots.len()).filter(|slot| self.slots[*slot].kind == *kind).collect();
        if !slots.is_empty() && !chance(self.rng, 5) {
            return Expr::Slot(*pick(self.rng, &slots));
        }
        let value = if chance(self.rng, 12) { Value::Null } else { table::literal(self.rng, kind) };
        Expr::Literal(value, kind.clone())
    }

    /// Makes a cast from another type.
    fn cast(&mut self, kind: &Type, depth: usize) -> Expr {
        let from = match self.slots.is_empty() {
            true => Type::Int64,
            false => pick(self.rng, self.slots).kind.clone(),
        };
        // Numbers make dates outside the calendar, of which some functions fail.
        let instant = matches!(kind, Type::Date | Type::Time(_) | Type::Timestamp(..));
        if !castable(&from, kind) || instant && from.is_numeric() {
            return self.special(kind, depth);
        }
        Expr::Cast { input: Box::new(self.of(&from, depth - 1)), kind: kind.clone(), failure: Failure::Null }
    }

    /// Makes a call of one of the functions of the table that give the type and, of such arguments, cannot fail.
    fn builtin(&mut self, kind: &Type, depth: usize) -> Expr {
        let fields: Vec<DateField> = DateField::all().collect();
        let field = *pick(self.rng, &fields);
        let functions = TABLE.iter().filter_map(|entry| entry.function(entry.takes_field().then_some(field)));
        let functions: Vec<Function> = functions.filter(|of| of.can_give(kind) && cannot_fail(*of, kind)).collect();
        if functions.is_empty() {
            return self.leaf(kind);
        }
        let function = *pick(self.rng, &functions);
        let (least, most) = function.arity();
        // Rounding an integer to tens may leave its type.
        let most = if function == Function::Round && kind.is_integer() { least } else { most.min(least + 2) };
        let count = least + below(self.rng, most - least + 1);
        let mut arguments: Vec<Expr> = Vec::with_capacity(count);
        for place in 0..count {
            let first = arguments.first().map_or(Type::Null, |first| first.kind(self.slots));
            arguments.push(self.argument(function, place, kind, &first, depth - 1));
        }
        Expr::Function { function, arguments, kind: kind.clone() }
    }

    /// Makes an argument of a function that gives `kind`, within what it takes without failing.
    fn argument(&mut self, function: Function, place: usize, kind: &Type, first: &Type, depth: usize) -> Expr {
        let gives = function.entry().gives;
        let integer = |value: usize, low: i128| Expr::Literal(Value::Integer(low + value as i128), Type::Int64);
        let text = |text: &&str| Expr::Literal(Value::string(*text), Type::String);
        use Function::{RegexpLike, RegexpMatch, RegexpReplace};
        match (function, place) {
            (Function::SplitPart | RegexpMatch, 2) => return integer(below(self.rng, 3), 1),
            (RegexpLike | RegexpMatch | RegexpReplace, 1) => {
                let patterns = ["", "a", "^a|b$", "(a)(x)?(.)", "[^a-z]+", "\\w+\\s*", "(?i)R", "é.", ".*"];
                return text(pick(self.rng, &patterns));
            }
            (RegexpReplace, 2) => return text(pick(self.rng, &["", "-", "\\1\\2", "<\\0>", "$1", "\\\\1\\x"])),
            (RegexpLike | RegexpMatch, _) if place > 1 => return text(pick(self.rng, &["", "i", "s"])),
            (RegexpReplace, 3) => return text(pick(self.rng, &["", "g", "ig", "i"])),
            (Function::Substring, 2) => return integer(below(self.rng, 8), 0),
            (Function::Power, 1) => return Expr::Literal(Value::Float(2.0), Type::Float64),
            _ => {}
        }
        match function.argument(place).unwrap_or(ArgumentRule::Same) {
            ArgumentRule::Integer => integer(below(self.rng, 12), -4),
            ArgumentRule::Text | ArgumentRule::TextOrBytes => self.of(&Type::String, depth),
            ArgumentRule::Number if gives == Gives::Float => self.of(&Type::Float64, depth),
            ArgumentRule::AsFirst => self.of(first, depth),
            ArgumentRule::Instant | ArgumentRule::PlainInstant if gives != Gives::First => {
                let from = pick(self.rng, &[Type::Date, Type::Timestamp(TimeUnit::Microsecond, None)]).clone();
                self.of(&from, depth)
            }
            _ => self.of(kind, depth),
        }
    }

    /// Makes arithmetic that wraps or gives null.
    fn arithmetic(&mut self, operators: &[ArithmeticOperator], types: [&Type; 3], depth: usize) -> Expr {
        let [left, right, kind] = types;
        let wraps = kind.is_integer() && chance(self.rng, 2);
        Expr::Arithmetic(Box::new(Arithmetic {
            operator: *pick(self.rng, operators),
            left: self.of(left, depth - 1),
            right: self.of(right, depth - 1),
            kind: kind.clone(),
            overflow: if wraps { Overflow::Wrap } else { Overflow::Null },
            zero: Failure::Null,
        }))
    }

    /// Makes one of the operations that give the type.
    fn special(&mut self, kind: &Type, depth: usize) -> Expr {
        match kind {
            Type::Boolean => self.condition(depth),
            Type::String => self.builtin(kind, depth),
            Type::Float32 | Type::Float64 => match below(self.rng, 6) {
                0 => Expr::Negate(Box::new(self.of(kind, depth - 1)), Overflow::Null),
                1..=3 => self.builtin(kind, depth),
                _ => self.arithmetic(&OPERATORS, [kind, kind, kind], depth),
            },
            Type::Decimal { .. } => self.decimal(kind, depth),
            Type::Date | Type::Timestamp(..) => match below(self.rng, 3) {
                0 => self.builtin(kind, depth),
                1 => self.leaf(kind),
                _ => {
                    let operators = [ArithmeticOperator::Add, ArithmeticOperator::Subtract];
                    self.arithmetic(&operators, [kind, &Type::Interval, kind], depth)
                }
            },
            Type::Int32 if chance(self.rng, 3) => self.builtin(kind, depth),
            Type::Int64 if chance(self.rng, 8) => {
                self.arithmetic(&[ArithmeticOperator::Subtract], [&Type::Date, &Type::Date, kind], depth)
            }
            kind if kind.is_integer() => match below(self.rng, 6) {
                0 => Expr::Negate(Box::new(self.of(kind, depth - 1)), Overflow::Wrap),
                1 => self.builtin(kind, depth),
                _ => self.arithmetic(&OPERATORS, [kind, kind, kind], depth),
            },
            _ => self.leaf(kind),
        }
    }

    /// Makes a condition.
    fn condition(&mut self, depth: usize) -> Expr {
        let kind = match self.slots.is_empty() || chance(self.rng, 6) {
            true => table::kind(self.rng),
            false => pick(self.rng, self.slots).kind.clone(),
        };
        let inputs = |maker: &mut Self| (0..below(maker.rng, 4)).map(|_| maker.of(&Type::Boolean, depth - 1)).collect();
        match below(self.rng, 12) {
            0 => Expr::And(inputs(self)),
            1 => Expr::Or(inputs(self)),
            2 => Expr::Not(Box::new(self.of(&Type::Boolean, depth - 1))),
            3 => Expr::IsNull(Box::new(self.of(&kind, depth - 1))),
            4 => Expr::Distinct(Box::new(self.of(&kind, depth - 1)), Box::new(self.of(&kind, depth - 1))),
            5 | 6 => {
                let mut list: Vec<Value> = (0..below(self.rng, 5)).map(|_| table::literal(self.rng, &kind)).collect();
                if chance(self.rng, 6) {
                    list.push(Value::Null);
                }
                Expr::In { input: Box::new(self.of(&kind, depth - 1)), list }
            }
            7 => {
                let patterns = ["%", "a%", "%b", "%a%", "_", "a_%", "\\%%", "%x%y%", "éclair", "", "%R#1_"];
                Expr::Like {
                    input: Box::new(self.of(&Type::String, depth - 1)),
                    pattern: (*pick(self.rng, &patterns)).into(),
                    escape: chance(self.rng, 5).then_some('#'),
                    ignore_case: chance(self.rng, 3),
                }
            }
            8 => self.builtin(&Type::Boolean, depth),
            _ => {
                let comparison = *pick(self.rng, &COMPARISONS);
                Expr::Compare(comparison, Box::new(self.of(&kind, depth - 1)), Box::new(self.of(&kind, depth - 1)))
            }
        }
    }

    /// Makes a decimal.
    fn decimal(&mut self, kind: &Type, depth: usize) -> Expr {
        let Type::Decimal { precision, scale } = *kind else { return self.leaf(kind) };
        match below(self.rng, 4) {
            0 => {
                // Rounding carries into one more digit, which the cast behind it may drop again.
                let wider = Type::Decimal { precision: (precision + 1).min(38), scale };
                if precision == 38 {
                    return self.leaf(kind);
                }
                let function = *pick(self.rng, &[Function::Round, Function::Floor, Function::Ceil]);
                let mut arguments = vec![self.of(kind, depth - 1)];
                if function == Function::Round {
                    arguments.push(Expr::Literal(Value::Integer(below(self.rng, 4) as i128 - 1), Type::Int64));
                }
                Expr::Function { function, arguments, kind: wider }.to(kind)
            }
            1 => Expr::Negate(Box::new(self.of(kind, depth - 1)), Overflow::Null),
            2 => self.builtin(kind, depth),
            _ => {
                let other = *pick(self.rng, &[(9, 2), (18, 4), (38, 10)]);
                let other = Type::Decimal { precision: other.0, scale: other.1 };
                self.arithmetic(&OPERATORS, [kind, &other, kind], depth)
            }
        }
    }
}

/// Tells whether a function fails for none of the arguments that [`Maker::argument`] makes.
fn cannot_fail(function: Function, kind: &Type) -> bool {
    use Function::*;
    let decimal = matches!(kind, Type::Decimal { .. });
    match function {
        Substring | Replace | Power | Truncate(_) => true,
        SplitPart | PadStart | PadEnd | Repeat | RegexpLike | RegexpReplace | RegexpMatch => true,
        Abs => !kind.is_integer(),
        // Of a decimal they may carry into one more digit: see `decimal`.
        Sign | Round | Floor | Ceil => !decimal,
        other => other.is_total(),
    }
}

impl Expr {
    /// Makes a cast to a type, unless the expression is of it.
    fn to(self, kind: &Type) -> Expr {
        if self.kind(&[]) == *kind {
            return self;
        }
        Expr::Cast { input: Box::new(self), kind: kind.clone(), failure: Failure::Null }
    }
}
