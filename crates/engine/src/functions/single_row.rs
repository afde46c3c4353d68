//! The check that a subquery which stands for a value gives one row at most, for plans that stay with DataFusion.
//!
//! Planning puts it around the values of subqueries (`crate::planning::unnest`); statements cannot name it. Pipelines compute
//! the same from the same definition, [`tandem_pipeline::scalar`].

use std::sync::Arc;

use arrow::{array::BooleanArray, datatypes::DataType};
use datafusion::{
    common::{Result, cast::as_int64_array, exec_err},
    logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility},
};
use tandem_pipeline::scalar::SEVERAL_ROWS;

/// The function's name in plans.
pub(crate) const SINGLE_ROW: &str = "__single_row";

/// Makes the function: of a number of rows, true; more than one is an error.
pub(crate) fn single_row() -> ScalarUDF {
    ScalarUDF::from(SingleRow { signature: Signature::exact(vec![DataType::Int64], Volatility::Immutable) })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct SingleRow {
    signature: Signature,
}

impl ScalarUDFImpl for SingleRow {
    fn name(&self) -> &str {
        SINGLE_ROW
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Boolean)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let arrays = ColumnarValue::values_to_arrays(&args.args)?;
        let [rows] = &arrays[..] else { return exec_err!("{SINGLE_ROW} takes a number of rows") };
        let rows = as_int64_array(rows)?;
        if rows.iter().flatten().any(|rows| rows > 1) {
            return exec_err!("{SEVERAL_ROWS}");
        }
        let checked: BooleanArray = rows.iter().map(|rows| rows.map(|_| true)).collect();
        Ok(ColumnarValue::Array(Arc::new(checked)))
    }
}
