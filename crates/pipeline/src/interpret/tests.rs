//! The interpreter by example, and joins and groups against the plainest possible definitions.

use super::{Inputs, Row, interpret};
use crate::{
    JoinKind, Value, parse,
    random::{generator, inputs, literal, query, same_rows, seed, tables},
    verify,
};

fn int(value: i128) -> Value {
    Value::Integer(value)
}

fn run(text: &str) -> Vec<Row> {
    run_with(text, &Inputs::default())
}

fn run_with(text: &str, inputs: &Inputs) -> Vec<Row> {
    let query = parse(text).unwrap_or_else(|error| panic!("{error}"));
    verify(&query).unwrap_or_else(|error| panic!("{error}"));
    interpret(&query, inputs).unwrap_or_else(|error| panic!("{error}"))
}

fn fails(text: &str) -> String {
    let query = parse(text).unwrap_or_else(|error| panic!("{error}"));
    verify(&query).unwrap_or_else(|error| panic!("{error}"));
    interpret(&query, &Inputs::default()).unwrap_err().message
}

/// Evaluates one expression over no rows.
fn value(kind: &str, expr: &str) -> Value {
    let text = format!("pipeline 0 values [] () let $0 x: {kind}? = {expr} materialize output ($0)");
    run(&text)[0][0].clone()
}

#[test]
fn three_valued_logic() {
    let (t, f, n) = (Value::Boolean(true), Value::Boolean(false), Value::Null);
    assert_eq!(value("boolean", "true and null:boolean"), n);
    assert_eq!(value("boolean", "false and null:boolean"), f);
    assert_eq!(value("boolean", "true or null:boolean"), t);
    assert_eq!(value("boolean", "or()"), f);
    assert_eq!(value("boolean", "and()"), t);
    assert_eq!(value("boolean", "not(null:boolean)"), n);
    assert_eq!(value("boolean", "1 in (2, null)"), n);
    assert_eq!(value("boolean", "1 in (1, null)"), t);
    assert_eq!(value("boolean", "null:int64 in (1)"), n);
    assert_eq!(value("boolean", "null:int64 in ()"), f);
    assert_eq!(value("boolean", "null:int64 is distinct from null:int64"), f);
    assert_eq!(value("boolean", "null:int64 is distinct from 1"), t);
    assert_eq!(value("boolean", "nan = nan"), t);
    assert_eq!(value("boolean", "nan > inf"), t);
    assert_eq!(value("boolean", "-0.0 < 0.0"), t);
    assert_eq!(value("int64", "case int64 when null:boolean then 1 when true then 2 else 1 / 0 end"), int(2));
    assert_eq!(value("int64", "case int64 when false then 1 end"), n);
}

#[test]
fn names_the_division() {
    let text = "pipeline 0 values [a: int64, b: int64] (1, 0) let $2 q: int64 = $0 / $1 materialize output ($2)";
    assert_eq!(fails(text), "division by zero in a / b: guard it with NULLIF(b, 0)");
}

#[test]
fn user_functions() {
    let collatz = "function 0 collatz(n: int64) returns int64 locals (steps: int64)
        set $1 = 0
        while $0 <> 1
          if $0 % 2 = 0 set $0 = $0 / 2 else set $0 = ($0 * 3) + 1 end
          set $1 = $1 + 1
        end
        return $1
      end";
    let rows = run(&format!(
        "{collatz} pipeline 0 values [n: int64] (27), (1) let $1 c: int64? = @0($0) materialize output ($1)"
    ));
    assert_eq!(rows, [[int(111)], [int(0)]]);

    let dot =
        "function 0 dot(n: int64) returns float64 locals (a: list(float64), b: list(float64), i: int64, sum: float64)
        resize $1, $0, 2.0
        resize $2, $0, 0.5
        for $3 from 0 to $0
          store $1, $3, cast($3 as float64)
        end
        set $4 = 0.0
        for $3 from 0 to list_length($1)
          if $3 = 2 continue end
          set $4 = $4 + (element($1, $3) * element($2, $3))
        end
        return $4
      end";
    let rows =
        run(&format!("{dot} pipeline 0 values [n: int64] (5) let $1 c: float64? = @0($0) materialize output ($1)"));
    assert_eq!(rows, [[Value::Float(4.0)]]);

    let stars = "function 0 stars(n: int64) returns string locals (s: string, i: int64)
        set $1 = ''
        for $2 from 0 to 100 if $2 >= $0 break end set $1 = concat($1, '*') end
        return $1
      end
      function 1 twice(n: int64) returns string return concat(@0($0), @0($0)) end";
    let rows = run(&format!(
        "{stars} pipeline 0 values [n: int64?] (3), (null) let $1 c: string? = @1($0) materialize output ($1)"
    ));
    assert_eq!(rows[0], [Value::string("******")]);

    let forever = "function 0 f(n: int64) returns int64 while true set $0 = 1 end end";
    let call = "pipeline 0 values [n: int64] (3) let $1 c: int64? = @0($0) materialize output ($1)";
    assert!(fails(&format!("{forever} {call}")).starts_with("a user function ran over"));
    let outside =
        "function 0 f(n: int64) returns int64 locals (l: list(int64)) resize $1, 2, 0 return element($1, $0) end";
    assert!(fails(&format!("{outside} {call}")).contains("list index out of range"));
    let nothing = "function 0 f(n: int64) returns int64 if $0 > 100 return 1 end end";
    assert_eq!(run(&format!("{nothing} {call}")), [[Value::Null]]);
}

/// Joins by comparing every pair, from the definition of each kind.
fn join(kind: JoinKind, left: &[Row], right: &[Row], null_equals_null: bool, null_aware: bool) -> Vec<Row> {
    let equal = |a: &Value, b: &Value| {
        if a.is_null() || b.is_null() { null_equals_null && a.is_null() && b.is_null() } else { a == b }
    };
    let pairs = |l: &Row| right.iter().filter(|r| equal(&l[0], &r[0]) && residual(l, r)).cloned().collect::<Vec<_>>();
    let residual_only = |l: &Row| right.iter().filter(|r| residual(l, r)).collect::<Vec<_>>();
    fn residual(l: &Row, r: &Row) -> bool {
        matches!((&l[1], &r[1]), (Value::Integer(a), Value::Integer(b)) if a <= b)
    }
    let nulls = |row: &Row| vec![Value::Null; row.len()];
    let mut output = Vec::new();
    for l in left {
        let found = pairs(l);
        let candidates = residual_only(l);
        let unknown = null_aware
            && found.is_empty()
            && !candidates.is_empty()
            && (l[0].is_null() || candidates.iter().any(|r| r[0].is_null()));
        match kind {
            JoinKind::Inner | JoinKind::Right => output.extend(found.iter().map(|r| [l.clone(), r.clone()].concat())),
            JoinKind::Left | JoinKind::Full if found.is_empty() => output.push([l.clone(), nulls(l)].concat()),
            JoinKind::Left | JoinKind::Full => output.extend(found.iter().map(|r| [l.clone(), r.clone()].concat())),
            JoinKind::Semi if !found.is_empty() => output.push(l.clone()),
            JoinKind::Anti if found.is_empty() && !unknown => output.push(l.clone()),
            JoinKind::Mark => {
                let mark = if unknown { Value::Null } else { Value::Boolean(!found.is_empty()) };
                output.push([l.clone(), vec![mark]].concat());
            }
            _ => {}
        }
    }
    for r in right {
        let found = left.iter().any(|l| equal(&l[0], &r[0]) && residual(l, r));
        let wanted = match kind {
            JoinKind::Right | JoinKind::Full | JoinKind::RightAnti => !found,
            JoinKind::RightSemi => found,
            _ => false,
        };
        if wanted {
            output.push([nulls(r), r.clone()].concat());
        }
    }
    output
}

#[test]
fn joins_are_what_pairs_say() {
    let seed = seed();
    println!("seed {seed}");
    let mut rng = generator(seed);
    for round in 0..60 {
        let mut side = |name: &str| -> (Vec<Row>, String) {
            let value = |rng: &mut rand::rngs::StdRng| match literal(rng, &crate::Type::Int64) {
                Value::Integer(value) if value % 4 == 0 => Value::Null,
                Value::Integer(value) => int(value % 5),
                other => other,
            };
            let rows: Vec<Row> = (0..round % 12).map(|_| vec![value(&mut rng), value(&mut rng)]).collect();
            let text: Vec<String> = rows.iter().map(|row| format!("({}, {})", row[0], row[1])).collect();
            (rows, format!("values [{name}k: int64?, {name}v: int64?] {}", text.join(", ")))
        };
        let ((left, left_text), (right, right_text)) = (side("l"), side("r"));
        for kind in JoinKind::all() {
            for (flags, null_equals_null, null_aware) in
                [("", false, false), (" null equals null", true, false), (" null aware", false, true)]
            {
                if null_aware && !matches!(kind, JoinKind::Anti | JoinKind::Mark) {
                    continue;
                }
                let (adds, output) = match kind {
                    JoinKind::Mark => ("adds ($2 m: boolean?)", "($0, $1, $2)"),
                    JoinKind::Semi | JoinKind::Anti => ("", "($0, $1)"),
                    _ => ("adds ($2 rk@0: int64?, $3 rv@1: int64?)", "($0, $1, $2, $3)"),
                };
                let text = format!(
                    "pipeline 0 {right_text} build keys ($0) payload ($0, $1) pipeline 1 {left_text} \
                     probe {} 0 on ($0){flags} where $1 <= $3 {adds} materialize output {output}",
                    kind.name()
                );
                let expected = join(kind, &left, &right, null_equals_null, null_aware);
                let found = run(&text);
                assert!(same_rows(&expected, &found), "seed {seed}\n{text}\n{expected:?}\n{found:?}");
            }
        }
    }
}

#[test]
fn aggregates() {
    let source = "pipeline 0 values [k: int64?, v: int64?, f: float64, d: decimal(9,2), c: boolean]
        (1, 5, 1.0, 100, true), (null, 7, 2.0, 101, false), (1, 5, 4.0, 102, true), (1, null, 8.0, -1, false)";
    let rows = run(&format!(
        "{source} aggregate by ($0) (sum($1): int64, count(distinct $1): int64, count_rows(): int64,
        average($3): decimal(19,6), min($2): float64, bool_and($4): boolean, sum($2 where $4): float64)"
    ));
    let expected = [
        vec![int(1), int(10), int(1), int(3), int(670000), Value::Float(1.0), Value::Boolean(false), Value::Float(5.0)],
        vec![Value::Null, int(7), int(1), int(1), int(1010000), Value::Float(2.0), Value::Boolean(false), Value::Null],
    ];
    assert_eq!(rows, expected);
    let rows = run(&format!(
        "{source} filter false aggregate by () (sum($1): int64, count($1): int64, variance_sample($2): float64)"
    ));
    assert_eq!(rows, [[Value::Null, int(0), Value::Null]]);
    let rows = run(&format!("{source} filter false aggregate by ($0) (sum($1): int64)"));
    assert!(rows.is_empty());
    let rows = run(&format!(
        "{source} aggregate by () (variance_sample($2): float64, variance_population($2): float64,
        deviation_sample($2): float64, average($1): float64)"
    ));
    assert_eq!(rows[0][1], Value::Float(7.1875));
    let sum = "pipeline 0 values [v: int64] (9223372036854775807), (1), (-1) filter $0";
    assert_eq!(run(&format!("{sum} <> 5 aggregate by () (sum($0): int64)")), [[int(i64::MAX.into())]]);
    assert_eq!(run(&format!("{sum} > 0 aggregate by () (sum($0): int64 overflow wrap)")), [[int(i64::MIN.into())]]);
    assert_eq!(run(&format!("{sum} > 0 aggregate by () (sum($0): int64 overflow null)")), [[Value::Null]]);
    assert!(fails(&format!("{sum} > 0 aggregate by () (sum($0): int64)")).starts_with("integer overflow in int64 sum"));
}

#[test]
fn sorts_and_windows() {
    let source =
        "pipeline 0 values [g: int64, v: float64?] (1, 2.0), (2, nan), (1, null), (1, -0.0), (2, 0.0), (1, 2.0)";
    let rows = run(&format!("{source} sort by ($1 desc nulls first, $0) skip 1 fetch 3 output ($1, $0)"));
    assert_eq!(rows, [[Value::Float(f64::NAN), int(2)], [Value::Float(2.0), int(1)], [Value::Float(2.0), int(1)]]);
    let rows = run(&format!(
        "{source} window by ($0) order ($1) compute (row_number() as int64, rank() as int64,
        dense_rank() as int64, lag($1, 1) as float64, count_rows(): int64 rows -1 to 0 as int64,
        sum($1): float64 rows unbounded to unbounded as float64) output ($0, $1)"
    ));
    let expected = [int(1), Value::Float(2.0), int(2), int(2), int(2), Value::Float(-0.0), int(2), Value::Float(4.0)];
    assert_eq!(rows[0], expected);
    assert_eq!(rows[5][2..6], [int(3), int(2), int(2), Value::Float(2.0)]);
    assert_eq!(rows[2][2..5], [int(4), int(4), int(3)]);
}

#[test]
fn unions_and_partitions() {
    let text = "pipeline 0 values [a: int64] (1), (2), (3) partition by ($0) into 2 output ($0)
        pipeline 1 result 0, 0 [a: int64] aggregate partial by () (average($0): float64, variance_sample($0): float64)
        pipeline 2 result 1, 1 [s: float64?, n: int64, c: int64, m: float64, q: float64]
        aggregate final by () (average($0): float64, variance_sample($2): float64)";
    let rows = run(text);
    assert_eq!(rows[0][0], Value::Float(2.0));
    let Value::Float(variance) = rows[0][1] else { panic!() };
    assert!((variance - 8.0 / 11.0).abs() < 1e-12, "{variance}");
}

#[test]
fn random_queries_run() {
    let seed = seed();
    println!("seed {seed}");
    let mut rows = 0;
    for round in 0..400 {
        let mut rng = generator(seed.wrapping_add(round));
        let tables = tables(&mut rng, 40);
        let query = query(&mut rng, &tables);
        let found = interpret(&query, &inputs(&tables));
        let found = found.unwrap_or_else(|error| panic!("seed {seed} round {round}: {error}\n{query}"));
        rows += usize::from(!found.is_empty());
        let columns = query.output();
        for row in &found {
            assert_eq!(row.len(), columns.len(), "seed {seed} round {round}\n{query}");
            for (value, column) in row.iter().zip(&columns) {
                assert!(value.fits(&column.kind), "seed {seed} round {round}: {value} in {}\n{query}", column.name);
                assert!(
                    column.nullable || !value.is_null(),
                    "seed {seed} round {round}: null in {}\n{query}",
                    column.name
                );
            }
        }
    }
    assert!(rows > 200, "only {rows} of 400 queries have rows");
}
