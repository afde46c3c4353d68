//! `date_diff(field, start, end)`: how many starts of a field lie after `start` and not after `end`, as in DuckDB.
//!
//! DataFusion has no function of that name; here it is for plans that stay with it. Pipelines compute the same from the same
//! definition, [`tandem_pipeline::scalar`].

use std::sync::Arc;

use arrow::{
    array::{Array, ArrayRef, AsArray, Int64Array},
    datatypes::{DataType, TimeUnit},
};
use datafusion::{
    common::{DataFusionError, Result, exec_err, plan_err},
    logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility},
};
use tandem_pipeline::{DateField, Function, Type, scalar};

/// Makes the function.
pub(crate) fn date_diff() -> ScalarUDF {
    ScalarUDF::from(DateDiff { signature: Signature::user_defined(Volatility::Immutable) })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct DateDiff {
    signature: Signature,
}

/// Returns the type in which two arguments are compared.
fn common(start: &DataType, end: &DataType) -> Option<DataType> {
    use DataType::{Date32, LargeUtf8, Null, Timestamp, Utf8, Utf8View};
    let text = |kind: &DataType| matches!(kind, Utf8 | LargeUtf8 | Utf8View | Null);
    Some(match (start, end) {
        (Date32, Date32) => Date32,
        (Date32, other) | (other, Date32) if text(other) => Date32,
        (Timestamp(one, None), Timestamp(other, None)) => Timestamp(*one.max(other), None),
        (Timestamp(unit, None), other) | (other, Timestamp(unit, None)) if text(other) || *other == Date32 => {
            Timestamp(*unit, None)
        }
        (start, end) if text(start) && text(end) => Timestamp(TimeUnit::Microsecond, None),
        _ => return None,
    })
}

impl ScalarUDFImpl for DateDiff {
    fn name(&self) -> &str {
        "date_diff"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, kinds: &[DataType]) -> Result<Vec<DataType>> {
        let [DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View, start, end] = kinds else {
            return plan_err!("date_diff takes the name of a field such as 'month', a start and an end");
        };
        match common(start, end) {
            Some(kind) => Ok(vec![DataType::Utf8, kind.clone(), kind]),
            None => {
                plan_err!("date_diff takes dates or timestamps without a zone: cast {start} and {end} to TIMESTAMP")
            }
        }
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Int64)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let arrays = ColumnarValue::values_to_arrays(&args.args)?;
        let [fields, start, end] = &arrays[..] else { return exec_err!("date_diff takes three arguments") };
        let Ok(kind) = Type::from_arrow(start.data_type()) else {
            return exec_err!("date_diff takes dates or timestamps, not {}", start.data_type());
        };
        let kinds = [kind.clone(), kind.clone()];
        let fields = fields.as_string::<i32>();
        let external = |error: tandem_pipeline::Error| DataFusionError::Execution(error.message);
        let mut found = Vec::with_capacity(start.len());
        for row in 0..start.len() {
            if fields.is_null(row) {
                found.push(None);
                continue;
            }
            let Some(field) = date_field(fields.value(row)) else {
                return exec_err!(
                    "date_diff needs a field of year, quarter, month, week, day, hour, minute or second, not '{}'",
                    fields.value(row)
                );
            };
            let values = [
                scalar::arrow::value(start, row, &kind).map_err(external)?,
                scalar::arrow::value(end, row, &kind).map_err(external)?,
            ];
            let days = scalar::function(Function::DateDiff(field), &Type::Int64, &kinds, &values).map_err(external)?;
            found.push(days.as_integer().and_then(|days| i64::try_from(days).ok()));
        }
        let found: ArrayRef = Arc::new(Int64Array::from(found));
        Ok(ColumnarValue::Array(found))
    }
}

/// Returns the part of dates of a name.
pub(crate) fn date_field(name: &str) -> Option<DateField> {
    Some(match name.to_ascii_lowercase().trim_matches('\'') {
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
        _ => return None,
    })
}
