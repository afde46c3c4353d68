//! Rust closures as SQL functions: which types they take and return, and how a column of rows is passed through one.

use std::fmt::Display;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Float64Array, Int64Array, StringArray};
use arrow::datatypes::{DataType, Float64Type, Int64Type};

use crate::{Error, Result};

/// A Rust closure that statements can call: of one to three arguments, each `i64`, `f64`, `bool` or `&str`.
///
/// The closure is not called where an argument is null: the result is null there. It returns `i64`, `f64`, `bool` or
/// `String`, an `Option` of these for null, or a `Result` whose error fails the statement. `Signature` is the closure's type as
/// a function pointer, which the compiler infers.
pub trait ScalarFunction<Signature>: Send + Sync + 'static {
    /// Returns the types of the arguments.
    #[doc(hidden)]
    fn arguments() -> Vec<DataType>;
    /// Returns the type of the result.
    #[doc(hidden)]
    fn returns() -> DataType;
    /// Calls the function for each row.
    #[doc(hidden)]
    fn call(&self, arrays: &[ArrayRef]) -> Result<ArrayRef>;
}

/// A value that a closure takes or returns.
pub trait Native: Sized {
    /// Returns its type in SQL.
    #[doc(hidden)]
    fn kind() -> DataType;
    /// Makes an array of values.
    #[doc(hidden)]
    fn array(values: Vec<Option<Self>>) -> ArrayRef;
}

/// A value that a closure takes as it is.
pub trait FunctionArgument: Native + Copy {
    /// Returns the value of a row.
    #[doc(hidden)]
    fn at(array: &ArrayRef, row: usize) -> Self;
}

/// Text that a closure takes as `&str`; stands for it in a signature.
#[derive(Clone, Copy, Debug)]
pub struct Text;

impl Text {
    fn kind() -> DataType {
        DataType::Utf8
    }

    fn at(array: &ArrayRef, row: usize) -> &str {
        array.as_string::<i32>().value(row)
    }
}

macro_rules! native {
    ($($native:ty, $kind:ident, $array:ident;)*) => {$(
        impl Native for $native {
            fn kind() -> DataType {
                DataType::$kind
            }

            fn array(values: Vec<Option<Self>>) -> ArrayRef {
                Arc::new($array::from(values))
            }
        }

        impl Returned for $native {
            type Value = $native;

            fn returned(self) -> Result<Option<$native>> {
                Ok(Some(self))
            }
        }
    )*};
}

native! {
    i64, Int64, Int64Array;
    f64, Float64, Float64Array;
    bool, Boolean, BooleanArray;
    String, Utf8, StringArray;
}

impl FunctionArgument for i64 {
    fn at(array: &ArrayRef, row: usize) -> i64 {
        array.as_primitive::<Int64Type>().value(row)
    }
}

impl FunctionArgument for f64 {
    fn at(array: &ArrayRef, row: usize) -> f64 {
        array.as_primitive::<Float64Type>().value(row)
    }
}

impl FunctionArgument for bool {
    fn at(array: &ArrayRef, row: usize) -> bool {
        array.as_boolean().value(row)
    }
}

/// What a closure may return.
pub trait Returned {
    /// The value, if there is one.
    #[doc(hidden)]
    type Value: Native;
    /// Returns the value, null, or why the statement fails.
    #[doc(hidden)]
    fn returned(self) -> Result<Option<Self::Value>>;
}

impl<T: Native> Returned for Option<T> {
    type Value = T;

    fn returned(self) -> Result<Option<T>> {
        Ok(self)
    }
}

impl<R: Returned, E: Display> Returned for Result<R, E> {
    type Value = R::Value;

    fn returned(self) -> Result<Option<R::Value>> {
        self.map_err(|error| Error::input(error.to_string()))?.returned()
    }
}

/// Makes an array of what a function returns for each row without nulls.
fn each<R: Returned>(arrays: &[ArrayRef], call: impl Fn(usize) -> R) -> Result<ArrayRef> {
    let rows = arrays.first().map_or(0, |array| array.len());
    let value = |row: usize| match arrays.iter().any(|array| array.is_null(row)) {
        true => Ok(None),
        false => call(row).returned(),
    };
    Ok(R::Value::array((0..rows).map(value).collect::<Result<_>>()?))
}

macro_rules! functions {
    ($([$($generic:ident),*] $($position:tt $stands:ident as $native:ty),*;)*) => {$(
        impl<Function, R, $($generic),*> ScalarFunction<fn($($stands),*) -> R> for Function
        where
            Function: Fn($($native),*) -> R + Send + Sync + 'static,
            R: Returned,
            $($generic: FunctionArgument,)*
        {
            fn arguments() -> Vec<DataType> {
                vec![$($stands::kind()),*]
            }

            fn returns() -> DataType {
                R::Value::kind()
            }

            fn call(&self, arrays: &[ArrayRef]) -> Result<ArrayRef> {
                each(arrays, |row| self($($stands::at(&arrays[$position], row)),*))
            }
        }
    )*};
}

functions! {
    [A] 0 A as A;
    [] 0 Text as &str;
    [A, B] 0 A as A, 1 B as B;
    [B] 0 Text as &str, 1 B as B;
    [A] 0 A as A, 1 Text as &str;
    [] 0 Text as &str, 1 Text as &str;
    [A, B, C] 0 A as A, 1 B as B, 2 C as C;
    [B, C] 0 Text as &str, 1 B as B, 2 C as C;
    [A, C] 0 A as A, 1 Text as &str, 2 C as C;
    [A, B] 0 A as A, 1 B as B, 2 Text as &str;
    [C] 0 Text as &str, 1 Text as &str, 2 C as C;
    [B] 0 Text as &str, 1 B as B, 2 Text as &str;
    [A] 0 A as A, 1 Text as &str, 2 Text as &str;
    [] 0 Text as &str, 1 Text as &str, 2 Text as &str;
}
