//! Casts between numbers, booleans, dates and timestamps; those of text are the CPU's.

use tandem_column::{Repr, Result, Type};
use tandem_pipeline::{ArithmeticOperator, Expr, Failure, Overflow, range::Range, scalar::decimal::Rounding};

use super::{
    arithmetic::{relation, scale_of},
    date::DAY,
    term::{Integer, Term, Width, unsupported},
};
use crate::kernel::Generator;

/// Returns a float as text of exactly its value.
pub(super) fn float_text(value: f64) -> String {
    format!("AS_F64({:#x}L)", value.to_bits())
}

impl Generator<'_> {
    pub(super) fn cast(&mut self, input: &Expr, to: &Type, failure: Failure) -> Result<Term> {
        let input = self.expression(input)?;
        let overflow = match failure {
            Failure::Error => Overflow::Error,
            Failure::Null => Overflow::Null,
        };
        let exact = |kind: &Type| kind.is_integer() || matches!(kind, Type::Decimal { .. });
        match (&input.kind, to) {
            (from, to) if from == to => Ok(input),
            (from, Type::Boolean) if from.is_integer() => {
                let value = relation(&input.integer()?, "!=", &Integer::fixed(0));
                self.keep("int", &value, input.null, Type::Boolean)
            }
            (from, Type::Boolean) if from.is_float() => {
                self.keep("int", &format!("{} != 0", input.value), input.null, Type::Boolean)
            }
            (Type::Boolean, to) if to.is_integer() || to.is_float() => self.number(&input, to, overflow),
            (from, to) if exact(from) && (exact(to) || to.is_float()) => self.number(&input, to, overflow),
            (from, to) if from.is_float() && to.is_float() => self.float(&input.value, input.null, to),
            (from, to) if from.is_float() && exact(to) => self.of_whole(input, to, overflow),
            (Type::Date, Type::Int32 | Type::Int64) | (Type::Int32, Type::Date) => {
                Ok(Term { kind: to.clone(), ..input })
            }
            (Type::Timestamp(..), Type::Int64) => Ok(Term { kind: to.clone(), ..input }),
            (Type::Date, Type::Timestamp(unit, None)) => {
                let day = Integer::fixed((DAY * unit.per_second()).into());
                let instant = self.combine(ArithmeticOperator::Multiply, &input.integer()?, &day, Width::Wide);
                // What Arrow does about overflow is left to it.
                self.fit(instant, input.null, to, Overflow::Error)
            }
            (Type::Timestamp(unit, None), Type::Date) => {
                let days = self.floor_divide(&input.integer()?, DAY * unit.per_second());
                let days = self.in_calendar(days, input.null.as_ref());
                self.fit(days, input.null, to, Overflow::Error)
            }
            (from, to) => unsupported(format!("a cast from {from} to {to}")),
        }
    }

    /// Brings an exact number to another type of numbers.
    pub(crate) fn number(&mut self, input: &Term, to: &Type, overflow: Overflow) -> Result<Term> {
        let (value, scale) = (input.integer()?, scale_of(&input.kind));
        if to.repr() == Repr::Float {
            let float = match value.width() {
                Width::Wide if *to == Type::Float32 && scale == 0 => {
                    return unsupported(format!("a cast from {} to {to}", input.kind));
                }
                Width::Wide => format!("wide_to_f64({})", value.value),
                // An integer is rounded once.
                _ if *to == Type::Float32 && scale == 0 => format!("(f32){}", value.value),
                _ => format!("(f64){}", value.value),
            };
            let float = match scale {
                0 => float,
                scale => format!("{float} / {}", float_text(10f64.powi(scale))),
            };
            return self.float(&float, input.null.clone(), to);
        }
        let rounding = match (&input.kind, to) {
            (Type::Decimal { .. }, Type::Decimal { .. }) => Rounding::HalfAway,
            _ => Rounding::Truncate,
        };
        let rescaled = self.rescale(value, scale_of(to) - scale, rounding, Width::Wide, input.null.as_ref())?;
        self.fit(rescaled, input.null.clone(), to, overflow)
    }

    /// Brings the whole number at or next to a float to an exact type.
    fn of_whole(&mut self, input: Term, to: &Type, overflow: Overflow) -> Result<Term> {
        let Some(bounds) = Range::of_type(to) else { return unsupported(format!("a cast to {to}")) };
        let whole = match to {
            // The nearest, ties away from zero.
            Type::Decimal { scale, .. } => {
                format!("round({} * {})", float_text(10f64.powi((*scale).into())), input.value)
            }
            _ => format!("trunc({})", input.value),
        };
        let whole = self.text.define("f64", &whole);
        // In floats only what certainly leaves the type is told apart; the rest is compared as integers.
        let width = Width::of(bounds).max(Width::Long);
        let limit = float_text(if width == Width::Wide { 2f64.powi(127) } else { 2f64.powi(63) });
        let within = self.text.define("int", &format!("{whole} >= -{limit} && {whole} < {limit}"));
        let value = match width {
            Width::Wide => format!("wide_from_f64({within} ? {whole} : 0)"),
            _ => format!("(i64)({within} ? {whole} : 0)"),
        };
        let mut value = Integer::new(self.text.define(width.c(), &value), width.range());
        value.left = Some(format!("!{within}"));
        self.fit(value, input.null, to, overflow)
    }
}
