//! Queries survive the way there and back; nothing else does.

use rand::Rng;

use super::*;
use crate::{Expr, Pipeline, Sink, Source, Step, Type, Value, random};

fn minimal() -> crate::Query {
    let source = Source::Values { rows: vec![vec![]] };
    let sink = Sink::Materialize { skip: 0, fetch: None, output: vec![] };
    let pipeline = Pipeline { source, steps: vec![], sink, slots: vec![] };
    crate::Query { functions: vec![], pipelines: vec![pipeline] }
}

fn refused(change: impl FnOnce(&mut Query)) -> String {
    let mut message = write(&minimal());
    change(&mut message);
    let error = read(&message).unwrap_err();
    assert_eq!(error.class, crate::Class::Input);
    error.message
}

#[test]
fn random_queries_survive() {
    let seed = random::seed();
    println!("TANDEM_SEED={seed}");
    let rng = &mut random::generator(seed);
    for _ in 0..2000 {
        let tables = random::tables(rng, 5);
        let query = random::query(rng, &tables);
        let bytes = write(&query).encode_to_vec();
        let message: Query = decode(&bytes, "the query").unwrap();
        assert_eq!(read(&message).unwrap(), query);
    }
}

#[test]
fn every_value_and_type_survives() {
    let integers = [0, -1, i128::from(i64::MAX), i128::from(i64::MIN) - 1, i128::MAX, i128::MIN];
    let floats = [0.0, -0.0, f64::NAN, f64::INFINITY, f64::from_bits(0xfff8_0000_0000_0001)];
    let mut values: Vec<Value> = integers.into_iter().map(Value::Integer).collect();
    values.extend(floats.into_iter().map(Value::Float));
    values.extend([Value::Null, Value::Boolean(false), Value::string(""), Value::Binary([0u8, 255].as_slice().into())]);
    values.push(Value::Interval { months: -1, days: 2, nanoseconds: i64::MIN });
    values.push(Value::List(values.clone().into()));
    for value in values {
        assert_eq!(read_value(&write_value(&value)).unwrap(), value);
    }
    let zoned = Type::Timestamp(tandem_column::TimeUnit::Nanosecond, Some("Europe/Vienna".into()));
    for kind in [zoned.clone(), Type::List(std::sync::Arc::new(zoned)), Type::Decimal { precision: 38, scale: -3 }] {
        assert_eq!(read_kind(&write_kind(&kind)).unwrap(), kind);
    }
    // As Java's BigInteger writes them.
    let wide = |bytes: &[u8]| read_value(&super::Value { value: Some(value::Value::Wide(bytes.to_vec())) });
    assert_eq!(wide(&[0x80]).unwrap(), Value::Integer(-128));
    assert_eq!(wide(&[0, 0x80]).unwrap(), Value::Integer(128));
    assert!(wide(&[]).is_err() && wide(&[1; 17]).is_err());
}

#[test]
fn what_is_not_known_is_refused() {
    assert!(refused(|query| query.version = 2).contains("version"));
    assert!(refused(|query| query.pipelines[0].sink = None).contains("sink is not set"));
    assert!(refused(|query| query.pipelines[0].source = Some(super::Source { source: None })).contains("not set"));
    assert!(refused(|query| query.pipelines.clear()).contains("at least one pipeline"));
    let filter = |expr| super::Step { step: Some(step::Step::Filter(super::Expr { expr: Some(expr) })) };
    let slot = refused(|query| query.pipelines[0].steps.push(filter(expr::Expr::Slot(u32::MAX))));
    assert!(slot.contains("slot"), "{slot}");
    let function = FunctionCall { function: 999, ..FunctionCall::default() };
    let function = refused(|query| query.pipelines[0].steps.push(filter(expr::Expr::Function(function))));
    assert!(function.contains("one release (number 999)"), "{function}");
    let upper = FunctionCall { function: Function::Upper as i32, field: 1, ..FunctionCall::default() };
    let upper = refused(|query| query.pipelines[0].steps.push(filter(expr::Expr::Function(upper))));
    assert!(upper.contains("takes no field"), "{upper}");
    let mut bytes = write(&minimal()).encode_to_vec();
    bytes.extend([0xfa, 0x01, 0x00]); // field 31, of no bytes
    assert!(decode::<Query>(&bytes, "the query").unwrap_err().message.contains("fields that are not known"));
}

#[test]
fn deep_nesting_is_refused() {
    let nested = |depth: usize| {
        let mut query = minimal();
        let deep =
            (0..depth).fold(Expr::Literal(Value::Boolean(true), Type::Boolean), |expr, _| Expr::Not(Box::new(expr)));
        query.pipelines[0].steps.push(Step::Filter(deep));
        write(&query).encode_to_vec()
    };
    assert!(read(&decode(&nested(90), "the query").unwrap()).is_ok());
    assert!(decode::<Query>(&nested(120), "the query").unwrap_err().message.contains("recursion"));
}

#[test]
fn damaged_bytes_never_panic() {
    let seed = random::seed();
    println!("TANDEM_SEED={seed}");
    let rng = &mut random::generator(seed);
    for _ in 0..3000 {
        let tables = random::tables(rng, 3);
        let mut bytes = write(&random::query(rng, &tables)).encode_to_vec();
        for _ in 0..rng.random_range(1..8) {
            let at = rng.random_range(0..bytes.len());
            match rng.random_range(0..3) {
                0 => bytes[at] = rng.random(),
                1 => bytes.truncate(at.max(1)),
                _ => bytes.insert(at, rng.random()),
            }
        }
        if let Ok(message) = decode::<Query>(&bytes, "the query") {
            let _ = read(&message);
        }
    }
}
