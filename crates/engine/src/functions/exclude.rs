//! The function that stands for `EXCLUDE` of a window's frame in DataFusion's plans: see `sql::exclusion`. It has no value: a window
//! that DataFusion runs fails at it.

use arrow::datatypes::DataType;
use datafusion::{
    common::{Result, exec_err},
    logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility},
};

/// The function's name.
pub(crate) const EXCLUDE: &str = "tandem_exclude";

/// Makes the function.
pub(crate) fn exclude() -> ScalarUDF {
    // Volatile, so that no plan computes it beforehand.
    ScalarUDF::from(Exclude { signature: Signature::exact(vec![DataType::Utf8], Volatility::Volatile) })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Exclude {
    signature: Signature,
}

impl ScalarUDFImpl for Exclude {
    fn name(&self) -> &str {
        EXCLUDE
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Boolean)
    }

    fn invoke_with_args(&self, _: ScalarFunctionArgs) -> Result<ColumnarValue> {
        exec_err!(
            "EXCLUDE in a window's frame runs on pipelines only: leave it out, or write the window so that EXPLAIN shows no \
             reason for it to run on the host"
        )
    }
}
