//! Lowers scalar functions by name: those whose meaning here is exactly the host's, for the argument types where it is.

use datafusion::{
    common::ScalarValue,
    logical_expr::{Expr, expr::ScalarFunction},
};
use tandem_column::Type;
use tandem_pipeline::{
    DateField, Expr as Lowered, Failure, Function, Value,
    builtin::{Gives, Group},
    scalar::pattern::Pattern,
};

use super::{context::LoweringContext, expression::Scope, literal::literal, typed::Typed};
use crate::functions::{SINGLE_ROW, date_field};

impl LoweringContext<'_> {
    /// Lowers a call of a scalar function.
    pub(crate) fn function(
        &mut self,
        scope: &mut Scope<'_>,
        call: &ScalarFunction,
        whole: &Expr,
    ) -> Result<Typed, String> {
        let name = call.name();
        if let ("array_element", [Expr::ScalarFunction(list), Expr::Literal(place, _)]) = (name, &call.args[..])
            && list.name() == "regexp_match"
        {
            return self.regexp_match(scope, list, place);
        }
        if name == "regexp_match" {
            return Err(
                "the function regexp_match gives a list, which runs on the host; its elements need not".to_string()
            );
        }
        let kind = self.result_kind(scope, whole)?;
        let mut arguments = self.arguments(scope, call)?;
        match name {
            "date_part" => return extract(arguments, kind),
            "date_trunc" => return truncate(arguments, kind),
            "date_diff" => return difference(arguments, kind),
            "to_date" if arguments.len() == 1 => return to_date(arguments),
            _ => {}
        }
        let own = (name == SINGLE_ROW).then_some(Function::SingleRow);
        let function =
            own.or_else(|| Function::from_sql(name)).ok_or_else(|| format!("the function {name} runs on the host"))?;
        let kinds: Vec<Type> = arguments.iter().map(|argument| argument.kind.clone()).collect();
        let given = match function.entry().gives {
            Gives::Int32 => Type::Int32,
            _ => kind.clone(),
        };
        if function.check(&kinds, &given).is_err()
            || kinds.contains(&Type::Null)
            || !means_the_same(function, &arguments)
        {
            let kinds: Vec<String> = kinds.iter().map(|kind| kind.to_string()).collect();
            return Err(format!("the function {name} on these arguments ({}) runs on the host", kinds.join(", ")));
        }
        // Trimming names its characters in a second argument, which was checked to be a space.
        if matches!(function, Function::Trim | Function::TrimStart | Function::TrimEnd) {
            arguments.truncate(1);
        }
        Ok(native(function, arguments, given).cast(&kind, Failure::Error))
    }

    /// Lowers the arguments of a call.
    fn arguments(&mut self, scope: &mut Scope<'_>, call: &ScalarFunction) -> Result<Vec<Typed>, String> {
        call.args.iter().map(|argument| self.expression(scope, argument)).collect()
    }

    /// Lowers an element of what `regexp_match` gives: a list, which exists nowhere but on the host.
    fn regexp_match(
        &mut self,
        scope: &mut Scope<'_>,
        call: &ScalarFunction,
        place: &ScalarValue,
    ) -> Result<Typed, String> {
        let mut arguments = self.arguments(scope, call)?;
        let (place, kind) = literal(place)?;
        match place {
            Value::Integer(place) if place >= 1 => {
                arguments.insert(2, Typed::literal(Value::Integer(place), kind));
            }
            _ => return Err("an element of a list that is not counted from its start runs on the host".to_string()),
        }
        if !means_the_same(Function::RegexpMatch, &arguments) {
            return Err("the function regexp_match on these arguments runs on the host".to_string());
        }
        Ok(native(Function::RegexpMatch, arguments, Type::String))
    }

    /// Lowers `regexp_match(…) IS NOT NULL`, which holds where the text matches; `None` for other expressions.
    pub(crate) fn matches(&mut self, scope: &mut Scope<'_>, expr: &Expr) -> Result<Option<Lowered>, String> {
        let Expr::ScalarFunction(call) = expr else { return Ok(None) };
        if call.name() != "regexp_match" {
            return Ok(None);
        }
        let arguments = self.arguments(scope, call)?;
        if !means_the_same(Function::RegexpLike, &arguments) {
            return Err("the function regexp_match on these arguments runs on the host".to_string());
        }
        let like = native(Function::RegexpLike, arguments, Type::Boolean).expr;
        let yes = Lowered::Literal(Value::Boolean(true), Type::Boolean);
        Ok(Some(Lowered::Not(Box::new(Lowered::Distinct(Box::new(like), Box::new(yes))))))
    }

    /// Lowers an operator that is a function of two arguments of one type.
    pub(crate) fn operator(
        &mut self,
        scope: &mut Scope<'_>,
        symbol: &str,
        sides: [&Expr; 2],
        whole: &Expr,
    ) -> Result<Typed, String> {
        let kind = self.result_kind(scope, whole)?;
        let [left, right] = [self.expression(scope, sides[0])?, self.expression(scope, sides[1])?];
        let kinds = [left.kind.clone(), right.kind.clone()];
        match Function::from_sql(symbol) {
            Some(function) if function.check(&kinds, &kind).is_ok() => Ok(native(function, vec![left, right], kind)),
            _ => Err(format!("{} {symbol} {} runs on the host", kinds[0], kinds[1])),
        }
    }

    /// Lowers a test against a regular expression.
    pub(crate) fn regexp(
        &mut self,
        scope: &mut Scope<'_>,
        sides: [&Expr; 2],
        ignore_case: bool,
        negated: bool,
    ) -> Result<Typed, String> {
        let mut arguments = vec![self.expression(scope, sides[0])?, self.expression(scope, sides[1])?];
        if ignore_case {
            arguments.push(Typed::literal(Value::string("i"), Type::String));
        }
        if !means_the_same(Function::RegexpLike, &arguments) {
            return Err("regular expressions that are not constant, or not valid, run on the host".to_string());
        }
        let like = native(Function::RegexpLike, arguments, Type::Boolean);
        let expr = if negated { Lowered::Not(Box::new(like.expr)) } else { like.expr };
        Ok(Typed::boolean(expr, like.nullable))
    }
}

/// Makes a call that gives `kind`.
fn native(function: Function, arguments: Vec<Typed>, kind: Type) -> Typed {
    let nullable = function.nullable(arguments.iter().map(|argument| argument.nullable));
    let arguments = arguments.into_iter().map(|argument| argument.expr).collect();
    Typed::new(Lowered::Function { function, arguments, kind: kind.clone() }, kind, nullable)
}

/// Tells whether a function that takes arguments of these types means the same of them on the host.
fn means_the_same(function: Function, arguments: &[Typed]) -> bool {
    use Function::*;
    let integer_at = |position: usize| match arguments.get(position).map(|argument| &argument.expr) {
        Some(Lowered::Literal(Value::Integer(value), _)) => Some(*value),
        _ => None,
    };
    let text_at = |position: usize| match arguments.get(position).map(|argument| &argument.expr) {
        Some(Lowered::Literal(Value::String(value), _)) => Some(&**value),
        _ => None,
    };
    let is_text = |argument: &Typed| argument.kind == Type::String;
    let flags_at = |position: usize| if position < arguments.len() { text_at(position) } else { Some("") };
    match function {
        Greatest | Least => arguments[0].kind != Type::Interval,
        Trim | TrimStart | TrimEnd => arguments.len() == 1 || text_at(1) == Some(" "),
        OctetLength => arguments[0].kind == Type::String,
        Substring => {
            // From before the first character, or of negative length, the host has rules of its own.
            integer_at(1).is_some_and(|start| start >= 1)
                && (arguments.len() == 2 || integer_at(2).is_some_and(|length| length >= 0))
        }
        Left | Right => integer_at(1).is_some(),
        Replace => text_at(1).is_some_and(|from| !from.is_empty()),
        Round => arguments[0].kind == Type::Float64 && (arguments.len() == 1 || integer_at(1).is_some()),
        Abs => true,
        SplitPart => integer_at(2) != Some(0),
        // A pattern that is none is the host's to refuse, and so is a flag that the function does not know.
        RegexpLike => is_text(&arguments[0]) && compiles(text_at(1), flags_at(2)),
        RegexpMatch => is_text(&arguments[0]) && text_at(3) != Some("") && compiles(text_at(1), flags_at(3)),
        RegexpReplace => {
            let flags = flags_at(3).map(|flags| if flags == "g" { "".into() } else { flags.replace('g', "") });
            // Without any other flag the host makes a pattern of it that is none.
            let known =
                arguments.len() == 3 || flags_at(3).is_some_and(|given| given == "g" || flags.as_deref() != Some(""));
            known && text_at(2).is_some() && compiles(text_at(1), flags.as_deref())
        }
        // The host reads names of zones in a way of its own.
        ToDate => (1..arguments.len()).all(|place| text_at(place).is_some_and(|format| !format.contains("%Z"))),
        // Of single precision the host computes in it, the IR in double.
        _ if function.entry().group == Group::Number => arguments.iter().all(|argument| argument.kind == Type::Float64),
        _ => true,
    }
}

/// Tells whether a constant pattern is a regular expression with these flags.
fn compiles(pattern: Option<&str>, flags: Option<&str>) -> bool {
    matches!((pattern, flags), (Some(pattern), Some(flags)) if Pattern::new(pattern, flags).is_ok())
}

/// Returns the part that a constant names.
fn field_of(name: &Typed) -> Result<DateField, String> {
    match &name.expr {
        Lowered::Literal(Value::String(name), _) => {
            date_field(name).ok_or_else(|| format!("the date part {name} runs on the host"))
        }
        _ => Err("a date part that is not a constant runs on the host".to_string()),
    }
}

fn extract(mut arguments: Vec<Typed>, kind: Type) -> Result<Typed, String> {
    let (Some(input), Some(field)) = (arguments.pop(), arguments.pop()) else {
        return Err("date_part takes two arguments".to_string());
    };
    let field = field_of(&field)?;
    if !matches!(input.kind, Type::Date | Type::Timestamp(_, None)) || kind != Type::Int32 {
        return Err(format!("parts of {} run on the host", input.kind));
    }
    let expr = Lowered::Function { function: Function::Extract(field), arguments: vec![input.expr], kind: Type::Int32 };
    Ok(Typed::new(expr, Type::Int32, input.nullable))
}

/// Lowers `to_date` without a format, which is a cast.
fn to_date(mut arguments: Vec<Typed>) -> Result<Typed, String> {
    let input = arguments.remove(0);
    match input.kind {
        Type::Date | Type::String | Type::Timestamp(_, None) | Type::Int32 => {
            Ok(input.cast(&Type::Date, Failure::Error))
        }
        other => Err(format!("the function to_date on {other} runs on the host")),
    }
}

fn difference(mut arguments: Vec<Typed>, kind: Type) -> Result<Typed, String> {
    let field = field_of(&arguments.remove(0))?;
    let function = Function::DateDiff(field);
    let kinds: Vec<Type> = arguments.iter().map(|argument| argument.kind.clone()).collect();
    match function.check(&kinds, &kind) {
        Ok(()) if !kinds.contains(&Type::Null) => Ok(native(function, arguments, kind)),
        _ => Err("the function date_diff on these arguments runs on the host".to_string()),
    }
}

fn truncate(mut arguments: Vec<Typed>, kind: Type) -> Result<Typed, String> {
    let (Some(input), Some(field)) = (arguments.pop(), arguments.pop()) else {
        return Err("date_trunc takes two arguments".to_string());
    };
    let field = field_of(&field)?;
    if matches!(field, DateField::DayOfWeek | DateField::DayOfYear) {
        return Err("date_trunc to a day of the week or year runs on the host".to_string());
    }
    if !matches!(input.kind, Type::Date | Type::Timestamp(_, None)) || kind != input.kind {
        return Err(format!("truncating {} runs on the host", input.kind));
    }
    let expr =
        Lowered::Function { function: Function::Truncate(field), arguments: vec![input.expr], kind: kind.clone() };
    Ok(Typed::new(expr, kind, input.nullable))
}
