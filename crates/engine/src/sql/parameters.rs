//! Values for the parameters of a statement: `$1`, `$2` and so on.
//!
//! DataFusion infers a parameter's type from what it is compared or computed with. A value of that kind is taken as is or
//! converted without loss (an integer for a DECIMAL, text for a DATE); any other is refused before anything runs.

use std::collections::BTreeMap;
use std::fmt;

use arrow::datatypes::DataType;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{ParamValues, ScalarValue};
use datafusion::logical_expr::{Expr, LogicalPlan, Statement as PlanStatement, expr::Placeholder};

use crate::error::{FromHost, IntoHost};
use crate::tables::info::sql_type;
use crate::{Error, Result};

/// A value for a parameter. Made from Rust's own types, `Option` of them for null, or by name for those that Rust lacks.
///
/// ```
/// use tandem_engine::Parameter;
///
/// let values = [Parameter::from(7i64), Parameter::from("red"), Parameter::from(None::<f64>), Parameter::date(20_000)];
/// assert_eq!(values.map(|value| value.to_string()), ["7", "red", "NULL", "2024-10-04"]);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter(ScalarValue);

impl Parameter {
    /// Makes a null that takes whatever type the statement needs.
    pub fn null() -> Parameter {
        Parameter(ScalarValue::Null)
    }

    /// Makes a date from days since 1970-01-01.
    pub fn date(days: i32) -> Parameter {
        Parameter(ScalarValue::Date32(Some(days)))
    }

    /// Makes a timestamp without a time zone from microseconds since 1970-01-01 00:00.
    pub fn timestamp(microseconds: i64) -> Parameter {
        Parameter(ScalarValue::TimestampMicrosecond(Some(microseconds), None))
    }

    /// Makes a decimal: `units` times ten to the power of minus `scale`.
    pub fn decimal(units: i128, precision: u8, scale: i8) -> Parameter {
        Parameter(ScalarValue::Decimal128(Some(units), precision, scale))
    }
}

impl fmt::Display for Parameter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

macro_rules! value_from {
    ($($native:ty => $scalar:ident),* $(,)?) => {$(
        impl From<$native> for Parameter {
            fn from(value: $native) -> Parameter {
                Parameter(ScalarValue::$scalar(Some(value.into())))
            }
        }

        impl From<Option<$native>> for Parameter {
            fn from(value: Option<$native>) -> Parameter {
                Parameter(ScalarValue::$scalar(value.map(Into::into)))
            }
        }
    )*};
}

value_from! {
    bool => Boolean, i8 => Int8, i16 => Int16, i32 => Int32, i64 => Int64, u8 => UInt8, u16 => UInt16, u32 => UInt32,
    u64 => UInt64, f32 => Float32, f64 => Float64, &str => Utf8, String => Utf8, &[u8] => Binary, Vec<u8> => Binary,
}

/// Puts values in place of a plan's parameters.
///
/// # Errors
/// If there are too few or too many values, or one is not of its parameter's kind.
pub(crate) fn bind(plan: LogicalPlan, values: &[Parameter]) -> Result<LogicalPlan> {
    // The parameters of what is only prepared get their values from EXECUTE.
    if matches!(plan, LogicalPlan::Statement(PlanStatement::Prepare(_))) && values.is_empty() {
        return Ok(plan);
    }
    let parameters = parameters(&plan)?;
    let wanted = parameters.keys().max().copied().unwrap_or(0);
    if wanted != values.len() {
        return Err(Error::input(match wanted {
            0 => format!("the statement has no parameters, but got {}", counted(values.len())),
            wanted => format!(
                "the statement has parameters up to ${wanted}, but got {}; bind one to each, or use PREPARE and EXECUTE",
                counted(values.len())
            ),
        }));
    }
    if wanted == 0 {
        return Ok(plan);
    }
    let mut bound = Vec::with_capacity(values.len());
    for (position, Parameter(value)) in values.iter().enumerate() {
        let kinds = parameters.get(&(position + 1)).map_or(&[][..], Vec::as_slice);
        for kind in kinds {
            if !fits(value, kind) {
                return Err(Error::input(format!(
                    "the parameter ${} is a {} in the statement; the value is a {}: {value}",
                    position + 1,
                    sql_type(kind),
                    sql_type(&value.data_type()),
                )));
            }
        }
        // With several types the value stays as it is, for DataFusion to convert at each place.
        let converted = if let [kind] = kinds { convert(value, kind) } else { None };
        bound.push(converted.unwrap_or_else(|| value.clone()));
    }
    plan.with_param_values(ParamValues::from(bound)).out_of_host()
}

fn counted(values: usize) -> String {
    match values {
        0 => "no value".to_string(),
        1 => "1 value".to_string(),
        more => format!("{more} values"),
    }
}

/// Returns the parameters of a plan by number, each with the types that its places need, as far as they are known.
fn parameters(plan: &LogicalPlan) -> Result<BTreeMap<usize, Vec<DataType>>> {
    let mut found: BTreeMap<usize, Vec<DataType>> = BTreeMap::new();
    let walk = plan.apply_with_subqueries(|plan| {
        plan.apply_expressions(|expr| {
            expr.apply(|expr| {
                if let Expr::Placeholder(Placeholder { id, field }) = expr {
                    let number = id.trim_start_matches('$').parse::<usize>().ok().filter(|number| *number > 0);
                    let number = number.ok_or_else(|| {
                        Error::input(format!("parameters are numbered from $1; rename this one: {id}")).into_host()
                    })?;
                    let kinds = found.entry(number).or_default();
                    if let Some(kind) = field.as_ref().map(|field| field.data_type())
                        && !kinds.contains(kind)
                    {
                        kinds.push(kind.clone());
                    }
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })
    });
    walk.out_of_host()?;
    Ok(found)
}

/// Tells whether a value is of the kind that a parameter's place needs. Numbers are, of any type: `n > $1` may well compare
/// an integer with 2.5.
fn fits(value: &ScalarValue, kind: &DataType) -> bool {
    let families = (Family::of(&value.data_type()), Family::of(kind));
    match families {
        _ if value.is_null() || value.data_type() == *kind => true,
        (Some(Family::Text), Some(Family::Time)) => value.cast_to(kind).is_ok_and(|converted| !converted.is_null()),
        (Some(from), Some(to)) => from == to,
        _ => false,
    }
}

/// Converts a value that fits to a parameter's type, unless something would be lost.
fn convert(value: &ScalarValue, kind: &DataType) -> Option<ScalarValue> {
    if value.is_null() {
        return ScalarValue::try_from(kind).ok();
    }
    let converted = value.cast_to(kind).ok().filter(|converted| !converted.is_null())?;
    // Text is parsed, which has no way back.
    let number = Family::of(kind) == Some(Family::Number);
    let same = !number || converted.cast_to(&value.data_type()).is_ok_and(|back| back == *value);
    same.then_some(converted)
}

/// Types whose values may stand for each other.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Family {
    Boolean,
    Number,
    Text,
    Bytes,
    Time,
}

impl Family {
    fn of(kind: &DataType) -> Option<Family> {
        use DataType::*;
        Some(match kind {
            Boolean => Family::Boolean,
            kind if kind.is_numeric() => Family::Number,
            Utf8 | LargeUtf8 | Utf8View => Family::Text,
            Dictionary(_, values) => return Family::of(values),
            Binary | LargeBinary | BinaryView | FixedSizeBinary(_) => Family::Bytes,
            Date32 | Date64 | Time32(_) | Time64(_) | Timestamp(..) => Family::Time,
            _ => return None,
        })
    }
}
