//! Functions that a program defines in Rust and statements call by name.
//!
//! Until user functions are compiled into pipelines, the host engine calls them: the operator that has one runs there, with
//! a reason in the report. What is below and above it still runs on Tandem.

mod date_diff;
mod exclude;
mod quantile_disc;
mod single_row;
mod typed;

use std::sync::Arc;

use arrow::array::{Array, ArrayRef};
use arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::error::DataFusionError;
use datafusion::logical_expr::{ColumnarValue, ScalarUDF, Volatility, create_udf};
use tandem_column::{guarded, panic_text};

use crate::error::IntoHost;
use crate::{Error, Result};
pub(crate) use date_diff::{date_diff, date_field};
pub(crate) use exclude::{EXCLUDE, exclude};
pub(crate) use quantile_disc::quantile_disc;
pub(crate) use single_row::{SINGLE_ROW, single_row};
pub use typed::{FunctionArgument, Native, Returned, ScalarFunction, Text};

/// Makes DataFusion's function of one that maps arrays to an array.
pub(crate) fn array_function(
    name: &str,
    arguments: Vec<DataType>,
    returns: DataType,
    call: impl Fn(&[ArrayRef]) -> Result<ArrayRef> + Send + Sync + 'static,
) -> Result<ScalarUDF> {
    if arguments.is_empty() {
        return Err(Error::unsupported(format!("a function needs at least one argument: {name}")));
    }
    let (called, kind) = (name.to_string(), returns.clone());
    let apply = move |arguments: &[ColumnarValue]| {
        let constant = arguments.iter().all(|argument| matches!(argument, ColumnarValue::Scalar(_)));
        let arrays = ColumnarValue::values_to_arrays(arguments)?;
        let array = checked(&called, &kind, &arrays, &call).into_host()?;
        match constant {
            true => ScalarValue::try_from_array(&array, 0).map(ColumnarValue::Scalar),
            false => Ok::<_, DataFusionError>(ColumnarValue::Array(array)),
        }
    };
    Ok(create_udf(name, arguments, returns, Volatility::Immutable, Arc::new(apply)))
}

/// Calls a function and checks that it keeps its promises.
fn checked(
    name: &str,
    kind: &DataType,
    arrays: &[ArrayRef],
    call: &(impl Fn(&[ArrayRef]) -> Result<ArrayRef> + Send + Sync),
) -> Result<ArrayRef> {
    let array = guarded(|| call(arrays))
        .map_err(|panic| Error::input(format!("the function {name} panicked: {}", panic_text(panic.as_ref()))))?
        .map_err(|error| Error::new(error.class, format!("the function {name} failed: {}", error.message)))?;
    let rows = arrays[0].len();
    if array.len() != rows || array.data_type() != kind {
        return Err(Error::input(format!(
            "the function {name} was to return {rows} values of type {kind}, but returned {} of type {}",
            array.len(),
            array.data_type()
        )));
    }
    Ok(array)
}
