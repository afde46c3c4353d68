//! Arithmetic: exact integers in as few bits as their ranges need, brought to the result's type at the end.
//!
//! A decimal is an integer of a scale: operands are brought to one scale, the exact result to that of its type. What would
//! need more than 128 bits on the way is left to the CPU.

use tandem_column::{Repr, Result, Type};
use tandem_pipeline::{
    Arithmetic, ArithmeticOperator, Expr, Failure, Overflow,
    range::Range,
    scalar::decimal::{self, Rounding, power_of_ten},
};

use super::date::Interval;
use super::term::{Integer, Term, Width, either, is_name, unsupported};
use crate::kernel::Generator;

/// Returns how many digits of a type's integers are behind the point.
pub(crate) fn scale_of(kind: &Type) -> i32 {
    match kind {
        Type::Decimal { scale, .. } => i32::from(*scale),
        _ => 0,
    }
}

/// Returns how many bits hold every value of a type.
fn width_of(kind: &Type) -> Width {
    Range::of_type(kind).map_or(Width::Wide, Width::of).max(Width::Long)
}

/// Compares integers.
pub(crate) fn relation(left: &Integer, sign: &str, right: &Integer) -> String {
    match left.width().max(right.width()) {
        Width::Wide => format!("(wide_order({}, {}) {sign} 0)", left.wide(), right.wide()),
        _ => format!("({} {sign} {})", left.value, right.value),
    }
}

impl Generator<'_> {
    pub(super) fn arithmetic(&mut self, a: &Arithmetic) -> Result<Term> {
        use ArithmeticOperator as Op;
        if let Some(by) = Interval::of(&a.right, a.operator == Op::Subtract) {
            return self.shift(&a.left, by, &a.kind);
        }
        if let (Op::Add, Some(by)) = (a.operator, Interval::of(&a.left, false)) {
            return self.shift(&a.right, by, &a.kind);
        }
        let (left, right) = (self.expression(&a.left)?, self.expression(&a.right)?);
        let null = self.flag(either([left.null.clone(), right.null.clone()]));
        if a.kind.repr() == Repr::Float {
            return self.float_arithmetic(a, &left, &right, null);
        }
        if !a.kind.is_integer() && !matches!(a.kind, Type::Decimal { .. }) {
            return unsupported(format!("arithmetic in {}", a.kind));
        }
        let (left_scale, right_scale, scale) = (scale_of(&left.kind), scale_of(&right.kind), scale_of(&a.kind));
        let (left, right) = (left.integer()?, right.integer()?);
        let common = left_scale.max(right_scale);
        match a.operator {
            Op::Add | Op::Subtract => {
                let most = if scale < common { Width::Wide } else { width_of(&a.kind) };
                let left = self.rescale(left, common - left_scale, Rounding::HalfAway, most, null.as_ref())?;
                let right = self.rescale(right, common - right_scale, Rounding::HalfAway, most, null.as_ref())?;
                let sum = self.combine(a.operator, &left, &right, most);
                let sum = self.rescale(sum, scale - common, Rounding::HalfAway, most, null.as_ref())?;
                self.fit(sum, null, &a.kind, a.overflow)
            }
            Op::Multiply => {
                let exact = left_scale + right_scale;
                let most = if scale < exact { Width::Wide } else { width_of(&a.kind) };
                let product = self.combine(Op::Multiply, &left, &right, most);
                let product = self.rescale(product, scale - exact, Rounding::HalfAway, most, null.as_ref())?;
                self.fit(product, null, &a.kind, a.overflow)
            }
            Op::Divide => {
                let null = self.unless_zero(&right, a.zero, null);
                let shift = scale - left_scale + right_scale;
                let up = |by: i32| by.max(0);
                let left = self.rescale(left, up(shift), Rounding::Truncate, Width::Wide, null.as_ref())?;
                let right = self.rescale(right, up(-shift), Rounding::Truncate, Width::Wide, null.as_ref())?;
                let quotient = self.divide(left, right, null.as_ref());
                self.fit(quotient, null, &a.kind, a.overflow)
            }
            Op::Remainder => {
                let null = self.unless_zero(&right, a.zero, null);
                let left = self.rescale(left, common - left_scale, Rounding::Truncate, Width::Wide, null.as_ref())?;
                let right =
                    self.rescale(right, common - right_scale, Rounding::Truncate, Width::Wide, null.as_ref())?;
                let rest = self.remainder(left, right, null.as_ref());
                let rest = self.rescale(rest, scale - common, Rounding::HalfAway, Width::Wide, null.as_ref())?;
                self.fit(rest, null, &a.kind, a.overflow)
            }
        }
    }

    fn float_arithmetic(&mut self, a: &Arithmetic, left: &Term, right: &Term, null: Option<String>) -> Result<Term> {
        self.needs_fp64 = true;
        let (left, right) = (&left.value, &right.value);
        let value = match a.operator {
            ArithmeticOperator::Add => format!("{left} + {right}"),
            ArithmeticOperator::Subtract => format!("{left} - {right}"),
            ArithmeticOperator::Multiply => format!("{left} * {right}"),
            ArithmeticOperator::Divide => format!("{left} / {right}"),
            ArithmeticOperator::Remainder => format!("fmod({left}, {right})"),
        };
        self.float(&value, null, &a.kind)
    }

    /// Names a float, rounded to single precision where its type asks for it.
    pub(super) fn float(&mut self, value: &str, null: Option<String>, kind: &Type) -> Result<Term> {
        self.needs_fp64 = true;
        let value = if *kind == Type::Float32 { format!("(f64)(f32)({value})") } else { value.to_string() };
        Ok(Term::new(self.text.define("f64", &value), null, kind.clone()))
    }

    pub(super) fn negate(&mut self, input: &Expr, overflow: Overflow) -> Result<Term> {
        let term = self.expression(input)?;
        match term.kind.repr() {
            Repr::Float => self.float(&format!("-{}", term.value), term.null, &term.kind),
            Repr::Int | Repr::Wide => {
                let most = width_of(&term.kind);
                let integer = term.integer()?;
                let negated = self.combine(ArithmeticOperator::Subtract, &Integer::fixed(0), &integer, most);
                self.fit(negated, term.null, &term.kind, overflow)
            }
            _ => unsupported(format!("negation of {}", term.kind)),
        }
    }

    /// Names an integer.
    pub(super) fn named(&mut self, integer: &Integer) -> Integer {
        match is_name(&integer.value) {
            true => integer.clone(),
            false => self.define_integer(&integer.value, integer.range),
        }
    }

    fn define_integer(&mut self, value: &str, range: Range) -> Integer {
        Integer::new(self.text.define(Width::of(range).c(), value), range)
    }

    /// Computes a sum, difference or product in the width that its range needs, but in no more bits than `most`: the
    /// result says where it left those.
    pub(super) fn combine(
        &mut self,
        operator: ArithmeticOperator,
        left: &Integer,
        right: &Integer,
        most: Width,
    ) -> Integer {
        let (name, sign, verb) = match operator {
            ArithmeticOperator::Add => ("SUM", "+", "ADD"),
            ArithmeticOperator::Subtract => ("DIFFERENCE", "-", "SUBTRACT"),
            _ => ("PRODUCT", "*", "MULTIPLY"),
        };
        let most = most.max(left.width()).max(right.width());
        let before = either([left.left.clone(), right.left.clone()]);
        let exact = left.range.combine(operator, right.range).filter(|range| Width::of(*range) <= most);
        let range = exact.unwrap_or(most.range());
        // What is mentioned again in a check has a name.
        let (left, right) = match exact {
            Some(_) => (left.clone(), right.clone()),
            None => (self.named(left), self.named(right)),
        };
        let narrow = left.width() == Width::Narrow && right.width() == Width::Narrow;
        let long = left.width() <= Width::Long && right.width() <= Width::Long;
        let (a, b) = (left.to(Width::of(range)), right.to(Width::of(range)));
        let value = match Width::of(range) {
            Width::Narrow => format!("WRAP_{verb}32({a}, {b})"),
            // Processors and GPUs multiply 32 bits by 32 into 64 much faster than 64 by 64.
            Width::Long if narrow => format!("(i64){a} {sign} {b}"),
            Width::Long => format!("WRAP_{verb}({}, {})", left.long(), right.long()),
            Width::Wide if long && sign == "*" => format!("wide_product({}, {})", left.value, right.value),
            Width::Wide => format!("wide_{}({a}, {b})", verb.to_lowercase()),
        };
        let mut result = self.define_integer(&value, range);
        let left_now = match (exact, most) {
            (Some(_), _) => None,
            (None, Width::Wide) => Some(format!("wide_{}_left({a}, {b}, {})", name.to_lowercase(), result.value)),
            (None, _) => Some(format!("{name}_LEFT({}, {}, {})", left.long(), right.long(), result.value)),
        };
        result.left = either([before, left_now]);
        result
    }

    /// Multiplies by a power of ten, or divides by one.
    pub(super) fn rescale(
        &mut self,
        value: Integer,
        by: i32,
        rounding: Rounding,
        most: Width,
        null: Option<&String>,
    ) -> Result<Integer> {
        if by == 0 {
            return Ok(value);
        }
        let Some(power) = power_of_ten(by.unsigned_abs()) else {
            return unsupported(format!("a change of scale by {by} digits"));
        };
        if by > 0 {
            return Ok(self.combine(ArithmeticOperator::Multiply, &value, &Integer::fixed(power), most));
        }
        Ok(self.divide_by(value, power, rounding, null))
    }

    /// Divides by a positive number.
    pub(super) fn divide_by(
        &mut self,
        value: Integer,
        divisor: i128,
        rounding: Rounding,
        null: Option<&String>,
    ) -> Integer {
        let value = self.known(value, null);
        let quotient = |n: i128| {
            let rest = (n % divisor).abs();
            let away = rounding == Rounding::HalfAway && rest >= divisor - rest;
            n / divisor + if away { n.signum() } else { 0 }
        };
        let range = Range::new(quotient(value.range.low), quotient(value.range.high));
        let by = Integer::fixed(divisor);
        let divided = match (value.width().max(by.width()), rounding) {
            (Width::Wide, Rounding::Truncate) => format!("wide_divide({}, {})", value.wide(), by.wide()),
            (Width::Wide, Rounding::HalfAway) => format!("wide_divide_half_away({}, {})", value.wide(), by.wide()),
            (_, Rounding::Truncate) => format!("{} / {}", value.value, by.value),
            (_, Rounding::HalfAway) => format!("divide_half_away({}, {})", value.value, by.value),
        };
        let wide = value.width().max(by.width()) == Width::Wide;
        self.narrowed(divided, wide, range)
    }

    /// Names a value that was computed in 128 bits, or in 64, and needs no more than its range.
    fn narrowed(&mut self, value: String, wide: bool, range: Range) -> Integer {
        let value = if wide { Integer::new(value, Width::Wide.range()).to(Width::of(range)) } else { value };
        self.define_integer(&value, range)
    }

    /// Leaves rows whose value needs more bits to the CPU.
    fn known(&mut self, value: Integer, null: Option<&String>) -> Integer {
        if let Some(left) = &value.left {
            self.fail_if(left, null);
        }
        Integer { left: None, ..value }
    }

    /// Says what becomes of a division by zero.
    fn unless_zero(&mut self, divisor: &Integer, zero: Failure, null: Option<String>) -> Option<String> {
        let none = Integer::fixed(0);
        if divisor.range.low > 0 || divisor.range.high < 0 {
            return null;
        }
        let is_zero = relation(divisor, "==", &none);
        match zero {
            Failure::Error => {
                self.fail_if(&is_zero, null.as_ref());
                null
            }
            Failure::Null => self.flag(either([null, Some(is_zero)])),
        }
    }

    fn divide(&mut self, left: Integer, right: Integer, null: Option<&String>) -> Integer {
        let (left, right) = (self.known(left, null), self.known(right, null));
        let (left, right) = (self.named(&left), self.named(&right));
        let wide = left.width().max(right.width()) == Width::Wide;
        let mut range = match right.range.low > 0 {
            true => Range::new(left.range.low.min(0), left.range.high.max(0)),
            false => Range::around(left.range),
        };
        // Only the smallest integer, by −1, leaves 64 bits.
        let leaves = !wide && Width::of(range) == Width::Wide;
        if leaves {
            range = Width::Long.range();
        }
        let divided = match wide {
            true => format!("wide_divide({}, {})", left.wide(), right.wide()),
            false => format!("divide({}, {})", left.value, right.value),
        };
        let mut quotient = self.narrowed(divided, wide, range);
        if leaves {
            let (left, right, value) = (&left.value, &right.value, &quotient.value);
            quotient.left = Some(format!("({right} == -1 && {left} == {value} && {left} != 0)"));
        }
        quotient
    }

    fn remainder(&mut self, left: Integer, right: Integer, null: Option<&String>) -> Integer {
        let (left, right) = (self.known(left, null), self.known(right, null));
        let (left, right) = (self.named(&left), self.named(&right));
        let wide = left.width().max(right.width()) == Width::Wide;
        let most = Range::around(right.range);
        let range = Range::new(left.range.low.min(0), left.range.high.max(0)).clamp(most);
        let rest = match wide {
            true => format!("wide_remainder({}, {})", left.wide(), right.wide()),
            false => format!("remainder_of({}, {})", left.value, right.value),
        };
        self.narrowed(rest, wide, range)
    }

    /// Brings an exact result to its type, as the operation says.
    pub(super) fn fit(
        &mut self,
        value: Integer,
        null: Option<String>,
        kind: &Type,
        overflow: Overflow,
    ) -> Result<Term> {
        let Some(bounds) = Range::of_type(kind) else { return unsupported(format!("computing with {kind}")) };
        if value.left.is_none() && value.range.within(bounds) {
            return Ok(Term::of(value, null, kind.clone()));
        }
        if overflow == Overflow::Wrap && kind.is_integer() {
            let wrapped = match kind {
                Type::UInt64 => format!("wide_from(0, (u64){})", value.long()),
                Type::Int64 if value.width() == Width::Long => return Ok(Term::of(value, null, kind.clone())),
                _ => format!("({}){}", c_integer(kind), value.bits()),
            };
            return Ok(Term::of(self.define_integer(&wrapped, bounds), null, kind.clone()));
        }
        let value = Integer { left: value.left.clone(), ..self.named(&value) };
        let mut outside: Vec<String> = value.left.iter().cloned().collect();
        for (possible, sign, bound) in
            [(value.range.low < bounds.low, "<", bounds.low), (value.range.high > bounds.high, ">", bounds.high)]
        {
            outside.extend(possible.then(|| relation(&value, sign, &Integer::fixed(bound))));
        }
        let outside = outside.join(" || ");
        let null = match overflow {
            Overflow::Error | Overflow::Wrap => {
                self.fail_if(&outside, null.as_ref());
                null
            }
            Overflow::Null => {
                let outside = format!("({outside})");
                self.flag(either([null, Some(outside)]))
            }
        };
        let range = value.range.clamp(bounds);
        let fitting = match Width::of(range) < value.width() {
            true => self.define_integer(&value.bits(), range),
            false => Integer::new(value.value, range),
        };
        Ok(Term::of(fitting, null, kind.clone()))
    }

    /// Rounds half away from zero to a multiple of a power of ten.
    pub(super) fn round_to(&mut self, value: Integer, digits: i32, null: Option<&String>) -> Integer {
        let Some(unit) = power_of_ten(digits.unsigned_abs()) else { return Integer::fixed(0) };
        let units = self.divide_by(value, unit, Rounding::HalfAway, null);
        self.combine(ArithmeticOperator::Multiply, &units, &Integer::fixed(unit), Width::Wide)
    }

    /// Returns the largest multiple of a power of ten that is not above the value or, with `up`, the smallest not below.
    pub(super) fn floor_to(&mut self, value: Integer, digits: i8, up: bool) -> Result<Integer> {
        let (low, high) = (decimal::floor(value.range.low, digits), decimal::ceil(value.range.high, digits));
        let (Some(low), Some(high), Some(unit)) = (low, high, power_of_ten(digits.unsigned_abs().into())) else {
            return unsupported("a floor or ceiling that leaves 128 bits");
        };
        let (range, name) = (Range::new(low, high), if up { "ceil_to" } else { "floor_to" });
        let unit = Integer::fixed(unit);
        let wide = Width::of(range).max(unit.width()) == Width::Wide;
        let text = match wide {
            true => format!("wide_{name}({}, {})", value.wide(), unit.wide()),
            false => format!("{name}({}, {})", value.value, unit.value),
        };
        Ok(self.narrowed(text, wide, range))
    }
}

/// Returns the C type of an integer type of up to 64 bits.
fn c_integer(kind: &Type) -> &'static str {
    match kind {
        Type::Int8 => "signed char",
        Type::Int16 => "short",
        Type::Int32 => "i32",
        Type::UInt8 => "u8",
        Type::UInt16 => "u16",
        Type::UInt32 => "u32",
        _ => "i64",
    }
}
