//! Lowers scalar functions by name: those whose meaning here is exactly the host's, for the argument types where it is.

use datafusion::logical_expr::{Expr, expr::ScalarFunction};
use tandem_column::Type;
use tandem_pipeline::{
    DateField, Expr as Lowered, Failure, Function, Value,
    builtin::{Gives, Group},
};

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
            _ => {}
        }
        let function = Function::from_sql(name).ok_or_else(|| format!("the function {name} runs on the host"))?;
        let kinds: Vec<Type> = arguments.iter().map(|argument| argument.kind.clone()).collect();
        let native = match function.entry().gives {
            Gives::Int32 => Type::Int32,
            _ => kind.clone(),
        };
        if function.check(&kinds, &native).is_err()
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
        let nullable = function.nullable(arguments.iter().map(|argument| argument.nullable));
        let arguments = arguments.into_iter().map(|argument| argument.expr).collect();
        let expr = Lowered::Function { function, arguments, kind: native.clone() };
        Ok(Typed::new(expr, native, nullable).cast(&kind, Failure::Error))
    }
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
        // Of single precision the host computes in it, the IR in double.
        _ if function.entry().group == Group::Number => arguments.iter().all(|argument| argument.kind == Type::Float64),
        _ => true,
    }
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
