//! Expressions as C statements: one temporary for a value, one for its null flag where it may be null.
//!
//! A row whose value does not exist sets `failed`: the CPU then computes the pipeline and finds the message, so
//! nothing about errors is written twice. What a kernel does only for some values it may leave to the CPU that way.

mod arithmetic;
mod bits;
mod cast;
mod date;
mod function;
mod term;
mod text;

use tandem_column::{Repr, Result, Type};
use tandem_pipeline::{
    Comparison, Expr, SlotId, Value,
    range::{self, Range},
    scalar::like::Matcher,
};

pub(crate) use self::term::{Integer, Term, Width, c_type, either, unsupported};
use self::{arithmetic::relation, term::is_name};
use crate::{Binding, kernel::Generator};

impl Generator<'_> {
    /// Writes statements that compute an expression.
    pub(crate) fn expression(&mut self, expr: &Expr) -> Result<Term> {
        if let Some(term) = self.looked_up(expr)? {
            return Ok(term);
        }
        match expr {
            Expr::Slot(slot) => self.slot(*slot),
            Expr::Literal(value, kind) => self.literal(value, kind),
            Expr::Arithmetic(arithmetic) => self.arithmetic(arithmetic),
            Expr::Compare(operator, left, right) => {
                let (left, right) = self.comparable(left, right)?;
                let value = compare(*operator, &left, &right)?;
                self.keep("int", &value, either([left.null, right.null]), Type::Boolean)
            }
            Expr::Distinct(left, right) => {
                let (left, right) = self.comparable(left, right)?;
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
                Ok(Term::new(value, None, Type::Boolean))
            }
            Expr::Case { branches, otherwise, kind } => self.case(branches, otherwise.as_deref(), kind),
            Expr::Cast { input, kind, failure } => self.cast(input, kind, *failure),
            Expr::In { input, list } => self.in_list(input, list),
            Expr::Negate(input, overflow) => self.negate(input, *overflow),
            Expr::Like { ignore_case: true, .. } => unsupported("LIKE that ignores case, on text without a dictionary"),
            Expr::Like { input, pattern, escape, .. } => {
                let codes = Matcher::new(pattern, *escape, false).codes();
                self.like(input, codes)
            }
            Expr::Function { function, arguments, kind } => self.function(*function, arguments, kind),
            Expr::Call { .. } => unsupported("a user function"),
            Expr::Element(..) | Expr::ListLength(_) => unsupported("a list"),
        }
    }

    /// Computes two values that are compared: codes of one dictionary, or texts.
    fn comparable(&mut self, left: &Expr, right: &Expr) -> Result<(Term, Term)> {
        let (left, right) = (self.expression(left)?, self.expression(right)?);
        match left.kind.repr() {
            Repr::Bytes if left.words != right.words => Ok((self.spelled(left)?, self.spelled(right)?)),
            _ => Ok((left, right)),
        }
    }

    /// Names a value and its null flag.
    pub(crate) fn keep(&mut self, c: &str, value: &str, null: Option<String>, kind: Type) -> Result<Term> {
        let null = self.flag(null);
        Ok(Term::new(self.text.define(c, value), null, kind))
    }

    /// Names a null flag.
    pub(crate) fn flag(&mut self, null: Option<String>) -> Option<String> {
        null.map(|null| if is_name(&null) { null } else { self.text.define("int", &null) })
    }

    pub(crate) fn literal(&mut self, value: &Value, kind: &Type) -> Result<Term> {
        let value = match value {
            // The value of a null is never looked at.
            Value::Null if kind.repr() == Repr::Bytes => {
                return Ok(Term::new("no_text()", Some("1".into()), kind.clone()));
            }
            Value::Null => {
                let range = Range::of_type(kind).map(|_| Range::only(0));
                let value = format!("({})0", c_type(kind, range)?);
                self.needs_fp64 |= kind.repr() == Repr::Float;
                return Ok(Term { range, ..Term::new(value, Some("1".into()), kind.clone()) });
            }
            Value::Boolean(value) => {
                let name = self.constant(i64::from(*value));
                return Ok(Term::new(format!("(int){name}"), None, kind.clone()));
            }
            Value::Float(value) => {
                self.needs_fp64 = true;
                let name = self.constant(value.to_bits() as i64);
                return Ok(Term::new(format!("AS_F64({name})"), None, kind.clone()));
            }
            Value::Integer(value) => *value,
            Value::String(text) => return Ok(self.text_literal(text.as_bytes(), kind)),
            Value::Binary(bytes) => return Ok(self.text_literal(bytes, kind)),
            _ => return unsupported(format!("a literal of {kind}")),
        };
        let range = Range::only(value);
        let low = self.constant(value as i64);
        let text = match Width::of(range) {
            Width::Narrow => format!("(i32){low}"),
            Width::Long => low,
            Width::Wide => {
                let high = self.constant((value >> 64) as i64);
                format!("wide_from({high}, (u64){low})")
            }
        };
        Ok(Term::of(Integer::new(text, range), None, kind.clone()))
    }

    pub(crate) fn constant(&mut self, value: i64) -> String {
        self.text.argument(Binding::Constant(value), "const i64", "", "")
    }

    /// Three-valued AND (`all`) or OR.
    fn connect(&mut self, operands: &[Expr], all: bool) -> Result<Term> {
        let mut terms = Vec::with_capacity(operands.len());
        for operand in operands {
            // What a later operand raises may be hidden by an earlier one: leave such rows to the CPU's order.
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
        Ok(Term::new(value, null, Type::Boolean))
    }

    fn case(&mut self, branches: &[(Expr, Expr)], otherwise: Option<&Expr>, kind: &Type) -> Result<Term> {
        // Read before the blocks, so that what follows them sees the same temporaries.
        let inputs = branches.iter().flat_map(|(condition, result)| [condition, result]).chain(otherwise);
        for slot in inputs.flat_map(Expr::slots).collect::<Vec<_>>() {
            self.slot(slot)?;
        }
        let found = self.variable(branches.iter().map(|(_, result)| result).chain(otherwise), kind)?;
        // Branches are lazy: each is computed only where the ones before it are not true.
        for (condition, result) in branches {
            let condition = self.expression(condition)?;
            let taken = match &condition.null {
                Some(null) => format!("!{null} & {}", condition.value),
                None => condition.value,
            };
            self.text.open(&format!("if ({taken}) {{"));
            let result = self.expression(result)?;
            self.assign(&found, &result)?;
            self.text.close();
            self.text.open("else {");
        }
        if let Some(otherwise) = otherwise {
            let result = self.expression(otherwise)?;
            self.assign(&found, &result)?;
        }
        branches.iter().for_each(|_| self.text.close());
        Ok(found)
    }

    /// Declares a variable that is null until one of some values is assigned.
    fn variable<'e>(&mut self, values: impl IntoIterator<Item = &'e Expr>, kind: &Type) -> Result<Term> {
        let mut all: Option<Range> = None;
        for value in values {
            if !matches!(value, Expr::Literal(Value::Null, _)) {
                let range = self.range(value, kind);
                all = all.map_or(range, |all| range.map(|range| all.union(range)));
            }
        }
        let range = all.or(Range::of_type(kind).map(|_| Range::only(0)));
        let c = c_type(kind, range)?;
        let zero = Integer::fixed(0).to(range.map_or(Width::Narrow, Width::of));
        let (value, null) = (self.text.declare(c, &zero), self.text.declare("int", "1"));
        Ok(Term { range, ..Term::new(value, Some(null), kind.clone()) })
    }

    /// Returns the range of an expression of a type.
    fn range(&self, expr: &Expr, kind: &Type) -> Option<Range> {
        let known = range::of(expr, &|slot| (self.kind_of(slot), self.range_of(slot)));
        known.or_else(|| Range::of_type(kind)).filter(|_| matches!(kind.repr(), Repr::Int | Repr::Wide | Repr::Boolean))
    }

    /// Assigns to a variable.
    fn assign(&mut self, to: &Term, from: &Term) -> Result<()> {
        let value = match (to.range, from.range) {
            (Some(range), Some(_)) => from.integer()?.to(Width::of(range)),
            _ => from.value.clone(),
        };
        self.text.line(format!("{} = {value};", to.value));
        let null = to.null.as_deref().unwrap_or_default();
        self.text.line(format!("{null} = {};", from.null.as_deref().unwrap_or("0")));
        Ok(())
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
        let null = self.flag(either([input.null.filter(|_| !list.is_empty()), unknown]));
        Ok(Term::new(found, null, Type::Boolean))
    }

    /// Says that the row has no value, unless it is null or was dropped before.
    pub(crate) fn fail_if(&mut self, condition: &str, null: Option<&String>) {
        let name = self.text.argument(Binding::Failed, "GLOBAL i32 *", "failed", "set when a row has no value");
        let condition = match null {
            Some(null) => format!("!({null}) && ({condition})"),
            None => condition.to_string(),
        };
        self.text.line(format!("if ({condition}) *{name} = 1;"));
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

fn compare(operator: Comparison, left: &Term, right: &Term) -> Result<String> {
    let sign = match operator {
        Comparison::Equal => "==",
        Comparison::NotEqual => "!=",
        Comparison::Less => "<",
        Comparison::LessOrEqual => "<=",
        Comparison::Greater => ">",
        Comparison::GreaterOrEqual => ">=",
    };
    Ok(match left.kind.repr() {
        Repr::Bytes if left.is_text() && right.is_text() => match operator {
            Comparison::Equal => format!("text_equal({}, {})", left.value, right.value),
            Comparison::NotEqual => format!("!text_equal({}, {})", left.value, right.value),
            _ => format!("(text_order({}, {}) {sign} 0)", left.value, right.value),
        },
        // Codes of one dictionary are in the order of its words.
        Repr::Bytes if left.words == right.words => format!("({} {sign} {})", left.value, right.value),
        // Floats compare in total order, as integers do whose bits are theirs.
        Repr::Float => format!("(FLOAT_ORDER({}) {sign} FLOAT_ORDER({}))", left.value, right.value),
        _ => relation(&left.integer()?, sign, &right.integer()?),
    })
}
