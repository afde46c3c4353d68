//! Sinks: their slots, and the types of aggregates.

use tandem_column::{Repr, Type};

use super::{Check, Checker, check_type, same};
use crate::{
    Aggregate, AggregateFunction, FrameBound, FrameUnit, Phase, Sink, SortKey, Value, Window, WindowFrame,
    WindowFunction,
};

/// The most parts that rows are divided into: part numbers fit 16 bits.
const PARTS_LIMIT: usize = 1 << 16;

/// Checks a sink.
pub(super) fn check(checker: &Checker<'_>, sink: &Sink) -> Check {
    // Slots first: of an aggregate in the final phase these are all of its states.
    let mut missing = None;
    if !matches!(sink, Sink::Build { .. } | Sink::Partition { .. }) {
        sink.visit_slots(&mut |slot| {
            if checker.slot(slot).is_err() {
                missing = Some(slot);
            }
        });
    }
    if let Some(slot) = missing {
        checker.slot(slot)?;
    }
    match sink {
        Sink::Build { keys, payload: slots } | Sink::Partition { keys, output: slots, .. } => {
            keys.iter().try_for_each(|key| checker.expr(key).map(|_| ()))?;
            slots.iter().try_for_each(|slot| checker.slot(*slot).map(|_| ()))?;
            match sink {
                Sink::Partition { parts, .. } if !(1..=PARTS_LIMIT).contains(parts) => {
                    Err(format!("rows are divided into 1 to {PARTS_LIMIT} parts, not {parts}"))
                }
                _ => Ok(()),
            }
        }
        Sink::Aggregate { aggregates, phase, .. } => {
            aggregates.iter().try_for_each(|aggregate| check_aggregate(checker, aggregate, *phase))
        }
        Sink::Window { functions, order, fetch, .. } => {
            let ranks = |window: &Window| matches!(window.function, WindowFunction::RowNumber | WindowFunction::Rank);
            if fetch.is_some() && !functions.first().is_some_and(ranks) {
                return Err("only the first rows by a row number or a rank are fetched".to_owned());
            }
            functions.iter().try_for_each(|window| check_window(checker, window, order))
        }
        Sink::Sort { .. } | Sink::Materialize { .. } => Ok(()),
    }
}

/// Checks a window function.
fn check_window(checker: &Checker<'_>, window: &Window, order: &[SortKey]) -> Check {
    check_type(&window.kind)?;
    match &window.function {
        WindowFunction::Ntile { buckets: 0 } => Err("ntile needs at least one bucket".to_owned()),
        WindowFunction::RowNumber | WindowFunction::Rank | WindowFunction::DenseRank | WindowFunction::Ntile { .. } => {
            if window.kind.is_integer() {
                Ok(())
            } else {
                Err(format!("a rank is an integer, not {}", window.kind))
            }
        }
        WindowFunction::PercentRank | WindowFunction::CumeDist => {
            same(&Type::Float64, &window.kind, "a share of a partition")
        }
        WindowFunction::Lag { slot, default, .. } => {
            if let Some(default) = default {
                same(checker.slot(*default)?, &window.kind, "a default")?;
            }
            same(checker.slot(*slot)?, &window.kind, "an earlier value")
        }
        WindowFunction::Nth { place: 0, .. } => Err("the rows of a frame are counted from 1".to_owned()),
        WindowFunction::Nth { slot, frame, .. } => {
            check_frame(checker, frame, order)?;
            same(checker.slot(*slot)?, &window.kind, "a value of the frame")
        }
        WindowFunction::Aggregate { aggregate, frame } => {
            check_frame(checker, frame, order)?;
            check_aggregate(checker, aggregate, Phase::Single)?;
            same(&aggregate.kind, &window.kind, "an aggregate")
        }
    }
}

/// Checks that a frame's distances can be measured.
fn check_frame(checker: &Checker<'_>, frame: &WindowFrame, order: &[SortKey]) -> Check {
    let bounds = [frame.start, frame.end];
    let measured = bounds.iter().any(|bound| !matches!(bound, FrameBound::Unbounded | FrameBound::At(0)));
    let by_value = frame.slots().next().is_some();
    match order {
        _ if by_value && frame.unit != FrameUnit::Range => Err("only a range reaches to a value".to_owned()),
        _ if frame.unit != FrameUnit::Range || !measured => Ok(()),
        [key] => {
            let kind = checker.slot(key.slot)?;
            frame.slots().try_for_each(|slot| same(checker.slot(slot)?, kind, "the end of a range"))?;
            let by_distance = bounds.iter().any(|bound| matches!(bound, FrameBound::At(distance) if *distance != 0));
            match by_distance && kind.repr() != Repr::Int {
                true => Err("a range is measured by integers and dates".to_owned()),
                false => Ok(()),
            }
        }
        _ => Err("a range is measured by one key".to_owned()),
    }
}

/// Checks an aggregate.
fn check_aggregate(checker: &Checker<'_>, aggregate: &Aggregate, phase: Phase) -> Check {
    let name = aggregate.function.name();
    check_type(&aggregate.kind)?;
    if let Some(filter) = aggregate.filter {
        same(checker.slot(filter)?, &Type::Boolean, "a filter")?;
    }
    let argument = match aggregate.argument {
        Some(slot) => Some(checker.slot(slot)?),
        None => None,
    };
    check_shape(checker, aggregate, phase).map_err(|reason| format!("{name}: {reason}"))?;
    let found = match (phase, argument) {
        (Phase::Final, None) => return Err(format!("{name} needs its states as argument")),
        (Phase::Final, Some(_)) => {
            if aggregate.filter.is_some() {
                return Err(format!("{name} filters rows, not states"));
            }
            check_states(checker, aggregate)
        }
        (_, None) if aggregate.function == AggregateFunction::CountRows => result(aggregate, &Type::Int64),
        (_, None) => return Err(format!("{name} needs an argument")),
        (_, Some(argument)) => check_argument(aggregate, argument),
    };
    found.map_err(|reason| format!("{name}: {reason}"))?;
    if aggregate.distinct && phase != Phase::Single && !aggregate.function.ignores_repetition() {
        return Err(format!("{name} of distinct values cannot be computed in parts"));
    }
    Ok(())
}

/// Checks what an aggregate has besides its argument.
fn check_shape(checker: &Checker<'_>, aggregate: &Aggregate, phase: Phase) -> Check {
    use AggregateFunction::*;
    let function = aggregate.function;
    if phase != Phase::Single && (function.is_holistic() || function == CountApproximate) {
        return Err("it cannot be computed in parts".to_owned());
    }
    match aggregate.second {
        Some(_) if !function.is_of_pairs() || phase == Phase::Final => return Err("it has one argument".to_owned()),
        Some(_) if aggregate.distinct => return Err("pairs are not told apart".to_owned()),
        Some(second) if !checker.slot(second)?.is_numeric() => return Err("pairs are of numbers".to_owned()),
        None if function.is_of_pairs() && phase != Phase::Final => return Err("it needs a second argument".to_owned()),
        _ => {}
    }
    match (function, &aggregate.parameter) {
        (Quantile | QuantileDiscrete, Value::Float(fraction)) if (0.0..=1.0).contains(fraction) => {}
        (Quantile | QuantileDiscrete, _) => return Err("its fraction is a float from 0 to 1".to_owned()),
        (Nth, Value::Integer(place)) if *place != 0 && i64::try_from(*place).is_ok() => {}
        (Nth, _) => return Err("places are counted from 1, or from the end from −1".to_owned()),
        (JoinText, Value::String(_)) | (_, Value::Null) => {}
        (JoinText, _) => return Err("what stands between texts is a text".to_owned()),
        _ => return Err("it takes no constant".to_owned()),
    }
    match &aggregate.order[..] {
        [] => Ok(()),
        _ if !function.is_ordered() => Err("it has no order".to_owned()),
        keys if aggregate.distinct && keys.iter().any(|key| Some(key.slot) != aggregate.argument) => {
            Err("distinct values have no order but their own".to_owned())
        }
        _ => Ok(()),
    }
}

/// Requires the result's type.
fn result(aggregate: &Aggregate, wanted: &Type) -> Check {
    same(&aggregate.kind, wanted, "its result")
}

/// Checks the type of an argument.
fn check_argument(aggregate: &Aggregate, argument: &Type) -> Check {
    use AggregateFunction::*;
    let kind = &aggregate.kind;
    let valid = match aggregate.function {
        CountRows | Count | CountApproximate => return result(aggregate, &Type::Int64),
        Min | Max | First | Nth | QuantileDiscrete => return result(aggregate, argument),
        BitAnd | BitOr | BitXor => argument.is_integer() && kind == argument,
        Median => (argument.is_float() || matches!(argument, Type::Decimal { .. })) && kind == argument,
        Quantile => argument.is_float() && kind == argument,
        JoinText => *argument == Type::String && *kind == Type::String,
        BoolAnd | BoolOr => *argument == Type::Boolean && *kind == Type::Boolean,
        Sum => match argument {
            argument if argument.is_float() => kind.is_float(),
            Type::Decimal { .. } => matches!(kind, Type::Decimal { .. }),
            argument => argument.is_integer() && kind.is_numeric(),
        },
        Average => match kind {
            Type::Decimal { .. } => matches!(argument, Type::Decimal { .. }),
            kind => argument.is_numeric() && kind.is_float(),
        },
        VarianceSample | VariancePopulation | DeviationSample | DeviationPopulation => {
            argument.is_numeric() && kind.is_float()
        }
        _ => argument.is_numeric() && *kind == Type::Float64,
    };
    let valid = valid || *argument == Type::Null;
    valid.then_some(()).ok_or_else(|| format!("{argument} does not give {kind}"))
}

/// Checks the types of a final aggregate's states.
fn check_states(checker: &Checker<'_>, aggregate: &Aggregate) -> Check {
    let first = aggregate.argument.unwrap_or(0);
    let given = checker.slot(first)?;
    let argument = match (aggregate.function, given) {
        // An average's first state has the argument's scale; all others do not depend on the argument.
        (AggregateFunction::Average, Type::Decimal { .. }) => given,
        _ => &aggregate.kind,
    };
    for (number, wanted) in aggregate.function.state(argument, &aggregate.kind).iter().enumerate() {
        same(checker.slot(first + number)?, wanted, &format!("state {number}"))?;
    }
    Ok(())
}
