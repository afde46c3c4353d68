//! Lowers scalar functions by name: those whose meaning here is exactly the host's, for the argument types where it is.

use datafusion::logical_expr::{Expr, expr::ScalarFunction};
use tandem_column::Type;
use tandem_pipeline::{DateField, Expr as Lowered, Failure, Function, Value};

use super::{context::Context, expression::Scope, typed::Typed};

impl Context<'_> {
    /// Lowers a call of a scalar function.
    pub(crate) fn function(
        &mut self,
        scope: &mut Scope<'_>,
        call: &ScalarFunction,
        whole: &Expr,
    ) -> Result<Typed, String> {
        let name = call.name();
        let kind = self.result_kind(scope, whole)?;
        let mut arguments = Vec::with_capacity(call.args.len());
        for argument in &call.args {
            arguments.push(self.expression(scope, argument)?);
        }
        match name {
            "date_part" => return extract(arguments, kind),
            "date_trunc" => return truncate(arguments, kind),
            "nvl" => return build(Function::Coalesce, arguments, kind.clone(), kind),
            "nvl2" => return Err("the function nvl2 runs on the host".to_string()),
            _ => {}
        }
        let function = match_function(name, &arguments)?;
        let native = match function {
            Function::CharLength | Function::OctetLength | Function::Position => Type::Int32,
            _ => kind.clone(),
        };
        // Trimming names its characters in a second argument, which was checked to be a space.
        if matches!(function, Function::Trim | Function::TrimStart | Function::TrimEnd) {
            arguments.truncate(1);
        }
        build(function, arguments, native, kind)
    }
}

/// Returns the function of a name, having checked that the arguments are ones on which it means the same.
fn match_function(name: &str, arguments: &[Typed]) -> Result<Function, String> {
    use Function::*;
    let kinds: Vec<&Type> = arguments.iter().map(|argument| &argument.kind).collect();
    let same = kinds.windows(2).all(|pair| pair[0] == pair[1]);
    let text = |count: usize| kinds.len() == count && kinds.iter().all(|kind| **kind == Type::String);
    let float = |count: usize| kinds.len() == count && kinds.iter().all(|kind| **kind == Type::Float64);
    let integer_at = |position: usize| match arguments.get(position).map(|argument| &argument.expr) {
        Some(Lowered::Literal(Value::Integer(value), _)) => Some(*value),
        _ => None,
    };
    let spaces = || match &arguments[1..] {
        [] => true,
        [Typed { expr: Lowered::Literal(Value::String(characters), _), .. }] => &**characters == " ",
        _ => false,
    };
    let trims = || matches!(kinds[..], [Type::String] | [Type::String, Type::String]) && spaces();
    let (function, fits) = match name {
        "coalesce" => (Coalesce, same && !kinds.is_empty()),
        "nullif" => (NullIf, same && kinds.len() == 2),
        "greatest" => (Greatest, same && !kinds.is_empty() && *kinds[0] != Type::Interval),
        "least" => (Least, same && !kinds.is_empty() && *kinds[0] != Type::Interval),
        "upper" => (Upper, text(1)),
        "lower" => (Lower, text(1)),
        "btrim" | "trim" => (Trim, trims()),
        "ltrim" => (TrimStart, trims()),
        "rtrim" => (TrimEnd, trims()),
        "character_length" | "length" | "char_length" => (CharLength, text(1)),
        "octet_length" => (OctetLength, text(1)),
        "substr" | "substring" => {
            // From before the first character, or of negative length, the host has rules of its own.
            let start = integer_at(1).is_some_and(|start| start >= 1);
            let length = kinds.len() == 2 || integer_at(2).is_some_and(|length| length >= 0);
            (Substring, kinds.first() == Some(&&Type::String) && start && length)
        }
        "left" => (Left, kinds.first() == Some(&&Type::String) && integer_at(1).is_some()),
        "right" => (Right, kinds.first() == Some(&&Type::String) && integer_at(1).is_some()),
        "concat" => (Concat, text(kinds.len())),
        "replace" => {
            let from = matches!(&arguments[1].expr, Lowered::Literal(Value::String(from), _) if !from.is_empty());
            (Replace, text(3) && from)
        }
        "strpos" | "instr" | "position" => (Position, text(2)),
        "starts_with" => (StartsWith, text(2)),
        "ends_with" => (EndsWith, text(2)),
        "contains" => (Contains, text(2)),
        "reverse" => (Reverse, text(1)),
        "abs" => (Abs, kinds.len() == 1 && kinds[0].is_numeric()),
        "signum" => (Sign, float(1)),
        "round" => (Round, kinds.first() == Some(&&Type::Float64) && (kinds.len() == 1 || integer_at(1).is_some())),
        "floor" => (Floor, float(1)),
        "ceil" => (Ceil, float(1)),
        "power" | "pow" => (Power, float(2)),
        "exp" => (Exp, float(1)),
        "ln" => (Ln, float(1)),
        "log10" => (Log10, float(1)),
        "log" if kinds.len() == 1 => (Log10, float(1)),
        "log2" => (Log2, float(1)),
        "sin" => (Sin, float(1)),
        "cos" => (Cos, float(1)),
        "tan" => (Tan, float(1)),
        "atan" => (ArcTan, float(1)),
        _ => return Err(format!("the function {name} runs on the host")),
    };
    if fits {
        return Ok(function);
    }
    let kinds: Vec<String> = kinds.iter().map(|kind| kind.to_string()).collect();
    Err(format!("the function {name} on these arguments ({}) runs on the host", kinds.join(", ")))
}

/// Makes a call that gives `native`, cast to the host's `kind`.
fn build(function: Function, arguments: Vec<Typed>, native: Type, kind: Type) -> Result<Typed, String> {
    use Function::*;
    if matches!(function, Coalesce | NullIf | Greatest | Least | Upper | Lower | Replace | Substring | Left | Right)
        && arguments[0].kind != kind
    {
        return Err(format!("a function of {} giving {kind} runs on the host", arguments[0].kind));
    }
    let nullable = match function {
        Coalesce | Greatest | Least => arguments.iter().all(|argument| argument.nullable),
        NullIf => true,
        Concat => false,
        _ => arguments.iter().any(|argument| argument.nullable),
    };
    let arguments = arguments.into_iter().map(|argument| argument.expr).collect();
    let expr = Lowered::Function { function, arguments, kind: native.clone() };
    Ok(Typed::new(expr, native, nullable).cast(&kind, Failure::Error))
}

/// Returns the part that a constant names.
fn field_of(name: &Typed) -> Result<DateField, String> {
    let Lowered::Literal(Value::String(name), _) = &name.expr else {
        return Err("a date part that is not a constant runs on the host".to_string());
    };
    Ok(match name.to_ascii_lowercase().trim_matches('\'') {
        "year" => DateField::Year,
        "quarter" => DateField::Quarter,
        "month" => DateField::Month,
        "week" => DateField::Week,
        "day" => DateField::Day,
        "dow" => DateField::DayOfWeek,
        "doy" => DateField::DayOfYear,
        "hour" => DateField::Hour,
        "minute" => DateField::Minute,
        "second" => DateField::Second,
        _ => return Err(format!("the date part {name} runs on the host")),
    })
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
