//! Expressions as C statements: one temporary for a value, one for its null flag where it may be null.
//!
//! Integers, dates, times and small decimals are computed in 64 bits and checked against their type afterwards, as every
//! executor does. A row whose value does not exist sets `failed`: the processor then computes the pipeline and finds the
//! message, so nothing about errors is written twice.

use tandem_column::{Error, Repr, Result, Type};
use tandem_pipeline::{
    Arithmetic, ArithmeticOperator, Comparison, DateField, Expr, Failure, Function, Overflow, SlotId, Value,
};

use crate::{Binding, kernel::Generator};

/// A value in C: an expression without side effects, and its null flag (0 or 1) where it may be null.
#[derive(Clone, Debug)]
pub(crate) struct Term {
    pub(crate) value: String,
    pub(crate) null: Option<String>,
    pub(crate) kind: Type,
}

fn unsupported<T>(what: impl std::fmt::Display) -> Result<T> {
    Err(Error::unsupported(format!("{what} is not on the device yet")))
}

/// Returns the C type that computes a type.
pub(crate) fn c_type(kind: &Type) -> Result<&'static str> {
    match kind.repr() {
        Repr::Boolean => Ok("int"),
        Repr::Int => Ok("i64"),
        Repr::Float => Ok("f64"),
        Repr::Wide | Repr::Bytes | Repr::Other => unsupported(format!("computing with {kind}")),
    }
}

/// Ors null flags.
fn either(nulls: impl IntoIterator<Item = Option<String>>) -> Option<String> {
    let flags: Vec<String> = nulls.into_iter().flatten().collect();
    (!flags.is_empty()).then(|| flags.join(" | "))
}

impl Generator<'_> {
    /// Writes statements that compute an expression.
    pub(crate) fn expression(&mut self, expr: &Expr) -> Result<Term> {
        match expr {
            Expr::Slot(slot) => self.slot(*slot),
            Expr::Literal(value, kind) => self.literal(value, kind),
            Expr::Arithmetic(arithmetic) => self.arithmetic(arithmetic),
            Expr::Compare(operator, left, right) => {
                let (left, right) = (self.expression(left)?, self.expression(right)?);
                let value = compare(*operator, &left, &right)?;
                self.keep("int", &value, either([left.null, right.null]), Type::Boolean)
            }
            Expr::Distinct(left, right) => {
                let (left, right) = (self.expression(left)?, self.expression(right)?);
                let unequal = compare(Comparison::NotEqual, &left, &right)?;
                let value = match (&left.null, &right.null) {
                    (None, None) => unequal,
                    (Some(null), None) | (None, Some(null)) => format!("{null} | {unequal}"),
                    (Some(l), Some(r)) => format!("({l} ^ {r}) | (!({l} | {r}) & {unequal})"),
                };
                self.keep("int", &value, None, Type::Boolean)
            }
            Expr::And(operands) => self.connect(operands, true),
            Expr::Or(operands) => self.connect(operands, false),
            Expr::Not(input) => {
                let input = self.expression(input)?;
                self.keep("int", &format!("!{}", input.value), input.null, Type::Boolean)
            }
            Expr::IsNull(input) => {
                let input = self.expression(input)?;
                let value = input.null.unwrap_or_else(|| "0".into());
                Ok(Term { value, null: None, kind: Type::Boolean })
            }
            Expr::Case { branches, otherwise, kind } => self.case(branches, otherwise.as_deref(), kind),
            Expr::Cast { input, kind, failure } => self.cast(input, kind, *failure),
            Expr::In { input, list } => self.in_list(input, list),
            Expr::Negate(input, overflow) => self.negate(input, *overflow),
            Expr::Like { .. } => unsupported("LIKE on a computed string"),
            Expr::Function { function, arguments, kind } => self.function(*function, arguments, kind),
            Expr::Call { .. } => unsupported("a user function"),
            Expr::Element(..) | Expr::ListLength(_) => unsupported("a list"),
        }
    }

    /// Names a value and its null flag.
    pub(crate) fn keep(&mut self, c: &str, value: &str, null: Option<String>, kind: Type) -> Result<Term> {
        let null = null.map(|null| if is_name(&null) { null } else { self.text.define("int", &null) });
        Ok(Term { value: self.text.define(c, value), null, kind })
    }

    fn literal(&mut self, value: &Value, kind: &Type) -> Result<Term> {
        let c = c_type(kind)?;
        let bits = match value {
            // The value of a null is never looked at.
            Value::Null => return Ok(Term { value: "0".into(), null: Some("1".into()), kind: kind.clone() }),
            Value::Boolean(value) => i64::from(*value),
            Value::Integer(value) => match i64::try_from(*value) {
                Ok(value) => value,
                Err(_) => return unsupported(format!("the literal {value}")),
            },
            Value::Float(value) => {
                self.needs_fp64 = true;
                value.to_bits() as i64
            }
            other => return unsupported(format!("the literal {other}")),
        };
        let name = self.text.argument(Binding::Constant(bits), "const i64", "", "");
        let value = match c {
            "int" => format!("(int){name}"),
            "f64" => format!("AS_F64({name})"),
            _ => name,
        };
        Ok(Term { value, null: None, kind: kind.clone() })
    }

    /// Three-valued AND (`all`) or OR.
    fn connect(&mut self, operands: &[Expr], all: bool) -> Result<Term> {
        let mut terms = Vec::with_capacity(operands.len());
        for operand in operands {
            // What a later operand raises may be hidden by an earlier one: leave such rows to the processor's order.
            terms.push(self.expression(operand)?);
        }
        // With the null flag of each: the deciding value is known whatever the nulls are.
        let decided = terms.iter().map(|term| match (&term.null, all) {
            (None, true) => format!("!{}", term.value),
            (None, false) => term.value.clone(),
            (Some(null), true) => format!("(!{null} & !{})", term.value),
            (Some(null), false) => format!("(!{null} & {})", term.value),
        });
        let decided: Vec<String> = decided.collect();
        let decided = if decided.is_empty() { "0".into() } else { decided.join(" | ") };
        let decided = self.text.define("int", &decided);
        let null = either(terms.iter().map(|term| term.null.clone()));
        let null = null.map(|null| self.text.define("int", &format!("!{decided} & ({null})")));
        let value = if all { format!("!{decided}") } else { decided };
        Ok(Term { value, null, kind: Type::Boolean })
    }

    fn case(&mut self, branches: &[(Expr, Expr)], otherwise: Option<&Expr>, kind: &Type) -> Result<Term> {
        let c = c_type(kind)?;
        // Read before the blocks, so that what follows them sees the same temporaries.
        let inputs = branches.iter().flat_map(|(condition, result)| [condition, result]).chain(otherwise);
        for slot in inputs.flat_map(Expr::slots).collect::<Vec<_>>() {
            self.slot(slot)?;
        }
        let (value, null) = (self.text.declare(c, "0"), self.text.declare("int", "1"));
        // Branches are lazy: each is computed only where the ones before it are not true.
        for (condition, result) in branches {
            let condition = self.expression(condition)?;
            let taken = match &condition.null {
                Some(null) => format!("!{null} & {}", condition.value),
                None => condition.value,
            };
            self.text.open(&format!("if ({taken}) {{"));
            let result = self.expression(result)?;
            self.assign(&value, &null, &result);
            self.text.close();
            self.text.open("else {");
        }
        if let Some(otherwise) = otherwise {
            let result = self.expression(otherwise)?;
            self.assign(&value, &null, &result);
        }
        branches.iter().for_each(|_| self.text.close());
        Ok(Term { value, null: Some(null), kind: kind.clone() })
    }

    fn assign(&mut self, value: &str, null: &str, from: &Term) {
        self.text.line(format!("{value} = {};", from.value));
        self.text.line(format!("{null} = {};", from.null.as_deref().unwrap_or("0")));
    }

    fn negate(&mut self, input: &Expr, overflow: Overflow) -> Result<Term> {
        let term = self.expression(input)?;
        match term.kind.repr() {
            Repr::Float => self.keep("f64", &format!("-{}", term.value), term.null, term.kind),
            Repr::Int => {
                let zero = Term { value: "0".into(), null: None, kind: term.kind.clone() };
                self.subtract(zero, term, overflow)
            }
            _ => unsupported(format!("negation of {}", term.kind)),
        }
    }

    /// Subtracts values of one integer or decimal type.
    fn subtract(&mut self, left: Term, right: Term, overflow: Overflow) -> Result<Term> {
        let null = either([left.null, right.null]);
        let (left, right, kind) = (left.value, right.value, right.kind);
        let value = self.text.define("i64", &format!("WRAP_SUBTRACT((i64){left}, {right})"));
        let mut outside = vec![format!("DIFFERENCE_LEFT((i64){left}, {right}, {value})")];
        if let Some((low, high)) = bounds(&kind) {
            outside.push(format!("{value} < {low}L || {value} > {high}L"));
        }
        self.checked(value, outside.join(" || "), null, &kind, overflow)
    }

    fn function(&mut self, function: Function, arguments: &[Expr], kind: &Type) -> Result<Term> {
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
                let null = either([left.null, Some(same)]).map(|null| self.text.define("int", &null));
                Ok(Term { null, ..left })
            }
            (Function::Extract(field), [date]) => self.extract(field, date),
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
        let c = c_type(kind)?;
        let (value, null) = (self.text.declare(c, "0"), self.text.declare("int", "1"));
        let best = Term { value: value.clone(), null: Some(null.clone()), kind: kind.clone() };
        for argument in arguments {
            let next = self.expression(argument)?;
            if next.kind != *kind {
                return unsupported(format!("mixing {} and {kind}", next.kind));
            }
            let present = next.null.as_ref().map_or("1".to_string(), |null| format!("!{null}"));
            let wins = format!("{present} & ({null} | {})", better(&best, &next)?);
            self.text.open(&format!("if ({wins}) {{"));
            self.assign(&value, &null, &Term { null: None, ..next });
            self.text.close();
        }
        Ok(best)
    }

    fn extract(&mut self, field: DateField, date: &Expr) -> Result<Term> {
        let date = self.expression(date)?;
        let name = match (field, &date.kind) {
            (DateField::Year, Type::Date) => "year_of",
            (DateField::Month, Type::Date) => "month_of",
            (DateField::Day, Type::Date) => "day_of_month",
            (field, kind) => return unsupported(format!("the field {field:?} of {kind}")),
        };
        self.keep("i64", &format!("{name}({})", date.value), date.null, Type::Int32)
    }

    fn in_list(&mut self, input: &Expr, list: &[Value]) -> Result<Term> {
        let input = self.expression(input)?;
        let mut tests = Vec::with_capacity(list.len());
        for value in list.iter().filter(|value| !value.is_null()) {
            let value = self.literal(value, &input.kind)?;
            tests.push(compare(Comparison::Equal, &input, &value)?);
        }
        let found = if tests.is_empty() { "0".into() } else { tests.join(" | ") };
        let found = self.text.define("int", &found);
        // With a null in the list, what is not found is unknown.
        let unknown = list.iter().any(Value::is_null).then(|| format!("!{found}"));
        let null = either([input.null, unknown]);
        let null = null.map(|null| self.text.define("int", &null));
        Ok(Term { value: found, null, kind: Type::Boolean })
    }

    /// Says that the row has no value, unless it is null or was dropped before.
    fn fail_if(&mut self, condition: &str, null: Option<&String>) {
        let name = self.text.argument(Binding::Failed, "GLOBAL i32 *", "failed", "set when a row has no value");
        let condition = match null {
            Some(null) => format!("!({null}) && ({condition})"),
            None => condition.to_string(),
        };
        self.text.line(format!("if ({condition}) *{name} = 1;"));
        self.fallible = true;
    }

    fn arithmetic(&mut self, a: &Arithmetic) -> Result<Term> {
        use ArithmeticOperator as Op;
        let (left, right) = (self.expression(&a.left)?, self.expression(&a.right)?);
        let null = either([left.null.clone(), right.null.clone()]);
        if a.kind.repr() == Repr::Float {
            self.needs_fp64 = true;
            if a.kind != Type::Float64 {
                return unsupported(format!("arithmetic in {}", a.kind));
            }
            let sign = match a.operator {
                Op::Add => "+",
                Op::Subtract => "-",
                Op::Multiply => "*",
                Op::Divide => "/",
                Op::Remainder => return unsupported("a remainder of floats"),
            };
            return self.keep("f64", &format!("{} {sign} {}", left.value, right.value), null, a.kind.clone());
        }
        let (scale_left, scale_right) = scales(a, &left.kind, &right.kind)?;
        let left = self.scaled(&left.value, scale_left, null.as_ref());
        let right = self.scaled(&right.value, scale_right, null.as_ref());
        let (name, left_int) = match a.operator {
            Op::Add => ("ADD", "SUM_LEFT"),
            Op::Subtract => ("SUBTRACT", "DIFFERENCE_LEFT"),
            Op::Multiply => ("MULTIPLY", "PRODUCT_LEFT"),
            Op::Divide | Op::Remainder => return self.divide(a, &left, &right, null),
        };
        let value = self.text.define("i64", &format!("WRAP_{name}({left}, {right})"));
        let mut left_type = vec![format!("{left_int}({left}, {right}, {value})")];
        if let Some((low, high)) = bounds(&a.kind) {
            left_type.push(format!("{value} < {low}L || {value} > {high}L"));
        }
        self.checked(value, left_type.join(" || "), null, &a.kind, a.overflow)
    }

    fn divide(&mut self, a: &Arithmetic, left: &str, right: &str, null: Option<String>) -> Result<Term> {
        if !a.kind.is_integer() {
            return unsupported(format!("division in {}", a.kind));
        }
        let zero = self.text.define("int", &format!("{right} == 0"));
        let null = match a.zero {
            Failure::Error => {
                self.fail_if(&zero, null.as_ref());
                null
            }
            Failure::Null => either([null, Some(zero.clone())]),
        };
        let null = null.map(|null| self.text.define("int", &null));
        // −1 is left out: the quotient of the smallest integer has no place in 64 bits.
        let minus = self.text.define("int", &format!("{right} == -1"));
        let safe = self.text.define("i64", &format!("{zero} | {minus} ? 1 : {right}"));
        let value = match a.operator {
            ArithmeticOperator::Divide => format!("{minus} ? WRAP_SUBTRACT(0, {left}) : {left} / {safe}"),
            _ => format!("{minus} ? 0 : {left} % {safe}"),
        };
        let value = self.text.define("i64", &value);
        if a.operator == ArithmeticOperator::Remainder {
            return Ok(Term { value, null, kind: a.kind.clone() });
        }
        let mut outside = vec![format!("({minus} && {left} == {value} && {left} != 0)")];
        if let Some((low, high)) = bounds(&a.kind) {
            outside.push(format!("{value} < {low}L || {value} > {high}L"));
        }
        self.checked(value, outside.join(" || "), null, &a.kind, a.overflow)
    }

    /// Treats a result that does not fit its type as the operation says.
    fn checked(
        &mut self,
        mut value: String,
        outside: String,
        null: Option<String>,
        kind: &Type,
        overflow: Overflow,
    ) -> Result<Term> {
        let mut null = null.map(|null| if is_name(&null) { null } else { self.text.define("int", &null) });
        match overflow {
            Overflow::Wrap if kind.is_integer() => {
                if let Some(narrow) = wrapped(kind) {
                    value = self.text.define("i64", &format!("(i64)({narrow}){value}"));
                }
            }
            Overflow::Error | Overflow::Wrap => self.fail_if(&outside, null.as_ref()),
            Overflow::Null => {
                let outside = self.text.define("int", &outside);
                null = either([null, Some(outside)]).map(|null| self.text.define("int", &null));
            }
        }
        Ok(Term { value, null, kind: kind.clone() })
    }

    /// Multiplies an operand by a power of ten.
    fn scaled(&mut self, value: &str, power: i64, null: Option<&String>) -> String {
        if power == 1 {
            return if is_name(value) { value.to_string() } else { self.text.define("i64", value) };
        }
        let operand = self.text.define("i64", value);
        let scaled = self.text.define("i64", &format!("WRAP_MULTIPLY({operand}, {power}L)"));
        self.fail_if(&format!("PRODUCT_LEFT({operand}, {power}L, {scaled})"), null);
        scaled
    }

    fn cast(&mut self, input: &Expr, kind: &Type, failure: Failure) -> Result<Term> {
        let input = self.expression(input)?;
        let value = input.value.clone();
        match (&input.kind, kind) {
            (from, to) if from == to => Ok(input),
            (from, to) if from.is_integer() && to.is_integer() && to.repr() == Repr::Int => {
                let Some((low, high)) = bounds(to) else { return Ok(Term { kind: to.clone(), ..input }) };
                let value = self.text.define("i64", &value);
                let outside = format!("{value} < {low}L || {value} > {high}L");
                let null = match failure {
                    Failure::Error => {
                        self.fail_if(&outside, input.null.as_ref());
                        input.null
                    }
                    Failure::Null => {
                        let null = either([input.null, Some(format!("({outside})"))]);
                        null.map(|null| self.text.define("int", &null))
                    }
                };
                Ok(Term { value, null, kind: to.clone() })
            }
            (from, Type::Float64) if from.is_integer() => {
                self.needs_fp64 = true;
                self.keep("f64", &format!("(f64){value}"), input.null, Type::Float64)
            }
            (Type::Float32, Type::Float64) => Ok(Term { kind: Type::Float64, ..input }),
            (from, to) => unsupported(format!("a cast from {from} to {to}")),
        }
    }

    /// Reads a slot, once.
    pub(crate) fn slot(&mut self, slot: SlotId) -> Result<Term> {
        // Payload of a pair is not a slot of the row.
        if self.pair.is_some_and(|(first, _)| slot >= first) {
            return self.read(slot);
        }
        if let Some(term) = &self.values[slot] {
            return Ok(term.clone());
        }
        let term = self.read(slot)?;
        self.values[slot] = Some(term.clone());
        Ok(term)
    }
}

fn is_name(text: &str) -> bool {
    text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// Returns the bounds of a type narrower than 64 bits.
fn bounds(kind: &Type) -> Option<(i64, i64)> {
    let (low, high) = match kind {
        Type::Decimal { precision, .. } => {
            let most = 10i128.pow((*precision).min(18).into()) - 1;
            (-most, most)
        }
        kind => kind.integer_range()?,
    };
    let narrow = (i64::try_from(low).ok()?, i64::try_from(high).ok()?);
    (narrow != (i64::MIN, i64::MAX)).then_some(narrow)
}

/// Returns the C type that an integer type wraps in; `None` for 64 bits.
fn wrapped(kind: &Type) -> Option<&'static str> {
    Some(match kind {
        Type::Int8 => "signed char",
        Type::Int16 => "short",
        Type::Int32 => "i32",
        Type::UInt8 => "u8",
        Type::UInt16 => "u16",
        Type::UInt32 => "u32",
        _ => return None,
    })
}

fn compare(operator: Comparison, left: &Term, right: &Term) -> Result<String> {
    c_type(&left.kind)?;
    let sign = match operator {
        Comparison::Equal => "==",
        Comparison::NotEqual => "!=",
        Comparison::Less => "<",
        Comparison::LessOrEqual => "<=",
        Comparison::Greater => ">",
        Comparison::GreaterOrEqual => ">=",
    };
    // Floats compare in total order, as integers do whose bits are theirs.
    let operand = |term: &Term| match term.kind.repr() {
        Repr::Float => format!("FLOAT_ORDER({})", term.value),
        _ => term.value.clone(),
    };
    Ok(format!("({} {sign} {})", operand(left), operand(right)))
}

/// Returns the powers of ten that bring both operands to the scale of the result, 1 for other types than decimals.
fn scales(a: &Arithmetic, left: &Type, right: &Type) -> Result<(i64, i64)> {
    let scale = |kind: &Type| match kind {
        Type::Decimal { scale, .. } => Some(i32::from(*scale)),
        _ => None,
    };
    let Some(target) = scale(&a.kind) else {
        return match a.kind.is_integer() && a.kind.repr() == Repr::Int {
            true => Ok((1, 1)),
            false => unsupported(format!("arithmetic in {}", a.kind)),
        };
    };
    let (Some(left), Some(right)) = (scale(left), scale(right)) else {
        return unsupported("decimal arithmetic with another type");
    };
    if a.kind.repr() != Repr::Int {
        return unsupported(format!("arithmetic in {}", a.kind));
    }
    let power = |by: i32| u32::try_from(by).ok().filter(|by| *by <= 18).map(|by| 10i64.pow(by));
    let powers = match a.operator {
        ArithmeticOperator::Add | ArithmeticOperator::Subtract => power(target - left).zip(power(target - right)),
        ArithmeticOperator::Multiply if target == left + right => Some((1, 1)),
        _ => None,
    };
    powers.map_or_else(|| unsupported("decimal arithmetic that rounds"), Ok)
}
