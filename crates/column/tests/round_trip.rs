//! Arrow into columns and back, for all types: random values, nulls, extremes, slices.

use std::sync::Arc;

use arrow_array::builder::*;
use arrow_array::types::*;
use arrow_array::*;
use arrow_buffer::i256;
use arrow_schema::{DataType, IntervalUnit, TimeUnit as Unit};
use rand::{Rng, SeedableRng, rngs::StdRng};
use tandem_column::{Class, Column, Data, Repr, Type};

/// Runs `test` with a generator whose seed a failure prints.
fn seeded(name: &str, test: impl Fn(&mut StdRng)) {
    let seed = std::env::var("TANDEM_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or_else(rand::random::<u64>);
    println!("{name}: TANDEM_SEED={seed}");
    test(&mut StdRng::seed_from_u64(seed));
}

/// Picks nulls, extremes, or values near each other or anywhere.
fn integer(random: &mut StdRng, low: i128, high: i128, style: u32) -> i128 {
    match (style, random.random_range(0..20)) {
        (_, 0) if style > 0 => low,
        (_, 1) if style > 0 => high,
        (0, _) => (random.random_range(0..200i128)).clamp(low, high),
        (1, _) => random.random_range(-40_000..40_000i128).clamp(low, high),
        _ => random.random_range(low..=high),
    }
}

fn text(random: &mut StdRng, style: u32) -> String {
    match style {
        0 => ["", "a", "ASIA", "größer", "日本語の文字列です", "a rather long value that no view holds inline"]
            [random.random_range(0..6)]
        .to_string(),
        1 => format!("value {}", random.random_range(0..1000)),
        _ => (0..random.random_range(0..40)).map(|_| random.random::<char>()).collect(),
    }
}

/// Makes a random array of an Arrow type; `nulls` out of ten rows are null.
fn array(random: &mut StdRng, kind: &DataType, rows: usize, nulls: u32, style: u32) -> ArrayRef {
    let null = |random: &mut StdRng| random.random_range(0..10) < nulls;
    macro_rules! numbers {
        ($arrow:ty, $low:expr, $high:expr, $convert:expr) => {{
            let values = (0..rows).map(|_| (!null(random)).then(|| $convert(integer(random, $low, $high, style))));
            let array = PrimitiveArray::<$arrow>::from_iter(values.collect::<Vec<_>>());
            Arc::new(array.with_data_type(kind.clone())) as ArrayRef
        }};
        ($arrow:ty) => {{
            type Native = <$arrow as ArrowPrimitiveType>::Native;
            numbers!($arrow, Native::MIN as i128, Native::MAX as i128, |value| value as Native)
        }};
    }
    macro_rules! texts {
        ($builder:expr) => {{
            let mut builder = $builder;
            for _ in 0..rows {
                builder.append_option((!null(random)).then(|| text(random, style)));
            }
            Arc::new(builder.finish()) as ArrayRef
        }};
    }
    let digits = |precision: u8| 10i128.pow(precision.into()) - 1;
    match kind {
        DataType::Null => Arc::new(NullArray::new(rows)),
        DataType::Boolean => {
            let values: Vec<_> = (0..rows).map(|_| (!null(random)).then(|| random.random::<bool>())).collect();
            Arc::new(BooleanArray::from(values))
        }
        DataType::Int8 => numbers!(Int8Type),
        DataType::Int16 => numbers!(Int16Type),
        DataType::Int32 => numbers!(Int32Type),
        DataType::Int64 => numbers!(Int64Type),
        DataType::UInt8 => numbers!(UInt8Type),
        DataType::UInt16 => numbers!(UInt16Type),
        DataType::UInt32 => numbers!(UInt32Type),
        DataType::UInt64 => numbers!(UInt64Type),
        DataType::Date32 => numbers!(Date32Type),
        DataType::Date64 => numbers!(Date64Type, -100_000, 100_000, |days: i128| days as i64 * 86_400_000),
        DataType::Time32(Unit::Second) => numbers!(Time32SecondType, 0, 86_399, |v| v as i32),
        DataType::Time32(_) => numbers!(Time32MillisecondType, 0, 86_399_999, |v| v as i32),
        DataType::Time64(Unit::Microsecond) => numbers!(Time64MicrosecondType, 0, 86_399_999_999, |v| v as i64),
        DataType::Time64(_) => numbers!(Time64NanosecondType, 0, 86_399_999_999_999, |v| v as i64),
        DataType::Timestamp(Unit::Second, _) => numbers!(TimestampSecondType),
        DataType::Timestamp(Unit::Millisecond, _) => numbers!(TimestampMillisecondType),
        DataType::Timestamp(Unit::Microsecond, _) => numbers!(TimestampMicrosecondType),
        DataType::Timestamp(Unit::Nanosecond, _) => numbers!(TimestampNanosecondType),
        DataType::Decimal32(p, _) => numbers!(Decimal32Type, -digits(*p), digits(*p), |v| v as i32),
        DataType::Decimal64(p, _) => numbers!(Decimal64Type, -digits(*p), digits(*p), |v| v as i64),
        DataType::Decimal128(p, _) => numbers!(Decimal128Type, -digits(*p), digits(*p), |v| v),
        DataType::Decimal256(p, _) => numbers!(Decimal256Type, -digits(*p), digits(*p), i256::from_i128),
        DataType::Float16 => {
            let value = |random: &mut StdRng| half::f16::from_f32(random.random_range(-100..100) as f32 / 4.0);
            let values: Vec<_> = (0..rows).map(|_| (!null(random)).then(|| value(random))).collect();
            Arc::new(Float16Array::from(values))
        }
        DataType::Float32 => {
            let special = [f32::NAN, -0.0, 0.0, f32::INFINITY, f32::MIN, f32::MIN_POSITIVE];
            let value = |random: &mut StdRng| match random.random_range(0..12) {
                at @ 0..6 => special[at],
                _ => random.random(),
            };
            let values: Vec<_> = (0..rows).map(|_| (!null(random)).then(|| value(random))).collect();
            Arc::new(Float32Array::from(values))
        }
        DataType::Float64 => {
            let special = [f64::NAN, -0.0, 0.0, f64::NEG_INFINITY, f64::MAX, -f64::NAN];
            let value = |random: &mut StdRng| match random.random_range(0..12) {
                at @ 0..6 => special[at],
                _ => random.random(),
            };
            let values: Vec<_> = (0..rows).map(|_| (!null(random)).then(|| value(random))).collect();
            Arc::new(Float64Array::from(values))
        }
        DataType::Utf8 => texts!(StringBuilder::new()),
        DataType::LargeUtf8 => texts!(LargeStringBuilder::new()),
        DataType::Utf8View => texts!(StringViewBuilder::new()),
        DataType::Binary => texts!(BinaryBuilder::new()),
        DataType::LargeBinary => texts!(LargeBinaryBuilder::new()),
        DataType::BinaryView => texts!(BinaryViewBuilder::new()),
        DataType::FixedSizeBinary(width) => {
            let mut builder = FixedSizeBinaryBuilder::new(*width);
            for _ in 0..rows {
                match null(random) {
                    true => builder.append_null(),
                    false => {
                        let value: Vec<u8> = (0..*width).map(|_| random.random()).collect();
                        builder.append_value(value).expect("of the width");
                    }
                }
            }
            Arc::new(builder.finish())
        }
        DataType::Dictionary(..) => {
            let plain = array(random, &DataType::Utf8, rows, nulls, style.min(1));
            arrow_cast::cast(&plain, kind).expect("few enough values for the keys")
        }
        other => panic!("no random values of {other}"),
    }
}

fn kinds() -> Vec<DataType> {
    use DataType::*;
    let zone = Some(Arc::from("Europe/Berlin"));
    vec![
        Null,
        Boolean,
        Int8,
        Int16,
        Int32,
        Int64,
        UInt8,
        UInt16,
        UInt32,
        UInt64,
        Float16,
        Float32,
        Float64,
        Date32,
        Date64,
        Time32(Unit::Second),
        Time32(Unit::Millisecond),
        Time64(Unit::Microsecond),
        Time64(Unit::Nanosecond),
        Timestamp(Unit::Second, None),
        Timestamp(Unit::Millisecond, zone.clone()),
        Timestamp(Unit::Microsecond, None),
        Timestamp(Unit::Nanosecond, zone),
        Decimal32(9, 2),
        Decimal64(18, 4),
        Decimal128(18, 0),
        Decimal128(15, 2),
        Decimal128(38, 10),
        Decimal128(19, -3),
        Decimal256(38, 5),
        Decimal256(12, 5),
        Utf8,
        LargeUtf8,
        Utf8View,
        Binary,
        LargeBinary,
        BinaryView,
        FixedSizeBinary(5),
        Dictionary(Box::new(Int32), Box::new(Utf8)),
        Dictionary(Box::new(UInt16), Box::new(Utf8)),
        Dictionary(Box::new(Int64), Box::new(Utf8View)),
    ]
}

/// Compares by value and bits: Arrow's own equality takes NaN for different from itself.
fn assert_same(expected: &ArrayRef, found: &ArrayRef, what: &str) {
    assert_eq!(expected.data_type(), found.data_type(), "{what}");
    found.to_data().validate_full().expect(what);
    let bits = |array: &ArrayRef| match array.data_type() {
        DataType::Float32 => {
            let array = array.as_any().downcast_ref::<Float32Array>().expect("floats");
            Arc::new(array.unary::<_, UInt32Type>(f32::to_bits)) as ArrayRef
        }
        DataType::Float64 => {
            let array = array.as_any().downcast_ref::<Float64Array>().expect("floats");
            Arc::new(array.unary::<_, UInt64Type>(f64::to_bits)) as ArrayRef
        }
        DataType::Dictionary(_, values) => arrow_cast::cast(array, values).expect("unpacked"),
        _ => array.clone(),
    };
    assert_eq!(&bits(expected), &bits(found), "{what}");
}

#[test]
fn every_type_survives() {
    seeded("every_type_survives", |random| {
        for kind in kinds() {
            for (rows, nulls, style) in
                [(0, 0, 0), (1, 0, 1), (1, 10, 1), (100, 0, 0), (100, 3, 1), (300, 2, 2), (66_000, 2, 1), (40, 10, 0)]
            {
                let source = array(random, &kind, rows, nulls, style);
                let what = format!("{kind}, {rows} rows, {nulls} nulls, style {style}");
                let own = Type::from_arrow(&kind).expect("supported");
                // A slice first: offsets into arrays must be honoured.
                let start = random.random_range(0..=(rows / 2).min(100));
                let source = source.slice(start, rows - start);
                let column = Column::from_arrow(&source, &own).expect(&what);
                check_column(&column, &source, &what);
                assert_same(&source, &column.to_arrow_as(0..column.rows, &kind).expect(&what), &what);
                let (a, b) = (random.random_range(0..=column.rows / 2), column.rows - column.rows / 3);
                let part = column.to_arrow_as(a..b.max(a), &kind).expect(&what);
                assert_same(&source.slice(a, b.max(a) - a), &part, &what);
                // Plain, compact again, and joined with itself.
                let compact = column.compact();
                assert_same(&source, &compact.to_arrow_as(0..column.rows, &kind).expect(&what), &what);
                let twice = Column::concat(&[&column, &compact]).expect(&what);
                assert_same(&source, &twice.to_arrow_as(column.rows..twice.rows, &kind).expect(&what), &what);
            }
        }
    });
}

/// Checks a column's invariants, and its values against the array it came from.
fn check_column(column: &Column, source: &ArrayRef, what: &str) {
    assert_eq!(column.rows, source.len(), "{what}");
    assert_eq!(column.null_count(), source.logical_null_count(), "{what}");
    assert_eq!(column.validity.is_some(), column.null_count() > 0, "{what}");
    for i in (0..column.rows).filter(|i| !column.is_valid(*i)) {
        match (&column.data, column.codes()) {
            (_, Some((_, codes))) => assert_eq!(codes.get(i), 0, "{what}"),
            (Data::Wide(_), _) => assert_eq!(column.wide(i), 0),
            (Data::Float32(_) | Data::Float64(_), _) => assert_eq!(column.float(i).to_bits(), 0),
            _ => assert!(column.bytes_at(i).is_empty()),
        }
    }
    for (at, block) in column.blocks.iter().enumerate() {
        let rows = at * 65_536..column.rows.min((at + 1) * 65_536);
        let valid: Vec<usize> = rows.clone().filter(|i| column.is_valid(*i)).collect();
        assert_eq!(block.nulls as usize, rows.len() - valid.len(), "{what}");
        let value = |i: &usize| match column.kind.repr() {
            Repr::Float => tandem_column::float_order(column.float(*i)),
            _ => column.int(*i),
        };
        let expected = match column.data {
            Data::Wide(_) | Data::Bytes { .. } => None,
            _ => valid.iter().map(value).min().zip(valid.iter().map(value).max()),
        };
        assert_eq!(block.range, expected, "{what}");
    }
    assert_eq!(column.blocks.len(), column.rows.div_ceil(65_536), "{what}");
}

#[test]
fn text_becomes_every_text_type() {
    use DataType::*;
    seeded("text_becomes_every_text_type", |random| {
        let targets = [
            Utf8,
            LargeUtf8,
            Utf8View,
            Dictionary(Box::new(Int8), Box::new(Utf8)),
            Dictionary(Box::new(UInt32), Box::new(Utf8View)),
            Dictionary(Box::new(Int32), Box::new(LargeUtf8)),
        ];
        for style in 0..2 {
            let rows = if style == 0 { 1000 } else { 90 };
            let plain = array(random, &Utf8, rows, 2, style);
            let coded = arrow_cast::cast(&plain, &Dictionary(Box::new(Int32), Box::new(Utf8))).expect("coded");
            for source in [&plain, &coded] {
                let column = Column::from_arrow(source, &Type::String).expect("text");
                assert_eq!(column.dictionary().is_some(), Arc::ptr_eq(source, &coded));
                for target in &targets {
                    let found = column.to_arrow_as(10..80, target).expect("text");
                    assert_same(&arrow_cast::cast(&plain.slice(10, 70), target).expect("cast"), &found, "text");
                }
                let binary = column.to_arrow_as(0..rows, &Binary).expect("bytes of text");
                assert_same(&arrow_cast::cast(&plain, &Binary).expect("cast"), &binary, "binary");
            }
        }
    });
}

#[test]
fn huge_text_survives() {
    let values = ["x".repeat(3 << 20), String::new(), "ä".repeat(1 << 20), "short".into()];
    let source: ArrayRef = Arc::new(StringArray::from_iter_values(&values));
    let column = Column::from_arrow(&source, &Type::String).expect("text");
    for kind in [DataType::Utf8, DataType::Utf8View, DataType::LargeUtf8] {
        let found = column.to_arrow_as(0..4, &kind).expect("text");
        assert_same(&arrow_cast::cast(&source, &kind).expect("cast"), &found, "huge");
    }
}

#[test]
fn wide_values_are_shared_with_arrow() {
    let column = Column::from_i64(Type::Int64, (0..5000).collect::<Vec<i64>>(), None);
    let array = column.to_arrow(100..5000).expect("integers");
    let Data::Int { codes: tandem_column::Codes::U64(values), .. } = &column.data else { panic!("plain") };
    assert_eq!(array.to_data().buffers()[0].as_ptr(), values[100..].as_ptr().cast());
    drop(column);
    assert_eq!(array.as_any().downcast_ref::<Int64Array>().expect("integers").value(0), 100);
}

#[test]
fn other_types_are_cast_or_refused() {
    let source: ArrayRef = Arc::new(Int32Array::from(vec![Some(1), None, Some(300)]));
    let wider = Column::from_arrow(&source, &Type::Int64).expect("widened");
    assert_eq!((wider.int(0), wider.int(2), wider.is_valid(1)), (1, 300, false));
    assert_eq!(Column::from_arrow(&source, &Type::Int8).expect_err("300 is no int8").class, Class::Input);
    let interval = IntervalMonthDayNanoArray::from(vec![IntervalMonthDayNano::new(1, 2, 3)]);
    assert_eq!(Type::from_arrow(&DataType::Interval(IntervalUnit::MonthDayNano)), Ok(Type::Interval));
    assert_eq!(Column::from_arrow(&interval, &Type::Interval).expect_err("intervals").class, Class::Unsupported);
    assert_eq!(Type::from_arrow(&DataType::Duration(Unit::Second)).expect_err("durations").class, Class::Unsupported);
    let wide = Decimal128Array::from(vec![i128::MAX]).with_precision_and_scale(38, 0).expect("decimal");
    let narrow: ArrayRef = Arc::new(wide.with_data_type(DataType::Decimal128(10, 0)));
    assert_eq!(
        Column::from_arrow(&narrow, &Type::Decimal { precision: 10, scale: 0 }).expect_err("too large").class,
        Class::Input
    );
    let text = wider.to_arrow_as(0..3, &DataType::Utf8).expect("numbers as text");
    assert_eq!(text.as_any().downcast_ref::<StringArray>().expect("text").value(2), "300");
    let unsorted: ArrayRef = Arc::new(Int64Array::from(vec![i64::MIN, i64::MAX, 0, -1]));
    let extremes = Column::from_arrow(&unsorted, &Type::Int64).expect("extremes");
    assert_eq!(extremes.range(), Some((i64::MIN, i64::MAX)));
}
