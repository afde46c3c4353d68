//! Every kind of expression against the reference interpreter, on random rows with nulls and extreme values.

mod random;

use std::{rc::Rc, sync::Arc};

use tandem_column::{Dictionary, Result, Type};
use tandem_pipeline::{Expr, Function, Local, Slot, SlotId, Statement, UserFunction, Value, interpret};

use super::{Slots, Subset, evaluate, select, supports};
use crate::vector::{BytesVector, Values, Vector};
use random::{Random, kinds};

/// Rows both as single values and as vectors whose null rows hold anything.
struct Batch {
    slots: Vec<Slot>,
    rows: Vec<Vec<Value>>,
    vectors: Vec<Rc<Vector>>,
}

impl Slots for Batch {
    fn rows(&self) -> usize {
        self.rows.len()
    }
    fn vector(&self, slot: SlotId) -> Result<Rc<Vector>> {
        Ok(self.vectors[slot].clone())
    }
    fn kind(&self, slot: SlotId) -> &Type {
        &self.slots[slot].kind
    }
    fn named(&self) -> &[Slot] {
        &self.slots
    }
}

impl Batch {
    /// Makes three slots of each type: with nulls, without, and with nulls as dictionary codes where there are such.
    fn new(random: &mut Random, count: usize) -> Batch {
        let mut batch = Batch { slots: Vec::new(), rows: vec![Vec::new(); count], vectors: Vec::new() };
        for kind in kinds() {
            for variant in 0..3 {
                let nullable = variant != 1;
                let held: Vec<Value> = (0..count).map(|_| random.value(&kind)).collect();
                let valid: Vec<u8> = (0..count).map(|_| u8::from(!nullable || random.below(4) > 0)).collect();
                let mut vector = Vector::from_values(&kind, &held);
                if variant == 2 && matches!(kind, Type::String | Type::Binary) {
                    vector = coded(random, &kind, &held);
                }
                if nullable {
                    vector.valid = Some(valid.clone());
                }
                for ((row, value), valid) in batch.rows.iter_mut().zip(&held).zip(&valid) {
                    row.push(if *valid == 1 { value.clone() } else { Value::Null });
                }
                batch.vectors.push(Rc::new(vector));
                batch.slots.push(Slot { name: format!("s{}", batch.slots.len()), kind: kind.clone(), nullable });
            }
        }
        batch
    }
}

/// Holds text as codes of a dictionary that may be much larger than the rows.
fn coded(random: &mut Random, kind: &Type, held: &[Value]) -> Vector {
    let mut words: Vec<Vec<u8>> = held.iter().map(|value| crate::vector::bytes(value).to_vec()).collect();
    let more = if random.below(2) == 0 { 3 } else { 400 };
    words.extend((0..more).map(|number| format!("word {number}").into_bytes()));
    words.sort();
    words.dedup();
    let (dictionary, _) = Dictionary::from_unsorted(kind, &words).unwrap();
    let codes = held.iter().map(|value| dictionary.find(crate::vector::bytes(value)).unwrap()).collect();
    Vector::new(Values::Code { codes, dictionary: Arc::new(dictionary) })
}

/// Tells whether an expression has a part that the interpreter evaluates for more rows than it must.
fn lazier(expr: &Expr) -> bool {
    matches!(expr, Expr::Function { function: Function::Coalesce, .. }) || expr.children().into_iter().any(lazier)
}

fn same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Float(left), Value::Float(right)) if left.is_nan() => right.is_nan(),
        _ => left == right,
    }
}

/// Compares with the interpreter; returns whether both gave values rather than an error.
fn check(expr: &Expr, batch: &Batch, functions: &[Arc<UserFunction>], seed: u64) -> bool {
    let kind = expr.kind(&batch.slots);
    let context = || format!("seed {seed}, {} rows: {expr:?}", batch.rows());
    supports(expr, &batch.slots).unwrap_or_else(|error| panic!("{error}: {}", context()));
    let expected: Result<Vec<Value>> =
        batch.rows.iter().map(|row| interpret::evaluate(expr, row, &batch.slots, functions)).collect();
    let found = evaluate(expr, batch, functions);
    let (expected, vector) = match (expected, found) {
        (Err(expected), Err(found)) => {
            assert_eq!(expected.class, found.class, "{}", context());
            return false;
        }
        (Err(_), Ok(_)) if lazier(expr) => return false,
        (Err(error), Ok(_)) => panic!("interpreter alone raises {error}: {}", context()),
        (Ok(_), Err(error)) => panic!("evaluator alone raises {error}: {}", context()),
        (Ok(expected), Ok(vector)) => (expected, vector),
    };
    assert_eq!(vector.len(), batch.rows(), "{}", context());
    assert!(vector.valid.as_ref().is_none_or(|valid| valid.len() == vector.len()), "{}", context());
    for (row, expected) in expected.iter().enumerate() {
        let found = vector.value(row, &kind);
        assert!(
            same(expected, &found),
            "row {row}: expected {expected}, found {found}; {}\n{:?}",
            context(),
            batch.rows[row]
        );
    }
    if kind == Type::Boolean {
        let kept: Vec<u32> = (0..batch.rows() as u32).filter(|&row| expected[row as usize].is_true()).collect();
        assert_eq!(select(expr, batch, functions).unwrap(), kept, "{}", context());
    }
    let half: Vec<u32> = (0..batch.rows() as u32).filter(|row| row % 2 == 1).collect();
    let part = evaluate(expr, &Subset::new(batch, &half), functions).unwrap();
    for (at, row) in half.iter().enumerate() {
        assert!(same(&part.value(at, &kind), &expected[*row as usize]), "subset row {row}; {}", context());
    }
    true
}

/// Two user functions: one of a loop over integers, one of text.
fn functions() -> Vec<Arc<UserFunction>> {
    let local = |name: &str, kind: Type| Local { name: name.to_owned(), kind };
    let literal = |value: i128| Expr::Literal(Value::Integer(value), Type::Int64);
    let less = Expr::Compare(tandem_pipeline::Comparison::Less, Box::new(Expr::Slot(0)), Box::new(literal(0)));
    vec![Arc::new(UserFunction {
        name: "sign_name".into(),
        parameters: 1,
        locals: vec![local("x", Type::Int64)],
        returns: Type::String,
        body: vec![Statement::If {
            condition: less,
            then: vec![Statement::Return(Expr::Literal(Value::string("negative"), Type::String))],
            otherwise: vec![],
        }],
    })]
}

#[test]
fn random_expressions_mean_what_the_interpreter_says() {
    let functions = functions();
    let seed = std::env::var("TANDEM_SEED").ok().and_then(|seed| seed.parse().ok());
    let (first, count) = seed.map_or((1, 60), |seed| (seed, 1));
    let mut compared = 0;
    for seed in first..first + count {
        let random = &mut Random::new(seed);
        let rows = [0, 1, 7, 64, 300][random.below(5)];
        let batch = Batch::new(random, rows);
        for _ in 0..200 {
            let kinds = kinds();
            let kind = &kinds[random.below(kinds.len())];
            let depth = 1 + random.below(3);
            let expr = random.expr(&batch.slots, kind, depth);
            compared += u64::from(check(&expr, &batch, &functions, seed));
        }
    }
    assert!(compared > count * 100, "most expressions have values: {compared} of {}", count * 200);
}

#[test]
fn shallow_expressions_of_each_type_mean_what_the_interpreter_says() {
    for seed in 1000..1040 {
        let random = &mut Random::new(seed);
        let batch = Batch::new(random, 40);
        for kind in kinds() {
            for _ in 0..20 {
                let expr = random.expr(&batch.slots, &kind, 1);
                check(&expr, &batch, &[], seed);
            }
        }
    }
}

#[test]
fn user_functions_are_called_per_row() {
    let batch = Batch::new(&mut Random::new(5), 50);
    let int64 = batch.slots.iter().position(|slot| slot.kind == Type::Int64).unwrap();
    let call = Expr::Call { function: 0, arguments: vec![Expr::Slot(int64)], kind: Type::String };
    check(&call, &batch, &functions(), 5);
}

#[test]
fn patterns_are_found_in_each_text_and_never_across_two() {
    let texts = ["", "ab", "a", "b", "xaby", "", "aab", "a", "ba", "b", "abab", "bab", "b-a", ""];
    let held: Vec<Value> = texts.iter().map(|text| Value::String((*text).into())).collect();
    let batch = Batch {
        slots: vec![Slot { name: "text".to_string(), kind: Type::String, nullable: false }],
        rows: held.iter().map(|value| vec![value.clone()]).collect(),
        vectors: vec![Rc::new(Vector::from_values(&Type::String, &held))],
    };
    for pattern in
        ["%ab%", "%a%b%", "%ab%ab%", "a%b%", "%b%a", "a%a%b", "%%", "%%%", "%ab%%", "b%b", "%", "%-%", "_%b%"]
    {
        let input = Box::new(Expr::Slot(0));
        let like = Expr::Like { input, pattern: pattern.into(), escape: None, ignore_case: false };
        assert!(check(&like, &batch, &[], 0), "{pattern}");
    }
    for part in ["ab", "", "a", "zz"] {
        let part = Expr::Literal(Value::String(part.into()), Type::String);
        let contains =
            Expr::Function { function: Function::Contains, arguments: vec![Expr::Slot(0), part], kind: Type::Boolean };
        assert!(check(&contains, &batch, &[], 0));
    }
}

#[test]
fn appending_keeps_values_and_nulls() {
    let random = &mut Random::new(3);
    let (first, second) = (Batch::new(random, 9), Batch::new(random, 5));
    for slot in 0..first.slots.len() {
        let kind = &first.slots[slot].kind;
        let mut all = Vector::empty(kind);
        all.append(&first.vectors[slot]);
        all.append(&second.vectors[slot]);
        let expected = first.rows.iter().chain(&second.rows).map(|row| &row[slot]);
        for (row, expected) in expected.enumerate() {
            assert!(same(&all.value(row, kind), expected), "slot {slot} row {row}");
        }
        all.clear_nulls();
        all.decode();
        assert_eq!(all.len(), 14);
        assert!(same(&all.value(13, kind), &second.rows[4][slot]));
    }
}

#[test]
fn values_of_intervals_are_not_supported() {
    let slots = [Slot { name: "i".into(), kind: Type::Interval, nullable: true }];
    assert!(supports(&Expr::IsNull(Box::new(Expr::Slot(0))), &slots).is_err());
    assert!(supports(&Expr::ListLength(Box::new(Expr::Slot(0))), &slots).is_err());
}

#[test]
fn bytes_vectors_hold_what_is_pushed() {
    let mut bytes = BytesVector::default();
    bytes.push(b"one");
    bytes.push_with(|out| out.extend_from_slice(b"three"));
    bytes.push(b"");
    assert_eq!(bytes.iter().collect::<Vec<_>>(), [&b"one"[..], b"three", b""]);
    assert_eq!((bytes.len(), bytes.get(1)), (3, &b"three"[..]));
}
