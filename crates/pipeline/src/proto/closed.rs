//! The closed sets of the language and their numbers in the protobuf form, read in both directions.

use tandem_column::{Error, Result, TimeUnit};

use super::generated as wire;
use crate::{
    AggregateFunction, ArithmeticOperator, Comparison, DateField, Failure, FrameExclusion, FrameUnit, Function,
    JoinKind, Overflow, Phase, builtin::Entry,
};

/// A value of a closed set that has a number on the wire.
pub(super) trait Closed: Sized {
    /// Returns the number.
    fn write(self) -> i32;

    /// Finds the value of a number.
    fn read(number: i32) -> Result<Self>;
}

/// Says that a number stands for nothing.
pub(super) fn unknown(what: &str, number: i32) -> Error {
    Error::input(match number {
        0 => format!("{what} is not set: the sender must choose one"),
        number => format!("{what} is not known here: use a client and a daemon of one release (number {number})"),
    })
}

macro_rules! closed {
    ($own:ident, $what:literal, $($name:ident)+) => {
        impl Closed for $own {
            fn write(self) -> i32 {
                match self {
                    $($own::$name => wire::$own::$name as i32,)+
                }
            }

            fn read(number: i32) -> Result<Self> {
                match wire::$own::try_from(number) {
                    $(Ok(wire::$own::$name) => Ok($own::$name),)+
                    _ => Err(unknown($what, number)),
                }
            }
        }
    };
}

closed!(JoinKind, "the kind of a join", Inner Left Right Full Semi Anti Mark RightSemi RightAnti);
closed!(Phase, "the phase of an aggregation", Single Partial Final);
closed!(AggregateFunction, "an aggregate function", CountRows Count Sum Average Min Max VarianceSample VariancePopulation
    DeviationSample DeviationPopulation BoolAnd BoolOr First CovarianceSample CovariancePopulation Correlation RegressionSlope
    RegressionIntercept RegressionR2 RegressionAverageX RegressionAverageY RegressionSquaresX RegressionSquaresY
    RegressionProducts BitAnd BitOr BitXor Median Quantile QuantileDiscrete Nth JoinText CountApproximate);
closed!(FrameUnit, "the unit of a frame", Rows Range Groups);
closed!(FrameExclusion, "what a frame leaves out", NoOthers CurrentRow Group Ties);
closed!(Overflow, "what overflow does", Wrap Error Null);
closed!(Failure, "what a failed operation does", Error Null);
closed!(ArithmeticOperator, "an arithmetic operator", Add Subtract Multiply Divide Remainder);
closed!(Comparison, "a comparison", Equal NotEqual Less LessOrEqual Greater GreaterOrEqual);
closed!(DateField, "a field of dates", Year Quarter Month Week Day DayOfWeek DayOfYear Hour Minute Second);
closed!(TimeUnit, "a unit of time", Second Millisecond Microsecond Nanosecond);

/// Returns the numbers of a function and of its field, if it has one.
pub(super) fn write_function(function: Function) -> (i32, i32) {
    (function.entry().number, function.field().map_or(0, DateField::write))
}

/// Finds the function of its number and its field's.
pub(super) fn read_function(number: i32, field: i32) -> Result<Function> {
    let entry = Entry::of_number(number).ok_or_else(|| unknown("a function", number))?;
    let field = if field == 0 && !entry.takes_field() { None } else { Some(DateField::read(field)?) };
    entry
        .function(field)
        .ok_or_else(|| Error::input(format!("the function {} takes no field of dates: leave it out", entry.name)))
}
