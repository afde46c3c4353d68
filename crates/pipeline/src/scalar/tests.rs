//! Scalar semantics against Arrow's own kernels, and by example.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, Datum, Scalar, StringArray};
use arrow_cast::{CastOptions, cast_with_options};
use tandem_column::{Class, TimeUnit, Type};

use super::{bits, date, decimal, digest, pattern, text};
use crate::{
    ArithmeticOperator::{self, *},
    DateField, Failure, Function, Overflow, Value,
    random::{generator, literal, seed},
    scalar,
};

const OPERATORS: [ArithmeticOperator; 5] = [Add, Subtract, Multiply, Divide, Remainder];

fn int(value: i128) -> Value {
    Value::Integer(value)
}

fn text(value: &str) -> Value {
    Value::string(value)
}

fn decimal(precision: u8, scale: i8) -> Type {
    Type::Decimal { precision, scale }
}

fn kinds() -> Vec<Type> {
    let mut kinds = vec![
        Type::Boolean,
        Type::Int8,
        Type::Int16,
        Type::Int32,
        Type::Int64,
        Type::UInt8,
        Type::UInt16,
        Type::UInt32,
        Type::UInt64,
        Type::Float32,
        Type::Float64,
        Type::Date,
        Type::String,
        Type::Binary,
        Type::Interval,
        Type::Time(TimeUnit::Microsecond),
    ];
    kinds.extend([decimal(9, 2), decimal(18, 4), decimal(38, 10), decimal(5, 0), decimal(7, -2)]);
    for unit in [TimeUnit::Second, TimeUnit::Millisecond, TimeUnit::Microsecond, TimeUnit::Nanosecond] {
        kinds.extend([Type::Timestamp(unit, None), Type::Timestamp(unit, Some("America/New_York".into()))]);
    }
    kinds
}

#[test]
fn decimals_are_rounded_at_any_digit() {
    assert_eq!(decimal::round(12_345, 2, 1), Some(12_350));
    assert_eq!(decimal::round(12_345, 2, i64::MAX), Some(12_345));
    assert_eq!(decimal::round(12_345, 2, i64::MIN), Some(0));
}

#[test]
fn casts_are_those_of_arrow() {
    let seed = seed();
    println!("seed {seed}");
    let mut rng = generator(seed);
    for from in kinds() {
        for to in kinds() {
            if from == to || !scalar::cast::castable(&from, &to) {
                continue;
            }
            for _ in 0..40 {
                let value = literal(&mut rng, &from);
                let array = scalar::arrow::array(std::slice::from_ref(&value), &from).unwrap();
                for failure in [Failure::Null, Failure::Error] {
                    let options = CastOptions { safe: failure == Failure::Null, ..CastOptions::default() };
                    let expected = cast_with_options(&array, &to.to_arrow(), &options);
                    let found = scalar::cast(&value, &from, &to, failure);
                    match (expected, found) {
                        (Ok(expected), Ok(found)) => {
                            let expected = scalar::arrow::value(&expected, 0, &to).unwrap();
                            assert_eq!(expected, found, "{value} from {from} to {to}");
                        }
                        // Arrow fails on a few values even when asked for null.
                        (Err(_), Ok(Value::Null)) if failure == Failure::Null => {}
                        (Err(_), Err(error)) => assert_eq!(error.class, Class::Input, "{error}"),
                        (expected, found) => panic!("{value} from {from} to {to}: {expected:?} {found:?}"),
                    }
                }
            }
        }
    }
}

#[test]
fn casts_of_text_are_those_of_arrow() {
    let texts = [
        "1",
        " 1",
        "1 ",
        "-1",
        "+1",
        "1.5",
        "",
        " ",
        "abc",
        "1e3",
        "inf",
        "NaN",
        "true",
        "T",
        "yes",
        "no",
        "1994-01-01",
        "1994-1-1",
        "19940101",
        "1994-01-01T12:34:56.789Z",
        "1994-01-01 12:34:56+02:00",
        "12:34:56",
        "9999999999999999999",
        "0.005",
        "-0.005",
        "12.345",
        "1 month 2 days",
        "2024-02-30",
        "256",
        "-129",
        "١",
    ];
    for to in kinds() {
        if !scalar::cast::castable(&Type::String, &to) || to == Type::String {
            continue;
        }
        for value in texts {
            let array: ArrayRef = Arc::new(StringArray::from(vec![value]));
            let expected = cast_with_options(&array, &to.to_arrow(), &CastOptions::default());
            let found = scalar::cast(&text(value), &Type::String, &to, Failure::Null).unwrap();
            match expected {
                Ok(expected) => assert_eq!(scalar::arrow::value(&expected, 0, &to).unwrap(), found, "{value} to {to}"),
                Err(_) => assert_eq!(found, Value::Null, "{value} to {to}"),
            }
        }
    }
    let error = scalar::cast(&text("abc"), &Type::String, &Type::Int32, Failure::Error).unwrap_err();
    assert_eq!(error.message, "cannot cast 'abc' to int32: use TRY_CAST to get NULL instead");
}

/// Computes with Arrow, one row.
fn with_arrow(
    operator: ArithmeticOperator,
    left: (&Value, &Type),
    right: (&Value, &Type),
) -> Result<ArrayRef, arrow_schema::ArrowError> {
    let array = |(value, kind): (&Value, &Type)| scalar::arrow::array(std::slice::from_ref(value), kind).unwrap();
    let (left, right) = (array(left), array(right));
    let (left, right): (&dyn Datum, &dyn Datum) = (&left, &right);
    use arrow_arith::numeric::{add, div, mul, rem, sub};
    match operator {
        Add => add(left, right),
        Subtract => sub(left, right),
        Multiply => mul(left, right),
        Divide => div(left, right),
        Remainder => rem(left, right),
    }
}

#[test]
fn arithmetic_is_that_of_arrow() {
    let seed = seed();
    println!("seed {seed}");
    let mut rng = generator(seed);
    let mut pairs: Vec<(Type, Type)> = kinds()
        .into_iter()
        .filter(|kind| kind.is_integer() || kind.is_float() || matches!(kind, Type::Decimal { .. }))
        .map(|kind| (kind.clone(), kind))
        .collect();
    pairs.extend([(decimal(9, 2), decimal(18, 4)), (decimal(18, 4), decimal(9, 2)), (decimal(5, 0), decimal(38, 10))]);
    for kind in kinds().into_iter().filter(|kind| matches!(kind, Type::Date | Type::Timestamp(..))) {
        pairs.push((kind, Type::Interval));
    }
    for (left_type, right_type) in pairs {
        for operator in OPERATORS {
            for _ in 0..60 {
                let (left, right) = (literal(&mut rng, &left_type), literal(&mut rng, &right_type));
                let expected = with_arrow(operator, (&left, &left_type), (&right, &right_type));
                if left_type != right_type && right_type == Type::Interval && !matches!(operator, Add | Subtract) {
                    continue;
                }
                let kind = match &expected {
                    Ok(array) => Type::from_arrow(array.data_type()).unwrap(),
                    Err(_) => left_type.clone(),
                };
                let found = scalar::arithmetic(
                    operator,
                    &left,
                    &left_type,
                    &right,
                    &right_type,
                    &kind,
                    Overflow::Error,
                    Failure::Error,
                );
                let what = format!("{left} {} {right} of {left_type} and {right_type}", operator.symbol());
                match (expected, found) {
                    (Ok(expected), Ok(found)) => {
                        let expected = scalar::arrow::value(&expected, 0, &kind).unwrap();
                        let nan = |value: &Value| value.as_float().is_some_and(f64::is_nan);
                        assert!(expected == found || nan(&expected) && nan(&found), "{what}: {expected} {found}");
                    }
                    (Err(_), Err(error)) => assert_eq!(error.class, Class::Input),
                    // Arrow lets decimals exceed their precision, and gives up where only an intermediate overflows.
                    (Ok(_), Err(_)) | (Err(_), Ok(_)) if matches!(kind, Type::Decimal { .. }) => {}
                    (expected, found) => panic!("{what}: {expected:?} {found:?}"),
                }
            }
        }
    }
}

#[test]
fn failures_say_what_to_do() {
    let compute = |operator, left, right, kind: &Type, overflow, zero| {
        scalar::arithmetic(operator, &int(left), kind, &int(right), kind, kind, overflow, zero)
    };
    let error = compute(Add, i64::MAX.into(), 1, &Type::Int64, Overflow::Error, Failure::Error).unwrap_err();
    assert_eq!(
        error.message,
        "integer overflow in int64 addition 9223372036854775807 + 1: \
         cast an operand to a wider type such as DECIMAL(38, 0)"
    );
    assert_eq!(error.class, Class::Input);
    let error = compute(Divide, 5, 0, &Type::Int32, Overflow::Error, Failure::Error).unwrap_err();
    assert_eq!(error.message, "division by zero in 5 / 0: guard it with NULLIF(0, 0)");
    let wrap = |operator, left, right, kind: &Type| {
        compute(operator, left, right, kind, Overflow::Wrap, Failure::Null).unwrap()
    };
    assert_eq!(wrap(Add, 127, 1, &Type::Int8), int(-128));
    assert_eq!(wrap(Subtract, 0, 1, &Type::UInt16), int(65535));
    assert_eq!(wrap(Divide, -128, -1, &Type::Int8), int(-128));
    assert_eq!(wrap(Remainder, -128, -1, &Type::Int8), int(0));
    let high = i128::from(u64::MAX);
    assert_eq!(wrap(Multiply, high, high, &Type::UInt64), int(1));
    assert_eq!(compute(Multiply, high, high, &Type::UInt64, Overflow::Null, Failure::Null).unwrap(), Value::Null);
    assert_eq!(compute(Divide, 1, 0, &Type::Int64, Overflow::Error, Failure::Null).unwrap(), Value::Null);
}

#[test]
fn patterns_match_as_in_arrow() {
    let texts = ["", "a", "ab", "abc", "a%c", "a_c", "a\\c", "ABC", "xaxbxc", "日本語", "aéc", "\n", "a\nc", "K", "ſ"];
    let patterns = [
        "", "%", "_", "a%", "%c", "%b%", "a_c", "a\\%c", "a\\_c", "a\\\\c", "abc\\", "\\a%", "%a%b%c%", "__", "日%",
        "_本_", "a%c", "k", "s", "%\\", "%\\%", "a%%c", "_%_",
    ];
    for pattern in patterns {
        for ignore_case in [false, true] {
            let matcher = scalar::like::Matcher::new(pattern, None, ignore_case);
            for value in texts {
                let (left, right) = (StringArray::from(vec![value]), Scalar::new(StringArray::from(vec![pattern])));
                let expected = match ignore_case {
                    false => arrow_string::like::like(&left, &right),
                    true => arrow_string::like::ilike(&left, &right),
                };
                let expected = expected.unwrap().value(0);
                assert_eq!(expected, matcher.matches(value), "{value:?} like {pattern:?}, ignore case: {ignore_case}");
            }
        }
    }
    assert!(scalar::like::Matcher::new("100!%", Some('!'), false).matches("100%"));
    assert!(!scalar::like::Matcher::new("100!%", Some('!'), false).matches("100x"));
    use scalar::like::PatternShape;
    assert_eq!(*scalar::like::Matcher::new("ab\\%%", None, false).shape(), PatternShape::StartsWith("ab%".to_owned()));
}

fn call(function: Function, kind: Type, arguments: &[(Value, Type)]) -> Value {
    let (values, types): (Vec<Value>, Vec<Type>) = arguments.iter().cloned().unzip();
    scalar::function(function, &kind, &types, &values).unwrap()
}

#[test]
fn text_functions() {
    let string = |value: &str| (text(value), Type::String);
    let number = |value: i128| (int(value), Type::Int64);
    let of = |function, arguments: &[(Value, Type)]| call(function, Type::String, arguments);
    assert_eq!(of(Function::Substring, &[string("joséésoj"), number(5)]), text("ésoj"));
    assert_eq!(of(Function::Substring, &[string("alphabet"), number(0), number(3)]), text("al"));
    assert_eq!(of(Function::Substring, &[string("alphabet"), number(-5), number(20)]), text("alphabet"));
    assert_eq!(of(Function::Substring, &[string("alphabet"), number(30)]), text(""));
    assert_eq!(of(Function::Left, &[string("joséésoj"), number(-3)]), text("joséé"));
    assert_eq!(of(Function::Left, &[string("abc"), number(i64::MIN.into())]), text(""));
    assert_eq!(of(Function::Right, &[string("joséésoj"), number(3)]), text("soj"));
    assert_eq!(of(Function::Right, &[string("abc"), number(0)]), text(""));
    assert_eq!(of(Function::Right, &[string("abc"), number(-1)]), text("bc"));
    assert_eq!(of(Function::Concat, &[string("a"), (Value::Null, Type::String), string("b")]), text("ab"));
    assert_eq!(of(Function::Replace, &[string("aXbX"), string("X"), string("--")]), text("a--b--"));
    assert_eq!(of(Function::Replace, &[string("ab"), string(""), string("x")]), text("ab"));
    assert_eq!(of(Function::Trim, &[string("  a\t ")]), text("a\t"));
    assert_eq!(of(Function::TrimEnd, &[string("xyax"), string("xy")]), text("xya"));
    assert_eq!(call(Function::Position, Type::Int32, &[string("日本語"), string("語")]), int(3));
    assert_eq!(call(Function::Position, Type::Int32, &[string("abc"), string("")]), int(1));
    assert_eq!(call(Function::OctetLength, Type::Int32, &[string("é")]), int(2));
    let values = [text("abc"), int(1), int(-1)];
    let error =
        scalar::function(Function::Substring, &Type::String, &[Type::String, Type::Int64, Type::Int64], &values);
    assert_eq!(error.unwrap_err().message, "substring needs a length of 0 or more, not -1");
}

#[test]
fn number_functions() {
    let round = |value: i128, kind: Type, digits: i128, result: Type| {
        call(Function::Round, result, &[(int(value), kind), (int(digits), Type::Int64)])
    };
    assert_eq!(round(12345, decimal(9, 2), 1, decimal(9, 1)), int(1235));
    assert_eq!(round(-12345, decimal(9, 2), 1, decimal(9, 2)), int(-12350));
    assert_eq!(round(999, decimal(3, 2), 0, decimal(4, 2)), int(1000));
    assert_eq!(round(12345, decimal(9, 2), -9, decimal(9, 0)), int(0));
    assert_eq!(round(155, Type::Int64, -1, Type::Int64), int(160));
    assert_eq!(round(i64::MAX.into(), Type::Int64, -19, Type::Int64), int(0));
    let float = |function, value: f64| call(function, Type::Float64, &[(Value::Float(value), Type::Float64)]);
    assert_eq!(float(Function::Round, -2.5), Value::Float(-3.0));
    assert_eq!(float(Function::Sign, -0.0), Value::Float(0.0));
    assert_eq!(float(Function::Floor, -0.5), Value::Float(-1.0));
    assert_eq!(call(Function::Floor, decimal(9, 2), &[(int(-150), decimal(9, 2))]), int(-200));
    assert_eq!(call(Function::Ceil, decimal(9, 2), &[(int(-150), decimal(9, 2))]), int(-100));
    let error = scalar::function(Function::Abs, &Type::Int8, &[Type::Int8], &[int(-128)]).unwrap_err();
    assert!(error.message.starts_with("integer overflow in int8 magnitude of -128"), "{error}");
    assert!(scalar::number::power(0.0, -1.0).is_err());
    let greatest =
        [(Value::Float(f64::NAN), Type::Float64), (Value::Null, Type::Float64), (Value::Float(1.0), Type::Float64)];
    assert_eq!(call(Function::Greatest, Type::Float64, &greatest), Value::Float(f64::NAN));
    assert_eq!(call(Function::Least, Type::Float64, &greatest), Value::Float(1.0));
}

#[test]
fn fields_of_dates_are_those_of_arrow() {
    use arrow_arith::temporal::{DatePart, date_part};
    let fields = [
        (DateField::Year, DatePart::Year),
        (DateField::Quarter, DatePart::Quarter),
        (DateField::Month, DatePart::Month),
        (DateField::Week, DatePart::Week),
        (DateField::Day, DatePart::Day),
        (DateField::DayOfWeek, DatePart::DayOfWeekSunday0),
        (DateField::DayOfYear, DatePart::DayOfYear),
        (DateField::Hour, DatePart::Hour),
        (DateField::Minute, DatePart::Minute),
        (DateField::Second, DatePart::Second),
    ];
    let seed = seed();
    println!("seed {seed}");
    let mut rng = generator(seed);
    for kind in kinds().into_iter().filter(|kind| matches!(kind, Type::Date | Type::Timestamp(..))) {
        let mut values: Vec<Value> = (0..300).map(|_| literal(&mut rng, &kind)).collect();
        values.extend([int(0), int(-1), int(1), int(i32::MAX.into()), int(i32::MIN.into())]);
        let array = scalar::arrow::array(&values, &kind).unwrap();
        for (field, part) in fields {
            let expected = date_part(&array, part).unwrap();
            for (index, value) in values.iter().enumerate() {
                let expected = scalar::arrow::value(&expected, index, &Type::Int32).unwrap();
                let found = call(Function::Extract(field), Type::Int32, &[(value.clone(), kind.clone())]);
                assert_eq!(expected, found, "{} of {value} as {kind}", field.name());
            }
        }
    }
}

#[test]
fn dates_are_truncated() {
    let days = |year, month, day| int(scalar::date::days_from_civil(year, month, day).into());
    let truncate = |field, value: Value| call(Function::Truncate(field), Type::Date, &[(value, Type::Date)]);
    assert_eq!(truncate(DateField::Quarter, days(1994, 8, 17)), days(1994, 7, 1));
    assert_eq!(truncate(DateField::Week, days(2026, 11, 15)), days(2026, 11, 9));
    assert_eq!(truncate(DateField::Year, days(1969, 12, 31)), days(1969, 1, 1));
    // Midnight in New York at the end of daylight saving, 2026-11-01, is 04:00 UTC; 06:30 UTC is 01:30 there again.
    let zone: arrow_array::timezone::Tz = "America/New_York".parse().unwrap();
    let midnight = scalar::date::days_from_civil(2026, 11, 1) * 86_400 + 4 * 3600;
    let later = midnight + 2 * 3600 + 1800;
    let found = scalar::date::truncate_timestamp(DateField::Day, later, TimeUnit::Second, Some(zone));
    assert_eq!(found, Some(midnight));
    let found = scalar::date::truncate_timestamp(DateField::Hour, later, TimeUnit::Second, Some(zone));
    assert_eq!(found, Some(later - 1800));
}

#[test]
fn decimals_round_trip_as_text() {
    for (value, scale, expected) in [(5, 2, "0.05"), (-1234, 2, "-12.34"), (12, -2, "1200"), (0, -3, "0"), (7, 0, "7")]
    {
        assert_eq!(scalar::decimal::format(value, scale), expected);
        assert_eq!(scalar::decimal::parse(expected, scale), Some(value));
    }
    assert_eq!(scalar::decimal::average(-7, 0, 2, 0, 38), Some(-3));
    assert_eq!(scalar::decimal::average(7, 2, 3, 6, 38), Some(23333));
}

#[test]
fn digests_are_the_known_ones() {
    assert_eq!(digest::md5(b""), "d41d8cd98f00b204e9800998ecf8427e");
    assert_eq!(digest::md5(b"abc"), "900150983cd24fb0d6963f7d28e17f72");
    assert_eq!(digest::sha256(b"abc")[..4], [0xba, 0x78, 0x16, 0xbf]);
}

#[test]
fn texts_are_cut_filled_and_split() {
    assert_eq!(text::pad("日本", 5, "xé", true).unwrap(), "xéx日本");
    assert_eq!(text::pad("日本", 5, "xé", false).unwrap(), "日本xéx");
    assert_eq!(text::pad("日本", 1, "x", true).unwrap(), "日");
    assert_eq!((text::pad("a", -1, "x", true).unwrap(), text::pad("a", 9, "", true).unwrap()), ("".into(), "a".into()));
    assert_eq!(text::padded_bytes("日本", 5, "xé"), "xéx日本".len());
    assert_eq!(text::pad("a", 1 << 31, "x", true).unwrap_err().class, Class::Exhausted);
    assert_eq!(text::pad("a", 2_000_000_000, "日", true).unwrap_err().class, Class::Exhausted);
    assert_eq!(text::repeat("ab", 2_000_000_000).unwrap_err().class, Class::Exhausted);
    assert_eq!((text::repeat("", i64::MAX).unwrap(), text::repeat("ab", i64::MIN).unwrap()), ("".into(), "".into()));
    let parts = |number| text::split_part("a,b,,c", ",", number).unwrap();
    assert_eq!([1, 3, 4, 5, -1, -4, -5].map(parts), ["a", "", "c", "", "c", "a", ""]);
    assert_eq!((text::split_part("ab", "", -1).unwrap(), text::split_part("ab", "", 2).unwrap()), ("ab", ""));
    assert!(text::split_part("ab", ",", 0).unwrap_err().message.contains("part 0"));
    assert_eq!(text::translate("abcabc", "aab", "xyz"), "xzcxzc");
    assert_eq!(text::translate("abc", "bc", "é"), "aé");
    assert_eq!(text::initcap("hELLO wORLD42x o'neil ßa"), "Hello World42x O'Neil SSa");
}

#[test]
fn patterns_that_are_none_are_one_sentence() {
    let wrong = |pattern: &str| pattern::Pattern::new(pattern, "").unwrap_err().message;
    for message in [wrong("("), wrong("a{1000}{1000}{1000}"), wrong("(?<n>a)(?<n>b)")] {
        assert!(message.starts_with("the regular expression ") && !message.contains('\n'), "{message}");
    }
    assert!(wrong("\\w{1000}{1000}").contains("MB when compiled"), "{}", wrong("\\w{1000}{1000}"));
}

#[test]
fn matches_are_replaced_and_their_groups_found() {
    let replaced = |text: &'static str, pattern: &str, by: &str, all: bool| {
        let pattern = pattern::Pattern::new(pattern, "").unwrap();
        let replacement = pattern::Replacement::new(pattern, by, all);
        let found = replacement.replace(text).into_owned();
        assert!(found.len() <= replacement.most(text), "{found}");
        found
    };
    assert_eq!(replaced("one two", r"(\w+) (\w+)", r"\2 \1", false), "two one");
    assert_eq!(replaced("aaa", "a", r"<\0>", true), "<a><a><a>");
    assert_eq!(replaced("aaa", "", "-", true), "-a-a-a-");
    assert_eq!(replaced("ab", "(a)", r"\\1\x\\\1", false), r"a\x\ab");
    let group = |text, number| pattern::Pattern::new("(x)?(.)", "").unwrap().group(text, number).map(str::to_owned);
    // A group that took no part is not counted.
    assert_eq!(
        (group("xy", 2), group("y", 1), group("y", 2), group("", 1)),
        (Some("y".into()), Some("y".into()), None, None)
    );
}

#[test]
fn bits_have_the_width_of_their_type() {
    use crate::Function::*;
    let bits = |function, left, right, kind| bits::compute(function, left, right, &kind).unwrap();
    assert_eq!(bits(ShiftLeft, 1, 33, Type::Int32), 2);
    assert_eq!(bits(ShiftLeft, 1, 31, Type::Int32), i128::from(i32::MIN));
    assert_eq!(bits(ShiftLeft, 255, 1, Type::UInt8), 254);
    assert_eq!(bits(ShiftRight, -1, -1, Type::Int64), -1);
    assert_eq!(bits(ShiftRight, u64::MAX.into(), 63, Type::UInt64), 1);
    assert_eq!((bits(BitNot, 5, 0, Type::Int8), bits(BitNot, 5, 0, Type::UInt16)), (-6, 65530));
    assert_eq!(bits(BitXor, -1, 5, Type::Int16), -6);
}

#[test]
fn differences_count_starts_of_fields() {
    let day = |year, month, day| date::days_from_civil(year, month, day);
    let between = |field, start, end| date::ordinal(field, end) - date::ordinal(field, start);
    assert_eq!(between(DateField::Year, day(2023, 12, 31), day(2024, 1, 1)), 1);
    assert_eq!(between(DateField::Year, day(2023, 1, 1), day(2023, 12, 31)), 0);
    assert_eq!(between(DateField::Month, day(2024, 3, 1), day(2024, 1, 31)), -2);
    // 4 May 2024 is a Saturday.
    assert_eq!(between(DateField::Week, day(2024, 5, 4), day(2024, 5, 6)), 1);
    assert_eq!(between(DateField::Week, day(1969, 12, 29), day(1970, 1, 4)), 0);
    let hour = |seconds| date::ordinal_timestamp(DateField::Hour, seconds, TimeUnit::Second);
    assert_eq!((hour(-1), hour(3599), hour(3600)), (-1, 0, 1));
    assert_eq!(date::parse_date("29/02/2024", "%d/%m/%Y").unwrap(), day(2024, 2, 29));
    assert_eq!(date::parse_date("2024-02-29 23:30:00 -0100", "%Y-%m-%d %H:%M:%S %z").unwrap(), day(2024, 3, 1));
    assert!(date::parse_date("29.2.2024", "%Y").unwrap_err().message.contains("'29.2.2024'"));
}
