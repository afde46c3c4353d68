//! Lowers the frames of windows. Ends of ranges that are no whole numbers of the key's units are computed before the window, as values
//! of the key.

use std::cmp::Ordering;

use datafusion::{
    common::ScalarValue,
    logical_expr::{
        BinaryExpr, Expr, Operator, SortExpr, WindowFrame as PlanFrame, WindowFrameBound, WindowFrameUnits,
        expr::WindowFunctionParams,
    },
};
use tandem_column::Type;
use tandem_pipeline::{FrameBound, FrameExclusion, FrameUnit, WindowFrame};

use super::{context::LoweringContext, expression::Scope, plan::unalias, window::Before};
use crate::functions::EXCLUDE;

const NANOSECONDS_OF_SECOND: i64 = 1_000_000_000;
const NANOSECONDS_OF_DAY: i128 = 86_400 * NANOSECONDS_OF_SECOND as i128;

impl LoweringContext<'_> {
    /// Lowers the frame of a window, without what it excludes.
    pub(super) fn frame(
        &mut self,
        scope: &mut Scope<'_>,
        params: &WindowFunctionParams,
        before: &mut Before,
    ) -> Result<WindowFrame, String> {
        let frame = &params.window_frame;
        let unit = match frame.units {
            WindowFrameUnits::Rows => FrameUnit::Rows,
            WindowFrameUnits::Range => FrameUnit::Range,
            WindowFrameUnits::Groups => FrameUnit::Groups,
        };
        if unit == FrameUnit::Range && is_reversed(frame) {
            return Err("a range that ends before it begins runs on the host, which refuses it".to_string());
        }
        let start = self.frame_bound(scope, &frame.start_bound, unit, &params.order_by, before)?;
        let end = self.frame_bound(scope, &frame.end_bound, unit, &params.order_by, before)?;
        Ok(WindowFrame { unit, start, end, exclusion: FrameExclusion::NoOthers })
    }

    fn frame_bound(
        &mut self,
        scope: &mut Scope<'_>,
        bound: &WindowFrameBound,
        unit: FrameUnit,
        order: &[SortExpr],
        before: &mut Before,
    ) -> Result<FrameBound, String> {
        let (value, behind) = match bound {
            WindowFrameBound::CurrentRow => return Ok(FrameBound::At(0)),
            WindowFrameBound::Preceding(value) | WindowFrameBound::Following(value) if value.is_null() => {
                return Ok(FrameBound::Unbounded);
            }
            WindowFrameBound::Preceding(value) => (value, false),
            WindowFrameBound::Following(value) => (value, true),
        };
        let key = match order {
            [key] if unit == FrameUnit::Range => Some((key, self.window_key(scope, &key.expr, before)?)),
            _ => None,
        };
        let kind = key.map(|(_, column)| self.kind(column)).transpose()?;
        if let Some(distance) = distance(value, unit, kind.as_ref()) {
            return Ok(FrameBound::At(if behind { distance } else { -distance }));
        }
        let other = || "a frame of such a distance runs on the host".to_string();
        let Some((key, _)) = key.filter(|_| is_forward(value)) else { return Err(other()) };
        let operator = if behind == key.asc { Operator::Plus } else { Operator::Minus };
        let (left, right) = (Box::new(key.expr.clone()), Box::new(Expr::Literal(value.clone(), None)));
        let reached = Expr::BinaryExpr(BinaryExpr { left, op: operator, right });
        let column = self.place(scope, &reached, before)?;
        if Some(self.kind(column)?) == kind { Ok(FrameBound::Value(column)) } else { Err(other()) }
    }
}

/// Tells what a frame excludes, and which keys divide rows into partitions: see `sql::exclusion`.
pub(super) fn exclusion(partition_by: &[Expr]) -> (FrameExclusion, Vec<&Expr>) {
    let mut found = FrameExclusion::NoOthers;
    let mut keys: Vec<&Expr> = partition_by.iter().collect();
    keys.retain(|key| match unalias(key) {
        Expr::ScalarFunction(call) if call.func.name() == EXCLUDE => {
            found = match call.args.first() {
                Some(Expr::Literal(ScalarValue::Utf8(Some(what)), _)) if what == "current row" => {
                    FrameExclusion::CurrentRow
                }
                Some(Expr::Literal(ScalarValue::Utf8(Some(what)), _)) if what == "group" => FrameExclusion::Group,
                Some(Expr::Literal(ScalarValue::Utf8(Some(what)), _)) if what == "ties" => FrameExclusion::Ties,
                // Someone else's: as a key, it is not lowered.
                _ => return true,
            };
            false
        }
        _ => true,
    });
    (found, keys)
}

/// Tells whether a frame ends before it begins.
fn is_reversed(frame: &PlanFrame) -> bool {
    use WindowFrameBound::{CurrentRow, Following, Preceding};
    match (&frame.start_bound, &frame.end_bound) {
        (Following(start), CurrentRow) => !is_zero(start),
        (CurrentRow, Preceding(end)) => !end.is_null() && !is_zero(end),
        (Following(start), Preceding(end)) => !is_zero(start) || !is_zero(end),
        (Following(start), Following(end)) => !end.is_null() && start.partial_cmp(end).is_none_or(Ordering::is_gt),
        (Preceding(start), Preceding(end)) => !start.is_null() && start.partial_cmp(end).is_none_or(Ordering::is_lt),
        _ => false,
    }
}

/// Tells whether a distance is none.
fn is_zero(value: &ScalarValue) -> bool {
    ScalarValue::new_zero(&value.data_type()).is_ok_and(|zero| zero == *value)
}

/// Tells whether a distance leads away from the current row.
fn is_forward(value: &ScalarValue) -> bool {
    match value {
        ScalarValue::Float64(Some(value)) => *value >= 0.0,
        ScalarValue::Float32(Some(value)) => *value >= 0.0,
        ScalarValue::Decimal128(Some(value), ..) => *value >= 0,
        ScalarValue::IntervalMonthDayNano(Some(value)) => {
            value.months >= 0 && value.days >= 0 && value.nanoseconds >= 0
        }
        _ => false,
    }
}

/// Returns how far the end of a frame is, in what its unit counts, if that is a whole number.
fn distance(value: &ScalarValue, unit: FrameUnit, key: Option<&Type>) -> Option<i64> {
    let found = match (value, unit, key) {
        (
            ScalarValue::Decimal128(Some(value), _, scale),
            FrameUnit::Range,
            Some(Type::Decimal { scale: of, precision }),
        ) if i32::from(*scale) == i32::from(*of) && *precision <= 18 => i64::try_from(*value).ok(),
        (ScalarValue::IntervalMonthDayNano(Some(value)), FrameUnit::Range, Some(Type::Date)) => {
            (value.months == 0 && value.nanoseconds == 0).then(|| value.days.into())
        }
        (ScalarValue::IntervalMonthDayNano(Some(value)), FrameUnit::Range, Some(Type::Timestamp(unit, zone))) => {
            let nanoseconds = i128::from(value.days) * NANOSECONDS_OF_DAY + i128::from(value.nanoseconds);
            let of_unit = i128::from(NANOSECONDS_OF_SECOND / unit.per_second());
            let equal_days = value.days == 0 || zone.as_ref().is_none_or(|zone| has_equal_days(zone));
            let whole = value.months == 0 && equal_days && nanoseconds % of_unit == 0;
            whole.then(|| i64::try_from(nanoseconds / of_unit).ok()).flatten()
        }
        (value, FrameUnit::Range, Some(key)) if !key.is_integer() && value.data_type().is_integer() => None,
        (value, ..) if value.data_type().is_integer() => match value.cast_to(&arrow::datatypes::DataType::Int64) {
            Ok(ScalarValue::Int64(found)) => found,
            _ => None,
        },
        _ => None,
    };
    found.filter(|distance| *distance >= 0)
}

/// Tells whether every day of a zone has as many hours: of one that is an offset.
fn has_equal_days(zone: &str) -> bool {
    zone.starts_with(['+', '-']) || matches!(zone, "UTC" | "Z")
}
