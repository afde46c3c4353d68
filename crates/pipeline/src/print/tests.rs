//! Text and back: by example, and for random queries.

use crate::{
    Expr, Query, Sink, Source, Step, Type, Value, parse,
    random::{generator, query, seed, tables},
    verify,
};

#[test]
fn prints_a_star_join() {
    let text = "\
pipeline 0
  scan date [d_datekey@0: int32, d_year@4: int32]
  filter $1 = 1993:int32
  build keys ($0) payload ()
pipeline 1
  scan lineorder [lo_orderdate@5: int32, lo_discount@11: int32, lo_extendedprice@9: int32?]
  filter $1 >= 1:int32 and $1 <= 3:int32
  probe inner 0 on ($0)
  let $3 revenue: int64? = cast($2 as int64) * cast($1 as int64)
  aggregate by () (sum($3): int64)
";
    let query = parse(text).unwrap();
    verify(&query).unwrap();
    assert_eq!(query.to_string(), text);
    let lines = query.pipelines[1].describe(&query);
    assert_eq!(lines[1], "filter lo_discount >= 1 and lo_discount <= 3");
    assert_eq!(lines[3], "let revenue = cast(lo_extendedprice as int64) * cast(lo_discount as int64)");
    assert_eq!(lines[4], "aggregate by () (sum(revenue))");
}

#[test]
fn every_construct_round_trips() {
    let text = "\
function 0 collatz(n: int64) returns int64 locals (steps: int64, seen: list(float64), i: int64)
  set $1 = 0
  resize $2, 3, 0.0
  while $0 <> 1
    if $0 % 2 = 0
      set $0 = $0 / 2
    else
      set $0 = ($0 * 3) + 1
    end
    set $1 = $1 + 1
    if $1 > 1000
      break
    end
    continue
  end
  for $3 from 0 to list_length($2)
    store $2, $3, element($2, $3) + 1.5
  end
  return $1
end
function 1 \"odd name\"(a: int64) returns string
  return cast(collatz@0($0) as string)
end
pipeline 0
  values [a: float64?, b: string?, c: interval?, d: binary?] (nan, 'it\\'s\\n\\u{7}', interval(1, -2, 3), x'00ff'), (-0.0, '\\\\', null, x'')
  partition by ($0, $1) into 4 output ($0, $1)
pipeline 1
  block \"my block\" [a: float64?, \"b c\": string?]
  let
  let $2 x: boolean = $0 = nan(0xfff8000000000001), $3 y: string? = \"odd name\"@1(5)
  filter or() or and(true) or not($2) or ($2 or $2) or $2 and ($2 and $2)
  materialize skip 3 fetch 7 output ($0, $1)
pipeline 2
  result 0, 1 [a: float64?, b: string?]
  filter $1 like 'a\\\\%' escape '!' and $1 ilike '%x' and $1 in ('a', null) and $1 is null
  let $2 t: timestamp(us,'Europe/Paris')? = try_cast($1 as timestamp(us,'Europe/Paris')), $3 d: date = date '1994-01-01', $4 e: decimal(9,2) = -0.05:decimal(9,2), $5 l: int64 = negate(-5 overflow wrap), $6 n: float32? = null:float32, $7 far: date = 99999999:date
  let $8 s: date = $3 - interval(0, 1, 0) [overflow null], $9 r: decimal(38,6) = $4 / $4 [decimal(38,6) overflow null zero null], $10 f: float64 = round($0, 2:int32), $11 g: float32 = sqrt($4):float32
  let $12 c: string? = case string when $0 > 1.0 then 'x' when $0 is distinct from inf then 'y' else $1 end, $13 h: decimal(3,-2) = 1200:decimal(3,-2)
  window by ($1) order ($0 desc, $3 nulls first) compute (row_number() as int64, lag($0, -2, $0) as float64, lag($0, 1) ignore nulls as float64, nth($1, -1) groups -2 to 0 as string, nth($1, 2) ignore nulls rows -2 to 0 as string, ntile(4) as int64, sum($0 where $2): float64 overflow null rows -1 to unbounded as float64) fetch 3 output ($0)
pipeline 3
  result 2 [a: float64?, b: int64, c: float64?, d: string?, e: int64, f: float64?]
  sort by ($0 desc nulls first, $1) skip 1 fetch 10 output ($0, $1)
pipeline 4
  values [] (), ()
  aggregate partial by () (count_rows(): int64, count(distinct $0): int64)
";
    let query = parse(text).unwrap();
    assert_eq!(query.to_string(), text);
    assert_eq!(parse(&query.to_string()).unwrap(), query);
    let Source::Values { rows } = &query.pipelines[0].source else { panic!() };
    assert_eq!(rows[0][1], Value::string("it's\n\u{7}"));
    let Step::Let(exprs) = &query.pipelines[2].steps[1] else { panic!() };
    assert_eq!(exprs[2], Expr::Literal(Value::Integer(-5), Type::Decimal { precision: 9, scale: 2 }));
    let Sink::Window { functions, .. } = &query.pipelines[2].sink else { panic!() };
    assert_eq!(functions.len(), 7);
}

#[test]
fn random_queries_round_trip() {
    let seed = seed();
    println!("seed {seed}");
    for round in 0..600 {
        let mut rng = generator(seed.wrapping_add(round));
        let tables = tables(&mut rng, 3);
        let query: Query = query(&mut rng, &tables);
        let text = query.to_string();
        verify(&query).unwrap_or_else(|error| panic!("seed {seed} round {round}: {error}\n{text}"));
        let read = parse(&text).unwrap_or_else(|error| panic!("seed {seed} round {round}: {error}\n{text}"));
        assert!(read == query, "seed {seed} round {round}:\n{text}\nis read as\n{read}");
        query.pipelines.iter().for_each(|pipeline| assert!(pipeline.describe(&query).len() >= 2));
    }
}

#[test]
fn says_where_text_is_wrong() {
    let message = |text: &str| parse(text).unwrap_err().message;
    assert_eq!(
        message("pipeline 0\n scan t [a@0: int32]\n frobnicate"),
        "line 3: expected a step or a sink, found frobnicate"
    );
    assert_eq!(message("pipeline 1"), "line 1: expected pipelines numbered in order, found the end");
    assert!(message("pipeline 0 values [] filter 'abc").contains("closing quote"));
    assert!(message("pipeline 0 values [] filter frob($0)").contains("a function, which frob is not"));
}

#[test]
fn shows_expressions_for_people() {
    let slots = [crate::Slot { name: "price".to_owned(), kind: Type::Int64, nullable: false }];
    let query = parse(
        "pipeline 0 scan t [p@0: int64] filter (($0 + 1) * 2 [overflow wrap]) / $0 > 5 or $0 in (1, 2) materialize output ()",
    );
    let Step::Filter(condition) = &query.unwrap().pipelines[0].steps[0] else { panic!() };
    assert_eq!(condition.display(&slots).to_string(), "(price + 1) * 2 / price > 5 or price in (1, 2)");
    assert_eq!(condition.to_string(), "($0 + 1) * 2 / $0 > 5 or $0 in (1, 2)");
}

#[test]
fn nesting_is_refused_before_it_is_read() {
    let filter = |expression: String| format!("pipeline 0\n  scan t [a@0: int64]\n  filter {expression}\n");
    let deep = 100_000;
    let expressions = [
        "(".repeat(deep),
        "not(".repeat(deep),
        "negate(".repeat(deep),
        "cast(".repeat(deep),
        "case int64 when ".repeat(deep),
        "[".repeat(deep),
        "f@0(".repeat(deep),
        format!("null:{}", "list(".repeat(deep)),
        // Operators nest to the left.
        format!("$0{}", " + $0".repeat(deep)),
        format!("$0{}", " is null".repeat(deep)),
        format!("$0{}", " = $0".repeat(deep)),
        format!("$0{}", " like 'x'".repeat(deep)),
    ];
    for expression in expressions {
        let shown: String = expression.chars().take(20).collect();
        let error = parse(&filter(expression)).unwrap_err();
        assert!(error.message.contains("less nesting"), "{shown}: {}", error.message);
    }
    let function = format!("function 0 f(a: int64) returns int64\n{}", "if true\n".repeat(deep));
    assert!(parse(&function).unwrap_err().message.contains("less nesting"));
    // What is as deep as executors take is read.
    let sum = filter(format!("$0{} > 0", " + $0".repeat(100))) + "  materialize output ($0)\n";
    verify(&parse(&sum).unwrap()).unwrap();
}
