//! The names of operators in the text form: one table each, read in both directions. Functions have theirs in `builtin`.

use crate::{AggregateFunction, ArithmeticOperator, Comparison, DateField, JoinKind};

/// The fields of dates and times, and their names.
const FIELDS: &[(DateField, &str)] = &[
    (DateField::Year, "year"),
    (DateField::Quarter, "quarter"),
    (DateField::Month, "month"),
    (DateField::Week, "week"),
    (DateField::Day, "day"),
    (DateField::DayOfWeek, "day_of_week"),
    (DateField::DayOfYear, "day_of_year"),
    (DateField::Hour, "hour"),
    (DateField::Minute, "minute"),
    (DateField::Second, "second"),
];

/// The aggregate functions and their names.
const AGGREGATES: &[(AggregateFunction, &str)] = &[
    (AggregateFunction::CountRows, "count_rows"),
    (AggregateFunction::Count, "count"),
    (AggregateFunction::Sum, "sum"),
    (AggregateFunction::Average, "average"),
    (AggregateFunction::Min, "min"),
    (AggregateFunction::Max, "max"),
    (AggregateFunction::VarianceSample, "variance_sample"),
    (AggregateFunction::VariancePopulation, "variance_population"),
    (AggregateFunction::DeviationSample, "deviation_sample"),
    (AggregateFunction::DeviationPopulation, "deviation_population"),
    (AggregateFunction::BoolAnd, "bool_and"),
    (AggregateFunction::BoolOr, "bool_or"),
    (AggregateFunction::First, "first"),
    (AggregateFunction::CovarianceSample, "covariance_sample"),
    (AggregateFunction::CovariancePopulation, "covariance_population"),
    (AggregateFunction::Correlation, "correlation"),
    (AggregateFunction::RegressionSlope, "regression_slope"),
    (AggregateFunction::RegressionIntercept, "regression_intercept"),
    (AggregateFunction::RegressionR2, "regression_r2"),
    (AggregateFunction::RegressionAverageX, "regression_average_x"),
    (AggregateFunction::RegressionAverageY, "regression_average_y"),
    (AggregateFunction::RegressionSquaresX, "regression_squares_x"),
    (AggregateFunction::RegressionSquaresY, "regression_squares_y"),
    (AggregateFunction::RegressionProducts, "regression_products"),
    (AggregateFunction::BitAnd, "bit_and"),
    (AggregateFunction::BitOr, "bit_or"),
    (AggregateFunction::BitXor, "bit_xor"),
    (AggregateFunction::Median, "median"),
    (AggregateFunction::Quantile, "quantile"),
    (AggregateFunction::QuantileDiscrete, "quantile_discrete"),
    (AggregateFunction::Nth, "nth"),
    (AggregateFunction::JoinText, "join_text"),
    (AggregateFunction::CountApproximate, "count_approximate"),
];

/// The kinds of joins and their names.
const JOINS: &[(JoinKind, &str)] = &[
    (JoinKind::Inner, "inner"),
    (JoinKind::Left, "left"),
    (JoinKind::Right, "right"),
    (JoinKind::Full, "full"),
    (JoinKind::Semi, "semi"),
    (JoinKind::Anti, "anti"),
    (JoinKind::Mark, "mark"),
    (JoinKind::RightSemi, "right_semi"),
    (JoinKind::RightAnti, "right_anti"),
];

/// Finds the name of an entry.
fn name_of<T: PartialEq>(table: &[(T, &'static str)], wanted: T) -> &'static str {
    table.iter().find(|(entry, _)| *entry == wanted).map_or("?", |(_, name)| name)
}

/// Finds the entry of a name.
fn entry_of<T: Copy>(table: &[(T, &'static str)], wanted: &str) -> Option<T> {
    table.iter().find(|(_, name)| *name == wanted).map(|(entry, _)| *entry)
}

impl DateField {
    /// Returns the name.
    pub fn name(self) -> &'static str {
        name_of(FIELDS, self)
    }

    /// Finds the field of a name.
    pub fn from_name(name: &str) -> Option<DateField> {
        entry_of(FIELDS, name)
    }

    /// Returns every field.
    pub fn all() -> impl Iterator<Item = DateField> {
        FIELDS.iter().map(|(field, _)| *field)
    }
}

impl AggregateFunction {
    /// Returns the name.
    pub fn name(self) -> &'static str {
        name_of(AGGREGATES, self)
    }

    /// Finds the aggregate function of a name.
    pub fn from_name(name: &str) -> Option<AggregateFunction> {
        entry_of(AGGREGATES, name)
    }

    /// Returns every aggregate function.
    pub fn all() -> impl Iterator<Item = AggregateFunction> {
        AGGREGATES.iter().map(|(function, _)| *function)
    }
}

impl JoinKind {
    /// Returns the name.
    pub fn name(self) -> &'static str {
        name_of(JOINS, self)
    }

    /// Finds the kind of a name.
    pub fn from_name(name: &str) -> Option<JoinKind> {
        entry_of(JOINS, name)
    }

    /// Returns every kind.
    pub fn all() -> impl Iterator<Item = JoinKind> {
        JOINS.iter().map(|(kind, _)| *kind)
    }
}

impl ArithmeticOperator {
    /// Returns the sign.
    pub fn symbol(self) -> &'static str {
        match self {
            ArithmeticOperator::Add => "+",
            ArithmeticOperator::Subtract => "-",
            ArithmeticOperator::Multiply => "*",
            ArithmeticOperator::Divide => "/",
            ArithmeticOperator::Remainder => "%",
        }
    }
}

impl Comparison {
    /// Returns the sign.
    pub fn symbol(self) -> &'static str {
        match self {
            Comparison::Equal => "=",
            Comparison::NotEqual => "<>",
            Comparison::Less => "<",
            Comparison::LessOrEqual => "<=",
            Comparison::Greater => ">",
            Comparison::GreaterOrEqual => ">=",
        }
    }

    /// Returns the comparison that holds of swapped sides.
    pub fn swap(self) -> Comparison {
        match self {
            Comparison::Less => Comparison::Greater,
            Comparison::LessOrEqual => Comparison::GreaterOrEqual,
            Comparison::Greater => Comparison::Less,
            Comparison::GreaterOrEqual => Comparison::LessOrEqual,
            other => other,
        }
    }

    /// Returns the comparison that holds where this one does not (nulls aside).
    pub fn negate(self) -> Comparison {
        match self {
            Comparison::Equal => Comparison::NotEqual,
            Comparison::NotEqual => Comparison::Equal,
            Comparison::Less => Comparison::GreaterOrEqual,
            Comparison::LessOrEqual => Comparison::Greater,
            Comparison::Greater => Comparison::LessOrEqual,
            Comparison::GreaterOrEqual => Comparison::Less,
        }
    }
}
