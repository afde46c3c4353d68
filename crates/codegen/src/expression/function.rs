//! The built-in functions of numbers and conditions.

use tandem_column::{Repr, Result, Type};
use tandem_pipeline::{
    ArithmeticOperator, Comparison, Expr, Function, Overflow, Value, builtin::Group, range::Range,
    scalar::decimal::Rounding,
};

use super::{
    arithmetic::{relation, scale_of},
    cast::float_text,
    compare,
    term::{Integer, Term, Width, either, unsupported},
};
use crate::{kernel::Generator, slice::is_slice};

impl Generator<'_> {
    pub(super) fn function(&mut self, function: Function, arguments: &[Expr], kind: &Type) -> Result<Term> {
        match (function, arguments) {
            (Function::Coalesce, arguments) => self.choose(arguments, kind, |_, _| Ok("0".into())),
            (Function::Greatest, arguments) => {
                self.choose(arguments, kind, |best, next| compare(Comparison::GreaterOrEqual, next, best))
            }
            (Function::Least, arguments) => {
                self.choose(arguments, kind, |best, next| compare(Comparison::Less, next, best))
            }
            (Function::NullIf, [left, right]) => {
                let (left, right) = (self.expression(left)?, self.expression(right)?);
                let equal = compare(Comparison::Equal, &left, &right)?;
                let same = match either([left.null.clone(), right.null]) {
                    Some(null) => format!("(!({null}) & {equal})"),
                    None => equal,
                };
                let null = self.flag(either([left.null.clone(), Some(same)]));
                Ok(Term { null, ..left })
            }
            (Function::Extract(field), [date]) => self.extract(field, date),
            (Function::Truncate(field), [date]) => self.truncate(field, date),
            (Function::Abs | Function::Sign | Function::Floor | Function::Ceil | Function::SquareRoot, [input]) => {
                let input = self.expression(input)?;
                match input.kind.repr() {
                    Repr::Float => self.of_float(function, input, kind),
                    Repr::Int | Repr::Wide if function == Function::SquareRoot => {
                        let float = self.number(&input, &Type::Float64, Overflow::Error)?;
                        self.of_float(function, float, kind)
                    }
                    Repr::Int | Repr::Wide => self.of_integer(function, input, kind),
                    _ => unsupported(format!("the function {function:?} of {}", input.kind)),
                }
            }
            (Function::CharLength | Function::OctetLength, [input]) => self.length(function, input),
            (Function::StartsWith | Function::EndsWith | Function::Contains, [input, part]) => {
                self.contains(function, input, part)
            }
            (function, arguments) if is_slice(function) => self.slice(function, arguments, kind),
            (function, arguments) if function.entry().group == Group::Bit => self.bits(function, arguments, kind),
            (Function::Round, [input]) => self.round(input, 0, kind),
            (Function::Round, [input, Expr::Literal(Value::Integer(digits), _)]) => {
                self.round(input, (*digits).clamp(i32::MIN.into(), i32::MAX.into()) as i32, kind)
            }
            _ => unsupported(format!("the function {function:?}")),
        }
    }

    /// Takes the first argument that is not null, then each later one that is not null and `better` than it.
    fn choose(
        &mut self,
        arguments: &[Expr],
        kind: &Type,
        better: impl Fn(&Term, &Term) -> Result<String>,
    ) -> Result<Term> {
        let mut best = self.variable(arguments, kind)?;
        let null = best.null.take().unwrap_or_default();
        best.null = Some(null.clone());
        for argument in arguments {
            let next = self.expression(argument)?;
            if next.kind != *kind {
                return unsupported(format!("mixing {} and {kind}", next.kind));
            }
            let present = next.null.as_ref().map_or("1".to_string(), |null| format!("!{null}"));
            let wins = format!("{present} & ({null} | {})", better(&best, &next)?);
            self.text.open(&format!("if ({wins}) {{"));
            self.assign(&best, &Term { null: None, ..next })?;
            self.text.close();
        }
        Ok(best)
    }

    fn of_float(&mut self, function: Function, input: Term, kind: &Type) -> Result<Term> {
        let value = &input.value;
        let value = match function {
            Function::Abs => format!("fabs({value})"),
            Function::Floor => format!("floor({value})"),
            Function::Ceil => format!("ceil({value})"),
            Function::SquareRoot => format!("sqrt({value})"),
            _ => {
                let nan = float_text(f64::NAN);
                format!("{value} != {value} ? {nan} : (f64)(({value} > 0) - ({value} < 0))")
            }
        };
        self.float(&value, input.null, kind)
    }

    fn of_integer(&mut self, function: Function, input: Term, kind: &Type) -> Result<Term> {
        let (integer, mut scale) = (input.integer()?, scale_of(&input.kind));
        let found = match function {
            Function::Abs => {
                let zero = Integer::fixed(0);
                let integer = self.named(&integer);
                let negated = self.combine(ArithmeticOperator::Subtract, &zero, &integer, Width::Wide);
                let range = Range::new(0, Range::around(integer.range).high);
                let width = Width::of(range);
                let (below, value) = (relation(&integer, "<", &zero), integer.to(width));
                let value = self.text.define(width.c(), &format!("{below} ? {} : {value}", negated.to(width)));
                Integer { left: negated.left, ..Integer::new(value, range) }
            }
            Function::Sign => {
                scale = 0;
                let zero = Integer::fixed(0);
                let (above, below) = (relation(&integer, ">", &zero), relation(&integer, "<", &zero));
                Integer::new(self.text.define("i32", &format!("{above} - {below}")), Range::new(-1, 1))
            }
            _ if scale <= 0 => integer,
            _ => self.floor_to(integer, scale as i8, function == Function::Ceil)?,
        };
        self.exact(found, scale, input.null, kind)
    }

    /// Brings an exact result of a scale to its type.
    fn exact(&mut self, found: Integer, scale: i32, null: Option<String>, kind: &Type) -> Result<Term> {
        if kind.repr() == Repr::Float {
            let value = Term::of(found, null, Type::Int64);
            return self.number(&value, kind, Overflow::Error);
        }
        let found = self.rescale(found, scale_of(kind) - scale, Rounding::HalfAway, Width::Wide, null.as_ref())?;
        self.fit(found, null, kind, Overflow::Error)
    }

    fn round(&mut self, input: &Expr, digits: i32, kind: &Type) -> Result<Term> {
        let input = self.expression(input)?;
        if input.kind.repr() == Repr::Float {
            let factor = 10f64.powi(digits);
            // Products and quotients of single precision are exact enough in double to be rounded once.
            let single = input.kind == Type::Float32;
            let (factor, cast) = if single { (f64::from(factor as f32), "(f64)(f32)") } else { (factor, "") };
            let factor = float_text(factor);
            return self.float(&format!("round({cast}({} * {factor})) / {factor}", input.value), input.null, kind);
        }
        let (integer, scale) = (input.integer()?, scale_of(&input.kind));
        let dropped = scale.saturating_sub(digits);
        let largest = Range::of_type(&input.kind).map_or(i128::MAX, |range| range.high);
        let unit = 10i128.checked_pow(dropped.max(0).unsigned_abs());
        let rounded = match dropped <= 0 {
            true => integer,
            // A unit that the type itself cannot hold rounds every integer to zero, as DataFusion does.
            false if input.kind.is_integer() && unit.is_none_or(|unit| unit > largest) => Integer::fixed(0),
            false => self.round_to(integer, dropped, input.null.as_ref()),
        };
        self.exact(rounded, scale, input.null, kind)
    }
}
