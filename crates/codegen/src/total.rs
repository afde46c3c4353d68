//! Exact totals into values: the sum of integers or decimals, or the average of decimals, if its type holds it.

use tandem_column::{Error, Repr, Result, Type};
use tandem_pipeline::{Aggregate, AggregateFunction, Overflow, scalar::decimal::power_of_ten};

use crate::{Binding, text::Text};

/// A value in C.
pub(crate) struct Finished {
    pub(crate) value: String,
    /// It has 128 bits rather than 64.
    pub(crate) wide: bool,
    /// When it is null.
    pub(crate) null: Option<String>,
}

/// Writes what makes the value of an aggregate, with the type of its argument, of a 128-bit total. `beyond` tells that the total is
/// not exact; `count`, how many values it is of; `null`, that there are none.
///
/// # Errors
/// Unsupported, for sums that only the CPU brings to their type.
pub(crate) fn finish_total(
    text: &mut Text,
    (aggregate, argument): (&Aggregate, &Type),
    (total, beyond): (&str, Option<String>),
    count: &str,
    null: Option<String>,
) -> Result<Finished> {
    let other = || Error::unsupported("a sum of another scale is finished by the CPU");
    let or =
        |first: Option<String>, second: String| first.map_or(second.clone(), |first| format!("{first} || {second}"));
    let mut total = text.define("wide", total);
    let mut beyond = beyond;
    let from = match argument {
        Type::Decimal { scale, .. } => *scale,
        _ => 0,
    };
    let (low, high) = match &aggregate.kind {
        Type::Decimal { precision, scale } => {
            let average = aggregate.function == AggregateFunction::Average;
            if average && *scale > from {
                let power = power_of_ten((*scale - from) as u32).ok_or_else(other)?;
                let power = text.define("wide", &wide_literal(power));
                let more = text.define("wide", &format!("wide_multiply({total}, {power})"));
                beyond = Some(or(beyond, format!("wide_product_left({total}, {power}, {more})")));
                total = more;
            } else if *scale != from {
                return Err(other());
            }
            if average {
                total = text.define("wide", &format!("wide_divide({total}, wide_of({count}))"));
            }
            let limit = power_of_ten((*precision).into()).ok_or_else(other)?;
            (1 - limit, limit - 1)
        }
        kind => kind.integer_range().filter(|_| from == 0).ok_or_else(other)?,
    };
    let [low, high] = [low, high].map(wide_literal);
    let outside = format!("wide_order({total}, {low}) < 0 || wide_order({total}, {high}) > 0");
    let mut null = null;
    // What leaves 128 bits on the way, or parts of sums, is the CPU's to tell.
    let mut failed = beyond;
    match (aggregate.overflow, &aggregate.kind) {
        (Overflow::Wrap, Type::Int64) => {}
        (Overflow::Null, _) => null = Some(or(null, outside)),
        _ => failed = Some(or(failed, outside)),
    }
    if let Some(test) = failed {
        let failed = text.argument(Binding::Failed, "GLOBAL i32 *", "failed", "set when a value is not finished here");
        text.line(format!("if ({test}) RAISE({failed});"));
    }
    let wide = aggregate.kind.repr() == Repr::Wide;
    let value = if wide { total } else { format!("(i64){total}.low") };
    Ok(Finished { value, wide, null })
}

fn wide_literal(value: i128) -> String {
    format!("wide_from((i64)0x{:x}UL, 0x{:x}UL)", (value >> 64) as u64, value as u64)
}
